"""Query a table by conditions: plan and estimate first, then read page by page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from tavola.expressions.partiql import Statement, StatementError, equalities, parse_statement
from tavola.limits import PAGE_BYTES_MAX
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.code import ItemCode, QueryCode, render_item_code, render_query_code
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.estimates import ReadEstimate, estimate_read
from tavola.studio.queries.key_suggestions import KeySuggestion, suggest_keys
from tavola.studio.queries.planner import ConditionRole, ItemQuery, ReadOperation, plan_query
from tavola.studio.queries.rows import (
    PAGE_ROWS,
    CollectionRequest,
    CollectionTotals,
    ItemRow,
    KeyTextShape,
    RowPage,
    build_rows,
    count_collection,
    read_page,
)
from tavola.studio.recognition import RecognisedItem, Recogniser, cached_recogniser
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout, parse_layout
from tavola.studio.types import ApiMessage, Document, Item

_EXAMPLES = 5  # items in a generated test
_EXAMPLES_READ = 100  # items read to find them, if there is a filter
_KEYS_MAX = 1_000


class PlannedCondition(ApiMessage):
    """A condition and its role: key condition, filter, or tested by the studio."""

    text: str
    role: ConditionRole


class OtherTarget(ApiMessage):
    """Another table or index that would not need a Scan."""

    index: str | None
    operation: ReadOperation


class PlannedQuery(ApiMessage):
    """How a query will be executed and what it will cost, before it runs."""

    operation: ReadOperation
    index: str | None
    sentence: str
    why: str
    conditions: tuple[PlannedCondition, ...]
    notes: tuple[str, ...]
    consistent: bool
    request: Document  # as sent to DynamoDB, without page limits
    estimate: ReadEstimate
    needs_confirmation: bool  # a Scan of more than 1 MB
    others: tuple[OtherTarget, ...]
    suggestions: tuple[KeySuggestion, ...] = ()  # for a Scan: keys built from the queried fields


class QueryPageRequest(ApiMessage):
    """The page of a query to read: the first, or the one at the previous page's cursor."""

    question: ItemQuery
    cursor: Item | None = None
    limit: int = PAGE_ROWS


class IndexMembersRequest(ApiMessage):
    """The keys of items to look up in an index."""

    table: str
    index: str
    keys: tuple[Item, ...]
    as_of: str | None = None


class IndexMembers(ApiMessage):
    """Which of the requested items are in an index, and the attributes it projects."""

    members: tuple[int, ...]  # positions in the requested keys
    missing: tuple[int, ...]  # keys that no item has
    projected: tuple[str, ...] | None  # None: all attributes
    units: float


class ItemCodeRequest(ApiMessage):
    """The key of an item."""

    table: str
    key: Item
    as_of: str | None = None


class StatementRequest(ApiMessage):
    """A PartiQL statement that reads."""

    table: str  # the table it reads, needed to recognise items
    statement: str
    next_token: str | None = None
    limit: int = PAGE_ROWS
    consistent: bool = False
    as_of: str | None = None


class StatementPage(ApiMessage):
    """A page of a statement's results."""

    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]
    units: float  # as DynamoDB reported them; it does not report how many items were read
    next_token: str | None


async def describe_plan(studio: Studio, params: ItemQuery) -> PlannedQuery:
    """Return how a query will be executed and what it will cost; nothing is read."""
    return _describe_plan(studio, params, *await load_table(studio, params.table))


def _describe_plan(
    studio: Studio, params: ItemQuery, layout: TableLayout, recogniser: Recogniser, described: Document
) -> PlannedQuery:
    design = recogniser.design
    plan = plan_query(layout, params, full_index_keys=design is not None and not design.foreign)
    table_class = described.get("TableClassSummary", {}).get("TableClass", "STANDARD")
    route = plan.route
    return PlannedQuery(
        route.operation,
        route.target.index,
        plan.sentence,
        plan.why,
        tuple(
            PlannedCondition(str(condition), role)
            for condition, role in zip(params.conditions, route.roles, strict=True)
        ),
        plan.notes,
        plan.consistent,
        plan.request,
        estimate_read(
            plan,
            recogniser,
            studio.local_prices(),
            table_class,
            delayed_counts=studio.where.kind == "aws",
            reads_past=params.as_of is not None,
        ),
        route.operation == "Scan" and route.target.bytes > PAGE_BYTES_MAX,
        tuple(OtherTarget(route.target.index, route.operation) for route in plan.others),
        suggest_keys(design, layout, params) if route.operation == "Scan" else (),
    )


async def read_query_page(studio: Studio, params: QueryPageRequest) -> RowPage:
    """Return a page of rows and the capacity it consumed."""
    layout, recogniser, _ = await load_table(studio, params.question.table)
    plan = plan_query(layout, params.question)
    return await read_page(
        studio, params.question, layout, plan, recogniser, cursor=params.cursor, limit=params.limit
    )


async def count_items(studio: Studio, params: CollectionRequest) -> CollectionTotals:
    """Return the exact count and size of all items with one partition key."""
    layout, recogniser, _ = await load_table(studio, params.table)
    return await count_collection(studio, params, layout, recogniser)


async def find_index_members(studio: Studio, params: IndexMembersRequest) -> IndexMembers:
    """Return which of the requested items are in an index."""
    if len(params.keys) > _KEYS_MAX:
        raise RequestRefused(
            "keys-many",
            "Too many keys",
            f"The request has {len(params.keys):,} keys, and each needs its own read.",
            f"Send at most {_KEYS_MAX:,} keys.",
        )
    layout, _, _ = await load_table(studio, params.table)
    target = layout.target(params.index)
    db = await studio.connection_at(params.as_of)
    inside: list[int] = []
    missing: list[int] = []
    units = 0.0
    for position, key in enumerate(params.keys):
        answer = await db.call(
            "GetItem", {"TableName": params.table, "Key": key, "ReturnConsumedCapacity": "TOTAL"}
        )
        units += answer["ConsumedCapacity"]["CapacityUnits"]
        if "Item" not in answer:
            missing.append(position)
        elif layout.contains(target, answer["Item"]):
            inside.append(position)
    return IndexMembers(tuple(inside), tuple(missing), target.projected, units)


async def run_statement(studio: Studio, params: StatementRequest) -> StatementPage:
    """Run a PartiQL SELECT and return a page of its results."""
    _check_statement(params)
    layout, recogniser, _ = await load_table(studio, params.table)
    request: dict[str, Any] = {
        "Statement": params.statement,
        "Limit": params.limit,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if params.next_token is not None:
        request["NextToken"] = params.next_token
    if params.consistent:
        request["ConsistentRead"] = True
    db = await studio.connection_at(params.as_of)
    answer = await db.call("ExecuteStatement", request)
    built = build_rows(answer["Items"], layout, layout.table_target, recogniser)
    units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
    # A SELECT may leave attributes out, so index membership cannot be derived from a row.
    rows = tuple(replace(row, indexes=None) for row in built.rows)
    return StatementPage(rows, built.entities, built.shapes, units, answer.get("NextToken"))


async def plan_statement(studio: Studio, params: StatementRequest) -> PlannedQuery:
    """Return whether a statement runs as a Query or a Scan and what it will cost; nothing is read."""
    statement = _check_statement(params)
    layout, recogniser, described = await load_table(studio, params.table)
    target = layout.target(statement.index)
    try:
        equal_values = equalities(statement)
    except StatementError as error:
        raise _statement_error(params, error) from error
    pinned = [name for name in target.hash if name in equal_values]
    queried = len(pinned) == len(target.hash)
    names = (
        [*target.hash, *(name for name in target.range if len(equal_values.get(name, ())) == 1)]
        if queried
        else []
    )
    conditions = tuple(QueryCondition(name, "=", (equal_values[name][0],)) for name in names)
    question = ItemQuery(
        params.table,
        statement.index,
        conditions,
        choose=False,
        consistent=params.consistent,
        as_of=params.as_of,
    )
    planned = _describe_plan(studio, question, layout, recogniser, described)
    if not queried:
        keys = " and ".join(target.hash)
        if statement.where is None:
            return structs.replace(planned, needs_confirmation=False)
        why = (
            f"WHERE does not give the partition key ({keys}) with = or IN, so it only filters what was read."
        )
        return structs.replace(planned, why=why)
    times = max(len(equal_values[name]) for name in target.hash)
    if times > 1:
        note = f"Runs one Query for each of {times} values; the estimate is for one of them."
        return structs.replace(planned, notes=(*planned.notes, note))
    return planned


async def export_query_code(studio: Studio, params: ItemQuery) -> QueryCode:
    """Return a query as code in several languages; reads a few matching items for the generated test."""
    layout, recogniser, described = await load_table(studio, params.table)
    plan = plan_query(layout, params)
    first = await read_page(
        studio, params, layout, plan, recogniser, cursor=None, limit=_EXAMPLES, filtered_min=_EXAMPLES_READ
    )
    examples = [row.item for row in first.rows[:_EXAMPLES]]
    return render_query_code(params, plan, described, examples, studio.where)


async def export_item_code(studio: Studio, params: ItemCodeRequest) -> ItemCode:
    """Return an item as code and as text."""
    db = await studio.connection_at(params.as_of)
    answer = await db.call("GetItem", {"TableName": params.table, "Key": params.key})
    if "Item" not in answer:
        raise RequestRefused(
            "item-missing",
            "Item not found",
            "The table has no item with this key.",
            "Reload the table.",
            status=404,
        )
    return render_item_code(params.table, params.key, answer["Item"], studio.where)


async def load_table(studio: Studio, table: str) -> tuple[TableLayout, Recogniser, Document]:
    """Return a table's layout, its recogniser, and its description from DescribeTable."""
    described = (await studio.db.call("DescribeTable", {"TableName": table}))["Table"]
    layout = parse_layout(described)
    return layout, cached_recogniser(studio, layout), described


def _statement_error(params: StatementRequest, error: StatementError) -> RequestRefused:
    return RequestRefused(
        "statement-malformed",
        "Invalid statement",
        f"{error}",
        f'Write SELECT * FROM "{params.table}" WHERE …; names that contain a dash or dot need double quotes.',
    )


def _check_statement(params: StatementRequest) -> Statement:
    """Refuse statements that are not a SELECT, and those that read another table than the page shows."""
    try:
        statement = parse_statement(params.statement)
    except StatementError as error:
        raise _statement_error(params, error) from error
    if statement.kind != "select":
        raise RequestRefused(
            "statement-changes",
            "Only SELECT is allowed here",
            f"{statement.kind.upper()} may change data.",
            "Edit items in the grid, or run INSERT, UPDATE and DELETE from the command line.",
        )
    if statement.table != params.table:
        raise RequestRefused(
            "statement-elsewhere",
            "The statement reads another table",
            f"It reads {statement.table}, but this page shows {params.table}.",
            f"Open {statement.table} and run it there.",
        )
    return statement


ENDPOINTS = (
    Endpoint("POST", "/browse/plan", describe_plan),
    Endpoint("POST", "/browse/page", read_query_page),
    Endpoint("POST", "/browse/collection", count_items),
    Endpoint("POST", "/browse/members", find_index_members),
    Endpoint("POST", "/browse/statement", run_statement),
    Endpoint("POST", "/browse/statement-plan", plan_statement),
    Endpoint("POST", "/browse/code", export_query_code),
    Endpoint("POST", "/browse/item-code", export_item_code),
)
