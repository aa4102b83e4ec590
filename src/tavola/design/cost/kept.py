"""Kept: what was found of a design's parts, by their identity.

A month is computed under each way of paying and once for each change that might save, and most of what a design says stays
the same in all of them. The parts are frozen, and their own hash would go through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Kept(Generic[V]):
    """Values of things, so many at most; the things are held with them, so that no identity becomes another's."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[tuple[Hashable, ...], tuple[tuple[object, ...], V]] = {}

    def of(self, things: tuple[object, ...], more: Hashable, find: Callable[[], V]) -> V:
        """Return what is known of things, or find it; `more` is what else it depends on."""
        key = (*map(id, things), more)
        known = self._found.get(key)
        if known is None:
            known = (things, find())
            if len(self._found) >= self._most:
                self._found.clear()
            self._found[key] = known
        return known[1]
