"""Run planned requests and report what each call read, consumed and took.

Every call sends `ReturnConsumedCapacity=INDEXES`, so the reported units are DynamoDB's own. A run stops at its limit, at the
end of the data, or at the maximum number of calls, and reports which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tavola.client.connection import AsyncConnection
from tavola.client.consumption import ConsumedCapacity
from tavola.clock import monotonic
from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.studio.access_patterns.requests import OutgoingRequest, RequestPlan, sort_value
from tavola.studio.types import ConsumedUnits, Document, Item

CALLS_MAX = 50  # per request
RUN_CALLS_MAX = 150  # per run, since all items are held in memory until they are sorted
FILTERED_READ_MIN = 100  # items that a filtered call reads at least


@dataclass(frozen=True, slots=True)
class RunCall:
    """One call and its response in numbers."""

    returned: int
    read: int  # items before the filter
    units: tuple[ConsumedUnits, ...]
    latency_ms: float


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request of a run, with one call per page."""

    operation: str
    table: str
    index: str | None
    condition: str  # on the key, as text
    filter: str
    body: Document
    calls: tuple[RunCall, ...]
    more: bool  # not everything was read

    @property
    def returned_count(self) -> int:
        """The number of returned items."""
        return sum(call.returned for call in self.calls)

    @property
    def read(self) -> int:
        """The number of items read and charged."""
        return sum(call.read for call in self.calls)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The requests and items of a run."""

    requests: tuple[RunRequest, ...]
    items: tuple[Item, ...]
    more: bool
    dropped: int = 0  # surplus items of an inexact key condition
    hit_call_limit: bool = False

    @property
    def calls(self) -> tuple[RunCall, ...]:
        """All calls."""
        return tuple(call for request in self.requests for call in request.calls)


async def run_plan(db: AsyncConnection, planned: RequestPlan) -> RunResult:
    """Run a plan and return each request with its calls, and the items in order."""
    if planned.operation in ("GetItem", "TransactGetItems"):
        return await _run_get(db, planned)
    if planned.operation == "BatchGetItem":
        return await _run_batches(db, planned)
    requests: list[RunRequest] = []
    answers: list[list[Item]] = []
    dropped, left_calls = 0, RUN_CALLS_MAX
    for outgoing in planned.requests:
        limit = planned.limit
        if limit is not None and planned.order == "in turn":
            limit -= sum(map(len, answers))
        if limit == 0 or not left_calls:
            break
        ran, items, away = await _run_pages(db, planned, outgoing, limit, min(CALLS_MAX, left_calls))
        left_calls -= len(ran.calls)
        dropped += away
        requests.append(ran)
        answers.append(items)
    items = [item for answer in answers for item in answer]
    if planned.order == "merged":
        items.sort(
            key=lambda item: _sort_position(planned.sort_attributes, item), reverse=planned.newest_first
        )
    unfinished = len(requests) < len(planned.requests)
    has_more = unfinished or any(request.more for request in requests)
    cut = not left_calls or any(request.more and len(request.calls) >= CALLS_MAX for request in requests)
    if planned.limit is not None and len(items) > planned.limit:
        items, has_more = items[: planned.limit], True
    if planned.fetches_items and items:
        fetched, items = await _fetch_items(db, planned, items)
        requests += fetched
        if planned.accepts is not None:  # the whole item has fields that its index entry lacks
            items, had = [item for item in items if planned.accepts(item)], len(items)
            dropped += had - len(items)
    return RunResult(tuple(requests), tuple(items), has_more, dropped, cut and has_more)


async def _run_get(db: AsyncConnection, planned: RequestPlan) -> RunResult:
    [outgoing] = planned.requests
    answer, call = await _call(db, planned.operation, outgoing.body)
    responses = [answer] if planned.operation == "GetItem" else answer.get("Responses", ())
    items = tuple(response["Item"] for response in responses if response.get("Item"))
    body = outgoing.body if planned.operation == "GetItem" else outgoing.body["TransactItems"][0]["Get"]
    ran = RunRequest(
        planned.operation,
        body["TableName"],
        None,
        outgoing.condition,
        "",
        dict(outgoing.body),
        (replace(call, returned=len(items), read=len(items)),),
        more=False,
    )
    return RunResult((ran,), items, more=False)


async def _run_pages(
    db: AsyncConnection, planned: RequestPlan, outgoing: OutgoingRequest, limit: int | None, calls_max: int
) -> tuple[RunRequest, list[Item], int]:
    """Run one request page by page; return it with its calls, its items, and the number of dropped items."""
    calls: list[RunCall] = []
    items: list[Item] = []
    dropped = 0
    start: Mapping[str, Any] | None = None
    first: dict[str, Any] = dict(outgoing.body)
    is_filtered = bool(outgoing.filter) or planned.accepts is not None
    while len(calls) < calls_max:
        body = dict(outgoing.body)
        if limit is not None:
            missing = limit - len(items)
            body["Limit"] = max(missing, FILTERED_READ_MIN) if is_filtered else missing
        if start is not None:
            body["ExclusiveStartKey"] = start
        first = body if not calls else first
        answer, call = await _call(db, planned.operation, body)
        calls.append(call)
        page = answer.get("Items", ())
        accepted = page if planned.accepts is None else [item for item in page if planned.accepts(item)]
        dropped += len(page) - len(accepted)
        items += accepted
        start = answer.get("LastEvaluatedKey")
        if start is None or (limit is not None and len(items) >= limit):
            break
    over = limit is not None and len(items) > limit
    ran = RunRequest(
        planned.operation,
        outgoing.body["TableName"],
        outgoing.body.get("IndexName"),
        outgoing.condition,
        outgoing.filter,
        first,
        tuple(calls),
        more=start is not None or over,
    )
    return ran, items[:limit], dropped


async def _run_batches(db: AsyncConnection, planned: RequestPlan) -> RunResult:
    requests: list[RunRequest] = []
    items: list[Item] = []
    for outgoing in planned.requests:
        ran, batch = await _run_batch(db, outgoing)
        requests.append(ran)
        items += batch
    return RunResult(tuple(requests), tuple(items), more=any(request.more for request in requests))


async def _fetch_items(
    db: AsyncConnection, planned: RequestPlan, entries: Sequence[Item]
) -> tuple[list[RunRequest], list[Item]]:
    """Fetch the items of index entries; return the requests, and the items in the entries' order."""
    first = planned.requests[0].body
    table, index = first["TableName"], first.get("IndexName")
    described = await db.call("DescribeTable", {"TableName": table})
    names = [part["AttributeName"] for part in described["Table"]["KeySchema"]]
    keys = [{name: entry[name] for name in names} for entry in entries]
    requests: list[RunRequest] = []
    by_key: dict[tuple[Any, ...], Item] = {}
    for position in range(0, len(keys), BATCH_GET_KEYS_MAX):
        chunk = keys[position : position + BATCH_GET_KEYS_MAX]
        keys_and_attributes: dict[str, Any] = {"Keys": chunk}
        if first.get("ConsistentRead"):
            keys_and_attributes["ConsistentRead"] = True
        condition = f"{len(chunk)} keys, from the entries of {index}"
        ran, items = await _run_batch(
            db, OutgoingRequest({"RequestItems": {table: keys_and_attributes}}, condition)
        )
        requests.append(ran)
        by_key |= {_identity(names, item): item for item in items}
    full_items = [by_key[identity] for key in keys if (identity := _identity(names, key)) in by_key]
    return requests, full_items


async def _run_batch(db: AsyncConnection, outgoing: OutgoingRequest) -> tuple[RunRequest, list[Item]]:
    """Run one BatchGetItem, repeated for unprocessed keys; return it and the items."""
    [(table, _)] = outgoing.body["RequestItems"].items()
    calls: list[RunCall] = []
    items: list[Item] = []
    pending: dict[str, Any] = outgoing.body["RequestItems"]
    while pending and len(calls) < CALLS_MAX:
        answer, call = await _call(db, "BatchGetItem", {"RequestItems": pending})
        batch_items = answer.get("Responses", {}).get(table, [])
        calls.append(replace(call, returned=len(batch_items), read=len(batch_items)))
        items += batch_items
        pending = answer.get("UnprocessedKeys", {})
    ran = RunRequest(
        "BatchGetItem",
        table,
        None,
        outgoing.condition,
        "",
        dict(outgoing.body),
        tuple(calls),
        more=bool(pending),
    )
    return ran, items


async def _call(
    db: AsyncConnection, operation: str, body: Mapping[str, Any]
) -> tuple[dict[str, Any], RunCall]:
    began = monotonic()
    answer = await db.call(operation, {**body, "ReturnConsumedCapacity": "INDEXES"})
    took_ms = (monotonic() - began) * 1000
    returned = len(answer.get("Items", ()))
    return answer, RunCall(
        answer.get("Count", returned),
        answer.get("ScannedCount", returned),
        consumed_units(operation, answer),
        round(took_ms, 3),
    )


def consumed_units(operation: str, answer: dict[str, Any]) -> tuple[ConsumedUnits, ...]:
    """Return the units that a response reports, the table first."""
    spent = ConsumedCapacity()
    spent.add(operation, answer)
    targets: list[ConsumedUnits] = []
    reads = spent.reads > 0 or spent.writes == 0
    for table, units in spent.tables.items():
        if units.reads or units.writes:
            targets.append(ConsumedUnits(table, None, units.reads, units.writes))
        targets += [
            ConsumedUnits(table, index, amount if reads else 0.0, 0.0 if reads else amount)
            for index, amount in units.indexes.items()
        ]
    return tuple(targets)


def sum_units(parts: Sequence[ConsumedUnits]) -> tuple[ConsumedUnits, ...]:
    """Sum the units of several calls by table and index, tables first."""
    sums: dict[tuple[str, str], ConsumedUnits] = {}
    for part in parts:
        place = (part.table, part.index or "")
        before = sums.get(place, ConsumedUnits(part.table, part.index, 0.0, 0.0))
        reads, writes = before.reads + part.reads, before.writes + part.writes
        sums[place] = ConsumedUnits(part.table, part.index, reads, writes)
    return tuple(sums[place] for place in sorted(sums))


def _sort_position(names: Sequence[str], item: Item) -> tuple[Any, ...]:
    return tuple(sort_value(item[name]) for name in names if name in item)


def _identity(names: Sequence[str], item: Item) -> tuple[Any, ...]:
    return tuple(next(iter(item[name].values())) for name in names)
