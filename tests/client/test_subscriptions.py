"""Subscriptions: checkpoints, lost records, waiting and closing."""

from __future__ import annotations

import random
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    ManualClock,
    PrimaryKey,
    Table,
    connect,
)
from tavola.client import streams
from tavola.client.checkpoints import CheckpointRefused
from tavola.client.context import Context
from tavola.client.effects import Driver
from tavola.client.retries import NO_RETRIES
from tavola.client.stream_changes import AnyChange, EntityChange, RawChange
from tavola.client.streams import StreamMissing
from tavola.client.subscriptions import ChangeFeed, RecordsLost, Subscription, SubscriptionOptions
from tavola.protocol.faults import ThrottlingFault
from tests.client.conftest import START_S
from tests.client.desk import Desk
from tests.client.streams import listed, read_changes, ticket
from tests.triggers.fake import FakeStream, sequence

# Checkpoints


def ids(changes: list[AnyChange]) -> list[str]:
    """Return the tickets that changes are of."""
    return [change.new.ticket_id for change in changes if isinstance(change, EntityChange) and change.new]


def replies(changes: list[AnyChange]) -> list[int]:
    """Return the number of replies that the tickets have after the changes."""
    return [change.new.replies for change in changes if isinstance(change, EntityChange) and change.new]


def test_now_is_the_moment_of_subscribing(db: Connection) -> None:
    """From now on means after the subscription was made, whenever it is first read."""
    db.put(ticket("before"))
    subscription: Any = db.subscribe(Desk, follow=False)
    db.put(ticket("after"))

    assert ids(listed(db, subscription)) == ["after"]


def test_a_checkpoint_continues_after_the_last_processed_change(db: Connection, tmp_path: Path) -> None:
    """A second reading with the same checkpoint returns only later changes."""
    place = tmp_path / "place"
    db.put(ticket("a"))
    assert ids(read_changes(db, checkpoint=place)) == ["a"]
    db.put(ticket("b"))

    assert ids(read_changes(db, checkpoint=place)) == ["b"]
    assert ids(read_changes(db, checkpoint=place)) == []


def test_an_unprocessed_change_is_delivered_again(tmp_path: Path) -> None:
    """A change is done when the next is requested:

    one whose handler failed is delivered again, earlier ones are not.
    """
    with connect("memory:") as db:
        db.create_tables(Desk)
        for number in range(3):
            db.put(ticket(replies=number))

        def again() -> Subscription:
            return db.subscribe(Desk, from_="start", follow=False, checkpoint=tmp_path / "place")

        def fail(change: AnyChange) -> None:
            if replies([change]) == [1]:
                raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            deque(map(fail, again()), maxlen=0)
        with again() as changes:
            second = [next(iter(changes))]  # leaving the block in good order means that it is done
        third = list(again())

    assert replies(second) == [1]
    assert replies(third) == [2]


def test_a_checkpoint_of_something_else_is_refused(db: Connection, tmp_path: Path) -> None:
    """A place in another table's stream, or a file of another kind, is not gone on from."""

    class Other(Table, stream="NEW_IMAGE"):
        pass

    class Thing(Entity, table=Other):
        name: Attr[str]

        class Key(PrimaryKey["Thing"], pk="T#{name}", sk="T"):
            name: str

    db.create_tables(Other)
    read_changes(db, checkpoint=tmp_path / "place")
    (tmp_path / "other").write_text('{"schema": "tavola.checkpoint/1"}')

    with pytest.raises(CheckpointRefused, match=r"it belongs to the table .*Desk, and this is .*Other"):
        read_changes(db, Other, checkpoint=tmp_path / "place")
    with pytest.raises(CheckpointRefused, match="another kind"):
        read_changes(db, checkpoint=tmp_path / "other")


def test_a_table_without_a_stream_is_refused(opened: Callable[..., Connection]) -> None:
    """The message says how to enable a stream."""

    class Silent(Table):
        pass

    class Note(Entity, table=Silent):
        name: Attr[str]

        class Key(PrimaryKey["Note"], pk="N#{name}", sk="N"):
            name: str

    db = opened()
    db.create_tables(Silent)

    with pytest.raises(StreamMissing, match="StreamSpecification"):
        read_changes(db, Silent)


def test_changes_come_in_order_over_shards_that_roll(tmp_path: Path) -> None:
    """Shards are closed and followed by others; each item's changes come in order, also across a restart."""
    clock = ManualClock(START_S)
    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        for round_ in range(5):
            for number in range(5):
                db.put(ticket(f"t{number}", replies=round_))
            clock.advance(4 * 3_600 + 1)
            db.call("ListTables")
        first = []
        for change in db.subscribe(Desk, from_="start", follow=False, checkpoint=tmp_path / "place"):
            first.append(change)
            if len(first) == 12:
                break
        rest = list(db.subscribe(Desk, from_="start", follow=False, checkpoint=tmp_path / "place"))

    assert len({change.origin.shard for change in rest}) > 1
    orders: dict[str, list[int]] = {}
    for change in [*first[:-1], *rest]:  # the twelfth was in hand
        assert isinstance(change, EntityChange)
        assert change.new is not None
        orders.setdefault(change.new.ticket_id, []).append(change.new.replies)
    assert orders == {f"t{number}": list(range(5)) for number in range(5)}


def test_a_reenabled_stream_is_followed(tmp_path: Path) -> None:
    """The old stream is read to its end, then the new one from its start, so no change is skipped."""
    clock = ManualClock(START_S)
    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        db.put(ticket("a"))
        assert ids(read_changes(db, checkpoint=tmp_path / "place")) == ["a"]
        db.put(ticket("b"))
        db.call("UpdateTable", {"TableName": "Desk", "StreamSpecification": {"StreamEnabled": False}})
        clock.advance(1)
        view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        db.call("UpdateTable", {"TableName": "Desk", "StreamSpecification": view})
        db.put(ticket("c"))

        assert ids(read_changes(db, checkpoint=tmp_path / "place")) == ["b", "c"]
        assert ids(read_changes(db, checkpoint=tmp_path / "place")) == []


def test_a_stream_that_ended_ends_the_subscription() -> None:
    """A follower of a disabled stream receives the remaining changes, then stops."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        changes = db.subscribe(Desk, from_="start")
        db.put(ticket("a"))
        db.call("UpdateTable", {"TableName": "Desk", "StreamSpecification": {"StreamEnabled": False}})

        assert not changes.ended
        assert ids(list(changes)) == ["a"]
        assert changes.ended


def test_a_checkpoint_ahead_of_its_stream_is_an_error(tmp_path: Path) -> None:
    """The table was restored from a copy, so its history differs from the changes already read."""
    file, copy, place = tmp_path / "desk.db", tmp_path / "copy.db", tmp_path / "place"
    with connect(f"file:{file}") as db:
        db.create_tables(Desk)
        db.put(ticket("a"))
        read_changes(db, checkpoint=place)
    shutil.copy(file, copy)
    with connect(f"file:{file}") as db:
        for name in "bcdef":
            db.put(ticket(name))
        read_changes(db, checkpoint=place)
    shutil.copy(copy, file)

    with connect(f"file:{file}") as db:
        db.put(ticket("z"))
        with pytest.raises(RecordsLost, match="the table was restored") as lost:
            read_changes(db, checkpoint=place)
        assert lost.value.loss == "ahead"
        assert "z" in ids(read_changes(db, checkpoint=place, on_loss="continue"))


# A stream that can be made to do anything


class Orders(Table, name="Orders", pk="id", sk=None, tag=None, stream="NEW_AND_OLD_IMAGES"):
    """The table of the stream that is made of lists."""


class Order(Entity, table=Orders):
    """Its one entity."""

    id: Attr[str]
    n: Attr[int]

    class Key(PrimaryKey["Order"]):
        id: str


class SavedCheckpoint:
    """A checkpoint in memory."""

    def __init__(self) -> None:
        self.document: Mapping[str, Any] | None = None

    def load(self) -> Mapping[str, Any] | None:
        """Return the saved checkpoint."""
        return self.document

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Keep it."""
        self.document = checkpoint

    def clear(self) -> None:
        """Forget it."""
        self.document = None


def reading(
    stream: FakeStream, clock: ManualClock, checkpoint: SavedCheckpoint | None = None, **options: Any
) -> Any:
    """Return a subscription to the stream that is made of lists."""
    context = Context(clock=clock, retry_policy=NO_RETRIES)
    db = Connection(stream, "lists", context)
    return db.subscribe(Orders, **{"from_": "start", "follow": False, "checkpoint": checkpoint, **options})


def numbers(changes: Iterator[AnyChange] | list[AnyChange]) -> list[int]:
    """Return the numbers that the records were made with."""
    return [int(change.sequence) for change in changes]


def test_records_that_are_gone_are_an_error_until_that_is_accepted() -> None:
    """After a day without reading, each attempt fails until the caller accepts the loss and continues."""
    stream, checkpoint, clock = FakeStream(page=2), SavedCheckpoint(), ManualClock(START_S)
    stream.add("a")
    for _ in range(5):
        stream.put("a")
    assert reading(stream, clock, checkpoint).take() is not None  # two, in hand
    changes = reading(stream, clock, checkpoint)
    changes.take()
    changes.acknowledge()
    stream.trim("a", 4)

    for _ in range(2):
        with pytest.raises(RecordsLost, match=f'number {sequence(2)} in .*-a .*on_loss="continue"') as lost:
            list(reading(stream, clock, checkpoint))
        assert lost.value.loss == "trimmed"
    assert numbers(reading(stream, clock, checkpoint, on_loss="continue")) == [5]


def test_a_shard_that_disappeared_unfinished_is_an_error() -> None:
    """A shard of the checkpoint that no longer exists may have held unread records."""
    stream, checkpoint, clock = FakeStream(), SavedCheckpoint(), ManualClock(START_S)
    stream.add("a")
    stream.put("a")
    assert numbers(reading(stream, clock, checkpoint)) == [1]
    del stream.shards[next(iter(stream.shards))]
    stream.add("b")
    stream.put("b")

    with pytest.raises(RecordsLost) as lost:
        reading(stream, clock, checkpoint)
    assert lost.value.loss == "gone"
    assert numbers(reading(stream, clock, checkpoint, on_loss="continue")) == [2]


def test_a_place_without_a_number_holds_where_no_time_is_known() -> None:
    """A reader that started at LATEST before the first change receives it later, also without AT_TIMESTAMP."""
    stream, checkpoint, clock = FakeStream(page=2), SavedCheckpoint(), ManualClock(START_S + 100)
    stream.knows_times = False
    stream.add("a")
    for _ in range(20):
        stream.put("a")
    reading(stream, clock, checkpoint, from_="now")
    stream.put("a", at_s=START_S + 101)

    assert numbers(reading(stream, clock, checkpoint)) == [21]


def test_an_error_of_one_shard_loses_nothing_of_another() -> None:
    """Records that other shards returned at the same time are delivered when reading continues."""
    stream, clock = FakeStream(), ManualClock(START_S)
    for name in "ab":
        stream.add(name)
        stream.put(name)
    changes = reading(stream, clock)
    stream.fail("GetRecords", ThrottlingFault("slow down"))

    with pytest.raises(ThrottlingFault):
        list(changes)
    assert sorted(numbers(changes)) == [1, 2]


def test_between_empty_readings_it_waits() -> None:
    """A follower waits between polls through its driver, and then reads the new changes."""
    stream, clock = FakeStream(), ManualClock(START_S)
    stream.add("a")
    waits: list[float] = []
    feed = ChangeFeed(Context(clock=clock), Orders, SubscriptionOptions(from_="start", poll_s=0.2))

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)
        if len(waits) == 3:
            stream.put("a")

    found = Driver(stream, NO_RETRIES, sleep).run(feed.next_batch())

    assert waits == [0.2, 0.2, 0.2]
    assert found is not None
    assert numbers(list(found)) == [1]


def test_closing_ends_the_waiting() -> None:
    """A follower that waits for a change can be stopped."""
    stream, clock = FakeStream(), ManualClock(START_S)
    stream.add("a")
    feed = ChangeFeed(Context(clock=clock), Orders, SubscriptionOptions(from_="start"))

    def sleep(seconds: float) -> None:
        feed.closed = True

    assert Driver(stream, NO_RETRIES, sleep).run(feed.next_batch()) is None


class Broken(Exception):
    """A reader that was killed."""


def campaign(seed: int) -> None:
    """Write, split, merge and read with kills; hold that each item's changes come whole and in order."""
    chance = random.Random(seed)
    stream, checkpoint, clock = (
        FakeStream(page=chance.choice([1, 2, 5])),
        SavedCheckpoint(),
        ManualClock(START_S),
    )
    keys = [f"k{number}" for number in range(6)]
    homes = dict(zip(keys, "aabbcc", strict=True))
    for name in "abc":
        stream.add(name)
    wrote: dict[str, list[int]] = {key: [] for key in keys}
    seen: dict[str, list[int]] = {key: [] for key in keys}
    shards = 0
    for _ in range(chance.randrange(2, 6)):
        for _ in range(chance.randrange(12)):
            key = chance.choice(keys)
            wrote[key].append(stream.put(homes[key], key))
            if chance.random() < 0.25:  # a shard is closed; its keys go on in one child or two
                old = homes[key]
                stream.finish(old)
                children = []
                for _ in range(chance.choice([1, 2])):
                    shards += 1
                    stream.add(f"s{shards}", old)
                    children.append(f"s{shards}")
                for moved in [k for k, home in homes.items() if home == old]:
                    homes[moved] = chance.choice(children)
            if chance.random() < 0.1:
                stream.expire_iterators()
        deadline = chance.choice([1, 3, 8, 10_000])
        try:
            for number, change in enumerate(reading(stream, clock, checkpoint)):
                seen[change.keys["id"]["S"]].append(int(change.sequence))
                if number == deadline:
                    raise Broken
        except Broken:
            pass
    for change in reading(stream, clock, checkpoint):
        seen[change.keys["id"]["S"]].append(int(change.sequence))
    for key in keys:
        firsts = list(dict.fromkeys(seen[key]))
        assert firsts == wrote[key], f"seed {seed}: {key} was written {wrote[key]} and seen {seen[key]}"


def campaigns(count: int) -> None:
    """Run `count` campaigns, each with its own seed."""
    for seed in range(count):
        campaign(seed)


def test_each_change_comes_and_in_order() -> None:
    """Over splits, expired iterators and kills at any change: all come, first time in the item's order."""
    campaigns(150)


def test_the_campaign_finds_a_child_before_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes up every shard at once is caught."""
    monkeypatch.setattr(
        streams,
        "readable_shards",
        lambda shards, read: tuple(s for s in reversed(shards) if s.id not in read),
    )

    with pytest.raises(AssertionError, match="was written"):
        campaigns(150)


def test_the_campaign_finds_a_place_that_runs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that saves its read position instead of its processed position is caught."""
    deliver = ChangeFeed.deliver

    def eager(self: ChangeFeed, batch: Any, number: int) -> None:
        deliver(self, batch, number)
        self.acknowledge()

    monkeypatch.setattr(ChangeFeed, "deliver", eager)

    with pytest.raises(AssertionError, match="was written"):
        campaigns(150)


def test_a_table_is_followed_by_its_name(db: Connection) -> None:
    """Without a model every change is one of an item, the guards of unique values too."""
    db.put(ticket("t-1"))
    modelled = read_changes(db)
    (name,) = (each for each in db.call("ListTables")["TableNames"] if each.endswith(Desk.settings.name))
    named = listed(db, db.subscribe(name, from_="start", follow=False))

    assert all(isinstance(change, RawChange) for change in named)
    assert len(named) >= len(modelled)
    assert {change.sequence for change in named} >= {change.sequence for change in modelled}
