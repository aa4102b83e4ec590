"""The differences of two items, path by path, by DynamoDB's types.

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

DIFFERENCES_MAX = 200  # told of one pair; the rest is counted
VALUE_BYTES_MAX = 4_096  # a longer value is not repeated beside the images that hold it

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SETS = frozenset({"SS", "NS", "BS"})


@dataclass(frozen=True, slots=True)
class ItemDifference:
    """What is otherwise at one place of an item."""

    path: str  # such as status, cost.monthly, findings[2].title
    kind: Literal["added", "removed", "changed"]
    before: AttributeValue | None = None
    after: AttributeValue | None = None
    gained: tuple[str, ...] = ()  # elements that a set has now
    lost: tuple[str, ...] = ()
    omitted: bool = False  # a value is too long to be repeated here


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """The first differences of two items, and how many there are in all."""

    differences: tuple[ItemDifference, ...]
    total: int


def compare_items(before: Item | None, after: Item | None, limit: int = DIFFERENCES_MAX) -> ItemComparison:
    """Return what is otherwise in an item than it was; an item that was not there had nothing."""
    walk = _compare_maps("", before or {}, after or {})
    differences = tuple(islice(walk, limit))
    return ItemComparison(differences, len(differences) + sum(1 for _ in walk))


def same_value(one: AttributeValue, other: AttributeValue) -> bool:
    """Tell whether two values are the same to DynamoDB."""
    return next(_compare_values("", one, other), None) is None


def same_item(one: Item | None, other: Item | None) -> bool:
    """Tell whether two items are the same to DynamoDB; no item is the same as no item alone."""
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
        assert after is not None, "a place is in one of the two"
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
            gained = tuple(theirs[worth] for worth in theirs if worth not in mine)
            lost = tuple(mine[worth] for worth in mine if worth not in theirs)
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
    for at in range(max(len(mine), len(theirs))):
        one = mine[at] if at < len(mine) else None
        other = theirs[at] if at < len(theirs) else None
        yield from _compare_paths(f"{path}[{head + at}]", one, other)


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
    return {(_number_value(each) if tag == "NS" else each): each for each in values}


def _number_value(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _inside(path: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        return f"{path}[{dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name
