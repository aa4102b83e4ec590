"""The access patterns of the design: list, run and compare with the indexes.

A run reports its requests, the units of each call as DynamoDB returned them, the design's forecast, and why the two differ.
Writes are forecast and never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tavola.studio.access_patterns.catalogue import DesignedPattern, catalogue, listed
from tavola.studio.access_patterns.code import PatternCode, code_of
from tavola.studio.access_patterns.coverage import Coverage, coverage
from tavola.studio.access_patterns.examples import PatternExample, example_of
from tavola.studio.access_patterns.forecasts import (
    PatternForecast,
    dollars,
    forecast,
    mean_bytes,
    questions_of,
    reasons,
)
from tavola.studio.access_patterns.plans import plan
from tavola.studio.access_patterns.requests import EnteredValue, How
from tavola.studio.access_patterns.runs import PlaceUnits, RanRequest, run, summed
from tavola.studio.endpoint import Endpoint
from tavola.studio.recognition import Recogniser, designed_keys
from tavola.studio.studio import Studio
from tavola.studio.types import Document, Item
from tavola.values import item_size

_ITEMS_MAX = 1_000  # that an answer shows
_BYTES_MAX = 4 * 1024**2  # of the items that an answer shows: a page has to hold them


@dataclass(frozen=True, slots=True)
class ListPatterns:
    """Whose patterns; none named: of every table."""

    table: str | None = None


@dataclass(frozen=True, slots=True)
class PatternList:
    """Every access pattern, in the order of the design."""

    patterns: tuple[DesignedPattern, ...]


@dataclass(frozen=True, slots=True)
class AskPattern:
    """Which pattern, and as of when."""

    pattern: str
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class RunPattern:
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
class RanItem:
    """An item that came back, with its key in the table and what it is."""

    item: Item
    key: Item
    entity: str | None


@dataclass(frozen=True, slots=True)
class PatternRun:
    """What a run gave, took and cost."""

    pattern: str
    requests: tuple[RanRequest, ...]
    items: tuple[RanItem, ...]
    returned: int  # items in the answer
    read: int  # items that were read for it, and paid
    calls: int
    more: bool
    units: tuple[PlaceUnits, ...]  # as DynamoDB told them, by table and index
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


@dataclass(frozen=True, slots=True)
class AskCoverage:
    """The matrix of the whole design."""


async def patterns(studio: Studio, asked: ListPatterns) -> PatternList:
    """Return the access patterns of the design."""
    design = studio.needed_design()
    found = (each.told for each in catalogue(design))
    return PatternList(tuple(each for each in found if asked.table in (None, "", each.table)))


async def example(studio: Studio, asked: AskPattern) -> PatternExample:
    """Return values of one item in the table, with which a pattern can be run."""
    found = listed(studio.needed_design(), asked.pattern)
    return await example_of(await studio.at(asked.as_of), found)


async def foretold(studio: Studio, asked: AskPattern) -> PatternForecast:
    """Return what a pattern takes by what the design declares; of a write this is all there is."""
    design = studio.needed_design()
    return await studio.work(forecast, design, listed(design, asked.pattern), studio.local_book())


async def planned(studio: Studio, asked: RunPattern) -> PatternPlan:
    """Return the requests of a run and its code, without asking anything."""
    found = listed(studio.needed_design(), asked.pattern)
    how = _how(asked)
    told = plan(found, asked.values, how, studio.clock.now())
    requests = tuple(
        PlannedRequest(
            told.operation,
            found.told.table,
            request.body.get("IndexName"),
            request.condition,
            request.filter,
            dict(request.body),
        )
        for request in told.requests
    )
    code = code_of(found, told, asked.values, how, studio.where)
    return PatternPlan(asked.pattern, requests, code, told.notes)


async def ran(studio: Studio, asked: RunPattern) -> PatternRun:
    """Return what a pattern gives now, or as of a moment, with all that it took."""
    design = studio.needed_design()
    found = listed(design, asked.pattern)
    how = _how(asked)
    told = plan(found, asked.values, how, studio.clock.now())
    book, notes = studio.local_book(), told.notes
    answer = await run(await studio.at(asked.as_of), told)
    forecasted = await studio.work(forecast, design, found, book)
    assert found.table is not None, "what has no table is not run"
    recogniser = Recogniser(designed_keys(found.table), found.table)
    names = recogniser.keys.names
    units = summed([units for call in answer.calls for units in call.units])
    reads, writes = sum(each.read for each in units), sum(each.write for each in units)
    read, returned = sum(each.read for each in questions_of(answer.requests)), len(answer.items)
    shown = _shown(answer.items)
    items = tuple(
        RanItem(
            item,
            {name: item[name] for name in names if name in item},
            recogniser.recognise(item).entity,
        )
        for item in answer.items[:shown]
    )
    if book.region != studio.where.region:
        notes = (
            *notes,
            f"There are no prices of {studio.where.region}: the money is at those of {book.title}.",
        )
    if returned > shown:
        notes = (*notes, f"The first {shown:,} of {returned:,} items are shown.")
    return PatternRun(
        asked.pattern,
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
        mean_bytes(answer),
        round(sum(call.latency_ms for call in answer.calls), 3),
        dollars(found.table, reads, writes, book),
        book.title,
        reasons(found, answer, forecasted),
        notes,
        forecasted,
        code_of(found, told, asked.values, how, studio.where),
    )


async def covered(studio: Studio, asked: AskCoverage) -> Coverage:
    """Return which index serves which pattern, what nothing serves, and which index nobody asks."""
    return await studio.work(coverage, studio.needed_design())


def _how(asked: RunPattern) -> How:
    limit = None if asked.limit is None or asked.limit < 1 else asked.limit
    return How(asked.newest_first, limit, asked.consistent)


def _shown(items: Sequence[Item]) -> int:
    """Return how many items an answer has room for, one at least."""
    room = _BYTES_MAX
    for at, item in enumerate(items[:_ITEMS_MAX]):
        room -= item_size(dict(item))  # type: ignore[arg-type]  # DynamoDB JSON both
        if room < 0:
            return max(1, at)
    return min(len(items), _ITEMS_MAX)


ENDPOINTS = (
    Endpoint("GET", "/patterns", patterns),
    Endpoint("GET", "/patterns/example", example),
    Endpoint("GET", "/patterns/forecast", foretold),
    Endpoint("GET", "/patterns/coverage", covered),
    Endpoint("POST", "/patterns/plan", planned),
    Endpoint("POST", "/patterns/run", ran),
)
