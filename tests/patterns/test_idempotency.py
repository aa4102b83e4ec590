"""Idempotency: what comes twice is done once and answered twice, whoever dies, loses an answer or comes at the same time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, field_serializer

from tavola import (
    Attr,
    Connection,
    Entity,
    ManualClock,
    PrimaryKey,
    RetryPolicy,
    Table,
    Transaction,
    TransactionCancelled,
    attr,
    connect,
    connect_async,
)
from tavola.client.backend import ResponseMissing
from tavola.patterns import (
    Answer,
    AnswerTooLarge,
    Idempotency,
    IdempotencyMismatch,
    InProgress,
    Lease,
    LeaseLost,
    Outcome,
    PatternProgram,
    Recipe,
    RecipeRefused,
    StoredFailure,
    call_client,
    recipe_method,
)
from tests.patterns.failing import SINGLE, TOGETHER, failing
from tests.patterns.interleaving import Running, interleavings


class Desk(Table, ttl="expires_at"):
    """The one table."""


class Requests(Outcome, table=Desk):
    """What became of requests."""

    class Key(PrimaryKey["Requests"], pk="REQUEST#{scope}#{request}", sk="OUTCOME"):
        scope: str
        request: str


class Ticket(Entity, table=Desk):
    """What a request makes."""

    ticket_id: Attr[str]
    title: Attr[str] = attr(default="")
    written: Attr[int] = attr(default=0)  # how often; more than 1 would be a request done twice

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str


class Receipt(BaseModel):
    """What a request is answered with."""

    ticket_id: str
    price: Decimal = Decimal(0)
    at: datetime | None = None


ROOT = Path(__file__).parents[2]
T1 = Ticket.Key(ticket_id="t1")
BODY = {"title": "no network", "tags": ["a", "b"]}


class NotEnough(Exception):
    """A failure that is an answer."""


def opening(ticket_id: str = "t1") -> Callable[[Transaction], Receipt]:
    """Return what makes a ticket, and counts how often it was made."""

    def fill(writes: Transaction) -> Receipt:
        writes.update(Ticket.Key(ticket_id=ticket_id), Ticket.written.add(1), create=True)
        return Receipt(ticket_id=ticket_id, price=Decimal("1.10"))

    return fill


def _written(db: Connection) -> int:
    """Return how often the ticket was made."""
    ticket = db.get(T1, consistent=True)
    return 0 if ticket is None else ticket.written


@pytest.fixture
def clock() -> ManualClock:
    """A clock far ahead: what expires by it is not deleted by a server that goes by the time of day."""
    return ManualClock(4_000_000_000.0)


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


@pytest.fixture
def requests(db: Connection, made: Callable[..., Any]) -> Any:
    """Requests answered with receipts."""
    return made(Idempotency, db, Requests, Receipt, failures=(NotEnough,))


# With the write.


def test_the_same_request_is_done_once(db: Connection, requests: Any) -> None:
    """What comes again is given the first answer, to the last digit, and nothing is written."""
    first = requests.together("k1", BODY, opening())
    with db.measure() as spent:
        again = requests.together("k1", BODY, opening())

    assert first == Answer(Receipt(ticket_id="t1", price=Decimal("1.10")), replayed=False)
    assert again == Answer(first.value, replayed=True)
    assert _written(db) == 1
    assert spent.writes == 0


def test_another_payload_under_the_same_key_is_refused(requests: Any) -> None:
    """A key stands for one payload, whatever the order of its names and the form of its numbers."""
    requests.together("k1", {"a": 1, "b": [1, 2]}, opening())

    assert requests.together("k1", {"b": (1, 2), "a": Decimal("1.0")}, opening()).replayed
    with pytest.raises(IdempotencyMismatch, match="Request 'k1' of '-' was sent before with another payload"):
        requests.together("k1", {"a": 1, "b": [2, 1]}, opening())
    with pytest.raises(IdempotencyMismatch):
        requests.once("k1", {"a": 2}, lambda lease: Receipt(ticket_id="t1"))


def test_scopes_are_apart(requests: Any) -> None:
    """One tenant's key is nothing to another's, also where the two could be read as one."""
    for scope, key in (("ann", "k1"), ("bob", "k1"), ("a#b", "c"), ("a", "b#c")):
        assert not requests.together(key, {"of": scope}, opening(f"{scope}-{key}"), scope=scope).replayed

    assert requests.find("k1", scope="ann").state == "completed"
    assert requests.find("k1") is None


def test_both_or_none(db: Connection, requests: Any) -> None:
    """Where the request's own condition stands in the way nothing is kept, and it can be tried again."""
    db.create(Ticket(ticket_id="t1"))

    def fill(writes: Transaction) -> Receipt:
        writes.create(Ticket(ticket_id="t1"))
        return Receipt(ticket_id="t1")

    for _ in range(2):
        with pytest.raises(TransactionCancelled) as caught:
            requests.together("k1", BODY, fill)
        assert [reason.kind for reason in caught.value.failed.values()] == ["exists"]
    assert requests.find("k1") is None
    db.delete(T1)
    assert not requests.together("k1", BODY, fill).replayed


def test_only_the_duplicate_key_means_done(db: Connection, requests: Any) -> None:
    """Pitfall 9: of all that can cancel a transaction, the outcome that is there already alone means done."""
    calls: list[int] = []

    def fill(writes: Transaction) -> Receipt:
        calls.append(1)
        writes.update(T1, Ticket.written.add(1))  # it is not there
        return Receipt(ticket_id="t1")

    with pytest.raises(TransactionCancelled):
        requests.together("k1", BODY, fill)
    assert len(calls) == 1, "it is tried once, not for ever"
    requests.together("k2", BODY, opening())
    assert requests.together("k2", BODY, fill).replayed


def test_a_failure_may_be_the_answer(requests: Any) -> None:
    """A failure of a declared kind is kept and told again; any other leaves the request to be tried again."""

    def failing(writes: Transaction) -> Receipt:
        raise NotEnough("3 of 5")

    def broken(writes: Transaction) -> Receipt:
        raise OSError("no disk")

    with pytest.raises(NotEnough):
        requests.together("k1", BODY, failing)
    with pytest.raises(StoredFailure, match="failed before with NotEnough: 3 of 5") as caught:
        requests.together("k1", BODY, opening())
    assert (caught.value.error_type, caught.value.message) == ("NotEnough", "3 of 5")
    with pytest.raises(OSError, match="no disk"):
        requests.together("k2", BODY, broken)
    assert not requests.together("k2", BODY, opening()).replayed


def test_an_outcome_is_forgotten(db: Connection, requests: Any, clock: ManualClock) -> None:
    """An outcome that has expired is none, whether or not it was deleted: the request is done anew."""
    requests.together("k1", BODY, opening())
    clock.advance(24 * 3600 - 1)
    assert requests.together("k1", BODY, opening()).replayed
    clock.advance(2)

    assert not requests.together("k1", {"other": 1}, opening()).replayed
    assert not requests.once("k2", BODY, lambda lease: Receipt(ticket_id="t2")).replayed
    clock.advance(24 * 3600 + 1)
    assert not requests.once("k2", {"other": 1}, lambda lease: Receipt(ticket_id="t2")).replayed
    assert _written(db) == 2


# Under a lease.


def test_work_is_done_once(requests: Any) -> None:
    """Work that no transaction holds is done once; the first caller sees the answer as the later ones do."""
    done: list[Lease] = []

    def work(lease: Lease) -> Receipt:
        done.append(lease)
        return Receipt(ticket_id="t1", at=datetime(2026, 9, 1, 12, tzinfo=UTC))

    first, again = requests.once("k1", BODY, work), requests.once("k1", BODY, work)
    assert (first.replayed, again.replayed, len(done)) == (False, True, 1)
    assert first.value == again.value
    assert requests.find("k1").state == "completed"


def test_what_is_in_progress_is_told(requests: Any, clock: ManualClock) -> None:
    """While somebody is at it, the others are told until when; waiting for it ends the same."""
    lease = requests.begin("k1", BODY)
    assert isinstance(lease, Lease)

    with pytest.raises(InProgress, match="is being done elsewhere") as caught:
        requests.once("k1", BODY, lambda lease: Receipt(ticket_id="t2"))
    assert caught.value.until == lease.until == datetime.fromtimestamp(clock.now() + 60, UTC)
    with pytest.raises(InProgress):
        requests.together("k1", BODY, opening(), wait=timedelta(milliseconds=25))
    with pytest.raises(IdempotencyMismatch):
        requests.begin("k1", {"other": 1})
    requests.complete(lease, Receipt(ticket_id="t1"))
    assert requests.begin("k1", BODY) == Answer(Receipt(ticket_id="t1"), replayed=True)


def test_the_lease_of_the_dead_passes_on(requests: Any, clock: ManualClock) -> None:
    """A holder that is gone leaves its lease to run out; the next one has a greater token, and the dead one none."""
    dead = requests.begin("k1", BODY)
    clock.advance(61)
    answer = requests.once("k1", BODY, lambda lease: Receipt(ticket_id=f"{lease.token > dead.token}"))

    assert answer == Answer(Receipt(ticket_id="True"), replayed=False)
    for late, told in (("complete", (Receipt(ticket_id="late"),)), ("extend", ()), ("release", ())):
        with pytest.raises(LeaseLost, match="took longer than its lease"):
            getattr(requests, late)(dead, *told)
    assert requests.begin("k1", BODY).value.ticket_id == "True"


def test_a_token_never_comes_again(requests: Any, clock: ManualClock) -> None:
    """Fencing holds also over a release: who held it first has no part in what a third begins."""
    first = requests.begin("k1", BODY)
    clock.advance(61)
    second = requests.begin("k1", BODY)
    requests.release(second)
    third = requests.begin("k1", {"another": "payload, for nothing came of the first"})

    assert first.token < second.token < third.token
    with pytest.raises(LeaseLost) as caught:
        requests.complete(first, Receipt(ticket_id="late"))
    assert caught.value.found.token == third.token


def test_late_and_still_the_holder(requests: Any, clock: ManualClock) -> None:
    """A lease that has ended is lost when another took it, and not before: the work is done, and is not to be done again."""
    lease = requests.begin("k1", BODY)
    clock.advance(600)
    requests.complete(lease, Receipt(ticket_id="t1"))

    assert requests.begin("k1", BODY).replayed


def test_a_lease_is_extended(requests: Any, clock: ManualClock) -> None:
    """Who needs longer extends the lease while it works, for as long again or as long as it says."""
    lease = requests.begin("k1", BODY)
    clock.advance(50)
    lease = requests.extend(lease)
    clock.advance(50)
    with pytest.raises(InProgress):
        requests.begin("k1", BODY)
    assert requests.extend(lease, timedelta(hours=1)).until == datetime.fromtimestamp(clock.now() + 3600, UTC)


def test_failed_work_is_released_or_kept(requests: Any) -> None:
    """An error of the work lets the next one try at once; one of a declared kind is kept and told again."""

    def broken(lease: Lease) -> Receipt:
        raise OSError("no network")

    def failing(lease: Lease) -> Receipt:
        raise NotEnough("3 of 5")

    with pytest.raises(OSError, match="no network"):
        requests.once("k1", BODY, broken)
    assert requests.find("k1").state == "released"
    assert not requests.once("k1", BODY, lambda lease: Receipt(ticket_id="t1")).replayed
    with pytest.raises(NotEnough):
        requests.once("k2", BODY, failing)
    with pytest.raises(StoredFailure, match="NotEnough: 3 of 5"):
        requests.once("k2", BODY, lambda lease: Receipt(ticket_id="t1"))


def test_an_error_of_the_overtaken_is_its_own(clock: ManualClock) -> None:
    """Work that fails after its lease passed on raises its own error, and leaves the other's outcome alone."""

    def failing(lease: Lease) -> Receipt:
        raise OSError("too late anyway")

    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        requests = Idempotency(db, Requests, Receipt)
        slow = Running(requests._run_once(None, "k1", BODY, failing, timedelta(0)))
        slow.step(db)  # it has its lease
        clock.advance(61)
        requests.once("k1", BODY, lambda lease: Receipt(ticket_id="other"))
        while not slow.done:
            slow.step(db)

        assert isinstance(slow.outcome, OSError)
        assert requests.once("k1", BODY, failing).value.ticket_id == "other"


def test_work_ends_in_a_transaction(db: Connection, requests: Any, clock: ManualClock) -> None:
    """The completion may join a transaction of one's own, which is cancelled where the lease is lost."""
    lease = requests.begin("k1", BODY)
    tx = db.transaction()
    tx.create(Ticket(ticket_id="t1"))
    requests.complete_in(tx, lease, Receipt(ticket_id="t1"))
    _commit(db, tx)
    dead = requests.begin("k2", BODY)
    clock.advance(61)
    requests.begin("k2", BODY)
    late = db.transaction()
    late.create(Ticket(ticket_id="t2"))
    intent = requests.complete_in(late, dead, Receipt(ticket_id="t2"))

    with pytest.raises(TransactionCancelled) as caught:
        _commit(db, late)
    assert list(caught.value.failed) == [intent]
    assert requests.begin("k1", BODY).value == Receipt(ticket_id="t1")
    assert db.get(Ticket.Key(ticket_id="t2")) is None


def _commit(db: Any, tx: Any) -> None:
    answer = tx.commit()
    if answer is not None:
        db._loop.run_until_complete(answer)


def test_the_transaction_takes_what_was_left(db: Connection, requests: Any, clock: ManualClock) -> None:
    """A request that was begun under a lease and left may be done in a transaction; its first holder is out then."""
    dead = requests.begin("k1", BODY)
    with pytest.raises(InProgress):
        requests.together("k1", BODY, opening())
    clock.advance(61)

    assert not requests.together("k1", BODY, opening()).replayed
    assert _written(db) == 1
    with pytest.raises(LeaseLost):
        requests.complete(dead, Receipt(ticket_id="late"))
    requests.release(requests.begin("k2", BODY))
    assert not requests.together("k2", BODY, opening("t2")).replayed


def test_an_answer_that_does_not_fit_is_a_failure(requests: Any) -> None:
    """An answer too large to keep: nothing is written with it, and work that was done is not done again."""
    large = Receipt(ticket_id="x" * 402_000)

    with pytest.raises(AnswerTooLarge, match="an outcome holds"):
        requests.together("k1", BODY, lambda writes: large)
    assert requests.find("k1") is None
    with pytest.raises(AnswerTooLarge):
        requests.once("k2", BODY, lambda lease: large)
    with pytest.raises(StoredFailure, match="AnswerTooLarge"):
        requests.once("k2", BODY, lambda lease: large)


class Crooked(BaseModel):
    """What is written cannot be read again."""

    number: int

    @field_serializer("number")
    def _words(self, number: int) -> str:
        return "seven"


def test_an_answer_that_cannot_be_read_again_is_a_failure(db: Connection, made: Callable[..., Any]) -> None:
    """An answer that no replay could give is refused before it is kept; work that was done is not done again."""
    requests = made(Idempotency, db, Requests, Crooked)
    done: list[int] = []

    def work(lease: Lease) -> Crooked:
        done.append(1)
        return Crooked(number=7)

    with pytest.raises(ValidationError):
        requests.together("k1", BODY, lambda writes: Crooked(number=7))
    assert requests.find("k1") is None
    with pytest.raises(ValidationError):
        requests.once("k2", BODY, work)
    with pytest.raises(StoredFailure, match="ValidationError"):
        requests.once("k2", BODY, work)
    assert len(done) == 1


# As a decorator.


def test_a_function_is_done_once_for_each_key() -> None:
    """A decorated function is called once for each key; its other arguments are the payload, defaults included."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        paid: list[str] = []
        payments = Idempotency(db, Requests, dict[str, Any], scope="payments")

        @payments.idempotent("key")
        def pay(key: str, amount: int, currency: str = "EUR") -> dict[str, Any]:
            """Pay."""
            paid.append(key)
            return {"paid": amount}

        assert pay("k1", 5) == pay("k1", amount=5, currency="EUR") == {"paid": 5}
        with pytest.raises(IdempotencyMismatch):
            pay("k1", 5, "USD")
        pay(key="k2", amount=5)
        assert paid == ["k1", "k2"]
        assert (pay.__name__, pay.__doc__) == ("pay", "Pay.")


class Till:
    """An object whose method is decorated."""

    def __init__(self, db: Connection) -> None:
        self.paid: list[int] = []
        payments: Idempotency[Connection, int] = Idempotency(db, Requests, int)

        @payments.idempotent(
            lambda order: f"order/{order['id']}",
            payload=lambda order: order["total"],
            scope=lambda order: order["tenant"],
        )
        def pay(order: dict[str, Any]) -> int:
            self.paid.append(order["total"])
            return len(self.paid)

        self.pay = pay


def test_key_payload_and_scope_are_made_of_the_arguments() -> None:
    """What is the key, what the payload and whose it is may be made of the arguments."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        till = Till(db)
        order = {"id": 1, "total": 5, "tenant": "ann", "trace": "a"}

        assert till.pay(order) == till.pay({**order, "trace": "b"}) == 1
        assert till.pay({**order, "tenant": "bob"}) == 2
        with pytest.raises(IdempotencyMismatch):
            till.pay({**order, "total": 6})


def test_a_coroutine_is_done_once_for_each_key() -> None:
    """With an asynchronous client, coroutines are decorated, and may be what fills or works."""

    async def story() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Desk)
            requests = Idempotency(db, Requests, int)
            done: list[int] = []

            @requests.idempotent("key")
            async def work(key: str, number: int) -> int:
                await asyncio.sleep(0)
                done.append(number)
                return number

            async def fill(writes: Any) -> int:
                assert await db.get(T1) is None
                writes.create(Ticket(ticket_id="t1"))
                return 7

            assert [await work("k1", 5), await work("k1", 5)] == [5, 5]
            assert done == [5]
            assert (await requests.together("k2", {}, fill)).value == 7
            assert (await requests.together("k2", {}, fill)).replayed
            assert (await requests.once("k3", {}, lambda lease: 8)).value == 8

    asyncio.run(story())


def test_what_cannot_be_decorated_is_refused() -> None:
    """A key that names no parameter, a lease longer than the life, an entity that does not expire: refused when made."""
    with connect("memory:") as db:
        requests = Idempotency(db, Requests, int)
        with pytest.raises(RecipeRefused, match="it has no parameter 'kye' to be the request's key"):
            requests.idempotent("kye")(lambda key: 1)
        with pytest.raises(RecipeRefused, match="life=0:00:01 at least as long"):
            Idempotency(db, Requests, int, life=timedelta(seconds=1))
        with pytest.raises(RecipeRefused, match="must be at least one second"):
            Idempotency(db, Requests, int, lease=timedelta(0))


# At the same time.

N = 12


@pytest.fixture(params=["memory", "http"])
def shared(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection that threads share."""
    target = "memory:" if request.param == "memory" else request.getfixturevalue("served")
    found = connect(
        target,
        table_prefix=f"{request.node.name[:20].replace('[', '-')}-",
        retry_policy=RetryPolicy(attempts_max=20),
    )
    found.create_tables(Desk)
    yield found
    found.delete_tables(Desk)
    found.close()


def _once_for_all(requests: Any, db: Connection) -> tuple[int, set[str]]:
    """Return how often a request's effect happened that many made at once, and what answers they were given."""

    def work(lease: Lease) -> Receipt:
        db.update(T1, Ticket.written.add(1), create=True)
        return Receipt(ticket_id=f"{lease.token}")

    with ThreadPoolExecutor(N) as pool:
        told = list(pool.map(lambda _: requests.once("k1", BODY, work, wait=timedelta(seconds=20)), range(N)))
    return _written(db), {answer.value.ticket_id for answer in told}


def test_threads_do_work_once(shared: Connection) -> None:
    """Of many that come at once with one key, one does the work; all are given the same answer."""
    written, answers = _once_for_all(Idempotency(shared, Requests, Receipt), shared)

    assert (written, len(answers)) == (1, 1)


def test_threads_write_once(shared: Connection) -> None:
    """The same with the outcome in the transaction: the write happens once, one answer is not replayed."""
    requests = Idempotency(shared, Requests, Receipt)
    with ThreadPoolExecutor(N) as pool:
        told = list(pool.map(lambda number: requests.together("k1", BODY, opening()), range(N)))

    assert _written(shared) == 1
    assert sum(not answer.replayed for answer in told) == 1
    assert len({answer.value.model_dump_json() for answer in told}) == 1


@pytest.mark.parametrize("target", ["memory", "http"])
def test_tasks_do_work_once(target: str, request: pytest.FixtureRequest) -> None:
    """Tasks on one loop are no different: one does the work, all are given its answer."""
    where = "memory:" if target == "memory" else request.getfixturevalue("served")

    async def story() -> None:
        async with connect_async(where, table_prefix="tasks-") as db:
            await db.create_tables(Desk)
            requests = Idempotency(db, Requests, Receipt)
            done: list[int] = []

            async def work(lease: Lease) -> Receipt:
                done.append(lease.token)
                for _ in range(20):
                    await asyncio.sleep(0)
                return Receipt(ticket_id=f"{lease.token}")

            told = await asyncio.gather(
                *(requests.once("k1", BODY, work, wait=timedelta(seconds=20)) for _ in range(N))
            )
            await db.delete_tables(Desk)
            assert len(done) == 1
            assert {answer.value.ticket_id for answer in told} == {f"{done[0]}"}

    asyncio.run(story())


KILLED = """
import sys
from tavola import connect
from tavola.patterns import Idempotency
from tests.patterns.test_idempotency import BODY, Receipt, Requests

with connect(sys.argv[1], table_prefix=sys.argv[2]) as db:
    lease = Idempotency(db, Requests, Receipt).begin("k1", BODY)
    print(lease.token, lease.until.timestamp(), flush=True)
    sys.stdin.read()
"""


def test_the_lease_of_a_killed_program_passes_on(served: str) -> None:
    """A program that is killed in its work holds up the request until its lease has ended, and no longer."""
    clock = ManualClock()
    with connect(served, clock=clock, table_prefix="killed-") as db:
        db.create_tables(Desk)
        command = [sys.executable, "-c", KILLED, served, "killed-"]
        with Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as program:
            assert program.stdout is not None
            token, until_s = map(float, program.stdout.readline().split())
            program.kill()
        requests = Idempotency(db, Requests, Receipt)
        clock.set(until_s - 1)
        with pytest.raises(InProgress):
            requests.once("k1", BODY, _working(db))
        clock.set(until_s + 1)
        answer = requests.once("k1", BODY, _working(db))
        outcome = requests.find("k1")
        db.delete_tables(Desk)

    assert not answer.replayed
    assert outcome is not None
    assert outcome.token > token


class Naive(Recipe[Connection]):
    """The fault that the tests must see: look whether it was done, do it, note that it was done."""

    @recipe_method
    def once(self, request: str, work: Callable[[Any], Receipt]) -> PatternProgram[Answer[Receipt]]:
        """Do it, unless somebody does so at the same time."""
        key = Requests.Key(scope="-", request=request)
        found = yield from call_client(lambda db: db.get(key, consistent=True))
        if found is not None and found.answer is not None:
            return Answer(Receipt.model_validate_json(found.answer), replayed=True)
        until = datetime.fromtimestamp(self.clock.now() + 3600, UTC)
        lease = Lease("-", request, "", "", self.random_below(10**9), until)
        value = yield from call_client(lambda _: work(lease))
        outcome = Requests(
            scope="-", request=request, payload="", state="completed", answer=value.model_dump_json(), holder="", token=1,
            expires_at=until,
        )  # fmt: skip
        yield from call_client(lambda db: db.put(outcome))
        return Answer(value, replayed=False)


def _effects(
    kind: Callable[[Connection], Any], steps: Callable[[Any, Connection], Any]
) -> set[tuple[Any, ...]]:
    """Return what two requests with one key come to over all orders of their calls: their answers, and the effects."""
    held: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        held.append(connect("memory:"))
        held[-1].create_tables(Desk)
        recipe = kind(held[-1])
        return held[-1], [steps(recipe, held[-1]) for _ in range(2)]

    found = set()
    for outcomes in interleavings(make):
        told = sorted(
            ("replayed" if o.replayed else "done") if isinstance(o, Answer) else type(o).__name__
            for o in outcomes
        )
        found.add((*told, _written(held[-1])))
        held[-1].close()
    return found


def _working(db: Connection) -> Callable[[Any], Receipt]:
    def work(lease: Any) -> Receipt:
        db.update(T1, Ticket.written.add(1), create=True)
        return Receipt(ticket_id="t1")

    return work


def test_in_every_order_the_work_is_done_once() -> None:
    """Whatever the order of their calls, of two with one key one does the work; the other is told or given the answer."""
    ours = _effects(
        lambda db: Idempotency(db, Requests, Receipt),
        lambda recipe, db: recipe._run_once(None, "k1", BODY, _working(db), timedelta(0)),
    )
    naive = _effects(Naive, lambda recipe, db: Naive.once.steps(recipe, "k1", _working(db)))

    assert ours == {("InProgress", "done", 1), ("done", "replayed", 1)}
    assert ("done", "done", 2) in naive, "the check would not see work that is done twice"


def test_in_every_order_the_write_is_done_once() -> None:
    """The same in a transaction, also where what fills it looks at what the other has left and refuses."""

    def fill_of(db: Connection) -> Callable[[Transaction], Receipt]:
        def fill(writes: Transaction) -> Receipt:
            if db.get(T1, consistent=True) is not None:
                raise NotEnough("there is a ticket already")
            writes.create(Ticket(ticket_id="t1", written=1))
            return Receipt(ticket_id="t1")

        return fill

    found = _effects(
        lambda db: Idempotency(db, Requests, Receipt, failures=(NotEnough,)),
        lambda recipe, db: recipe._run_together(None, "k1", BODY, fill_of(db), timedelta(0)),
    )
    assert found == {("done", "replayed", 1)}


# When answers are lost.


class Losing:
    """Turns under way whose calls are made, and the answer of one of them lost."""

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.calls = 0

    def run(self, db: Connection, steps: Any) -> Any:
        """Return what the steps come to."""
        try:
            wanted = next(steps)
            while True:
                self.calls += callable(wanted)
                try:
                    answer = wanted(db) if callable(wanted) else None
                    if callable(wanted) and self.calls == self.lost:
                        raise ResponseMissing("a backend", "the answer was lost")
                except Exception as error:  # noqa: BLE001 - the steps'
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(answer)
        except StopIteration as stopped:
            return stopped.value


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_of_the_lease_is_no_second_work(lost: int) -> None:
    """Where the answer to the taking or to the completion is lost, it is asked again, and found to be done."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Desk)
        requests = Idempotency(db, Requests, Receipt)
        steps = requests._run_once(None, "k1", BODY, _working(db), timedelta(0))

        answer = Losing(lost).run(db, steps)
        assert answer == Answer(Receipt(ticket_id="t1"), replayed=False)
        assert requests.once("k1", BODY, _working(db)).replayed
        assert _written(db) == 1


@pytest.mark.parametrize("lost", [(1,), (2,), (3,), (1, 2), (2, 3)])
def test_a_failure_of_the_service_is_no_second_work(lost: tuple[int, ...]) -> None:
    """Where taking or completing a request was done and answered with an internal error, it is found to be done: nobody else, once."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Desk)
        requests = Idempotency(failing(db, *lost, of=SINGLE), Requests, Receipt)
        done: list[int] = []

        def work(lease: Lease) -> Receipt:
            done.append(lease.token)
            return Receipt(ticket_id="t1")

        assert requests.once("k1", BODY, work) == Answer(Receipt(ticket_id="t1"), replayed=False)
        assert requests.once("k1", BODY, work).replayed
        assert len(done) == 1


def test_a_failure_of_the_service_is_no_second_commit() -> None:
    """A transaction that was done and answered with an internal error is answered again, by its token."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Desk)
        requests = Idempotency(failing(db, 1, of=TOGETHER), Requests, Receipt)

        assert not requests.together("k1", BODY, opening()).replayed
        assert _written(db) == 1


def test_work_that_is_cancelled_is_released() -> None:
    """A task that is cancelled in its work gives its request back, so that it can be done at once."""

    async def told() -> Answer[Receipt]:
        async with connect_async("memory:") as db:
            await db.create_tables(Desk)
            requests = Idempotency(db, Requests, Receipt, lease=timedelta(hours=1))
            begun = asyncio.Event()

            async def forever(lease: Lease) -> Receipt:
                begun.set()
                await asyncio.Event().wait()
                return Receipt(ticket_id="t0")

            task = asyncio.create_task(requests.once("k1", BODY, forever))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await requests.once("k1", BODY, lambda lease: Receipt(ticket_id="t1"))

    assert not asyncio.run(told()).replayed


def test_a_lost_answer_of_the_commit_is_given_later() -> None:
    """A caller that never heard of its commit asks again, and is given the answer that was stored."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        requests = Idempotency(db, Requests, Receipt)
        steps = requests._run_together(None, "k1", BODY, opening(), timedelta(0))

        answer = Losing(3).run(db, steps)
        assert answer == Answer(Receipt(ticket_id="t1", price=Decimal("1.10")), replayed=False)
        assert requests.together("k1", BODY, opening()) == Answer(answer.value, replayed=True)
        assert _written(db) == 1
