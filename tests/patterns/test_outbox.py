"""Events that are written with their change and published after it: all of them, in order, whatever dies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, Gsi, ManualClock, PrimaryKey, Query, Sort, Table, connect, sort
from tavola.client.errors import TransactionRefused
from tavola.client.transactions import TransactionCancelled
from tavola.patterns import (
    Message,
    Outbox,
    OutboxEvent,
    OutgoingEvents,
    PublishedEvent,
    RecipeRefused,
    RelayLease,
)
from tavola.patterns.outbox import events_in
from tavola.patterns.recipe import PatternProgram, call_client
from tests.client.conftest import START_S, Awaited
from tests.patterns.interleaving import Running


class Shop(Table, ttl="expires"):
    """Orders, and what is to be told of them."""

    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")


class Order(Entity, table=Shop):
    """An order."""

    order_id: Attr[str]
    total: Attr[int]

    class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
        order_id: str


class Outgoing(OutgoingEvents, table=Shop):
    """What waits."""

    class Key(PrimaryKey["Outgoing"], pk="OUTBOX#{aggregate}", sk="OUTBOX"):
        aggregate: str

    class Waiting(Query["Outgoing"], on=Shop.gsi1, pk="OUTBOX#{shard}", sk="{aggregate}", sparse=True):
        shard: int
        aggregate: Sort[str] = sort()


class Relaying(RelayLease, table=Shop):
    """Whose turn it is."""

    class Key(PrimaryKey["Relaying"], pk="RELAY#{shard}", sk="RELAY"):
        shard: int


class Told(PublishedEvent, table=Shop):
    """What was published."""

    class Key(PrimaryKey["Told"], pk="TOLD#{aggregate}", sk="{number}"):
        aggregate: str
        number: int

    class Of(Query["Told"], on=Key):
        aggregate: str
        number: Sort[int] = sort()


def outbox_on(db: Any, **options: Any) -> Outbox[Any, Outgoing, Relaying]:
    """Return an outbox on a client."""
    return Outbox(db, Outgoing, Relaying, Outgoing.Waiting, **options)


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A shop."""
    found = opened()
    found.create_tables(Shop)
    return found


@pytest.fixture
def memory() -> Iterator[Connection]:
    """A shop in memory, on a clock that stands still."""
    with connect("memory:", clock=ManualClock(START_S)) as db:
        db.create_tables(Shop)
        yield db


@pytest.fixture
def outbox(db: Any, made: Callable[..., Any]) -> Any:
    """Its outbox."""
    return made(Outbox, db, Outgoing, Relaying, Outgoing.Waiting)


def change(db: Any, outbox: Any, order_id: str, total: int, *messages: Message) -> None:
    """Change an order, and tell of it."""
    writes = db.transaction()
    writes.put(Order(order_id=order_id, total=total))
    inner = outbox._recipe if isinstance(db, Awaited) else outbox
    inner.add(writes, f"order/{order_id}", *(messages or (Message("changed", {"total": total}),)))
    writes.commit()


class Consumer:
    """A consumer that tells repetitions by their number; `publish` is how it is reached."""

    def __init__(self) -> None:
        self.seen: list[OutboxEvent] = []
        self.effects: dict[str, list[Any]] = {}
        self.last: dict[str, int] = {}

    def publish(self, event: OutboxEvent) -> None:
        """Take an event, and do its effect if it is new."""
        self.seen.append(event)
        last = self.last.get(event.aggregate, 0)
        if event.number <= last:
            return
        assert event.number == last + 1, f"{event.dedup_id} came after number {last}"
        self.last[event.aggregate] = event.number
        self.effects.setdefault(event.aggregate, []).append(event.payload)

    async def apublish(self, event: OutboxEvent) -> None:
        """The same for a loop."""
        self.publish(event)

    def of(self, db: Any) -> Callable[[OutboxEvent], Any]:
        """Return the way for a client."""
        return self.apublish if isinstance(db, Awaited) else self.publish


def test_what_is_written_is_published_once_and_in_order(db: Connection, outbox: Any) -> None:
    """Events come in the order of the commits of their aggregate, numbered from one, and are gone then."""
    consumer = Consumer()
    for total in range(3):
        change(db, outbox, "a", total)
    change(db, outbox, "b", 9, Message("made"), Message("changed", {"lines": [1, 2.5, None]}))

    first = outbox.relay(consumer.of(db))
    second = outbox.relay(consumer.of(db))

    assert (first.published, second.published) == (5, 0)
    assert consumer.effects == {
        "order/a": [{"total": 0}, {"total": 1}, {"total": 2}],
        "order/b": [None, {"lines": [1, 2.5, None]}],
    }
    assert [e.number for e in consumer.seen if e.aggregate == "order/a"] == [1, 2, 3]
    assert len({event.dedup_id for event in consumer.seen}) == 5
    change(db, outbox, "a", 7)
    outbox.relay(consumer.of(db))
    assert consumer.seen[-1].number == 4


def test_neither_the_change_nor_the_event_is_there_alone(db: Connection, outbox: Any) -> None:
    """A transaction that is cancelled leaves no event."""
    change(db, outbox, "a", 1)
    writes = db.transaction()
    writes.create(Order(order_id="a", total=2))
    inner = outbox._recipe if isinstance(db, Awaited) else outbox
    inner.add(writes, "order/a", Message("made"))

    with pytest.raises(TransactionCancelled):
        writes.commit()
    assert [event.kind for event in outbox.waiting_in("order/a")] == ["changed"]


def test_telling_reads_nothing(memory: Connection) -> None:
    """An event costs one more item in the transaction, and no read."""
    with memory.measure() as spent:
        change(memory, outbox_on(memory), "a", 1)

    assert spent.operations == {"TransactWriteItems": 1}


def test_an_event_that_is_refused_holds_up_its_aggregate_alone(memory: Connection) -> None:
    """What cannot be published is tried again next time, before what follows it; others go on."""
    outbox, consumer = outbox_on(memory), Consumer()
    for name in ("a", "b"):
        for total in range(3):
            change(memory, outbox, name, total)

    def picky(event: OutboxEvent) -> None:
        if event.dedup_id == "order/a/2" and len(consumer.seen) < 10:
            raise ConnectionError("no route")
        consumer.publish(event)

    done = outbox.relay(picky)

    assert done.published == 4
    assert [(each.event.dedup_id, str(each.error)) for each in done.failed] == [("order/a/2", "no route")]
    assert [event.number for event in outbox.waiting_in("order/a")] == [2, 3]
    assert outbox.relay(consumer.publish).published == 2
    assert consumer.effects["order/a"] == [{"total": n} for n in range(3)]


def test_an_event_that_nobody_can_publish_is_given_up_by_its_number(memory: Connection) -> None:
    """Only the next one of its aggregate, and it is handed back."""
    outbox, consumer = outbox_on(memory), Consumer()
    for total in range(2):
        change(memory, outbox, "a", total)

    with pytest.raises(RecipeRefused, match="not the next to be published, which is 1"):
        outbox.discard("order/a", 2)
    assert outbox.discard("order/a", 1).payload == {"total": 0}
    consumer.last["order/a"] = 1
    outbox.relay(consumer.publish)
    assert consumer.effects["order/a"] == [{"total": 1}]
    with pytest.raises(RecipeRefused, match="which is none"):
        outbox.discard("order/a", 3)


def test_too_much_that_waits_refuses_the_change(memory: Connection) -> None:
    """Where no relay runs, changes of an aggregate are refused at last, with a reason, and others are not."""
    outbox = outbox_on(memory, backlog=3)
    for total in range(3):
        change(memory, outbox, "a", total)

    with pytest.raises(TransactionCancelled) as cancelled:
        change(memory, outbox, "a", 3)
    change(memory, outbox, "b", 3)
    writes = memory.transaction()
    writes.check(Order.Key(order_id="a"), when=Order.total == 2)
    told = outbox.add(writes, "order/a", Message("changed"))
    with pytest.raises(TransactionCancelled) as full:
        writes.commit()
    assert list(full.value.failed) == [told]  # it is not the caller's own condition

    assert [reason.kind for reason in cancelled.value.failed.values()] == ["condition"]
    assert memory.get(Order.Key(order_id="a")) == Order(order_id="a", total=2)
    outbox.relay(Consumer().publish)
    change(memory, outbox, "a", 3)


def test_one_aggregate_is_told_of_once_in_a_transaction(memory: Connection) -> None:
    """All messages of an aggregate go into one call; a second one is refused before anything is asked."""
    outbox = outbox_on(memory)
    writes = memory.transaction()
    outbox.add(writes, "order/a", Message("made"))

    with pytest.raises(TransactionRefused, match="write the same item"):
        outbox.add(writes, "order/a", Message("changed"))
    with pytest.raises(RecipeRefused, match="no message"):
        outbox.add(writes, "order/b")


def test_what_was_published_is_kept_for_a_while(db: Connection, made: Callable[..., Any]) -> None:
    """With an archive, an event moves there in the same transaction that takes it out of the list, with its end."""
    outbox = made(Outbox, db, Outgoing, Relaying, Outgoing.Waiting, archive=Told, keep=timedelta(days=3))
    consumer = Consumer()
    for total in range(25):
        change(db, outbox, "a", total)
    outbox.relay(consumer.of(db))

    kept = list(db.query(Told.Of(aggregate="order/a")))

    assert [each.number for each in kept] == list(range(1, 26))
    assert kept[0].payload == {"total": 0}
    assert kept[0].expires == datetime.fromtimestamp(START_S, UTC) + timedelta(days=3)
    assert [e.number for e in consumer.seen] == list(range(1, 26))


def test_one_relay_at_a_time(memory: Connection) -> None:
    """A shard that another relay holds is left to it; one that shows no life for the lease is taken over."""
    clock: Any = memory.context.clock
    first, second, consumer = outbox_on(memory), outbox_on(memory), Consumer()
    change(memory, first, "a", 1)
    dead = Running(Outbox.relay.steps(first, consumer.publish))
    dead.step(memory)  # it reads the lease
    dead.step(memory)  # and takes it

    assert second.relay(consumer.publish).shards == ()
    clock.advance(31)
    assert second.relay(consumer.publish).published == 1
    assert consumer.seen[0].fence > 0
    while not dead.done:
        dead.step(memory)
    assert dead.outcome.published == 0


def test_a_long_round_keeps_its_lease(memory: Connection) -> None:
    """While it publishes, a relay renews its turn, so nobody takes over however long it takes."""
    clock: Any = memory.context.clock
    first, second, consumer = outbox_on(memory), outbox_on(memory), Consumer()
    for total in range(6):
        change(memory, first, "a", total)
    taken: list[int] = []

    def slow(event: OutboxEvent) -> None:
        clock.advance(20)
        taken.append(second.relay(consumer.publish).published)
        consumer.publish(event)

    assert first.relay(slow).published == 6
    assert taken == [0] * 6


def test_each_shard_is_relayed_separately(memory: Connection) -> None:
    """Aggregates are spread over shards, each with a relay of its own; fewer shards are read as the many they were."""
    many, consumer = outbox_on(memory, shards=4), Consumer()
    for number in range(20):
        change(memory, many, f"o{number}", number)
    by_shard = [many.relay(consumer.publish, shards=[shard]).published for shard in range(3)]
    assert all(by_shard)
    few = outbox_on(memory, shards=1, reading=4)
    change(memory, few, "o0", 100)

    assert few.relay(consumer.publish).published == 20 - sum(by_shard) + 1
    assert len(consumer.last) == 20


def test_publishers_of_either_kind_are_understood(db: Any, outbox: Any) -> None:
    """On a loop a plain function is done in a thread; without one a coroutine function is refused, and nothing is lost."""
    consumer = Consumer()
    change(db, outbox, "a", 1)

    done = outbox.relay(consumer.publish if isinstance(db, Awaited) else consumer.apublish)

    if isinstance(db, Awaited):
        assert done.published == 1
    else:
        assert "coroutine function" in str(done.failed[0].error)
        assert outbox.relay(consumer.publish).published == 1
    assert consumer.effects == {"order/a": [{"total": 1}]}


def test_it_runs_until_it_is_told_to_stop(memory: Connection) -> None:
    """A loop relays what comes, and waits where nothing does."""
    outbox, consumer = outbox_on(memory), Consumer()
    change(memory, outbox, "a", 1)

    assert outbox.run(consumer.publish, every_s=0.0, until=lambda: bool(consumer.seen)) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"shards": 0}, "shards"),
        ({"shards": 4, "reading": 2}, "shards"),
        ({"lease_for": timedelta(0)}, "too short"),
    ],
)
def test_settings_that_cannot_work_are_refused(memory: Connection, options: Any, problem: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(RecipeRefused, match=problem):
        outbox_on(memory, **options)


# Whatever dies


def campaign(seed: int, make: Callable[..., Any] = outbox_on, **options: Any) -> int:
    """Change orders while relays publish, die and wake up again; return how many events came twice."""
    chance = random.Random(seed)
    clock = ManualClock(START_S)
    with connect("memory:", clock=clock) as db:
        db.create_tables(Shop)
        consumer = Consumer()
        wrote: dict[str, list[Any]] = {}
        asleep: list[Running] = []
        for total in range(14):
            name = chance.choice("ab")
            change(db, make(db, **options), name, total)
            wrote.setdefault(f"order/{name}", []).append({"total": total})
            if chance.random() < 0.6:
                relay = Running(Outbox.relay.steps(make(db, **options), consumer.publish))
                left = chance.randrange(20)
                while left and not relay.done:
                    relay.step(db)
                    left -= 1
                asleep += [] if relay.done else [relay]
                clock.advance(chance.choice([1, 31]))
            if asleep and chance.random() < 0.3:
                woken = asleep.pop(chance.randrange(len(asleep)))
                while not woken.done:
                    woken.step(db)
        clock.advance(31)
        for woken in asleep[: chance.randrange(len(asleep) + 1)]:
            while not woken.done:
                woken.step(db)
        for _ in range(3):
            clock.advance(31)
            make(db, **options).relay(consumer.publish)
        assert consumer.effects == wrote, f"seed {seed}: {consumer.effects} came of {wrote}"
        assert not list(db.query(Outgoing.Waiting(shard=0))), f"seed {seed}: something is left"
    return len(consumer.seen) - sum(map(len, wrote.values()))


@pytest.mark.parametrize("options", [{}, {"archive": Told}], ids=["plain", "archived"])
def test_an_idempotent_consumer_sees_each_event_once(options: Any) -> None:
    """Over kills between any two calls and relays that wake up late: every event has its effect once, in order."""
    again = [campaign(seed, **options) for seed in range(25)]

    assert sum(again) > 0  # some were published twice, which is what the numbers are for


def test_a_relay_killed_at_each_of_its_calls_loses_nothing() -> None:
    """Whichever call was the last of a relay, the next one publishes the rest."""
    steps = 0
    while True:
        clock, consumer = ManualClock(START_S), Consumer()
        with connect("memory:", clock=clock) as db:
            db.create_tables(Shop)
            for total in range(3):
                change(db, outbox_on(db), "a", total)
            relay = Running(Outbox.relay.steps(outbox_on(db), consumer.publish))
            for _ in range(steps):
                relay.step(db)
            finished = relay.done
            clock.advance(31)
            outbox_on(db).relay(consumer.publish)
        assert consumer.effects == {"order/a": [{"total": 0}, {"total": 1}, {"total": 2}]}
        if finished:
            break
        steps += 1
    assert steps > 6


def _publish_directly(publish: Any, event: OutboxEvent) -> PatternProgram[None]:
    yield from call_client(lambda db: publish(event))


class CutsFirst(Outbox[Any, Outgoing, Relaying]):
    """A relay that takes events off the list before it publishes them."""

    def _relay_aggregate(self, turn: Any, aggregate: str, publish: Any) -> PatternProgram[None]:
        row = yield from self._row(aggregate)
        assert row is not None
        events = events_in(row, turn.fence)
        yield from self._remove_published(row, events, turn.fence)
        for event in events:
            yield from _publish_directly(publish, event)


class CutsAnyhow(Outbox[Any, Outgoing, Relaying]):
    """A relay that cuts as many as it published, even if others are at the front by then."""

    def _write(self, row: Any, changes: Any, when: Any, out: Any) -> PatternProgram[bool]:
        return (yield from super()._write(row, changes, Outgoing.aggregate.exists(), out))


@pytest.mark.parametrize("faulty", [CutsFirst, CutsAnyhow])
def test_the_campaign_finds_a_relay_that_loses_events(faulty: Any) -> None:
    """One that cuts before it publishes, or without looking what it cuts, is caught."""

    def make(db: Any, **options: Any) -> Any:
        return faulty(db, Outgoing, Relaying, Outgoing.Waiting, **options)

    with pytest.raises(AssertionError, match="came"):
        _ = [campaign(seed, make) for seed in range(60)]
