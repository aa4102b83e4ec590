"""Query a table by conditions: plan and estimate first, then read page by page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tavola.expressions.partiql import Statement, StatementError, equalities, parse_statement
from tavola.limits import PAGE_BYTES_MAX
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.code import ItemCode, QueryCode, render_item_code, render_query_code
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.estimates import ReadEstimate, estimate_read
from tavola.studio.queries.key_suggestions import KeySuggestion, suggest_keys
from tavola.studio.queries.planner import (
    ConditionRole,
    ItemQuery,
    QueryPlan,
    ReadOperation,
    plan_query,
)
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
from tavola.studio.types import Document, Item

_EXAMPLES = 5  # items in a test
_LOOKED_AT = 100  # read to find them with a filter
_KEYS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """What becomes of a condition: part of the key, a filter, or tested by the studio."""

    text: str
    role: ConditionRole


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """Another table or index that would not need a Scan."""

    index: str | None
    operation: ReadOperation


@dataclass(frozen=True, slots=True)
class PlannedQuery:
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
    asks_first: bool  # it is a Scan of more than 1 MB
    others: tuple[OtherTarget, ...]
    offers: tuple[KeySuggestion, ...] = ()  # for a Scan: keys made of the queried fields


@dataclass(frozen=True, slots=True)
class QueryPageRequest:
    """Which page of which question: the first, or where the cursor of the one before says."""

    question: ItemQuery
    cursor: Item | None = None
    limit: int = PAGE_ROWS


@dataclass(frozen=True, slots=True)
class IndexMembersRequest:
    """Which of these items, by their keys, are in an index."""

    table: str
    index: str
    keys: tuple[Item, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class IndexMembers:
    """Items in an index, and what it holds of them."""

    members: tuple[int, ...]  # positions in the requested keys
    missing: tuple[int, ...]  # keys of no item
    projected: tuple[str, ...] | None  # None: all attributes
    units: float


@dataclass(frozen=True, slots=True)
class ItemCodeRequest:
    """Which item, by its key."""

    table: str
    key: Item
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """A PartiQL statement that reads."""

    table: str  # whose items it gives, to recognise them by
    statement: str
    next_token: str | None = None
    limit: int = PAGE_ROWS
    consistent: bool = False
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class StatementPage:
    """What a statement gave, and where to go on."""

    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]
    units: float  # as DynamoDB counted them; how many items it read for that, it does not tell
    next_token: str | None


async def describe_plan(studio: Studio, params: ItemQuery) -> PlannedQuery:
    """Return how a question will be answered and what that will take; nothing is read."""
    return _describe_plan(studio, params, *await load_table(studio, params.table))


def _describe_plan(
    studio: Studio, params: ItemQuery, layout: TableLayout, recogniser: Recogniser, described: Document
) -> PlannedQuery:
    design = recogniser.design
    plan = plan_query(layout, params, together=design is not None and not design.foreign)
    table_class = described.get("TableClassSummary", {}).get("TableClass", "STANDARD")
    route = plan.route
    return PlannedQuery(
        route.operation,
        route.target.index,
        plan.sentence,
        plan.why,
        tuple(_planned_condition(plan, at, condition) for at, condition in enumerate(params.conditions)),
        plan.notes,
        plan.consistent,
        plan.request,
        estimate_read(
            plan,
            recogniser,
            studio.local_prices(),
            table_class,
            late=studio.where.kind == "aws",
            past=params.as_of is not None,
        ),
        route.operation == "Scan" and route.target.bytes > PAGE_BYTES_MAX,
        tuple(OtherTarget(each.target.index, each.operation) for each in plan.others),
        suggest_keys(design, layout, params) if route.operation == "Scan" else (),
    )


async def read_query_page(studio: Studio, params: QueryPageRequest) -> RowPage:
    """Return a page of rows, with what it took."""
    layout, recogniser, _ = await load_table(studio, params.question.table)
    plan = plan_query(layout, params.question)
    return await read_page(
        studio, params.question, layout, plan, recogniser, cursor=params.cursor, limit=params.limit
    )


async def count_items(studio: Studio, params: CollectionRequest) -> CollectionTotals:
    """Return the exact numbers of all items with one partition key."""
    layout, recogniser, _ = await load_table(studio, params.table)
    return await count_collection(studio, params, layout, recogniser)


async def find_index_members(studio: Studio, params: IndexMembersRequest) -> IndexMembers:
    """Return which items are in an index, by the items as they stand."""
    if len(params.keys) > _KEYS_MAX:
        raise RequestRefused(
            "keys-many",
            "Too many keys at once",
            f"{len(params.keys):,} keys are asked for, each a read of its own.",
            f"Ask for {_KEYS_MAX:,} at most.",
        )
    layout, _, _ = await load_table(studio, params.table)
    target = layout.target(params.index)
    db = await studio.connection_at(params.as_of)
    inside: list[int] = []
    missing: list[int] = []
    units = 0.0
    for at, key in enumerate(params.keys):
        answer = await db.call(
            "GetItem", {"TableName": params.table, "Key": key, "ReturnConsumedCapacity": "TOTAL"}
        )
        units += answer["ConsumedCapacity"]["CapacityUnits"]
        if "Item" not in answer:
            missing.append(at)
        elif layout.contains(target, answer["Item"]):
            inside.append(at)
    return IndexMembers(tuple(inside), tuple(missing), target.projected, units)


async def run_statement(studio: Studio, params: StatementRequest) -> StatementPage:
    """Return what a PartiQL statement that only reads gives."""
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
    # A statement may choose attributes, so that what is absent tells nothing of the item's indexes.
    rows = tuple(replace(row, indexes=None) for row in built.rows)
    return StatementPage(rows, built.entities, built.shapes, units, answer.get("NextToken"))


async def plan_statement(studio: Studio, params: StatementRequest) -> PlannedQuery:
    """Return whether a statement is a Query or a Scan, and what that will take; nothing is read."""
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
            return replace(planned, asks_first=False)
        why = f"WHERE gives no partition key with = or IN (it would be {keys}), so that it filters what was read."
        return replace(planned, why=why)
    times = max(len(equal_values[name]) for name in target.hash)
    if times > 1:
        note = f"It is a Query for each of {times} values; the estimate is of one."
        return replace(planned, notes=(*planned.notes, note))
    return planned


async def export_query_code(studio: Studio, params: ItemQuery) -> QueryCode:
    """Return a question as code; a few items that it finds are read for the test."""
    layout, recogniser, described = await load_table(studio, params.table)
    plan = plan_query(layout, params)
    first = await read_page(
        studio, params, layout, plan, recogniser, cursor=None, limit=_EXAMPLES, filtered_min=_LOOKED_AT
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
            "There is no such item",
            "Nothing stands under this key.",
            "Read again.",
            status=404,
        )
    return render_item_code(params.table, params.key, answer["Item"], studio.where)


async def load_table(studio: Studio, table: str) -> tuple[TableLayout, Recogniser, Document]:
    """Return the layout into a table, what tells its items apart, and what DescribeTable says of it."""
    described = (await studio.db.call("DescribeTable", {"TableName": table}))["Table"]
    layout = parse_layout(described)
    return layout, cached_recogniser(studio, layout), described


def _statement_error(params: StatementRequest, error: StatementError) -> RequestRefused:
    return RequestRefused(
        "statement-malformed",
        "The statement cannot be read",
        f"{error}",
        f'Write it as SELECT * FROM "{params.table}" WHERE …; a name with a dash or a dot stands in double quotes.',
    )


def _check_statement(params: StatementRequest) -> Statement:
    """Refuse what may change something, and what gives items of another table: they would be taken for this one's."""
    try:
        statement = parse_statement(params.statement)
    except StatementError as error:
        raise _statement_error(params, error) from error
    if statement.kind != "select":
        raise RequestRefused(
            "statement-changes",
            "Only SELECT is allowed here",
            f"{statement.kind.upper()} is no SELECT, so it may change something.",
            "Edit items in the grid, or use the command line for INSERT, UPDATE and DELETE.",
        )
    if statement.table != params.table:
        raise RequestRefused(
            "statement-elsewhere",
            "The statement asks another table",
            f"It asks {statement.table}, and this page shows {params.table}: a row opened or selected here is this table's.",
            f"Go to {statement.table} and ask there.",
        )
    return statement


def _planned_condition(plan: QueryPlan, at: int, condition: QueryCondition) -> PlannedCondition:
    return PlannedCondition(str(condition), plan.route.roles[at])


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
