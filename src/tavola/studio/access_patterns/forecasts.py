"""Forecast a pattern's cost from the design, and explain how a run differs from its forecast.

Units and prices come from the functions behind `tavola cost`, so comparing a run with its forecast shows whether the
declared numbers are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tavola.design.cost import (
    Assumptions,
    RequestUnits,
    collection_units,
    estimate_month,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.design.text import format_count
from tavola.model.document import Design, TableDesign
from tavola.prices import PriceBook, UnknownPrice
from tavola.studio.access_patterns.catalogue import PatternEntry, single_table_design
from tavola.studio.access_patterns.runs import RunRequest, RunResult
from tavola.studio.types import ConsumedUnits
from tavola.values import item_size

_ROUNDING = 0.005  # units


@dataclass(frozen=True, slots=True)
class PatternForecast:
    """The capacity and cost of one request of a pattern, by the design's numbers."""

    items: int | None
    item_bytes: int | None
    units: tuple[ConsumedUnits, ...]
    read: float
    write: float
    usd_per_million: str | None  # None: the price book has no price for it
    per_second: float | None
    # In the design's capacity mode; None: no rate is declared, or it is not billed alone
    usd_per_month: str | None
    book: str


def forecast_pattern(design: Design, entry: PatternEntry, book: PriceBook) -> PatternForecast:
    """Return the forecast of a pattern as declared."""
    units = tuple(
        ConsumedUnits(unit.table, unit.index, round(unit.read, 6), round(unit.write, 6))
        for unit in _declared_units(design, entry)
    )
    summary = entry.summary
    read, write = sum(unit.reads for unit in units), sum(unit.writes for unit in units)
    return PatternForecast(
        summary.items,
        summary.item_bytes,
        units,
        read,
        write,
        usd_per_million(entry.table, read, write, book),
        summary.per_second,
        _monthly_cost(design, entry, book),
        book.title,
    )


def usd_per_million(table: TableDesign | None, read: float, write: float, book: PriceBook) -> str | None:
    """Return the on-demand price of a million such requests in the table's class; None if there is no price."""
    prefix = "ia_" if table is not None and table.settings.table_class != "STANDARD" else ""
    try:
        total = sum(
            (
                book.price(f"{prefix}{kind}_request_unit").of(Decimal(str(units)) * 1_000_000)
                for kind, units in (("read", read), ("write", write))
                if units
            ),
            Decimal(0),
        )
    except UnknownPrice:
        return None
    return f"{total.normalize():f}" if total else "0"


def _declared_units(design: Design, entry: PatternEntry) -> Sequence[RequestUnits]:
    table, entity = entry.table, entry.entity
    if table is None or entity is None:
        return ()
    if entry.write is not None:
        return write_pattern_units(table, entity, entry.write)
    if entry.collection is not None:
        return collection_units(table, entry.collection)
    if entry.need is not None:
        return need_units(single_table_design(design, table), entry.need)
    assert entry.pattern is not None, "a pattern is one of the four"
    return pattern_units(table, entity, entry.pattern)


def _monthly_cost(design: Design, entry: PatternEntry, book: PriceBook) -> str | None:
    if entry.table is None or entry.summary.per_second is None:
        return None
    kind = "write" if entry.write is not None else "read"
    place = entry.entity.name if entry.write is not None and entry.entity is not None else entry.summary.place
    month = estimate_month(single_table_design(design, entry.table), Assumptions(), book)
    for bill in month.bills:
        if (bill.kind, bill.place, bill.title) == (kind, place, entry.summary.title):
            return f"{bill.amount:f}"
    return None


def explain_cost(entry: PatternEntry, ran: RunResult, forecast: PatternForecast) -> tuple[str, ...]:
    """Return sentences that explain what a run cost."""
    return tuple(_cost_sentences(entry, ran, forecast))


def _cost_sentences(entry: PatternEntry, ran: RunResult, forecast: PatternForecast) -> Iterator[str]:
    requests = query_requests(ran.requests)
    if not requests:
        return
    first = requests[0]
    read, returned = (
        sum(request.read for request in requests),
        sum(request.returned_count for request in requests),
    )
    yield _describe_access(first, len(requests))
    if first.filter:
        yield from _explain_filter(first, read, returned)
    if len(requests) > 1 and entry.summary.shards > 1:
        yield (
            f"The partition has {entry.summary.shards} shards; each is queried and costs at least half a unit."
        )
    if len(ran.requests) > len(requests):  # an index with a partial projection
        yield f"{first.index} does not project whole items, so they were fetched from the table by key."
    if first.body.get("ConsistentRead"):
        yield "Strongly consistent reads cost twice as much."
    if not returned and first.operation == "GetItem":
        yield "The item does not exist; reading a missing item is charged like reading one of up to 4 KB."
    if ran.dropped:
        yield (
            f"{format_count(ran.dropped, 'item')} {'was' if ran.dropped == 1 else 'were'} filtered out after being read and charged, because "
            "the key condition also matches other items."
        )
    if ran.hit_call_limit:
        yield f"The run stopped at its limit of {format_count(len(ran.calls), 'call')}; there may be more items."
    elif ran.more and first.operation == "BatchGetItem":
        yield "Some keys were not returned even after retries: the requests were throttled."
    elif ran.more:
        yield "The run stopped at its limit; there may be more items."
    yield from _compare_with_forecast(ran, read, forecast)


def query_requests(requests: Sequence[RunRequest]) -> list[RunRequest]:
    """Return the requests without those that fetch the items of index entries."""
    return [request for request in requests if request.operation != "BatchGetItem"] or list(requests)


def _describe_access(first: RunRequest, requests: int) -> str:
    where = first.table if first.index is None else first.index
    match first.operation:
        case "Scan":
            return f"The scan of {where} reads every item."
        case "Query":
            many = "" if requests == 1 else f" in {requests} requests"
            return (
                f"{where} is queried by its key{many} ({first.condition}), so only matching items are read."
            )
        case "BatchGetItem":
            return (
                f"Items of {where} by primary key: {first.condition}. Each item is rounded up to whole units."
            )
        case _:
            return f"One item of {where} by primary key: {first.condition}."


def _explain_filter(first: RunRequest, read: int, returned: int) -> Iterator[str]:
    if not read:
        return
    ratio = "nothing was returned" if not returned else f"{read / returned:.1f} items read per returned item"
    yield (
        f"The filter {first.filter} removed {read - returned:,} of {read:,} items after they were read and charged: {ratio}."
    )


def _compare_with_forecast(ran: RunResult, read: int, forecast: PatternForecast) -> Iterator[str]:
    if not forecast.units:
        yield "No estimate: the design does not declare how this access pattern is served (the need's route)."
        return
    if forecast.items is None and forecast.item_bytes is None:
        yield "The design declares neither the number nor the size of items, so the estimate is rough."
        return
    took = sum(units.reads + units.writes for call in ran.calls for units in call.units)
    declared = forecast.read + forecast.write
    if abs(took - declared) <= _ROUNDING:
        yield f"It consumed {_units(declared)}, as estimated."
        return
    mean = mean_item_bytes(ran)
    actual = format_count(read, "item") + (f" of {mean:,} B" if mean else "")
    expected = " of ".join(
        part
        for part in (
            "" if forecast.items is None else format_count(forecast.items, "item"),
            "" if forecast.item_bytes is None else f"{forecast.item_bytes:,} B",
        )
        if part
    )
    yield f"It consumed {_units(took)}, but the estimate is {declared:g}: {actual} read, {expected} declared."


def _units(amount: float) -> str:
    return f"{amount:g} unit{'' if amount == 1 else 's'}"


def mean_item_bytes(ran: RunResult) -> int | None:
    """Return the average size of the returned items; None if there are none."""
    sizes = [item_size(dict(item)) for item in ran.items]  # type: ignore[arg-type]  # DynamoDB JSON both
    return round(sum(sizes) / len(sizes)) if sizes else None
