"""Dearest: the requests that cost most, and those that came to grief, as they are shown: without what they stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tavola.studio.api.operations import milliseconds, watch_of
from tavola.studio.endpoint import Endpoint
from tavola.studio.studio import Studio
from tavola.studio.types import Document
from tavola.studio.watching.dearest import Dear, chosen
from tavola.studio.watching.measures import Trouble
from tavola.studio.watching.reasons import reasons_of
from tavola.studio.watching.shapes import is_read, plain_name, shape_of
from tavola.studio.watching.timeline import WINDOW_S_MAX


@dataclass(frozen=True, slots=True)
class AskDearest:
    """Which requests: by what, in which window, and of which table and operation."""

    by: Literal["units", "time"] = "units"
    window_s: int = 600
    table: str | None = None
    operation: str | None = None
    limit: int = 25


@dataclass(frozen=True, slots=True)
class UnitsAtPlace:
    """Units that one request consumed in one place."""

    table: str
    index: str | None
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class DearRequest:
    """A request that was among the dearest of its kind, without what it stored."""

    number: int
    operation: str
    tables: tuple[str, ...]
    at_s: float
    took_ms: float
    units: float
    items: int  # items or partitions that it touched
    consumed: tuple[UnitsAtPlace, ...]
    fault: str | None
    request: Document
    replayable: bool
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DearestRequests:
    """The dearest requests of a window, one of each form."""

    by: Literal["units", "time"]
    requests: tuple[DearRequest, ...]


async def dearest(studio: Studio, asked: AskDearest) -> DearestRequests:
    """Return the requests that consumed most, or took longest."""
    watch = watch_of(studio)
    window_s = max(1, min(asked.window_s, WINDOW_S_MAX))
    with watch.lock:
        dears = watch.measures.dears(asked.by)
    since_s = studio.clock.now() - window_s

    def found() -> DearestRequests:
        best = chosen(asked.by, dears, since_s, asked.table or None, asked.operation or None)
        return DearestRequests(asked.by, tuple(_dear(each) for each in best[: max(1, min(asked.limit, 100))]))

    return await studio.work(found)


def _dear(dear: Dear) -> DearRequest:
    request = msgspec.json.decode(dear.shape)
    operation = dear.asked.operation
    return DearRequest(
        number=dear.number,
        operation=operation,
        tables=dear.asked.tables,
        at_s=dear.at_s,
        took_ms=milliseconds(dear.took_s),
        units=dear.units,
        items=dear.items,
        consumed=tuple(
            UnitsAtPlace(plain_name(each.table), each.index, each.reads, each.writes)
            for each in dear.consumed
        ),
        fault=dear.fault,
        request=request if isinstance(request, dict) else {"omitted": "a request that is no object"},
        replayable="omitted" not in request and is_read(operation, request),
        why=reasons_of(dear, request if isinstance(request, dict) else {}),
    )


@dataclass(frozen=True, slots=True)
class AskTroubles:
    """In which window, and of which table and operation."""

    window_s: int = 600
    table: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class TroubleRow:
    """A call that was throttled, met another transaction, or whose condition did not hold."""

    at_s: float
    operation: str
    tables: tuple[str, ...]
    code: str
    reasons: tuple[str, ...]  # of a cancelled transaction, for each of its actions
    request: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Troubles:
    """The last calls that came to grief, the newest first."""

    rows: tuple[TroubleRow, ...]


async def troubles(studio: Studio, asked: AskTroubles) -> Troubles:
    """Return the last throttles, conflicts and failed conditions."""
    watch = watch_of(studio)
    with watch.lock:
        found = watch.measures.troubles(asked.window_s, asked.table or None, asked.operation or None)
    return Troubles(tuple(_trouble(each) for each in found))


def _trouble(trouble: Trouble) -> TroubleRow:
    shape: Any = {"omitted": "a long request"}
    if trouble.body is not None:
        shape = msgspec.json.decode(shape_of(trouble.asked.operation, trouble.body))
    return TroubleRow(
        trouble.at_s,
        trouble.asked.operation,
        trouble.asked.tables,
        trouble.code,
        trouble.reasons,
        shape if isinstance(shape, dict) else {},
    )


ENDPOINTS = (
    Endpoint("GET", "/operations/dearest", dearest),
    Endpoint("GET", "/operations/troubles", troubles),
)
