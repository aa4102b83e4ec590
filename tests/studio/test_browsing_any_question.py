"""Any question: whatever way the planner takes, it finds just what a Scan with all conditions finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.errors import TavolaError
from tavola.expressions.renderer import Renderer
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.faults import ValidationFault
from tavola.studio.api.data import QueryPageRequest, describe_plan, load_table, read_query_page
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import QueryCondition, combine_conditions
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.studio import Studio, TablesLocation

_TYPES = {"h": "S", "n": "N", "b": "B", "g": "S", "m": "N", "x": "S"}


def _schema(hash_: str, range_: str = "") -> list[dict[str, str]]:
    halves = ((hash_, "HASH"), (range_, "RANGE"))
    return [{"AttributeName": name, "KeyType": kind} for names, kind in halves for name in names]


def _index(name: str, hash_: str, range_: str, projection: str, *included: str) -> dict[str, Any]:
    response: dict[str, Any] = {"ProjectionType": projection}
    if included:
        response["NonKeyAttributes"] = list(included)
    return {"IndexName": name, "KeySchema": _schema(hash_, range_), "Projection": response}


# Every kind of key and of index: numbers, bytes, several attributes, local ones, each projection; all of them sparse.
TABLES: dict[str, dict[str, Any]] = {
    "sorted": {
        "KeySchema": _schema("h", "n"),
        "GlobalSecondaryIndexes": [
            _index("all", "g", "m", "ALL"),
            _index("bytes", "b", "", "KEYS_ONLY"),
            _index("part", "g", "b", "INCLUDE", "x"),
            _index("several", "gm", "xb", "ALL"),
            _index("turned", "n", "h", "KEYS_ONLY"),
        ],
        "LocalSecondaryIndexes": [_index("local", "h", "m", "KEYS_ONLY"), _index("local-bytes", "h", "b", "ALL")],
    },
    "unsorted": {
        "KeySchema": _schema("b"),
        "GlobalSecondaryIndexes": [_index("numbers", "m", "x", "INCLUDE", "y"), _index("text", "g", "", "ALL")],
    },
}  # fmt: skip

TEXTS = ("a", "ab", "b", "é", "\U0001f600")
NUMBERS = ("-1", "0", "1", "2", "10")
SPELT = ("1.0", "1e1", "-0", "02")  # the same numbers as others write them
BYTES = ("AA==", "AAE=", "AQ==", "/w==")
OTHERS: tuple[dict[str, Any], ...] = (
    {"BOOL": True}, {"NULL": True}, {"L": [{"N": "1"}, {"S": "a"}]}, {"M": {"k": {"S": "ab"}, "n": {"N": "2"}}},
    {"SS": ["a", "b"]}, {"NS": ["1", "10"]}, {"BS": ["AAE="]}, {"S": ""}, {"S": "ab"}, {"N": "1"}, {"B": "AAE="},
)  # fmt: skip

ITEMS: tuple[dict[str, Any], ...] = tuple(
    {
        "h": {"S": TEXTS[at % 3]},
        "n": {"N": str(at)},
        "b": {"B": BYTES[at % 4]},
        "y": OTHERS[at % len(OTHERS)],
    }
    | ({"g": {"S": TEXTS[at % 2]}} if at % 5 else {})
    | ({"m": {"N": NUMBERS[at % 5]}} if at % 3 else {})
    | ({"x": {"S": TEXTS[at % 5]}} if at % 7 else {})
    for at in range(60)
)


def _item(table: str, at: int) -> dict[str, Any]:
    """Return an item; where the bytes are no key, every fourth has none."""
    item = dict(ITEMS[at])
    if table == "sorted" and at % 4 == 3:
        del item["b"]
    if table == "unsorted":
        item["b"] = {
            "B": BYTES[at % 4][:-1] + "=" if at < 4 else f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZabcd'[at // 2]}g=="
        }
    return item


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    """Both tables, with their items."""
    with asyncio.Runner() as runner:
        engine = Engine.open()
        for name, keys in TABLES.items():
            used = sorted({part["AttributeName"] for each in _schemas(keys) for part in each})
            engine.call(
                "CreateTable",
                {
                    "TableName": name,
                    **keys,
                    "AttributeDefinitions": [
                        {"AttributeName": each, "AttributeType": _TYPES[each]} for each in used
                    ],
                    "BillingMode": "PAY_PER_REQUEST",
                },
                DEFAULT_SCOPE,
            )
            for at in range(len(ITEMS)):
                engine.call("PutItem", {"TableName": name, "Item": _item(name, at)}, DEFAULT_SCOPE)

        async def opened() -> Studio:
            return Studio(
                db=connect_async(engine),
                where=TablesLocation("memory", "memory:", "us-east-1"),
                engine=engine,
            )

        studio = runner.run(opened())
        try:
            yield Asked(studio, runner)
        finally:
            runner.run(studio.db.close())
            engine.close()


def _schemas(keys: dict[str, Any]) -> list[list[dict[str, str]]]:
    indexes = [*keys.get("GlobalSecondaryIndexes", ()), *keys.get("LocalSecondaryIndexes", ())]
    return [keys["KeySchema"], *(each["KeySchema"] for each in indexes)]


class Asked:
    """The studio on these tables, called directly."""

    def __init__(self, studio: Studio, runner: asyncio.Runner) -> None:
        self.studio = studio
        self.run = runner.run

    def scanned(self, question: ItemQuery) -> list[dict[str, Any]]:
        """Return what a Scan with all conditions in its filter finds: the table's, or of the index that is named."""
        request: dict[str, Any] = {"TableName": question.table}
        if question.index is not None:
            request["IndexName"] = question.index
        node = combine_conditions(question.conditions)
        if node is not None:
            renderer = Renderer()
            request["FilterExpression"] = renderer.condition(node)
            request["ExpressionAttributeNames"] = renderer.names
            request["ExpressionAttributeValues"] = renderer.values
            request = {name: each for name, each in request.items() if each}
        result: list[dict[str, Any]] = self.run(self.studio.db.call("Scan", request))["Items"]
        return result

    def pages(self, question: ItemQuery, limit: int) -> list[Any]:
        """Return all pages of a question."""
        pages: list[Any] = []
        cursor = None
        while True:
            pages.append(self.run(read_query_page(self.studio, QueryPageRequest(question, cursor, limit))))
            cursor = pages[-1].cursor
            if cursor is None:
                return pages


def values(attribute: str) -> st.SearchStrategy[dict[str, Any]]:
    """Values to compare with: mostly of the attribute's type, numbers in every spelling."""
    by_tag = {
        "S": st.sampled_from(TEXTS).map(lambda text: {"S": text}),
        "N": st.sampled_from(NUMBERS + SPELT).map(lambda text: {"N": text}),
        "B": st.sampled_from(BYTES).map(lambda text: {"B": text}),
    }
    own = by_tag.get(_TYPES.get(attribute, ""))
    rest = st.one_of(*by_tag.values(), st.sampled_from(OTHERS))
    return rest if own is None else st.one_of(own, own, own, own, rest)


OPERATORS = (
    "=", "=", "=", "=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "not_contains", "in",
    "exists", "not_exists", "type", "size =", "size <>", "size <", "size >=",
)  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn) -> QueryCondition:
    attribute = draw(st.sampled_from(("h", "n", "b", "g", "m", "x", "y", "h", "g", "y.k", "y[0]", "h.k")))
    operator: Any = draw(st.sampled_from(OPERATORS))
    if operator in ("exists", "not_exists"):
        return QueryCondition(attribute, operator)
    if operator == "type":
        return QueryCondition(attribute, operator, ({"S": draw(st.sampled_from(("S", "N", "B", "M")))},))
    if operator.startswith("size"):
        return QueryCondition(attribute, operator, ({"N": draw(st.sampled_from(("0", "1", "2.0")))},))
    count = 2 if operator in ("between", "in") else 1
    return QueryCondition(attribute, operator, tuple(draw(values(attribute)) for _ in range(count)))


@st.composite
def questions(draw: st.DrawFn) -> ItemQuery:
    table = draw(st.sampled_from(sorted(TABLES)))
    keys = TABLES[table]
    names = [
        each["IndexName"] for kind in ("Global", "Local") for each in keys.get(f"{kind}SecondaryIndexes", ())
    ]
    index = draw(st.one_of(st.none(), st.none(), st.sampled_from(names)))
    return ItemQuery(
        table,
        index,
        tuple(draw(st.lists(conditions(), max_size=5))),
        choose=draw(st.integers(0, 3)) > 0,
        consistent=draw(st.booleans()),
        descending=draw(st.booleans()),
    )


def where(attribute: str, operator: Any, *given: dict[str, Any]) -> QueryCondition:
    return QueryCondition(attribute, operator, given)


G, H = where("g", "=", {"S": "ab"}), where("h", "=", {"S": "a"})


@example(ItemQuery("sorted", None, (H, where("n", ">=", {"N": "10"}), where("n", "<=", {"N": "2"}))), 1000)
@example(ItemQuery("sorted", None, (H, where("n", "in", {"N": "1e1"}, {"N": "0.0"}))), 1000)
@example(ItemQuery("sorted", None, (G, where("m", "not_exists"))), 1000)
@example(ItemQuery("sorted", None, (G, where("m", "<>", {"N": "1"}))), 1000)
@example(ItemQuery("sorted", None, (H, where("b", ">", {"B": "AAE="}), where("b", "<", {"B": "/w=="}))), 3)
@example(ItemQuery("sorted", None, (where("h", "=", {"S": ""}),)), 1000)
@example(ItemQuery("sorted", "local-bytes", (H, where("b", ">=", {"B": ""}))), 1000)
@given(questions(), st.sampled_from((1, 3, 7, 1000)))
def test_any_question_finds_what_a_scan_finds(asked: Asked, question: ItemQuery, limit: int) -> None:
    """The items are those of a Scan with all conditions; what an index may lack is lacked only where a note says so."""
    try:
        expected = asked.scanned(question)
    except ValidationFault:
        expected = None
    try:
        plan = asked.run(describe_plan(asked.studio, question))
        pages = asked.pages(question, limit)
    except TavolaError as error:
        unheld = isinstance(error, RequestRefused) and error.problem.code == "filter-unprojected"
        assert unheld or expected is None  # what a Scan answers is answered
        return
    if expected is None:
        return  # a key condition may say what a filter may not

    ways, _, _ = asked.run(load_table(asked.studio, question.table))
    own, taken = ways.table_target.attributes, ways.target(plan.index)
    result = [tuple(str(row.item[name]) for name in own) for each in pages for row in each.rows]
    wanted = {tuple(str(item[name]) for name in own): item for item in expected}
    missed = wanted.keys() - set(result)
    assert len(result) == len(set(result))
    assert set(result) <= wanted.keys()
    if plan.operation != "GetItem":
        whole = [asked.run(read_query_page(asked.studio, QueryPageRequest(question)))]
        assert whole[0].cursor is None
        assert plan.estimate.units_low <= whole[0].units <= plan.estimate.units_high
    if missed:
        assert question.index is None
        assert taken.index is not None
        assert not any(ways.contains(taken, wanted[each]) for each in missed)
        assert any("are not in" in note for note in plan.notes)
        assert not any(each.operator == "not_exists" for each in question.conditions)
