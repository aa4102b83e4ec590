"""Forecast a pattern's cost from the design, and explain how a run differs from its forecast.

Units and prices come from the functions behind `tavola cost`, so a run beside its forecast shows whether the declared
numbers hold.
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
from tavola.model.document import Design, TableDesign
from tavola.prices import PriceBook, PriceUnknown
from tavola.studio.access_patterns.catalogue import PatternEntry, single_table_design
from tavola.studio.access_patterns.runs import RunRequest, RunResult, TargetUnits
from tavola.values import item_size

_NEAR = 0.005  # less than this is a rounding


@dataclass(frozen=True, slots=True)
class PatternForecast:
    """What one request of a pattern takes by the design's numbers, and what `tavola cost` says of it."""

    items: int | None
    item_bytes: int | None
    units: tuple[TargetUnits, ...]
    read: float
    write: float
    usd_per_million: str | None  # None: the book has no price for it
    per_second: float | None
    usd_per_month: (
        str | None
    )  # as the design pays for its tables; None: it has no rate, or is no access of its own
    book: str


def forecast_pattern(design: Design, entry: PatternEntry, book: PriceBook) -> PatternForecast:
    """Return what a pattern takes as it is declared."""
    units = tuple(
        TargetUnits(each.table, each.index, round(each.read, 6), round(each.write, 6))
        for each in _declared_units(design, entry)
    )
    summary = entry.summary
    read, write = sum(each.read for each in units), sum(each.write for each in units)
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
    """Return what a million such requests cost on demand, in the table's class; None where the book does not say."""
    rare = table is not None and table.settings.table_class != "STANDARD"
    prefix = "ia_" if rare else ""
    try:
        total = sum(
            (
                book.price(f"{prefix}{kind}_request_unit").of(Decimal(str(units)) * 1_000_000)
                for kind, units in (("read", read), ("write", write))
                if units
            ),
            Decimal(0),
        )
    except PriceUnknown:
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
    """Return why a run cost what it cost, in sentences."""
    return tuple(_cost_sentences(entry, ran, forecast))


def _cost_sentences(entry: PatternEntry, ran: RunResult, forecast: PatternForecast) -> Iterator[str]:
    requests = query_requests(ran.requests)
    if not requests:
        return
    first = requests[0]
    read, returned = sum(each.read for each in requests), sum(each.returned for each in requests)
    yield _describe_access(first, len(requests))
    if first.filter:
        yield from _explain_filter(first, read, returned)
    if len(requests) > 1 and entry.summary.shards > 1:
        yield (
            f"The partition is spread over {entry.summary.shards} shards: each is asked, and pays at least half a unit, however "
            "little it gives."
        )
    if len(ran.requests) > len(requests):  # which is of an index
        yield f"{first.index} does not hold the whole item, so what it found was fetched from the table by its key."
    if first.body.get("ConsistentRead"):
        yield "It was read consistently, which takes twice the units."
    if not returned and first.operation == "GetItem":
        yield "There is no such item; asking for it is paid for as an item of up to 4 KB."
    if ran.dropped:
        yield (
            f"{_items(ran.dropped)} {'was' if ran.dropped == 1 else 'were'} dropped after reading, and paid for: a key condition "
            "does not decide alone which are asked for."
        )
    if ran.hit_call_limit:
        yield f"It ended after {_calls(len(ran.calls))}, which is as many as a run makes: there may be more."
    elif ran.more and first.operation == "BatchGetItem":
        yield "Not all of the keys were answered, however often they were asked for: the table is throttled."
    elif ran.more:
        yield "It ended at its limit: there may be more."
    yield from _compare_with_forecast(ran, read, forecast)


def query_requests(requests: Sequence[RunRequest]) -> list[RunRequest]:
    """Return the requests that ask, without those that fetch what an index found."""
    return [each for each in requests if each.operation != "BatchGetItem"] or list(requests)


def _describe_access(first: RunRequest, requests: int) -> str:
    where = first.table if first.index is None else first.index
    match first.operation:
        case "Scan":
            return f"A scan of {where} reads every item that stands there, asked for or not."
        case "Query":
            many = "" if requests == 1 else f", in {requests} requests"
            return f"{where} is asked by its key, {first.condition}{many}: nothing else is read."
        case "BatchGetItem":
            return f"Items of {where}, each by its whole key: {first.condition}. Each is rounded up to a unit by itself."
        case _:
            return f"One item of {where}, by its whole key: {first.condition}."


def _explain_filter(first: RunRequest, read: int, returned: int) -> Iterator[str]:
    if not read:
        return
    thrown = read - returned
    each = (
        "nothing came back"
        if not returned
        else f"{read / returned:.1f} items were read for each that came back"
    )
    yield f"The filter {first.filter} threw away {thrown:,} of {read:,} items after they were read and paid for: {each}."


def _compare_with_forecast(ran: RunResult, read: int, forecast: PatternForecast) -> Iterator[str]:
    if not forecast.units:
        yield "Nothing is foretold of it: the design does not say how it is asked today (a need's route)."
        return
    if forecast.items is None and forecast.item_bytes is None:
        yield "The design declares neither how many items it gives nor how large they are, so its forecast is a guess."
        return
    took = sum(units.read + units.write for call in ran.calls for units in call.units)
    declared = forecast.read + forecast.write
    if abs(took - declared) <= _NEAR:
        yield f"It took the {_units(declared)} that the design foretells."
        return
    mean = mean_item_bytes(ran)
    actual = _items(read) + (f" of {mean:,} B" if mean else "")
    expected = " of ".join(
        part
        for part in (
            "" if forecast.items is None else _items(forecast.items),
            "" if forecast.item_bytes is None else f"{forecast.item_bytes:,} B",
        )
        if part
    )
    yield f"It took {_units(took)} where the design foretells {declared:g}: {actual} read, {expected} declared."


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"


def _units(amount: float) -> str:
    return f"{amount:g} unit{'' if amount == 1 else 's'}"


def mean_item_bytes(ran: RunResult) -> int | None:
    """Return how large the items are that came back, on average; None where none did."""
    sizes = [item_size(dict(item)) for item in ran.items]  # type: ignore[arg-type]  # DynamoDB JSON both
    return round(sum(sizes) / len(sizes)) if sizes else None
