"""Conditional write requests for one item.

A condition holds at most 300 operators and 4 KB, so an item is compared with what was read by as many attributes as fit.
Names and values are always placeholders, because an attribute name may be longer than an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tavola.client.connection import AsyncConnection
from tavola.client.effects import AsyncDriver, Call, Program
from tavola.client.retries import RetryPolicy
from tavola.limits import EXPRESSION_BYTES_MAX, EXPRESSION_OPERATORS_MAX
from tavola.studio.edits.derivation import values_equal
from tavola.values import Item, Value, item_size

ATTRIBUTES_MAX = 120  # each takes a comparison and an AND
_LONGEST = len(" AND attribute_not_exists(#a999)")
assert 2 * (ATTRIBUTES_MAX + 1) <= EXPRESSION_OPERATORS_MAX, "the condition on every attribute must fit"
assert _LONGEST * (ATTRIBUTES_MAX + 1) <= EXPRESSION_BYTES_MAX, (
    "its text must fit too, even if no attribute existed before"
)


class _Placeholders:
    """The placeholders of one request."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        self._known: dict[str, str] = {}

    def name(self, attribute: str) -> str:
        if attribute not in self._known:
            self._known[attribute] = f"#a{len(self._known)}"
            self.names[self._known[attribute]] = attribute
        return self._known[attribute]

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def equals_stored(self, item: Item, attribute: str) -> str:
        stored = item.get(attribute)
        if stored is None:
            return f"attribute_not_exists({self.name(attribute)})"
        return f"{self.name(attribute)} = {self.value(stored)}"

    def into(self, request: dict[str, Any], conditions: Iterable[str]) -> dict[str, Any]:
        request["ConditionExpression"] = " AND ".join(conditions)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        request["ExpressionAttributeNames"] = self.names
        if self.values:
            request["ExpressionAttributeValues"] = self.values
        return request


def changed_attributes(before: Item, after: Item) -> list[str]:
    """Return the attributes that differ, those that are removed or shrink most first."""
    names = [n for n in dict.fromkeys([*before, *after]) if not values_equal(before.get(n), after.get(n))]
    # Shrinking first keeps every intermediate item smaller than the larger of the two.
    return sorted(names, key=lambda name: _bytes(after, name) - _bytes(before, name))


def _bytes(item: Item, name: str) -> int:
    return item_size({name: item[name]}) if name in item else 0


def put_new(table: str, item: Item, hash_: str) -> dict[str, Any]:
    """Return a PutItem request that succeeds only if no item has the key."""
    words = _Placeholders()
    return words.into({"TableName": table, "Item": item}, [f"attribute_not_exists({words.name(hash_)})"])


def put_over(table: str, item: Item, before: Item, first: Sequence[str]) -> dict[str, Any]:
    """Return a PutItem request that succeeds only over the item that was read; conditions on `first` come first."""
    words = _Placeholders()
    return words.into({"TableName": table, "Item": item}, _unchanged_conditions(words, before, first))


def update(
    table: str, key: Item, before: Item, after: Item, names: Sequence[str], unchanged: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an UpdateItem request for some attributes that succeeds only if they have the values that were read.

    `unchanged` are further attributes that must have the values that were read.
    """
    words = _Placeholders()
    set_ = [f"{words.name(n)} = {words.value(after[n])}" for n in names if n in after]
    remove = [words.name(n) for n in names if n not in after]
    sections = [
        *(["SET " + ", ".join(set_)] if set_ else []),
        *(["REMOVE " + ", ".join(remove)] if remove else []),
    ]
    request = {"TableName": table, "Key": key, "UpdateExpression": " ".join(sections)}
    exists = f"attribute_exists({words.name(next(iter(key)))})"
    return words.into(
        request, [exists, *(words.equals_stored(before, name) for name in (*names, *unchanged))]
    )


def delete(table: str, key: Item, before: Item, first: Sequence[str] = ()) -> dict[str, Any]:
    """Return a DeleteItem request that succeeds only if the item equals the one that was read."""
    words = _Placeholders()
    return words.into({"TableName": table, "Key": key}, _unchanged_conditions(words, before, first))


def _unchanged_conditions(words: _Placeholders, before: Item, first: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys([*first, *before]))[:ATTRIBUTES_MAX]
    return [words.equals_stored(before, name) for name in names]


_RETRY_POLICY = RetryPolicy(attempts_max=12)  # about ten seconds


async def call_with_retries(db: AsyncConnection, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to an operation, retrying transient faults."""
    return await AsyncDriver(db, _RETRY_POLICY).run(_single_call(operation, request))


def _single_call(operation: str, request: dict[str, Any]) -> Program[dict[str, Any]]:
    answer: dict[str, Any] = yield Call(operation, request)
    return answer
