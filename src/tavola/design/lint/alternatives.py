"""Alternatives: the monthly cost of a field in an index key against filtering by it instead.

If the field is in the key, every change of it moves the index entry; with a filter, every read pays for dropped items. The rates
decide which is cheaper, so rules that recommend one side get the cost of the other here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from tavola.design.cost.capacity import changed_fields
from tavola.design.lint.monthly_costs import format_monthly, monthly_cost
from tavola.design.text import join_names, join_titles
from tavola.model.document import (
    AccessPattern,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    PatternDesign,
    TableDesign,
    WritePattern,
)
from tavola.model.sizes import entry_bytes, item_size
from tavola.values import index_units, read_units


def entry_move_units(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, write: WritePattern, size: int
) -> tuple[float, float]:
    """Return the units of a write that moves an index entry, and of the same write if the key did not change."""
    changed = changed_fields(entity, write)
    names = [field.attribute for field in entity.fields if field.name in changed]
    held = names if index.projection == "ALL" else [name for name in names if name in index.projection]
    moved = index_units(size, size, moved=True) * write.items
    return moved, index_units(size, size, same=not held) * write.items


def index_key_monthly_cost(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, fields: Iterable[str]
) -> tuple[Decimal, tuple[str, ...]]:
    """Return what fields in an index key add to the monthly cost through updates that change them, and these updates."""
    wanted = set(fields)
    more, titles = 0.0, []
    for write in entity.writes:
        if write.kind != "update" or not write.per_second or not wanted & changed_fields(entity, write):
            continue
        moved, stayed = entry_move_units(
            table, entity, index, write, entry_bytes(table, entity, index, write.item_bytes)
        )
        more += (moved - stayed) * write.per_second
        titles.append(write.title)
    return monthly_cost(writes=more), tuple(titles)


def filter_monthly_cost(table: TableDesign, entity: EntityDesign, access: AccessPattern) -> Decimal | None:
    """Return the monthly cost of items that are read and dropped; None if amounts or rates are unknown."""
    if access.items is None or access.returned is None or access.per_second is None:
        return None
    return _dropped_items_cost(table, entity, access, access.items, access.returned)


def describe_alternatives(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, fields: Sequence[str], more: Decimal
) -> str:
    """Return what to do about changing fields in an index key that cost `more`: the alternatives, with their costs."""
    assert key.index is not None, "who calls has looked"
    index = table.index(key.index)
    names = join_names(fields)
    thinner = (
        ""
        if index.projection == "KEYS_ONLY"
        else "project less and fetch the rest (hydrate=True), so that each move is smaller"
    )
    asked = [pattern for pattern in entity.patterns if pattern.index == key.index]
    given = [pattern for pattern in asked if set(fields) & set(pattern.partition)]
    if not given:
        sorted_by = [pattern for pattern in asked if set(fields) & set(pattern.sorts)]
        if sorted_by:
            why = f"{_titles(sorted_by)} {_is(sorted_by)} found or sorted by {names}"
            return f"{thinner or 'leave it as it is'}: {why}"
        out = f"keep {names} out of keys that need not have it"
        return f"{out}, or {thinner}" if thinner else out
    reads = [_unkeyed(table, entity, pattern, fields) for pattern in given]
    known = [read for read in reads if read is not None]
    if len(known) < len(given) or not more:
        return f"{thinner or 'leave it as it is'}: without {names} in the key, {_titles(given)} would have to filter"
    cost = sum((spent for _, spent in known), Decimal(0))
    times = max(times for times, _ in known)
    read = f"{_titles(given)} would read {times:,} times as much and filter it, {format_monthly(cost)}"
    if cost < more:
        text = f"leave {names} out of the key where that is allowed: {read}, less than the key's {format_monthly(more)}"
        return f"{text}; or {thinner}" if thinner else text
    return f"{thinner or 'leave it as it is'}: without {names} in the key, {read}, and the key costs {format_monthly(more)}"


def _unkeyed(
    table: TableDesign, entity: EntityDesign, pattern: PatternDesign, fields: Sequence[str]
) -> tuple[int, Decimal] | None:
    """Return how many times more a pattern reads without the fields in its key, and what that costs per month."""
    access, times = pattern.access, 1
    for name in set(fields) & set(pattern.partition):
        values = entity.field(name).values
        if values is None:
            return None
        times *= values
    if access is None or access.items is None or access.per_second is None:
        return None
    return times, _dropped_items_cost(table, entity, access, access.items * times, access.items)


def _dropped_items_cost(
    table: TableDesign, entity: EntityDesign, access: AccessPattern, items: int, returned: int
) -> Decimal:
    each = access.item_bytes or item_size(table, entity).total
    read, kept = (read_units(count * each, consistent=access.consistent) for count in (items, returned))
    return monthly_cost(reads=(read - kept) * (access.per_second or 0))


def _titles(patterns: Sequence[PatternDesign]) -> str:
    return join_titles(pattern.access.title if pattern.access else pattern.name for pattern in patterns)


def _is(patterns: Sequence[PatternDesign]) -> str:
    return "is" if len(patterns) == 1 else "are"
