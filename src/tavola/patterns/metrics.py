"""Metrics: the numbers and marks that a projector maintains, and how numbers change when an item's shares do.

All of a projector that needs no I/O: its items, the last state of each item in a batch of records, its difference from the shares
in the item's mark, which differences fit into one transaction, and its results and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from tavola.client.stream_changes import AnyChange, RawChange
from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Attr, Entity, Table, attr, shape_of
from tavola.patterns.recipe import PatternError, RecipeRefused

# Per item: a change may remove as many shares as it adds, and the mark needs one action too.
SHARES_MAX = TRANSACTION_ACTIONS_MAX // 2 - 1

# Precise enough for any sum of DynamoDB numbers. Nothing is rounded here: DynamoDB rejects what it cannot store.
_EXACT = Context(prec=300)

Number: TypeAlias = tuple[str, str]  # its name and its part
Shares: TypeAlias = dict[str, dict[str, Decimal]]  # the values that an item adds, by name and part
Sums: TypeAlias = dict[Number, "Sum"]


class Metric(Entity):
    """A number, by name and by the part it is broken down into; give it a table and a key of name and part."""

    name: Attr[str]
    part: Attr[str] = attr(default="all")
    count: Attr[int] = attr(default=0)
    total: Attr[Decimal] = attr(default=Decimal(0))

    @property
    def mean(self) -> Decimal | None:
        """The average of what was added, None if nothing was."""
        return self.total / self.count if self.count else None


class ProjectionMark(Entity):
    """What an item has contributed to the numbers; give it a table and a key of source and projector."""

    projector: Attr[str]
    source: Attr[str]  # the item's key
    kind: Attr[str]  # its type tag
    place: Attr[str]  # position in the stream of the record counted last
    shares: Attr[dict[str, dict[str, Decimal]]] = attr(default_factory=dict)
    expires: Attr[datetime | None] = attr(default=None)  # set when the item is deleted


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that could not be counted and must be delivered again."""

    sequence: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Projected:
    """How many records of a batch were counted, were repeated, or failed."""

    counted: int = 0  # items whose shares were updated
    known: int = 0  # items whose records had been counted before
    failed: tuple[FailedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The differences from the table that a rebuild found and corrected."""

    counted: int = 0  # items that were not counted, or with other shares
    removed: int = 0  # items that were counted and no longer exist
    unknown: int = 0  # marks whose item's key cannot be determined, left unchanged


class ProjectionFailed(PatternError):
    """Records that could not be counted; the rest of the batch was."""

    def __init__(self, failed: Sequence[FailedRecord]) -> None:
        self.failed = tuple(failed)
        first = failed[0]
        super().__init__(
            f"{len(failed)} records could not be counted, the first is {first.sequence}: {first.error!r}; fix it, "
            "and they are counted when they come again"
        )


class ProjectionContended(PatternError):
    """Items whose marks other readers updated at every attempt: several consumers read the stream at once."""

    def __init__(self) -> None:
        super().__init__("Other readers of the stream were faster each time; let fewer read it at once")


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
        for number, amount in change.items():
            sums[number] = sums.get(number, Sum()) + amount
    return {number: amount for number, amount in sums.items() if amount}


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
    """Return an item's key as text, unique in its table."""
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
    position: str = ""  # in the stream; see `stream_position`
    shares: Shares = field(default_factory=dict)
    deleted: bool = False
    changed: bool = False  # whether a record changed the item's shares
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
                    place, f"{share!r} has an empty name or part, which cannot be part of a key; set both"
                )
            if share.part in parts:
                raise RecipeRefused(
                    place,
                    f"it returns two shares of {share.name!r}, {share.part!r}; add them up, or use different parts",
                )
            if isinstance(share.value, float):
                raise RecipeRefused(
                    place, f"{share!r} has a float, which would be rounded; use a Decimal or an int"
                )
            parts[share.part] = Decimal(share.value)
        if (count := sum(map(len, shares.values()))) > SHARES_MAX:
            raise RecipeRefused(
                place,
                f"it returns {count} shares, but only {SHARES_MAX} fit into a transaction with their mark",
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
        position = stream_position(change)
        if position < state.position:
            return
        state.position = position
        state.deleted = change.kind == "removed"
        state.error = None
        if change.entity is not None:
            state.tag = shape_of(change.entity).name
        try:
            state.shares = self.shares_of(self._state(change))
        except Exception as error:  # noqa: BLE001 - the user's function; it affects this item only
            state.error = error
        state.changed = state.changed or state.error is not None or self._before(change) != state.shares

    def _before(self, change: AnyChange) -> Shares | None:
        """Return an item's shares before a change; None if unknown."""
        if isinstance(change, RawChange) or (change.old is None and change.kind != "inserted"):
            return None
        try:
            return self.shares_of(change.old)
        except Exception:  # noqa: BLE001 - the former state is only used for comparison
            return None

    def _state(self, change: AnyChange) -> Entity | None:
        """Return an item's state after a change; None if it is deleted or belongs to no entity."""
        if change.kind == "removed":
            return None
        if isinstance(change, RawChange):
            if change.found is None and change.problem is not None:
                raise change.problem
            return change.found
        if change.new is None:
            raise RecipeRefused(
                self.table.__name__, "its stream has no new images, so nothing can be counted"
            )
        entity: Entity = change.new
        return entity


def stream_position(change: AnyChange) -> str:
    """Return a change's position in its table's streams as text that sorts by stream, then by sequence number.

    A stream's label is the time it was enabled, so the stream of a recreated table sorts after the old one.
    """
    stream = change.origin.stream
    if stream is None:
        raise RecipeRefused("the records", "they do not name their stream; pass its ARN with stream=…")
    return f"{stream.rpartition('/stream/')[2]}/{change.sequence:0>40}"
