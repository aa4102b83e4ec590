"""Wildcard patterns and policy variables, compiled to functions.

A pattern is split at its stars and the parts are searched from left to right, in time linear in the text, without
backtracking: the author of a policy must not be able to stall the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from tavola.protocol.policy_values import MANY, Piece, Variable, Wildcard, parse_pieces

Match: TypeAlias = Callable[[str], bool]
Values: TypeAlias = tuple[str, ...]
Solid: TypeAlias = tuple[str | Wildcard, ...]


class ConditionContext(Protocol):
    """The source of condition values for a request; keys are lower case, and an absent key has no values."""

    def values(self, key: str) -> Values:
        """Return the values of a condition key."""
        ...


def expand(pieces: Sequence[Piece], known: Mapping[str, Values]) -> tuple[Piece, ...]:
    """Return the pieces with known variables replaced; wildcard characters in a value are literal.

    A variable with several values is not replaced.
    """
    return tuple(
        known[piece.key][0]
        if isinstance(piece, Variable) and piece.key in known and len(known[piece.key]) == 1
        else piece
        for piece in pieces
    )


def fill(pieces: Sequence[Piece], context: ConditionContext) -> Solid | None:
    """Return the pieces with variables replaced by the request's values; None if one has no value."""
    solid: list[str | Wildcard] = []
    for piece in pieces:
        if isinstance(piece, Variable):
            values = context.values(piece.key)
            if len(values) == 1:
                solid.append(values[0])
            elif piece.default is not None:
                solid.append(piece.default)
            else:
                return None
        else:
            solid.append(piece)
    return tuple(solid)


def without_variables(pieces: Sequence[Piece]) -> Solid | None:
    """Return the pieces if they have no variable, else None."""
    solid = tuple(piece for piece in pieces if not isinstance(piece, Variable))
    return solid if len(solid) == len(pieces) else None


def compile_pattern(solid: Solid) -> Match:
    """Return a predicate: does a whole text match the pattern?"""
    if not any(isinstance(piece, Wildcard) for piece in solid):
        return "".join(piece for piece in solid if isinstance(piece, str)).__eq__
    runs = _runs(solid)
    if len(runs) == 1:
        full_pattern = re.compile(_regex(runs[0]), re.DOTALL)
        return lambda text: full_pattern.fullmatch(text) is not None
    first, *middle, last = runs
    if not middle and not last and all(isinstance(piece, str) for piece in first):
        if not first:
            return _anything
        start = "".join(str(piece) for piece in first)
        return lambda text: text.startswith(start)
    head = re.compile(_regex(first), re.DOTALL)
    between = [re.compile(_regex(run), re.DOTALL) for run in middle if run]
    tail = re.compile(_regex(last), re.DOTALL)
    tail_length = sum(1 if isinstance(piece, Wildcard) else len(piece) for piece in last)

    def match(text: str) -> bool:
        head_match = head.match(text)
        if head_match is None:
            return False
        at, end = head_match.end(), len(text) - tail_length
        for part in between:
            head_match = part.search(text, at)
            if head_match is None:
                return False
            at = head_match.end()
        return at <= end and tail.fullmatch(text, end) is not None

    return match


@lru_cache(maxsize=1024)
def compile_action(text: str) -> Match:
    """Return a predicate for a policy's Action, applied to lower-case action names."""
    return compile_pattern(
        without_variables(parse_pieces(text.lower(), wildcards=True, variables=False)) or ()
    )


def compile_arn_pattern(solid: Solid) -> Match:
    """Return a predicate for an ARN in a condition; its six parts are matched separately."""
    parts: list[list[str | Wildcard]] = [[]]
    for piece in solid:
        if isinstance(piece, Wildcard):
            parts[-1].append(piece)
            continue
        pieces = piece.split(":", 6 - len(parts)) if len(parts) < 6 else [piece]
        parts[-1].append(pieces[0])
        parts += [[piece] for piece in pieces[1:]]
    if len(parts) != 6:
        return _anything if solid == (MANY,) else _nothing
    matches = [
        compile_pattern(tuple(part for part in pieces_between if part != "")) for pieces_between in parts
    ]

    def match(text: str) -> bool:
        arn_parts = text.split(":", 5)
        return len(arn_parts) == 6 and all(fits(part) for fits, part in zip(matches, arn_parts, strict=True))

    return match


def _anything(text: str) -> bool:
    return True


def _nothing(text: str) -> bool:
    return False


def _runs(solid: Solid) -> list[list[str | Wildcard]]:
    """Return the pieces between the stars."""
    runs: list[list[str | Wildcard]] = [[]]
    for piece in solid:
        if piece == MANY:
            runs.append([])
        else:
            runs[-1].append(piece)
    return runs


def _regex(run: Sequence[str | Wildcard]) -> str:
    return "".join("." if isinstance(piece, Wildcard) else re.escape(piece) for piece in run)
