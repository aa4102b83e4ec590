"""Errors: exit codes, and the one place that prints an exception as an error message.

A command wraps its work in `reporting_errors("Cannot lint shop.")`. A `TavolaError` raised inside is printed as

    Error: Cannot lint shop.
      Cause: There is no module named 'shop' here.
      Fix:   Run the command in the module's folder, or install the package.

and ends the process with the exit code of the exception's `kind`. The exception carries everything else, so no command
maps exception classes to messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

import click

from tavola.cli.output import print_error
from tavola.errors import ErrorKind, TavolaError


class Exit(IntEnum):
    """An exit code of the program."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNREACHABLE = 5
    INTERNAL = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The code's line in the help."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.OK: "success",
    Exit.FAILED: "the command failed, or a check found problems",
    Exit.USAGE: "wrong command line",
    Exit.NOT_FOUND: "a file or resource named on the command line does not exist",
    Exit.CONFLICT: "conflict: in use, or already recorded",
    Exit.UNREACHABLE: "an address cannot be reached",
    Exit.INTERNAL: "internal error (a bug in Tavola)",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
}
# Every other kind: Exit.FAILED
_EXIT_CODES = {
    ErrorKind.USAGE: Exit.USAGE,
    ErrorKind.NOT_FOUND: Exit.NOT_FOUND,
    ErrorKind.IN_USE: Exit.CONFLICT,
    ErrorKind.UNAVAILABLE: Exit.UNREACHABLE,
}
_ADVICE_STARTS = (
    "did you mean ",
    "run `",
    "choose ",
    "use ",
    "declare ",
    "add ",
    "pass ",
    "select ",
)  # of what to do next
_ERROR_NUMBER = re.compile(r"\[Errno -?\d+\] ")
_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CONSTRAINT = re.compile(
    r"Value (?P<value>'.*?') at '(?P<member>[^']+)' failed to satisfy constraint: Member must (?P<rule>[^;]+)"
)
_RULES: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (
        re.compile(r"satisfy regular expression pattern: (\[a-zA-Z0-9_\.-\]\+)"),
        lambda _: "use only letters, digits, _, - and .",
    ),
    (
        re.compile(r"have length greater than or equal to (\d+)"),
        lambda count: f"use at least {count} characters",
    ),
    (re.compile(r"have length less than or equal to (\d+)"), lambda count: f"use at most {count} characters"),
    (re.compile(r"have value greater than or equal to (\d+)"), lambda least: f"use at least {least}"),
    (re.compile(r"have value less than or equal to (\d+)"), lambda most: f"use at most {most}"),
    (re.compile(r"satisfy enum value set: \[(.*)\]"), lambda names: f"use one of {names}"),
)
_EXTRA_MODULES = frozenset(
    {"fastapi", "starlette", "uvicorn", "jinja2", "markupsafe", "python_multipart", "multipart"}
)


class CommandError(TavolaError):
    """A command that cannot be carried out as it was typed."""

    kind = ErrorKind.USAGE

    def __init__(self, cause: str, remedy: str | None = None, kind: ErrorKind = ErrorKind.USAGE) -> None:
        self.remedy = remedy
        self.kind = kind
        super().__init__(cause)


@contextmanager
def reporting_errors(what: str, *, failed: Exit = Exit.FAILED, extra: str = "studio") -> Iterator[None]:
    """Report an error raised in the block and exit; `what` is the first line of the message.

    `failed` replaces `Exit.FAILED` in commands where exit code 1 means "found problems". `extra` is the pip extra that
    contains the command's web stack.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _EXTRA_MODULES:
            raise
        cause = f"This command needs {module}, which is not installed."
        print_error(what, cause, f"Run: pip install 'tavola[{extra}]'")
        raise click.exceptions.Exit(Exit.FAILED) from error
    except TavolaError as error:
        cause = "; ".join((describe_constraints(str(error)), *getattr(error, "__notes__", ())))
        cause = _ERROR_NUMBER.sub("", cause)
        remedy = None if error.remedy is None or error.remedy in cause else error.remedy
        if remedy is None and "; " in cause and cause.rpartition("; ")[2].startswith(_ADVICE_STARTS):
            cause, _, advice = cause.rpartition("; ")
            remedy = advice[0].upper() + advice[1:]
        print_error(what, _end_sentence(cause), None if remedy is None else _end_sentence(remedy))
        raise click.exceptions.Exit(_EXIT_CODES.get(error.kind, failed)) from error


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":", "`")) else f"{text}."


def describe_constraints(message: str) -> str:
    """Return DynamoDB's sentence about a parameter in plain words, without its regular expression; any other unchanged.

    "1 validation error detected: Value 'b b' at 'backupName' failed to satisfy constraint: Member must satisfy regular
    expression pattern: [a-zA-Z0-9_.-]+" becomes "'b b' is not a valid backup name: use only letters, digits, _, - and .".
    """
    if "failed to satisfy constraint" not in message:
        return message
    sentences = []
    for found in _CONSTRAINT.finditer(message):
        name = _WORD_STARTS.sub(" ", found["member"].rpartition(".")[2]).lower()
        if name.endswith(" arn"):
            sentences.append(f"{found['value']} is not the ARN of a {name.removesuffix(' arn')}")
            continue
        rule = next(
            (words(rest[1]) for pattern, words in _RULES if (rest := pattern.match(found["rule"]))), ""
        )
        sentences.append(f"{found['value']} is not a valid {name}" + (f": {rule}" if rule else ""))
    return "; ".join(dict.fromkeys(sentences)) or message


@contextmanager
def renaming_option(name: str, replacement: str) -> Iterator[None]:
    """Replace an option's name in the remedy of an error, for commands in which the option has another name."""
    try:
        yield
    except TavolaError as error:
        error.remedy = error.remedy and error.remedy.replace(name, replacement)
        raise
