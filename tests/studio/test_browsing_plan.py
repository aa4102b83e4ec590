"""The planner: conditions become one Get, Query or Scan, which is explained and priced before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tavola.studio.api.data import (
    QueryPageRequest,
    StatementRequest,
    describe_plan,
    plan_statement,
    read_query_page,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import QueryCondition, parse_path
from tavola.studio.queries.planner import ItemQuery
from tests.studio.browsed import Browsed, browsed

TABLE = "studio-shop"


@pytest.fixture(scope="module")
def shop() -> Iterator[Browsed]:
    """A shop of twelve orders."""
    with browsed() as result:
        yield result


def s(text: str) -> dict[str, str]:
    return {"S": text}


def n(text: str) -> dict[str, str]:
    return {"N": text}


def where(attribute: str, operator: Any, *values: Any) -> QueryCondition:
    return QueryCondition(attribute, operator, values)


PK = where("PK", "=", s("ORDER#o1"))
OWN = where("SK", "=", s("ORDER"))
CUSTOMER = where("GSI1PK", "=", s("CUSTOMER#c1"))
PLACE = (where("country", "=", s("IT")), where("city", "=", s("Pisa")))

ROUTES = [
    # what is asked, on which tab, the operation, the index, the roles of the conditions
    ((), None, "Scan", None, ()),
    ((), "states", "Scan", "states", ()),
    ((PK, OWN), None, "GetItem", None, ("key", "key")),
    ((PK, OWN), "customers", "Scan", "customers", ("filter", "filter")),
    ((PK,), None, "Query", None, ("key",)),
    ((PK, where("SK", "begins_with", s("LINE#"))), None, "Query", None, ("key", "key")),
    ((PK, where("SK", ">=", s("A")), where("SK", "<=", s("M"))), None, "Query", None, ("key", "key", "key")),
    ((PK, where("SK", ">", s("A")), where("SK", "<", s("M"))), None, "Query", None, ("key", "key", "studio")),
    ((PK, where("SK", "contains", s("00"))), None, "Query", None, ("key", "studio")),
    ((PK, OWN, where("total", ">", n("5"))), None, "Query", None, ("key", "key", "filter")),
    ((PK, where("weight", ">", n("100"))), None, "Query", "weights", ("key", "key")),
    ((PK, where("weight", ">", n("100"))), "weights", "Query", "weights", ("key", "key")),
    ((PK, where("weight", ">", s("100"))), None, "Query", None, ("key", "filter")),
    ((CUSTOMER,), None, "Query", "customers", ("key",)),
    ((CUSTOMER, where("GSI1SK", "between", s("2026"), s("2027"))), None, "Query", "customers", ("key", "key")),
    ((CUSTOMER, where("PK", "=", s("ORDER#o1"))), "customers", "Query", "customers", ("key", "filter")),
    ((where("GSI2PK", "=", s("STATE#open")),), None, "Query", "states", ("key",)),
    (PLACE, None, "Query", "places", ("key", "key")),
    (PLACE[:1], None, "Scan", None, ("filter",)),
    ((*PLACE, where("street", "=", s("Via 0")), where("number", ">", n("2"))), None, "Query", "places", ("key",) * 4),
    ((*PLACE, where("number", "=", n("3"))), None, "Query", "places", ("key", "key", "studio")),
    ((*PLACE, where("street", ">", s("V")), where("number", "=", n("3"))), None, "Query", "places",
     ("key", "key", "key", "studio")),
    ((where("PK", "=", n("1")),), None, "Scan", None, ("filter",)),
    ((where("PK", "in", s("ORDER#o1"), s("ORDER#o2")),), None, "Scan", None, ("filter",)),
    ((where("total", "=", n("10")),), None, "Scan", None, ("filter",)),
]  # fmt: skip


@pytest.mark.parametrize(("conditions", "index", "operation", "taken", "roles"), ROUTES)
def test_the_way_is_chosen(
    shop: Browsed,
    conditions: Any,
    index: str | None,
    operation: str,
    taken: str | None,
    roles: tuple[str, ...],
) -> None:
    """All partition attributes with = make a Query; sort attributes count from the left; the rest filters."""
    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, index, conditions)))

    assert (result.operation, result.index) == (operation, taken)
    assert tuple(each.role for each in result.conditions) == roles
    assert result.sentence.startswith({"GetItem": "Get", "Query": "Query", "Scan": "Scan"}[operation])
    assert result.why.endswith(".")


@pytest.mark.parametrize(("conditions", "index", "operation", "taken", "roles"), ROUTES)
def test_what_is_planned_is_what_dynamodb_answers(
    shop: Browsed,
    conditions: Any,
    index: str | None,
    operation: str,
    taken: str | None,
    roles: tuple[str, ...],
) -> None:
    """A plan finds just the items that a Scan with all conditions for its filter finds, and keeps to its estimate."""
    question = ItemQuery(TABLE, index, conditions)
    scan = ItemQuery(TABLE, index or taken, conditions, choose=False)
    plan = shop.run(describe_plan(shop.studio, question))

    result = shop.run(read_query_page(shop.studio, QueryPageRequest(question)))

    everything = _scanned(shop, scan)
    assert _keys(result.rows) == everything
    assert plan.estimate.units_low <= result.units <= plan.estimate.units_high
    assert result.operation == plan.operation


def _scanned(shop: Browsed, question: ItemQuery) -> list[tuple[str, str]]:
    """Return what a Scan of the same way finds, decided item by item."""
    from tavola.expressions.conditions import compile_decider
    from tavola.studio.queries.conditions import combine_conditions

    request: dict[str, Any] = {"TableName": TABLE}
    if question.index:
        request["IndexName"] = question.index
    items = shop.call("Scan", **request)["Items"]
    node = combine_conditions(question.conditions)
    test = (lambda item, values: True) if node is None else compile_decider(node)
    return sorted((item["PK"]["S"], item["SK"]["S"]) for item in items if test(item, {}))


def _keys(rows: Any) -> list[tuple[str, str]]:
    return sorted((row.item["PK"]["S"], row.item["SK"]["S"]) for row in rows)


OPERATORS = [
    (where("total", "=", n("30")), 1),
    (where("total", "<>", n("30")), 47),  # what has no such attribute is not equal to it either
    (where("total", "<", n("30")), 3),
    (where("total", "<=", n("30")), 4),
    (where("total", ">", n("30")), 8),
    (where("total", ">=", n("30")), 9),
    (where("total", "between", n("30"), n("50")), 3),
    (where("customer", "begins_with", s("c")), 12),
    (where("email", "contains", s("example")), 12),
    (where("email", "not_contains", s("example")), 36),
    (where("total", "in", n("30"), n("40"), n("41")), 2),
    (where("country", "exists"), 4),
    (where("country", "not_exists"), 44),
    (where("total", "type", s("N")), 12),
    (where("customer", "size =", n("2")), 12),
    (where("customer", "size <>", n("2")), 36),
    (where("email", "size <", n("14")), 10),
    (where("email", "size <=", n("13")), 10),
    (where("email", "size >", n("13")), 2),
    (where("email", "size >=", n("14")), 2),
    (where("_owner.PK", "=", s("ORDER#o3")), 1),
]


@pytest.mark.parametrize(("condition", "count"), OPERATORS, ids=lambda each: getattr(each, "operator", ""))
def test_every_operator_filters(shop: Browsed, condition: QueryCondition, count: int) -> None:
    """Every operator can be used in a query and returns the matching items."""
    result = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE, None, (condition,)))))

    assert (result.returned, result.scanned) == (count, 48)


def test_a_scan_of_more_than_a_megabyte_needs_confirmation() -> None:
    """A Scan of more than 1 MB is marked, a Query of the same table is not."""
    with browsed() as shop:
        for at in range(4):
            text = {"S": "x" * 350_000}
            shop.call("PutItem", TableName=TABLE, Item={"PK": s(f"BIG#{at}"), "SK": s("x"), "text": text})

        scan = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (where("total", ">", n("1")),))))
        index = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, "states", ())))
        query = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (PK,))))

    assert scan.needs_confirmation
    assert scan.estimate.pages_high == 2
    assert not index.needs_confirmation
    assert not query.needs_confirmation


def test_a_scan_is_estimated_by_what_is_counted(shop: Browsed) -> None:
    """A Scan's estimate is the table's bytes, with its dollars by the region's prices."""
    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE)))

    assert result.estimate.units_low == 1.0  # 5 KB, not consistently
    assert result.estimate.dollars_low > 0
    assert "48 items" in result.estimate.reason
    assert result.estimate.priced


def test_small_items_are_estimated_with_their_pages() -> None:
    """Reading to the end is done in pages of a thousand rows, each rounded up; the estimate has that too."""
    with browsed(orders=0) as shop:
        for start in range(0, 3_100, 25):
            puts = [
                {"PutRequest": {"Item": {"PK": s(f"{at}"), "SK": s("x")}}} for at in range(start, start + 25)
            ]
            shop.call("BatchWriteItem", RequestItems={TABLE: puts})
        plan = shop.run(describe_plan(shop.studio, ItemQuery(TABLE)))
        units, cursor = 0.0, None
        for _ in range(4):
            result = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE), cursor)))
            units, cursor = units + result.units, result.cursor

    assert cursor is None
    assert plan.estimate.units_low < units <= plan.estimate.units_high


def test_the_design_narrows_a_query(shop: Browsed) -> None:
    """Where the design says how many items a question gives, the estimate says so, and whose word it is."""
    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (CUSTOMER,))))

    assert "Orders of a customer" in result.estimate.reason
    assert result.estimate.units_high == 1.0  # 20 items of 400 bytes


def test_a_consistent_read_of_a_global_index_has_a_note(shop: Browsed) -> None:
    """A global index is do not support consistent reads; a local one and the table are, at twice the units."""
    request = ItemQuery(TABLE, "customers", (CUSTOMER,), consistent=True)
    local = ItemQuery(TABLE, "weights", (PK,), consistent=True)

    global_plan = shop.run(describe_plan(shop.studio, request))
    local_page = shop.run(read_query_page(shop.studio, QueryPageRequest(local)))

    assert not global_plan.consistent
    assert "do not support consistent reads" in global_plan.notes[0]
    assert local_page.units == 1.0


@pytest.mark.parametrize(
    "condition",
    [
        where("total", "between", n("1")),
        where("total", "="),
        where("total", "exists", n("1")),
        where("total", "in"),
        where("", "exists"),
        where("[0]", "exists"),
        where("total", "size >", s("x")),
        where("total", "type", s("X")),
        where("total", "begins_with", n("1")),
        where("total", "=", {"N": "1", "S": "2"}),
        where("total", "=", {"Q": "1"}),
        where("PK", "=", {"N": "1,5"}),
        where("number", "in", {"N": "1" * 39}),
        where("total", "=", {"B": "no base64"}),
        where("total", "=", {"S": 5}),
        where("total", "=", {"NS": ["1", "1.0"]}),
    ],
    ids=lambda each: f"{each.attribute} {each.operator}",
)
def test_an_invalid_request_is_refused(shop: Browsed, condition: QueryCondition) -> None:
    """A condition that is not whole is refused in words, before anything is read."""
    with pytest.raises(RequestRefused) as refused:
        shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (condition,))))

    assert refused.value.problem.code == "condition-malformed"


def test_a_filter_on_what_an_index_lacks_is_no_query_of_it(shop: Browsed) -> None:
    """DynamoDB refuses a filter on an unprojected attribute, so the table is read with a note, or the query is refused."""
    conditions = (where("GSI2PK", "=", s("STATE#open")), where("email", "contains", s("1")))

    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, conditions)))

    assert (result.operation, result.index) == ("Scan", None)
    assert "states would allow a Query, but it does not project email" in result.notes[0]
    with pytest.raises(RequestRefused) as refused:
        shop.run(describe_plan(shop.studio, ItemQuery(TABLE, "states", conditions)))
    assert refused.value.problem.code == "filter-unprojected"


@pytest.mark.parametrize(
    "condition",
    [where("GSI1SK", "not_exists"), where("GSI1SK", "<>", s("x")), where("GSI1SK", "not_contains", s("x"))],
    ids=lambda each: each.operator,
)
def test_an_index_that_lacks_matching_items_is_not_used(shop: Browsed, condition: QueryCondition) -> None:
    """A condition that items without the sort key satisfy is evaluated on the table, because the index lacks them."""
    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (CUSTOMER, condition))))

    assert (result.operation, result.index) == ("Scan", None)
    assert "customers would allow a Query, but it lacks items without GSI1SK" in result.notes[0]


def test_a_consistent_question_stays_with_the_table(shop: Browsed) -> None:
    """A global index that bounds more is no way to what is certainly current; a local one is."""
    values = (PK, where("GSI1PK", "=", s("CUSTOMER#c1")), where("GSI1SK", ">", s("2026")))
    request = ItemQuery(TABLE, None, values)

    now = shop.run(describe_plan(shop.studio, replace(request, consistent=True)))
    sooner = shop.run(describe_plan(shop.studio, request))

    assert (sooner.index, now.index) == ("customers", None)
    assert now.consistent


def test_a_number_is_the_same_however_it_is_spelt(shop: Browsed) -> None:
    """What the studio tests itself compares numbers, not texts."""
    (number,) = (where("number", "in", n("3.0"), n("0.6e1")),)

    result = shop.run(
        read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE, None, (*PLACE, number))))
    )

    assert [row.item["number"] for row in result.rows] == [n("6"), n("3")]


def test_a_descending_scan_has_a_note(shop: Browsed) -> None:
    """A Scan has no order that could be reversed."""
    result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, descending=True)))

    assert "A Scan has no order" in result.notes[0]


def test_an_index_that_may_lack_items_has_a_note() -> None:
    """Without a design an item may lack part of an index key, so the plan notes what the index would miss."""
    with browsed(design=False) as shop:
        result = shop.run(describe_plan(shop.studio, ItemQuery(TABLE, None, (CUSTOMER,))))

    assert result.index == "customers"
    assert "Items without GSI1SK are not in customers" in result.notes[0]


def test_a_path_is_read() -> None:
    """A path leads into maps and lists; a name that contains a dot is quoted."""
    assert parse_path("a.b[0][12].c") == ("a", "b", 0, 12, "c")
    assert parse_path('"a.b".c') == ("a.b", "c")
    assert parse_path('"say ""hi"""') == ('say "hi"',)
    assert parse_path("über-name 1") == ("über-name 1",)


def test_an_index_that_is_not_there_is_refused(shop: Browsed) -> None:
    """A URL with an unknown index is refused with the names of the existing ones."""
    with pytest.raises(RequestRefused) as refused:
        shop.run(describe_plan(shop.studio, ItemQuery(TABLE, "gone")))

    assert "customers" in refused.value.problem.detail


def test_a_field_is_offered_as_the_key_that_it_makes(shop: Browsed) -> None:
    """A Scan for a field of a key template suggests the key; the remaining conditions become a filter."""
    request = ItemQuery(TABLE, None, (where("order_id", "=", s("o1")), where("total", ">=", n("0"))))

    scan = shop.run(describe_plan(shop.studio, request))
    customer = shop.run(
        describe_plan(shop.studio, ItemQuery(TABLE, None, (where("customer", "=", s("c1")),)))
    )
    alone = ItemQuery(TABLE, None, (where("customer", "=", s("c1")),), choose=False)

    assert scan.operation == "Scan"
    assert [offer.conditions for offer in scan.suggestions] == [(PK, request.conditions[1])]
    assert "Order has a key with order_id: query PK = “ORDER#o1”" in scan.suggestions[0].text
    assert [offer.conditions for offer in customer.suggestions] == [(CUSTOMER,)]
    assert shop.run(describe_plan(shop.studio, alone)).suggestions == ()
    result = shop.run(
        read_query_page(
            shop.studio, QueryPageRequest(replace(request, conditions=scan.suggestions[0].conditions))
        )
    )
    assert [row.item for row in result.rows] == [
        row.item for row in shop.run(read_query_page(shop.studio, QueryPageRequest(request))).rows
    ]


@pytest.mark.parametrize(
    ("text", "operation", "index", "told"),
    [
        ('SELECT * FROM "studio-shop"', "Scan", None, "There are no conditions"),
        ("SELECT * FROM \"studio-shop\" WHERE state = 'open'", "Scan", None, "WHERE does not give the partition key"),
        ("SELECT * FROM \"studio-shop\" WHERE PK = 'ORDER#o1' AND total > 1", "Query", None, "The partition key of the table, PK,"),
        ("SELECT * FROM \"studio-shop\" WHERE PK = 'ORDER#o1' AND SK = 'ORDER'", "GetItem", None, "whole primary key"),
        ("SELECT * FROM \"studio-shop\" WHERE PK IN ['ORDER#o1', 'ORDER#o2']", "Query", None, "The partition key of the table, PK,"),
        ("SELECT * FROM \"studio-shop\" WHERE PK = 'a' OR state = 'b'", "Scan", None, "WHERE does not give the partition key"),
        ("SELECT * FROM \"studio-shop\".customers WHERE GSI1PK = 'CUSTOMER#c1'", "Query", "customers", "GSI1PK"),
    ],
)  # fmt: skip
def test_a_statement_is_planned_as_a_query_or_a_scan(
    shop: Browsed, text: str, operation: str, index: str | None, told: str
) -> None:
    """Before a statement runs it is said whether it reads a collection or everything."""
    result = shop.run(plan_statement(shop.studio, StatementRequest(TABLE, text)))

    assert (result.operation, result.index) == (operation, index)
    assert told in result.why
    assert not result.needs_confirmation  # the table is small
