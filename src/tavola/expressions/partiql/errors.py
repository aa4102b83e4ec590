"""The errors of statements, in DynamoDB's words."""

from __future__ import annotations

from typing import NamedTuple

from tavola.expressions.errors import ExpressionError

_NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "


class StatementPosition(NamedTuple):
    """A position in a statement; lines and columns count from 1."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class StatementError(ExpressionError):
    """A statement does not parse or check; `str(error)` is DynamoDB's whole message.

    `place` is the location of the error, if it has one.
    """

    def __init__(
        self, sentence: str, place: StatementPosition | None = None, *, show_place: bool = True
    ) -> None:
        self.place = place
        super().__init__(f"{sentence} at {place}" if place is not None and show_place else sentence)


def syntax_error(detail: str = "", place: StatementPosition | None = None) -> StatementError:
    """Return the error for a text that is not a statement; DynamoDB shows no location."""
    return StatementError(_NOT_WELL_FORMED + detail, place, show_place=False)
