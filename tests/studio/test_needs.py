"""Needs: whatever conditions a design declares, a run gives the items that meet them and no other."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, cast

import pytest

import tavola
from tavola import (
    AccessPattern,
    Attr,
    Entity,
    Given,
    Gsi,
    Need,
    PrimaryKey,
    Query,
    Route,
    Sort,
    Table,
    connect,
    connect_async,
    sort,
)
from tavola.engine import Engine
from tavola.model.document import Design, design_of
from tavola.studio.access_patterns import runs
from tavola.studio.access_patterns.catalogue import DesignedPattern
from tavola.studio.access_patterns.requests import EnteredValue
from tavola.studio.api import patterns as api
from tavola.studio.api.patterns import (
    PatternRun,
    PatternsRequest,
    RunPatternRequest,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio, TablesLocation
from tavola.studio.types import NoParameters
from tests.studio.bookshop import Numbers, Order, Reading, Shop, orders

FIRST = datetime(2026, 8, 1, 12, tzinfo=UTC)


class Doors(Table, name="doors"):
    """Who came when."""

    by_hour = Gsi(pk="GSI1PK", sk="GSI1SK", projection="KEYS_ONLY")
    by_guest = Gsi(pk="GSI2PK", sk="GSI2SK", projection=("at",))


class Visit(Entity, table=Doors):
    """A guest at a door."""

    door: Attr[str]
    guest: Attr[str]
    at: Attr[datetime]

    class Key(PrimaryKey["Visit"], pk="DAY#{at:day}", sk="{at}#{guest}"):
        at: datetime
        guest: str

    class ByHour(Query["Visit"], on=Doors.by_hour, pk="DOOR#{door}", sk="{at:hour}#{guest}", hydrate=True):
        door: str
        at: Sort[datetime] = sort()

    class ByGuest(Query["Visit"], on=Doors.by_guest, pk="GUEST#{guest}", sk="{at:hour}", hydrate=True):
        guest: str
        at: Sort[datetime] = sort()


VISITS = [
    Visit(door=f"d{number % 2}", guest=f"g{number % 3}", at=FIRST + timedelta(minutes=17 * number))
    for number in range(60)
]
ORDERS = [each for each in orders() if isinstance(each, Order)]
READINGS = [each for each in orders() if isinstance(each, Reading)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    result = Engine.open()
    with connect(result) as db:
        db.create_tables(Shop, Numbers, Doors)
        db.put_many(orders())
        db.put_many(VISITS)
    yield result
    result.close()


def studio(db: Any, *needs: Need) -> Studio:
    design = design_of(Shop, Numbers, Doors)
    return Studio(
        db=db,
        where=TablesLocation("memory", "memory:", "us-east-1"),
        design=Design(design.tables, design.views, needs),
    )


def run(engine: Engine, need: Need, table: str, values: Mapping[str, str], **more: Any) -> PatternRun:
    async def story() -> PatternRun:
        async with connect_async(engine) as db:
            inputs = [EnteredValue(name, start, until=until)
                     for name, (start, _, until) in ((n, v.partition(" .. ")) for n, v in values.items())]  # fmt: skip
            return await api.run_pattern(
                studio(db, need), RunPatternRequest(f"{table}/{need.name}", tuple(inputs), **more)
            )

    return asyncio.run(story())


def told(need: Need) -> DesignedPattern:
    async def story() -> DesignedPattern:
        async with connect_async("memory:") as db:
            result = await api.list_all_patterns(studio(db, need), PatternsRequest())
            return next(each for each in result.patterns if each.kind == "need")

    return asyncio.run(story())


def refused(engine: Engine, need: Need, table: str, values: Mapping[str, str]) -> str:
    with pytest.raises(RequestRefused) as result:
        run(engine, need, table, values)
    return result.value.problem.code


def attributes(ran: PatternRun, name: str) -> list[str]:
    return [next(iter(each.item[name].values())) for each in ran.items]


_MEETS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
PAIRS = [pair for pair in product(_MEETS, _MEETS) if pair != ("=", "=")]


@pytest.mark.parametrize("pair", PAIRS, ids=[" ".join(pair) for pair in PAIRS])
def test_two_conditions_on_a_sort_field_both_hold(engine: Engine, pair: tuple[str, str]) -> None:
    """A key takes one condition: what the other leaves out is not in the answer, boundaries and all."""
    ends = (FIRST + timedelta(hours=16), FIRST + timedelta(hours=48))  # both are orders of c0
    where: tuple[str | Given, ...] = ("customer", *(Given("placed_at", cast(Any, each)) for each in pair))
    need = Need("between two", Order, where)
    names = [parameter.name for parameter in told(need).parameters][1:]
    values = dict(zip(names, (end.isoformat() for end in ends), strict=True))

    ran = run(engine, need, "bookshop", {"customer": "c0", **values}, limit=100)

    expected = [
        each.order_id for each in ORDERS
        if each.customer == "c0"
        and all(_MEETS[word](each.placed_at, end) for word, end in zip(pair, ends, strict=True))
    ]  # fmt: skip
    assert attributes(ran, "order_id") == expected


@pytest.mark.parametrize("pair", [(">", "<"), (">=", "<"), (">", "<="), (">", ">="), ("<", "<=")])
@pytest.mark.parametrize("route", [None, Route("query", None, (Given("meter"),))], ids=["key", "route"])
def test_numbers_are_compared_as_numbers(engine: Engine, pair: tuple[str, str], route: Route | None) -> None:
    """9 comes before 13, also where a route names attributes and no field."""
    conditions = tuple(Given("at", cast(Any, each)) for each in pair)
    if route is not None:
        route = Route("query", None, (Given("meter"), *conditions))
    need = Need("readings", Reading, ("meter", *conditions), route=route)
    values = {f"at {pair[0]}": "9", f"at {pair[1]}": "13"}

    ran = run(engine, need, "readings", {"meter": "1", **values}, limit=100)

    expected = [
        str(each.at) for each in READINGS
        if each.meter == 1 and _MEETS[pair[0]](each.at, 9) and _MEETS[pair[1]](each.at, 13)
    ]  # fmt: skip
    assert attributes(ran, "at") == expected


def test_a_range_queries_every_partition_it_overlaps(engine: Engine) -> None:
    """With one partition per day, each day of a range is queried, with the sort key limited at both ends."""
    start, end = FIRST + timedelta(minutes=17 * 5), FIRST + timedelta(minutes=17 * 55)
    need = Need("visits since", Visit, (Given("at", "between"),))

    ran = run(engine, need, "doors", {"at": f"{start.isoformat()} .. {end.isoformat()}"}, limit=100)

    assert len(ran.requests) == 2
    assert len(ran.items) == 51


def test_an_inexact_key_condition_is_checked_on_the_items(engine: Engine) -> None:
    """If a key omits minutes, results are filtered exactly; if no entry has them, the need is refused."""
    after = FIRST + timedelta(minutes=17 * 31)
    of_guest = Need("visits of a guest", Visit, ("guest", Given("at", ">")))
    at_door = Need("visits at a door", Visit, ("door", Given("at", ">")))

    ran = run(engine, of_guest, "doors", {"guest": "g1", "at": after.isoformat()}, limit=100)

    expected = [each for each in VISITS if each.guest == "g1" and each.at > after]
    assert len(attributes(ran, "at")) == len(expected)
    assert any("filtered out after being read" in line for line in ran.why)
    assert refused(engine, at_door, "doors", {"door": "d1", "at": after.isoformat()}) == "parameter-rough"


@pytest.mark.parametrize("door", ["d0", "d1"])
def test_a_fetched_item_is_compared_when_it_is_there(engine: Engine, door: str) -> None:
    """Entries of keys alone are fetched, and what they did not tell is compared then."""
    after = FIRST + timedelta(minutes=17 * 31)

    async def story() -> PatternRun:
        async with connect_async(engine) as db:
            request = RunPatternRequest(
                "doors/Visit.ByHour",
                (EnteredValue("door", door), EnteredValue("at", after.isoformat(), ">")),
                limit=100,
            )
            return await api.run_pattern(studio(db), request)

    ran = asyncio.run(story())

    with connect(engine) as db:
        assert len(ran.items) == len(list(db.query(Visit.ByHour(door=door).at.gt(after))))
    assert len(ran.items) == len([each for each in VISITS if each.door == door and each.at > after])


BATCHES = [
    (Need("some", Order, Given("order_id", "in")), {"order_id": "o003, o001,o003"}),
    (Need("some", Order, "order_id", route=Route("batch_get", keys=(Given("pk"), Given("sk")))),
     {"pk": "ORDER#o001, ORDER#o003", "sk": "ORDER"}),
    (Need("some", Order, Given("order_id", "in"), route=Route("batch_get")), {"order_id": "o001,o003"}),
]  # fmt: skip


@pytest.mark.parametrize("case", BATCHES, ids=["key", "route", "route without keys"])
def test_a_batch_get_requests_every_key(engine: Engine, case: tuple[Need, dict[str, str]]) -> None:
    """Several values are several keys of one request, each once, and each is paid by itself."""
    need, values = case
    assert told(need).operation == "BatchGetItem"

    ran = run(engine, need, "bookshop", values)

    assert [request.operation for request in ran.requests] == ["BatchGetItem"]
    assert sorted(attributes(ran, "order_id")) == ["o001", "o003"]
    assert (ran.read, ran.read_units, ran.waste) == (2, 1.0, 1.0)


def test_values_of_a_batch_are_keys_in_their_order(engine: Engine) -> None:
    """The first of each attribute are one key, the second the next; what does not come out even is refused."""
    need = Need("some", Order, (), route=Route("batch_get", keys=(Given("pk"), Given("sk"))))

    ran = run(engine, need, "bookshop", {"pk": "ORDER#o001,ORDER#o002", "sk": "ORDER,LINE#0001"})

    assert sorted(attributes(ran, "sk")) == ["LINE#0001", "ORDER"]
    assert refused(engine, need, "bookshop", {"pk": "a,b,c", "sk": "ORDER,LINE"}) == "parameter-refused"


def test_several_partitions_are_merged(engine: Engine) -> None:
    """Each value of an "in" is a request, and their answers are put in one order."""
    need = Need("of some", Order, Given("customer", "in"))
    route = Need("of some", Order, (), route=Route("query", "by_customer", (Given("GSI1PK", "in"),)))

    ran = run(engine, need, "bookshop", {"customer": "c0,c1"}, limit=4, newest_first=True)
    routed = run(engine, route, "bookshop", {"GSI1PK": "CUSTOMER#c0,CUSTOMER#c1"}, limit=4, newest_first=True)

    assert attributes(ran, "order_id") == ["o057", "o056", "o053", "o052"]
    assert attributes(routed, "order_id") == ["o057", "o056", "o053", "o052"]


def test_a_local_index_is_read_consistently_where_a_route_names_it(engine: Engine) -> None:
    """The consistency that the page offers is the one requested."""
    need = Need(
        "lines", Order, access=AccessPattern("lines", consistent=True),
        route=Route("query", "by_price", (Given("pk"),)),
    )  # fmt: skip
    assert told(need).consistency

    ran = run(engine, need, "bookshop", {"pk": "ORDER#o001"}, consistent=True)

    assert ran.requests[0].body["ConsistentRead"] is True


@pytest.mark.parametrize(
    ("need", "values", "code"),
    [
        (Need("x", Order, Given("customer", "in")), {"customer": " , ,"}, "parameter-missing"),
        (
            Need("x", Order, (Given("customer", "in"), Given("placed_at", "in"))),
            {"customer": ",".join(map(str, range(2000))), "placed_at": ",".join(["2026-08-01"] * 2000)},
            "too-many-requests",
        ),
        (
            Need("x", Order, (Given("customer", "in"),)),
            {"customer": ",".join(map(str, range(20_000)))},
            "too-many-requests",
        ),
        (Need("x", Reading, ("meter", Given("at", ">"))), {"meter": "1", "at": "1e999999999"}, "parameter-malformed"),
        (Need("x", Reading, ("meter", Given("at", ">"))), {"meter": "1_0", "at": "1"}, "parameter-malformed"),
        (Need("x", Reading, ("meter", Given("at", ">"))), {"meter": "1.5", "at": "1"}, "parameter-malformed"),
        (
            Need("x", Order, ("customer",), route=Route("scan", filters=(Given("total", ">="),))),
            {"total": "1e999999999"},
            "parameter-malformed",
        ),
    ],
)  # fmt: skip
def test_invalid_values_are_refused(engine: Engine, need: Need, values: dict[str, str], code: str) -> None:
    """Empty, oversized and non-numeric values are refused before any request."""
    table = "readings" if need.entities == ("Reading",) else "bookshop"
    assert refused(engine, need, table, values) == code


def test_a_limit_counts_returned_items(engine: Engine) -> None:
    """With a filter a call looks at enough items to give some: not one call for each item that is thrown away."""
    need = Need("new ones", Order, ("customer", Given("state", "=", "new")), "placed_at")

    ran = run(engine, need, "bookshop", {"customer": "c0"}, limit=2)

    assert (ran.returned, ran.calls, ran.more) == (2, 1, True)
    assert any("there may be more" in line for line in ran.why)


def test_a_run_ends_after_so_many_calls(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan that finds nothing is not read for ever, and that it ended there is said."""
    monkeypatch.setattr(runs, "CALLS_MAX", 2)
    monkeypatch.setattr(runs, "FILTERED_READ_MIN", 10)
    need = Need("none", Order, (), route=Route("scan", filters=(Given("total", ">="),)))

    ran = run(engine, need, "bookshop", {"total": "9999"}, limit=5)

    assert (ran.calls, ran.returned, ran.more) == (2, 0, True)
    assert any("limit of 2 calls" in line for line in ran.why)
    monkeypatch.setattr(runs, "RUN_CALLS_MAX", 1)
    several = Need("of some", Order, Given("customer", "in"))
    whole = run(engine, several, "bookshop", {"customer": "c0,c1"})
    assert (whole.calls, whole.more) == (1, True)


def test_a_need_without_a_route_has_no_forecast(engine: Engine) -> None:
    """Without a route nothing is foretold, and a run does not say that nothing was."""
    need = Need(
        "of one", Order, "customer", access=AccessPattern("of one", per_second=1, items=20, item_bytes=400)
    )

    ran = run(engine, need, "bookshop", {"customer": "c0"})

    assert ran.forecast.units == ()
    assert any("No estimate" in line for line in ran.why)
    assert not any("foretells 0" in line for line in ran.why)


def test_a_route_with_a_filter_is_amber_in_the_matrix() -> None:
    """The row and the cell of its index say the same, whether a key or a route leaves a condition to a filter."""
    route = Route("query", "by_customer", (Given("GSI1PK"),), (Given("state"),))

    async def story() -> Any:
        async with connect_async("memory:") as db:
            return api.pattern_coverage(
                studio(db, Need("of a state", Order, (), route=route)), NoParameters()
            )

    table = asyncio.run(story()).tables[0]
    row = next(row for row in table.rows if row.place == "of a state")
    assert (row.state, row.cells[1].state) == ("filtered", "filters")
    assert "with a filter on state" in row.cells[1].text


CODES: list[tuple[Need, str, dict[str, str], dict[str, Any]]] = [
    (Need("x", Order, Given("customer", "in")), "bookshop", {"customer": "c0,c1"}, {"limit": 7}),
    (Need("x", Reading, Given("meter", "in")), "readings", {"meter": "0,1"}, {"newest_first": True, "limit": 9}),
    (Need("x", Order, Given("order_id", "in")), "bookshop", {"order_id": "o001,o002"}, {}),
    (Need("x", Order, ("customer", Given("state", "=", "new"))), "bookshop", {"customer": "c0"}, {"limit": 3}),
    (Need("x", Order, "order_id"), "bookshop", {"order_id": "o001"}, {}),
]  # fmt: skip


@pytest.mark.parametrize("case", CODES, ids=["merged", "numbers", "batch", "filter", "get"])
def test_the_boto3_code_of_a_need_finds_the_same(engine: Engine, case: Any) -> None:
    """Copied and run as it is, the program finds what the page found, in its order."""
    need, table, values, how = case
    ran = run(engine, need, table, values, **how)
    names: dict[str, Any] = {}

    with tavola.mock(engine=engine):
        exec(compile(ran.code.boto3, "copied", "exec"), names)

    result = names["items"] if "items" in names else [names["item"]]
    assert result == [each.item for each in ran.items]
