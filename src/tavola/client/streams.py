"""Read a DynamoDB stream: find its shards, read them in the right order, and know how far each has been processed.

A stream is a set of shards. Each holds changes in order and lives for about a day; when a shard is closed, its
keys continue in one or two children:

    shard A ──closed──┬── shard B ──open──►
                      └── shard C ──closed── shard D ──open──►

The changes of one item stay in order only if a shard is read after its parent has been read to the end. A
parent that the stream no longer describes is older than the trim horizon and blocks no child.

`StreamReader` owns this order for one stream: which shards are open for reading, the position of each, and when
to ask the service for new shards. `ShardReader` reads one shard and replaces its iterator when it expires. Both
are effects programs, so subscriptions, triggers and their tests run them with a driver of their choice. Neither
decides when a record counts as processed: the caller does, and stores the positions.

Cost: one DescribeStream every ten seconds and after each closed shard, one GetRecords per open shard and poll.
Lost records (not read for a day, or the stream was deleted or restored) are reported to `on_loss`, never skipped silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from tavola.client.effects import Call, Program
from tavola.clock import Clock
from tavola.errors import ErrorKind, TavolaError
from tavola.limits import STREAM_RECORDS_MAX
from tavola.protocol.faults import Fault

DISCOVERY_S = 10.0  # between two DescribeStream calls; a closed shard causes one at once
LATEST_SLACK_S = 5.0  # a shard started at LATEST is reread from this long before, because clocks differ

# Servers without AT_TIMESTAMP, which is newer than the other iterator types, answer one of these.
_TIMESTAMP_UNSUPPORTED = frozenset({"ValidationException", "SerializationException"})

# The records are older than a day, the shard or stream no longer exists, or the position lies past the shard's end.
LossKind: TypeAlias = Literal["trimmed", "gone", "ahead"]
LossHandler: TypeAlias = Callable[[LossKind, str, str | None], None]  # kind, shard, last sequence number read


class StreamError(TavolaError):
    """A stream, record or change that cannot be read or processed."""


class StreamMissing(StreamError):
    """A table that has no stream to read."""

    kind = ErrorKind.NOT_FOUND
    remedy = "Enable a stream on the table, and start again."

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"Table {table} has no stream; enable one with UpdateTable and the StreamSpecification "
            f'{{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}'
        )


class RecordMalformed(StreamError):
    """An event or record that is not from a DynamoDB stream."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"This is not an event of a DynamoDB stream: {problem}; pass the event of Lambda or the response of GetRecords"
        )


class StreamGone(StreamError):
    """A stream that no longer exists: its table was deleted, or it was disabled more than a day ago."""

    def __init__(self, stream_arn: str) -> None:
        self.stream_arn = stream_arn
        super().__init__(
            f"The stream {stream_arn} no longer exists; all records read from it were processed. Start again to read the "
            f"table's current stream"
        )


class ShardPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far one shard has been processed."""

    after: str | None = None  # every record up to this sequence number is processed
    since_s: float | None = msgspec.field(default=None, name="since")  # started at LATEST then; no record yet
    finished: bool = False  # the shard is closed and processed to its end


P = TypeVar("P", bound=ShardPosition)


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as DescribeStream returns it."""

    id: str
    parent: str | None
    closed: bool


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """A stream with all of its shards."""

    arn: str
    table: str
    status: str
    hash_key: str
    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class RecordPage:
    """The records of one GetRecords call, in order; `ended`: the shard is closed and this was its end."""

    records: tuple[dict[str, Any], ...]
    ended: bool
    skipped: int = 0  # records older than the requested start


def latest_stream_arn(table: str) -> Program[str]:
    """Return the ARN of a table's current stream, or of its last one if the stream is disabled."""
    description = (yield Call("DescribeTable", {"TableName": table}))["Table"]
    arn: str | None = description.get("LatestStreamArn")
    if arn is None:
        raise StreamMissing(table)
    return arn


def describe_stream(arn: str) -> Program[StreamDescription]:
    """Return a stream with the shards of all result pages."""
    shards: list[Shard] = []
    request: dict[str, Any] = {"StreamArn": arn}
    while True:
        try:
            page = (yield Call("DescribeStream", dict(request)))["StreamDescription"]
        except Fault as fault:
            if fault.code == "ResourceNotFoundException":
                raise StreamGone(arn) from fault
            raise
        shards += map(_parse_shard, page.get("Shards", ()))
        last = page.get("LastEvaluatedShardId")
        if last is None:
            break
        request["ExclusiveStartShardId"] = last
    hash_keys = [key["AttributeName"] for key in page["KeySchema"] if key["KeyType"] == "HASH"]
    return StreamDescription(arn, page["TableName"], page["StreamStatus"], hash_keys[0], tuple(shards))


def readable_shards(shards: Collection[Shard], finished: Collection[str]) -> tuple[Shard, ...]:
    """Return the shards that may be read now: not finished themselves, and no unfinished parent."""
    unfinished = {shard.id for shard in shards if shard.id not in finished}
    return tuple(shard for shard in shards if shard.id in unfinished and shard.parent not in unfinished)


def sequence_number(record: Mapping[str, Any]) -> str:
    """Return the sequence number of a record, from GetRecords or from a Lambda event."""
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


class ShardReader:
    """Reads one shard from a position; replaces iterators that expire.

    `on_loss` is called for records that are lost; reading continues with what is left unless it raises.
    """

    def __init__(
        self,
        stream_arn: str,
        shard_id: str,
        position: ShardPosition,
        *,
        latest: bool = False,
        on_loss: LossHandler,
    ) -> None:
        self.shard_id = shard_id
        self._stream_arn = stream_arn
        self._last_read = position.after
        self._since_s = position.since_s
        self._latest = latest
        self._on_loss = on_loss
        self._iterator: str | None = None
        self._skip_before_s: float | None = None  # set where the service cannot start at a time

    def open(self) -> Program[None]:
        """Get an iterator now, so that LATEST means this moment and not that of the first read."""
        if self._iterator is None:
            self._iterator = yield from self._start_iterator()

    def read(self, limit: int = STREAM_RECORDS_MAX) -> Program[RecordPage]:
        """Return the next records, none if the shard has no new ones.

        Raises throttling and other transient faults: the caller chooses when to read again.
        """
        for _ in range(3):  # an expired iterator, then trimmed data, then the read itself
            try:
                yield from self.open()
                response = yield Call("GetRecords", {"ShardIterator": self._iterator, "Limit": limit})
            except Fault as fault:
                match fault.code:
                    case "ExpiredIteratorException":
                        self._iterator = None
                    case "TrimmedDataAccessException":
                        self._on_loss("trimmed", self.shard_id, self._last_read)
                        self._iterator = yield from self._get_iterator("TRIM_HORIZON")
                    case "ResourceNotFoundException":
                        self._on_loss("gone", self.shard_id, self._last_read)
                        return RecordPage((), ended=True)
                    case "ValidationException" if self._iterator is None and self._last_read is not None:
                        self._on_loss("ahead", self.shard_id, self._last_read)
                        self._last_read = None  # the shard is another one now: all of its records are new
                        self._iterator = yield from self._get_iterator("TRIM_HORIZON")
                    case _:
                        raise
                continue
            records = response.get("Records", ())
            new_records = self._select_new(records)  # may raise: then the same page is read again
            self._iterator = response.get("NextShardIterator")
            return RecordPage(
                new_records, ended=self._iterator is None, skipped=len(records) - len(new_records)
            )
        return RecordPage((), ended=False)

    def _start_iterator(self) -> Program[str]:
        if self._last_read is not None:
            return (yield from self._get_iterator("AFTER_SEQUENCE_NUMBER", SequenceNumber=self._last_read))
        if self._latest:
            self._latest = False  # a second iterator starts at the time of the first
            return (yield from self._get_iterator("LATEST"))
        if self._since_s is not None:
            return (yield from self._iterator_at(self._since_s - LATEST_SLACK_S))
        return (yield from self._get_iterator("TRIM_HORIZON"))

    def _iterator_at(self, start_s: float) -> Program[str]:
        """Return an iterator at a time; without AT_TIMESTAMP, read from the start and skip older records here."""
        try:
            return (yield from self._get_iterator("AT_TIMESTAMP", Timestamp=start_s))
        except Fault as fault:
            if fault.code not in _TIMESTAMP_UNSUPPORTED:
                raise
        self._skip_before_s = start_s
        return (yield from self._get_iterator("TRIM_HORIZON"))

    def _get_iterator(self, kind: str, **start: object) -> Program[str]:
        request = {
            "StreamArn": self._stream_arn,
            "ShardId": self.shard_id,
            "ShardIteratorType": kind,
            **start,
        }
        iterator: str = (yield Call("GetShardIterator", request))["ShardIterator"]
        return iterator

    def _select_new(self, records: Collection[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Return the records after the last one read; a replaced iterator may start a little before it."""
        last = -1 if self._last_read is None else int(self._last_read)
        for record in records:
            _check_record(record)
        new_records = tuple(record for record in records if int(sequence_number(record)) > last)
        if new_records:
            self._last_read = sequence_number(new_records[-1])
        if self._skip_before_s is not None:
            start_s = self._skip_before_s
            new_records = tuple(record for record in new_records if _created_at_s(record) >= start_s)
        return new_records


class StreamReader(Generic[P]):
    """The shards of one stream that are open for reading, parents before children, and every shard's position.

    `position_type` is what a caller stores for a shard; triggers store more than subscriptions.
    """

    def __init__(
        self,
        position_type: type[P],
        clock: Clock,
        *,
        on_loss: LossHandler,
        discovery_s: float = DISCOVERY_S,
    ) -> None:
        self.positions: dict[str, P] = {}
        self.open: dict[str, ShardReader] = {}
        self.discover_at_s = 0.0
        self._position_type = position_type
        self._clock = clock
        self._on_loss = on_loss
        self._discovery_s = discovery_s
        self._stream: StreamDescription | None = None
        self._read_to_end: set[str] = set()  # shards whose children may be opened

    @property
    def stream(self) -> StreamDescription:
        """The stream as it was last described; only after `resume`."""
        assert self._stream is not None, "the stream is described before its shards are read"
        return self._stream

    @property
    def started(self) -> bool:
        """Whether the stream and its positions are known."""
        return self._stream is not None

    @property
    def discovery_due(self) -> bool:
        """Whether it is time to ask for new shards."""
        return self._clock.now() >= self.discover_at_s

    def position(self, shard_id: str) -> P:
        """Return a shard's position; a shard without one starts at its first record."""
        return self.positions.get(shard_id) or self._position_type()

    def starting_positions(self, stream: StreamDescription, *, latest: bool) -> dict[str, P]:
        """Return where to start each shard of a stream that was never read."""
        now_s = self._clock.now()
        return {
            shard.id: self._position_type(
                finished=latest and shard.closed, since_s=now_s if latest and not shard.closed else None
            )
            for shard in stream.shards
        }

    def resume(
        self, stream: StreamDescription, positions: Mapping[str, P], *, latest: bool = False
    ) -> list[ShardReader]:
        """Continue a stream from positions; return the shards opened.

        `latest` starts them at LATEST, which means the moment of each reader's `open()`: run it at once.
        """
        self._stream = stream
        self.positions = dict(positions)
        self.open.clear()
        self._read_to_end.clear()
        self._schedule_discovery()
        return self._open_ready(latest=latest)

    def discover(self) -> Program[list[ShardReader]]:
        """Describe the stream again; return the shards opened.

        Positions of finished shards that the stream no longer has are dropped. One that is not finished stays: if the
        process stops now, only that position tells the next one that records were lost.
        """
        self._stream = yield from describe_stream(self.stream.arn)
        self._schedule_discovery()
        described = {shard.id for shard in self._stream.shards}
        self._read_to_end &= described
        self.positions = {
            id_: position
            for id_, position in self.positions.items()
            if id_ in described or id_ in self.open or not position.finished
        }
        return self._open_ready()

    def _open_ready(self, *, latest: bool = False) -> list[ShardReader]:
        """Open the shards whose parents are read to the end; return those that are new."""
        finished = {id_ for id_, position in self.positions.items() if position.finished} | self._read_to_end
        opened = [
            ShardReader(
                self.stream.arn, shard.id, self.position(shard.id), latest=latest, on_loss=self._on_loss
            )
            for shard in readable_shards(self.stream.shards, finished)
            if shard.id not in self.open
        ]
        self.open.update((reader.shard_id, reader) for reader in opened)
        return opened

    def close_shard(self, shard_id: str) -> None:
        """Stop reading a shard that has ended; its children are opened by the next discovery, which is due now."""
        del self.open[shard_id]
        self._read_to_end.add(shard_id)
        self.discover_at_s = 0.0

    def _schedule_discovery(self) -> None:
        self.discover_at_s = self._clock.now() + self._discovery_s


def _check_record(record: Any) -> None:
    """Refuse a record of GetRecords without what reading depends on: a number, a key and a time if it has one."""
    change = record.get("dynamodb") if isinstance(record, Mapping) else None
    if not isinstance(change, Mapping):
        raise RecordMalformed("a record has no dynamodb member")
    number, keys = change.get("SequenceNumber"), change.get("Keys", {})
    if not isinstance(number, str) or not number.isdecimal():
        raise RecordMalformed(f"a record has the SequenceNumber {number!r}")
    if not isinstance(keys, Mapping):
        raise RecordMalformed(f"the record {number} has no Keys")
    try:
        _created_at_s(record)
    except (TypeError, ValueError) as error:
        raise RecordMalformed(f"the record {number} has no valid ApproximateCreationDateTime") from error


def _created_at_s(record: Mapping[str, Any]) -> float:
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))


def _parse_shard(description: Mapping[str, Any]) -> Shard:
    sequence_range = description.get("SequenceNumberRange", {})
    return Shard(
        description["ShardId"], description.get("ParentShardId"), "EndingSequenceNumber" in sequence_range
    )
