"""Failures: every family of errors has its remedy, or a sentence that needs none."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tavola.backends.errors import AnswerUnreadable, EndpointUntrusted, ExtraMissing, RegionMissing
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.targets import TargetRefused
from tavola.connections import ConnectionRefused
from tavola.errors import TavolaError
from tavola.iam import AssumeRefused, DocumentUnreadable
from tavola.protocol.faults import AccessDeniedFault, UnrecognizedClientFault
from tavola.triggers import FileRefused, HandlerBroken
from tavola.values import ValueMalformed


@pytest.mark.parametrize(
    ("error", "code", "remedy"),
    [
        (EndpointUntrusted("https://x", "self-signed"), Exit.UNREACHABLE, "AWS_CA_BUNDLE"),
        (AnswerUnreadable("http://x", 404), Exit.UNREACHABLE, "--endpoint"),
        (ExtraMissing("x"), Exit.FAILED, "--store"),
        (ConnectionRefused("x"), Exit.USAGE, "--endpoint"),
        (DocumentUnreadable(Path("p.json"), "--file", "gone"), Exit.NOT_FOUND, "--file"),
        (AssumeRefused("x"), Exit.FAILED, "--by"),
        (HandlerBroken("projector", "SyntaxError"), Exit.FAILED, "Mend the module projector"),
        (FileRefused(Path("x"), "is a folder"), Exit.FAILED, "--checkpoints"),
        (UnrecognizedClientFault(), Exit.FAILED, "tavola iam add-key"),
        (AccessDeniedFault("x"), Exit.FAILED, "tavola iam explain"),
        (ValueMalformed("x"), Exit.FAILED, "Mend the value"),
        (TargetRefused("x; do this"), Exit.FAILED, None),
        (RegionMissing(), Exit.FAILED, None),
        (TavolaError("x"), Exit.FAILED, None),
    ],
)
def test_an_error_is_told_with_its_remedy(
    capsys: pytest.CaptureFixture[str], error: TavolaError, code: Exit, remedy: str | None
) -> None:
    """A line of what to do where the sentence leaves that open; nobody is sent to the help at large."""
    with pytest.raises(click.exceptions.Exit) as ended, reporting_errors("Cannot."):
        raise error

    said = capsys.readouterr().err
    assert ended.value.exit_code == code
    assert f"Why: {error}" in said
    assert "tavola --help" not in said
    if remedy is None:
        assert "Do:" not in said
    else:
        assert remedy in said.partition("Do:")[2]


def test_what_was_noted_on_an_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever was on the way may have known more."""
    error = TavolaError("it is not there")
    error.add_note("looked in eu-west-1")

    with pytest.raises(click.exceptions.Exit), reporting_errors("Cannot."):
        raise error

    assert "Why: it is not there; looked in eu-west-1\n" in capsys.readouterr().err
