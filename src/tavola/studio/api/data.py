"""Query a table by conditions: plan and estimate first, then read page by page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tavola.expressions.partiql import Statement, StatementError, equalities, parse_statement
from tavola.limits import PAGE_BYTES_MAX
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.queries.code import ItemCode, QuestionCode, code_of_item, code_of_question
from tavola.studio.queries.conditions import BrowseCondition
from tavola.studio.queries.estimates import ReadEstimate, estimate
from tavola.studio.queries.key_shapes import KeyShape
from tavola.studio.queries.key_suggestions import KeyOffer, key_offers
from tavola.studio.queries.planner import (
    BrowseQuestion,
    ConditionRole,
    Planned,
    ReadOperation,
    plan,
)
from tavola.studio.queries.read_targets import TableWays, ways_of
from tavola.studio.queries.rows import (
    PAGE_ROWS,
    AskCollection,
    CollectionTotals,
    Row,
    RowPage,
    read_page,
    rows_of,
    total,
)
from tavola.studio.recognition import Recognised, Recogniser, recogniser_of
from tavola.studio.studio import Studio
from tavola.studio.types import Document, Item

_EXAMPLES = 5  # items in a test
_LOOKED_AT = 100  # to find them with a filter: nobody asked to read more
_KEYS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """What becomes of a condition: part of the key, a filter, or tested by the studio."""

    text: str
    role: ConditionRole


@dataclass(frozen=True, slots=True)
class OtherWay:
    """Another way that would be no Scan."""

    index: str | None
    operation: ReadOperation


@dataclass(frozen=True, slots=True)
class BrowsePlan:
    """How a question will be answered, said before it is asked."""

    operation: ReadOperation
    index: str | None
    sentence: str
    why: str
    conditions: tuple[PlannedCondition, ...]
    notes: tuple[str, ...]
    consistent: bool
    request: Document  # as DynamoDB is asked, without the limits of a page
    estimate: ReadEstimate
    asks_first: bool  # it is a Scan of more than 1 MB
    others: tuple[OtherWay, ...]
    offers: tuple[KeyOffer, ...] = ()  # of a Scan: the keys that the fields asked for make


@dataclass(frozen=True, slots=True)
class BrowsePage:
    """Which page of which question: the first, or where the cursor of the one before says."""

    question: BrowseQuestion
    cursor: Item | None = None
    limit: int = PAGE_ROWS


@dataclass(frozen=True, slots=True)
class AskMembers:
    """Which of these items, by their keys, are in an index."""

    table: str
    index: str
    keys: tuple[Item, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class IndexMembers:
    """Items in an index, and what it holds of them."""

    members: tuple[int, ...]  # by their place among the keys asked
    missing: tuple[int, ...]  # keys of no item
    projected: tuple[str, ...] | None  # None: all attributes
    units: float


@dataclass(frozen=True, slots=True)
class AskItemCode:
    """Which item, by its key."""

    table: str
    key: Item
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class AskStatement:
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

    rows: tuple[Row, ...]
    entities: tuple[Recognised, ...]
    shapes: tuple[KeyShape, ...]
    units: float  # as DynamoDB counted them; how many items it read for that, it does not tell
    next_token: str | None


async def planned(studio: Studio, asked: BrowseQuestion) -> BrowsePlan:
    """Return how a question will be answered and what that will take; nothing is read."""
    return _planned(studio, asked, *await subject(studio, asked.table))


def _planned(
    studio: Studio, asked: BrowseQuestion, ways: TableWays, recogniser: Recogniser, described: Document
) -> BrowsePlan:
    design = recogniser.design
    found = plan(ways, asked, together=design is not None and not design.foreign)
    table_class = described.get("TableClassSummary", {}).get("TableClass", "STANDARD")
    route = found.route
    return BrowsePlan(
        route.operation,
        route.way.index,
        found.sentence,
        found.why,
        tuple(_told(found, at, condition) for at, condition in enumerate(asked.conditions)),
        found.notes,
        found.consistent,
        found.request,
        estimate(
            found,
            recogniser,
            studio.local_book(),
            table_class,
            late=studio.where.kind == "aws",
            past=asked.as_of is not None,
        ),
        route.operation == "Scan" and route.way.bytes > PAGE_BYTES_MAX,
        tuple(OtherWay(each.way.index, each.operation) for each in found.others),
        key_offers(design, ways, asked) if route.operation == "Scan" else (),
    )


async def page(studio: Studio, asked: BrowsePage) -> RowPage:
    """Return a page of rows, with what it took."""
    ways, recogniser, _ = await subject(studio, asked.question.table)
    found = plan(ways, asked.question)
    return await read_page(
        studio, asked.question, ways, found, recogniser, cursor=asked.cursor, limit=asked.limit
    )


async def collection(studio: Studio, asked: AskCollection) -> CollectionTotals:
    """Return the exact numbers of all items with one partition key."""
    ways, recogniser, _ = await subject(studio, asked.table)
    return await total(studio, asked, ways, recogniser)


async def members(studio: Studio, asked: AskMembers) -> IndexMembers:
    """Return which items are in an index, by the items as they stand."""
    if len(asked.keys) > _KEYS_MAX:
        raise Refused(
            "keys-many",
            "Too many keys at once",
            f"{len(asked.keys):,} keys are asked for, each a read of its own.",
            f"Ask for {_KEYS_MAX:,} at most.",
        )
    ways, _, _ = await subject(studio, asked.table)
    way = ways.way(asked.index)
    db = await studio.at(asked.as_of)
    inside: list[int] = []
    missing: list[int] = []
    units = 0.0
    for at, key in enumerate(asked.keys):
        answer = await db.call(
            "GetItem", {"TableName": asked.table, "Key": key, "ReturnConsumedCapacity": "TOTAL"}
        )
        units += answer["ConsumedCapacity"]["CapacityUnits"]
        if "Item" not in answer:
            missing.append(at)
        elif ways.holds(way, answer["Item"]):
            inside.append(at)
    return IndexMembers(tuple(inside), tuple(missing), ways.projected(way), units)


async def statement(studio: Studio, asked: AskStatement) -> StatementPage:
    """Return what a PartiQL statement that only reads gives."""
    _check_statement(asked)
    ways, recogniser, _ = await subject(studio, asked.table)
    request: dict[str, Any] = {
        "Statement": asked.statement,
        "Limit": asked.limit,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if asked.next_token is not None:
        request["NextToken"] = asked.next_token
    if asked.consistent:
        request["ConsistentRead"] = True
    db = await studio.at(asked.as_of)
    answer = await db.call("ExecuteStatement", request)
    told = rows_of(answer["Items"], ways, ways.own, recogniser)
    units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
    # A statement may choose attributes, so that what is absent tells nothing of the item's indexes.
    rows = tuple(replace(row, indexes=None) for row in told.rows)
    return StatementPage(rows, told.entities, told.shapes, units, answer.get("NextToken"))


async def statement_plan(studio: Studio, asked: AskStatement) -> BrowsePlan:
    """Return whether a statement is a Query or a Scan, and what that will take; nothing is read."""
    found = _check_statement(asked)
    ways, recogniser, described = await subject(studio, asked.table)
    way = ways.way(found.index)
    try:
        given = equalities(found)
    except StatementError as error:
        raise _unreadable(asked, error) from error
    pinned = [name for name in way.hash if name in given]
    queried = len(pinned) == len(way.hash)
    names = [*way.hash, *(name for name in way.range if len(given.get(name, ())) == 1)] if queried else []
    conditions = tuple(BrowseCondition(name, "=", (given[name][0],)) for name in names)
    question = BrowseQuestion(
        asked.table, found.index, conditions, choose=False, consistent=asked.consistent, as_of=asked.as_of
    )
    told = _planned(studio, question, ways, recogniser, described)
    if not queried:
        keys = " and ".join(way.hash)
        if found.where is None:
            return replace(told, asks_first=False)
        why = f"WHERE gives no partition key with = or IN (it would be {keys}), so that it filters what was read."
        return replace(told, why=why)
    times = max(len(given[name]) for name in way.hash)
    if times > 1:
        note = f"It is a Query for each of {times} values; the estimate is of one."
        return replace(told, notes=(*told.notes, note))
    return told


async def question_code(studio: Studio, asked: BrowseQuestion) -> QuestionCode:
    """Return a question as code; a few items that it finds are read for the test."""
    ways, recogniser, described = await subject(studio, asked.table)
    found = plan(ways, asked)
    first = await read_page(
        studio, asked, ways, found, recogniser, cursor=None, limit=_EXAMPLES, filtered_min=_LOOKED_AT
    )
    examples = [row.item for row in first.rows[:_EXAMPLES]]
    return code_of_question(asked, found, described, examples, studio.where)


async def item_code(studio: Studio, asked: AskItemCode) -> ItemCode:
    """Return an item as code and as text."""
    db = await studio.at(asked.as_of)
    answer = await db.call("GetItem", {"TableName": asked.table, "Key": asked.key})
    if "Item" not in answer:
        raise Refused(
            "item-missing",
            "There is no such item",
            "Nothing stands under this key.",
            "Read again.",
            status=404,
        )
    return code_of_item(asked.table, asked.key, answer["Item"], studio.where)


async def subject(studio: Studio, table: str) -> tuple[TableWays, Recogniser, Document]:
    """Return the ways into a table, what tells its items apart, and what DescribeTable says of it."""
    described = (await studio.db.call("DescribeTable", {"TableName": table}))["Table"]
    return ways_of(described), recogniser_of(studio, described), described


def _unreadable(asked: AskStatement, error: StatementError) -> Refused:
    return Refused(
        "statement-malformed",
        "The statement cannot be read",
        f"{error}",
        f'Write it as SELECT * FROM "{asked.table}" WHERE …; a name with a dash or a dot stands in double quotes.',
    )


def _check_statement(asked: AskStatement) -> Statement:
    """Refuse what may change something, and what gives items of another table: they would be taken for this one's."""
    try:
        found = parse_statement(asked.statement)
    except StatementError as error:
        raise _unreadable(asked, error) from error
    if found.kind != "select":
        raise Refused(
            "statement-changes",
            "Only SELECT is asked here",
            f"{found.kind.upper()} is no SELECT, so it may change something.",
            "Edit items in the grid, or use the command line for INSERT, UPDATE and DELETE.",
        )
    if found.table != asked.table:
        raise Refused(
            "statement-elsewhere",
            "The statement asks another table",
            f"It asks {found.table}, and this page shows {asked.table}: a row opened or selected here is this table's.",
            f"Go to {found.table} and ask there.",
        )
    return found


def _told(found: Planned, at: int, condition: BrowseCondition) -> PlannedCondition:
    return PlannedCondition(str(condition), found.route.roles[at])


ENDPOINTS = (
    Endpoint("POST", "/browse/plan", planned),
    Endpoint("POST", "/browse/page", page),
    Endpoint("POST", "/browse/collection", collection),
    Endpoint("POST", "/browse/members", members),
    Endpoint("POST", "/browse/statement", statement),
    Endpoint("POST", "/browse/statement-plan", statement_plan),
    Endpoint("POST", "/browse/code", question_code),
    Endpoint("POST", "/browse/item-code", item_code),
)
