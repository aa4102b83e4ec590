"""Equality and order between values."""

from __future__ import annotations

from base64 import b64decode

from tavola.values.number import decimal_of
from tavola.values.value import Value

_SETS = ("SS", "NS", "BS")


def equal(left: Value, right: Value) -> bool:
    """Tell whether two admitted values are the same: deep, sets without order, numbers as numbers."""
    if left == right:
        return True
    for tag, mine in left.items():
        theirs = right.get(tag)
        if theirs is None:
            return False
        if tag in _SETS:
            return len(mine) == len(theirs) and set(mine) == set(theirs)
        if tag == "L":
            return len(mine) == len(theirs) and all(map(equal, mine, theirs))
        if tag == "M":
            return mine.keys() == theirs.keys() and all(equal(mine[name], theirs[name]) for name in mine)
    return False


def compare(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1 for two strings, numbers or binaries; None where there is no order."""
    for tag, mine in left.items():
        theirs = right.get(tag)
        if theirs is None:
            return None
        if tag == "S":
            return _order(mine.encode(), theirs.encode())
        if tag == "N":
            a, b = decimal_of(mine), decimal_of(theirs)
            return (a > b) - (a < b)
        if tag == "B":
            return _order(b64decode(mine), b64decode(theirs))
    return None


def _order(first: bytes, second: bytes) -> int:
    return (first > second) - (first < second)
