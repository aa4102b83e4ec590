"""What a statement is refused with, in DynamoDB's words."""

from __future__ import annotations

from typing import NamedTuple

from tavola.expressions.errors import ExpressionError

_NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "


class Place(NamedTuple):
    """Where in a statement something stands; lines and columns count from 1."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class StatementError(ExpressionError):
    """A statement that does not parse or check; `str(error)` is DynamoDB's whole sentence.

    `place` is where in the statement it lies, where that is one place.
    """

    def __init__(self, sentence: str, place: Place | None = None, *, told: bool = True) -> None:
        self.place = place
        super().__init__(f"{sentence} at {place}" if place is not None and told else sentence)


def malformed(detail: str = "", place: Place | None = None) -> StatementError:
    """Return the refusal of a text that is no statement; DynamoDB names no place in it."""
    return StatementError(_NOT_WELL_FORMED + detail, place, told=False)
