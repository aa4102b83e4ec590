"""Records that a handler reports as failed: what becomes of them, by AWS's rules and by our one exception.

AWS reads `batchItemFailures` only where the mapping has ReportBatchItemFailures. There an empty or null list, and an empty
or null response, are success; the lowest identifier is where the next try begins; an identifier that is empty, null, unknown
or misnamed, and a response of another shape, fail the whole batch. Elsewhere AWS takes any response for success. We do not:
there a report fails the batch, so that what would be lost on AWS is seen here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, EntityChange, PrimaryKey, Router, Table, connect
from tavola.clock import ManualClock
from tavola.triggers import (
    EventSourceMapping,
    HandlerFailing,
    MemoryCheckpoint,
    MemoryDeadLetters,
    Trigger,
)
from tests.triggers.fake import START_S, FakeStream, sequence
from tests.triggers.scenario import reports_are_ignored


class Desk(Table, stream="NEW_AND_OLD_IMAGES"):
    pass


class Ticket(Entity, table=Desk):
    ticket_id: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str


class Work:
    """The work of a router's function: it fails for some tickets, the first time or each time."""

    def __init__(self, *, once: str = "", always: str = "", report: bool = False) -> None:
        self.handled: list[str] = []
        self.calls = 0
        self._once = once
        self._always = always
        self.router = Router(Desk, report_batch_item_failures=report)
        self.router.on(Ticket)(self.do)

    def do(self, change: EntityChange[Ticket]) -> None:
        """Note a ticket, or fail."""
        self.calls += 1
        assert change.new is not None
        ticket_id = change.new.ticket_id
        if ticket_id == self._once:
            self._once = ""
            raise TimeoutError("the index does not answer")
        if ticket_id == self._always:
            raise ValueError("cannot handle this")
        self.handled.append(ticket_id)


@pytest.fixture
def db() -> Iterator[Connection]:
    """A table with ten tickets."""
    with closing(connect("memory:", clock=ManualClock(START_S))) as connection:
        connection.create_tables(Desk)
        for number in range(10):
            connection.put(Ticket(ticket_id=f"t-{number}"))
        yield connection


def run(db: Connection, work: Work, mapping: EventSourceMapping | None) -> tuple[Trigger, set[str]]:
    """Drain the stream; return the trigger and the tickets in the dead letters."""
    letters = MemoryDeadLetters()
    trigger = Trigger(
        db,
        table="Desk",
        handler=work.router.handler,
        mapping=mapping,
        dead_letters=letters,
        dead_letter_payload=True,
        clock=ManualClock(START_S),
    )
    trigger.drain(10_000)
    records = [record for letter in letters.documents for record in letter["payload"]["Records"]]
    return trigger, {record["dynamodb"]["NewImage"]["ticket_id"]["S"] for record in records}


def tickets(*without: str) -> set[str]:
    return {f"t-{number}" for number in range(10)} - {*without}


@pytest.mark.parametrize("report", [False, True], ids=["raises", "reports"])
@pytest.mark.parametrize("reads", [None, False, True], ids=["Mapping()", "unread", "read"])
def test_a_record_that_fails_once_comes_again(db: Connection, report: bool, reads: bool | None) -> None:
    """I23: whatever the router does and the mapping reads, the failure is counted and no ticket is lost."""
    work = Work(once="t-4", report=report)
    mapping = None if reads is None else EventSourceMapping(report_batch_item_failures=reads)
    trigger, dead = run(db, work, mapping)

    assert set(work.handled) == tickets()
    assert dead == set()
    assert (trigger.statistics.failures, trigger.statistics.handled) == (1, 10)
    assert trigger.statistics.unread_failures == int(report and not reads)
    if report and reads:
        assert work.calls == 11  # only from the reported record on


@pytest.mark.parametrize("report", [False, True], ids=["raises", "reports"])
@pytest.mark.parametrize("reads", [False, True], ids=["unread", "read"])
def test_a_poison_record_is_written_down_and_the_others_are_handled(
    db: Connection, report: bool, reads: bool
) -> None:
    """I23: after its retries it is in the dead letters, alone, and nothing that came with it is lost."""
    work = Work(always="t-4", report=report)
    mapping = EventSourceMapping(
        report_batch_item_failures=reads, bisect_batch_on_function_error=True, maximum_retry_attempts=2
    )
    trigger, dead = run(db, work, mapping)

    assert dead == {"t-4"}
    assert set(work.handled) == tickets("t-4")
    assert trigger.statistics.discarded == 1


def test_the_planted_mapping_loses_records(db: Connection) -> None:
    """A mapping that takes an unread report for success, as AWS does, fails the test above."""
    work = Work(once="t-4", report=True)
    with reports_are_ignored():
        trigger, _ = run(db, work, EventSourceMapping())

    assert "t-4" not in work.handled
    assert trigger.statistics.failures == 0


def test_an_unread_report_is_an_error_that_names_the_setting(
    db: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what AWS would do, and which settings to change here and there."""
    with caplog.at_level(logging.ERROR, "tavola.triggers"):
        run(db, Work(once="t-4", report=True), EventSourceMapping())

    (line,) = [record.message for record in caplog.records if record.name == "tavola.triggers"]
    for words in ("batchItemFailures", "on AWS", "--report-batch-item-failures", "ReportBatchItemFailures"):
        assert words in line


def test_a_router_that_reports_says_what_must_read_it(
    db: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A function cannot know its mapping, so its log does not promise that the record comes again."""
    work = Work(once="t-4", report=True)
    with caplog.at_level(logging.ERROR, "tavola.client"):
        run(db, work, EventSourceMapping(report_batch_item_failures=True))

    (line,) = [record.message for record in caplog.records if record.name == "tavola.client"]
    assert "report_batch_item_failures" in line
    assert "again" not in line


# Responses, by AWS's rules

FIVE = tuple(range(1, 6))


def fake_stream() -> FakeStream:
    stream = FakeStream()
    stream.add("a")
    for _ in FIVE:
        stream.put("a")
    return stream


def named(*identifiers: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in identifiers]}


class Responding:
    """A handler that gives one response, and nothing afterwards; notes its batches."""

    def __init__(self, response: object) -> None:
        self.batches: list[tuple[int, ...]] = []
        self._responses = [response]

    def __call__(self, event: dict[str, Any], context: object) -> object:
        self.batches.append(tuple(int(each["dynamodb"]["SequenceNumber"]) for each in event["Records"]))
        return self._responses.pop() if self._responses else None


def respond(response: object, *, reads: bool) -> tuple[Responding, Trigger]:
    handler = Responding(response)
    mapping = EventSourceMapping(report_batch_item_failures=reads)
    trigger = Trigger(
        fake_stream(), table="Orders", handler=handler, mapping=mapping, clock=ManualClock(START_S)
    )
    trigger.drain(1000)
    return handler, trigger


SUCCESS: tuple[object, ...] = (
    None,
    "",
    {},
    {"batchItemFailures": []},
    {"batchItemFailures": None},
    {"ok": 1},
)
WHOLE_BATCH: tuple[object, ...] = (
    named(""),
    named(None),
    named("99"),
    named(sequence(3), "99"),
    named(3),
    {"batchItemFailures": [{"id": sequence(3)}]},
    {"batchItemFailures": [{}]},
    {"batchItemFailures": [None]},
    {"batchItemFailures": [sequence(3)]},
    {"batchItemFailures": {"itemIdentifier": sequence(3)}},
    {"batchItemFailures": sequence(3)},
    "not an object",
    [sequence(3)],
    5,
    object(),  # not JSON
)
PARTIAL: tuple[tuple[object, int], ...] = (
    (named(sequence(3)), 3),
    (named(sequence(5), sequence(2), sequence(4)), 2),
    (named(sequence(4), sequence(4)), 4),
    (named(sequence(1)), 1),
    (named(sequence(5)), 5),
)


def _id(response: object) -> str:
    return "not JSON" if type(response) is object else repr(response)


@pytest.mark.parametrize("response", SUCCESS, ids=_id)
def test_success_where_the_response_is_read(response: object) -> None:
    """An empty or null list, and an empty or null response, handle the whole batch."""
    handler, trigger = respond(response, reads=True)

    assert handler.batches == [FIVE]
    assert (trigger.statistics.failures, trigger.statistics.handled) == (0, 5)


@pytest.mark.parametrize("response", WHOLE_BATCH, ids=_id)
def test_the_whole_batch_fails_where_the_response_is_wrong(response: object) -> None:
    """An identifier that is empty, null, unknown or misnamed, and a malformed response, bring the whole batch again."""
    handler, trigger = respond(response, reads=True)

    assert handler.batches == [FIVE, FIVE]
    assert (trigger.statistics.failures, trigger.statistics.handled) == (1, 5)


@pytest.mark.parametrize(("response", "first"), PARTIAL)
def test_the_lowest_identifier_is_where_it_goes_on(response: object, first: int) -> None:
    """The records before it are handled; it and all after it come again."""
    handler, trigger = respond(response, reads=True)

    assert handler.batches == [FIVE, FIVE[first - 1 :]]
    assert (trigger.statistics.failures, trigger.statistics.handled) == (1, 5)


@pytest.mark.parametrize(
    "response", [named(sequence(3)), named(""), named("99"), {"batchItemFailures": "3"}], ids=repr
)
def test_any_report_fails_the_batch_where_none_is_read(response: object) -> None:
    """AWS drops what is named; here the batch comes again, and the statistics say why."""
    handler, trigger = respond(response, reads=False)

    assert handler.batches == [FIVE, FIVE]
    assert (trigger.statistics.failures, trigger.statistics.unread_failures) == (1, 1)


@pytest.mark.parametrize("response", [*SUCCESS, "not an object", [1], 5], ids=repr)
def test_any_other_response_is_ignored_where_none_is_read(response: object) -> None:
    """A response that reports nothing says nothing."""
    handler, trigger = respond(response, reads=False)

    assert handler.batches == [FIVE]
    assert trigger.statistics.failures == 0


# Checkpoints


@pytest.mark.parametrize(
    ("reads", "after"), [(False, None), (True, sequence(2))], ids=["whole batch", "from the record on"]
)
def test_no_checkpoint_passes_a_reported_record(reads: bool, after: str | None) -> None:
    """I23: what is stored ends before the lowest failure; a new trigger on the same checkpoints begins with it."""
    checkpoints, stream = MemoryCheckpoint(), fake_stream()
    mapping = EventSourceMapping(report_batch_item_failures=reads)

    def make(handler: Callable[..., object]) -> Trigger:
        return Trigger(
            stream,
            table="Orders",
            handler=handler,
            mapping=mapping,
            checkpoints=checkpoints,
            clock=ManualClock(START_S),
        )

    with pytest.raises(HandlerFailing):
        make(lambda event, context: named(sequence(3))).drain(patient=False)
    stored = checkpoints.load()
    assert stored is not None
    ((position,),) = [shards.values() for shards in stored["streams"].values()]
    restarted = Responding(None)
    make(restarted).drain()

    assert position.get("after") == after
    assert restarted.batches == [FIVE if after is None else FIVE[2:]]


# Windows


@pytest.mark.parametrize("reads", [False, True])
def test_a_report_of_a_final_invocation_is_a_failure(reads: bool) -> None:
    """A window's last invocation has no records, so whatever it reports is unknown: the window is not closed yet."""
    stream = fake_stream()
    finals: list[object] = []

    def handler(event: dict[str, Any], context: object) -> object:
        if not event["isFinalInvokeForWindow"]:
            return {"state": {"count": len(event["Records"])}}
        finals.append(event["state"])
        return named(sequence(3)) if len(finals) == 1 else None

    clock = ManualClock(START_S)
    mapping = EventSourceMapping(tumbling_window_in_seconds=10, report_batch_item_failures=reads)
    trigger = Trigger(stream, table="Orders", handler=handler, mapping=mapping, clock=clock)
    clock.advance(60)
    trigger.drain(1000)

    assert finals == [{"count": 5}] * 2
    assert trigger.statistics.failures == 1
    assert trigger.statistics.discarded_windows == 0


def test_a_window_that_is_given_up_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Its records are handled, but its state never reached its end: the statistics say so."""
    stream = fake_stream()

    def handler(event: dict[str, Any], context: object) -> object:
        if event["isFinalInvokeForWindow"]:
            raise ValueError("cannot store")
        return {"state": {}}

    clock = ManualClock(START_S)
    mapping = EventSourceMapping(tumbling_window_in_seconds=10, maximum_retry_attempts=1)
    trigger = Trigger(stream, table="Orders", handler=handler, mapping=mapping, clock=clock)
    clock.advance(60)
    with caplog.at_level(logging.ERROR, "tavola.triggers"):
        trigger.drain(1000)

    assert (trigger.statistics.discarded_windows, trigger.statistics.discarded) == (1, 0)
    assert "its state is lost" in caplog.text


def test_a_window_that_a_changed_mapping_cannot_continue_is_counted() -> None:
    """With another parallelization factor the open windows of the checkpoint fit no queue."""
    stream, checkpoints = fake_stream(), MemoryCheckpoint()
    statistics = []
    for factor in (1, 2):
        trigger = Trigger(
            stream,
            table="Orders",
            handler=lambda event, context: {"state": {}},
            mapping=EventSourceMapping(tumbling_window_in_seconds=10, parallelization_factor=factor),
            checkpoints=checkpoints,
            clock=ManualClock(START_S),
        )
        trigger.drain(1000)
        statistics.append(trigger.statistics.discarded_windows)

    assert statistics == [0, 1]
