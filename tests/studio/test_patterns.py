"""Access patterns: forms from the design, runs with the units DynamoDB reports, and the coverage matrix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import tavola
from tavola import connect
from tavola.apps.support_desk import model as support_desk
from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.model.document import design_of
from tavola.studio.access_patterns.catalogue import DesignedPattern, list_patterns
from tavola.studio.access_patterns.requests import EnteredValue
from tavola.studio.api import patterns as api
from tavola.studio.api.patterns import (
    PatternRequest,
    PatternRun,
    PatternsRequest,
    RunPatternRequest,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.types import NoParameters
from tests.studio.bookshop import (
    FIRST,
    Line,
    Order,
    Reading,
    WholeOrder,
    bookshop_design,
    shop_studio,
    stocked,
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with stocked() as result:
        yield result


def run(engine: Engine, id_: str, *values: EnteredValue, document: bool = False, **more: Any) -> PatternRun:
    async def story() -> PatternRun:
        async with shop_studio(engine, document=document) as studio:
            return await api.run_pattern(studio, RunPatternRequest(id_, values, **more))

    return asyncio.run(story())


def refused(engine: Engine, id_: str, *values: EnteredValue, **more: Any) -> str:
    with pytest.raises(RequestRefused) as response:
        run(engine, id_, *values, **more)
    return response.value.problem.code


def listed(engine: Engine) -> dict[str, DesignedPattern]:
    async def story() -> dict[str, DesignedPattern]:
        async with shop_studio(engine) as studio:
            result = await api.list_all_patterns(studio, PatternsRequest())
            return {each.id: each for each in result.patterns}

    return asyncio.run(story())


def names_of(told: PatternRun, attribute: str = "order_id") -> list[str]:
    return [next(iter(each.item[attribute].values())) for each in told.items]


def test_every_pattern_of_a_design_is_listed(engine: Engine) -> None:
    """Keys, queries, collections, needs and writes, each with its table, its key and its rates."""
    response = listed(engine)

    assert [each.place for each in response.values()] == [
        "Order.Key", "Order.ByCustomer", "Order.ByState", "Order.ByDay", "Order: place an order", "Order: ship it",
        "Line.Key", "Line.ByPrice", "WholeOrder", "Reading.Key", "Reading.Of",
        "new orders of a customer", "orders by note", "dear orders",
    ]  # fmt: skip
    state = response["bookshop/Order.ByState"]
    assert (state.kind, state.index, state.shards, state.per_second, state.items) == (
        "query",
        "by_state",
        3,
        1,
        10,
    )
    assert state.key == ("GSI2PK = STATE#{state}#{shard}", "GSI2SK = {placed_at}#{order_id}")
    assert not response["bookshop/Order: ship it"].runnable
    assert response["bookshop/Order: ship it"].operation == "TransactWriteItems"
    assert "No key serves this pattern" in response["bookshop/orders by note"].reason


def test_a_form_is_made_of_a_patterns_parameters(engine: Engine) -> None:
    """Each parameter has a kind, whether it must be given, its operators and its choices."""
    response = listed(engine)

    def form(id_: str) -> list[tuple[str, str, bool]]:
        return [(each.name, each.kind, each.required) for each in response[id_].parameters]

    assert form("bookshop/Order.ByState") == [
        ("state", "choice", True), ("placed_at", "datetime", False), ("order_id", "text", False),
    ]  # fmt: skip
    assert response["bookshop/Order.ByState"].parameters[0].choices == ("new", "paid", "sent")
    assert "begins_with" in response["bookshop/Order.ByState"].parameters[2].operators
    assert "begins_with" not in response["bookshop/Order.ByState"].parameters[1].operators
    assert form("bookshop/Line.Key") == [("order_id", "text", True), ("number", "int", True)]
    assert form("bookshop/Line.ByPrice") == [("order_id", "text", True), ("price", "decimal", False)]
    constant = response["bookshop/new orders of a customer"].parameters[1]
    assert (constant.name, constant.constant, constant.required) == ("state", ("new",), False)


CASES: list[tuple[str, list[EnteredValue], dict[str, Any], Any]] = [
    ("bookshop/Order.Key", [EnteredValue("order_id", "o007")], {}, Order.Key(order_id="o007")),
    (
        "bookshop/Order.Key",
        [EnteredValue("order_id", "o007")],
        {"consistent": True},
        Order.Key(order_id="o007"),
    ),
    ("bookshop/Order.Key", [EnteredValue("order_id", "none")], {}, Order.Key(order_id="none")),
    ("bookshop/Order.ByCustomer", [EnteredValue("customer", "c1")], {}, Order.ByCustomer(customer="c1")),
    (
        "bookshop/Order.ByCustomer",
        [
            EnteredValue("customer", "c1"),
            EnteredValue("placed_at", FIRST.isoformat(), "between", (FIRST + timedelta(days=1)).isoformat()),
        ],
        {"newest_first": True},
        Order.ByCustomer(customer="c1").placed_at.between(FIRST, FIRST + timedelta(days=1)),
    ),
    (
        "bookshop/Order.ByState",
        [EnteredValue("state", "paid"), EnteredValue("placed_at", "2026-08-02T00:00:00Z", ">=")],
        {"limit": 7},
        Order.ByState(state="paid").placed_at.gte(FIRST + timedelta(hours=12)),
    ),
    (
        "bookshop/Order.ByDay",
        [EnteredValue("placed_at", "2026-08-01T12:00", "between", "2026-08-03T12:00")],
        {},
        Order.ByDay().placed_at.between(FIRST, FIRST + timedelta(days=2)),
    ),
    (
        "bookshop/Line.ByPrice",
        [EnteredValue("order_id", "o003"), EnteredValue("price", "1", ">")],
        {"consistent": True},
        Line.ByPrice(order_id="o003").price.gt(Decimal(1)),
    ),
    ("bookshop/WholeOrder", [EnteredValue("order_id", "o003")], {}, WholeOrder(order_id="o003")),
    (
        "readings/Reading.Of",
        [EnteredValue("meter", "1"), EnteredValue("at", "10", "<")],
        {},
        Reading.Of(meter=1).at.lt(10),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)])
@pytest.mark.parametrize("document", [False, True], ids=["classes", "document"])
def test_a_run_gives_and_takes_what_the_client_does(engine: Engine, case: Any, document: bool) -> None:
    """A run returns the client's items in the same order, with the units of ReturnConsumedCapacity=INDEXES."""
    id_, values, how, request = case
    with connect(engine) as db, db.measure() as spent:
        if ".Key" in id_:
            one = db.get(request, **how)
            expected = [] if one is None else [one]
        elif id_.endswith("WholeOrder"):
            whole = db.collect(request)
            expected = [*whole.lines, whole.order]
        else:
            expected = list(db.query(request, **how))

    response = run(engine, id_, *values, document=document, **how)

    spelt = "order_id" if "readings" not in id_ else "at"
    assert names_of(response, spelt) == [str(getattr(each, spelt)) for each in expected]
    places = {(each.table, each.index): each.reads for each in response.units}
    counted: dict[tuple[str, str | None], float] = {
        (name, None): units.reads for name, units in spent.tables.items() if units.reads
    }
    counted |= {(name, at): n for name, units in spent.tables.items() for at, n in units.indexes.items()}
    assert places == counted
    assert (response.read_units, response.calls) == (spent.reads, spent.calls)
    assert response.code.tavola is not None


def test_units_are_those_the_engine_reports(engine: Engine) -> None:
    """Repeating a run's requests on the engine consumes the same units, call by call."""
    response = run(engine, "bookshop/Order.ByState", EnteredValue("state", "new"), limit=5)

    assert [request.operation for request in response.requests] == ["Query", "Query", "Query", "BatchGetItem"]
    for request in response.requests:
        answer = engine.call(request.operation, {**request.body, "ReturnConsumedCapacity": "INDEXES"})
        capacity = answer["ConsumedCapacity"]
        capacity = capacity[0] if isinstance(capacity, list) else capacity
        messages = {None: capacity["Table"]["CapacityUnits"]} if capacity["Table"]["CapacityUnits"] else {}
        messages |= {
            n: each["CapacityUnits"] for n, each in capacity.get("GlobalSecondaryIndexes", {}).items()
        }
        assert {units.index: units.reads for units in request.calls[0].units} == messages
    assert response.waste == response.read / response.returned
    assert response.returned == 5
    assert any("fetched from the table" in line for line in response.why)
    assert any("3 shards" in line for line in response.why)


def test_a_filter_is_reported_with_the_items_it_dropped(engine: Engine) -> None:
    """A need whose key leaves a condition to a filter says how much was read for each item that came back."""
    response = run(engine, "bookshop/new orders of a customer", EnteredValue("customer", "c0"), limit=100)

    assert (response.returned, response.read, response.waste) == (5, 15, 3.0)
    assert response.requests[0].filter == 'state = "new"'
    assert any("removed 10 of 15" in line for line in response.why)


def test_a_need_runs_by_its_route(engine: Engine) -> None:
    """A declared scan is a scan, and what it reads is said."""
    response = run(engine, "bookshop/dear orders", EnteredValue("total", "14"))

    assert [request.operation for request in response.requests] == ["Scan"]
    assert response.returned == 4
    assert response.read == 180
    assert response.why[0].startswith("The scan of bookshop reads every item")


def test_money_is_that_of_the_region_on_demand(engine: Engine) -> None:
    """A million runs cost their units at the book's price, and the book is named."""
    response = run(engine, "bookshop/Order.Key", EnteredValue("order_id", "o001"))

    assert response.usd_per_million == "0.0625"  # half a unit, at 0.125 for a million
    assert response.book.startswith("us-east-1")
    assert response.forecast.usd_per_million == "0.0625"
    assert "It consumed 0.5 units, as estimated." in response.why


def test_the_forecast_equals_tavola_costs(engine: Engine) -> None:
    """Units and the month's money of a pattern are those of its bill."""
    from tavola.design.cost import Assumptions, estimate_month
    from tavola.prices import load_book

    bills = {
        bill.title: bill
        for bill in estimate_month(bookshop_design(), Assumptions(), load_book("us-east-1")).bills
    }

    async def story() -> None:
        async with shop_studio(engine) as studio:
            for each in (await api.list_all_patterns(studio, PatternsRequest())).patterns:
                response = api.pattern_forecast(studio, PatternRequest(each.id))
                bill = bills.get(each.title)
                if each.per_second is None or bill is None:
                    assert response.usd_per_month is None
                    continue
                assert response.read + response.write == pytest.approx(bill.units)
                assert response.usd_per_month == f"{bill.amount:f}"

    asyncio.run(story())


def test_examples_are_of_items_that_are_there(engine: Engine) -> None:
    """Every pattern that can be run has values from the table, and with them it finds something."""

    async def story() -> None:
        async with shop_studio(engine) as studio:
            for each in (await api.list_all_patterns(studio, PatternsRequest())).patterns:
                if not each.runnable or each.place == "Order.ByDay":
                    continue
                response = await api.pattern_example(studio, PatternRequest(each.id))
                values = tuple(
                    EnteredValue(parameter.name, response.values[parameter.name])
                    for parameter in each.parameters
                    if parameter.required
                )
                assert (await api.run_pattern(studio, RunPatternRequest(each.id, values))).returned, each.id

    asyncio.run(story())


@pytest.mark.parametrize(
    ("id_", "values", "code"),
    [
        ("bookshop/Order.Nothing", [], "pattern-unknown"),
        ("bookshop/Order.Key", [], "parameter-missing"),
        ("bookshop/Order.Key", [EnteredValue("order", "o1")], "parameter-unknown"),
        ("bookshop/Order.Key", [EnteredValue("order_id", "o1", ">")], "parameter-refused"),
        (
            "bookshop/Line.Key",
            [EnteredValue("order_id", "o1"), EnteredValue("number", "x")],
            "parameter-malformed",
        ),
        (
            "bookshop/Line.Key",
            [EnteredValue("order_id", "o1"), EnteredValue("number", "-1" * 9)],
            "parameter-malformed",
        ),
        ("bookshop/Order.ByState", [EnteredValue("state", "lost")], "parameter-malformed"),
        (
            "bookshop/Order.ByCustomer",
            [EnteredValue("customer", "c"), EnteredValue("placed_at", "Monday", ">")],
            "parameter-malformed",
        ),
        (
            "bookshop/Order.ByCustomer",
            [EnteredValue("customer", "c"), EnteredValue("order_id", "o1")],
            "parameter-gap",
        ),
        (
            "bookshop/Order.ByCustomer",
            [EnteredValue("customer", "c"), EnteredValue("placed_at", "2026-08-01", "between")],
            "parameter-missing",
        ),
        ("bookshop/Order.ByDay", [EnteredValue("placed_at", "2026-08-01", ">=")], "parameter-missing"),
        (
            "bookshop/Order.ByDay",
            [EnteredValue("placed_at", "2020-08-01", "between", "2026-08-01")],
            "too-many-requests",
        ),
        ("bookshop/Order: ship it", [], "pattern-not-run"),
        ("bookshop/orders by note", [EnteredValue("note", "x")], "pattern-not-run"),
    ],
)
def test_an_invalid_request_is_refused(engine: Engine, id_: str, values: Any, code: str) -> None:
    """Each refusal has its own code, and the table is not read."""
    assert refused(engine, id_, *values) == code


def test_an_empty_range_makes_no_request(engine: Engine) -> None:
    """Ends in the wrong order make no request, and the answer says so."""
    response = run(
        engine,
        "bookshop/Order.ByCustomer",
        EnteredValue("customer", "c1"),
        EnteredValue("placed_at", "2026-09-01", "between", "2026-08-01"),
    )

    assert (response.calls, response.returned, response.waste) == (0, 0, None)
    assert "no request is made" in response.notes[0]


def test_items_are_recognised_and_have_their_keys(engine: Engine) -> None:
    """A row says which entity it is and by which key it is found in the table."""
    response = run(engine, "bookshop/WholeOrder", EnteredValue("order_id", "o003"))

    assert [each.entity for each in response.items] == ["Line", "Line", "Order"]
    assert response.items[-1].key == {"pk": {"S": "ORDER#o003"}, "sk": {"S": "ORDER"}}


@pytest.mark.parametrize("case", CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)])
def test_the_code_of_a_run_finds_the_same(engine: Engine, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied and run as they are, the program for boto3 and the one for Tavola find what the page found."""
    id_, values, how, _ = case
    response = run(engine, id_, *values, **how)
    names: dict[str, Any] = {}
    printed: list[Any] = []

    with tavola.mock(engine=engine):
        exec(compile(response.code.boto3, "copied", "exec"), names)
    monkeypatch.setattr(tavola, "connect", lambda *_, **__: connect(engine))
    assert response.code.tavola is not None
    exec(compile(response.code.tavola, "copied", "exec"), {"print": printed.append})

    result = names["items"] if "items" in names else [names["item"]] if names["item"] else []
    assert result == [each.item for each in response.items]
    if id_.endswith("WholeOrder"):
        assert [each.order_id for each in (*printed[0].lines, printed[0].order)] == names_of(response)
    else:
        assert len([each for each in printed if each is not None]) == response.returned


def test_the_code_of_a_run_names_the_pattern(engine: Engine) -> None:
    """The copied Tavola code is Python that names the pattern and its values."""
    response = run(
        engine,
        "bookshop/Order.ByCustomer",
        EnteredValue("customer", "c1"),
        EnteredValue("placed_at", "2026-08-01T12:00:00Z", ">="),
        newest_first=True,
        limit=3,
    )

    assert response.code.tavola is not None
    expected = (
        "db.query(Order.ByCustomer(customer='c1').placed_at.gte("
        'datetime.fromisoformat("2026-08-01T12:00:00+00:00")), newest_first=True, limit=3)'
    )
    assert expected in response.code.tavola
    assert response.code.cli.startswith("aws dynamodb query")


def test_a_pattern_runs_in_the_past(engine: Engine) -> None:
    """A moment before the item was changed gives the item as it was."""
    clock = ManualClock()
    with stocked(clock) as own:
        own.call(
            "UpdateContinuousBackups",
            {
                "TableName": "bookshop",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        clock.advance(60)
        before = clock.now()
        clock.advance(60)
        with connect(own) as db:
            db.update(Order.Key(order_id="o001"), Order.note.set("changed"))

        then = run(own, "bookshop/Order.Key", EnteredValue("order_id", "o001"), as_of=str(before))
        now = run(own, "bookshop/Order.Key", EnteredValue("order_id", "o001"))

    assert now.items[0].item["note"] == {"S": "changed"}
    assert then.items[0].item["note"] == {"S": "x" * 200}


def test_the_matrix_shows_which_index_serves_a_pattern(engine: Engine) -> None:
    """A declared pattern is on its index; a need nothing serves is red with its reason; an unused index is amber."""

    async def story() -> Any:
        async with shop_studio(engine) as studio:
            return api.pattern_coverage(studio, NoParameters())

    response = asyncio.run(story())
    shop = response.tables[0]
    columns = [column.index for column in shop.columns]
    rows = {row.place: row for row in shop.rows}

    assert columns == [None, "by_customer", "by_state", "by_day", "nobody", "by_price"]
    assert rows["Order.ByCustomer"].cells[1].state == "serves"
    assert rows["Order.Key"].cells[0].state == "serves"
    assert rows["new orders of a customer"].state == "filtered"
    assert rows["new orders of a customer"].cells[1].state == "filters"
    assert rows["orders by note"].state == "unserved"
    assert "No key serves Order by note" in rows["orders by note"].reason
    assert "Add an index with partition key note" in rows["orders by note"].remedy
    assert all(cell.state == "" for cell in rows["orders by note"].cells)
    assert rows["dear orders"].state == "scanned"
    assert rows["Order: place an order"].cells[1].state == "writes"
    unused = [column.index for column in shop.columns if column.unused]
    assert unused == ["nobody"]
    assert (response.patterns, response.unserved, response.unused) == (12, 2, 1)
    assert response.served == 10


def test_a_pattern_named_newest_first_runs_descending() -> None:
    """A pattern with "newest first" in its title runs in descending order without another declaration."""
    result = {each.summary.place: each.summary for each in list_patterns(design_of(support_desk))}

    assert result["Ticket.ByCustomer"].title.endswith("newest first")
    assert result["Ticket.ByCustomer"].descending
    assert not result["Ticket.Key"].descending
