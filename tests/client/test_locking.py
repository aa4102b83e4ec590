"""Optimistic locking: a write never overwrites a change made after the entity was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread

import pytest

from tavola import (
    ConditionFailed,
    Connection,
    ItemExists,
    LockConflict,
    ManualClock,
    ModelError,
    RetryPolicy,
    TransactionCancelled,
    connect,
)
from tests.client.office import Account, Office, Order


@pytest.fixture
def office(opened: Callable[..., Connection]) -> Connection:
    """A connection with the office's table."""
    found = opened()
    found.create_tables(Office)
    return found


def read(db: Connection) -> Order:
    """Return the stored order."""
    found = db.get(Order.Key(order_id="o1"), consistent=True)
    assert found is not None
    return found


def test_every_write_is_counted(office: Connection) -> None:
    """Create, put and update increment the lock, in the table and in the written entity."""
    order = Order(order_id="o1", customer="c")

    office.create(order)
    assert order.revision == read(office).revision == 1
    order.total = 5
    office.put(order)
    assert order.revision == read(office).revision == 2
    assert office.update(Order.Key(order_id="o1"), Order.total.add(1)).revision == 3
    assert office.update(read(office), Order.total.add(1)).revision == 4
    assert office.delete(read(office)) is not None


@pytest.mark.parametrize("verb", ["put", "update", "delete"])
def test_a_write_of_a_stale_entity_is_refused(office: Connection, verb: str) -> None:
    """An entity that was changed or deleted after it was read cannot be written;

    the error holds the stored entity.
    """
    office.create(Order(order_id="o1", customer="c"))
    mine = read(office)
    office.update(Order.Key(order_id="o1"), Order.note.set("theirs"))

    def write() -> None:
        match verb:
            case "put":
                office.put(mine)
            case "update":
                office.update(mine, Order.total.add(1))
            case _:
                office.delete(mine)

    with pytest.raises(LockConflict) as overtaken:
        write()
    now = read(office)
    office.delete(Order.Key(order_id="o1"))
    with pytest.raises(ConditionFailed) as gone:
        write()

    assert overtaken.value.found == now == Order(order_id="o1", customer="c", note="theirs", revision=2)
    assert "was changed after it was read, by another writer or by an update()" in str(overtaken.value)
    assert mine.revision == 1
    assert gone.value.found is None
    assert office.get(Order.Key(order_id="o1")) is None


def test_a_new_entity_overwrites_nothing(office: Connection) -> None:
    """A new entity has lock 0, so it can be put only if no item exists."""
    office.put(Order(order_id="o1", customer="c"))

    with pytest.raises(LockConflict):
        office.put(Order(order_id="o1", customer="d"))
    with pytest.raises(ItemExists):
        office.create(Order(order_id="o1", customer="d"))

    assert read(office).customer == "c"


def test_a_lock_conflict_takes_precedence_over_a_condition(office: Connection) -> None:
    """If both fail, the lock conflict is raised; if the lock holds, the failed condition."""
    office.create(Order(order_id="o1", customer="c"))
    mine, theirs = read(office), read(office)
    office.put(theirs)

    with pytest.raises(LockConflict):
        office.put(mine, when=Order.total > 100)
    with pytest.raises(ConditionFailed) as failed:
        office.put(theirs, when=Order.total > 100)

    assert type(failed.value) is ConditionFailed


def test_an_update_by_key_is_not_locked(office: Connection) -> None:
    """An update by key did not read the item, so it cannot lose a change; it still increments the lock."""
    office.create(Order(order_id="o1", customer="c"))
    for _ in range(3):
        office.update(Order.Key(order_id="o1"), Order.total.add(1))

    assert (read(office).total, read(office).revision) == (3, 4)


def test_the_lock_cannot_be_changed(office: Connection) -> None:
    """A change of the lock itself is refused."""
    with pytest.raises(ModelError, match="it is the lock"):
        office.update(Order.Key(order_id="o1"), Order.revision.set(7))


def test_items_from_before_are_adopted(office: Connection) -> None:
    """An item without the attribute reads as never written, and is counted from then on."""
    item = {"pk": "ORDER#o1", "sk": "ORDER", "order_id": "o1", "customer": "c", "state": "new"}
    stored = {**{name: {"S": value} for name, value in item.items()}, "total": {"N": "0"}}
    office.call("PutItem", {"TableName": office.context.name_of(Office), "Item": stored})
    mine, theirs = read(office), read(office)

    office.put(mine)
    with pytest.raises(LockConflict):
        office.put(theirs)

    assert read(office).revision == 1


def test_an_expired_item_holds_no_lock(office: Connection, clock: ManualClock) -> None:
    """A new entity replaces an expired one, and a write of the expired one is refused."""
    ends = datetime.fromtimestamp(clock.now() + 100, UTC)
    office.create(Order(order_id="o1", customer="c", ends=ends))
    mine = read(office)
    clock.advance(100)

    with pytest.raises(LockConflict):
        office.put(mine)
    office.put(Order(order_id="o1", customer="d"))

    assert read(office) == Order(order_id="o1", customer="d", revision=1)


def test_locks_hold_in_transactions(office: Connection) -> None:
    """A stale entity cancels the transaction with the reason lock; written entities have the new lock."""
    for number in range(4):
        office.create(Order(order_id=f"o{number}", customer="c"))
    stale = [office.get(Order.Key(order_id=f"o{number}")) for number in range(3)]
    one, two, three = (order for order in stale if order is not None)
    for number in range(3):
        office.update(Order.Key(order_id=f"o{number}"), Order.note.set("theirs"))
    fresh = office.get(Order.Key(order_id="o3"))
    assert fresh is not None

    tx = office.transaction()
    intents = [tx.put(one), tx.update(two, Order.total.add(1)), tx.delete(three), tx.put(fresh)]
    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()
    created = Order(order_id="o9", customer="c")
    with office.transaction() as tx:
        tx.put(fresh)
        tx.create(created)

    assert [caught.value.failed[intent].kind for intent in intents[:3]] == ["lock"] * 3
    assert all(isinstance(caught.value.failed[intent].error, LockConflict) for intent in intents[:3])
    assert caught.value.failed[intents[0]].item == Order(
        order_id="o0", customer="c", note="theirs", revision=2
    )
    assert (one.revision, fresh.revision, created.revision) == (1, 2, 1)


def raised(db: Connection, times: int) -> None:
    """Add to an order's total by reading, changing and writing, again whenever it was overtaken."""
    for _ in range(times):
        while True:
            order = read(db)
            order.total += 1
            try:
                db.put(order)
            except LockConflict:
                continue
            break


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_no_update_is_lost(request: pytest.FixtureRequest, kind: str) -> None:
    """However many read, change and write one item at once, every change is in it in the end."""
    target = "memory:" if kind == "memory" else request.getfixturevalue("served")
    with connect(target, table_prefix=f"l{id(request)}-", retry_policy=RetryPolicy(base_s=0.001)) as db:
        db.create_tables(Office)
        db.create(Order(order_id="o1", customer="c"))
        threads = [Thread(target=raised, args=(db, 12)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        order = read(db)
        db.delete_tables(Office)

    assert (order.total, order.revision) == (72, 73)


def test_without_a_lock_an_update_is_lost(office: Connection) -> None:
    """The same work on an entity without a lock loses a change, which the count above would see."""
    office.put(Account(account_id=1))
    one, two = (office.get(Account.Key(account_id=1)) for _ in range(2))
    assert one is not None
    assert two is not None

    for account in (one, two):
        account.balance += 1
        office.put(account)

    left = office.get(Account.Key(account_id=1))
    assert left is not None
    assert left.balance == 1
