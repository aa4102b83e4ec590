"""A cache keyed by the identity of frozen objects.

Cost computations ask the same questions about the same parts of a design many times: once per billing mode and once per
suggested change. The parts are frozen dataclasses whose hash walks all of their contents, so identity is the cheaper key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class IdentityCache(Generic[V]):
    """At most `entries_max` computed values; the objects are held too, so that an id is never reused while it is a key."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: dict[tuple[Hashable, ...], tuple[tuple[object, ...], V]] = {}

    def get_or_compute(
        self, objects: tuple[object, ...], parameters: Hashable, compute: Callable[[], V]
    ) -> V:
        """Return the value for these objects and parameters, computed on first use."""
        key = (*map(id, objects), parameters)
        entry = self._entries.get(key)
        if entry is None:
            entry = (objects, compute())
            if len(self._entries) >= self._entries_max:
                self._entries.clear()
            self._entries[key] = entry
        return entry[1]
