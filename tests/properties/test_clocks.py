"""Clocks that jump: what a store decides rests on time that passed, in whatever year the wall clock is.

A world is an engine on a file, a clock that a test sets, and a model that knows how much time really passed. A campaign lets
time pass, sets the clock both ways, closes and opens the store, and uses everything that has an age: tables that are
created, tokens of transactions, records and shards of a stream, iterators, reads as of a time, and backups.

The model knows two ages of each thing. At most as much time passed for the store as really passed while it was open, and
as the wall clock moved ahead while it was closed. At least as much passed as since the store was last opened after the wall
clock had been set: there it may continue from an earlier time, at which it was saved.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext, store_time, streams
from tavola.engine import engine as engine_module
from tavola.engine.catalog import Catalog
from tavola.engine.isolation import ClientTokens
from tavola.engine.store_time import CurrentTime, StoreTime
from tavola.entropy import SeededEntropy
from tavola.limits import STREAM_ITERATOR_LIFE_S, STREAM_RETENTION_S, TRANSACTION_TOKEN_LIFE_S
from tavola.protocol.faults import ExpiredIteratorFault, Fault, ResourceNotFoundFault

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "campaign"
DELAY_S = 5.0
SLACK_S = 3.0  # the time is saved once a second, and corrections below a second are not noticed
CLEANUP_S = 61.0
DAY_S = 86_400.0
RECOVERY_S = 35 * DAY_S
KEY: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
PASSES_S = (0.5, 2.0, 4.0, 30.0, 200.0, 500.0, 4_000.0, 5 * 3_600.0, 9 * DAY_S)
PASS_WEIGHTS = (6, 6, 6, 4, 6, 6, 3, 3, 1)
YEARS_S = 10 * 365 * DAY_S
JUMPS_S = tuple(
    sign * jump_s for jump_s in (1.0, 60.0, 900.0, 2 * DAY_S, 40 * DAY_S, YEARS_S) for sign in (1, -1)
)


@dataclass
class Aged:
    """Something that has an age, and the model's time at which it began."""

    value: Any
    began_s: float
    losses: int
    openings: int


@dataclass
class World:
    """An engine on a file under a clock that jumps, and the model of what it must still know."""

    path: Path
    chance: random.Random
    clock: ManualClock = field(default_factory=ManualClock)
    passed_s: float = 0.0  # at most so much passed for the store
    loss_s: float = 0.0  # when the store last may have continued from an earlier time
    losses: int = 0
    has_jumped: bool = False
    openings: int = 0
    hits: int = 0
    tokens: dict[str, Aged] = field(default_factory=dict)
    tables: dict[str, Aged] = field(default_factory=dict)
    writes: list[Aged] = field(default_factory=list)
    iterators: list[Aged] = field(default_factory=list)
    moments: list[Aged] = field(default_factory=list)
    backups: dict[str, Aged] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = self._open()
        self.create("log", {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}})
        self.create("counter", {})
        self.let_pass(10)
        recovery = {"PointInTimeRecoveryEnabled": True}
        self.engine.call(
            "UpdateContinuousBackups", {"TableName": "log", "PointInTimeRecoverySpecification": recovery}
        )

    def _open(self) -> Engine:
        return Engine.open(
            self.path,
            clock=self.clock,
            entropy=SeededEntropy(self.chance.randrange(2**32)),
            sync="off",
            table_delay_ms=int(DELAY_S * 1000),
        )

    def aged(self, value: Any) -> Aged:
        return Aged(value, self.passed_s, self.losses, self.openings)

    def age_max(self, thing: Aged) -> float:
        return self.passed_s - thing.began_s

    def age_min(self, thing: Aged) -> float:
        return self.passed_s - max(thing.began_s, self.loss_s)

    # What happens to time.

    def let_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.passed_s += seconds

    def wait(self) -> None:
        self.let_pass(self.chance.choices(PASSES_S, PASS_WEIGHTS)[0])

    def jump(self) -> None:
        self.jump_by(self.chance.choice(JUMPS_S))

    def jump_by(self, seconds: float) -> None:
        self.clock.jump(seconds)
        self.has_jumped = True

    def jump_and_return(self) -> None:
        """Set the clock, do something meanwhile, and set it back."""
        jump_s = self.chance.choice(JUMPS_S)
        self.jump_by(jump_s)
        self.chance.choice([self.transact, self.write, self.create_one, self.mark, self.start_reading])()
        self.jump_by(-jump_s)

    def reopen(self) -> None:
        self.engine.close()
        moved_s = self.chance.choice((0.0, 1.0, 100.0, -1.0, -3_600.0, -YEARS_S))
        self.clock.jump(moved_s)
        self.passed_s += max(0.0, moved_s)
        if moved_s < 0 or self.has_jumped:
            self.losses, self.loss_s = self.losses + 1, self.passed_s
            self.has_jumped = True
        self.engine = self._open()
        self.openings += 1

    def run_background(self) -> None:
        while self.engine.run_background_work():
            pass

    # What is used.

    def create(self, name: str, more: dict[str, Any]) -> None:
        self.engine.call("CreateTable", {"TableName": name, **KEY, **more})
        self.tables[name] = self.aged(name)

    def create_one(self) -> None:
        self.create(f"table{len(self.tables)}", {})

    def check_tables(self) -> None:
        for name, table in self.tables.items():
            status = self.engine.call("DescribeTable", {"TableName": name})["Table"]["TableStatus"]
            usable = True
            try:
                self.engine.call("GetItem", {"TableName": name, "Key": {"pk": {"S": "a"}}})
            except ResourceNotFoundFault:
                usable = False
            assert usable == (status == "ACTIVE"), "a table is described as it behaves"
            if self.age_max(table) > DELAY_S + SLACK_S or table.openings < self.openings:
                assert status == "ACTIVE", "a table does not stay CREATING, and no table is after a restart"
            elif self.age_max(table) < DELAY_S:
                assert status == "CREATING", "a table is not ACTIVE before its delay"

    def transact(self) -> None:
        token = f"token{self.chance.randrange(6)}"
        update = {
            "TableName": "counter",
            "Key": {"pk": {"S": "n"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        self.engine.call(
            "TransactWriteItems", {"TransactItems": [{"Update": update}], "ClientRequestToken": token}
        )
        read = {"TableName": "counter", "Key": {"pk": {"S": "n"}}, "ConsistentRead": True}
        hits = int(self.engine.call("GetItem", read)["Item"]["n"]["N"])
        earlier = self.tokens.get(token)
        if earlier is not None and self.age_max(earlier) < TRANSACTION_TOKEN_LIFE_S - SLACK_S:
            assert hits == self.hits, "a token has one effect within its ten minutes"
        if earlier is None or self.age_min(earlier) > TRANSACTION_TOKEN_LIFE_S + SLACK_S:
            assert hits == self.hits + 1, "a token is forgotten after ten minutes"
        if hits != self.hits:
            self.hits, self.tokens[token] = hits, self.aged(token)

    def write(self) -> None:
        number = len(self.writes)
        item = {"pk": {"S": self.chance.choice("abcde")}, "n": {"N": str(number)}}
        self.engine.call("PutItem", {"TableName": "log", "Item": item})
        self.writes.append(self.aged(item))

    def stream(self) -> dict[str, Any]:
        (listed,) = self.engine.call("ListStreams", {"TableName": "log"})["Streams"]
        answer = self.engine.call("DescribeStream", {"StreamArn": listed["StreamArn"]})
        described: dict[str, Any] = answer["StreamDescription"]
        return described

    def read_stream(self) -> None:
        """Read all shards in their order: every record that is young enough, each once, as they were written."""
        stream = self.stream()
        before: set[str] = set()
        records: list[tuple[str, int]] = []
        for shard in stream["Shards"]:
            shards = {each["ShardId"] for each in stream["Shards"]}
            assert shard.get("ParentShardId") in {None, *before} or shard["ParentShardId"] not in shards
            before.add(shard["ShardId"])
            start = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            page = self.engine.call("GetShardIterator", {"StreamArn": stream["StreamArn"], **start})
            token = page["ShardIterator"]
            while token is not None:
                page = self.engine.call("GetRecords", {"ShardIterator": token})
                for record in page["Records"]:
                    change = record["dynamodb"]
                    records.append((change["SequenceNumber"], int(change["NewImage"]["n"]["N"])))
                token = page.get("NextShardIterator") if page["Records"] else None
        numbers = [number for _, number in sorted(records)]
        assert len(set(numbers)) == len(numbers), "a change has one record"
        assert numbers == sorted(numbers), "sequence numbers are in the order of the changes"
        per_key: dict[str, list[int]] = {}
        for _, number in records:
            per_key.setdefault(self.writes[number].value["pk"]["S"], []).append(number)
        for read in per_key.values():
            assert read == sorted(read), "reading shards in their order gives each item's changes in order"
        for number, write in enumerate(self.writes):
            if self.age_max(write) < STREAM_RETENTION_S - SLACK_S:
                assert number in numbers, "a record is kept for a day"
            if self.age_min(write) > STREAM_RETENTION_S + SLACK_S and write.losses == self.losses:
                assert number not in numbers, "a record is gone after a day"

    def start_reading(self) -> None:
        stream = self.stream()
        shard = next(each for each in stream["Shards"] if "Ending" not in str(each["SequenceNumberRange"]))
        start = {"ShardId": shard["ShardId"], "ShardIteratorType": "LATEST"}
        got = self.engine.call("GetShardIterator", {"StreamArn": stream["StreamArn"], **start})
        self.iterators.append(self.aged(got["ShardIterator"]))

    def go_on_reading(self) -> None:
        if not self.iterators:
            return
        iterator = self.iterators.pop(self.chance.randrange(len(self.iterators)))
        expired = False
        try:
            self.engine.call("GetRecords", {"ShardIterator": iterator.value})
        except ExpiredIteratorFault:
            expired = True
        if self.age_max(iterator) < STREAM_ITERATOR_LIFE_S:
            assert not expired, "an iterator lives fifteen minutes"
        if self.age_max(iterator) > STREAM_ITERATOR_LIFE_S + SLACK_S and iterator.losses == self.losses:
            assert expired, "an iterator ends after fifteen minutes"

    def contents(self, at_us: int | None = None) -> list[Any]:
        context = None if at_us is None else RequestContext(as_of_us=at_us)
        items: list[Any] = self.engine.call("Scan", {"TableName": "log"}, context=context)["Items"]
        return sorted(items, key=str)

    def mark(self) -> None:
        """Remember the table as it is now, with the time that the store gives to now."""
        described = self.engine.call("DescribeContinuousBackups", {"TableName": "log"})
        window = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        at_us = round(window["LatestRestorableDateTime"] * 1_000_000)
        assert self.contents(at_us) == self.contents()
        self.moments.append(self.aged((at_us, self.contents())))
        self.write()  # after the moment, whatever the clock says

    def look_back(self) -> None:
        for moment in self.chance.sample(self.moments, min(3, len(self.moments))):
            if self.age_max(moment) < RECOVERY_S - SLACK_S:
                at_us, contents = moment.value
                assert self.contents(at_us) == contents, "a read as of a time returns the state of then"

    def delete(self) -> None:
        """Delete a table with recovery, which leaves a backup for 35 days."""
        name = f"deleted{len(self.backups)}"
        self.create(name, {})
        self.let_pass(2 * DELAY_S)
        recovery = {"PointInTimeRecoveryEnabled": True}
        self.engine.call(
            "UpdateContinuousBackups", {"TableName": name, "PointInTimeRecoverySpecification": recovery}
        )
        self.engine.call("DeleteTable", {"TableName": name})
        del self.tables[name]
        self.backups[name] = self.aged(name)

    def check_backups(self) -> None:
        self.run_background()
        listed = self.engine.call("ListBackups", {"BackupType": "SYSTEM"})["BackupSummaries"]
        names = {each["TableName"] for each in listed}
        for name, backup in self.backups.items():
            if self.age_max(backup) < RECOVERY_S - SLACK_S:
                assert name in names, "the backup of a deleted table is kept for 35 days"
            if self.age_min(backup) > RECOVERY_S + CLEANUP_S:
                assert name not in names, "the backup of a deleted table is gone after 35 days"

    def step(self) -> None:
        """Do one thing."""
        happens = (self.wait, self.jump, self.jump_and_return, self.reopen, self.run_background)
        uses = (
            *(self.transact, self.write, self.create_one, self.mark, self.start_reading, self.delete),
            *(self.check_tables, self.read_stream, self.go_on_reading, self.look_back, self.check_backups),
        )
        self.chance.choices((*happens, *uses), (8, 5, 4, 4, 2, 8, 8, 2, 3, 3, 1, 5, 4, 4, 3, 1))[0]()


def campaign(seed: int, steps: int = 60) -> None:
    """Do random things to a store and its clock, and check what it still knows."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder) / "clocks.db", random.Random(seed))
        try:
            for _ in range(steps):
                world.step()
        finally:
            world.engine.close()


@pytest.mark.parametrize("seed", range(300 if LONG else 25))
def test_ages_are_time_that_passed(seed: int) -> None:
    """I14: statuses, tokens, streams, iterators, reads as of a time and backups rest on no wall clock."""
    campaign(seed)


class WallTime:
    """What `StoreTime` would be if it were the wall clock."""

    def __init__(self, time: StoreTime) -> None:
        self._time = time

    def elapsed_s(self) -> float:
        """Return the wall time."""
        return self._time.now().wall_s

    def stamp(self) -> CurrentTime:
        """Return the wall time for both."""
        wall_s = self._time.now().wall_s
        return CurrentTime(wall_s, wall_s)


_tick = StoreTime.tick


def _tick_by_wall(time: StoreTime) -> None:
    _tick(time)
    time.now_us = int(time.now().wall_s * 1_000_000)


def _wall_ago(time: StoreTime, seconds: float) -> int:
    return int((time.now().wall_s - seconds) * 1_000_000)


def _shard_id_by_wall(stream: object, now_s: float, position: int) -> str:
    return f"shardId-{int(now_s * 1000):020d}-{position:08x}"


def _elapse_by_wall(time: StoreTime) -> float:
    return time._clock.now()


def _campaigns(count: int) -> None:
    for seed in range(count):
        campaign(seed)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "store time is the wall time": (StoreTime, "elapsed_s", _elapse_by_wall),
    "tokens are judged by the wall clock": (
        engine_module,
        "ClientTokens",
        lambda store, time: ClientTokens(store, WallTime(time)),  # type: ignore[arg-type]  # the fault
    ),
    "statuses are judged by the wall clock": (
        Catalog,
        "is_active",
        lambda catalog, table: table.definition.ready_at_s <= catalog.time.now().wall_s,
    ),
    "a store that is opened begins at the wall time": (store_time, "_load", lambda store: None),
    "a jump of the clock is not saved": (StoreTime, "_has_jumped", lambda time, now: False),
    "log time goes back with the clock": (StoreTime, "tick", _tick_by_wall),
    "the age of a change is wall time": (StoreTime, "log_us_ago", _wall_ago),
    "shard ids are the wall time": (streams, "_shard_id", _shard_id_by_wall),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign sees each of these mistakes."""
    owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong)

    with pytest.raises((AssertionError, Fault)):
        _campaigns(40)
