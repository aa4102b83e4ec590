"""What a response means, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.triggers import UNREAD, EventSourceMapping
from tavola.triggers.outcomes import (
    BatchDecision,
    Discard,
    Failed,
    FailedFrom,
    Segment,
    Succeeded,
    decide,
    expire,
    read_response,
)
from tests.triggers.fake import START_S, sequence
from tests.triggers.records import kept, several

SEQUENCES = ("10", "11", "12")
BATCH = several(1, 2, 3, 4, 5)
FAILED = Failed("boom")


def reported(*named: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": name} for name in named]}


@pytest.mark.parametrize(
    "response", [None, "", {}, {"batchItemFailures": []}, {"batchItemFailures": None}, {"other": 1}]
)
def test_an_empty_report_is_success(response: object) -> None:
    """An empty list, a null list, an empty and a null response all say that nothing failed."""
    assert read_response(response, SEQUENCES, report_batch_item_failures=True) == Succeeded()


@pytest.mark.parametrize(
    "response",
    [
        reported(""),
        reported(None),
        reported("99"),
        reported("11", "99"),
        reported(11),
        {"batchItemFailures": [{"id": "11"}]},
        {"batchItemFailures": ["11"]},
        {"batchItemFailures": {"itemIdentifier": "11"}},
        "done",
        ["11"],
        7,
    ],
)
def test_an_unusable_report_fails_the_batch(response: object) -> None:
    """An empty, null, unknown or misnamed identifier, or a response of another shape, fails everything."""
    assert isinstance(read_response(response, SEQUENCES, report_batch_item_failures=True), Failed)


def test_the_lowest_failure_counts() -> None:
    """Several failures are one: everything from the lowest on."""
    outcome = read_response(reported("12", "11"), SEQUENCES, report_batch_item_failures=True)

    assert isinstance(outcome, FailedFrom)
    assert outcome.index == 1


@pytest.mark.parametrize(
    "response", [reported("10"), reported("99"), reported(None), {"batchItemFailures": "10"}]
)
def test_a_report_that_is_not_read_fails_the_batch(response: object) -> None:
    """Without ReportBatchItemFailures Lambda would take it for success and drop the records, so here nothing is done."""
    outcome = read_response(response, SEQUENCES, report_batch_item_failures=False)

    assert outcome == Failed(UNREAD, unread=True)
    assert "report_batch_item_failures" in UNREAD
    assert "AWS" in UNREAD
    assert decide(Segment(BATCH), outcome, EventSourceMapping()).done == ()


@pytest.mark.parametrize(
    "response", [None, "", {}, "done", 7, ["11"], {"other": 1}, reported(), {"batchItemFailures": None}]
)
def test_any_other_response_is_success_where_none_is_read(response: object) -> None:
    """Without ReportBatchItemFailures a response that reports nothing means nothing."""
    assert read_response(response, SEQUENCES, report_batch_item_failures=False) == Succeeded()


@pytest.mark.parametrize("response", [None, {}, {"state": None}, {"state": 7}])
def test_a_window_wants_its_state_back(response: object) -> None:
    """A response without state fails the invocation in a tumbling window."""
    outcome = read_response(response, SEQUENCES, report_batch_item_failures=False, stateful=True)

    assert isinstance(outcome, Failed)


def test_state_and_failures_go_together() -> None:
    """A response in a window may report failures and yet hand on its state."""
    response = {"state": {"n": 2}, **reported("12")}
    outcome = read_response(response, SEQUENCES, report_batch_item_failures=True, stateful=True)

    assert isinstance(outcome, FailedFrom)
    assert (outcome.index, outcome.state) == (2, b'{"n":2}')


def test_success_settles_everything() -> None:
    """After success nothing is left."""
    assert decide(Segment(BATCH), Succeeded(), EventSourceMapping()) == BatchDecision(done=BATCH)


def test_a_failed_batch_is_tried_again_whole() -> None:
    """Without bisect the same records are tried together, and the retry is counted and waits."""
    decision = decide(Segment(BATCH, 4, 4), FAILED, EventSourceMapping())

    assert decision == BatchDecision(left=(Segment(BATCH, 5, 5),), waits=True)


def test_bisect_halves_and_counts_no_retry() -> None:
    """A failed batch is split in two, in order; neither half has used a retry."""
    decision = decide(Segment(BATCH, 0, 1), FAILED, EventSourceMapping(bisect_batch_on_function_error=True))

    assert decision == BatchDecision(left=(Segment(BATCH[:3], 0, 2), Segment(BATCH[3:], 0, 2)))


def test_one_record_cannot_be_halved() -> None:
    """With bisect, retries are those of single records."""
    mapping = EventSourceMapping(bisect_batch_on_function_error=True, maximum_retry_attempts=1)
    single = Segment(BATCH[:1])
    again = decide(single, FAILED, mapping)

    assert again == BatchDecision(left=(Segment(BATCH[:1], 1, 1),), waits=True)
    assert decide(again.left[0], FAILED, mapping).discarded == Discard(
        BATCH[:1], "RetryAttemptsExhausted", 2, "boom"
    )


def test_retries_end_where_they_are_bounded() -> None:
    """maximum_retry_attempts counts the tries after the first; 0 means one try."""
    assert decide(Segment(BATCH), FAILED, EventSourceMapping(maximum_retry_attempts=0)).discarded is not None
    assert decide(Segment(BATCH, 1), FAILED, EventSourceMapping(maximum_retry_attempts=2)).discarded is None
    assert (
        decide(Segment(BATCH, 2), FAILED, EventSourceMapping(maximum_retry_attempts=2)).discarded is not None
    )


@pytest.mark.parametrize("bisect", [False, True])
def test_a_report_settles_what_comes_before_it(bisect: bool) -> None:
    """Records before the lowest failure are done; the rest is a batch that begins anew, bisect or not."""
    mapping = EventSourceMapping(
        report_batch_item_failures=True,
        bisect_batch_on_function_error=bisect,
        maximum_retry_attempts=0,
    )
    decision = decide(Segment(BATCH, 0, 3), FailedFrom(2, "reported"), mapping)

    assert decision == BatchDecision(done=BATCH[:2], left=(Segment(BATCH[2:], 0, 4),))


def test_a_report_of_the_first_record_is_a_failure_of_all() -> None:
    """Where nothing was handled, a retry is used."""
    decision = decide(
        Segment(BATCH, 1, 1), FailedFrom(0, "reported"), EventSourceMapping(maximum_retry_attempts=1)
    )

    assert decision.discarded == Discard(BATCH, "RetryAttemptsExhausted", 2, "reported")


def test_old_records_are_given_up_from_the_front() -> None:
    """What is older than the maximum age is discarded; what is exactly as old is tried."""
    mapping = EventSourceMapping(maximum_record_age_in_seconds=60)
    old, edge, fresh = (kept(n, at_s=START_S + n) for n in (1, 2, 3))
    discard, rest = expire(Segment((old, edge, fresh), 2, 3), START_S + 62, mapping)

    assert discard == Discard((old,), "RecordAgeExceeded", 3)
    assert rest == Segment((edge, fresh), 2, 3)
    assert expire(Segment((old,)), START_S + 1000, mapping)[1] is None
    assert expire(Segment((old,)), START_S + 10**9, EventSourceMapping()) == (None, Segment((old,)))


def test_sequence_numbers_are_looked_up_as_text() -> None:
    """An identifier is the sequence number itself, and no number that equals it."""
    outcome = read_response(reported("1"), (sequence(1),), report_batch_item_failures=True)

    assert isinstance(outcome, Failed)
