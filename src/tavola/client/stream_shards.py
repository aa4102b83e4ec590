"""Shards: a stream's shards and their lineage, and the reading of one of them, as steps.

A shard is read once its parent is read to the end, so that an item's changes come in their order across a
split. A parent that is no longer described is past the trim horizon and holds nobody up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tavola.client.effects import Call, Program
from tavola.errors import ErrorKind, TavolaError
from tavola.limits import STREAM_RECORDS_MAX
from tavola.protocol.faults import Fault

LATEST_SLACK_S = (
    5.0  # how far before its beginning a shard begun at LATEST is read again, for clocks that differ
)

# AT_TIMESTAMP is newer than the other places: what older servers answer to a word that they do not know.
_TIME_UNKNOWN = frozenset({"ValidationException", "SerializationException"})

# Records too old to be there, a shard that is there no more, or a place beyond the shard's end.
Loss: TypeAlias = Literal["trimmed", "gone", "ahead"]
Telling: TypeAlias = Callable[[Loss, str, str | None], None]  # with the shard, and what was read of it last


class StreamError(TavolaError):
    """A stream, record or change that cannot be read or dealt with."""


class StreamMissing(StreamError):
    """A table that has no stream to read."""

    kind = ErrorKind.NOT_FOUND

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"Table {table} has no stream; enable one with UpdateTable and the StreamSpecification "
            f'{{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}'
        )


class StreamGone(StreamError):
    """A stream that was there and is no more: its table was deleted, or its day has passed."""

    def __init__(self, stream_arn: str) -> None:
        self.stream_arn = stream_arn
        super().__init__(
            f"The stream {stream_arn} is no more; what was read of it was handled. Start again to follow the "
            f"table's present stream"
        )


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as the stream describes it."""

    id: str
    parent: str | None
    closed: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as it is described, with all of its shards."""

    arn: str
    table: str
    status: str
    hash_key: str
    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """What one reading of a shard brought, in order; `ended`: the shard is closed and this was its end."""

    records: tuple[dict[str, Any], ...]
    ended: bool
    passed: int = 0  # records that lie before the moment at which the reading begins


def latest_stream_arn(table: str) -> Program[str]:
    """Return the ARN of a table's present stream, or the last it had."""
    described = (yield Call("DescribeTable", {"TableName": table}))["Table"]
    arn: str | None = described.get("LatestStreamArn")
    if arn is None:
        raise StreamMissing(table)
    return arn


def describe_stream(arn: str) -> Program[Stream]:
    """Return a stream with all of its shards, however many pages they take."""
    shards: list[Shard] = []
    request: dict[str, Any] = {"StreamArn": arn}
    while True:
        try:
            described = (yield Call("DescribeStream", dict(request)))["StreamDescription"]
        except Fault as fault:
            if fault.code == "ResourceNotFoundException":
                raise StreamGone(arn) from fault
            raise
        shards += map(_shard, described.get("Shards", ()))
        last = described.get("LastEvaluatedShardId")
        if last is None:
            break
        request["ExclusiveStartShardId"] = last
    hash_keys = [row["AttributeName"] for row in described["KeySchema"] if row["KeyType"] == "HASH"]
    return Stream(arn, described["TableName"], described["StreamStatus"], hash_keys[0], tuple(shards))


def readable(shards: Collection[Shard], finished: Collection[str]) -> tuple[Shard, ...]:
    """Return the shards that may be read now: unfinished, and no child of one that is unfinished."""
    unfinished = {shard.id for shard in shards if shard.id not in finished}
    return tuple(shard for shard in shards if shard.id in unfinished and shard.parent not in unfinished)


def sequence_of(record: Mapping[str, Any]) -> str:
    """Return the sequence number of a record, of GetRecords or of Lambda."""
    found: str = record["dynamodb"]["SequenceNumber"]
    return found


class ShardReading:
    """The reading of one shard from a place on; iterators that expire are got anew from where it is.

    `after` is the last record that is dealt with, `since_s` when a shard was begun that has none yet.
    `tell` hears of records that are lost; the reading goes on with what is there unless it raises.
    """

    def __init__(
        self,
        stream_arn: str,
        shard_id: str,
        *,
        after: str | None = None,
        since_s: float | None = None,
        latest: bool = False,
        tell: Telling,
    ) -> None:
        self.shard_id = shard_id
        self._stream_arn = stream_arn
        self._reached = after  # the last record that was read
        self._since_s = since_s
        self._latest = latest
        self._tell = tell
        self._iterator: str | None = None
        self._from_s: float | None = None  # earlier records are passed over here, where the service cannot

    def open(self) -> Program[None]:
        """Find the place to read from now; LATEST means this moment, and not the first reading."""
        if self._iterator is None:
            self._iterator = yield from self._place()

    def read(self, limit: int = STREAM_RECORDS_MAX) -> Program[Records]:
        """Return the next records; none where there are none yet.

        What is retried by the service's own advice is raised, for the caller to choose when.
        """
        for _ in range(3):  # an expired iterator, then trimmed data, then the reading itself
            try:
                yield from self.open()
                answer = yield Call("GetRecords", {"ShardIterator": self._iterator, "Limit": limit})
            except Fault as fault:
                match fault.code:
                    case "ExpiredIteratorException":
                        self._iterator = None
                    case "TrimmedDataAccessException":
                        self._tell("trimmed", self.shard_id, self._reached)
                        self._iterator = yield from self._get("TRIM_HORIZON")
                    case "ResourceNotFoundException":
                        self._tell("gone", self.shard_id, self._reached)
                        return Records((), ended=True)
                    case "ValidationException" if self._iterator is None and self._reached is not None:
                        self._tell("ahead", self.shard_id, self._reached)
                        self._reached = None  # what it has is new to us, whatever its numbers are
                        self._iterator = yield from self._get("TRIM_HORIZON")
                    case _:
                        raise
                continue
            self._iterator = answer.get("NextShardIterator")
            found = answer.get("Records", ())
            fresh = self._fresh(found)
            return Records(fresh, ended=self._iterator is None, passed=len(found) - len(fresh))
        return Records((), ended=False)

    def _place(self) -> Program[str]:
        if self._reached is not None:
            return (yield from self._get("AFTER_SEQUENCE_NUMBER", SequenceNumber=self._reached))
        if self._latest:
            self._latest = False  # a second place is found by the time of the first
            return (yield from self._get("LATEST"))
        if self._since_s is not None:
            return (yield from self._at(self._since_s - LATEST_SLACK_S))
        return (yield from self._get("TRIM_HORIZON"))

    def _at(self, at_s: float) -> Program[str]:
        """Return a place by its time; an endpoint that knows no such place is read from its beginning."""
        try:
            return (yield from self._get("AT_TIMESTAMP", Timestamp=at_s))
        except Fault as fault:
            if fault.code not in _TIME_UNKNOWN:
                raise
        self._from_s = at_s
        return (yield from self._get("TRIM_HORIZON"))

    def _get(self, kind: str, **place: object) -> Program[str]:
        request = {
            "StreamArn": self._stream_arn,
            "ShardId": self.shard_id,
            "ShardIteratorType": kind,
            **place,
        }
        found: str = (yield Call("GetShardIterator", request))["ShardIterator"]
        return found

    def _fresh(self, records: Collection[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Return the records past what was read; a place that was got anew may lie a little before it."""
        reached = -1 if self._reached is None else int(self._reached)
        fresh = tuple(record for record in records if int(sequence_of(record)) > reached)
        if fresh:
            self._reached = sequence_of(fresh[-1])
        if self._from_s is not None:
            fresh = tuple(record for record in fresh if _made_s(record) >= self._from_s)
        return fresh


def _made_s(record: Mapping[str, Any]) -> float:
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))


def _shard(described: Mapping[str, Any]) -> Shard:
    stretch = described.get("SequenceNumberRange", {})
    return Shard(described["ShardId"], described.get("ParentShardId"), "EndingSequenceNumber" in stretch)
