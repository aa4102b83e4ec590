"""Streams: the streams of tables, their shards, and the records that readers get.

A stream is the part of its table's change log from when it was enabled to when it was disabled. A shard is a range of
partition hashes over a part of the stream. As on AWS, shards are closed after some hours and followed by child shards, so
readers meet locally what they will meet there. Writes do not pay for any of this: they only append to the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise

import msgspec

from tavola.engine.catalog import Catalog, StoredTable
from tavola.engine.journal import BY_SERVICE, INSERT, KEYS_ALONE, KIND_BITS, MODIFY, REMOVE, new_image
from tavola.engine.storage import ChangeLog, ChangeLogRow, Store
from tavola.engine.store_time import StoreTime
from tavola.limits import (
    ON_DEMAND_WARM_READS_PER_S,
    ON_DEMAND_WARM_WRITES_PER_S,
    PARTITION_READS_PER_S,
    PARTITION_WRITES_PER_S,
    STREAM_RESPONSE_BYTES_MAX,
    STREAM_RETENTION_S,
    STREAM_SHARD_LIFE_S,
)
from tavola.protocol.arns import Scope, stream_arn
from tavola.values import Item, decode_item, item_size

_KIND = "stream"
_HASHES = 2**32  # of partitions, as `ChangeLog.read` divides them
_SEQUENCE_BASE = 10**20  # AWS's numbers have 21 digits at least
_WALK_ROWS = 10_000  # maximum of log rows that one read goes through
_CHUNK_ROWS = 32
_SHARDS_OPEN_MAX = 64
_SHARDS_KEPT_MAX = 4_000

_EVENTS = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE"}
_encode = msgspec.json.Encoder().encode


class StreamShard(msgspec.Struct, frozen=True):
    """A range of partition hashes over a range of log ids; its times are store times."""

    id: str
    first: int  # the log id of its first possible record
    low: int
    high: int  # exclusive
    opened_at_s: float
    parent: str | None = None
    last: int | None = None  # None: open
    closed_at_s: float | None = None

    @property
    def hashes(self) -> tuple[int, int] | None:
        """Return the range of partition hashes whose changes belong to this shard; None: all."""
        return None if (self.low, self.high) == (0, _HASHES) else (self.low, self.high)


class Stream(msgspec.Struct, frozen=True):
    """The stored state of a stream; it is kept after the stream is disabled or its table deleted."""

    number: int  # of the table and its log
    account: str
    region: str
    table: str
    label: str
    view: str
    hash: str
    range: str | None
    created_at_s: float
    shards: tuple[StreamShard, ...] = ()
    closed_at_s: float | None = None  # in store time
    policy: str | None = None  # the resource policy on it
    policy_revision: str | None = None

    @property
    def scope(self) -> Scope:
        """Return the account and region of the stream."""
        return Scope(self.account, self.region)

    @property
    def arn(self) -> str:
        """Return the stream's ARN."""
        return stream_arn(self.scope, self.table, self.label)

    @property
    def key_names(self) -> tuple[str, ...]:
        """Return the key attributes of its table."""
        return (self.hash,) if self.range is None else (self.hash, self.range)

    def shard(self, id_: str) -> StreamShard | None:
        """Return the shard of this id."""
        return next((shard for shard in self.shards if shard.id == id_), None)


class Streams:
    """All streams that can still be read."""

    __slots__ = ("_catalog", "_kept", "_store", "_time")

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._time: StoreTime = catalog.time
        self._kept: dict[str, Stream] = {}
        self.load()

    def load(self) -> None:
        """Reload the streams from the store."""
        streams = (msgspec.json.decode(data, type=Stream) for _, data in self._store.records(_KIND))
        self._kept = {stream.arn: stream for stream in streams}

    def __iter__(self) -> Iterator[Stream]:
        return iter(tuple(self._kept.values()))

    def find(self, arn: str) -> Stream | None:
        """Return the stream of an ARN."""
        return self._kept.get(arn)

    def of_table(self, number: int) -> list[Stream]:
        """Return the streams of a table, ordered by label."""
        return sorted(
            (stream for stream in self._kept.values() if stream.number == number),
            key=lambda stream: stream.label,
        )

    def free_moment(self, scope: Scope, table: str, now_s: float) -> float:
        """Return the first time from now on whose label no other stream of a table of this name has."""
        taken = {
            stream.label for stream in self._kept.values() if (stream.scope, stream.table) == (scope, table)
        }
        while label_of(now_s) in taken:
            now_s += 0.001
        return now_s

    def log(self, stream: Stream) -> ChangeLog:
        """Return the log that a stream is read from."""
        return self._store.log(stream.number)

    def enable(self, table: StoredTable) -> Stream:
        """Create the stream of a table whose definition has just got one, with one shard for each partition."""
        definition = table.definition
        setting = definition.stream
        assert setting is not None, "the definition has a stream"
        assert table.journal is not None, "a table with a stream has a journal"
        now = self._time.stamp()
        stream = Stream(
            number=definition.number,
            account=definition.account,
            region=definition.region,
            table=definition.name,
            label=setting.label,
            view=setting.view,
            hash=definition.hash,
            range=definition.range,
            created_at_s=now.wall_s,
        )
        count = min(partitions_of(table), _SHARDS_OPEN_MAX)
        edges = [position * _HASHES // count for position in range(count + 1)]
        first = table.journal.position + 1
        shards = tuple(
            StreamShard(_shard_id(stream, now.wall_s, position), first, low, high, now.store_s)
            for position, (low, high) in enumerate(pairwise(edges))
        )
        return self.save(msgspec.structs.replace(stream, shards=shards))

    def disable(self, table: StoredTable) -> None:
        """Close the stream of a table; it can be read for another day."""
        now_s = self._time.stamp().store_s
        for stream in self.of_table(table.definition.number):
            if stream.closed_at_s is None:
                last = self.log(stream).span()[1]
                shards = tuple(_close_shard(shard, last, now_s) for shard in stream.shards)
                self.save(msgspec.structs.replace(stream, shards=shards, closed_at_s=now_s))

    def replace_shards(self, stream: Stream, *, split: str | None = None) -> Stream:
        """Close the open shards and open a child for each, or two for the one to `split`."""
        now = self._time.stamp()
        last = self.log(stream).span()[1]
        shards: list[StreamShard] = []
        children: list[StreamShard] = []
        for shard in stream.shards:
            if shard.last is not None or split not in (None, shard.id):
                shards.append(shard)
                continue
            shards.append(_close_shard(shard, last, now.store_s))
            middle = (shard.low + shard.high) // 2
            edges = (shard.low, middle, shard.high) if split == shard.id else (shard.low, shard.high)
            for low, high in pairwise(edges):
                id_ = _shard_id(stream, now.wall_s, len(stream.shards) + len(children))
                children.append(StreamShard(id_, last + 1, low, high, now.store_s, parent=shard.id))
        return self.save(msgspec.structs.replace(stream, shards=(*shards, *children)))

    def split_to_throughput(self, table: StoredTable) -> None:
        """Split open shards until there is one for each partition that the table's throughput needs."""
        for stream in self.of_table(table.definition.number):
            current = stream
            while current.closed_at_s is None:
                opened = [shard for shard in current.shards if shard.last is None]
                if len(opened) >= min(partitions_of(table), _SHARDS_OPEN_MAX):
                    break
                widest = max(opened, key=lambda shard: shard.high - shard.low)
                current = self.replace_shards(current, split=widest.id)

    def roll_and_expire(self) -> None:
        """Replace shards that are old enough, and remove shards and streams whose records have expired."""
        now_s = self._time.elapsed_s()
        horizon_s = now_s - STREAM_RETENTION_S
        for stream in self:
            if stream.closed_at_s is not None and stream.closed_at_s < horizon_s:
                self._store.delete_record(_KIND, _name(stream))
                del self._kept[stream.arn]
                continue
            remaining = tuple(
                shard
                for shard in stream.shards
                if shard.closed_at_s is None or shard.closed_at_s >= horizon_s
            )
            current = stream
            if remaining != stream.shards:
                current = self.save(msgspec.structs.replace(stream, shards=remaining))
            if any(
                shard.last is None and shard.opened_at_s + STREAM_SHARD_LIFE_S <= now_s
                for shard in current.shards
            ):
                self.replace_shards(current)

    def has_due_work(self) -> bool:
        """Return whether `roll_and_expire` has something to do."""
        now_s = self._time.elapsed_s()
        horizon_s = now_s - STREAM_RETENTION_S
        return any(
            (stream.closed_at_s is not None and stream.closed_at_s < horizon_s)
            or any(
                shard.opened_at_s + STREAM_SHARD_LIFE_S <= now_s
                if shard.closed_at_s is None
                else shard.closed_at_s < horizon_s
                for shard in stream.shards
            )
            for stream in self._kept.values()
        )

    def save(self, stream: Stream) -> Stream:
        """Store the new state of a stream."""
        assert len(stream.shards) <= _SHARDS_KEPT_MAX, "shards are forgotten after a day"
        self._store.put_record(_KIND, _name(stream), msgspec.json.encode(stream))
        self._kept[stream.arn] = stream
        return stream


def label_of(moment_s: float) -> str:
    """Return the label of a stream that was enabled at a time, to the millisecond, in AWS's format."""
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


def partitions_of(table: StoredTable) -> int:
    """Return the number of partitions that AWS would give a new table of this throughput."""
    definition = table.definition
    warm = definition.warm or {}
    if definition.billing == "PAY_PER_REQUEST":
        reads, writes = ON_DEMAND_WARM_READS_PER_S, ON_DEMAND_WARM_WRITES_PER_S
    else:
        reads, writes = definition.throughput.reads, definition.throughput.writes
    reads = max(reads, warm.get("ReadUnitsPerSecond", 0))
    writes = max(writes, warm.get("WriteUnitsPerSecond", 0))
    return max(1, -(-reads // PARTITION_READS_PER_S), -(-writes // PARTITION_WRITES_PER_S))


def sequence_number(id_: int) -> str:
    """Return the sequence number of a log id; all have the same width, so that they sort as text."""
    return str(_SEQUENCE_BASE + id_)


def id_of_sequence(text: str) -> int | None:
    """Return the log id of a sequence number, or None if it is not valid."""
    if not text.isdecimal() or len(text) != len(str(_SEQUENCE_BASE)):
        return None
    return int(text) - _SEQUENCE_BASE


def read_shard(log: ChangeLog, shard: StreamShard, after: int, limit: int) -> tuple[list[ChangeLogRow], int]:
    """Return changes of a shard after an id, and the id to continue after; nothing before it is left out.

    They are read a few at a time, so that memory stays near the size limit of a response.
    """
    last = log.span()[1] if shard.last is None else shard.last
    upto = min(last, after + _WALK_ROWS)
    rows: list[ChangeLogRow] = []
    total = 0
    while len(rows) < limit and total < STREAM_RESPONSE_BYTES_MAX:
        count = min(_CHUNK_ROWS, limit - len(rows))
        chunk = log.read(rows[-1].id if rows else after, upto, count, shard.hashes)
        total += sum(len(row.old or b"") + len(row.new or b"") for row in chunk)
        rows += chunk
        if len(chunk) < count:
            return rows, max(after, upto)
    return rows, rows[-1].id


def render_record(stream: Stream, row: ChangeLogRow) -> tuple[bytes, int]:
    """Return the stream record of a change, as JSON, and its size in bytes."""
    kind = row.mark & KIND_BITS
    new = new_image(row)
    image = new if new is not None else row.old
    assert image is not None, "a record has an image to read its keys from"
    item: Item = decode_item(image)
    keys = item if row.mark & KEYS_ALONE else {name: item[name] for name in stream.key_names}
    size = item_size(keys)
    change: dict[str, object] = {
        "ApproximateCreationDateTime": row.at_us // 1_000_000,
        "Keys": keys,
    }
    if stream.view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES") and new is not None:
        change["NewImage"] = msgspec.Raw(new)
        size += item_size(item)
    if stream.view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES") and kind != INSERT and row.old is not None:
        change["OldImage"] = msgspec.Raw(row.old)
        size += item_size(decode_item(row.old))
    change |= {
        "SequenceNumber": sequence_number(row.id),
        "SizeBytes": size,
        "StreamViewType": stream.view,
    }
    record: dict[str, object] = {
        "eventID": blake2b(f"{stream.arn}#{row.id}".encode(), digest_size=16).hexdigest(),
        "eventName": _EVENTS[kind],
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": stream.region,
        "dynamodb": change,
    }
    if row.mark & BY_SERVICE:
        record["userIdentity"] = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    return _encode(record), size


def _close_shard(shard: StreamShard, last: int, now_s: float) -> StreamShard:
    if shard.last is not None:
        return shard
    return msgspec.structs.replace(shard, last=last, closed_at_s=now_s)


def _shard_id(stream: Stream, now_s: float, position: int) -> str:
    """Return an id that sorts after those of the stream's shards, even if the clock was set back.

    `position` is the number of shards before it. The time of an id is a little ahead of the clock if several shards begin
    in one millisecond.
    """
    code = blake2b(f"{stream.arn}#{position}".encode(), digest_size=4).hexdigest()
    latest_ms = max([_milliseconds_of(shard.id) for shard in stream.shards], default=-1)
    at_ms = max(int(now_s * 1000), latest_ms + 1) + position - len(stream.shards)
    return f"shardId-{at_ms:020d}-{code}"


def _milliseconds_of(shard_id: str) -> int:
    return int(shard_id.split("-")[1])


def _name(stream: Stream) -> str:
    return f"{stream.number:010d}/{stream.label}"
