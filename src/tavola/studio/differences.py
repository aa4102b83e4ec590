"""The differences of two items, path by path, compared by DynamoDB's types.

Numbers compare by value, sets without order, and maps and lists recursively. Equal elements at both ends of a list are
skipped, so that one inserted element is one difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from json import dumps
from typing import Any, Literal

from tavola.studio.types import AttributeValue, Item
from tavola.values import value_size

DIFFERENCES_MAX = 200  # returned for one pair of items; the rest is counted
VALUE_BYTES_MAX = 4_096  # longer values are left out, because the items contain them anyway

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SETS = frozenset({"SS", "NS", "BS"})


@dataclass(frozen=True, slots=True)
class ItemDifference:
    """One difference between two items."""

    path: str  # such as status, cost.monthly, findings[2].title
    kind: Literal["added", "removed", "changed"]
    before: AttributeValue | None = None
    after: AttributeValue | None = None
    gained: tuple[str, ...] = ()  # elements added to a set
    lost: tuple[str, ...] = ()
    omitted: bool = False  # a value is too long


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """The first differences of two items, and their total number."""

    differences: tuple[ItemDifference, ...]
    total: int


def compare_items(before: Item | None, after: Item | None, limit: int = DIFFERENCES_MAX) -> ItemComparison:
    """Return the differences of two items; None counts as an item without attributes."""
    walk = _compare_maps("", before or {}, after or {})
    differences = tuple(islice(walk, limit))
    return ItemComparison(differences, len(differences) + sum(1 for _ in walk))


def same_value(one: AttributeValue, other: AttributeValue) -> bool:
    """Return whether DynamoDB considers two values equal."""
    return next(_compare_values("", one, other), None) is None


def same_item(one: Item | None, other: Item | None) -> bool:
    """Return whether DynamoDB considers two items equal; None equals only None."""
    if one is None or other is None:
        return one is other
    return next(_compare_maps("", one, other), None) is None


def _compare_maps(path: str, before: Item, after: Item) -> Iterator[ItemDifference]:
    for name in sorted(before.keys() | after.keys()):
        yield from _compare_paths(_inside(path, name), before.get(name), after.get(name))


def _compare_paths(
    path: str, before: AttributeValue | None, after: AttributeValue | None
) -> Iterator[ItemDifference]:
    if before is None:
        assert after is not None, "the path is in one of the two items"
        yield _difference(path, "added", None, after)
    elif after is None:
        yield _difference(path, "removed", before, None)
    else:
        yield from _compare_values(path, before, after)


def _compare_values(path: str, before: AttributeValue, after: AttributeValue) -> Iterator[ItemDifference]:
    ((tag, one),) = before.items()
    ((other_tag, other),) = after.items()
    if before == after:
        return
    if tag != other_tag:
        yield _difference(path, "changed", before, after)
    elif tag == "M":
        yield from _compare_maps(path, one, other)
    elif tag == "L":
        yield from _compare_lists(path, one, other)
    elif tag in _SETS:
        mine, theirs = _elements(tag, one), _elements(tag, other)
        if mine.keys() != theirs.keys():
            gained = tuple(theirs[value] for value in theirs if value not in mine)
            lost = tuple(mine[value] for value in mine if value not in theirs)
            yield _difference(path, "changed", before, after, gained, lost)
    elif not (tag == "N" and _number_value(one) == _number_value(other)):
        yield _difference(path, "changed", before, after)


def _compare_lists(
    path: str, before: list[AttributeValue], after: list[AttributeValue]
) -> Iterator[ItemDifference]:
    head, shorter = 0, min(len(before), len(after))
    if len(before) != len(after):
        while head < shorter and same_value(before[head], after[head]):
            head += 1
    tail = 0
    while (
        len(before) != len(after)
        and tail < shorter - head
        and same_value(before[len(before) - 1 - tail], after[len(after) - 1 - tail])
    ):
        tail += 1
    mine, theirs = before[head : len(before) - tail], after[head : len(after) - tail]
    for position in range(max(len(mine), len(theirs))):
        one = mine[position] if position < len(mine) else None
        other = theirs[position] if position < len(theirs) else None
        yield from _compare_paths(f"{path}[{head + position}]", one, other)


def _difference(
    path: str,
    kind: Literal["added", "removed", "changed"],
    before: AttributeValue | None,
    after: AttributeValue | None,
    gained: tuple[str, ...] = (),
    lost: tuple[str, ...] = (),
) -> ItemDifference:
    if _is_long(before) or _is_long(after):
        return ItemDifference(path, kind, omitted=True)
    return ItemDifference(path, kind, before, after, gained, lost)


def _is_long(value: AttributeValue | None) -> bool:
    return value is not None and value_size(dict(value)) > VALUE_BYTES_MAX


def _elements(tag: str, values: list[str]) -> dict[Any, str]:
    return {(_number_value(value) if tag == "NS" else value): value for value in values}


def _number_value(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _inside(path: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        return f"{path}[{dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name
