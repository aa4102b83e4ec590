"""Events: a stream record as Lambda passes it to a function, and the event around a batch of them.

Lambda adds the stream's ARN to each record and writes the members of `userIdentity` in lower camel case. Records are kept as
JSON: its length counts against the payload limit, and each invocation gets a freshly decoded event, so a handler that
modifies its event does not affect a retry.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode

_ENVELOPE_BYTES = len(b'{"Records":[]}')


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One record as the handler gets it, with what ordering and limits depend on."""

    sequence: str
    created_at_s: float
    body: bytes  # the record in Lambda's event, as JSON
    partition: int  # a hash of the item's partition key, the same in every process

    @property
    def number(self) -> int:
        """The sequence number as an integer; compared as text, shorter numbers would sort wrongly."""
        return int(self.sequence)

    @property
    def payload_bytes(self) -> int:
        """The record's share of an invocation's payload, with its comma."""
        return len(self.body) + 1


@dataclass(frozen=True, slots=True)
class Window:
    """A tumbling window: its bounds in epoch seconds, and the state last returned by the handler, as JSON."""

    start_s: int
    end_s: int
    state: bytes = b"{}"


def lambda_record(record: Mapping[str, Any], stream_arn: str) -> dict[str, Any]:
    """Return a record of GetRecords in the shape of Lambda's event."""
    region = stream_arn.split(":")[3] if stream_arn.count(":") >= 5 else ""
    event_record: dict[str, Any] = {
        "eventID": record.get("eventID"),
        "eventName": record.get("eventName"),
        "eventVersion": record.get("eventVersion", "1.1"),
        "eventSource": record.get("eventSource", "aws:dynamodb"),
        "awsRegion": record.get("awsRegion") or region,
        "dynamodb": record["dynamodb"],
        "eventSourceARN": stream_arn,
    }
    identity = record.get("userIdentity")
    if identity:
        event_record["userIdentity"] = {
            "type": identity.get("Type", identity.get("type")),
            "principalId": identity.get("PrincipalId", identity.get("principalId")),
        }
    return event_record


def stream_record(event_record: Mapping[str, Any], hash_key: str) -> StreamRecord:
    """Return a record of Lambda's event with its sequence number, time, JSON and partition hash."""
    change = event_record["dynamodb"]
    partition = _encode(change.get("Keys", {}).get(hash_key))
    return StreamRecord(
        sequence=change["SequenceNumber"],
        created_at_s=float(change.get("ApproximateCreationDateTime", 0)),
        body=_encode(event_record),
        partition=zlib.crc32(partition),
    )


def batch_bytes(records: Sequence[StreamRecord]) -> int:
    """Return the size of the event that contains these records."""
    return _ENVELOPE_BYTES + sum(record.payload_bytes for record in records)


def batch_event(records: Sequence[StreamRecord]) -> dict[str, Any]:
    """Return the event of an invocation, with new objects each time."""
    return _decode(b'{"Records":[%b]}' % b",".join(record.body for record in records))


def window_event(
    records: Sequence[StreamRecord],
    window: Window,
    shard_id: str,
    stream_arn: str,
    *,
    final: bool = False,
    early: bool = False,
) -> dict[str, Any]:
    """Return the event of an invocation inside a tumbling window; `early`: its state exceeded the limit."""
    return {
        **batch_event(records),
        "window": {"start": utc_text(window.start_s), "end": utc_text(window.end_s)},
        "state": msgspec.json.decode(window.state),
        "shardId": shard_id,
        "eventSourceARN": stream_arn,
        "isFinalInvokeForWindow": final,
        "isWindowTerminatedEarly": early,
    }


def utc_text(epoch_s: float, *, milliseconds: bool = False) -> str:
    """Return a moment as AWS writes it in an event: 2026-11-16T01:02:03Z."""
    moment = datetime.fromtimestamp(epoch_s, UTC)
    return moment.isoformat(timespec="milliseconds" if milliseconds else "seconds").replace("+00:00", "Z")
