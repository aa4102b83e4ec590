"""Shards: a stream's shards and their lineage, and the reading of one of them.

A shard is read once its parent is read to the end, so that an item's changes come in their order across a
split. A parent that is no longer described is past the trim horizon and holds nobody up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tavola.limits import STREAM_RECORDS_MAX
from tavola.protocol import Fault
from tavola.triggers.checkpoints import Position
from tavola.triggers.errors import StreamGone, StreamMissing
from tavola.triggers.events import sequence_of

Call: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]

LATEST_SLACK_S = (
    5.0  # how far before its beginning a shard begun at LATEST is read again, for clocks that differ
)

_log = logging.getLogger("tavola.triggers")


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
class Page:
    """Records of one reading, in order; `ended`: the shard is closed and this was its end."""

    records: tuple[dict[str, Any], ...]
    ended: bool


def latest_stream_arn(call: Call, table: str) -> str:
    """Return the ARN of a table's present stream, or the last it had."""
    described = call("DescribeTable", {"TableName": table})["Table"]
    arn: str | None = described.get("LatestStreamArn")
    if arn is None:
        raise StreamMissing(table)
    return arn


def describe_stream(call: Call, arn: str) -> Stream:
    """Return a stream with all of its shards, however many pages they take."""
    shards: list[Shard] = []
    request: dict[str, Any] = {"StreamArn": arn}
    while True:
        try:
            described = call("DescribeStream", request)["StreamDescription"]
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


class ShardReader:
    """Reads one shard from a position on; iterators that expire are got anew from where it is."""

    def __init__(
        self, call: Call, stream_arn: str, shard_id: str, position: Position, *, latest: bool
    ) -> None:
        self.shard_id = shard_id
        self._call = call
        self._stream_arn = stream_arn
        self._reached = position.after  # the last record that was read
        self._since_s = position.since_s
        self._latest = latest
        self._iterator: str | None = None

    def open(self) -> None:
        """Find the place to read from now; LATEST means this moment, and not the first reading."""
        if self._iterator is None:
            self._iterator = self._place()

    def read(self, limit: int = STREAM_RECORDS_MAX) -> Page:
        """Return the next records; none where there are none yet.

        What is retried by the service's own advice is raised, for the caller to choose when.
        """
        for _ in range(3):  # an expired iterator, then trimmed data, then the reading itself
            try:
                self.open()
                answer = self._call("GetRecords", {"ShardIterator": self._iterator, "Limit": limit})
            except Fault as fault:
                match fault.code:
                    case "ExpiredIteratorException":
                        self._iterator = None
                    case "TrimmedDataAccessException":
                        self._tell_trimmed()
                        self._iterator = self._get("TRIM_HORIZON")
                    case "ResourceNotFoundException":
                        return self._gone()
                    case _:
                        raise
                continue
            self._iterator = answer.get("NextShardIterator")
            return Page(self._fresh(answer.get("Records", ())), ended=self._iterator is None)
        return Page((), ended=False)

    def _place(self) -> str:
        if self._reached is not None:
            return self._get("AFTER_SEQUENCE_NUMBER", SequenceNumber=self._reached)
        if self._latest:
            self._latest = False  # a second place is found by the time of the first
            return self._get("LATEST")
        if self._since_s is not None:
            return self._get("AT_TIMESTAMP", Timestamp=self._since_s - LATEST_SLACK_S)
        return self._get("TRIM_HORIZON")

    def _get(self, kind: str, **place: object) -> str:
        answer = self._call(
            "GetShardIterator",
            {
                "StreamArn": self._stream_arn,
                "ShardId": self.shard_id,
                "ShardIteratorType": kind,
                **place,
            },
        )
        found: str = answer["ShardIterator"]
        return found

    def _fresh(self, records: Collection[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Return the records past what was read; a place that was got anew may lie a little before it."""
        reached = -1 if self._reached is None else int(self._reached)
        fresh = tuple(record for record in records if int(sequence_of(record)) > reached)
        if fresh:
            self._reached = sequence_of(fresh[-1])
        return fresh

    def _tell_trimmed(self) -> None:
        _log.warning(
            "%s: records after %s are older than the stream keeps them; those are lost to this trigger, and it "
            "goes on from the oldest that is there (TRIM_HORIZON)",
            self.shard_id,
            self._reached or "its beginning",
        )

    def _gone(self) -> Page:
        _log.warning(
            "%s is no longer in the stream; what was left in it is lost to this trigger", self.shard_id
        )
        return Page((), ended=True)


def _shard(described: Mapping[str, Any]) -> Shard:
    stretch = described.get("SequenceNumberRange", {})
    return Shard(described["ShardId"], described.get("ParentShardId"), "EndingSequenceNumber" in stretch)
