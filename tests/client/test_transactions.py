"""Transactions: all or nothing, with a reason for each intent, and consistent reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any, assert_type

import pytest

from tavola import (
    AsyncConnection,
    Connection,
    Fault,
    Intent,
    ItemExists,
    ItemSizeExceeded,
    LockConflict,
    ManualClock,
    ModelError,
    RetryPolicy,
    SeededEntropy,
    TransactionCancelled,
    TransactionItemExists,
    TransactionRefused,
    UpdateIncomplete,
    WriteFailure,
    connect,
)
from tavola.client.backend import Backend
from tavola.client.context import Context
from tavola.client.effects import Call
from tavola.client.transactions import commit
from tavola.protocol.faults import IdempotentParameterMismatchFault, TransactionCanceledFault, ValidationFault
from tests.client.desk import Desk, Event, Feedback, Session, Ticket
from tests.client.office import Account, Fixed, Office, Order

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def ticket(**more: object) -> Ticket:
    """Return a ticket."""
    return Ticket(**{"ticket_id": "t1", "customer_id": "c1", "subject": "VPN", "created_at": AT, **more})  # type: ignore[arg-type]


def event(number: int = 1, **more: object) -> Event:
    """Return an event of the ticket."""
    fields = {"ticket_id": "t1", "at": AT, "event_id": f"e{number}", "kind": "opened"}
    return Event(**{**fields, **more})  # type: ignore[arg-type]


@pytest.fixture
def office(opened: Callable[..., Connection]) -> Connection:
    """A connection with both tables."""
    found = opened()
    found.create_tables(Desk, Office)
    return found


# Together or not at all.


def test_all_writes_are_done_when_the_block_ends(office: Connection) -> None:
    """One transaction contains every kind of write."""
    office.put(ticket(ticket_id="old"))
    office.put(Session(session_id="s1", agent="ann", expires=AT + timedelta(days=90)))
    office.put(ticket(ticket_id="there"))

    with office.transaction() as tx:
        tx.create(ticket())
        tx.put(event())
        tx.update(Ticket.Key(ticket_id="old"), Ticket.status.set("closed"), Ticket.replies.add(2))
        tx.delete(Session.Key(session_id="s1"))
        tx.check(Ticket.Key(ticket_id="there"), when=Ticket.status == "open")

    assert office.get(Ticket.Key(ticket_id="t1")) == ticket()
    assert office.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")) == event()
    old = office.get(Ticket.Key(ticket_id="old"))
    assert old is not None
    assert (old.status, old.replies) == ("closed", 2)
    assert office.get(Session.Key(session_id="s1")) is None


def test_no_write_is_done_if_one_condition_fails(office: Connection) -> None:
    """A transaction with one failing condition changes no item."""
    office.put(ticket())

    tx = office.transaction()
    tx.put(event())
    tx.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"), when=Ticket.status == "pending")
    with pytest.raises(TransactionCancelled), tx:
        pass

    assert office.get(Ticket.Key(ticket_id="t1")) == ticket()
    assert office.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")) is None


def test_an_exception_in_the_block_sends_nothing(office: Connection) -> None:
    """Intents recorded before an exception are discarded, and the exception propagates."""
    tx = office.transaction()
    tx.put(event())
    with pytest.raises(ZeroDivisionError), tx:
        raise ZeroDivisionError

    assert office.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")) is None


def test_an_empty_transaction_sends_no_request(office: Connection) -> None:
    """An empty transaction makes no request."""
    with office.measure() as spent, office.transaction():
        pass

    assert spent.calls == 0


def test_it_can_be_committed_before_the_end(office: Connection) -> None:
    """After an explicit commit the end of the block does nothing, and further intents are refused."""
    with office.transaction() as tx:
        tx.put(event())
        tx.commit()

        assert office.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")) == event()
        with pytest.raises(TransactionRefused, match="was added after the commit"):
            tx.put(event(2))
        with pytest.raises(TransactionRefused, match="committed already"):
            tx.commit()


def test_a_failed_commit_is_not_repeated_by_the_end_of_the_block(office: Connection) -> None:
    """A cancellation caught inside the block is handled."""
    office.put(event())

    with office.transaction() as tx:
        tx.create(event())
        with pytest.raises(TransactionCancelled):
            tx.commit()

    assert office.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")) == event()


def test_two_tables_in_one(office: Connection) -> None:
    """A transaction spans tables."""
    with office.transaction() as tx:
        tx.create(ticket())
        tx.create(Order(order_id="o1", customer="c1"))

    assert office.get(Ticket.Key(ticket_id="t1")) is not None
    assert office.get(Order.Key(order_id="o1")) is not None


# Why not.


def test_s3_each_failed_intent_has_its_reason(office: Connection) -> None:
    """Each failed intent has its own reason, with the stored item typed as its entity."""
    stale = Order(order_id="o2", customer="c")
    office.create(stale)
    office.update(Order.Key(order_id="o2"), Order.note.set("other"))
    office.create(Order(order_id="o1", customer="c", total=7))
    office.put(ticket())

    tx = office.transaction()
    placed = tx.create(Order(order_id="o1", customer="d"))
    locked = tx.put(stale)
    closed = tx.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(1), when=Ticket.status == "closed")
    absent = tx.update(Ticket.Key(ticket_id="t9"), Ticket.replies.add(1))
    fine = tx.put(event())
    checked = tx.check(Order.Key(order_id="o9"))
    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()

    error = caught.value
    assert [reason and reason.kind for reason in error.reasons] == [
        "exists", "lock", "condition", "missing", None, "missing",
    ]  # fmt: skip
    assert list(error.failed) == [placed, locked, closed, absent, checked]
    assert fine not in error.failed
    assert error.failed[placed].item == Order(order_id="o1", customer="c", total=7, revision=1)
    found = error.failed[locked].item
    assert found is not None
    assert found.note == "other"
    assert error.failed[closed].item == ticket()
    assert error.failed[absent].item is None
    assert [type(error.failed[intent].error).__name__ for intent in error.failed] == [
        "ItemExists", "LockConflict", "ConditionFailed", "ItemMissing", "ItemMissing",
    ]  # fmt: skip
    assert isinstance(error.__cause__, TransactionCanceledFault)
    assert not isinstance(error, TransactionItemExists)
    assert "<create Order order_id='o1'>: Order order_id='o1' already exists" in str(error)
    with pytest.raises(LockConflict):
        raise error.failed[locked].error


def test_intents_and_reasons_are_typed(office: Connection) -> None:
    """Type checkers infer the entity of an intent, of its reason, and of the stored item."""
    office.create(Order(order_id="o1", customer="c"))
    tx = office.transaction()
    placed = tx.create(Order(order_id="o1", customer="c"))
    moved = tx.update(
        Ticket.Key(ticket_id="t1"),
        Ticket.status.set("closed"),
        Ticket.customer_id.set("c"),
        Ticket.subject.set("VPN"),
        Ticket.created_at.set(AT),
        create=True,
    )
    gone = tx.delete(Event.Key(ticket_id="t1", at=AT, event_id="e1"))
    assert_type(placed, Intent[Order])
    assert_type(moved, Intent[Ticket])
    assert_type(gone, Intent[Event])

    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()

    assert_type(caught.value.failed[placed], WriteFailure[Order])
    assert_type(caught.value.failed[placed].item, Order | None)
    assert caught.value.failed[placed].item is not None


def test_pitfall_9_only_the_duplicate_key_means_already_done(office: Connection) -> None:
    """Pitfall 9: of a retried creation, exactly one class says that it was done before."""

    def place(total: int, limit: int) -> str:
        try:
            with office.transaction() as tx:
                tx.create(Order(order_id="o1", customer="c", total=total))
                tx.update(
                    Account.Key(account_id=1), Account.balance.add(-total), when=Account.balance >= limit
                )
        except ItemExists as error:
            return f"already done: {error.found.total}"
        except TransactionCancelled as error:
            return ", ".join(reason.kind for reason in error.failed.values())
        return "done"

    office.put(Account(account_id=1, balance=10))

    assert place(4, limit=100) == "condition"  # not done, however often
    assert place(4, limit=4) == "done"
    assert place(4, limit=4) == "already done: 4"
    with pytest.raises(TransactionItemExists), office.transaction() as tx:
        tx.create(Order(order_id="o1", customer="c"))
    assert place(4, limit=100) == "exists, condition"  # more is wrong than that it was done
    account = office.get(Account.Key(account_id=1))
    assert account is not None
    assert account.balance == 6


def test_conflicts_of_an_emulated_service_are_waited_out(clock: ManualClock) -> None:
    """On an engine where transactions meet each other, single writes and transactions come through."""
    with connect("memory:", emulate="conflicts=4ms,seed=3", retry_policy=RetryPolicy(base_s=0.002)) as db:
        db.create_tables(Office)
        db.put(Account(account_id=1))
        for _ in range(20):
            with db.transaction() as tx:
                tx.update(Account.Key(account_id=1), Account.balance.add(1))

        (account,) = db.get_together(Account.Key(account_id=1))

    assert account is not None
    assert account.balance == 20


def test_an_item_that_grows_too_large(office: Connection) -> None:
    """The reason of an update past 400 KB is too_large, on every backend."""
    office.create(Order(order_id="o1", customer="c", note="x" * 200_000))
    tx = office.transaction()
    grown = tx.update(Order.Key(order_id="o1"), Order.note.set("x" * 420_000))

    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()

    assert caught.value.failed[grown].kind == "too_large"
    assert isinstance(caught.value.failed[grown].error, ItemSizeExceeded)


def test_an_item_alone_that_is_too_large(office: Connection) -> None:
    """A single write past 400 KB has a specific error, unlike other invalid requests; nothing is written."""
    standing = office.create(Order(order_id="o1", customer="c", note="x" * 200_000))

    with pytest.raises(ItemSizeExceeded):
        office.update(Order.Key(order_id="o1"), Order.note.set("x" * 420_000))
    with pytest.raises(ItemSizeExceeded):
        office.put(Order(order_id="o1", customer="c", note="x" * 420_000))
    with pytest.raises(ItemSizeExceeded):
        office.create(Order(order_id="o2", customer="c", note="x" * 420_000))

    assert office.get(Order.Key(order_id="o1")) == standing
    assert office.get(Order.Key(order_id="o2")) is None


def test_other_faults_arrive_as_they_are(office: Connection) -> None:
    """A fault of the request itself is raised as that fault, not as a cancellation."""
    with pytest.raises(ValidationFault), office.transaction() as tx:
        tx.put(Order(order_id="o1", customer="c", note="x" * 420_000))


# Refusals before a request.


def test_a_second_intent_on_one_item_is_refused_at_once(office: Connection) -> None:
    """The error names the item, before a request is sent."""
    tx = office.transaction()
    first = tx.put(ticket())
    with office.measure() as spent, pytest.raises(TransactionRefused) as caught, tx:
        tx.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"))

    assert caught.value.intents[0] is first
    assert "<put Ticket ticket_id='t1'> and <update Ticket ticket_id='t1'> write the same item" in str(
        caught.value
    )
    assert spent.calls == 0


def test_a_hundred_is_the_most(office: Connection) -> None:
    """A hundred intents are done together; the next is refused when it is added."""
    with office.transaction() as tx:
        for number in range(100):
            tx.put(event(number))
        with pytest.raises(TransactionRefused, match="is action number 101"):
            tx.put(event(100))

    assert office.count(Event.InTicket(ticket_id="t1")) == 100


def test_invalid_intents_are_refused_at_once(office: Connection) -> None:
    """An update without a change, of a key, or with an invalid token is refused when it is added."""
    tx = office.transaction()

    with pytest.raises(ModelError, match="no change was passed"):
        tx.update(Ticket.Key(ticket_id="t1"))
    with pytest.raises(ModelError, match="part of the primary key"):
        tx.update(Ticket.Key(ticket_id="t1"), Ticket.ticket_id.set("t2"))
    with pytest.raises(TransactionRefused, match="its token has 40 characters"):
        office.transaction("x" * 40)


# The token.


def test_a_token_counts_once(office: Connection) -> None:
    """The same transaction with the same token is done once, and answered twice."""
    office.put(ticket())
    for _ in range(2):
        with office.transaction(token="payment-7") as tx:
            tx.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(1))

    found = office.get(Ticket.Key(ticket_id="t1"))
    assert found is not None
    assert found.replies == 1
    with pytest.raises(IdempotentParameterMismatchFault), office.transaction(token="payment-7") as tx:
        tx.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(2))


def test_a_lost_answer_is_no_second_write() -> None:
    """A transaction whose response was lost is sent again with its token, and executed once."""

    class Losing:
        """A backend that does the first transaction, and loses the answer."""

        def __init__(self, inner: Backend) -> None:
            self.inner = inner
            self.tokens: list[str] = []

        def call(self, operation: str, request: Any) -> dict[str, Any]:
            answer = self.inner.call(operation, request)
            if operation == "TransactWriteItems":
                self.tokens.append(request["ClientRequestToken"])
                if len(self.tokens) == 1:
                    from tavola.client.backend import ResponseMissing

                    raise ResponseMissing("the line went dead")
            return answer

        def close(self) -> None:
            self.inner.close()

    with connect("memory:") as made:
        made.create_tables(Office)
        made.put(Account(account_id=1))
        backend = Losing(made.backend)
        db = Connection(
            backend, context=Context(entropy=SeededEntropy(1), retry_policy=RetryPolicy(base_s=0))
        )
        with db.transaction() as tx:
            tx.update(Account.Key(account_id=1), Account.balance.add(5))

        found = made.get(Account.Key(account_id=1))

    assert found is not None
    assert found.balance == 5
    assert len(backend.tokens) == 2
    assert len(set(backend.tokens)) == 1


# Index keys.


def test_updates_in_a_transaction_update_index_keys(office: Connection) -> None:
    """If keys need fields outside the updates, all such items are read first, in one request."""
    for number in range(3):
        office.put(Order(order_id=f"o{number}", customer=f"c{number}", total=number))

    with office.measure() as spent, office.transaction() as tx:
        for number in range(3):
            tx.update(Order.Key(order_id=f"o{number}"), Order.state.set("paid"), Order.total.add(10))

    assert spent.operations == {"BatchGetItem": 1, "TransactWriteItems": 1}
    for number in range(3):
        found = list(office.query(Order.ByState(customer=f"c{number}", state="paid").total.gte(10)))
        assert [order.order_id for order in found] == [f"o{number}"]
        assert not list(office.query(Order.ByState(customer=f"c{number}", state="new")))


def test_an_overtaken_transaction_is_computed_again(office: Connection) -> None:
    """If an item changes between read and write, the transaction starts again from the items in the refusal."""
    office.put(Order(order_id="o1", customer="c"))
    office.put(Order(order_id="o2", customer="c"))
    steps = commit(
        office.context,
        _record_intents(office, lambda tx: [
            tx.update(Order.Key(order_id="o1"), Order.state.set("paid")),
            tx.update(Order.Key(order_id="o2"), Order.state.set("paid")),
        ]),
    )  # fmt: skip
    operations = []
    answer: Any = None
    try:
        effect = steps.send(None)
        while True:
            if isinstance(effect, Call):
                operations.append(effect.operation)
                if operations == ["BatchGetItem", "TransactWriteItems"]:
                    office.update(Order.Key(order_id="o2"), Order.customer.set("d"))
                try:
                    answer = office.call(effect.operation, effect.request)
                except Fault as fault:
                    effect = steps.throw(fault)
                    continue
            effect = steps.send(answer)
    except StopIteration:
        pass

    assert operations == ["BatchGetItem", "TransactWriteItems", "TransactWriteItems"]
    assert [o.order_id for o in office.query(Order.ByState(customer="c", state="paid"))] == ["o1"]
    assert [o.order_id for o in office.query(Order.ByState(customer="d", state="paid"))] == ["o2"]


def _record_intents(db: Any, record: Callable[[Any], Any]) -> tuple[Intent[Any], ...]:
    tx = db.transaction()
    record(tx)
    return tuple(tx.intents)


def test_an_entity_that_refuses_to_read_refuses_in_a_transaction(office: Connection) -> None:
    """With stale="refuse", an update that needs a read is refused before a request is sent."""
    office.put(Fixed(fixed_id="f1", group="g", rank=1))

    with pytest.raises(UpdateIncomplete), office.transaction() as tx:
        tx.update(Fixed.Key(fixed_id="f1"), Fixed.group.set("h"))
    with office.transaction() as tx:
        tx.update(Fixed.Key(fixed_id="f1"), Fixed.group.set("h"), Fixed.rank.set(2))

    assert [f.rank for f in office.query(Fixed.ByGroup(group="h"))] == [2]


# Expiry.


def test_an_expired_item_is_absent(office: Connection, clock: ManualClock) -> None:
    """Every kind of intent treats an expired item as absent, deleted or not."""
    ends = datetime.fromtimestamp(clock.now() + 100, UTC)
    for number in range(5):
        office.put(Order(order_id=f"o{number}", customer="c", state="old", ends=ends, note="old"))
    clock.advance(100)

    with office.transaction() as tx:
        tx.create(Order(order_id="o0", customer="d"))
        tx.put(Order(order_id="o1", customer="d"), when=Order.customer.not_exists())
        tx.update(
            Order.Key(order_id="o2"),
            Order.customer.set("d"),
            Order.total.add(1),
            Order.state.set("up"),
            create=True,
        )
        tx.check(Order.Key(order_id="o3"), when=Order.order_id.not_exists())
    tx = office.transaction()
    changed = tx.update(Order.Key(order_id="o4"), Order.note.set("new"))
    checked = tx.check(Order.Key(order_id="o3"), when=Order.order_id.exists())
    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()

    assert office.get(Order.Key(order_id="o0")) == Order(order_id="o0", customer="d", revision=1)
    assert office.get(Order.Key(order_id="o1")) == Order(order_id="o1", customer="d", revision=1)
    assert office.get(Order.Key(order_id="o2")) == Order(
        order_id="o2", customer="d", total=1, state="up", revision=1
    )
    assert [o.order_id for o in office.query(Order.ByState(customer="d", state="up"))] == ["o2"]
    assert caught.value.failed[changed].kind == "missing"
    assert caught.value.failed[checked].kind == "condition"
    assert caught.value.failed[checked].item is None


# Reads of one moment.


def test_items_of_one_moment(office: Connection) -> None:
    """Entities of several kinds and tables are read together, in the order of their keys, typed each by itself."""
    office.put(ticket())
    office.put(Order(order_id="o1", customer="c"))

    one = office.get_together(Ticket.Key(ticket_id="t1"))
    both = office.get_together(Ticket.Key(ticket_id="t1"), Order.Key(order_id="o1"))
    five = office.get_together(
        Order.Key(order_id="o1"),
        Ticket.Key(ticket_id="t2"),
        Feedback.Key(ticket_id="t1"),
        Ticket.Key(ticket_id="t1"),
        Order.Key(order_id="o1"),
    )
    listed = office.get_together([Ticket.Key(ticket_id=f"t{n}") for n in (3, 1, 1)])

    assert_type(one, tuple[Ticket | None])
    assert_type(both, tuple[Ticket | None, Order | None])
    assert_type(five, tuple[Order | None, Ticket | None, Feedback | None, Ticket | None, Order | None])
    assert_type(listed, list[Ticket | None])
    order = Order(order_id="o1", customer="c", revision=1)
    assert one == (ticket(),)
    assert both == (ticket(), order)
    assert five == (order, None, None, ticket(), order)
    assert listed == [None, ticket(), ticket()]


def test_a_transactional_read_hides_expired_items(office: Connection, clock: ManualClock) -> None:
    """An expired item is None."""
    ends = datetime.fromtimestamp(clock.now() + 100, UTC)
    office.put(Order(order_id="o1", customer="c", ends=ends))
    clock.advance(100)

    assert office.get_together(Order.Key(order_id="o1")) == (None,)


def test_more_than_a_hundred_are_not_of_one_moment(office: Connection) -> None:
    """101 keys are refused with the way that reads them; no keys at all are no request."""
    with pytest.raises(TransactionRefused, match=r"get_many\(\) reads any number"):
        office.get_together([Order.Key(order_id=str(n)) for n in range(101)])
    with office.measure() as spent:
        assert office.get_together([Order.Key(order_id=str(n)) for n in range(0)]) == []

    assert spent.calls == 0


def transfers(db: Connection, seed: int, count: int) -> None:
    """Move money between three accounts, always in one transaction."""
    entropy = SeededEntropy(seed)
    for _ in range(count):
        drawn = entropy.bytes(3)
        giver, taker, amount = drawn[0] % 3, (drawn[0] + 1 + drawn[1] % 2) % 3, drawn[2] % 40
        try:
            with db.transaction() as tx:
                tx.update(
                    Account.Key(account_id=giver),
                    Account.balance.add(-amount),
                    when=Account.balance >= amount,
                )
                tx.update(Account.Key(account_id=taker), Account.balance.add(amount))
        except TransactionCancelled as error:
            if {reason.kind for reason in error.failed.values()} != {"condition"}:
                raise


def pictures(db: Connection, count: int) -> Iterator[int]:
    """Yield the sum of the three accounts, read together, `count` times."""
    for _ in range(count):
        found = db.get_together([Account.Key(account_id=n) for n in range(3)])
        yield sum(account.balance for account in found if account is not None)


def torn_pictures(db: Connection, count: int) -> Iterator[int]:
    """Yield the sum of the three accounts, read one by one with a write in between: the planted fault."""
    for _ in range(count):
        first = db.get(Account.Key(account_id=0))
        with db.transaction() as tx:
            tx.update(Account.Key(account_id=0), Account.balance.add(-5))
            tx.update(Account.Key(account_id=1), Account.balance.add(5))
        rest = [db.get(Account.Key(account_id=n)) for n in (1, 2)]
        yield sum(account.balance for account in [first, *rest] if account is not None)


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_money_is_neither_made_nor_lost(request: pytest.FixtureRequest, kind: str) -> None:
    """With concurrent transactions, every consistent read of all accounts adds up, and no balance is negative."""
    target = "memory:" if kind == "memory" else request.getfixturevalue("served")
    prefix = f"money{id(request)}-"
    with connect(target, table_prefix=prefix) as db:
        db.create_tables(Office)
        for number in range(3):
            db.put(Account(account_id=number, balance=100))
        workers = [Thread(target=transfers, args=(db, seed, 30)) for seed in range(4)]
        for worker in workers:
            worker.start()
        seen = set(pictures(db, 40))
        for worker in workers:
            worker.join()
        left = [account.balance for account in db.scan(Account)]
        torn = set(torn_pictures(db, 2))
        db.delete_tables(Office)

    assert seen == {300}
    assert sum(left) == 300
    assert min(left) >= 0
    assert torn == {305}  # the check sees a picture that is not of one moment


async def check_types(db: AsyncConnection) -> None:
    """What type checkers infer for the asynchronous connection; it is not run."""
    async with db.transaction() as tx:
        assert_type(tx.create(Order(order_id="o", customer="c")), Intent[Order])
    assert_type(
        await db.get_together(Order.Key(order_id="o"), Ticket.Key(ticket_id="t")),
        tuple[Order | None, Ticket | None],
    )
    assert_type(await db.get_together([Order.Key(order_id="o")]), list[Order | None])
