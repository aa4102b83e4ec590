"""Answers compared: what two answers to one request differ in, piece by piece.

Order counts only where DynamoDB gives one: members of a set, items of a scan and answers of a batch are
compared as collections. A moment, an id and an ARN are compared by being there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tests.differential.opponents import Answer

_SETS = frozenset({"SS", "NS", "BS"})
_UNORDERED = frozenset(
    {
        "AttributeDefinitions",
        "GlobalSecondaryIndexes",
        "LocalSecondaryIndexes",
        "NonKeyAttributes",
        "ConsumedCapacity",
        "Tags",
    }
)
_VOLATILE = frozenset(
    {
        "CreationDateTime",
        "LastUpdateToPayPerRequestDateTime",
        "LastIncreaseDateTime",
        "LastDecreaseDateTime",
        "TableId",
        "TableArn",
        "IndexArn",
        "LatestStreamArn",
        "LatestStreamLabel",
    }
)
ABSENT = "nothing"


@dataclass(frozen=True, slots=True)
class Order:
    """How far the order of Items counts: wholly, not at all, or by the sort key with ties as they come."""

    strict: bool = True
    by: tuple[str, ...] | None = None


_STRICT = Order()


@dataclass(frozen=True, slots=True)
class Difference:
    """One piece in which the answers differ: `refusal`, or the path of a member of the answer."""

    operation: str
    place: str
    ours: str
    theirs: str

    def told(self) -> str:
        """The difference in three lines."""
        return f"{self.operation} at {self.place}\n    Tavola: {self.ours}\n    Local:  {self.theirs}"


def differences(operation: str, ours: Answer, theirs: Answer, *, order: Order = _STRICT) -> list[Difference]:
    """Return what two answers differ in."""
    if ours.status != 200 or theirs.status != 200:
        said = (_refusal(ours), _refusal(theirs))
        found = [Difference(operation, "refusal", *said)] if said[0] != said[1] else []
        if ours.code and ours.code == theirs.code:
            extra = [{k: v for k, v in a.body.items() if k not in _SAID} for a in (ours, theirs)]
            found += _pieces(operation, "", _normal(extra[0], order), _normal(extra[1], order))
        return found
    return list(_pieces(operation, "", _normal(ours.body, order), _normal(theirs.body, order)))


_SAID = frozenset({"__type", "message", "Message"})


def _refusal(answer: Answer) -> str:
    if answer.status == 200:
        return "accepted"
    status = "" if answer.status == 400 else f" (status {answer.status})"
    return f"{answer.code}{status}: {answer.text if answer.text is not None else ABSENT}"


def _pieces(operation: str, place: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    if ours == theirs:
        return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and place not in _WHOLE:
        for key in sorted({*ours, *theirs}):
            inner = f"{place}.{key}" if place else key
            yield from _pieces(operation, inner, ours.get(key), theirs.get(key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for mine, other in zip(ours, theirs, strict=True):
            yield from _pieces(operation, f"{place}[]", mine, other)
    else:
        yield Difference(operation, place, _said(ours), _said(theirs))


# An item is one thing: its attributes are data, not members of an answer.
_WHOLE = frozenset({"Item", "Items[]", "Attributes", "LastEvaluatedKey", "Responses[].Item"})


def _said(value: Any) -> str:
    return ABSENT if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _normal(value: Any, order: Order) -> Any:
    if isinstance(value, list):
        return [_normal(each, order) for each in value]
    if not isinstance(value, dict):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found: dict[str, Any] = {}
    for key, each in value.items():
        inner = _normal(each, order)
        if isinstance(inner, list):
            if key in _SETS or key in _UNORDERED or (key == "Items" and not order.strict):
                inner = sorted(inner, key=_said)
            elif key == "Items" and order.by is not None:
                inner = _ties_sorted(inner, order.by)
        if key == "Responses" and isinstance(inner, dict):  # a batch promises no order
            inner = {t: sorted(items, key=_said) for t, items in inner.items()}
        found[key] = "something" if key in _VOLATILE else inner
    return found


def _ties_sorted(items: list[Any], by: tuple[str, ...]) -> list[Any]:
    """The items, those next to each other with one sort key in an order of their own."""
    if by and any(name not in item for item in items for name in by):
        return sorted(items, key=_said)  # a projection left the sort key out
    groups = groupby(items, key=lambda item: _said([item[name] for name in by]))
    return [item for _, group in groups for item in sorted(group, key=_said)]
