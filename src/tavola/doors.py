"""Doors: names of a room that are fetched when they are first asked for, because what they stand on is dear to load.

A program that never says a PartiQL statement should not wait for the grammar. Type checkers read the imports that
stand in the door under `TYPE_CHECKING`; a test holds the two lists together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def late(door: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a door, from each module to the names that are fetched from it."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def fetch(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        found: object = getattr(import_module(home), name)
        setattr(sys.modules[door], name, found)  # the second time costs nothing
        return found

    return fetch
