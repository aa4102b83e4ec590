"""Log queries: which records of an access log are wanted, and those records, oldest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tavola.keys import KeyAttribute, KeyRefused, KeySchema
from tavola.server.access_log import key_hash, secret_path
from tavola.server.errors import LogKeyMalformed, LogSecretUnreadable
from tavola.server.log_files import files_of

Record = dict[str, Any]

_AGO = re.compile(r"(\d+)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class AccessLogQuery:
    """What a record must have, each None for anything; times are in epoch seconds, `until_s` not included."""

    user: str | None = None  # a name, an ARN, an access key or an account
    operation: str | None = None
    table: str | None = None
    index: str | None = None
    error: str | None = None  # a code, "any" or "none"
    decision: str | None = None
    key: str | None = None  # a key's hash
    since_s: float | None = None
    until_s: float | None = None

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a record has all of it."""
        code = record.get("errorCode")
        places = tuple(places_of(record))
        return (
            (self.operation is None or _same(record.get("eventName"), self.operation))
            and (self.user is None or self.user in names_of(record))
            and (self.error is None or _fits(self.error, code))
            and (self.decision is None or decision_of(record) == self.decision)
            and (self.table is None or any(place.get("tableName") == self.table for place in places))
            and (self.index is None or any(place.get("indexName") == self.index for place in places))
            and (self.key is None or any(self.key in place.get("keys", ()) for place in places))
            and (self.since_s is None or time_of(record) >= self.since_s)
            and (self.until_s is None or time_of(record) < self.until_s)
        )


def read_records(path: Path, query: AccessLogQuery) -> Iterator[tuple[bytes, Record]]:
    """Give each line of a log that is wanted, as it is written and as data; what is no record is passed over."""
    for file in files_of(path):
        with file.open("rb") as lines:
            for line in lines:
                try:
                    record = _decode(line)
                except msgspec.DecodeError:
                    continue  # the process ended in the middle of it
                try:
                    wanted = query.wants(record)
                except (AttributeError, KeyError, TypeError, ValueError):
                    continue  # some other program's line
                if wanted:
                    yield line, record


def places_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give the tables that a record names, each with its index and its keys."""
    told = record.get("requestParameters") or {}
    yield from told.get("tables", (told,) if told else ())


def names_of(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the names by which the caller of a record may be asked for."""
    identity = record.get("userIdentity") or {}
    issuer = (identity.get("sessionContext") or {}).get("sessionIssuer") or {}
    named = (identity.get(member) for member in ("userName", "arn", "accessKeyId", "accountId", "type"))
    return frozenset(name for name in (*named, issuer.get("userName"), issuer.get("arn")) if name)


def decision_of(record: Mapping[str, Any]) -> str | None:
    """Return what was decided of a call."""
    decision: str | None = (record.get("additionalEventData") or {}).get("decision")
    return decision


def time_of(record: Mapping[str, Any]) -> float:
    """Return when a call was made, in epoch seconds."""
    return datetime.fromisoformat(record["eventTime"]).timestamp()


def parse_moment(text: str, now_s: float) -> float | None:
    """Return the moment that a person means: a date and time, or how long ago (15m); None if it is neither."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return now_s - int(ago[1]) * _SECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def hash_of_item(secret: bytes, item: Mapping[str, Any]) -> str | None:
    """Return the hash of a key in DynamoDB JSON, its hash attribute first; None if it is no key.

    Without the range attribute it is the partition's, which records of queries have.
    """
    if not 1 <= len(item) <= 2 or not all(isinstance(v, dict) and len(v) == 1 for v in item.values()):
        return None
    attributes = [KeyAttribute(name, next(iter(value))) for name, value in item.items()]
    if any(attribute.type not in {"S", "N", "B"} for attribute in attributes):
        return None
    schema = KeySchema((attributes[0],), tuple(attributes[1:]))
    try:
        return key_hash(secret, schema.key_of(item))
    except (KeyRefused, ValueError, AttributeError):
        return None


def log_key(path: Path, item: str) -> str:
    """Return the hash that a log has for a key in DynamoDB JSON, its hash attribute first; it takes the log's secret."""
    try:
        key = msgspec.json.decode(item.encode(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise LogKeyMalformed(item) from error
    place = secret_path(path)
    try:
        secret = bytes.fromhex(place.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise LogSecretUnreadable(place) from error
    found = hash_of_item(secret, key)
    if found is None:
        raise LogKeyMalformed(item)
    return found


def _same(told: Any, wanted: str) -> bool:
    return isinstance(told, str) and told.lower() == wanted.lower()


def _fits(wanted: str, code: str | None) -> bool:
    if wanted in {"any", "none"}:
        return (code is None) == (wanted == "none")
    return _same(code, wanted) or _same((code or "").removesuffix("Exception"), wanted)
