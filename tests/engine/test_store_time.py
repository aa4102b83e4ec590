"""Store time: it measures and is never set; log time never goes back, and tells how old a change is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.clock import SYSTEM_CLOCK, ManualClock
from tavola.engine import Engine, store_time
from tavola.engine.storage import Store, StoreDamaged
from tavola.engine.store_time import StoreTime
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.faults import Fault

START_S = 1_700_000_000.0
DAY_S = 86_400.0
YEARS_S = 10 * 365 * DAY_S
JUMPS_S = (
    1.0,
    -1.0,
    90.0,
    -90.0,
    3_600.0,
    -3_600.0,
    DAY_S,
    -DAY_S,
    40 * DAY_S,
    -40 * DAY_S,
    YEARS_S,
    -YEARS_S,
)
TABLE: dict[str, Any] = {
    "TableName": "Things",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_S)


@pytest.fixture
def kept() -> Iterator[Store]:
    with closing(Store.open(None, sync="off", cache_mb=16)) as store:
        yield store


def save(store: Store, time: StoreTime) -> None:
    """Save the time as a transaction does that stores one."""
    store.begin()
    time.stamp()
    store.commit()


def test_the_system_clock_measures_forward() -> None:
    """Two readings of elapsed time are in their order."""
    readings = [SYSTEM_CLOCK.elapsed() for _ in range(1_000)]

    assert readings == sorted(readings)


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_setting_the_clock_is_not_time_that_passes(clock: ManualClock, kept: Store, jump_s: float) -> None:
    """While a process runs, store time grows by what has elapsed, whatever the wall clock shows."""
    time = StoreTime(kept, clock)
    clock.advance(5)
    clock.jump(jump_s)
    clock.advance(7)

    assert time.now() == (START_S + 12 + jump_s, START_S + 12)


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_jump_that_was_saved_is_no_time_at_a_restart(
    clock: ManualClock, kept: Store, jump_s: float
) -> None:
    """After a restart, the time between is what the wall clock moved since the pair was saved."""
    time = StoreTime(kept, clock)
    clock.advance(5)
    clock.jump(jump_s)
    save(kept, time)
    clock.advance(30)

    assert StoreTime(kept, clock).elapsed_s() == START_S + 35


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_between_two_processes_time_does_not_go_back(clock: ManualClock, kept: Store, jump_s: float) -> None:
    """A clock set ahead while the store is closed counts as time; one set back counts as none."""
    save(kept, StoreTime(kept, clock))
    clock.jump(jump_s)

    assert StoreTime(kept, clock).elapsed_s() == START_S + max(0.0, jump_s)


@pytest.mark.parametrize("wrong_s", [-YEARS_S, -3_600.0, 3_600.0, YEARS_S])
def test_a_clock_that_is_right_again_lets_no_years_pass(
    clock: ManualClock, kept: Store, wrong_s: float
) -> None:
    """A machine that starts with a wrong clock, and is corrected later, counts the time that really passed."""
    save(kept, StoreTime(kept, clock))
    clock.jump(wrong_s)
    wrong = StoreTime(kept, clock)
    began_s = wrong.elapsed_s()
    clock.advance(50)
    save(kept, wrong)
    clock.jump(-wrong_s)
    clock.advance(100)

    assert StoreTime(kept, clock).elapsed_s() == (START_S + 150 if wrong_s < 0 else began_s + 50)


def test_a_difference_from_long_ago_lets_no_time_pass(clock: ManualClock, kept: Store) -> None:
    """A clock that was set back counts as no time, although an earlier difference would fit much more."""
    time = StoreTime(kept, clock)
    for jump_s in (-YEARS_S, YEARS_S):
        save(kept, time)
        clock.jump(jump_s)
        clock.advance(10)
    save(kept, time)
    clock.jump(-3_600)

    assert StoreTime(kept, clock).elapsed_s() == START_S + 20


def test_a_time_that_was_rolled_back_is_saved_again(clock: ManualClock, kept: Store) -> None:
    """The next stamp saves it, though less than a second has passed."""
    time = StoreTime(kept, clock)
    kept.begin()
    time.stamp()
    kept.rollback()
    time.mark_unsaved()
    save(kept, time)

    assert kept.get_record("time", "store") is not None


def test_a_stamp_outside_of_a_transaction_is_a_bug(clock: ManualClock, kept: Store) -> None:
    """A store time is saved together with the values that depend on it, or not at all."""
    with pytest.raises(AssertionError, match="saved with"):
        StoreTime(kept, clock).stamp()


def test_a_damaged_time_is_reported(clock: ManualClock, kept: Store) -> None:
    """I10: what cannot be read is not guessed."""
    kept.put_record("time", "store", b"{}")

    with pytest.raises(StoreDamaged, match="saved time cannot be read"):
        StoreTime(kept, clock)


def test_log_time_reaches_the_wall_time_again(clock: ManualClock, kept: Store) -> None:
    """Set back by a minute, it goes on at half the pace for two minutes, and follows the wall time then."""
    time = StoreTime(kept, clock)
    time.tick()
    clock.jump(-60)
    ahead_s: list[float] = []
    for _ in range(5):
        time.tick()
        ahead_s.append(round(time.now_us / 1_000_000 - clock.now(), 3))
        clock.advance(30)

    assert ahead_s == [60.0, 45.0, 30.0, 15.0, 0.0]


def test_what_was_read_as_of_a_moment_lies_in_the_past(clock: ManualClock, kept: Store) -> None:
    """A time that a reader saw is before every later change, and can be read again after the clock was set back."""
    time = StoreTime(kept, clock)
    at_us = time.log_us()
    time.reach(at_us + 1)
    clock.jump(-YEARS_S)
    time.tick()

    assert time.now_us > at_us
    assert time.log_us() >= at_us


Moves = list[tuple[bool, float]]
MOVES = st.lists(
    st.tuples(st.booleans(), st.floats(0.001, 100_000) | st.sampled_from(JUMPS_S)), min_size=1, max_size=60
)


def check_ages(moves: Moves, *, exact: bool) -> None:
    """Let time pass or jump, note changes, and compare the age that the log time gives each with its true one."""
    clock = ManualClock(START_S)
    with closing(Store.open(None, sync="off", cache_mb=16)) as kept:
        time = StoreTime(kept, clock)
        changes: list[tuple[float, int]] = []
        for jumps, seconds in moves:
            if jumps:
                clock.jump(seconds)
            else:
                clock.advance(abs(seconds))
            time.tick()
            changes.append((clock.elapsed(), time.now_us))

        assert [at_us for _, at_us in changes] == sorted(at_us for _, at_us in changes)
        for elapsed_s, at_us in changes:
            age_s = clock.elapsed() - elapsed_s
            if age_s > 35 * DAY_S:
                continue  # longer than any retention
            assert time.log_us_ago(age_s + 3) < at_us, "a change is not taken for older than it is"
            if exact and age_s > 3:
                assert time.log_us_ago(age_s - 3) >= at_us, "an old change is known to be old"


@given(moves=MOVES)
def test_the_age_of_a_change_is_elapsed_time(moves: Moves) -> None:
    """Whatever happened to the wall clock, the log time of so many seconds ago tells older from younger changes."""
    check_ages(moves, exact=True)


@settings(max_examples=20)
@given(moves=MOVES)
def test_where_steps_were_merged_changes_are_kept_longer(moves: Moves) -> None:
    """With more corrections than are remembered, no change is taken for older than it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_time, "_STEPS_MAX", 3)
        check_ages(moves, exact=False)


def test_log_time_that_waits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: if log time stood still while the wall time is behind, new changes would look old."""
    monkeypatch.setattr(store_time.ClockStep, "slow_log_us", lambda step, store_s: step.log_us)

    with pytest.raises(AssertionError, match="change"):
        check_ages([(False, 1.0), (True, -3_600.0), (False, 100.0), (False, 100.0)], exact=True)


def test_steps_older_than_any_change_are_dropped(clock: ManualClock, kept: Store) -> None:
    """A clock that is corrected every day does not make the saved time grow without end."""
    time = StoreTime(kept, clock)
    for _ in range(400):
        clock.advance(DAY_S)
        clock.jump(-5)
        time.tick()
    save(kept, time)

    data = kept.get_record("time", "store")
    assert data is not None
    assert len(msgspec.json.decode(data)["steps"]) <= 38


def test_a_table_of_an_earlier_version_made_in_the_future_is_active(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Such a store has the wall time of then as the time when its table becomes ACTIVE, and no store time."""
    path = tmp_path / "old.db"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", TABLE)
        table = engine._catalog.find(DEFAULT_SCOPE, "Things")
        assert table is not None
        engine._group.begin()
        ahead = msgspec.structs.replace(table.definition, ready_at_s=START_S + YEARS_S)
        engine._catalog.change(table, ahead)
        engine._store.delete_record("time", "store")
        engine._group.commit()
        with pytest.raises(Fault):
            engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": "a"}}})

    with closing(Engine.open(path, clock=clock)) as engine:
        assert engine.call("DescribeTable", {"TableName": "Things"})["Table"]["TableStatus"] == "ACTIVE"
        engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": "a"}}})


def test_closing_writes_nothing_while_the_clock_runs_evenly(tmp_path: Path, clock: ManualClock) -> None:
    """Only a jump has to be saved; a store that is opened and closed otherwise stays as it is."""
    path = tmp_path / "t.db"
    with closing(Engine.open(path, clock=clock)) as engine:
        engine.call("CreateTable", TABLE)
    saved: list[bytes | None] = []
    for jump_s in (0.0, 3_600.0):
        with closing(Engine.open(path, clock=clock)) as engine:
            clock.advance(100)
            clock.jump(jump_s)
        with closing(Store.open(path, sync="off", cache_mb=16)) as store:
            saved.append(store.get_record("time", "store"))

    assert b'"store_s":1700000000.0' in (saved[0] or b"")
    assert b'"store_s":1700000200.0' in (saved[1] or b"")
