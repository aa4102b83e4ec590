"""Failures: every family of errors has its remedy, or a sentence that needs none."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tavola.backends.errors import EndpointUntrusted, ExtraMissing, RegionMissing, ResponseUnreadable
from tavola.cli.errors import CommandError, Exit, describe_constraints, reporting_errors
from tavola.connections import InvalidConnectionTarget
from tavola.errors import TavolaError
from tavola.iam import AssumeRoleDenied, PolicyFileError
from tavola.protocol.faults import AccessDeniedFault, UnrecognizedClientFault
from tavola.triggers import HandlerBroken, TriggerFileRefused
from tavola.values import ValueMalformed


@pytest.mark.parametrize(
    ("error", "code", "remedy"),
    [
        (EndpointUntrusted("https://x", "self-signed"), Exit.UNREACHABLE, "AWS_CA_BUNDLE"),
        (ResponseUnreadable("http://x", 404), Exit.UNREACHABLE, "--endpoint"),
        (ExtraMissing("x"), Exit.FAILED, "--store"),
        (InvalidConnectionTarget("x"), Exit.USAGE, "--endpoint"),
        (PolicyFileError(Path("p.json"), "--file", "gone"), Exit.NOT_FOUND, "--file"),
        (AssumeRoleDenied("x", "y"), Exit.FAILED, "--by"),
        (HandlerBroken("projector", "SyntaxError"), Exit.FAILED, "Fix the module projector"),
        (TriggerFileRefused(Path("x"), "is a folder"), Exit.FAILED, "--checkpoints"),
        (UnrecognizedClientFault(), Exit.FAILED, "tavola iam add-key"),
        (AccessDeniedFault("x"), Exit.FAILED, "tavola iam explain"),
        (ValueMalformed("x"), Exit.FAILED, "Fix the value"),
        (CommandError("x", "Do this."), Exit.USAGE, "Do this."),
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
    assert f"Cause: {error}" in said
    assert "tavola --help" not in said
    if remedy is None:
        assert "Fix:" not in said
    else:
        assert remedy in said.partition("Fix:")[2]


def test_what_was_noted_on_an_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever was on the way may have known more."""
    error = TavolaError("it is not there")
    error.add_note("looked in eu-west-1")

    with pytest.raises(click.exceptions.Exit), reporting_errors("Cannot."):
        raise error

    assert "Cause: it is not there; looked in eu-west-1.\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (
            (
                "Value 'b b' at 'backupName' failed to satisfy constraint: Member must satisfy regular expression pattern: "
                "[a-zA-Z0-9_.-]+"
            ),
            "'b b' is not a valid backup name: use only letters, digits, _, - and .",
        ),
        (
            (
                "Value 't9' at 'tableCreationParameters.tableName' failed to satisfy constraint: Member must have length "
                "greater than or equal to 3"
            ),
            "'t9' is not a valid table name: use at least 3 characters",
        ),
        (
            "Value 'x' at 'backupArn' failed to satisfy constraint: Member must have length greater than or equal to 37",
            "'x' is not the ARN of a backup",
        ),
    ],
)
def test_a_constraint_of_dynamodb_is_put_in_words(constraint: str, words: str) -> None:
    """A user reads neither a regular expression nor the member names of a request."""
    assert describe_constraints(f"1 validation error detected: {constraint}") == words


def test_other_messages_of_dynamodb_are_unchanged() -> None:
    """Only the sentence about constraints is rewritten."""
    assert describe_constraints("The table does not have the specified index: x").endswith("index: x")


def test_error_numbers_of_the_system_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The system's sentence is enough."""
    with pytest.raises(click.exceptions.Exit), reporting_errors("Cannot."):
        raise TavolaError("http://x does not respond ([Errno 111] Connection refused)")

    assert "Cause: http://x does not respond (Connection refused).\n" in capsys.readouterr().err
