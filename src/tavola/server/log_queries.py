"""Log queries: find records in an access log, oldest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tavola.keys import KeyAttribute, KeyRefused, KeySchema
from tavola.server.access_log import hash_key, secret_path
from tavola.server.errors import LogKeyMalformed, LogSecretUnreadable
from tavola.server.log_files import files_of

Record = dict[str, Any]

_AGO = re.compile(r"(\d+)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class AccessLogQuery:
    """A filter for records; None matches anything. Times are in epoch seconds, `until_s` is exclusive."""

    user: str | None = None  # a name, an ARN, an access key or an account
    operation: str | None = None
    table: str | None = None
    index: str | None = None
    error: str | None = None  # a code, "any" or "none"
    decision: str | None = None
    key: str | None = None  # the hash of a key
    account: str | None = None  # whose caller made the call
    since_s: float | None = None
    until_s: float | None = None

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record meets every criterion."""
        tables = tuple(tables_of(record))
        return (
            (self.operation is None or _equal_ignoring_case(record.get("eventName"), self.operation))
            and (self.user is None or self.user in names_of(record))
            and (self.error is None or _matches_error(self.error, record.get("errorCode")))
            and (self.decision is None or decision_of(record) == self.decision)
            and (self.table is None or any(table.get("tableName") == self.table for table in tables))
            and (self.index is None or any(table.get("indexName") == self.index for table in tables))
            and (self.key is None or any(self.key in table.get("keys", ()) for table in tables))
            and (self.account is None or record.get("recipientAccountId") == self.account)
            and (self.since_s is None or time_of(record) >= self.since_s)
            and (self.until_s is None or time_of(record) < self.until_s)
        )


def read_records(path: Path, query: AccessLogQuery) -> Iterator[tuple[bytes, Record]]:
    """Yield each matching record as its line and as data; lines that are not records are skipped."""
    for file in files_of(path):
        with file.open("rb") as lines:
            for line in lines:
                try:
                    record = _decode(line)
                    matches = query.matches(record)
                except (msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError):
                    continue  # cut off when the process ended, or written by another program
                if matches:
                    yield line, record


def tables_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that a record names, each with its index and keys."""
    parameters = record.get("requestParameters") or {}
    yield from parameters.get("tables", (parameters,) if parameters else ())


def names_of(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that identify the caller of a record."""
    identity = record.get("userIdentity") or {}
    issuer = (identity.get("sessionContext") or {}).get("sessionIssuer") or {}
    named = (identity.get(member) for member in ("userName", "arn", "accessKeyId", "accountId", "type"))
    return frozenset(name for name in (*named, issuer.get("userName"), issuer.get("arn")) if name)


def decision_of(record: Mapping[str, Any]) -> str | None:
    """Return the decision on a call, such as "allowed" or "denied"."""
    decision: str | None = (record.get("additionalEventData") or {}).get("decision")
    return decision


def time_of(record: Mapping[str, Any]) -> float:
    """Return when a call was made, in epoch seconds."""
    return datetime.fromisoformat(record["eventTime"]).timestamp()


def parse_moment(text: str, now_s: float) -> float | None:
    """Return the epoch seconds of a date and time, or of an age such as 15m; None if the text is neither."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return now_s - int(ago[1]) * _SECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def hash_of_item(secret: bytes, item: Mapping[str, Any]) -> str | None:
    """Return the hash of a key in DynamoDB JSON, hash attribute first; None if it is not a key.

    Without the range attribute it is the hash of the partition, which is what queries are logged with.
    """
    if not 1 <= len(item) <= 2 or not all(isinstance(v, dict) and len(v) == 1 for v in item.values()):
        return None
    attributes = [KeyAttribute(name, next(iter(value))) for name, value in item.items()]
    if any(attribute.type not in {"S", "N", "B"} for attribute in attributes):
        return None
    schema = KeySchema((attributes[0],), tuple(attributes[1:]))
    try:
        return hash_key(secret, schema.key_of(item))
    except (KeyRefused, ValueError, AttributeError):
        return None


def log_key(path: Path, item: str) -> str:
    """Return the hash of a key in a log; `item` is DynamoDB JSON, hash attribute first. Reads the log's secret."""
    try:
        key = msgspec.json.decode(item.encode(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise LogKeyMalformed(item) from error
    secret_file = secret_path(path)
    try:
        secret = bytes.fromhex(secret_file.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise LogSecretUnreadable(secret_file) from error
    key_hash = hash_of_item(secret, key)
    if key_hash is None:
        raise LogKeyMalformed(item)
    return key_hash


def _equal_ignoring_case(logged: Any, text: str) -> bool:
    return isinstance(logged, str) and logged.lower() == text.lower()


def _matches_error(error: str, code: str | None) -> bool:
    if error in {"any", "none"}:
        return (code is None) == (error == "none")
    return _equal_ignoring_case(code, error) or _equal_ignoring_case(
        (code or "").removesuffix("Exception"), error
    )
