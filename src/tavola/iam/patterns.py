"""Patterns: texts with wildcards and variables, made into functions.

A pattern is split at its stars and its parts are looked for one after the other, so that it takes time in
proportion to the text and never more: whoever may put a policy must not be able to keep others waiting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from tavola.protocol.policy_values import MANY, Piece, Variable, Wild, parse_pieces

Match: TypeAlias = Callable[[str], bool]
Values: TypeAlias = tuple[str, ...]
Solid: TypeAlias = tuple[str | Wild, ...]


class Context(Protocol):
    """What a condition may ask of a request: the values of a key in small letters, none if it is absent."""

    def values(self, key: str) -> Values:
        """Return the values that the request has for a condition key."""
        ...


def expand(pieces: Sequence[Piece], known: Mapping[str, Values]) -> tuple[Piece, ...]:
    """Return the pieces with every known variable replaced by its value; a value's signs are no wildcards.

    A variable of several values has none that could stand in its place.
    """
    return tuple(
        known[piece.key][0]
        if isinstance(piece, Variable) and piece.key in known and len(known[piece.key]) == 1
        else piece
        for piece in pieces
    )


def fill(pieces: Sequence[Piece], context: Context) -> Solid | None:
    """Return the pieces with the request's values in the place of variables; None where one has no value."""
    solid: list[str | Wild] = []
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


def solid_of(pieces: Sequence[Piece]) -> Solid | None:
    """Return pieces without a variable as they are, None where there is one."""
    solid = tuple(piece for piece in pieces if not isinstance(piece, Variable))
    return solid if len(solid) == len(pieces) else None


def matching(solid: Solid) -> Match:
    """Return a function that tells whether a text matches the pattern, from its first sign to its last."""
    if not any(isinstance(piece, Wild) for piece in solid):
        return "".join(piece for piece in solid if isinstance(piece, str)).__eq__
    runs = _runs(solid)
    if len(runs) == 1:
        whole = re.compile(_regex(runs[0]), re.DOTALL)
        return lambda text: whole.fullmatch(text) is not None
    first, *middle, last = runs
    if not middle and not last and all(isinstance(piece, str) for piece in first):
        if not first:
            return _anything
        start = "".join(str(piece) for piece in first)
        return lambda text: text.startswith(start)
    head = re.compile(_regex(first), re.DOTALL)
    between = [re.compile(_regex(run), re.DOTALL) for run in middle if run]
    tail = re.compile(_regex(last), re.DOTALL)
    tail_length = sum(1 if isinstance(piece, Wild) else len(piece) for piece in last)

    def match(text: str) -> bool:
        found = head.match(text)
        if found is None:
            return False
        at, end = found.end(), len(text) - tail_length
        for part in between:
            found = part.search(text, at)
            if found is None:
                return False
            at = found.end()
        return at <= end and tail.fullmatch(text, end) is not None

    return match


@lru_cache(maxsize=1024)
def action_match(text: str) -> Match:
    """Return the function for an action of a policy, on actions in small letters."""
    return matching(solid_of(parse_pieces(text.lower(), wildcards=True, variables=False)) or ())


def arn_matching(solid: Solid) -> Match:
    """Return the function for an ARN in a condition, whose six parts are matched each by itself."""
    parts: list[list[str | Wild]] = [[]]
    for piece in solid:
        if isinstance(piece, Wild):
            parts[-1].append(piece)
            continue
        pieces = piece.split(":", 6 - len(parts)) if len(parts) < 6 else [piece]
        parts[-1].append(pieces[0])
        parts += [[each] for each in pieces[1:]]
    if len(parts) != 6:
        return _anything if solid == (MANY,) else _nothing
    matches = [matching(tuple(part for part in each if part != "")) for each in parts]

    def match(text: str) -> bool:
        given = text.split(":", 5)
        return len(given) == 6 and all(fits(part) for fits, part in zip(matches, given, strict=True))

    return match


def _anything(text: str) -> bool:
    return True


def _nothing(text: str) -> bool:
    return False


def _runs(solid: Solid) -> list[list[str | Wild]]:
    """Return the pieces between the stars."""
    runs: list[list[str | Wild]] = [[]]
    for piece in solid:
        if piece == MANY:
            runs.append([])
        else:
            runs[-1].append(piece)
    return runs


def _regex(run: Sequence[str | Wild]) -> str:
    return "".join("." if isinstance(piece, Wild) else re.escape(piece) for piece in run)
