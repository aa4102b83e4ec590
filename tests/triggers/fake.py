"""A stream made of lists, for what a real engine cannot be made to do: split at will, expire, trim, fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tavola.errors import TavolaError
from tavola.protocol.faults import (
    ExpiredIteratorFault,
    ResourceNotFoundFault,
    TrimmedDataAccessFault,
    ValidationFault,
)

ARN = "arn:aws:dynamodb:eu-south-1:123456789012:table/Orders/stream/2026-11-16T00:00:00.000"
START_S = 1_700_000_000.0


def shard_id(name: str) -> str:
    """Return an id as long as AWS's for a short name."""
    return f"shardId-00000001573689847184-{name}"


def sequence(number: int) -> str:
    """Return a sequence number as long as AWS's."""
    return f"{number:021d}"


def change(number: int, key: str = "k", *, at_s: float = START_S, **more: Any) -> dict[str, Any]:
    """Return a record as GetRecords gives it."""
    return {
        "eventID": f"event-{number}",
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-south-1",
        "dynamodb": {
            "ApproximateCreationDateTime": at_s,
            "Keys": {"id": {"S": key}},
            "NewImage": {"id": {"S": key}, "n": {"N": str(number)}},
            "SequenceNumber": sequence(number),
            "SizeBytes": 10,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        **more,
    }


@dataclass
class FakeShard:
    parent: str | None = None
    closed: bool = False
    records: list[dict[str, Any]] = field(default_factory=list)
    trimmed: int = 0  # how many from the beginning are gone


class FakeStream:
    """Answers the stream operations from lists, and notes what it was asked."""

    def __init__(self, page: int = 1000, shards_a_page: int = 100) -> None:
        self.shards: dict[str, FakeShard] = {}
        self.status = "ENABLED"
        self.knows_times = True  # AT_TIMESTAMP is newer than the other places, and not known everywhere
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failures: dict[str, list[TavolaError]] = {}
        self._page = page
        self._shards_a_page = shards_a_page
        self._age = 0  # iterators of an earlier age are expired
        self._number = 0

    def add(self, name: str, parent: str | None = None) -> str:
        """Add an open shard, and give its id."""
        id_ = shard_id(name)
        self.shards[id_] = FakeShard(None if parent is None else shard_id(parent))
        return id_

    def put(self, name: str, key: str = "k", *, at_s: float = START_S, **more: Any) -> int:
        """Add a record to a shard, and give its number."""
        self._number += 1
        self.shards[shard_id(name)].records.append(change(self._number, key, at_s=at_s, **more))
        return self._number

    def finish(self, name: str) -> None:
        """Close a shard."""
        self.shards[shard_id(name)].closed = True

    def trim(self, name: str, count: int) -> None:
        """Let the oldest records of a shard go."""
        self.shards[shard_id(name)].trimmed = count

    def expire_iterators(self) -> None:
        """Make every iterator that was given out too old."""
        self._age += 1

    def fail(self, operation: str, *errors: TavolaError) -> None:
        """Let the next calls of an operation fail."""
        self.failures.setdefault(operation, []).extend(errors)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer, or fail as it was told to."""
        self.calls.append((operation, dict(request)))
        waiting = self.failures.get(operation)
        if waiting:
            raise waiting.pop(0)
        match operation:
            case "DescribeTable":
                return {"Table": {"TableName": "Orders", "LatestStreamArn": ARN}}
            case "DescribeStream":
                return {"StreamDescription": self._describe(request)}
            case "GetShardIterator":
                return {"ShardIterator": self._iterator(request)}
            case "GetRecords":
                return self._records(request)
            case _:
                raise ValidationFault(operation)

    def close(self) -> None:
        """Nothing to let go of."""

    def _describe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        ids = list(self.shards)
        start = request.get("ExclusiveStartShardId")
        if start is not None:
            ids = ids[ids.index(start) + 1 :]
        told = ids[: self._shards_a_page]
        described: dict[str, Any] = {
            "StreamArn": ARN,
            "TableName": "Orders",
            "StreamStatus": self.status,
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "Shards": [self._described(id_) for id_ in told],
        }
        if len(ids) > len(told):
            described["LastEvaluatedShardId"] = told[-1]
        return described

    def _described(self, id_: str) -> dict[str, Any]:
        shard = self.shards[id_]
        stretch = {"StartingSequenceNumber": sequence(0)}
        if shard.closed:
            stretch["EndingSequenceNumber"] = sequence(10**12)
        described: dict[str, Any] = {"ShardId": id_, "SequenceNumberRange": stretch}
        if shard.parent is not None:
            described["ParentShardId"] = shard.parent
        return described

    def _iterator(self, request: Mapping[str, Any]) -> str:
        shard = self.shards.get(request["ShardId"])
        if shard is None:
            raise ResourceNotFoundFault()
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in shard.records]
        match request["ShardIteratorType"]:
            case "TRIM_HORIZON":
                place = shard.trimmed
            case "LATEST":
                place = len(numbers)
            case "AT_TIMESTAMP" if not self.knows_times:
                raise ValidationFault("Member must satisfy enum value set")
            case "AT_TIMESTAMP":
                times = [record["dynamodb"]["ApproximateCreationDateTime"] for record in shard.records]
                place = sum(at_s < request["Timestamp"] for at_s in times)
            case _:
                place = sum(number <= int(request["SequenceNumber"]) for number in numbers)
                if place < shard.trimmed:
                    raise TrimmedDataAccessFault("trimmed")
        return f"{request['ShardId']}|{place}|{self._age}"

    def _records(self, request: Mapping[str, Any]) -> dict[str, Any]:
        id_, at, age = request["ShardIterator"].split("|")
        shard, place = self.shards.get(id_), int(at)
        if shard is None:
            raise ResourceNotFoundFault()
        if int(age) != self._age:
            raise ExpiredIteratorFault("expired")
        if place < shard.trimmed:
            raise TrimmedDataAccessFault("trimmed")
        end = min(len(shard.records), place + min(self._page, request.get("Limit", 1000)))
        answer: dict[str, Any] = {"Records": shard.records[place:end]}
        if not (shard.closed and end == len(shard.records)):
            answer["NextShardIterator"] = f"{id_}|{end}|{self._age}"
        return answer
