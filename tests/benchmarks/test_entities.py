"""The libraries compared: each in a process of its own, checked before it is timed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.clients import timing
from benchmarks.entities import Found, LibraryFailed, Worker, _starts, _turns
from benchmarks.libraries import IN_PROCESS, OVER_HTTP, Library, Shelf, surroundings
from benchmarks.trials import BARE, IN, MARSHAL, NAMES, START


def quiet(words: str) -> None:
    assert words


def test_every_library_has_its_module_and_its_version() -> None:
    """What is fetched is fetched by name and version, and ours is never fetched."""
    for library in (*IN_PROCESS, *OVER_HTTP):
        assert find_spec(f"benchmarks.clients.{library.module}") is not None
        assert bool(library.requirements) is not library.ours
        assert all("==" in requirement for requirement in library.requirements)


def test_a_persons_own_settings_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, proxies and Python's own variables would change what is measured."""
    for name in ("AWS_PROFILE", "HTTPS_PROXY", "https_proxy", "PYTHONDEVMODE"):
        monkeypatch.setenv(name, "x")
    told = surroundings(OVER_HTTP[0])

    assert not {"AWS_PROFILE", "HTTPS_PROXY", "https_proxy", "PYTHONDEVMODE"} & set(told)
    assert "PATH" in told


def test_a_client_that_does_not_give_back_what_it_stored_is_refused() -> None:
    """A rate of wrong answers is no rate; a time may come back as the text it is stored as."""
    fields = timing.fields(7)
    timing.check(fields, 7)
    timing.check(SimpleNamespace(**fields), 7)
    timing.check(fields | {"created_at": timing.CREATED_AT.isoformat()}, 7)

    with pytest.raises(SystemExit, match="replies"):
        timing.check(fields, 7 + timing.ENTITIES)
    with pytest.raises(SystemExit, match="tags"):
        timing.check(fields | {"tags": []}, 7)


def test_no_put_stores_what_is_there() -> None:
    """An engine could see that nothing changes: each call has a number of its own."""
    first, again = timing.fields(3), timing.fields(3 + timing.ENTITIES)

    assert first["ticket_id"] == again["ticket_id"]
    assert first != again


def test_workers_take_turns(tmp_path: Path) -> None:
    """Ours in memory is started, checked and timed, and a trial has a number a round."""
    library = IN_PROCESS[0]
    shelf = Shelf(tmp_path, quiet)
    found = Found()
    worker = Worker(library, shelf.command(library), tmp_path / "log", None)
    try:
        _turns({IN: ("put", "get"), MARSHAL: ("both_ways",)}, [worker], 2, 0.01, found, quiet)
    finally:
        worker.close()

    assert [(trial.section, trial.operation) for trial in found.trials] == [
        (IN, "put"),
        (IN, "get"),
        (MARSHAL, "both_ways"),
    ]
    assert all(len(trial.took_us) == len(trial.cpu_us) == 2 for trial in found.trials)
    assert found.failures == []


def test_a_library_that_fails_says_why(tmp_path: Path) -> None:
    """It ends, its last words are the reason, and the others go on."""
    library = Library("broken", "Broken", "with_broken", ours=True)
    with pytest.raises(LibraryFailed, match="no such table"):
        Worker(library, (sys.executable, "-c", "raise SystemExit('no such table')"), tmp_path / "log", None)
    code = "print('[\"put\"]', flush=True); input(); raise SystemExit('gone')"
    worker = Worker(library, (sys.executable, "-c", code), tmp_path / "log", None)
    found = Found()
    try:
        _turns({IN: ("put",)}, [worker], 1, 0.01, found, quiet)
    finally:
        worker.close()

    assert found.trials == []
    assert [(failure.engine, failure.reason) for failure in found.failures] == [("Broken", "put: gone")]


@pytest.mark.slow
def test_starts_are_of_fresh_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import is timed where nothing was imported before; what cannot answer is among the failures."""
    monkeypatch.setattr("benchmarks.entities.STARTS", 1)
    library = Library("tavola", "Tavola", "with_tavola", (), ("--endpoint", "nowhere"), ours=True)
    found = Found()
    _starts([library], Shelf(tmp_path, quiet), found, quiet)

    assert {trial.operation for trial in found.trials} >= {BARE, NAMES}
    assert [(failure.storage, "nowhere" in failure.reason) for failure in found.failures] == [(START, True)]
