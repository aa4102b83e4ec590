"""Known differences: the rows that `docs/reference/fidelity.md` shows, and which difference each allows.

A row's `tavola` and `local` are the words of the two answers, or lists of them, in which `…` stands for
anything. A difference that no row allows fails the suite, and so does a row that nothing in the corpus shows.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.differential.answers import Difference

FILE = Path(__file__).with_name("known.toml")
RIGHTS = ("Tavola", "Local", "unknown", "either")
_FIELDS = ("noun", "what", "tavola", "local", "right", "source")
_DEFAULTS = {"operation": "*", "place": "refusal", "request": "…", "generated": True}


class RowRefused(Exception):
    """A row that cannot be used; str() names it."""


@dataclass(frozen=True)
class Row:
    """One known difference."""

    noun: str
    what: str  # also its name: no two rows say the same
    operation: str  # names with `|` between them, or `*`
    place: str  # `refusal`, or a member's path; `…` stands for anything
    tavola: tuple[str, ...]
    local: tuple[str, ...]
    right: str
    source: str
    request: str  # what the body looks like
    generated: bool  # False: allowed in the corpus alone, because the words would cover too much elsewhere

    def allows(self, difference: Difference, body: str) -> bool:
        """Tell whether this row is about a difference in the answers to a body."""
        return (
            (self.operation == "*" or difference.operation in self.operation.split("|"))
            and self._place.fullmatch(difference.place) is not None
            and self._ours.fullmatch(difference.ours) is not None
            and self._theirs.fullmatch(difference.theirs) is not None
            and self._request.fullmatch(body) is not None
        )

    @cached_property
    def _place(self) -> re.Pattern[str]:
        return _pattern((self.place,))

    @cached_property
    def _request(self) -> re.Pattern[str]:
        return _pattern((self.request,))

    @cached_property
    def _ours(self) -> re.Pattern[str]:
        return _pattern(self.tavola)

    @cached_property
    def _theirs(self) -> re.Pattern[str]:
        return _pattern(self.local)


def _pattern(choices: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(".*".join(map(re.escape, each.split("…"))) for each in choices), re.DOTALL)


def read_rows(text: str | None = None) -> tuple[Row, ...]:
    """Return the rows of the file in its order, refusing what is not a whole row."""
    found: list[Row] = []
    content: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8") if text is None else text)
    for raw in content.get("row", []):
        what = str(raw.get("what", "a row without a name"))
        if missing := set(_FIELDS) - set(raw):
            raise RowRefused(f"{what}: lacks {', '.join(sorted(missing))}")
        if unknown := set(raw) - {*_FIELDS, *_DEFAULTS}:
            raise RowRefused(f"{what}: does not know {', '.join(sorted(unknown))}")
        if raw["right"] not in RIGHTS:
            raise RowRefused(f"{what}: right is one of {', '.join(RIGHTS)}")
        if what in {row.what for row in found}:
            raise RowRefused(f"{what}: is there twice")
        found.append(Row(**_DEFAULTS | raw | {side: _choices(raw[side]) for side in ("tavola", "local")}))
    return tuple(found)


def _choices(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def allowing(rows: Iterable[Row], difference: Difference, body: str) -> Row | None:
    """Return the first row that allows a difference in the answers to a body."""
    return next((row for row in rows if row.allows(difference, body)), None)
