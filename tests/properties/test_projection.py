"""Whatever is written, and however its records are delivered, the numbers of a projector are those of the items."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tavola import Connection, ManualClock, connect
from tavola.client.stream_changes import EntityChange, changes_of
from tavola.patterns import Projector, Sum, projection
from tavola.patterns.metrics import ItemState
from tavola.patterns.projection import Renewal
from tavola.patterns.recipe import PatternProgram, call_client
from tests.patterns.board import ARN, Board, Counted, Helpdesk, Numbers, marked, numbers, projector_on
from tests.patterns.interleaving import Running


@pytest.fixture
def memory() -> Iterator[Connection]:
    """A board in memory."""
    with connect("memory:", clock=ManualClock()) as db:
        db.create_tables(Board)
        yield db


class World:
    """A desk as a dict, with a stream of three shards made of its changes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.items: dict[str, dict[str, Any]] = {}
        self.shards: list[list[dict[str, Any]]] = [[], [], []]
        self.numbers = [random.Random(7).randrange(10**20, 10**21) for _ in self.shards]  # each shard's own
        self.count = 0

    def write(self) -> None:
        """Change one item somehow."""
        chance = self.chance
        key = chance.choice("abcdef")
        before = self.items.get(key)
        if before is not None and chance.random() < 0.3:
            after = None
        else:
            after = self._image(key)
        if before == after:
            return
        shard = ord(key) % 3
        self.numbers[shard] += chance.randrange(1, 50)
        kind = "INSERT" if before is None else "REMOVE" if after is None else "MODIFY"
        change: dict[str, Any] = {
            "Keys": {"pk": {"S": f"CASE#{key}"}, "sk": {"S": "CASE"}},
            "SequenceNumber": str(self.numbers[shard]),
            "ApproximateCreationDateTime": 1_790_000_000,
        }
        change |= {"OldImage": before} if before else {}
        change |= {"NewImage": after} if after else {}
        record: dict[str, Any] = {"eventName": kind, "dynamodb": change, "eventSourceARN": ARN}
        if kind == "REMOVE" and chance.random() < 0.5:
            record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        self.shards[shard].append(record)
        self.items = {k: v for k, v in (self.items | {key: after}).items() if v is not None}

    def _image(self, key: str) -> dict[str, Any]:
        image = {
            "pk": {"S": f"CASE#{key}"},
            "sk": {"S": "CASE"},
            "_entity": {"S": "Case"},
            "case_id": {"S": key},
            "status": {"S": self.chance.choice(["new", "working", "ready"])},
            "opened_at": {"S": f"2026-09-0{self.chance.randrange(1, 3)}T12:00:00Z"},
            "note": {"S": self.chance.choice(["", "x"])},
        }
        if self.chance.random() < 0.3:
            image["ready_at"] = {"S": f"2026-09-05T12:00:0{self.chance.randrange(10)}Z"}
        return image

    def recount(self, projector: Projector[Any, Any, Any]) -> dict[tuple[str, str], Sum]:
        """Return what the numbers come to by the items."""
        sums: dict[tuple[str, str], Sum] = {}
        for image in self.items.values():
            keys = {name: image[name] for name in ("pk", "sk")}
            told = {"Keys": keys, "NewImage": image, "SequenceNumber": "1"}
            (change,) = changes_of(Helpdesk, {"eventName": "INSERT", "dynamodb": told})
            assert isinstance(change, EntityChange)
            for name, parts in projector.shares_of(change.new).items():
                for part, value in parts.items():
                    sums[name, part] = sums.get((name, part), Sum()) + Sum(1, value)
        return sums


def campaign(seed: int, db: Connection, make: Callable[[Any], Any] = projector_on) -> None:
    """Write and deliver at random, with crashes, bisects, parallel batches, zombies and old batches that come again."""
    for table in (Numbers, Counted):
        db.delete_many(list(db.scan(table)))
    chance = random.Random(seed)
    world = World(chance)
    at = [0, 0, 0]
    old: list[dict[str, Any]] = []
    paused: list[Running] = []

    def deliver(records: Sequence[Mapping[str, Any]]) -> None:
        event = {"Records": list(records)}
        old.append(event)
        projector = make(db)
        projector.report_batch_item_failures = True
        running = Running(Projector.handler.steps(projector, event))
        steps = chance.choice([0, 1, 2, 99, 99, 99])  # a kill, or a pause out of which it wakes much later
        while not running.done and steps:
            running.step(db)
            steps -= 1
        if not running.done:
            if chance.random() < 0.5:
                paused.append(running)
            raise TimeoutError
        assert running.outcome == {"batchItemFailures": []}

    def read(shard: int) -> None:
        batch = world.shards[shard][at[shard] : at[shard] + chance.randrange(1, 7)]
        if chance.random() < 0.4:  # as two lanes, in which each item keeps its order
            lanes = [
                [r for r in batch if str(r["dynamodb"]["Keys"]) in some] for some in _halves(batch, chance)
            ]
        elif chance.random() < 0.3 and len(batch) > 1:
            lanes = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        else:
            lanes = [batch]
        for lane in lanes:
            if lane:
                deliver(lane)
        at[shard] += len(batch)

    for _ in range(12):
        for _ in range(chance.randrange(6)):
            world.write()
        if old and chance.random() < 0.3:
            with suppress(TimeoutError):
                deliver(chance.choice(old)["Records"])
        if paused and chance.random() < 0.5:
            running = paused.pop(chance.randrange(len(paused)))
            while not running.done:
                running.step(db)
        with suppress(TimeoutError):
            read(chance.randrange(3))
        kept = numbers(db)
        assert kept == marked(db), f"seed {seed}: the numbers are not those of the marks"
        assert all(told.count >= 0 for told in kept.values()), f"seed {seed}: {kept} has a negative number"
    for shard in range(3):
        while at[shard] < len(world.shards[shard]):
            with suppress(TimeoutError):
                read(shard)
    for running in paused:
        while not running.done:
            running.step(db)
    projector = make(db)
    assert numbers(db) == world.recount(projector), f"seed {seed}: the numbers are not those of the items"


def campaigns(db: Connection, make: Callable[[Any], Any] = projector_on) -> None:
    """Go through eighty, each from its own seed."""
    for seed in range(80):
        campaign(seed, db, make)


def _halves(batch: Sequence[Mapping[str, Any]], chance: random.Random) -> list[set[str]]:
    keys = sorted({str(record["dynamodb"]["Keys"]) for record in batch})
    chance.shuffle(keys)
    return [set(keys[: len(keys) // 2]), set(keys[len(keys) // 2 :])]


def test_any_delivery_gives_the_numbers_of_the_items(memory: Connection) -> None:
    """Over any writes and any delivery that keeps an item's order, the numbers in the end are those of a recount."""
    campaigns(memory)


class Forgetful(Projector[Any, Numbers, Counted]):
    """The first draft of a projector: it changes the numbers, and keeps no mark of what it counted."""

    def _commit(self, pack: Sequence[Renewal[Counted]]) -> PatternProgram[None]:
        for each in pack:
            for number, by in each.change.items():
                yield from self._counted(number, by)

    def _counted(self, number: tuple[str, str], by: Sum) -> PatternProgram[None]:
        key = self.metric_key(name=number[0], part=number[1])
        changes = [Numbers.count.add(by.count), Numbers.total.add(by.total)]
        yield from call_client(lambda db: db.update(key, *changes, create=True))


class Apart(Forgetful):
    """A projector that writes its marks after the numbers, and not together with them."""

    def _commit(self, pack: Sequence[Renewal[Counted]]) -> PatternProgram[None]:
        yield from super()._commit(pack)
        yield from call_client(lambda db: db.put_many([each.mark for each in pack]))


class Lazy(Projector[Any, Numbers, Counted]):
    """A projector that does not mark a batch whose records come to nothing together."""

    def _renewal(self, standing: ItemState, before: Counted | None) -> Renewal[Counted]:
        made = super()._renewal(standing, before)
        if not made.change and before is not None:
            made.mark.place = before.place
        return made


@pytest.mark.parametrize("faulty", [Forgetful, Apart, Lazy])
def test_the_campaign_finds_a_projector_that_counts_twice(
    memory: Connection, faulty: type[Projector[Any, Numbers, Counted]]
) -> None:
    """Pitfall 8: without a mark, with one that is not written together, or not always, the campaign sees it."""

    def make(db: Any) -> Any:
        projector = faulty(db, Helpdesk, Numbers, Counted)
        projector.declared.functions = projector_on(db).declared.functions
        return projector

    with pytest.raises(AssertionError, match="seed"):
        campaigns(memory, make)


def test_the_campaign_finds_one_that_counts_changes_alone(
    memory: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 8: a processor that looks at MODIFY alone counts no new item, and the campaign sees it."""
    monkeypatch.setattr(
        projection,
        "changes_of",
        lambda table, event, **more: (c for c in changes_of(table, event, **more) if c.kind == "modified"),
    )

    with pytest.raises(AssertionError, match="seed"):
        campaigns(memory)
