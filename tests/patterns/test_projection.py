"""Numbers kept by a stream: every kind of change counts, once, whatever comes twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tavola import Connection, ManualClock, PrimaryKey, Table, connect
from tavola.backends.embedded import EmbeddedBackend
from tavola.client.subscriptions import AsyncSubscription
from tavola.patterns import (
    Metric,
    ProjectionFailed,
    ProjectionMark,
    Projector,
    RecipeRefused,
    Share,
    Sum,
)
from tavola.patterns.recipe import run
from tavola.triggers import EventSourceMapping, MemoryDeadLetters, Trigger
from tests.client.conftest import START_S, Awaited
from tests.patterns.board import (
    ARN,
    Board,
    Case,
    Counted,
    Helpdesk,
    Numbers,
    Rating,
    case_shares,
    marked,
    numbers,
    projector_on,
)
from tests.patterns.interleaving import interleavings

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def case(case_id: str, status: str = "new", **more: Any) -> Case:
    """Return a case."""
    return Case(case_id=case_id, status=status, opened_at=AT, **more)  # type: ignore[arg-type]


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A desk and its board."""
    found = opened()
    found.create_tables(Helpdesk, Board)
    return found


@pytest.fixture
def desk(db: Any, made: Callable[..., Any]) -> Any:
    """The board's projector."""
    found = made(Projector, db, Helpdesk, Numbers, Counted)
    inner = found._recipe if isinstance(db, Awaited) else found
    inner.declared.functions = projector_on(inner.db).declared.functions
    return found


@pytest.fixture
def memory() -> Iterator[Connection]:
    """A desk and its board in memory, on a clock that stands still."""
    with connect("memory:", clock=ManualClock(START_S)) as db:
        db.create_tables(Helpdesk, Board)
        yield db


def everything(db: Any) -> Any:
    """Return a subscription to all that the stream has."""
    return db.subscribe(Helpdesk, from_="start", follow=False)


def work(db: Any) -> None:
    """Let some things happen at the desk."""
    for name in ("a", "b", "c"):
        db.put(case(name))
    db.update(Case.Key(case_id="a"), Case.status.set("working"), Case.note.set("hm"))
    ready = AT + timedelta(seconds=90)
    db.update(Case.Key(case_id="a"), Case.status.set("ready"), Case.ready_at.set(ready))
    db.update(
        Case.Key(case_id="b"), Case.status.set("ready"), Case.ready_at.set(ready + timedelta(seconds=60))
    )
    db.update(Case.Key(case_id="b"), Case.note.set("reopened?"))
    db.put(Rating(case_id="a", stars=5))
    db.put(Rating(case_id="b", stars=2))
    db.put(Rating(case_id="b", stars=3))
    db.delete(Case.Key(case_id="c"))


WORKED = {
    ("cases", "ready"): Sum(2),
    ("opened", "2026-09-01"): Sum(2),
    ("resolution", "all"): Sum(2, Decimal(240)),
    ("satisfaction", "all"): Sum(2, Decimal(8)),
}


# Every kind of change, once


def test_what_comes_changes_and_goes_is_counted(db: Connection, desk: Any) -> None:
    """Pitfall 8: inserts, changes and removals all count, so the numbers are those of the items and never negative."""
    work(db)

    assert desk.follow(everything(db)) == 11
    assert numbers(db) == WORKED
    assert desk.recount() == WORKED
    assert desk.value("resolution").mean == Decimal(120)
    assert desk.value("satisfaction").mean == Decimal(4)
    assert (desk.value("cases", "new").count, desk.value("cases", "lost").count) == (0, 0)
    assert {each.part: each.count for each in db.query(Numbers.Of(name="cases")) if each.count} == {
        "ready": 2
    }


def test_a_redelivered_record_changes_nothing(db: Connection, desk: Any) -> None:
    """Pitfall 8: whatever comes a second time, whole batches or parts of them, is known and changes nothing."""
    work(db)
    desk.follow(everything(db))

    desk.follow(everything(db))
    desk.follow(everything(db))

    assert numbers(db) == WORKED
    assert marked(db) == WORKED


def test_a_deletion_by_time_to_live_is_counted() -> None:
    """Pitfall 8: an item that expires leaves the numbers as one that is deleted does."""
    clock = ManualClock(START_S)
    with connect("memory:", clock=clock, ttl_interval_s=60) as db:
        db.create_tables(Helpdesk, Board)
        desk = projector_on(db)
        db.put(case("a", expires=datetime.fromtimestamp(START_S + 10, UTC)))
        db.put(case("b"))
        desk.follow(everything(db))
        assert desk.value("cases", "new").count == 2
        clock.advance(3_600)
        db.call("ListTables")

        desk.follow(everything(db))

        assert desk.value("cases", "new").count == 1
        assert numbers(db) == desk.recount() == marked(db)


def test_items_from_before_do_not_make_it_negative(memory: Connection) -> None:
    """An item that was never counted takes nothing with it when it changes or goes, and counts from then on."""
    memory.put(case("old"))
    memory.put(case("older"))
    desk = projector_on(memory)
    changes = memory.subscribe(Helpdesk, follow=False)
    memory.update(Case.Key(case_id="old"), Case.status.set("ready"))
    memory.delete(Case.Key(case_id="older"))

    desk.follow(changes)

    assert numbers(memory) == {("cases", "ready"): Sum(1), ("opened", "2026-09-01"): Sum(1)}


def test_a_change_of_nothing_counted_writes_nothing(memory: Connection) -> None:
    """A record that changes no share costs no write."""
    memory.put(case("a"))
    desk = projector_on(memory)
    desk.follow(everything(memory))
    memory.update(Case.Key(case_id="a"), Case.note.set("x"))
    *_, last = list(everything(memory))

    with memory.measure() as spent:
        done = desk.apply([last])

    assert spent.writes == 0
    assert (done.counted, done.known) == (0, 0)


def test_a_batch_costs_a_mark_for_each_item_and_shares_its_numbers(memory: Connection) -> None:
    """Sixty new items are sixty marks and two numbers in one transaction: two units each."""
    for number in range(60):
        memory.put(case(f"c{number}"))
    desk = projector_on(memory)
    changes = list(everything(memory))

    with memory.measure() as spent:
        desk.apply(changes)

    assert spent.operations == {"BatchGetItem": 1, "TransactWriteItems": 1}
    assert spent.writes == 2 * (60 + 2)


# As a Lambda function


def event_of(db: Any) -> dict[str, Any]:
    """Return all records of the desk's stream as Lambda would give them."""
    events: list[dict[str, Any]] = []
    Trigger(
        db, table=db.context.name_of(Helpdesk), handler=lambda event, context: events.append(event)
    ).drain()
    return {"Records": [record for event in events for record in event["Records"]]}


def test_it_is_a_lambda_function(memory: Connection) -> None:
    """An event in, the records that failed out; the same event again changes nothing."""
    work(memory)
    desk = projector_on(memory, report_batch_item_failures=True)
    event = event_of(memory)

    assert [desk.handler(event, None) for _ in range(3)] == [{"batchItemFailures": []}] * 3
    assert projector_on(memory).handler(event, None) is None
    assert numbers(memory) == WORKED


def test_a_trigger_runs_it(memory: Connection, tmp_path: Path) -> None:
    """The runner of triggers takes it, with partial failures, bisect, parallel batches and restarts without checkpoints."""
    work(memory)
    desk = projector_on(memory)
    for mapping in (
        EventSourceMapping(batch_size=2, report_batch_item_failures=True),
        EventSourceMapping(batch_size=5, parallelization_factor=3, report_batch_item_failures=True),
    ):
        Trigger(memory, table="Helpdesk", handler=desk.handler, mapping=mapping).drain()

    assert numbers(memory) == WORKED


def poison(db: Connection, name: str) -> None:
    """Write a case that no case can be read from."""
    item = {
        "pk": {"S": f"CASE#{name}"},
        "sk": {"S": "CASE"},
        "_entity": {"S": "Case"},
        "case_id": {"S": name},
        "status": {"S": "sometimes"},
    }
    db.call("PutItem", {"TableName": "Helpdesk", "Item": item})


def test_a_record_that_cannot_be_counted_is_reported_alone(memory: Connection) -> None:
    """The others are counted; the one that failed comes again, and is given up in the end with a trace."""
    memory.put(case("a"))
    poison(memory, "x")
    memory.put(case("b"))
    desk = projector_on(memory, report_batch_item_failures=True)
    event = event_of(memory)
    (bad,) = [r["dynamodb"]["SequenceNumber"] for r in event["Records"] if "CASE#x" in str(r)]
    letters = MemoryDeadLetters()

    answer = desk.handler(event, None)
    mapping = EventSourceMapping(
        maximum_retry_attempts=2,
        bisect_batch_on_function_error=True,
        report_batch_item_failures=True,
    )
    Trigger(
        memory,
        table="Helpdesk",
        handler=desk.handler,
        mapping=mapping,
        dead_letters=letters,
        clock=ManualClock(START_S),
    ).drain()

    assert answer == {"batchItemFailures": [{"itemIdentifier": bad}]}
    assert desk.value("cases", "new").count == 2
    assert len(letters.documents) == 1


def test_what_lay_between_need_not_be_readable(memory: Connection) -> None:
    """Only the last state of an item counts: once it is mended it is counted, and a removal is one in any case."""
    for name in ("x", "y"):
        poison(memory, name)
    memory.put(case("x"))
    memory.call("DeleteItem", {"TableName": "Helpdesk", "Key": {"pk": {"S": "CASE#y"}, "sk": {"S": "CASE"}}})
    desk = projector_on(memory)

    assert desk.handler(event_of(memory), None) is None
    assert desk.value("cases", "new").count == 1


def test_by_default_it_raises(memory: Connection) -> None:
    """A mapping that does not read the answer is Lambda's default, so a failure is an exception unless it is reported."""
    poison(memory, "x")
    desk = projector_on(memory)
    event = event_of(memory)

    with pytest.raises(ProjectionFailed, match="1 records could not be counted") as failed:
        desk.handler(event, None)
    assert [each.sequence for each in failed.value.failed] == [
        event["Records"][0]["dynamodb"]["SequenceNumber"]
    ]
    with pytest.raises(ProjectionFailed):
        desk.follow(everything(memory))


def test_more_items_than_a_transaction_holds_are_split(memory: Connection) -> None:
    """A batch of a thousand is as many transactions as it needs, and exact."""
    memory.put_many([case(f"c{number}") for number in range(250)])
    desk = projector_on(memory)

    assert desk.handler(event_of(memory), None) is None
    assert desk.value("cases", "new").count == 250


# What is refused


def test_designs_that_cannot_be_projected_are_refused(memory: Connection) -> None:
    """Each refusal says what to declare."""

    class Quiet(Table, stream="KEYS_ONLY"):
        pass

    class Unkept(ProjectionMark, table=Quiet):
        class Key(PrimaryKey["Unkept"], pk="M#{source}", sk="{projector}"):
            source: str
            projector: str

    class Unkeyed(Metric, table=Board):
        class Key(PrimaryKey["Unkeyed"], pk="UNKEYED#{name}", sk="U"):
            name: str

    with pytest.raises(RecipeRefused, match="Quiet: its stream has no new images"):
        Projector(memory, Quiet, Numbers, Counted)
    with pytest.raises(RecipeRefused, match=r"Unkept\.expires: .*ttl="):
        Projector(memory, Helpdesk, Numbers, Unkept)
    with pytest.raises(RecipeRefused, match=r"Unkeyed\.Key: .*name, part"):
        Projector(memory, Helpdesk, Unkeyed, Counted)
    desk = projector_on(memory)
    with pytest.raises(RecipeRefused, match="Case: it already has a function"):
        desk.of(Case)
    with pytest.raises(RecipeRefused, match="Numbers: it is in another table"):
        desk.of(Numbers)
    with pytest.raises(RecipeRefused, match="Numbers: the projector writes it itself"):
        Projector(memory, Board, Numbers, Counted).of(Numbers)


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ([Share("a"), Share("a")], "two shares of 'a', 'all'"),
        ([Share("a", value=0.1)], "float, which would be rounded"),  # type: ignore[arg-type]
        ([Share("a", str(n)) for n in range(50)], "50 shares, but only 49 fit"),
        ([Share("a", "")], "empty name or part"),
        ([Share("a", "x" * 3000)], "size limit of 1024 bytes"),
        ([Share("a", value=Decimal("1." + "1" * 40))], "up to 38 digits"),
    ],
)
def test_shares_that_cannot_be_kept_fail_their_record(
    memory: Connection, shares: list[Share], problem: str
) -> None:
    """What a function gives and no transaction could hold exactly is told with the record."""
    for name in ("a", "b", "c"):
        memory.put(case(name))
    desk = projector_on(memory)
    desk.declared.functions[Case] = lambda entity: shares if entity.case_id == "b" else [Share("good")]

    done = desk.apply(event_of(memory))

    assert desk.value("good").count == 2  # one bad item does not hold up the others of its transaction
    assert [str(each.error) for each in done.failed if problem not in str(each.error)] == []
    assert len(done.failed) == 1


def test_records_must_tell_their_stream(memory: Connection) -> None:
    """Numbers of different streams do not compare; records as GetRecords gives them need the ARN."""
    memory.put(case("a"))
    desk = projector_on(memory)
    records = [{k: v for k, v in r.items() if k != "eventSourceARN"} for r in event_of(memory)["Records"]]

    with pytest.raises(RecipeRefused, match="do not name their stream"):
        desk.apply(records)
    assert desk.apply(records, stream=ARN).counted == 1


def test_sums_are_exact_to_the_last_digit(memory: Connection) -> None:
    """Thirty-six digits are added and taken away again without losing one."""
    values = [Decimal("1E+30"), Decimal("0.00001"), Decimal("-7.3")]
    for number in range(3):
        memory.put(case(f"c{number}"))
    desk = projector_on(memory)
    desk.declared.functions[Case] = lambda entity: [Share("sum", value=values[int(entity.case_id[1])])]
    desk.follow(everything(memory))

    assert desk.value("sum").total == Decimal("999999999999999999999999999992.70001")
    memory.delete(Case.Key(case_id="c0"))
    desk.follow(everything(memory))
    assert desk.value("sum").total == Decimal("-7.29999")


def test_a_function_that_no_longer_understands_what_was_counts_what_is(memory: Connection) -> None:
    """Only what the item is now is asked for; if what it was cannot be told, its mark knows what it added."""
    memory.put(case("a", "ready"))
    memory.put(case("a", "new"))
    desk = projector_on(memory)

    def strict(entity: Case) -> list[Share]:
        if entity.status == "ready":
            raise KeyError("ready")
        return [Share("cases", entity.status)]

    desk.declared.functions[Case] = strict
    assert desk.apply(event_of(memory)).failed == ()
    assert desk.value("cases", "new").count == 1


def test_a_subscription_of_the_other_client_is_refused(memory: Connection) -> None:
    """A projector on a connection cannot await; it says so at once."""
    desk = projector_on(memory)

    with pytest.raises(RecipeRefused, match="other kind of client"):
        desk.follow(AsyncSubscription(None, None))  # type: ignore[arg-type]


# Rebuilding


def test_a_rebuild_counts_what_was_there_before(db: Connection, desk: Any) -> None:
    """Items that no record was ever read of are counted from the table itself, and once."""
    work(db)

    first, second = desk.rebuild(), desk.rebuild()

    assert (first.counted, first.removed) == (4, 0)
    assert (second.counted, second.removed, second.unknown) == (0, 0, 0)
    assert numbers(db) == WORKED == desk.recount()
    desk.follow(everything(db))  # the records of the same items come later, and change nothing in the end
    assert numbers(db) == WORKED == marked(db)


def test_a_load_is_counted_in_batches(db: Connection, desk: Any) -> None:
    """What was just stored is counted as a rebuild would count it, part by part, and the stream goes on from there."""
    loaded = [case(f"c{number:03}", "new" if number % 3 else "ready") for number in range(130)]
    db.put_many(loaded)

    first, second = desk.fill(loaded[:100]), desk.fill(loaded[100:])

    assert (first, second) == (100, 30)
    assert numbers(db) == desk.recount() == marked(db)
    assert desk.rebuild().counted == 0
    desk.follow(everything(db))  # the records of the load come after all
    assert numbers(db) == desk.recount()


@pytest.mark.parametrize("cut", range(10))
def test_a_load_that_was_broken_off_is_never_taken_for_counted(
    cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a fill ends, a rebuild brings the numbers to what the table says, or refuses and says why."""
    calls: list[str] = []
    plain = EmbeddedBackend.call

    def call(backend: EmbeddedBackend, operation: str, request: Any) -> Any:
        if len(calls) == cut:
            raise KeyboardInterrupt
        calls.append(operation)
        return plain(backend, operation, request)

    with connect("memory:") as db:
        db.create_tables(Helpdesk, Board)
        desk = Projector(db, Helpdesk, Numbers, Counted)
        desk.of(Case)(lambda found: [Share("cases", found.case_id)])
        loaded = [case(f"c{number:03}") for number in range(120)]  # numbers of two transactions
        db.put_many(loaded)
        with monkeypatch.context() as breaking, suppress(KeyboardInterrupt):
            breaking.setattr(EmbeddedBackend, "call", call)
            desk.fill(loaded)

        if calls and calls[-1] != "DeleteItem":
            for again in (desk.rebuild, lambda: desk.fill(loaded)):
                with pytest.raises(RecipeRefused, match="broken off"):
                    again()
        else:
            desk.rebuild()
            assert numbers(db) == desk.recount() == marked(db)
    assert calls == [
        "PutItem", *["BatchWriteItem"] * 5, *["TransactWriteItems"] * 2, "DeleteItem",
    ][:cut]  # fmt: skip


def test_a_rebuild_takes_many_items_in_one_transaction(memory: Connection) -> None:
    """Items that change the same numbers share a transaction, and one whose mark is taken does not keep the others."""
    memory.put_many(case(f"c{number:03}", "new" if number % 2 else "ready") for number in range(150))
    desk = projector_on(memory)
    with memory.measure() as spent:
        steps = Projector.rebuild.steps(desk)
        answer = next(steps)(memory)  # type: ignore[operator]  # a call of the client: whether there are marks
        answer = steps.send(answer)(memory)  # type: ignore[operator]  # a page of the table
        other = projector_on(memory)
        other.apply(event_of(memory)["Records"][:1], stream=ARN)  # and now there is a mark
        done = run(memory, _resumed(steps, answer))

    assert done.counted == 149
    assert spent.operations["TransactWriteItems"] < 12
    assert numbers(memory) == marked(memory) == desk.recount()


def _resumed(steps: Any, answer: Any) -> Any:
    """Give what is left of some steps, which wait for an answer."""
    wanted = steps.send(answer)
    while True:
        try:
            told = yield wanted
        except Exception as error:  # noqa: BLE001 - the steps know what to undo, whatever it was
            wanted = steps.throw(error)
        else:
            try:
                wanted = steps.send(told)
            except StopIteration as ended:
                return ended.value


def test_a_rebuild_mends_what_the_stream_lost(memory: Connection) -> None:
    """Changes that nobody read are put right, removals too, and a function that counts otherwise now."""
    work(memory)
    desk = projector_on(memory)
    desk.follow(everything(memory))
    memory.update(Case.Key(case_id="a"), Case.status.set("working"))  # nobody reads these two
    memory.delete(Case.Key(case_id="b"))

    done = desk.rebuild()

    assert (done.counted, done.removed) == (1, 1)
    assert numbers(memory) == marked(memory) == desk.recount()

    desk.declared.functions[Case] = lambda entity: [*case_shares(entity), Share("all cases")]
    assert desk.rebuild().counted == 1
    assert desk.value("all cases").count == 1


def test_a_rebuild_beside_the_stream_counts_once() -> None:
    """In every order of the calls of a rebuild, a handler and another rebuild, the numbers are those of the items."""

    def make() -> tuple[Connection, list[Any]]:
        db = connect("memory:", clock=ManualClock(START_S))
        db.create_tables(Helpdesk, Board)
        db.put(case("a"))
        desk = projector_on(db)
        event = event_of(db)
        db.update(Case.Key(case_id="a"), Case.status.set("ready"))
        later = {"Records": event_of(db)["Records"][len(event["Records"]) :]}
        made.append((db, desk, event, later))
        rebuild = Projector.rebuild.steps
        return db, [Projector.handler.steps(desk, event), rebuild(desk), rebuild(desk)]

    made: list[Any] = []
    orders = 0
    for outcomes in interleavings(make, most=150):
        db, desk, _, later = made[-1]
        assert not [each for each in outcomes if isinstance(each, Exception)]
        desk.handler(later, None)
        assert numbers(db) == marked(db) == desk.recount()
        db.close()
        orders += 1
    assert orders == 150


def test_two_readers_of_one_record_count_it_once() -> None:
    """In every order of two handlers' calls, of the same records and of others with the same numbers."""

    def make() -> tuple[Connection, list[Any]]:
        db = connect("memory:", clock=ManualClock(START_S))
        db.create_tables(Helpdesk, Board)
        work(db)
        records = event_of(db)["Records"]
        made.append(db)
        halves = [{"Records": records}, {"Records": records[3:]}]
        return db, [
            Projector.handler.steps(projector_on(db, report_batch_item_failures=True), half)
            for half in halves
        ]

    made: list[Connection] = []
    for outcomes in interleavings(make):
        assert outcomes == [{"batchItemFailures": []}] * 2
        projector_on(made[-1]).handler(event_of(made[-1]), None)
        assert numbers(made[-1]) == WORKED == marked(made[-1])
        made[-1].close()


def test_shards_that_are_read_at_once_meet_in_the_numbers(served: str) -> None:
    """Four readers at the same time, all with the same numbers: their transactions conflict, are tried again, and add up."""
    prefix = "four-readers-"
    with connect(served, table_prefix=prefix) as db:
        db.create_tables(Helpdesk, Board)
        db.put_many([case(f"c{number}") for number in range(40)])
        records = event_of(db)["Records"]

        def read(some: list[Any]) -> list[Any]:
            with connect(served, table_prefix=prefix) as own:
                desk = projector_on(own, report_batch_item_failures=True)
                return [desk.handler({"Records": some[n : n + 2]}, None) for n in range(0, len(some), 2)]

        with ThreadPoolExecutor(4) as pool:
            answers = [a for some in pool.map(read, [records[n::4] for n in range(4)]) for a in some]
        found = numbers(db)
        db.delete_tables(Helpdesk, Board)

    assert answers == [{"batchItemFailures": []}] * len(answers)
    assert found == {("cases", "new"): Sum(40), ("opened", "2026-09-01"): Sum(40)}
