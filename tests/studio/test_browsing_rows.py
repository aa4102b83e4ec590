"""Rows: pages say what they read and took; groups, memberships and statements are what the engine has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tavola import connect
from tavola.engine import Engine
from tavola.studio.api.data import (
    IndexMembersRequest,
    QueryPageRequest,
    StatementRequest,
    count_items,
    describe_plan,
    find_index_members,
    read_query_page,
    run_statement,
)
from tavola.studio.api.tables import describe_table
from tavola.studio.endpoint import encode_response
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.queries.rows import CollectionRequest
from tavola.studio.types import TableRequest
from tests.studio.browsed import REGION, Browsed, browsed

TABLE = "studio-shop"
INDEXES = ("customers", "places", "states", "weights")  # in the order in which rows number them


@pytest.fixture(scope="module")
def shop() -> Iterator[Browsed]:
    """A shop of twelve orders."""
    with browsed() as result:
        yield result


def read_all(shop: Browsed, question: ItemQuery, limit: int) -> list[Any]:
    """Return all pages of a question."""
    pages = []
    cursor = None
    while True:
        result = shop.run(read_query_page(shop.studio, QueryPageRequest(question, cursor, limit)))
        pages.append(result)
        cursor = result.cursor
        if cursor is None:
            return pages


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
@pytest.mark.parametrize("index", [None, *INDEXES])
def test_pages_are_what_a_scan_gives(shop: Browsed, index: str | None, limit: int) -> None:
    """All pages together are the items in the table's order, each read once, and their units what was consumed."""
    pages = read_all(shop, ItemQuery(TABLE, index), limit)
    request = {"TableName": TABLE} | ({} if index is None else {"IndexName": index})

    assert [row.item for each in pages for row in each.rows] == shop.call("Scan", **request)["Items"]
    assert sum(each.scanned for each in pages) == pages[0].total
    first = shop.call("Scan", **request, Limit=limit, ReturnConsumedCapacity="TOTAL")
    assert pages[0].units == first["ConsumedCapacity"]["CapacityUnits"]


def test_groups_are_the_collections(shop: Browsed) -> None:
    """Rows of one partition key are one group; its count, bytes and units are those of reading it whole."""
    (result,) = read_all(shop, ItemQuery(TABLE), 1000)
    for group in result.groups:
        rows = result.rows[group.first : group.first + group.count]
        key = rows[0].item["PK"]
        answer = shop.call(
            "Query",
            TableName=TABLE,
            KeyConditionExpression="PK = :k",
            ExpressionAttributeValues={":k": key},
            ReturnConsumedCapacity="TOTAL",
        )

        assert group.whole
        assert [row.item for row in rows] == answer["Items"]
        assert group.units == answer["ConsumedCapacity"]["CapacityUnits"]
    assert sum(group.count for group in result.groups) == len(result.rows)


def test_a_group_at_the_end_of_a_page_may_go_on(shop: Browsed) -> None:
    """A group that is cut by the page, a filter or a sort condition is not marked complete."""
    first = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE), None, 5)))
    second = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE), first.cursor, 5)))
    filtered = ItemQuery(TABLE, None, (QueryCondition("total", ">", ({"N": "0"},)),))
    key = QueryCondition("PK", "=", ({"S": "ORDER#o1"},))
    bounded = ItemQuery(TABLE, None, (key, QueryCondition("SK", "begins_with", ({"S": "LINE"},))))

    assert not first.groups[-1].whole
    assert not second.groups[0].whole
    assert not any(group.whole for group in read_all(shop, filtered, 100)[0].groups)
    assert not any(group.whole for group in read_all(shop, bounded, 100)[0].groups)
    assert read_all(shop, ItemQuery(TABLE, None, (key,)), 100)[0].groups[0].whole


@pytest.mark.parametrize("at", range(len(INDEXES)))
def test_memberships_are_the_engines(shop: Browsed, at: int) -> None:
    """The rows that are said to be in an index are just those that the index has."""
    (result,) = read_all(shop, ItemQuery(TABLE), 1000)
    entries = shop.call("Scan", TableName=TABLE, IndexName=INDEXES[at])["Items"]
    there = {(entry["PK"]["S"], entry["SK"]["S"]) for entry in entries}

    assert {key(row) for row in result.rows if at in row.indexes} == there
    assert 0 < len(there) < len(result.rows)


def told(found: Any, row: Any) -> Any:
    """Return what a row is, by its page."""
    return found.entities[row.entity]


def key(row: Any) -> tuple[str, str]:
    return row.item["PK"]["S"], row.item["SK"]["S"]


def test_an_attribute_of_another_type_is_no_membership() -> None:
    """An item older than the index may have a key attribute of another type, and is not in the index."""
    with browsed() as shop:
        shop.call(
            "PutItem", TableName=TABLE, Item={"PK": {"S": "a"}, "SK": {"S": "b"}, "depth": {"S": "deep"}}
        )
        shop.call("PutItem", TableName=TABLE, Item={"PK": {"S": "a"}, "SK": {"S": "c"}, "depth": {"N": "3"}})
        shop.call(
            "UpdateTable",
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": "depth", "AttributeType": "N"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "depths",
                        "KeySchema": [{"AttributeName": "depth", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                }
            ],
        )
        for _ in range(200):
            shop.engine.run_background_work(1.0)
        entries = shop.call("Scan", TableName=TABLE, IndexName="depths")["Items"]
        request = IndexMembersRequest(
            TABLE, "depths", tuple({"PK": {"S": "a"}, "SK": {"S": sk}} for sk in "bcd")
        )

        result = shop.run(find_index_members(shop.studio, request))

    assert [entry["SK"]["S"] for entry in entries] == ["c"]
    assert (result.members, result.missing) == ((1,), (2,))
    assert result.projected == ("PK", "SK", "depth")


def test_a_projection_is_reported(shop: Browsed) -> None:
    """What an index holds is the keys of both and what it includes; entries have no more than that."""
    keys = tuple({"PK": {"S": f"ORDER#o{n}"}, "SK": {"S": "ORDER"}} for n in range(4))

    result = shop.run(find_index_members(shop.studio, IndexMembersRequest(TABLE, "states", keys)))

    assert result.members == (1, 3)
    assert result.projected == ("PK", "SK", "GSI2PK", "total")
    for entry in shop.call("Scan", TableName=TABLE, IndexName="states")["Items"]:
        assert set(entry) <= set(result.projected)
    assert (
        shop.run(find_index_members(shop.studio, IndexMembersRequest(TABLE, "customers", keys))).projected
        is None
    )


def test_entries_do_not_show_other_indexes(shop: Browsed) -> None:
    """A partial index entry does not list other indexes, but its entity is recognised."""
    (result,) = read_all(shop, ItemQuery(TABLE, "states"), 100)

    assert all(row.indexes is None for row in result.rows)
    assert {told(result, row).entity for row in result.rows} == {"Order"}
    assert [result.shapes[cut[0]].attribute for cut in result.rows[0].keys] == ["GSI2PK", "PK", "SK"]


def test_a_collection_is_counted_exactly() -> None:
    """The numbers of a collection are those of reading all of it, over as many pages as it has."""
    with browsed() as shop:
        for at in range(6):
            item = {"PK": {"S": "ORDER#o1"}, "SK": {"S": f"BIG#{at}"}, "text": {"S": "x" * 300_000}}
            shop.call("PutItem", TableName=TABLE, Item=item)

        result = shop.run(count_items(shop.studio, CollectionRequest(TABLE, {"PK": {"S": "ORDER#o1"}})))

    assert result.whole
    assert result.count == 9
    assert result.bytes > 1_800_000
    assert result.units == pytest.approx(result.bytes / 4096 / 2, abs=1.5)
    assert result.entities == {"BIG": 6, "Order": 1, "Line": 2}


def test_another_attribute_is_no_key_of_a_collection(shop: Browsed) -> None:
    """What is given beside the key, or in its place, does not stand in for it."""
    with pytest.raises(RequestRefused, match="Incomplete partition key"):
        shop.run(count_items(shop.studio, CollectionRequest(TABLE, {"colour": {"S": "red"}})))


def test_a_collection_needs_its_whole_key(shop: Browsed) -> None:
    """A partition key of two attributes needs both values."""
    with pytest.raises(RequestRefused):
        shop.run(count_items(shop.studio, CollectionRequest(TABLE, {"country": {"S": "IT"}}, "places")))

    whole = {"country": {"S": "IT"}, "city": {"S": "Pisa"}}
    assert shop.run(count_items(shop.studio, CollectionRequest(TABLE, whole, "places"))).count == 4


def test_a_statement_gives_rows(shop: Browsed) -> None:
    """PartiQL gives rows and what they took, page by page; what would change something is refused."""
    text = f"SELECT * FROM \"{TABLE}\" WHERE PK = 'ORDER#o1'"

    first = shop.run(run_statement(shop.studio, StatementRequest(TABLE, text, limit=2)))
    rest = shop.run(run_statement(shop.studio, StatementRequest(TABLE, text, first.next_token, limit=5)))

    assert len(first.rows) == 2
    assert [told(rest, row).entity for row in rest.rows] == ["Order"]
    assert first.units > 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'DELETE FROM "{TABLE}" WHERE PK = 1', "statement-changes"),
        (f"EXISTS(SELECT * FROM \"{TABLE}\" WHERE PK = 'a' AND SK = 'b')", "statement-changes"),
        ('SELECT * FROM "other-shop"', "statement-elsewhere"),
        ('SELECT * FROM "other-shop"."customers"', "statement-elsewhere"),
        ("SELECT * FROM studio-shop", "statement-malformed"),
        ("what is there?", "statement-malformed"),
    ],
)
def test_a_statement_is_of_this_table_and_only_reads(shop: Browsed, text: str, code: str) -> None:
    """Rows of another table would be opened, edited and deleted as this one's; so they are not given."""
    with pytest.raises(RequestRefused) as refused:
        shop.run(run_statement(shop.studio, StatementRequest(TABLE, text)))

    assert refused.value.problem.code == code


def test_the_past_is_read() -> None:
    """A question of a moment gives the items as they were then."""
    from tavola.clock import ManualClock
    from tests.studio.browsed import Shop

    clock = ManualClock()
    engine = Engine.open(clock=clock)
    with connect(engine, region=REGION) as db:
        db.create_tables(Shop)
        on = {"PointInTimeRecoveryEnabled": True}
        db.call("UpdateContinuousBackups", {"TableName": TABLE, "PointInTimeRecoverySpecification": on})
    with browsed(engine) as shop:
        clock.advance(10)
        shop.call("PutItem", TableName=TABLE, Item={"PK": {"S": "a"}, "SK": {"S": "b"}, "v": {"N": "1"}})
        clock.advance(10)
        then = str(clock.now())
        clock.advance(10)
        shop.call("PutItem", TableName=TABLE, Item={"PK": {"S": "a"}, "SK": {"S": "b"}, "v": {"N": "2"}})
        now = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE))))
        request = ItemQuery(TABLE, as_of=_iso(then))
        past = shop.run(read_query_page(shop.studio, QueryPageRequest(request)))
        plan = shop.run(describe_plan(shop.studio, request))

    assert (now.rows[0].item["v"], past.rows[0].item["v"]) == ({"N": "2"}, {"N": "1"})
    assert "the current count" in plan.estimate.reason


def _iso(seconds: str) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(float(seconds), UTC).isoformat()


def test_exact_values_go_out_as_they_are() -> None:
    """38 digits, binary, sets and a 400 KB item leave the API as they are stored."""
    item = {
        "PK": {"S": "<script>"}, "SK": {"S": "x"}, "n": {"N": "1234567890123456789012345678901234567.8"},
        "b": {"B": "AAECAw=="}, "ns": {"NS": ["1", "2"]}, "big": {"S": "x" * 409_000},
    }  # fmt: skip
    with browsed(orders=0) as shop:
        shop.call("PutItem", TableName=TABLE, Item=item)

        result = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE))))

    assert result.rows[0].item == item
    assert b'"1234567890123456789012345678901234567.8"' in encode_response(result)


def test_a_table_is_described(shop: Browsed) -> None:
    """What a table is and what lives in it comes in one answer."""
    result = shop.run(describe_table(shop.studio, TableRequest(TABLE)))

    assert (result.tag, result.recovery, result.stream_view) == ("_entity", False, None)
    assert result.ttl == "ends"
    order = next(entity for entity in result.entities if entity.name == "Order")
    assert [key.index for key in order.keys] == ["customers", "states", "places"]
    assert order.keys[0].hash[0].template.source == "CUSTOMER#{customer}"
    assert order.keys[2].range[1].field == "number"
    assert encode_response(result)


def test_without_a_design_a_live_table_is_described() -> None:
    """Without a design there are keys and numbers, and no entities."""
    with browsed(design=False) as shop:
        result = shop.run(describe_table(shop.studio, TableRequest(TABLE)))
        rows = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE))))

    assert result.entities == ()
    assert result.tag is None
    assert {each.kind for each in rows.entities} <= {"guess", "guard"}
