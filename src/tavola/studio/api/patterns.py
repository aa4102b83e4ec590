"""The access patterns of the design: list, run and compare with the indexes.

A run reports its requests, the units of each call as DynamoDB returned them, the design's forecast, and why the two differ.
Writes are forecast and never run.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from tavola.studio.access_patterns.runs import RunRequest, run_plan, sum_units
from tavola.studio.endpoint import Endpoint
from tavola.studio.recognition import Recogniser, designed_keys
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage, ConsumedUnits, Document, Item, NoParameters
from tavola.values import item_size

_ITEMS_MAX = 1_000  # in a response
_BYTES_MAX = 4 * 1024**2  # of the items in a response


class PatternsRequest(ApiMessage):
    """Optionally the table whose patterns to list."""

    table: str | None = None


class PatternList(ApiMessage):
    """Access patterns in design order."""

    patterns: tuple[DesignedPattern, ...]


class PatternRequest(ApiMessage):
    """The id of a pattern, and as of when."""

    pattern: str
    as_of: str | None = None


class RunPatternRequest(ApiMessage):
    """A pattern with its parameter values and options."""

    pattern: str
    values: tuple[EnteredValue, ...] = ()
    newest_first: bool = False
    limit: int | None = None
    consistent: bool = False
    as_of: str | None = None


class PlannedRequest(ApiMessage):
    """A request that a run would make."""

    operation: str
    table: str
    index: str | None
    condition: str
    filter: str
    body: Document


class PatternPlan(ApiMessage):
    """The requests of a run, before it is run."""

    pattern: str
    requests: tuple[PlannedRequest, ...]
    code: PatternCode
    notes: tuple[str, ...]


class RunItem(ApiMessage):
    """A returned item with its primary key and entity."""

    item: Item
    key: Item
    entity: str | None


class PatternRun(ApiMessage):
    """The items, requests and cost of a run."""

    pattern: str
    requests: tuple[RunRequest, ...]
    items: tuple[RunItem, ...]
    returned: int  # items
    read: int  # items read and charged
    calls: int
    more: bool
    units: tuple[ConsumedUnits, ...]  # as DynamoDB reported them
    read_units: float
    write_units: float
    waste: float | None  # items read per returned item; None: nothing returned
    item_bytes: int | None  # average
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
    patterns = (pattern.summary for pattern in list_patterns(design))
    return PatternList(tuple(pattern for pattern in patterns if params.table in (None, "", pattern.table)))


async def pattern_example(studio: Studio, params: PatternRequest) -> PatternExample:
    """Return parameter values for a pattern, taken from an item in the table."""
    entry = find_pattern(studio.require_design(), params.pattern)
    return await find_example(await studio.connection_at(params.as_of), entry)


def pattern_forecast(studio: Studio, params: PatternRequest) -> PatternForecast:
    """Return the declared size and cost of a pattern; writes are only forecast, never run."""
    design = studio.require_design()
    return forecast_pattern(design, find_pattern(design, params.pattern), studio.local_prices())


async def plan_run(studio: Studio, params: RunPatternRequest) -> PatternPlan:
    """Return the requests and code of a run without running it."""
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
    """Run a pattern, now or as of a moment, and return its items, requests and cost."""
    design = studio.require_design()
    entry = find_pattern(design, params.pattern)
    options = _run_options(params)
    plan = plan_pattern(entry, params.values, options, studio.clock.now())
    book, notes = studio.local_prices(), plan.notes
    answer = await run_plan(await studio.connection_at(params.as_of), plan)
    forecasted = await studio.run_in_thread(forecast_pattern, design, entry, book)
    assert entry.table is not None, "a runnable pattern has a table"
    recogniser = Recogniser(designed_keys(entry.table), entry.table)
    names = recogniser.keys[None]
    units = sum_units([units for call in answer.calls for units in call.units])
    reads, writes = sum(unit.reads for unit in units), sum(unit.writes for unit in units)
    read, returned = sum(request.read for request in query_requests(answer.requests)), len(answer.items)
    shown_count = _shown_count(answer.items)
    items = tuple(
        RunItem(item, {name: item[name] for name in names if name in item}, recogniser.recognise(item).entity)
        for item in answer.items[:shown_count]
    )
    if book.region != studio.where.region:
        notes = (*notes, f"There are no prices for {studio.where.region}; costs use those of {book.title}.")
    if returned > shown_count:
        notes = (*notes, f"Showing the first {shown_count:,} of {returned:,} items.")
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
    """Return how many items fit a response, at least one."""
    bytes_left = _BYTES_MAX
    for position, item in enumerate(items[:_ITEMS_MAX]):
        bytes_left -= item_size(dict(item))  # type: ignore[arg-type]  # DynamoDB JSON both
        if bytes_left < 0:
            return max(1, position)
    return min(len(items), _ITEMS_MAX)


ENDPOINTS = (
    Endpoint("GET", "/patterns", list_all_patterns),
    Endpoint("GET", "/patterns/example", pattern_example),
    Endpoint("GET", "/patterns/forecast", pattern_forecast),
    Endpoint("GET", "/patterns/coverage", pattern_coverage),
    Endpoint("POST", "/patterns/plan", plan_run),
    Endpoint("POST", "/patterns/run", run_pattern),
)
