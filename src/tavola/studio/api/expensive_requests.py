"""Expensive and failed requests, replays of reads, sample reads, and the capacity limits of tables."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.protocol.arns import DEFAULT_SCOPE, table_name_of
from tavola.studio.api.operations import milliseconds
from tavola.studio.endpoint import SEE_REQUESTS, Endpoint
from tavola.studio.monitoring import count_own_calls
from tavola.studio.monitoring.expensive_requests import ExpensiveRequest, explain_request, select_requests
from tavola.studio.monitoring.monitor import METERED, consumed_accesses
from tavola.studio.monitoring.request_metrics import WINDOW_S_MAX, FailedCall
from tavola.studio.monitoring.request_shapes import is_read, request_shape
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage, ConsumedUnits, Document
from tavola.web import Problem


class ExpensiveRequestsFilter(ApiMessage):
    """The order, and filters by time window, table and operation."""

    by: Literal["units", "time"] = "units"
    window_s: int = 600
    table: str | None = None
    operation: str | None = None
    limit: int = 25


class ExpensiveRequestRow(ApiMessage):
    """One of the most expensive requests, without the values it stored."""

    number: int
    operation: str
    tables: tuple[str, ...]
    at_s: float
    took_ms: float
    units: float
    items: int  # items or partitions that it accessed
    consumed: tuple[ConsumedUnits, ...]
    fault: str | None
    request: Document
    replayable: bool
    why: tuple[str, ...]


class ExpensiveRequestList(ApiMessage):
    """The most expensive requests in a window, one of each form."""

    by: Literal["units", "time"]
    requests: tuple[ExpensiveRequestRow, ...]


async def list_expensive_requests(studio: Studio, params: ExpensiveRequestsFilter) -> ExpensiveRequestList:
    """Return the requests that consumed the most capacity or took longest."""
    monitor = studio.require_monitor()
    window_s = max(1, min(params.window_s, WINDOW_S_MAX))
    with monitor.lock:
        requests = monitor.metrics.expensive_requests(params.by)
    since_s = studio.clock.now() - window_s

    def select() -> ExpensiveRequestList:
        best = select_requests(params.by, requests, since_s, params.table or None, params.operation or None)
        return ExpensiveRequestList(
            params.by, tuple(_request_row(request) for request in best[: max(1, min(params.limit, 100))])
        )

    return await studio.run_in_thread(select)


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
        consumed=expensive.consumed,
        fault=expensive.fault,
        request=request if isinstance(request, dict) else {"omitted": "not a JSON object"},
        replayable="omitted" not in request and is_read(operation, request),
        why=explain_request(expensive, request if isinstance(request, dict) else {}),
    )


class FailedCallsFilter(ApiMessage):
    """Filters by time window, table and operation."""

    window_s: int = 600
    table: str | None = None
    operation: str | None = None


class FailedCallRow(ApiMessage):
    """A call that was throttled, conflicted with a transaction, or failed its condition."""

    at_s: float
    operation: str
    tables: tuple[str, ...]
    code: str
    reasons: tuple[str, ...]  # for a cancelled transaction, one per action
    request: Document = msgspec.field(default_factory=dict)


class FailedCallList(ApiMessage):
    """The latest failed calls, newest first."""

    rows: tuple[FailedCallRow, ...]


async def list_failed_calls(studio: Studio, params: FailedCallsFilter) -> FailedCallList:
    """Return the latest throttled, conflicting and conditionally failed calls."""
    monitor = studio.require_monitor()
    with monitor.lock:
        failed = monitor.metrics.failed_calls(params.window_s, params.table or None, params.operation or None)
    return FailedCallList(tuple(_failed_call_row(call) for call in failed))


def _failed_call_row(failed: FailedCall) -> FailedCallRow:
    shape: Any = {"omitted": "request too long"}
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


class ReplayRequest(ApiMessage):
    """A read to repeat."""

    operation: str
    request: Document


class ReplayResult(ApiMessage):
    """The outcome of a repeated read."""

    operation: str
    took_ms: float
    reads: float
    writes: float
    consumed: tuple[ConsumedUnits, ...]
    count: int | None  # items returned
    scanned: int | None  # items read; None if DynamoDB does not report it
    more: bool  # there are further pages
    problem: Problem | None


async def replay_read(studio: Studio, params: ReplayRequest) -> ReplayResult:
    """Repeat a read and return its cost; writes are refused."""
    if not is_read(params.operation, params.request):
        raise RequestRefused(
            "not-a-read",
            "Only reads can be repeated",
            f"{params.operation} changes data, and the studio does not record the values it wrote.",
            "Repeat it in your program, or edit the item on the Data page.",
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
            ConsumedUnits(table_name_of(access.table), access.index_name, access.reads, access.writes)
            for access in accesses
        ),
        count=count,
        scanned=scanned,
        more=bool(answer.get("LastEvaluatedKey") or answer.get("NextToken") or answer.get("UnprocessedKeys")),
        problem=None,
    )


def _item_counts(answer: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the number of items returned and, if reported, read."""
    if "Count" in answer:
        return answer["Count"], answer.get("ScannedCount")
    if "Items" in answer:
        return len(answer["Items"]), None
    responses = answer.get("Responses")
    if isinstance(responses, dict):
        return sum(len(items) for items in responses.values()), None
    if isinstance(responses, list):
        return sum("Item" in response for response in responses), None
    return int("Item" in answer), None


class SampleReadsRequest(ApiMessage):
    """The table to read; None: the first few tables."""

    table: str | None = None


class SampledReads(ApiMessage):
    """The number of reads and their tables."""

    calls: int
    tables: tuple[str, ...]


async def make_sample_reads(studio: Studio, params: SampleReadsRequest) -> SampledReads:
    """Make a few reads, so that there is traffic to look at; nothing is changed."""
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
        keys = [element["AttributeName"] for element in described["KeySchema"]]
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


class LimitsRequest(ApiMessage):
    """Comma-separated table names; None: the first few tables."""

    tables: str | None = None


class TargetLimit(ApiMessage):
    """The capacity per second of a table or index."""

    table: str
    index: str | None
    kind: Literal["provisioned", "maximum", "warm"]  # on demand: `maximum` if capped, else `warm`
    reads: float
    writes: float


class CapacityLimits(ApiMessage):
    """The capacity of tables and indexes; a local index shares its table's."""

    places: tuple[TargetLimit, ...]


async def list_limits(studio: Studio, params: LimitsRequest) -> CapacityLimits:
    """Return the capacity per second of each table and index."""
    if params.tables:
        names = [name for name in params.tables.split(",") if name][:_TABLES_MAX]
    else:
        names = (await studio.db.call("ListTables", {"Limit": _TABLES_MAX}))["TableNames"]
    limits: list[TargetLimit] = []
    for name in names:
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except TavolaError:
            continue  # possibly deleted in the meantime
        on_demand = described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
        table = _target_limit(name, None, described, on_demand)
        limits.append(table)
        limits += (
            _target_limit(name, index["IndexName"], index, on_demand)
            for index in described.get("GlobalSecondaryIndexes", ())
        )
        limits += (
            TargetLimit(name, index["IndexName"], table.kind, table.reads, table.writes)
            for index in described.get("LocalSecondaryIndexes", ())
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
    is_capped = reads > 0 or writes > 0
    return TargetLimit(
        table,
        index,
        "maximum" if is_capped else "warm",
        float(reads if reads > 0 else warm.get("ReadUnitsPerSecond", 12_000)),
        float(writes if writes > 0 else warm.get("WriteUnitsPerSecond", 4_000)),
    )


ENDPOINTS = (
    Endpoint("GET", "/operations/expensive-requests", list_expensive_requests, permission=SEE_REQUESTS),
    Endpoint("GET", "/operations/failed-calls", list_failed_calls, permission=SEE_REQUESTS),
    Endpoint("POST", "/operations/replay", replay_read),
    Endpoint("POST", "/operations/sample", make_sample_reads),
    Endpoint("GET", "/operations/limits", list_limits),
)
