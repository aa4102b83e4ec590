"""Expensive and failed requests, replays of reads, sample reads, and the capacity limits of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.studio.api.operations import milliseconds, watch_of
from tavola.studio.endpoint import Endpoint
from tavola.studio.monitoring import counted
from tavola.studio.monitoring.expensive_requests import Dear, chosen, reasons_of
from tavola.studio.monitoring.observed_backend import METERED, touches_of
from tavola.studio.monitoring.request_metrics import Trouble
from tavola.studio.monitoring.request_shapes import is_read, plain_name, shape_of
from tavola.studio.monitoring.timeline import WINDOW_S_MAX
from tavola.studio.problems import Refused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import Document
from tavola.web import Problem


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


_TABLES_MAX = 20
_SAMPLED_MAX = 5


@dataclass(frozen=True, slots=True)
class Replay:
    """A read to make again."""

    operation: str
    request: Document


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it."""

    operation: str
    took_ms: float
    reads: float
    writes: float
    consumed: tuple[UnitsAtPlace, ...]
    count: int | None  # items that were given
    scanned: int | None  # items that were read; None where the answer does not say
    more: bool  # the answer is a page, and there is another
    problem: Problem | None


async def replay(studio: Studio, asked: Replay) -> Replayed:
    """Make a read again and return its numbers; a write is made by nobody twice."""
    if not is_read(asked.operation, asked.request):
        raise Refused(
            "not-a-read",
            "Only reads are made again",
            f"{asked.operation} changes what stands, and what is kept of it is not all that it wrote.",
            "Make it again where it was made, or edit the item on the data page.",
        )
    request: dict[str, Any] = dict(asked.request)
    if asked.operation in METERED:
        request["ReturnConsumedCapacity"] = "INDEXES"
    began = monotonic()
    try:
        answer = await studio.db.call(asked.operation, request)
    except TavolaError as error:
        took_ms = (monotonic() - began) * 1000
        return Replayed(asked.operation, took_ms, 0.0, 0.0, (), None, None, False, problem_of(error))
    took_ms = (monotonic() - began) * 1000
    touches = touches_of(answer, DEFAULT_SCOPE, writes=False)
    count, scanned = _counts(answer)
    return Replayed(
        operation=asked.operation,
        took_ms=took_ms,
        reads=sum(touch.reads for touch in touches),
        writes=sum(touch.writes for touch in touches),
        consumed=tuple(
            UnitsAtPlace(plain_name(touch.table), touch.index_name, touch.reads, touch.writes)
            for touch in touches
        ),
        count=count,
        scanned=scanned,
        more=bool(answer.get("LastEvaluatedKey") or answer.get("NextToken") or answer.get("UnprocessedKeys")),
        problem=None,
    )


def _counts(answer: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return how many items an answer gives, and how many it says were read."""
    if "Count" in answer:
        return answer["Count"], answer.get("ScannedCount")
    if "Items" in answer:
        return len(answer["Items"]), None
    held = answer.get("Responses")
    if isinstance(held, dict):
        return sum(len(items) for items in held.values()), None
    if isinstance(held, list):
        return sum("Item" in each for each in held), None
    return int("Item" in answer), None


@dataclass(frozen=True, slots=True)
class SampleReads:
    """Of which table; None: of the first few."""

    table: str | None = None


@dataclass(frozen=True, slots=True)
class SampledReads:
    """How many reads were made, and of which tables."""

    calls: int
    tables: tuple[str, ...]


async def sample(studio: Studio, asked: SampleReads) -> SampledReads:
    """Make a few reads of a few items, so that there is something to see; nothing is changed."""
    with counted():
        return await _sampled(studio, asked)


async def _sampled(studio: Studio, asked: SampleReads) -> SampledReads:
    names = (
        [asked.table]
        if asked.table
        else (await studio.db.call("ListTables", {"Limit": _SAMPLED_MAX}))["TableNames"]
    )
    calls = 0
    for name in names:
        described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        keys = [each["AttributeName"] for each in described["KeySchema"]]
        page = await studio.db.call("Scan", {"TableName": name, "Limit": 5})
        calls += 2
        for item in page["Items"]:
            key = {attribute: item[attribute] for attribute in keys}
            await studio.db.call("GetItem", {"TableName": name, "Key": key})
            await studio.db.call(
                "Query",
                {
                    "TableName": name,
                    "KeyConditionExpression": "#k = :k",
                    "ExpressionAttributeNames": {"#k": keys[0]},
                    "ExpressionAttributeValues": {":k": item[keys[0]]},
                    "Limit": 10,
                },
            )
            calls += 2
    return SampledReads(calls, tuple(names))


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Of which tables, with commas between their names; None: of all, as far as they are few."""

    tables: str | None = None


@dataclass(frozen=True, slots=True)
class PlaceLimit:
    """What a table or an index can take in a second."""

    table: str
    index: str | None
    kind: Literal[
        "provisioned", "maximum", "warm"
    ]  # warm: on demand, and can grow; maximum: on demand, and capped
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What tables and indexes can take; a local index takes from its table."""

    places: tuple[PlaceLimit, ...]


async def limits(studio: Studio, asked: AskLimits) -> Limits:
    """Return what each table and index can take in a second: provisioned, capped, or warm on demand."""
    if asked.tables:
        names = [name for name in asked.tables.split(",") if name][:_TABLES_MAX]
    else:
        names = (await studio.db.call("ListTables", {"Limit": _TABLES_MAX}))["TableNames"]
    found: list[PlaceLimit] = []
    for name in names:
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except TavolaError:
            continue  # it may have gone meanwhile, and the others have their limits still
        on_demand = described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
        table = _limit(name, None, described, on_demand)
        found.append(table)
        found += (
            _limit(name, each["IndexName"], each, on_demand)
            for each in described.get("GlobalSecondaryIndexes", ())
        )
        found += (
            PlaceLimit(name, each["IndexName"], table.kind, table.reads, table.writes)
            for each in described.get("LocalSecondaryIndexes", ())
        )
    return Limits(tuple(found))


def _limit(table: str, index: str | None, told: dict[str, Any], on_demand: bool) -> PlaceLimit:
    if not on_demand:
        units = told.get("ProvisionedThroughput", {})
        return PlaceLimit(
            table,
            index,
            "provisioned",
            float(units.get("ReadCapacityUnits", 0)),
            float(units.get("WriteCapacityUnits", 0)),
        )
    warm, cap = told.get("WarmThroughput", {}), told.get("OnDemandThroughput", {})
    reads, writes = cap.get("MaxReadRequestUnits", -1), cap.get("MaxWriteRequestUnits", -1)
    capped = reads > 0 or writes > 0
    return PlaceLimit(
        table,
        index,
        "maximum" if capped else "warm",
        float(reads if reads > 0 else warm.get("ReadUnitsPerSecond", 12_000)),
        float(writes if writes > 0 else warm.get("WriteUnitsPerSecond", 4_000)),
    )


ENDPOINTS = (
    Endpoint("GET", "/operations/dearest", dearest),
    Endpoint("GET", "/operations/troubles", troubles),
    Endpoint("POST", "/operations/replay", replay),
    Endpoint("POST", "/operations/sample", sample),
    Endpoint("GET", "/operations/limits", limits),
)
