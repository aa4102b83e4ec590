"""Nesting depth of a value."""

from __future__ import annotations

from tavola.values.value import Value


def nesting_levels(value: Value) -> int:
    """Return how many containers are around a value's innermost scalar; a scalar has none."""
    members = value.get("M")
    if members is not None:
        return 1 + max(map(nesting_levels, members.values()), default=0)
    elements = value.get("L")
    if elements is not None:
        return 1 + max(map(nesting_levels, elements), default=0)
    return 0
