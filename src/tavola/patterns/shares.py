"""Shares: what an item adds to numbers, and how the numbers change when it adds something else.

Plain arithmetic of a projector, without a table: the last state of each item in a batch of records, the
difference to what its mark says, and how many differences go into one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Entity, Table, shape_of

# Of one item: it may leave as many numbers as it enters, beside its mark.
SHARES_MAX = TRANSACTION_ACTIONS_MAX // 2 - 1

# For every sum of DynamoDB's numbers; what it could not store is refused, and not rounded here.
_EXACT = Context(prec=300)

Number: TypeAlias = tuple[str, str]  # its name and its part
Shares: TypeAlias = dict[str, dict[str, Decimal]]  # the values that an item adds, by name and part
Sums: TypeAlias = dict[Number, "Sum"]


@dataclass(frozen=True, slots=True)
class Share:
    """What an item adds to one number: one to its count, and a value to its total.

    `part` breaks the number down: a status, a day. An average comes of both, `Metric.mean`.
    """

    name: str
    part: str = "all"
    value: Decimal | int = 0


@dataclass(frozen=True, slots=True)
class Sum:
    """How many shares a number has, and what they come to; or by how much that changes."""

    count: int = 0
    total: Decimal = Decimal(0)

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.count + other.count, _EXACT.add(self.total, other.total))

    def __bool__(self) -> bool:
        return bool(self.count or self.total)


class Changing(Protocol):
    """What changes some numbers."""

    @property
    def change(self) -> Mapping[Number, Sum]:
        """By how much, each."""
        ...


C = TypeVar("C", bound=Changing)


def difference(before: Shares, after: Shares) -> Sums:
    """Return by how much each number changes when an item adds something else to them."""
    change: Sums = {}
    for shares, sign in ((before, -1), (after, 1)):
        for name, parts in shares.items():
            for part, value in parts.items():
                by = Sum(sign, value if sign > 0 else value.copy_negate())
                change[name, part] = change.get((name, part), Sum()) + by
    return {number: by for number, by in change.items() if by}


def summed(changes: Sequence[Mapping[Number, Sum]]) -> Sums:
    """Return what several changes come to together."""
    sums: Sums = {}
    for change in changes:
        for number, by in change.items():
            sums[number] = sums.get(number, Sum()) + by
    return {number: by for number, by in sums.items() if by}


def packed(entries: Sequence[C]) -> Iterator[list[C]]:
    """Give entries in transactions that DynamoDB takes: an item each, and the numbers that they share."""
    pack: list[C] = []
    numbers: set[Number] = set()
    for entry in entries:
        if pack and len(pack) + 1 + len(numbers | entry.change.keys()) > TRANSACTION_ACTIONS_MAX:
            yield pack
            pack, numbers = [], set()
        pack.append(entry)
        numbers |= entry.change.keys()
    if pack:
        yield pack


def source_of(table: type[Table], keys: Mapping[str, Any]) -> str:
    """Return an item's key as text that no other item of the table has."""
    return "/".join(quote(next(iter(keys[name].values())), safe="") for name in table.settings.key_names)


def keys_in(source: str, entity: type[Entity]) -> dict[str, Any]:
    """Return the key that `source_of` made a text of."""
    shape = shape_of(entity)
    assert shape.key is not None, "what has a mark is in a table"
    tags = {told.attribute: told.tag for told in shape.key.key.sources}
    return {
        name: {tags.get(name, "S"): unquote(part)}
        for name, part in zip(shape.home.settings.key_names, source.split("/"), strict=True)
    }
