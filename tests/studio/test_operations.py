"""Operations: a page's numbers are those of the calls that were made, by window, table and operation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from tavola import connect_async
from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.protocol.faults import Fault
from tavola.server.listener import running
from tavola.studio.api.expensive_requests import (
    ExpensiveRequestsFilter,
    FailedCallsFilter,
    LimitsRequest,
    ReplayRequest,
    SampleReadsRequest,
    list_expensive_requests,
    list_failed_calls,
    list_limits,
    make_sample_reads,
    replay_read,
)
from tavola.studio.api.operations import OperationsRequest, summarise_operations
from tavola.studio.endpoint import encode_response
from tavola.studio.monitoring import Monitor, observe_connection
from tavola.studio.monitoring.counters import CELLS_MAX, sum_slices
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio, TablesLocation

R = TypeVar("R")


def _table(name: str, **more: Any) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "by")],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "ByWhom",
                "KeySchema": [{"AttributeName": "by", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                **({"ProvisionedThroughput": more["ProvisionedThroughput"]} if more else {}),
            }
        ],
        **(more or {"BillingMode": "PAY_PER_REQUEST"}),
    }


ORDERS = _table("Orders")
STOCK = _table("Stock", ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 5})
ITEM = {"pk": {"S": "o#1"}, "by": {"S": "ann"}, "text": {"S": "x" * 3000}}


class Bench:
    """An observed engine with two tables, and a studio over it; no request has been recorded yet."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock(1_700_000_000.0)
        self.engine = Engine.open(clock=self.clock, **settings)
        self.engine.call("CreateTable", ORDERS)
        self.engine.call("CreateTable", STOCK)
        self.watch = Monitor(self.clock)
        self.engine.observe(self.watch)
        self.studio = Studio(
            db=connect_async(self.engine),
            where=TablesLocation("memory", "memory", "us-east-1"),
            clock=self.clock,
            engine=self.engine,
            monitor=self.watch,
        )

    def call(self, operation: str, request: dict[str, Any]) -> None:
        """Ask the engine, whatever comes of it."""
        try:
            self.engine.call(operation, request)
        except Fault:
            pass


def run(answer: Awaitable[R]) -> R:
    """Wait for an answer."""

    async def waited() -> R:
        return await answer

    return asyncio.run(waited())


@pytest.fixture
def bench() -> Any:
    made = Bench()
    yield made
    made.engine.close()


def test_a_window_has_requests_units_and_faults(bench: Bench) -> None:
    """Totals, rows, series and places are of the same calls; the units are those that were answered."""
    bench.call("PutItem", {"TableName": "Orders", "Item": ITEM})
    bench.call(
        "PutItem", {"TableName": "Orders", "Item": ITEM, "ConditionExpression": "attribute_not_exists(pk)"}
    )
    bench.clock.advance(3)
    for _ in range(4):
        bench.call("GetItem", {"TableName": "Stock", "Key": {"pk": {"S": "s"}}})

    response = summarise_operations(bench.studio, OperationsRequest(window_s=60))

    assert response.seen == "engine"
    assert (response.totals.requests, response.totals.faults, response.totals.conditions) == (6, 1, 1)
    assert response.totals.codes == {"ConditionalCheckFailedException": 1}
    assert [(row.operation, row.tables, row.totals.requests) for row in response.rows] == [
        ("GetItem", ("Stock",), 4),
        ("PutItem", ("Orders",), 2),
    ]
    assert response.series.times[-1] == int(bench.clock.now())
    assert (response.series.requests[-1], response.series.requests[-4]) == (4, 2)
    assert sum(response.series.requests) == 6
    assert len(response.series.times) == 60
    assert {(use.table, use.index): (use.reads, use.writes) for use in response.places} == {
        ("Orders", None): (0.0, 3.0),
        ("Orders", "ByWhom"): (0.0, 3.0),
        ("Stock", None): (2.0, 0.0),
    }
    assert response.places[0].peak_writes == 3.0
    assert response.totals.p50_ms is not None
    assert response.totals.p999_ms is not None
    assert response.totals.p50_ms <= response.totals.p999_ms <= response.totals.slowest_ms * 1.02
    assert (response.tables, response.operations) == (("Orders", "Stock"), ("GetItem", "PutItem"))


def test_a_table_and_an_operation_narrow_everything_but_the_choice(bench: Bench) -> None:
    """A transaction over two tables is counted once, and found under both."""
    write = {"Put": {"TableName": "Orders", "Item": ITEM}}
    other = {"Put": {"TableName": "Stock", "Item": ITEM}}
    bench.call("TransactWriteItems", {"TransactItems": [write, other]})
    bench.call("GetItem", {"TableName": "Stock", "Key": {"pk": {"S": "s"}}})

    whole = summarise_operations(bench.studio, OperationsRequest(window_s=60))
    orders = summarise_operations(bench.studio, OperationsRequest(window_s=60, table="Orders"))
    gets = summarise_operations(bench.studio, OperationsRequest(window_s=60, operation="GetItem"))

    assert whole.totals.requests == 2
    assert [(row.operation, row.tables) for row in orders.rows] == [
        ("TransactWriteItems", ("Orders", "Stock"))
    ]
    assert {use.table for use in orders.places} == {"Orders"}
    assert gets.totals.requests == 1
    assert gets.operations == whole.operations


def test_a_window_forgets_what_came_before_it(bench: Bench) -> None:
    """An hour later ten minutes are empty, and six hours are not."""
    bench.call("GetItem", {"TableName": "Stock", "Key": {"pk": {"S": "s"}}})
    bench.clock.advance(3600)

    assert summarise_operations(bench.studio, OperationsRequest(window_s=600)).totals.requests == 0
    assert summarise_operations(bench.studio, OperationsRequest(window_s=21_600)).totals.requests == 1
    assert summarise_operations(bench.studio, OperationsRequest(window_s=10**9)).window_s == 21_600


def test_an_expensive_request_is_explained_and_can_be_repeated(bench: Bench) -> None:
    """A scan with a filter is found, explained, replayed, and its units are those of the first time."""
    for place in range(30):
        bench.call("PutItem", {"TableName": "Orders", "Item": {**ITEM, "pk": {"S": f"o#{place}"}}})
    scan = {
        "TableName": "Orders",
        "FilterExpression": "#b = :b",
        "ExpressionAttributeNames": {"#b": "by"},
        "ExpressionAttributeValues": {":b": {"S": "nobody"}},
    }
    bench.call("Scan", {**scan, "ReturnConsumedCapacity": "TOTAL"})

    result = run(list_expensive_requests(bench.studio, ExpensiveRequestsFilter()))
    first = result.requests[0]
    again = run(replay_read(bench.studio, ReplayRequest(first.operation, first.request)))

    assert (first.operation, first.request, first.replayable) == ("Scan", scan, True)
    assert any("scan is charged for every item" in why for why in first.why)
    assert any("Filters apply after reading" in why for why in first.why)
    assert again.problem is None
    assert (again.reads, again.count, again.scanned) == (first.units, 0, 30)
    puts = [each for each in result.requests if each.operation == "PutItem"]
    assert puts[0].request["Item"] == {"pk": "S, 3 bytes", "by": "S, 3 bytes", "text": "S, 3,000 bytes"}
    assert not puts[0].replayable
    assert any("are for 1 index (ByWhom)" in why for why in puts[0].why)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("DeleteItem", {"TableName": "Orders", "Key": {"pk": {"S": "o#1"}}}),
        ("ExecuteStatement", {"Statement": "DELETE FROM Orders WHERE pk = 'o#1'"}),
        ("DeleteTable", {"TableName": "Orders"}),
    ],
)
def test_a_write_is_not_made_again(bench: Bench, operation: str, request_: dict[str, Any]) -> None:
    """Whatever it is called, nothing that changes something is replayed."""
    bench.call("PutItem", {"TableName": "Orders", "Item": ITEM})

    with pytest.raises(RequestRefused, match="Only reads"):
        run(replay_read(bench.studio, ReplayRequest(operation, request_)))

    assert bench.engine.call("GetItem", {"TableName": "Orders", "Key": {"pk": ITEM["pk"]}})["Item"] == ITEM


def test_a_replay_that_fails_reports_the_problem(bench: Bench) -> None:
    """The fault is part of the answer: the page shows it beside the request."""
    response = run(
        replay_read(bench.studio, ReplayRequest("GetItem", {"TableName": "Gone", "Key": {"pk": {"S": "x"}}}))
    )

    assert response.problem is not None
    assert response.problem.code == "ResourceNotFoundException"


def test_limits_are_what_is_provisioned_or_warm(bench: Bench) -> None:
    """A provisioned table has its units, one on demand what it is warm for, each index its own."""
    result = {
        (each.table, each.index): each for each in run(list_limits(bench.studio, LimitsRequest())).places
    }

    assert (result["Stock", None].kind, result["Stock", None].reads, result["Stock", None].writes) == (
        "provisioned",
        7.0,
        5.0,
    )
    assert result["Stock", "ByWhom"].reads == 7.0
    assert (result["Orders", None].kind, result["Orders", None].reads) == ("warm", 12_000.0)


def test_a_few_reads_show_something_and_change_nothing(bench: Bench) -> None:
    """Who has no traffic yet gets some."""
    bench.call("PutItem", {"TableName": "Orders", "Item": ITEM})

    made = run(make_sample_reads(bench.studio, SampleReadsRequest()))
    response = summarise_operations(bench.studio, OperationsRequest(window_s=60))

    assert made.tables == ("Orders", "Stock")
    assert made.calls > 4
    assert {row.operation for row in response.rows} >= {"GetItem", "Query", "Scan"}


def test_lost_races_are_listed_with_their_reasons(bench: Bench) -> None:
    """A cancelled transaction has the reason of each action; values of the request are not shown."""
    bench.call("PutItem", {"TableName": "Orders", "Item": ITEM})
    guarded = {"TableName": "Orders", "Item": ITEM, "ConditionExpression": "attribute_not_exists(pk)"}
    other = {"TableName": "Stock", "Item": ITEM}
    bench.call("TransactWriteItems", {"TransactItems": [{"Put": guarded}, {"Put": other}]})

    (row,) = run(list_failed_calls(bench.studio, FailedCallsFilter())).rows

    assert (row.code, row.reasons) == ("TransactionCanceledException", ("ConditionalCheckFailed", "None"))
    assert b"xxxx" not in encode_response(row)


def test_throttles_are_counted_also_where_a_batch_is_left_undone() -> None:
    """Throughput that is emulated refuses single calls with a fault, and a part of a batch without one."""
    bench = Bench(emulate="throughput")
    large = {**ITEM, "text": {"S": "x" * 200_000}}
    for place in range(20):
        bench.call("PutItem", {"TableName": "Stock", "Item": {**large, "pk": {"S": str(place)}}})
    some = {"Orders": [{"PutRequest": {"Item": ITEM}}], "Stock": [{"PutRequest": {"Item": large}}]}
    left = bench.engine.call("BatchWriteItem", {"RequestItems": some})["UnprocessedItems"]
    response = summarise_operations(bench.studio, OperationsRequest(window_s=60))
    bench.engine.close()

    rows = {row.operation: row.totals for row in response.rows}
    assert rows["PutItem"].throttles == rows["PutItem"].faults > 0
    assert list(left) == ["Stock"]
    assert (rows["BatchWriteItem"].throttles, rows["BatchWriteItem"].faults) == (1, 0)


def test_remotely_the_studios_own_calls_are_counted_with_their_units() -> None:
    """Over HTTP only the studio's own requests can be measured, and the response says so."""
    watch = Monitor()
    with Engine.open() as engine, running(engine) as where:
        engine.call("CreateTable", ORDERS)

        async def asked() -> Any:
            async with connect_async(where.url, region="us-east-1", account="000000000000") as plain:
                db = observe_connection(plain, watch)
                studio = Studio(db=db, where=TablesLocation("http", where.url, "us-east-1"), monitor=watch)
                put = await db.call("PutItem", {"TableName": "Orders", "Item": ITEM})
                with pytest.raises(Fault):
                    await db.call("GetItem", {"TableName": "Gone", "Key": {"pk": {"S": "x"}}})
                return put, summarise_operations(studio, OperationsRequest(window_s=60))

        put, response = asyncio.run(asked())

    assert put == {}
    assert response.seen == "studio"
    assert (response.totals.requests, response.totals.faults, response.totals.writes) == (2, 1, 6.0)
    assert {use.index for use in response.places} == {None, "ByWhom"}


def _elsewhere(watch: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Return the responses of calls over HTTP that a monitor observes."""
    with Engine.open() as engine, running(engine) as where:
        engine.call("CreateTable", ORDERS)

        async def asked() -> list[Any]:
            result: list[Any] = []
            async with connect_async(where.url, region="us-east-1", account="000000000000") as plain:
                db = observe_connection(plain, watch)
                for operation, request in calls:
                    try:
                        result.append(await db.call(operation, request))
                    except Fault as fault:
                        result.append(fault.code)
            return result

        return asyncio.run(asked())


def test_elsewhere_a_statement_that_writes_consumes_write_units() -> None:
    """The endpoint reports only a total; the statement decides whether these are write units."""
    watch = Monitor()
    _elsewhere(
        watch,
        [
            ("ExecuteStatement", {"Statement": "INSERT INTO \"Orders\" VALUE {'pk': 'o#1'}"}),
            ("ExecuteStatement", {"Statement": "SELECT * FROM \"Orders\" WHERE pk = 'o#1'"}),
        ],
    )

    tally = sum_slices(watch.metrics.view(60).summed, None, None).tally
    assert (tally.writes, tally.reads) == (1.0, 0.5)


def test_remotely_each_caller_gets_the_capacity_mode_it_requested() -> None:
    """Nothing, the total or the places; what is no mode is refused by the endpoint, as it would be without a watch."""
    put = {"TableName": "Orders", "Item": ITEM}

    nothing, told_none, total, places, refused = _elsewhere(
        Monitor(),
        [
            ("PutItem", put),
            *(
                ("PutItem", {**put, "ReturnConsumedCapacity": mode})
                for mode in ("NONE", "TOTAL", "INDEXES", "MORE")
            ),
        ],
    )

    assert nothing == told_none == {}
    assert set(total["ConsumedCapacity"]) == {"TableName", "CapacityUnits"}
    assert places["ConsumedCapacity"]["Table"] == {"CapacityUnits": 3.0}
    assert refused == "ValidationException"


def test_remotely_a_failing_monitor_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is answered, as it is where an engine has a guest that fails."""
    watch = Monitor()

    def broken(*told: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(watch, "note", broken)

    answers = _elsewhere(watch, [("PutItem", {"TableName": "Orders", "Item": ITEM})] * 2)

    assert answers == [{}, {}]


def test_calls_counted_without_their_kind_are_reported(bench: Bench) -> None:
    """With too many kinds of calls the total is correct, and the response says how many are without a kind."""
    calls = CELLS_MAX + 40
    for place in range(calls):
        bench.call("GetItem", {"TableName": f"Table{place}", "Key": {"pk": {"S": "x"}}})

    response = summarise_operations(bench.studio, OperationsRequest(window_s=60))
    one = summarise_operations(bench.studio, OperationsRequest(window_s=60, table="Table0"))

    assert (response.totals.requests, response.others, one.others) == (calls, 40, 40)
    assert response.rows[-1].totals.requests == 40 or len(response.rows) == 100
    assert "(others)" not in response.operations
    assert one.totals.requests == 1


def test_a_clock_that_is_set_back_a_little_breaks_no_page(bench: Bench) -> None:
    """The second that was counted is to come again; its units are still in the chart."""
    bench.call("GetItem", {"TableName": "Stock", "Key": {"pk": {"S": "s"}}})
    bench.clock.advance(-20)

    response = summarise_operations(bench.studio, OperationsRequest(window_s=60))

    assert response.totals.requests == sum(response.series.requests) == 1
    assert sum(response.places[0].read_units) == 0.5


def test_an_hour_has_the_peak_of_a_second_and_the_observed_rate(bench: Bench) -> None:
    """A step of ten seconds averages; the peak does not, and of the step that runs only what is over counts."""
    bench.clock.set(1_700_000_000.0 + 3600)
    for _ in range(20):
        bench.call("GetItem", {"TableName": "Stock", "Key": {"pk": {"S": "s"}}})
    bench.clock.advance(2)

    (use,) = summarise_operations(bench.studio, OperationsRequest(window_s=3600)).places

    assert (use.reads, use.peak_reads, use.read_units[-1]) == (10.0, 10.0, 5.0)


def test_places_are_charted_as_many_as_are_shown(bench: Bench) -> None:
    """A page that shows no chart gets no series; totals are included anyway."""
    bench.call("PutItem", {"TableName": "Orders", "Item": ITEM})

    response = summarise_operations(bench.studio, OperationsRequest(window_s=600, places=1))

    assert [len(use.write_units) for use in response.places] == [600, 0]
    assert [use.writes for use in response.places] == [3.0, 3.0]


def test_limits_are_of_the_tables_that_are_named(bench: Bench) -> None:
    """However many tables there are, the busiest have their limits; one that has gone has none."""
    for place in range(25):
        bench.engine.call("CreateTable", _table(f"A{place:02}"))

    result = run(list_limits(bench.studio, LimitsRequest("Stock,Gone,A24"))).places

    assert {each.table for each in result} == {"Stock", "A24"}


def test_without_a_monitor_the_refusal_has_a_remedy(bench: Bench) -> None:
    """Without a monitor the request is refused, not answered with an empty chart."""
    studio = Studio(db=bench.studio.db, where=bench.studio.where)

    with pytest.raises(RequestRefused, match="Monitoring is off"):
        summarise_operations(studio, OperationsRequest())
