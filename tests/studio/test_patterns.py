"""Access patterns: forms from the design, runs that tell what DynamoDB told, and the matrix."""

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
    with stocked() as found:
        yield found


def run(engine: Engine, id_: str, *values: EnteredValue, document: bool = False, **more: Any) -> PatternRun:
    async def story() -> PatternRun:
        async with shop_studio(engine, document=document) as studio:
            return await api.run_pattern(studio, RunPatternRequest(id_, values, **more))

    return asyncio.run(story())


def refused(engine: Engine, id_: str, *values: EnteredValue, **more: Any) -> str:
    with pytest.raises(RequestRefused) as told:
        run(engine, id_, *values, **more)
    return told.value.problem.code


def listed(engine: Engine) -> dict[str, DesignedPattern]:
    async def story() -> dict[str, DesignedPattern]:
        async with shop_studio(engine) as studio:
            found = await api.list_all_patterns(studio, PatternsRequest())
            return {each.id: each for each in found.patterns}

    return asyncio.run(story())


def names_of(told: PatternRun, attribute: str = "order_id") -> list[str]:
    return [next(iter(each.item[attribute].values())) for each in told.items]


def test_every_pattern_of_a_design_is_listed(engine: Engine) -> None:
    """Keys, queries, collections, needs and writes, each with its table, its key and its rates."""
    told = listed(engine)

    assert [each.place for each in told.values()] == [
        "Order.Key", "Order.ByCustomer", "Order.ByState", "Order.ByDay", "Order: place an order", "Order: ship it",
        "Line.Key", "Line.ByPrice", "WholeOrder", "Reading.Key", "Reading.Of",
        "new orders of a customer", "orders by note", "dear orders",
    ]  # fmt: skip
    state = told["bookshop/Order.ByState"]
    assert (state.kind, state.index, state.shards, state.per_second, state.items) == (
        "query",
        "by_state",
        3,
        1,
        10,
    )
    assert state.key == ("GSI2PK = STATE#{state}#{shard}", "GSI2SK = {placed_at}#{order_id}")
    assert not told["bookshop/Order: ship it"].runnable
    assert told["bookshop/Order: ship it"].operation == "TransactWriteItems"
    assert "No key serves it" in told["bookshop/orders by note"].reason


def test_a_form_is_made_of_a_patterns_parameters(engine: Engine) -> None:
    """Each parameter has a kind, whether it must be given, its operators and its choices."""
    told = listed(engine)

    def form(id_: str) -> list[tuple[str, str, bool]]:
        return [(each.name, each.kind, each.required) for each in told[id_].parameters]

    assert form("bookshop/Order.ByState") == [
        ("state", "choice", True), ("placed_at", "datetime", False), ("order_id", "text", False),
    ]  # fmt: skip
    assert told["bookshop/Order.ByState"].parameters[0].choices == ("new", "paid", "sent")
    assert "begins_with" in told["bookshop/Order.ByState"].parameters[2].operators
    assert "begins_with" not in told["bookshop/Order.ByState"].parameters[1].operators
    assert form("bookshop/Line.Key") == [("order_id", "text", True), ("number", "int", True)]
    assert form("bookshop/Line.ByPrice") == [("order_id", "text", True), ("price", "decimal", False)]
    constant = told["bookshop/new orders of a customer"].parameters[1]
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
    """The same items in the same order, and at each place the units that ReturnConsumedCapacity=INDEXES tells."""
    id_, values, how, asked = case
    with connect(engine) as db, db.measured() as spent:
        if ".Key" in id_:
            one = db.get(asked, **how)
            expected = [] if one is None else [one]
        elif id_.endswith("WholeOrder"):
            whole = db.collect(asked)
            expected = [*whole.lines, whole.order]
        else:
            expected = list(db.query(asked, **how))

    told = run(engine, id_, *values, document=document, **how)

    spelt = "order_id" if "readings" not in id_ else "at"
    assert names_of(told, spelt) == [str(getattr(each, spelt)) for each in expected]
    places = {(each.table, each.index): each.read for each in told.units}
    counted: dict[tuple[str, str | None], float] = {
        (name, None): units.reads for name, units in spent.tables.items() if units.reads
    }
    counted |= {(name, at): n for name, units in spent.tables.items() for at, n in units.indexes.items()}
    assert places == counted
    assert (told.read_units, told.calls) == (spent.reads, spent.calls)
    assert told.code.tavola is not None


def test_units_are_those_that_the_engine_says_of_each_call(engine: Engine) -> None:
    """Asked again with the very requests that a run tells, the engine says the same units, call by call."""
    told = run(engine, "bookshop/Order.ByState", EnteredValue("state", "new"), limit=5)

    assert [request.operation for request in told.requests] == ["Query", "Query", "Query", "BatchGetItem"]
    for request in told.requests:
        answer = engine.call(request.operation, {**request.body, "ReturnConsumedCapacity": "INDEXES"})
        capacity = answer["ConsumedCapacity"]
        capacity = capacity[0] if isinstance(capacity, list) else capacity
        said = {None: capacity["Table"]["CapacityUnits"]} if capacity["Table"]["CapacityUnits"] else {}
        said |= {n: each["CapacityUnits"] for n, each in capacity.get("GlobalSecondaryIndexes", {}).items()}
        assert {units.index: units.read for units in request.calls[0].units} == said
    assert told.waste == told.read / told.returned
    assert told.returned == 5
    assert any("fetched from the table" in line for line in told.why)
    assert any("3 shards" in line for line in told.why)


def test_a_filter_is_told_with_what_it_threw_away(engine: Engine) -> None:
    """A need whose key leaves a condition to a filter says how much was read for each item that came back."""
    told = run(engine, "bookshop/new orders of a customer", EnteredValue("customer", "c0"), limit=100)

    assert (told.returned, told.read, told.waste) == (5, 15, 3.0)
    assert told.requests[0].filter == 'state = "new"'
    assert any("threw away 10 of 15" in line for line in told.why)


def test_a_need_is_asked_as_its_route_says(engine: Engine) -> None:
    """A declared scan is a scan, and what it reads is said."""
    told = run(engine, "bookshop/dear orders", EnteredValue("total", "14"))

    assert [request.operation for request in told.requests] == ["Scan"]
    assert told.returned == 4
    assert told.read == 180
    assert told.why[0].startswith("A scan of bookshop reads every item")


def test_money_is_that_of_the_region_on_demand(engine: Engine) -> None:
    """A million runs cost their units at the book's price, and the book is named."""
    told = run(engine, "bookshop/Order.Key", EnteredValue("order_id", "o001"))

    assert told.usd_per_million == "0.0625"  # half a unit, at 0.125 for a million
    assert told.book.startswith("us-east-1")
    assert told.forecast.usd_per_million == "0.0625"
    assert "It took the 0.5 units that the design foretells." in told.why


def test_the_forecast_is_what_tavola_cost_says(engine: Engine) -> None:
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
                told = api.pattern_forecast(studio, PatternRequest(each.id))
                bill = bills.get(each.title)
                if each.per_second is None or bill is None:
                    assert told.usd_per_month is None
                    continue
                assert told.read + told.write == pytest.approx(bill.units)
                assert told.usd_per_month == f"{bill.amount:f}"

    asyncio.run(story())


def test_examples_are_of_items_that_are_there(engine: Engine) -> None:
    """Every pattern that can be run has values from the table, and with them it finds something."""

    async def story() -> None:
        async with shop_studio(engine) as studio:
            for each in (await api.list_all_patterns(studio, PatternsRequest())).patterns:
                if not each.runnable or each.place == "Order.ByDay":
                    continue
                told = await api.pattern_example(studio, PatternRequest(each.id))
                values = tuple(
                    EnteredValue(parameter.name, told.values[parameter.name])
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
def test_what_cannot_be_asked_is_refused(engine: Engine, id_: str, values: Any, code: str) -> None:
    """Each refusal has a code of its own, and nothing is asked of the table."""
    assert refused(engine, id_, *values) == code


def test_a_stretch_that_holds_nothing_asks_nothing(engine: Engine) -> None:
    """Ends in the wrong order make no request, and the answer says so."""
    told = run(
        engine,
        "bookshop/Order.ByCustomer",
        EnteredValue("customer", "c1"),
        EnteredValue("placed_at", "2026-09-01", "between", "2026-08-01"),
    )

    assert (told.calls, told.returned, told.waste) == (0, 0, None)
    assert "no request is made" in told.notes[0]


def test_items_are_recognised_and_have_their_keys(engine: Engine) -> None:
    """A row says which entity it is and by which key it is found in the table."""
    told = run(engine, "bookshop/WholeOrder", EnteredValue("order_id", "o003"))

    assert [each.entity for each in told.items] == ["Line", "Line", "Order"]
    assert told.items[-1].key == {"pk": {"S": "ORDER#o003"}, "sk": {"S": "ORDER"}}


@pytest.mark.parametrize("case", CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)])
def test_the_code_of_a_run_finds_the_same(engine: Engine, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied and run as they are, the program for boto3 and the one for Tavola find what the page found."""
    id_, values, how, _ = case
    told = run(engine, id_, *values, **how)
    names: dict[str, Any] = {}
    printed: list[Any] = []

    with tavola.mock(engine=engine):
        exec(compile(told.code.boto3, "copied", "exec"), names)
    monkeypatch.setattr(tavola, "connect", lambda *_, **__: connect(engine))
    assert told.code.tavola is not None
    exec(compile(told.code.tavola, "copied", "exec"), {"print": printed.append})

    found = names["items"] if "items" in names else [names["item"]] if names["item"] else []
    assert found == [each.item for each in told.items]
    if id_.endswith("WholeOrder"):
        assert [each.order_id for each in (*printed[0].lines, printed[0].order)] == names_of(told)
    else:
        assert len([each for each in printed if each is not None]) == told.returned


def test_the_code_of_a_run_names_the_pattern(engine: Engine) -> None:
    """The copied Tavola code is Python that names the pattern and its values."""
    told = run(
        engine,
        "bookshop/Order.ByCustomer",
        EnteredValue("customer", "c1"),
        EnteredValue("placed_at", "2026-08-01T12:00:00Z", ">="),
        newest_first=True,
        limit=3,
    )

    assert told.code.tavola is not None
    wanted = (
        "db.query(Order.ByCustomer(customer='c1').placed_at.gte("
        'datetime.fromisoformat("2026-08-01T12:00:00+00:00")), newest_first=True, limit=3)'
    )
    assert wanted in told.code.tavola
    assert told.code.cli.startswith("aws dynamodb query")


def test_the_past_is_asked_as_it_was(engine: Engine) -> None:
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


def test_the_matrix_says_what_serves_what(engine: Engine) -> None:
    """A declared pattern is on its index; a need nothing serves is red with its reason; an unused index is amber."""

    async def story() -> Any:
        async with shop_studio(engine) as studio:
            return api.pattern_coverage(studio, NoParameters())

    told = asyncio.run(story())
    shop = told.tables[0]
    columns = [column.index for column in shop.columns]
    rows = {row.place: row for row in shop.rows}

    assert columns == [None, "by_customer", "by_state", "by_day", "nobody", "by_price"]
    assert rows["Order.ByCustomer"].cells[1].state == "serves"
    assert rows["Order.Key"].cells[0].state == "serves"
    assert rows["new orders of a customer"].state == "filtered"
    assert rows["new orders of a customer"].cells[1].state == "filters"
    assert rows["orders by note"].state == "unserved"
    assert "no key finds Order by note" in rows["orders by note"].reason
    assert "add an index with partition key note" in rows["orders by note"].remedy
    assert all(cell.state == "" for cell in rows["orders by note"].cells)
    assert rows["dear orders"].state == "scanned"
    assert rows["Order: place an order"].cells[1].state == "writes"
    unused = [column.index for column in shop.columns if column.unused]
    assert unused == ["nobody"]
    assert (told.patterns, told.unserved, told.unused) == (12, 2, 1)
    assert told.served == 10


def test_a_pattern_that_is_called_newest_first_is_asked_so() -> None:
    """Its title is a promise; nobody need declare the direction beside it."""
    found = {each.summary.place: each.summary for each in list_patterns(design_of(support_desk))}

    assert found["Ticket.ByCustomer"].title.endswith("newest first")
    assert found["Ticket.ByCustomer"].descending
    assert not found["Ticket.Key"].descending
