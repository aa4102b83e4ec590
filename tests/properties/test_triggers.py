"""Laws of triggers: no record lost, a key in its order, nothing twice without a restart; and of their decisions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.triggers import EventSourceMapping, parse_criteria
from tavola.triggers.outcomes import Failed, FailedFrom, Outcome, Segment, Succeeded, decide, expire
from tests.triggers.records import kept
from tests.triggers.scenario import (
    checkpoint_before_the_handler,
    children_before_their_parents,
    failures_are_swallowed,
    reports_are_ignored,
    run_scenario,
    success_at_any_price,
)


@given(st.integers(0, 2**32))
def test_no_record_is_lost_and_none_overtakes(seed: int) -> None:
    """Whatever splits, fails, crashes and restarts: each record is handled or written down, a key in its order."""
    assert run_scenario(seed) == []


@given(st.integers(0, 2**32))
def test_windows_count_exactly(seed: int) -> None:
    """State and position are saved together, so a crash makes no window count a record twice or not at all."""
    assert run_scenario(seed, windows=True) == []


@pytest.mark.parametrize(
    "plant",
    [
        checkpoint_before_the_handler,
        children_before_their_parents,
        failures_are_swallowed,
        reports_are_ignored,
        success_at_any_price,
    ],
)
def test_a_planted_fault_is_found(plant: Callable[[], AbstractContextManager[None]]) -> None:
    """The scenarios see a checkpoint that runs ahead, a child before its parent, a failure that is swallowed or ignored."""
    with plant():
        assert any(run_scenario(seed) for seed in range(40))


mappings = st.builds(
    EventSourceMapping,
    bisect_batch_on_function_error=st.booleans(),
    maximum_retry_attempts=st.integers(-1, 3),
    report_batch_item_failures=st.booleans(),
)


@given(mappings, st.integers(1, 12), st.lists(st.integers(-2, 12), max_size=60))
def test_a_decision_puts_each_record_in_one_place(
    mapping: EventSourceMapping, size: int, behaviour: list[int]
) -> None:
    """Done, discarded and left are the records of the segment, in their order; in the end all are settled."""
    numbers = list(range(1, size + 1))
    stack = [Segment(tuple(kept(number) for number in numbers))]
    settled: list[int] = []
    tries = iter(behaviour)
    while stack:
        segment = stack.pop(0)
        place = next(tries, -2)
        outcome: Outcome = Succeeded()
        if place == -1:
            outcome = Failed("boom")
        elif 0 <= place < len(segment.records):
            outcome = FailedFrom(place, "reported")
        decision = decide(segment, outcome, mapping)
        discarded = () if decision.discarded is None else decision.discarded.records
        left = [record for part in decision.left for record in part.records]
        assert (*decision.done, *discarded, *left) == segment.records
        assert all(part.records for part in decision.left)
        assert decision.waits == any(part.retries > segment.retries for part in decision.left)
        if decision.discarded is not None:
            assert segment.retries == mapping.maximum_retry_attempts
        settled += [record.number for record in (*decision.done, *discarded)]
        stack[:0] = decision.left

    assert settled == numbers


@given(st.lists(st.integers(0, 200), min_size=1, max_size=10), st.integers(0, 400))
def test_expiry_takes_the_old_from_the_front(ages: list[int], now_s: int) -> None:
    """What is given up and what remains are the segment; what goes is older than the limit."""
    times = sorted(ages)
    segment = Segment(tuple(kept(number, at_s=at_s) for number, at_s in enumerate(times)))
    discard, rest = expire(segment, now_s, EventSourceMapping(maximum_record_age_in_seconds=60))
    old = () if discard is None else discard.records
    fresh = () if rest is None else rest.records

    assert (*old, *fresh) == segment.records
    assert all(now_s - record.created_at_s > 60 for record in old)
    assert not fresh or now_s - fresh[0].created_at_s <= 60


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "B"])


@given(scalars, scalars)
def test_equality_and_its_contrary(wanted: object, value: object) -> None:
    """For a value that is there, anything-but holds exactly where equality does not."""
    equal = parse_criteria([{"f": [wanted]}]).match({"f": value})

    assert equal == (type(wanted) is type(value) and wanted == value)
    if isinstance(wanted, str) or (isinstance(wanted, int) and not isinstance(wanted, bool)):
        assert parse_criteria([{"f": [{"anything-but": [wanted]}]}]).match({"f": value}) != equal


@given(st.dictionaries(st.sampled_from("abc"), scalars | st.lists(scalars, max_size=2), max_size=3))
def test_every_field_exists_or_does_not(record: dict[str, object]) -> None:
    """`exists` true and false are each other's contrary for every field, there or not."""
    for name in "abcd":
        there = parse_criteria([{name: [{"exists": True}]}]).match(record)
        absent = parse_criteria([{name: [{"exists": False}]}]).match(record)
        assert there != absent
