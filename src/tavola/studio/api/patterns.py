"""The access patterns of the design: list, run and compare with the indexes.

A run reports its requests, the units of each call as DynamoDB returned them, the design's forecast, and why the two differ.
Writes are forecast and never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tavola.studio.access_patterns.catalogue import DesignedPattern, find_pattern, list_patterns
from tavola.studio.access_patterns.code import PatternCode, render_pattern_code
from tavola.studio.access_patterns.coverage import Coverage, build_coverage
from tavola.studio.access_patterns.examples import PatternExample, find_example
from tavola.studio.access_patterns.forecasts import (
    PatternForecast,
    explain_cost,
    forecast_pattern,
    mean_item_bytes,
    query_requests,
    usd_per_million,
)
from tavola.studio.access_patterns.plans import plan_pattern
from tavola.studio.access_patterns.requests import EnteredValue, RunOptions
from tavola.studio.access_patterns.runs import RunRequest, TargetUnits, run_plan, sum_units
from tavola.studio.endpoint import Endpoint
from tavola.studio.recognition import Recogniser, designed_keys
from tavola.studio.studio import Studio
from tavola.studio.types import Document, Item, NoParameters
from tavola.values import item_size

_ITEMS_MAX = 1_000  # that an answer shows
_BYTES_MAX = 4 * 1024**2  # of the items that an answer shows: a page has to hold them


@dataclass(frozen=True, slots=True)
class PatternsRequest:
    """Whose patterns; none named: of every table."""

    table: str | None = None


@dataclass(frozen=True, slots=True)
class PatternList:
    """Every access pattern, in the order of the design."""

    patterns: tuple[DesignedPattern, ...]


@dataclass(frozen=True, slots=True)
class PatternRequest:
    """Which pattern, and as of when."""

    pattern: str
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class RunPatternRequest:
    """A pattern with what was typed for it."""

    pattern: str
    values: tuple[EnteredValue, ...] = ()
    newest_first: bool = False
    limit: int | None = None
    consistent: bool = False
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that a run would make."""

    operation: str
    table: str
    index: str | None
    condition: str
    filter: str
    body: Document


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """What a run would ask, before it is run."""

    pattern: str
    requests: tuple[PlannedRequest, ...]
    code: PatternCode
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunItem:
    """An item that came back, with its key in the table and what it is."""

    item: Item
    key: Item
    entity: str | None


@dataclass(frozen=True, slots=True)
class PatternRun:
    """What a run gave, took and cost."""

    pattern: str
    requests: tuple[RunRequest, ...]
    items: tuple[RunItem, ...]
    returned: int  # items in the answer
    read: int  # items that were read for it, and paid
    calls: int
    more: bool
    units: tuple[TargetUnits, ...]  # as DynamoDB told them, by table and index
    read_units: float
    write_units: float
    waste: float | None  # items read for each that came back; None: none came back
    item_bytes: int | None  # on average
    latency_ms: float
    usd_per_million: str | None
    book: str
    why: tuple[str, ...]
    notes: tuple[str, ...]
    forecast: PatternForecast
    code: PatternCode


async def list_all_patterns(studio: Studio, params: PatternsRequest) -> PatternList:
    """Return the access patterns of the design."""
    design = studio.require_design()
    patterns = (each.summary for each in list_patterns(design))
    return PatternList(tuple(each for each in patterns if params.table in (None, "", each.table)))


async def pattern_example(studio: Studio, params: PatternRequest) -> PatternExample:
    """Return values of one item in the table, with which a pattern can be run."""
    entry = find_pattern(studio.require_design(), params.pattern)
    return await find_example(await studio.connection_at(params.as_of), entry)


def pattern_forecast(studio: Studio, params: PatternRequest) -> PatternForecast:
    """Return the declared size and cost of a pattern; writes are only forecast, never run."""
    design = studio.require_design()
    return forecast_pattern(design, find_pattern(design, params.pattern), studio.local_prices())


async def plan_run(studio: Studio, params: RunPatternRequest) -> PatternPlan:
    """Return the requests of a run and its code, without asking anything."""
    entry = find_pattern(studio.require_design(), params.pattern)
    options = _run_options(params)
    plan = plan_pattern(entry, params.values, options, studio.clock.now())
    requests = tuple(
        PlannedRequest(
            plan.operation,
            entry.summary.table,
            request.body.get("IndexName"),
            request.condition,
            request.filter,
            dict(request.body),
        )
        for request in plan.requests
    )
    code = render_pattern_code(entry, plan, params.values, options, studio.where)
    return PatternPlan(params.pattern, requests, code, plan.notes)


async def run_pattern(studio: Studio, params: RunPatternRequest) -> PatternRun:
    """Return what a pattern gives now, or as of a moment, with all that it took."""
    design = studio.require_design()
    entry = find_pattern(design, params.pattern)
    options = _run_options(params)
    plan = plan_pattern(entry, params.values, options, studio.clock.now())
    book, notes = studio.local_prices(), plan.notes
    answer = await run_plan(await studio.connection_at(params.as_of), plan)
    forecasted = await studio.run_in_thread(forecast_pattern, design, entry, book)
    assert entry.table is not None, "what has no table is not run"
    recogniser = Recogniser(designed_keys(entry.table), entry.table)
    names = recogniser.keys[None]
    units = sum_units([units for call in answer.calls for units in call.units])
    reads, writes = sum(each.read for each in units), sum(each.write for each in units)
    read, returned = sum(each.read for each in query_requests(answer.requests)), len(answer.items)
    shown_count = _shown_count(answer.items)
    items = tuple(
        RunItem(
            item,
            {name: item[name] for name in names if name in item},
            recogniser.recognise(item).entity,
        )
        for item in answer.items[:shown_count]
    )
    if book.region != studio.where.region:
        notes = (
            *notes,
            f"There are no prices of {studio.where.region}: the money is at those of {book.title}.",
        )
    if returned > shown_count:
        notes = (*notes, f"The first {shown_count:,} of {returned:,} items are shown.")
    return PatternRun(
        params.pattern,
        answer.requests,
        items,
        returned,
        read,
        len(answer.calls),
        answer.more,
        units,
        reads,
        writes,
        round(read / returned, 3) if returned else None,
        mean_item_bytes(answer),
        round(sum(call.latency_ms for call in answer.calls), 3),
        usd_per_million(entry.table, reads, writes, book),
        book.title,
        explain_cost(entry, answer, forecasted),
        notes,
        forecasted,
        render_pattern_code(entry, plan, params.values, options, studio.where),
    )


def pattern_coverage(studio: Studio, params: NoParameters) -> Coverage:
    """Return which index serves which pattern, the patterns without an index, and the unused indexes."""
    return build_coverage(studio.require_design())


def _run_options(params: RunPatternRequest) -> RunOptions:
    limit = None if params.limit is None or params.limit < 1 else params.limit
    return RunOptions(params.newest_first, limit, params.consistent)


def _shown_count(items: Sequence[Item]) -> int:
    """Return how many items an answer has room for, one at least."""
    room = _BYTES_MAX
    for at, item in enumerate(items[:_ITEMS_MAX]):
        room -= item_size(dict(item))  # type: ignore[arg-type]  # DynamoDB JSON both
        if room < 0:
            return max(1, at)
    return min(len(items), _ITEMS_MAX)


ENDPOINTS = (
    Endpoint("GET", "/patterns", list_all_patterns),
    Endpoint("GET", "/patterns/example", pattern_example),
    Endpoint("GET", "/patterns/forecast", pattern_forecast),
    Endpoint("GET", "/patterns/coverage", pattern_coverage),
    Endpoint("POST", "/patterns/plan", plan_run),
    Endpoint("POST", "/patterns/run", run_pattern),
)
