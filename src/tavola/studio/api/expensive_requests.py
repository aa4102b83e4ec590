"""Expensive and failed requests, replays of reads, sample reads, and the capacity limits of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.studio.api.operations import milliseconds, require_monitor
from tavola.studio.endpoint import Endpoint
from tavola.studio.monitoring import count_own_calls
from tavola.studio.monitoring.expensive_requests import ExpensiveRequest, explain_request, select_requests
from tavola.studio.monitoring.monitor import METERED, consumed_accesses
from tavola.studio.monitoring.request_metrics import WINDOW_S_MAX, FailedCall
from tavola.studio.monitoring.request_shapes import is_read, request_shape, table_name_only
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import Document
from tavola.web import Problem


@dataclass(frozen=True, slots=True)
class ExpensiveRequestsFilter:
    """Which requests: by what, in which window, and of which table and operation."""

    by: Literal["units", "time"] = "units"
    window_s: int = 600
    table: str | None = None
    operation: str | None = None
    limit: int = 25


@dataclass(frozen=True, slots=True)
class CapacityUnits:
    """Units that one request consumed in one place."""

    table: str
    index: str | None
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class ExpensiveRequestRow:
    """A request that was among the dearest of its kind, without what it stored."""

    number: int
    operation: str
    tables: tuple[str, ...]
    at_s: float
    took_ms: float
    units: float
    items: int  # items or partitions that it touched
    consumed: tuple[CapacityUnits, ...]
    fault: str | None
    request: Document
    replayable: bool
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpensiveRequestList:
    """The dearest requests of a window, one of each form."""

    by: Literal["units", "time"]
    requests: tuple[ExpensiveRequestRow, ...]


async def list_expensive_requests(studio: Studio, params: ExpensiveRequestsFilter) -> ExpensiveRequestList:
    """Return the requests that consumed most, or took longest."""
    monitor = require_monitor(studio)
    window_s = max(1, min(params.window_s, WINDOW_S_MAX))
    with monitor.lock:
        requests = monitor.metrics.expensive_requests(params.by)
    since_s = studio.clock.now() - window_s

    def found() -> ExpensiveRequestList:
        best = select_requests(params.by, requests, since_s, params.table or None, params.operation or None)
        return ExpensiveRequestList(
            params.by, tuple(_request_row(each) for each in best[: max(1, min(params.limit, 100))])
        )

    return await studio.run_in_thread(found)


def _request_row(expensive: ExpensiveRequest) -> ExpensiveRequestRow:
    request = msgspec.json.decode(expensive.shape)
    operation = expensive.kind.operation
    return ExpensiveRequestRow(
        number=expensive.number,
        operation=operation,
        tables=expensive.kind.tables,
        at_s=expensive.at_s,
        took_ms=milliseconds(expensive.took_s),
        units=expensive.units,
        items=expensive.items,
        consumed=tuple(
            CapacityUnits(table_name_only(each.table), each.index, each.reads, each.writes)
            for each in expensive.consumed
        ),
        fault=expensive.fault,
        request=request if isinstance(request, dict) else {"omitted": "a request that is no object"},
        replayable="omitted" not in request and is_read(operation, request),
        why=explain_request(expensive, request if isinstance(request, dict) else {}),
    )


@dataclass(frozen=True, slots=True)
class FailedCallsFilter:
    """In which window, and of which table and operation."""

    window_s: int = 600
    table: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class FailedCallRow:
    """A call that was throttled, met another transaction, or whose condition did not hold."""

    at_s: float
    operation: str
    tables: tuple[str, ...]
    code: str
    reasons: tuple[str, ...]  # of a cancelled transaction, for each of its actions
    request: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedCallList:
    """The last calls that came to grief, the newest first."""

    rows: tuple[FailedCallRow, ...]


async def list_failed_calls(studio: Studio, params: FailedCallsFilter) -> FailedCallList:
    """Return the last throttles, conflicts and failed conditions."""
    monitor = require_monitor(studio)
    with monitor.lock:
        failed = monitor.metrics.failed_calls(params.window_s, params.table or None, params.operation or None)
    return FailedCallList(tuple(_failed_call_row(each) for each in failed))


def _failed_call_row(failed: FailedCall) -> FailedCallRow:
    shape: Any = {"omitted": "a long request"}
    if failed.body is not None:
        shape = msgspec.json.decode(request_shape(failed.kind.operation, failed.body))
    return FailedCallRow(
        failed.at_s,
        failed.kind.operation,
        failed.kind.tables,
        failed.code,
        failed.reasons,
        shape if isinstance(shape, dict) else {},
    )


_TABLES_MAX = 20
_SAMPLED_MAX = 5


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A read to make again."""

    operation: str
    request: Document


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What came of it."""

    operation: str
    took_ms: float
    reads: float
    writes: float
    consumed: tuple[CapacityUnits, ...]
    count: int | None  # items that were given
    scanned: int | None  # items that were read; None where the answer does not say
    more: bool  # the answer is a page, and there is another
    problem: Problem | None


async def replay_read(studio: Studio, params: ReplayRequest) -> ReplayResult:
    """Make a read again and return its numbers; a write is made by nobody twice."""
    if not is_read(params.operation, params.request):
        raise RequestRefused(
            "not-a-read",
            "Only reads are made again",
            f"{params.operation} changes what stands, and what is kept of it is not all that it wrote.",
            "Make it again where it was made, or edit the item on the data page.",
        )
    request: dict[str, Any] = dict(params.request)
    if params.operation in METERED:
        request["ReturnConsumedCapacity"] = "INDEXES"
    began = monotonic()
    try:
        answer = await studio.db.call(params.operation, request)
    except TavolaError as error:
        took_ms = (monotonic() - began) * 1000
        return ReplayResult(params.operation, took_ms, 0.0, 0.0, (), None, None, False, problem_of(error))
    took_ms = (monotonic() - began) * 1000
    accesses = consumed_accesses(answer, DEFAULT_SCOPE, writes=False)
    count, scanned = _item_counts(answer)
    return ReplayResult(
        operation=params.operation,
        took_ms=took_ms,
        reads=sum(access.reads for access in accesses),
        writes=sum(access.writes for access in accesses),
        consumed=tuple(
            CapacityUnits(table_name_only(access.table), access.index_name, access.reads, access.writes)
            for access in accesses
        ),
        count=count,
        scanned=scanned,
        more=bool(answer.get("LastEvaluatedKey") or answer.get("NextToken") or answer.get("UnprocessedKeys")),
        problem=None,
    )


def _item_counts(answer: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return how many items an answer gives, and how many it says were read."""
    if "Count" in answer:
        return answer["Count"], answer.get("ScannedCount")
    if "Items" in answer:
        return len(answer["Items"]), None
    responses = answer.get("Responses")
    if isinstance(responses, dict):
        return sum(len(items) for items in responses.values()), None
    if isinstance(responses, list):
        return sum("Item" in each for each in responses), None
    return int("Item" in answer), None


@dataclass(frozen=True, slots=True)
class SampleReadsRequest:
    """Of which table; None: of the first few."""

    table: str | None = None


@dataclass(frozen=True, slots=True)
class SampledReads:
    """How many reads were made, and of which tables."""

    calls: int
    tables: tuple[str, ...]


async def make_sample_reads(studio: Studio, params: SampleReadsRequest) -> SampledReads:
    """Make a few reads of a few items, so that there is something to see; nothing is changed."""
    with count_own_calls():
        return await _sample_tables(studio, params)


async def _sample_tables(studio: Studio, params: SampleReadsRequest) -> SampledReads:
    names = (
        [params.table]
        if params.table
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
class LimitsRequest:
    """Of which tables, with commas between their names; None: of all, as far as they are few."""

    tables: str | None = None


@dataclass(frozen=True, slots=True)
class TargetLimit:
    """What a table or an index can take in a second."""

    table: str
    index: str | None
    kind: Literal[
        "provisioned", "maximum", "warm"
    ]  # warm: on demand, and can grow; maximum: on demand, and capped
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """What tables and indexes can take; a local index takes from its table."""

    places: tuple[TargetLimit, ...]


async def list_limits(studio: Studio, params: LimitsRequest) -> CapacityLimits:
    """Return what each table and index can take in a second: provisioned, capped, or warm on demand."""
    if params.tables:
        names = [name for name in params.tables.split(",") if name][:_TABLES_MAX]
    else:
        names = (await studio.db.call("ListTables", {"Limit": _TABLES_MAX}))["TableNames"]
    limits: list[TargetLimit] = []
    for name in names:
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except TavolaError:
            continue  # it may have gone meanwhile, and the others have their limits still
        on_demand = described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
        table = _target_limit(name, None, described, on_demand)
        limits.append(table)
        limits += (
            _target_limit(name, each["IndexName"], each, on_demand)
            for each in described.get("GlobalSecondaryIndexes", ())
        )
        limits += (
            TargetLimit(name, each["IndexName"], table.kind, table.reads, table.writes)
            for each in described.get("LocalSecondaryIndexes", ())
        )
    return CapacityLimits(tuple(limits))


def _target_limit(table: str, index: str | None, described: dict[str, Any], on_demand: bool) -> TargetLimit:
    if not on_demand:
        units = described.get("ProvisionedThroughput", {})
        return TargetLimit(
            table,
            index,
            "provisioned",
            float(units.get("ReadCapacityUnits", 0)),
            float(units.get("WriteCapacityUnits", 0)),
        )
    warm, cap = described.get("WarmThroughput", {}), described.get("OnDemandThroughput", {})
    reads, writes = cap.get("MaxReadRequestUnits", -1), cap.get("MaxWriteRequestUnits", -1)
    capped = reads > 0 or writes > 0
    return TargetLimit(
        table,
        index,
        "maximum" if capped else "warm",
        float(reads if reads > 0 else warm.get("ReadUnitsPerSecond", 12_000)),
        float(writes if writes > 0 else warm.get("WriteUnitsPerSecond", 4_000)),
    )


ENDPOINTS = (
    Endpoint("GET", "/operations/dearest", list_expensive_requests),
    Endpoint("GET", "/operations/troubles", list_failed_calls),
    Endpoint("POST", "/operations/replay", replay_read),
    Endpoint("POST", "/operations/sample", make_sample_reads),
    Endpoint("GET", "/operations/limits", list_limits),
)
