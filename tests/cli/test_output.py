"""What the command line tells a person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tavola.cli.output import bar, own_command, stages


@pytest.mark.parametrize("known", [True, False])
def test_a_command_is_told_as_it_can_be_typed(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that the shell finds is told by its name, another by its path, whatever the folder."""
    program = tmp_path / "a folder" / "tavola"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["a folder/tavola", "demo"])
    monkeypatch.setenv("PATH", str(program.parent) if known else str(tmp_path))

    assert own_command() == ("tavola" if known else f"'{program}'")


def test_a_module_is_told_with_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with `python -m`, it is told so."""
    monkeypatch.setattr(sys, "argv", ["/somewhere/tavola/__main__.py", "demo"])

    assert own_command() == f"{sys.executable} -m tavola"


def test_progress_is_drawn_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal sees a bar that ends full; a log file sees nothing."""
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        with bar("Exporting", 40) as show:
            show(10)
            show(50)
        drawn = capsys.readouterr().err

        assert bool(drawn) == is_terminal
    assert drawn.rstrip().endswith("Exporting [########################] 40/40")


def test_stages_without_a_terminal_report_each_part_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A part is reported when it is complete, with its count and its time."""
    with stages() as show:
        show("tickets", 10, 20)
        show("tickets", 20, 20)
        show("reviews", 3, None)

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("  tickets: 20 in ")


def test_long_stages_without_a_terminal_report_their_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part that is not complete after ten seconds is reported, and again ten seconds later."""
    times = iter((0.0, 9.0, 10.0, 15.0, 21.0, 25.0))
    monkeypatch.setattr("tavola.cli.output._ProgressLine.update", lambda *_: None)
    monkeypatch.setattr("tavola.clock.monotonic", lambda: next(times))
    with stages() as show:
        for done in (1, 9, 10, 15, 21, 25):
            show("tickets", done, 25)

    lines = capsys.readouterr().err.splitlines()
    assert lines == ["  tickets: 10 of 25", "  tickets: 21 of 25", "  tickets: 25 in 25.0 s"]
