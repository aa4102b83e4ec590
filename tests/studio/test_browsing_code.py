"""Copied code runs, and finds what the question found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import tavola
from tavola import connect
from tavola.studio.api.data import (
    ItemCodeRequest,
    QueryPageRequest,
    export_item_code,
    export_query_code,
    read_query_page,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.studio import TablesLocation
from tests.studio.browsed import REGION, Browsed, browsed

TABLE = "studio-shop"


@pytest.fixture(scope="module")
def shop() -> Iterator[Browsed]:
    """A shop of twelve orders, and one item of every type."""
    with browsed() as result:
        result.call("PutItem", TableName=TABLE, Item=EVERYTHING)
        yield result


def where(attribute: str, operator: Any, *values: str) -> QueryCondition:
    return QueryCondition(attribute, operator, tuple({"S": value} for value in values))


EVERYTHING: dict[str, Any] = {
    "PK": {"S": "it's \"quoted\""}, "SK": {"S": "$HOME `x` \\ é\n"}, "n": {"N": "0.12345678901234567890123456789012345678"},
    "b": {"B": "AAECAw=="}, "bool": {"BOOL": True}, "null": {"NULL": True}, "l": {"L": [{"S": "a"}, {"N": "1"}]},
    "m": {"M": {"B": {"S": "a map with one member called B"}, "deep": {"M": {"x": {"B": "AQ=="}}}}},
    "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2.5"]}, "bs": {"BS": ["AAE=", "AQ=="]}, "</script>": {"S": "<b>"},
}  # fmt: skip
PK = where("PK", "=", "ORDER#o1")
OWN = where("SK", "=", "ORDER")
ODD = (where("PK", "=", 'it\'s "quoted"'), where("SK", "=", "$HOME `x` \\ é\n"))

QUESTIONS = {
    "get": ItemQuery(TABLE, None, (PK, OWN)),
    "get of nothing": ItemQuery(TABLE, None, (where("PK", "=", "none"), OWN)),
    "get of every type": ItemQuery(TABLE, None, ODD),
    "query": ItemQuery(TABLE, None, (PK,)),
    "query of an index": ItemQuery(TABLE, None, (where("GSI1PK", "=", "CUSTOMER#c1"),), descending=True),
    "query with a filter": ItemQuery(TABLE, None, (PK, where("customer", "contains", "c"))),
    "query consistent": ItemQuery(TABLE, None, (PK, where("SK", "begins_with", "LINE#")), consistent=True),
    "query of a local index": ItemQuery(TABLE, "weights", (PK,)),
    "query of several attributes": ItemQuery(
        TABLE, None, (where("country", "=", "IT"), where("city", "=", "Pisa"), where("street", "=", "Via 0"))
    ),
    "query tested here": ItemQuery(TABLE, None, (PK, where("SK", "contains", "0"))),
    "scan": ItemQuery(TABLE),
    "scan of an index": ItemQuery(TABLE, "states"),
    "scan with a filter": ItemQuery(TABLE, None, (where("</script>", "exists"),)),
}


def found_by(shop: Browsed, question: ItemQuery) -> list[Any]:
    return [row.item for row in shop.run(read_query_page(shop.studio, QueryPageRequest(question))).rows]


def plain(items: Any) -> Any:
    """Return items with bytes as base64, as the API has them."""
    from base64 import b64encode

    if isinstance(items, dict):
        return {name: plain(each) for name, each in items.items()}
    if isinstance(items, list):
        return [plain(each) for each in items]
    return b64encode(items).decode() if isinstance(items, bytes) else items


@pytest.mark.parametrize("name", QUESTIONS)
def test_boto3_code_finds_the_same(shop: Browsed, name: str) -> None:
    """The boto3 code runs as it is copied, and finds what the page found; or more where it says so."""
    question = QUESTIONS[name]
    code = shop.run(export_query_code(shop.studio, question))
    response: dict[str, Any] = {}

    with tavola.mock(engine=shop.engine):
        exec(compile(code.boto3, "copied", "exec"), response)

    result = [response["item"]] if response.get("item") else response.get("items", [])
    expected = found_by(shop, question)
    if name == "query tested here":
        assert "filter the results yourself" in code.boto3
        assert all(item in plain(result) for item in expected)
    else:
        assert plain(result) == expected


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_copied_test_passes(shop: Browsed, name: str) -> None:
    """The copied test makes its own table and passes by itself."""
    code = shop.run(export_query_code(shop.studio, QUESTIONS[name]))
    response: dict[str, Any] = {}

    exec(compile(code.test, "copied", "exec"), response)
    (test,) = (each for at, each in response.items() if at.startswith("test_"))
    test()

    assert test.__doc__


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_command_is_the_request(shop: Browsed, name: str) -> None:
    """The AWS CLI command sends exactly the request, whatever a shell does with its values."""
    code = shop.run(export_query_code(shop.studio, QUESTIONS[name]))

    words = shlex.split(code.cli)

    assert words[:2] == ["aws", "dynamodb"]
    if "--key" in words:
        key = json.loads(words[words.index("--key") + 1])
        assert key["PK"] == QUESTIONS[name].conditions[0].values[0]
    if "--expression-attribute-values" in words:
        assert json.loads(words[words.index("--expression-attribute-values") + 1])
    assert words[words.index("--table-name") + 1] == TABLE
    assert words[words.index("--region") + 1] == REGION


CLIENT = {
    "get": "Order.Key(order_id='o1')",
    "query of an index": "Order.ByCustomer(customer='c1'), newest_first=True",
    "query consistent": "Line.OfOrder(order_id='o1'), consistent=True",
    "query of a local index": "Line.ByWeight(order_id='o1')",
    "query of several attributes": "Order.ByPlace(country='IT', city='Pisa').street.eq('Via 0')",
}


@pytest.mark.parametrize("name", CLIENT)
def test_tavola_code_uses_the_pattern(
    shop: Browsed, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query that matches an access pattern is rendered as that pattern, and the code runs."""
    code = shop.run(export_query_code(shop.studio, QUESTIONS[name])).tavola
    assert code is not None
    assert CLIENT[name] in code
    monkeypatch.setattr(tavola, "connect", lambda *_, **__: connect(shop.engine, region=REGION))

    exec(compile(code, "copied", "exec"), {})

    response = capsys.readouterr().out.strip().splitlines()
    assert len(response) == len(found_by(shop, QUESTIONS[name])) > 0


@pytest.mark.parametrize("name", ["scan", "query tested here", "get of every type"])
def test_a_query_that_no_pattern_expresses_has_no_tavola_code(shop: Browsed, name: str) -> None:
    """A Scan, a condition tested here, or a key of no entity is no access pattern."""
    assert shop.run(export_query_code(shop.studio, QUESTIONS[name])).tavola is None


def test_a_collection_of_several_entities_is_no_pattern_of_one(shop: Browsed) -> None:
    """A query for an order with its lines is not the pattern of the lines; a query for the lines alone is."""
    lines = ItemQuery(TABLE, None, (PK, where("SK", "begins_with", "LINE#")))

    assert shop.run(export_query_code(shop.studio, QUESTIONS["query"])).tavola is None
    assert "Line.OfOrder(order_id='o1')" in (shop.run(export_query_code(shop.studio, lines)).tavola or "")


@pytest.mark.parametrize(
    ("place", "target", "endpoint", "remark"),
    [
        (TablesLocation("memory", "in memory", REGION), "memory:", "http://127.0.0.1:8000", "`tavola serve --studio`"),
        (TablesLocation("file", "/x/a b.db", REGION), "file:/x/a b.db", "http://127.0.0.1:8000", "stop the studio first"),
        (TablesLocation("file", "/x/a.db", REGION, None, "http://127.0.0.1:9"), "http://127.0.0.1:9", "http://127.0.0.1:9", None),
        (TablesLocation("http", "http://127.0.0.1:7", REGION), "http://127.0.0.1:7", "http://127.0.0.1:7", None),
        (TablesLocation("aws", "aws:eu-west-1", REGION), "aws:eu-west-1", None, None),
    ],
)  # fmt: skip
def test_code_goes_where_the_tables_are(
    shop: Browsed, place: TablesLocation, target: str, endpoint: str | None, remark: str | None
) -> None:
    """Copied code names the endpoint, and never goes to AWS by mistake; where there is none, it says what to do."""
    studio = replace(shop.studio, where=place)
    key = {"PK": {"S": "ORDER#o1"}, "SK": {"S": "ORDER"}}

    for code in (
        shop.run(export_query_code(studio, QUESTIONS["get"])),
        shop.run(export_item_code(studio, ItemCodeRequest(TABLE, key))),
    ):
        assert code.tavola is not None
        assert f"connect({target!r}" in code.tavola
        for text in (code.boto3, code.cli, code.typescript):
            assert (endpoint or "endpoint") in text if endpoint else "endpoint" not in text
        for text in (code.tavola, code.boto3, code.typescript):
            assert (remark or "tavola serve") in text if remark else "tavola serve" not in text


def test_sort_parts_are_read_back(shop: Browsed) -> None:
    """A sort key, whole or up to a field, becomes the parts of the pattern."""
    customer = where("GSI1PK", "=", "CUSTOMER#c1")
    prefix = ItemQuery(
        TABLE, None, (customer, where("GSI1SK", "begins_with", "2026-01-02T00:00:00.000000Z#"))
    )
    cut = ItemQuery(TABLE, None, (customer, where("GSI1SK", "begins_with", "2026-01")))
    light = ItemQuery(TABLE, None, (PK, QueryCondition("weight", ">", ({"N": "5"},))))

    code = shop.run(export_query_code(shop.studio, prefix)).tavola

    assert code is not None
    assert '.placed_at.eq(datetime.fromisoformat("2026-01-02T00:00:00+00:00"))' in code
    assert shop.run(export_query_code(shop.studio, cut)).tavola is None
    assert ".weight.gt(5)" in (shop.run(export_query_code(shop.studio, light)).tavola or "")


def test_a_filter_on_a_field_becomes_where(shop: Browsed) -> None:
    """A filter on a plain field is the pattern's where()."""
    total = QueryCondition("total", ">", ({"N": "10"},))
    request = ItemQuery(TABLE, None, (where("GSI1PK", "=", "CUSTOMER#c1"), total))

    code = shop.run(export_query_code(shop.studio, request)).tavola

    assert code is not None
    assert ".where(Order.total.gt(10))" in code


def test_an_item_is_copied_in_every_form(shop: Browsed) -> None:
    """An item's code stores the very same item; its JSON forms keep every digit."""
    key = {name: EVERYTHING[name] for name in ("PK", "SK")}

    code = shop.run(export_item_code(shop.studio, ItemCodeRequest(TABLE, key)))

    assert json.loads(code.dynamodb_json) == EVERYTHING
    assert "0.12345678901234567890123456789012345678" in code.json
    assert json.loads(code.json)["m"]["deep"] == {"x": "AQ=="}
    words = shlex.split(code.cli)
    assert json.loads(words[words.index("--item") + 1]) == EVERYTHING
    assert 'Buffer.from("AAECAw==", "base64")' in code.typescript
    with browsed(orders=0) as empty, tavola.mock(engine=empty.engine):
        exec(compile(code.boto3, "copied", "exec"), {})
        assert empty.call("GetItem", TableName=TABLE, Key=key)["Item"] == EVERYTHING


def test_code_reads_little_for_its_examples() -> None:
    """Copying a question with a filter looks at a few items, not at all that a page would look at; its test has five."""
    with browsed(orders=300) as shop:
        query = ItemQuery(TABLE, None, (where("PK", "begins_with", "ORDER#"),))
        reads: list[int] = []
        call = shop.studio.db.backend.call

        async def counted(operation: str, request: Any) -> Any:
            answer = await call(operation, request)
            reads.append(answer.get("ScannedCount", 0))
            return answer

        shop.studio.db.backend.call = counted  # type: ignore[method-assign]
        code = shop.run(export_query_code(shop.studio, query))

    assert sum(reads) == 100
    assert code.test.count('"_entity"') == 5


def test_an_entity_is_got_by_its_key(shop: Browsed) -> None:
    """An entity's item is rendered with its key class; a missing item is reported."""
    key = {"PK": {"S": "ORDER#o1"}, "SK": {"S": "LINE#002"}}

    code = shop.run(export_item_code(shop.studio, ItemCodeRequest(TABLE, key)))

    assert code.tavola is not None
    assert "Line.Key(order_id='o1', position=2)" in code.tavola
    with pytest.raises(RequestRefused):
        shop.run(export_item_code(shop.studio, ItemCodeRequest(TABLE, {"PK": {"S": "x"}, "SK": {"S": "y"}})))
