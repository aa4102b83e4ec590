"""Monthly costs in messages: what a finding costs, and what its alternative would cost.

All amounts are on-demand prices in us-east-1 from the newest price book. `tavola cost` computes the bill for a region and a
payment option.

A field in an index key moves the index entry whenever it changes. A filter instead reads items that it discards. The declared
rates decide which is cheaper, so rules that recommend one of them state the cost of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache

from tavola.design.cost.assumptions import HOURS_PER_MONTH
from tavola.design.cost.capacity import changed_fields
from tavola.design.text import format_money, format_price, join_names, join_titles
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
from tavola.prices import PriceBook, load_book
from tavola.values import index_units, read_units

REGION = "us-east-1"
MONTH_S = HOURS_PER_MONTH * 3_600
_GB = 1024**3


def monthly_cost(*, reads: float = 0.0, writes: float = 0.0, stored_bytes: float = 0.0) -> Decimal:
    """Return the dollars of a month for request units per second and stored bytes."""
    book = _book()
    parts = (
        book.price("read_request_unit").of(_whole(reads * MONTH_S)),
        book.price("write_request_unit").of(_whole(writes * MONTH_S)),
        book.price("storage_gb_month").of(Decimal(_whole(stored_bytes)) / _GB),
    )
    return sum(parts, Decimal(0))


def format_monthly(dollars: Decimal) -> str:
    """Return a monthly amount, for use beside one that names its price book."""
    return f"{format_money(dollars)} per month"


def format_monthly_with_book(dollars: Decimal) -> str:
    """Return a monthly amount with the price book that it comes from."""
    return f"{format_monthly(dollars)} (on-demand, {_book().region} prices of {_book().date})"


def format_per_million(amount: float, kind: str) -> str:
    """Return the price of a million requests with `amount` units each; `kind` is read or write."""
    dollars = _book().usd_per_million(Decimal(str(amount)), f"{kind}_request_unit")
    return f"{format_price(dollars)} per million {kind}s"


def _whole(amount: float) -> int:
    return int(min(amount, 1e30))  # absurd rates would overflow


@cache
def _book() -> PriceBook:
    return load_book(REGION)


def entry_move_units(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, write: WritePattern, size: int
) -> tuple[float, float]:
    """Return the units of a write that moves an index entry, and of the same write if the key did not change."""
    changed = changed_fields(entity, write)
    names = [field.attribute for field in entity.fields if field.name in changed]
    projected = names if index.projection == "ALL" else [name for name in names if name in index.projection]
    moved = index_units(size, size, moved=True) * write.items
    return moved, index_units(size, size, same=not projected) * write.items


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
    assert key.index is not None, "the caller passes index keys only"
    index = table.index(key.index)
    names = join_names(fields)
    hashed = {name for source in key.hash for name in source.fields}
    if hashed and hashed <= set(fields):  # without it, all items would share one partition
        project = (
            ""
            if index.projection == "KEYS_ONLY"
            else "project fewer attributes (KEYS_ONLY with hydrate=True), or "
        )
        return (
            f"{join_names(sorted(hashed))} {'is' if len(hashed) == 1 else 'are'} the partition key of {index.name}, so it cannot simply be "
            f"removed. To make each change cheaper, {project}use a sparse index for the values that you query"
        )
    cheaper = (
        ""
        if index.projection == "KEYS_ONLY"
        else "to make each change cheaper, project fewer attributes and fetch the rest (hydrate=True)"
    )
    patterns = [pattern for pattern in entity.patterns if pattern.index == key.index]
    given = [pattern for pattern in patterns if set(fields) & set(pattern.partition)]
    if not given:
        sorted_by = [pattern for pattern in patterns if set(fields) & set(pattern.sorts)]
        if sorted_by:
            uses = "uses" if len(sorted_by) == 1 else "use"
            return _advise(
                f"Keep the key: {_titles(sorted_by)} {uses} {names} as a range or sort order", cheaper
            )
        return _advise(f"Remove {names} from keys that do not need it", cheaper)
    reads = [_cost_without_key(table, entity, pattern, fields) for pattern in given]
    known = [read for read in reads if read is not None]
    if len(known) < len(given) or not more:
        return _advise(f"Keep the key: without {names} in it, {_titles(given)} would need a filter", cheaper)
    cost = sum((spent for _, spent in known), Decimal(0))
    times = max(times for times, _ in known)
    read = (
        f"{_titles(given)} would read {times:,} times as many items and filter them, {format_monthly(cost)}"
    )
    if cost < more:
        return _advise(
            f"Remove {names} from the key: {read}, less than the {format_monthly(more)} for the key", cheaper
        )
    return _advise(
        f"Keep the key: without {names} in it, {read}, while the key costs {format_monthly(more)}", cheaper
    )


def _cost_without_key(
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


def _advise(advice: str, cheaper: str) -> str:
    return f"{advice}; {cheaper}" if cheaper else advice
