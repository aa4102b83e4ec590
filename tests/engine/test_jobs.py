"""Jobs: slices in transactions of their own, over restarts, and one that fails for ever is let go."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tavola.engine import Engine, StoreDamaged, StoreFull
from tavola.engine.operations import STEPS, Services

SLICES = 5


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A kind of job that does its slices and notes each in the store."""
    done: list[int] = []

    def step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
        place = state["done"] + 1
        services.store.put_record("counted", f"{place}", b"x")
        done.append(place)
        return None if place == SLICES else {"done": place}

    monkeypatch.setitem(STEPS, "count", step)
    return done


def start(engine: Engine, kind: str = "count") -> str:
    engine._group.begin()
    id_ = engine._services.jobs.start(kind, {"done": 0})
    engine._group.commit()
    return id_


def test_a_job_is_done_in_slices(counting: list[int]) -> None:
    """Each turn does what fits in its budget; when it is finished nothing is left of it."""
    with closing(Engine.open()) as engine:
        id_ = start(engine)
        turns = 0
        while engine.run_background_work(0.0001):
            turns += 1

        assert counting == [1, 2, 3, 4, 5]
        assert turns >= 1
        assert id_ not in engine._services.jobs.unfinished
        assert len(list(engine._store.records("counted"))) == SLICES


def test_a_job_goes_on_after_a_restart(tmp_path: Path, counting: list[int]) -> None:
    """A slice that was committed is not done again, one that was not is."""
    with closing(Engine.open(tmp_path / "s.db")) as engine:
        start(engine)
        engine._group.begin()
        engine._background.run_step()
        engine._group.commit()
        engine._group.begin()
        engine._background.run_step()  # and the power goes
    with closing(Engine.open(tmp_path / "s.db")) as engine:
        while engine.run_background_work():
            pass

    assert counting == [1, 2, 2, 3, 4, 5]


def test_a_step_that_raises_is_given_up_and_undoes_nothing_else(
    monkeypatch: pytest.MonkeyPatch, counting: list[int]
) -> None:
    """What the failed slice wrote is undone; other jobs and other writes go on."""

    def step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
        services.store.put_record("half", "done", b"x")
        raise KeyError("planted")

    monkeypatch.setitem(STEPS, "breaks", step)
    with closing(Engine.open()) as engine:
        start(engine, "breaks")
        start(engine)
        while engine.run_background_work():
            pass

        assert counting == [1, 2, 3, 4, 5]
        assert engine._store.get_record("half", "done") is None
        assert not engine._services.jobs.unfinished
        assert engine.write_failure is None


def test_damage_that_a_job_meets_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch, counting: list[int]
) -> None:
    """A job whose source is damaged is given up, and one of a kind that no one knows too."""

    def step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
        raise StoreDamaged("planted")

    monkeypatch.setitem(STEPS, "meets damage", step)
    with closing(Engine.open()) as engine:
        start(engine, "meets damage")
        start(engine, "of another version")
        start(engine)
        while engine.run_background_work():
            pass

        assert counting == [1, 2, 3, 4, 5]
        assert not engine._services.jobs.unfinished


def test_a_full_disk_leaves_a_job_for_later(monkeypatch: pytest.MonkeyPatch, counting: list[int]) -> None:
    """Without room nothing is given up: the job goes on once there is some."""
    room = False

    def step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
        if not room:
            raise StoreFull("planted")
        return None

    monkeypatch.setitem(STEPS, "needs room", step)
    with closing(Engine.open()) as engine:
        start(engine, "needs room")
        engine.run_background_work()
        waiting = bool(engine._services.jobs.unfinished)
        room = True
        while engine.run_background_work():
            pass

        assert waiting
        assert not engine._services.jobs.unfinished


def test_chores_wait_for_a_group_that_is_open(counting: list[int]) -> None:
    """Background work never joins writes that are not committed yet."""
    with closing(Engine.open()) as engine:
        start(engine)
        engine.collect_writes()
        engine._group.begin()
        engine.run_background_work()
        held = list(counting)
        engine.commit()
        while engine.run_background_work():
            pass

        assert held == []
        assert counting == [1, 2, 3, 4, 5]
