"""Shares: what an item contributes to numbers, and how the numbers change when that changes.

The arithmetic of a projector, without I/O: the last state of each item in a batch of records, the difference from what its
mark says, and which differences fit into one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from tavola.client.stream_changes import AnyChange, RawChange
from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Entity, Table, shape_of
from tavola.patterns.recipe import RecipeRefused

# Per item: a change may remove as many shares as it adds, and the mark needs one action too.
SHARES_MAX = TRANSACTION_ACTIONS_MAX // 2 - 1

# Precise enough for any sum of DynamoDB numbers; DynamoDB refuses what it cannot store, nothing is rounded here.
_EXACT = Context(prec=300)

Number: TypeAlias = tuple[str, str]  # its name and its part
Shares: TypeAlias = dict[str, dict[str, Decimal]]  # the values that an item adds, by name and part
Sums: TypeAlias = dict[Number, "Sum"]


@dataclass(frozen=True, slots=True)
class Share:
    """What an item contributes to one number: one to its count, and a value to its total.

    `part` breaks the number down, by status or by day for example. `Metric.mean` is the average.
    """

    name: str
    part: str = "all"
    value: Decimal | int = 0


@dataclass(frozen=True, slots=True)
class Sum:
    """The count and total of some shares, or a change of both."""

    count: int = 0
    total: Decimal = Decimal(0)

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.count + other.count, _EXACT.add(self.total, other.total))

    def __bool__(self) -> bool:
        return bool(self.count or self.total)


class NumberChange(Protocol):
    """Something that changes numbers."""

    @property
    def change(self) -> Mapping[Number, Sum]:
        """The change of each number."""
        ...


C = TypeVar("C", bound=NumberChange)


def difference(before: Shares, after: Shares) -> Sums:
    """Return the change of each number when an item's shares change."""
    change: Sums = {}
    for shares, sign in ((before, -1), (after, 1)):
        for name, parts in shares.items():
            for part, value in parts.items():
                by = Sum(sign, value if sign > 0 else value.copy_negate())
                change[name, part] = change.get((name, part), Sum()) + by
    return {number: by for number, by in change.items() if by}


def sum_changes(changes: Sequence[Mapping[Number, Sum]]) -> Sums:
    """Return the sum of several changes."""
    sums: Sums = {}
    for change in changes:
        for number, by in change.items():
            sums[number] = sums.get(number, Sum()) + by
    return {number: by for number, by in sums.items() if by}


def group_by_transaction(entries: Sequence[C]) -> Iterator[list[C]]:
    """Yield entries grouped into transactions within DynamoDB's limit: one action per entry and per distinct number."""
    group: list[C] = []
    numbers: set[Number] = set()
    for entry in entries:
        if group and len(group) + 1 + len(numbers | entry.change.keys()) > TRANSACTION_ACTIONS_MAX:
            yield group
            group, numbers = [], set()
        group.append(entry)
        numbers |= entry.change.keys()
    if group:
        yield group


def source_of(table: type[Table], keys: Mapping[str, Any]) -> str:
    """Return an item's key as a text, unique in its table."""
    return "/".join(quote(next(iter(keys[name].values())), safe="") for name in table.settings.key_names)


def parse_source(source: str, entity: type[Entity]) -> dict[str, Any]:
    """Return the key from the text that `source_of` returned."""
    shape = shape_of(entity)
    assert shape.key is not None, "a marked item is in a table"
    tags = {key_source.attribute: key_source.tag for key_source in shape.key.key.sources}
    return {
        name: {tags.get(name, "S"): unquote(part)}
        for name, part in zip(shape.home.settings.key_names, source.split("/"), strict=True)
    }


@dataclass(slots=True)
class ItemState:
    """The last state of one item in a batch of records, and its position in the stream."""

    source: str
    tag: str = ""
    place: str = ""
    shares: Shares = field(default_factory=dict)
    gone: bool = False
    moved: bool = False  # whether a record changed the item's shares
    sequences: list[str] = field(default_factory=list)
    error: Exception | None = None  # why the last state has no shares


class ShareFunctions:
    """The functions that return each entity's shares."""

    def __init__(self, table: type[Table]) -> None:
        self.table = table
        self.functions: dict[type[Entity], Callable[[Any], Iterable[Share]]] = {}

    def shares_of(self, entity: Entity | None) -> Shares:
        """Return an item's shares; none if it is deleted or its entity has no function."""
        function = None if entity is None else self.functions.get(type(entity))
        place = type(entity).__name__
        shares: Shares = {}
        for share in () if function is None else function(entity):
            parts = shares.setdefault(share.name, {})
            if not share.name or not share.part:
                raise RecipeRefused(
                    place, f"{share!r} has an empty text, which no key can have; give it a name"
                )
            if share.part in parts:
                raise RecipeRefused(
                    place,
                    f"it gives two shares of {share.name!r}, {share.part!r}; add them up, or name them apart",
                )
            if isinstance(share.value, float):
                raise RecipeRefused(place, f"{share!r} has a float, which rounds; give a Decimal or an int")
            parts[share.part] = Decimal(share.value)
        if (count := sum(map(len, shares.values()))) > SHARES_MAX:
            raise RecipeRefused(
                place, f"it gives {count} shares, and {SHARES_MAX} fit into a transaction with their mark"
            )
        return shares

    def last_states(self, changes: Iterable[AnyChange]) -> dict[str, ItemState]:
        """Return the last state of each counted item in some changes, by source."""
        states: dict[str, ItemState] = {}
        for change in changes:
            source = source_of(self.table, change.keys)
            if source in states or change.entity in self.functions:
                self._apply_record(states.setdefault(source, ItemState(source)), change)
        return states

    def _apply_record(self, state: ItemState, change: AnyChange) -> None:
        """Apply one record. Only the last state counts, so records before it need not be readable."""
        state.sequences.append(change.sequence)
        place = stream_position(change)
        if place < state.place:
            return
        state.place = place
        state.gone = change.kind == "removed"
        state.error = None
        if change.entity is not None:
            state.tag = shape_of(change.entity).name
        try:
            state.shares = self.shares_of(self._state(change))
        except Exception as error:  # noqa: BLE001 - the user's function; it affects this item only
            state.error = error
        state.moved = state.moved or state.error is not None or self._before(change) != state.shares

    def _before(self, change: AnyChange) -> Shares | None:
        """Return an item's shares before a change; None: unknown."""
        if isinstance(change, RawChange) or (change.old is None and change.kind != "inserted"):
            return None
        try:
            return self.shares_of(change.old)
        except Exception:  # noqa: BLE001 - the former state is only used for comparison
            return None

    def _state(self, change: AnyChange) -> Entity | None:
        """Return an item's state after a change; None: deleted, or of no entity."""
        if change.kind == "removed":
            return None
        if isinstance(change, RawChange):
            if change.found is None and change.problem is not None:
                raise change.problem
            return change.found
        if change.new is None:
            raise RecipeRefused(
                self.table.__name__, "its stream tells no new images, so nothing can be counted"
            )
        found: Entity = change.new
        return found


def stream_position(change: AnyChange) -> str:
    """Return a change's position in its table's streams as a text that sorts by stream, then by sequence number.

    A stream's label is the time it was enabled, so the stream of a recreated table sorts after the old one.
    """
    stream = change.origin.stream
    if stream is None:
        raise RecipeRefused(
            "the records", "they do not tell which stream they are of; give its ARN with stream=…"
        )
    return f"{stream.rpartition('/stream/')[2]}/{change.sequence:0>40}"
