"""Many entities at once: gets, puts and deletes in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    Fault,
    ItemSizeExceeded,
    ModelError,
    PrimaryKey,
    RetryPolicy,
    Table,
    TableMissing,
    attr,
    connect,
)
from tavola.client.backend import ResponseMissing, encode_request
from tavola.client.batches import BatchUnfinished, Progress
from tavola.client.context import Context
from tavola.errors import TavolaError
from tavola.protocol.faults import InternalServerFault, ProvisionedThroughputExceededFault
from tests.client.desk import Desk, Event, Feedback, Session, Ticket

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def tickets(count: int) -> list[Ticket]:
    """Return `count` tickets."""
    return [
        Ticket(ticket_id=f"t{n}", customer_id=f"c{n % 7}", subject=f"s{n}", created_at=AT)
        for n in range(count)
    ]


def key(number: int) -> Ticket.Key:
    """Return the key of one of them."""
    return Ticket.Key(ticket_id=f"t{number}")


class Sieve:
    """A backend that forwards batches and leaves the members that a rule selects unprocessed."""

    def __init__(self, db: Connection, leaves: Any) -> None:
        self._db = db
        self._leaves = leaves
        self.requests: list[dict[str, Any]] = []

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a call, without the members that are left."""
        if not operation.startswith("Batch"):
            return self._db.call(operation, request)
        self.requests.append(dict(request["RequestItems"]))
        left: dict[str, Any] = {}
        passed: dict[str, Any] = {}
        for table, content in request["RequestItems"].items():
            members = content["Keys"] if operation == "BatchGetItem" else content
            stay = [each for each in members if self._leaves(len(self.requests), each)]
            go = [each for each in members if each not in stay]
            wrap = (lambda part: {"Keys": part}) if operation == "BatchGetItem" else (lambda part: part)
            if stay:
                left[table] = wrap(stay)
            if go:
                passed[table] = wrap(go)
        member = "UnprocessedKeys" if operation == "BatchGetItem" else "UnprocessedItems"
        answer = self._db.call(operation, {"RequestItems": passed}) if passed else {"Responses": {}}
        return {**answer, member: left}

    def close(self) -> None:
        """Leave the other open."""


@pytest.fixture
def sieved() -> Iterator[Any]:
    """Make connections over a memory that leave members undone; and the memory's own connection."""
    with connect("memory:") as inner:
        inner.create_tables(Desk)

        def make(leaves: Any) -> tuple[Connection, Sieve]:
            sieve = Sieve(inner, leaves)
            return Connection(
                sieve, context=Context(retry_policy=RetryPolicy(attempts_max=3, base_s=0.00001))
            ), sieve

        yield make


def test_a_batch_get_of_more_than_a_hundred_keys_preserves_order(db: Connection) -> None:
    """Pitfall 12: results are in the order of the keys, with None for a missing item, past 100 keys."""
    db.put_many(tickets(230))
    keys = [key(n) for n in [*range(229, -1, -1), 999, 5, 5]]

    found = db.get_many(keys)

    assert [each and each.ticket_id for each in found] == [
        *(f"t{n}" for n in range(229, -1, -1)), None, "t5", "t5",
    ]  # fmt: skip


def test_equal_keys_return_separate_entities(db: Connection) -> None:
    """Two results for the same key do not share an object, so changing one does not affect the other."""
    db.put_many(tickets(1))

    first, second = db.get_many([key(0), key(0)])

    assert first == second
    assert first is not second


def test_keys_of_several_kinds_are_got_as_a_tuple(db: Connection) -> None:
    """get_all takes keys of any entities and returns each with its own type, in order."""
    event = Event(ticket_id="t0", at=AT, event_id="e1", kind="opened")
    db.put_many([*tickets(1), event])

    ticket, found, missing = db.get_all(
        key(0), Event.Key(ticket_id="t0", at=AT, event_id="e1"), Feedback.Key(ticket_id="t0")
    )

    assert (ticket and ticket.ticket_id, found, missing) == ("t0", event, None)


def test_expired_items_are_hidden_from_batches(db: Connection, clock: Any) -> None:
    """A batch hides expired items as a get does."""
    until = datetime.fromtimestamp(clock.now(), UTC) + timedelta(hours=1)
    db.put_many([Session(session_id="s1", agent="ann", expires=until)])
    clock.advance(7200)

    assert db.get_many([Session.Key(session_id="s1")]) == [None]


def test_delete_many_ignores_missing_items(db: Connection) -> None:
    """delete_many takes keys and entities; a missing item is not an error."""
    stored = tickets(60)
    db.put_many(stored)

    assert db.delete_many([*(key(n) for n in range(50)), *stored[50:], key(999)]) == 61
    assert list(db.scan(Ticket)) == []


def test_the_last_write_of_a_key_wins(db: Connection) -> None:
    """Several writes of one key in a batch, which DynamoDB refuses, become the last of them;

    also a delete after a put.
    """
    first = tickets(3)
    later = [each.model_copy(update={"subject": "later"}) for each in first]

    db.write_many(puts=[*first, *later], deletes=[key(2)])

    assert [each and each.subject for each in db.get_many([key(n) for n in range(3)])] == [
        "later",
        "later",
        None,
    ]


def test_index_keys_are_written(db: Connection) -> None:
    """Items put in a batch are found through their indexes."""
    db.put_many(tickets(10))

    assert {each.ticket_id for each in db.query(Ticket.ByCustomer(customer_id="c1"))} == {"t1", "t8"}


def test_progress_is_reported(db: Connection) -> None:
    """The callback receives the number of finished items, and the total if it is known."""
    reports: list[Progress] = []

    db.put_many(tickets(120), progress=reports.append)
    db.put_many(iter(tickets(2)), progress=reports.append)

    assert [(each.done, each.total) for each in reports] == [(100, 120), (120, 120), (2, None)]


def test_a_generator_is_never_held(sieved: Any) -> None:
    """Entities are taken when their requests go out: some hundred are alive at a time."""
    db, sieve = sieved(lambda number, member: False)
    ahead: list[int] = []

    def stream() -> Iterator[Ticket]:
        for number, ticket in enumerate(tickets(1000)):
            ahead.append(number - 25 * len(sieve.requests))
            yield ticket

    db.put_many(stream())

    assert max(ahead) <= 100
    assert all(len(writes) <= 25 for request in sieve.requests for writes in request.values())


def test_unprocessed_writes_are_sent_again(sieved: Any) -> None:
    """Pitfall 12: unprocessed writes are sent again until they are done."""
    db, sieve = sieved(lambda number, member: number % 3 and "7" in member["PutRequest"]["Item"]["pk"]["S"])

    db.put_many(tickets(80))

    assert all(db.get(key(n)) for n in range(80))
    assert len(sieve.requests) > 4


def test_unprocessed_keys_are_read_again(sieved: Any) -> None:
    """Pitfall 12: unprocessed keys are not lost."""
    db, _ = sieved(lambda number, member: number < 4 and "7" in str(member))
    db.backend.call("PutItem", {"TableName": "Desk", "Item": {"pk": {"S": "x"}, "sk": {"S": "y"}}})
    for ticket in tickets(80):
        db.put(ticket)

    assert all(db.get_many([key(n) for n in range(80)]))


def test_an_unprocessed_write_never_overwrites_a_later_one(sieved: Any) -> None:
    """An unprocessed write is sent again before the writes after it."""
    db, _ = sieved(lambda number, member: number == 1)
    stream = [*tickets(100), *(each.model_copy(update={"subject": "later"}) for each in tickets(100))]

    db.put_many(stream)

    assert {each.subject for each in db.get_many([key(n) for n in range(100)])} == {"later"}


def test_writes_that_stay_unprocessed_are_reported(sieved: Any) -> None:
    """After several rounds without progress the batch fails with the unprocessed writes, as the caller passed them."""
    stored = tickets(30)
    db, _ = sieved(lambda number, member: member["PutRequest"]["Item"]["pk"]["S"] == "TICKET#t3")

    with pytest.raises(BatchUnfinished, match="Ticket ticket_id='t3'") as refused:
        db.put_many(stored)

    assert refused.value.left == (stored[3],)
    assert refused.value.done == 29


def test_keys_that_stay_unprocessed_are_reported(sieved: Any) -> None:
    """Reads likewise: no key is dropped silently."""
    db, _ = sieved(lambda number, member: True)

    with pytest.raises(BatchUnfinished) as refused:
        db.get_many([key(1)])

    assert refused.value.left[0].ticket_id == "t1"


def test_a_lasting_throttle_ends_the_batch_with_what_is_left() -> None:
    """A request that is throttled for too long leaves the batch unfinished, with the fault as its cause."""

    class Throttled:
        def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            raise ProvisionedThroughputExceededFault("too much")

        def close(self) -> None:
            pass

    db = Connection(Throttled(), context=Context(retry_policy=RetryPolicy(attempts_max=2, base_s=0.00001)))

    with pytest.raises(BatchUnfinished) as refused:
        db.put_many(tickets(3))

    assert len(refused.value.left) == 3
    assert isinstance(refused.value.__cause__, ProvisionedThroughputExceededFault)


class Lost:
    """A backend that executes requests and loses the responses to the first batches."""

    def __init__(self, inner: Any, times: int, error: TavolaError) -> None:
        self._inner, self._times, self._error = inner, times, error

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, unless it is lost."""
        answer: dict[str, Any] = self._inner.call(operation, request)
        if operation.startswith("Batch") and self._times:
            self._times -= 1
            raise self._error
        return answer

    def close(self) -> None:
        """Leave the other open."""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ResponseMissing("the cable is out"),
            r"no response came \(the cable is out\); some of them may have been written",
        ),
        (InternalServerFault("it went wrong"), r"the service failed \(it went wrong\)"),
        (ProvisionedThroughputExceededFault("too much"), "too little capacity"),
    ],
)
def test_an_unfinished_batch_reports_its_cause(error: TavolaError, message: str) -> None:
    """A network failure is not reported as a lack of capacity."""
    with connect("memory:") as inner:
        inner.create_tables(Desk)
        patience = RetryPolicy(attempts_max=2, base_s=0.00001)
        db = Connection(Lost(inner.backend, 99, error), context=Context(retry_policy=patience))

        with pytest.raises(BatchUnfinished, match=message) as refused:
            db.put_many(tickets(3))

    assert refused.value.__cause__ is error


def test_a_batch_of_writes_that_no_answer_came_to_goes_out_again() -> None:
    """Puts and deletes without a condition come to the same done twice."""
    with connect("memory:") as inner:
        inner.create_tables(Desk)
        patience = RetryPolicy(attempts_max=3, base_s=0.00001)
        db = Connection(
            Lost(inner.backend, 2, ResponseMissing("lost")), context=Context(retry_policy=patience)
        )

        assert db.put_many(tickets(30)) == 30

        assert all(inner.get_many([key(n) for n in range(30)]))


def test_a_fault_of_a_batch_is_raised_as_itself(opened: Any) -> None:
    """A missing table is not retried."""
    db = opened()

    with pytest.raises(Fault, match="not found"):
        db.put_many(tickets(1))


class Wide(Table):
    """A table for entities that a batch must treat with care."""


class Sheet(Entity, table=Wide):
    """An item whose wire form is several times its size."""

    sheet_id: Attr[str]
    text: Attr[str]

    class Key(PrimaryKey["Sheet"], pk="SHEET#{sheet_id}", sk="SHEET"):
        sheet_id: str


class Locked(Entity, table=Wide):
    """An item with an optimistic lock."""

    locked_id: Attr[str]
    edition: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Locked"], pk="LOCKED#{locked_id}", sk="LOCKED"):
        locked_id: str


class Member(Entity, table=Wide):
    """An item with a unique field."""

    member_id: Attr[str]
    email: Attr[str] = attr(unique=True)

    class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
        member_id: str


def test_a_request_stays_under_16_mb() -> None:
    """25 items can be larger on the wire than in the table; requests are split by wire size."""
    sizes: list[int] = []

    class Weighing:
        def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            sizes.append(len(encode_request(operation, request)))
            return {"UnprocessedItems": {}}

        def close(self) -> None:
            pass

    sheets = [Sheet(sheet_id=str(n), text="\x01" * 200_000) for n in range(25)]

    assert Connection(Weighing()).put_many(sheets) == 25

    assert max(sizes) < 16 * 1024 * 1024
    assert sum(sizes) > 16 * 1024 * 1024


def test_a_batch_is_repeated_until_all_members_are_processed() -> None:
    """Pitfall 12: against an engine that leaves members unprocessed as AWS may, no member is lost."""
    with connect("memory:", emulate="unprocessed=0.5,seed=7", retry_policy=RetryPolicy(base_s=0.00001)) as db:
        db.create_tables(Desk)
        heard: list[Progress] = []

        db.put_many(tickets(300), progress=heard.append)

        assert any(each.unprocessed for each in heard)
        assert all(db.get_many([key(n) for n in range(300)]))


def test_entities_that_need_a_condition_are_refused(opened: Any) -> None:
    """A batch has no conditions:

    entities with a lock or unique fields are refused before a request is sent.
    """
    db = opened()

    with pytest.raises(ModelError, match=r"its lock \(edition\)"):
        db.put_many([Locked(locked_id="l1")])
    with pytest.raises(ModelError, match="email must be unique"):
        db.put_many([Member(member_id="m1", email="a@b")])
    with pytest.raises(ModelError, match="email must be unique"):
        db.delete_many([Member.Key(member_id="m1")])


@pytest.mark.parametrize("count", [1, 60])
def test_a_batch_with_an_item_that_is_too_large(db: Connection, count: int) -> None:
    """It is the same error whether the items fill one batch or several."""
    large = Ticket(ticket_id="large", customer_id="c", subject="x" * 420_000, created_at=AT)

    with pytest.raises(ItemSizeExceeded) as caught:
        db.put_many([large, *tickets(count - 1)])
    assert isinstance(caught.value.__cause__, Fault)


@pytest.mark.parametrize("count", [1, 60])
def test_a_batch_to_a_missing_table_names_it(opened: Callable[..., Connection], count: int) -> None:
    """The error names the table, for a single batch and for several."""
    with pytest.raises(TableMissing, match="create_tables"):
        opened().put_many(tickets(count))
