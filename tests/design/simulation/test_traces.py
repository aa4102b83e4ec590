"""A recorded access log as a workload: what the server wrote is what the simulator asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola.design.simulation import Scenario, Simulation, SimulationError, read_trace, run_workload
from tests.design.builders import choice, design, entity, gsi, key, put, table, text
from tests.server.attended import attended

INDEX = gsi("by-status", "status")
DESIGN = design(
    table(
        entity(
            "Order",
            text("pk"),
            choice("status", "open", "done"),
            pk="pk",
            keys=[key(INDEX, "status")],
            writes=[put(per_second=1)],
        ),
        label="Orders",
        indexes=[INDEX],
    )
)
ORDERS = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "status")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The log of a quiet table of which one item is asked for all the time in the last ten seconds."""
    with attended(tmp_path_factory.mktemp("log")) as server:
        server.send_request("CreateTable", ORDERS)
        for second in range(40):
            for number in range(10):
                item = {
                    "pk": {"S": f"o{second}-{number}"},
                    "status": {"S": "open"},
                    "body": {"S": "x" * 3000},
                }
                server.send_request("PutItem", {"TableName": "orders", "Item": item})
            if second >= 30:
                for _ in range(20):
                    server.send_request("GetItem", {"TableName": "orders", "Key": {"pk": {"S": "o1-1"}}})
            server.send_request("GetItem", {"TableName": "nowhere", "Key": {"pk": {"S": "x"}}})
            server.clock.advance(1.0)
        return server.records()


def test_a_trace_has_the_calls_of_the_log_second_by_second(records: list[dict[str, Any]]) -> None:
    """Each kind of call is a pattern, with the units it took, at the table and at the index it kept up to date."""
    workload = read_trace(iter(records), DESIGN, Scenario())
    found = run_workload(workload, Scenario())
    patterns = {each.name: each for each in found.patterns}
    places = {(each.name, each.access): each for each in found.places}

    assert workload.rates.seconds == 40
    assert patterns["PutItem orders"].mean == pytest.approx(10)
    assert patterns["GetItem orders"].mean == pytest.approx(5)
    assert patterns["GetItem orders"].peak == pytest.approx(20)
    assert places["orders", "write"].mean == pytest.approx(30)
    assert places["orders/by-status", "write"].mean == pytest.approx(30)
    assert places["orders", "read"].busiest[0].name.startswith("key ")
    assert found.throttled == 0.0


def test_a_trace_can_be_played_louder(records: list[dict[str, Any]]) -> None:
    """A hundred times the recorded traffic is more than the index's one busy status can take."""
    scenario = Scenario(rate_factor=100, shards=False)
    found = run_workload(read_trace(iter(records), DESIGN, scenario), scenario)
    index = next(each for each in found.places if each.name == "orders/by-status")

    assert index.throttled > 0.2
    assert index.busiest[0].name == "open"


def test_a_log_of_other_tables_is_refused_with_what_it_has(records: list[dict[str, Any]]) -> None:
    """A log in which nothing is of the design names the tables that it has."""
    elsewhere = design(table(entity("Order", text("pk"), pk="pk"), label="Elsewhere"))
    with pytest.raises(SimulationError, match=r"no calls that read or write items of elsewhere.*orders"):
        read_trace(iter(records), elsewhere, Scenario())
    with pytest.raises(SimulationError, match="no call"):
        read_trace(iter(()), DESIGN, Scenario())


def test_a_broken_record_is_passed_over(records: list[dict[str, Any]]) -> None:
    """Records without a time, of management calls or with nothing in them do no harm."""
    odd: list[Any] = [
        {},
        {"eventCategory": "Data"},
        {"eventCategory": "Data", "eventTime": "soon"},
    ]
    workload = read_trace(iter([*odd, *records]), DESIGN, Scenario())

    assert workload.rates.seconds == 40


def _call(name: str, second: int, keys: list[str], **more: Any) -> dict[str, Any]:
    return {
        "eventCategory": "Data",
        "eventTime": f"2026-11-01T00:00:{second:02}Z",
        "eventName": name,
        "requestParameters": {"tableName": "orders", "keys": keys},
        "additionalEventData": {"consumed": [{"table": "orders", "writes": float(len(keys))}]},
        **more,
    }


def _throttled(records: list[dict[str, Any]]) -> Simulation:
    scenario = Scenario(rate_factor=10)
    return run_workload(read_trace(records, DESIGN, scenario), scenario)


def test_a_key_is_one_key_whoever_asks_for_it() -> None:
    """An item that is put and updated is as hot as the two are together."""
    one = [_call("UpdateItem", second, ["abcd"]) for second in range(20) for _ in range(140)]
    two = [
        _call(name, second, ["abcd"])
        for second in range(20)
        for name in ("UpdateItem", "PutItem")
        for _ in range(70)
    ]
    found = [_throttled(records) for records in (one, two)]

    assert found[1].throttled == pytest.approx(found[0].throttled, rel=0.01)
    assert found[0].throttled > 0.2
    assert len(found[1].places[0].busiest) == 1


def test_a_recorded_key_can_be_sharded() -> None:
    """A key that is updated twice as often as a partition can needs two shards, and is called by its table."""
    found = _throttled([_call("UpdateItem", second, ["abcd"]) for second in range(20) for _ in range(190)])
    shards = found.places[0].shards

    assert [each.needed for each in shards] == [2]
    assert shards[0].keys == "the partition key of orders"


def test_a_recorded_transaction_passes_or_fails_as_one() -> None:
    """A hot item of a transaction holds up the other."""
    calls = [
        _call("TransactWriteItems", second, ["hot", f"k{second}-{each}"])
        for second in range(20)
        for each in range(200)
    ]
    found = _throttled(calls)

    assert [each.name for each in found.patterns] == ["TransactWriteItems orders"]
    assert found.requests == pytest.approx(20 * 200 * 10)
    assert found.throttled > 0.4


def test_louder_and_shorter_than_a_stretch_it_still_waits(records: list[dict[str, Any]]) -> None:
    """Refused requests of a trace wait, although it ends within a stretch."""
    scenario = Scenario(rate_factor=400, shards=False)
    found = run_workload(read_trace(iter(records[:200]), DESIGN, scenario), scenario)
    put_ = next(each for each in found.patterns if each.name == "PutItem orders")

    assert put_.throttled > 0.2
    assert put_.wait_p99_s > 1


def test_a_trace_is_as_long_as_its_log() -> None:
    """Thirteen seconds of a log are thirteen seconds at the rate that it had."""
    calls = [_call("PutItem", second, [f"k{second}"]) for second in range(13) for _ in range(30)]
    found = run_workload(read_trace(calls, DESIGN, Scenario()), Scenario())

    assert found.seconds == 13
    assert found.patterns[0].mean == pytest.approx(30)
    assert found.requested == pytest.approx((30, 30))


def test_a_trace_names_no_key_of_an_entity_that_may_not_have_been_written() -> None:
    """Where several entities are in an index, whose entries a write touched is unknown, and called so."""
    index = gsi("gsi1", "gsi1pk")
    product = entity(
        "Product", text("pk"), text("category", distinct=30), pk="P#{pk}", keys=[key(index, "C#{category}")]
    )
    order = entity(
        "Order", text("pk"), text("customer", distinct=900), pk="O#{pk}", keys=[key(index, "U#{customer}")]
    )
    consumed = [{"table": "orders", "writes": 1.0}, {"table": "orders", "index": "gsi1", "writes": 1.0}]
    more = {"additionalEventData": {"consumed": consumed}}
    calls = [_call("PutItem", second, [f"k{second}"], **more) for second in range(10)]
    told = design(table(product, order, label="Orders", indexes=[index]))
    workload = read_trace(calls, told, Scenario())
    found = run_workload(workload, Scenario())
    written = next(each for each in found.places if each.name == "orders/gsi1")

    assert {each.name.rsplit(" no. ")[0] for each in written.busiest} == {"unknown key of gsi1"}
    assert not any("C#" in each.name or "U#" in each.name for each in workload.keys)
    assert any(
        "(C#{category}, U#{customer})" in each and "900 values" in each for each in workload.assumptions
    )


DAMAGED: list[Any] = [
    None,
    [],
    _call("PutItem", 1, ["x"]) | {"requestParameters": {"tables": ["orders"]}},
    _call("PutItem", 1, ["x"]) | {"additionalEventData": {"consumed": [{"table": "orders", "writes": "1"}]}},
    _call("PutItem", 1, ["x"]) | {"additionalEventData": {"consumed": [{"table": "orders", "writes": -1}]}},
    _call("PutItem", 1, ["x"]) | {"requestParameters": {"tableName": ["x"]}},
    _call("PutItem", 1, ["x"]) | {"requestParameters": {"tableName": "orders", "keys": [1]}},
    _call("PutItem", 1, ["x"]) | {"eventTime": "99999-01-01"},
    _call("PutItem", 1, ["x"]) | {"eventTime": "0001-01-01T00:00:00+23:00"},
    _call("PutItem", 1, ["x"]) | {"errorCode": {}},
]


@pytest.mark.parametrize("record", DAMAGED)
def test_a_damaged_record_is_passed_over_and_told(record: Any) -> None:
    """Whatever is wrong with a line, the rest is taken, and which one was not is said."""
    workload = read_trace([_call("PutItem", 1, ["a"]), record], DESIGN, Scenario())

    assert "1 invalid line of the log was skipped, the first at line 2" in workload.assumptions


def test_a_log_of_more_than_a_month_is_refused_with_its_times() -> None:
    """One record of another year would make a run of years."""
    old = _call("PutItem", 1, ["a"]) | {"eventTime": "1970-01-01T00:00:00Z"}
    with pytest.raises(SimulationError, match=r"1970-01-01 00:00 to 2026-11-01.*at most 31 days"):
        read_trace([old, _call("PutItem", 1, ["a"])], DESIGN, Scenario())


def test_the_command_reads_a_log(records: list[dict[str, Any]], tmp_path: Path) -> None:
    """`tavola simulate --trace` takes the file that `tavola serve --access-log` wrote."""
    import json

    from click.testing import CliRunner

    from tavola.cli.main import app
    from tavola.model.document import write_document

    document, log = tmp_path / "orders.json", tmp_path / "access.log"
    document.write_text(json.dumps(write_document(DESIGN)))
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    answer = CliRunner().invoke(app, ["simulate", str(document), "--trace", str(log), "--json"])
    missing = CliRunner().invoke(app, ["simulate", str(document), "--trace", str(tmp_path / "none")])

    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["schema"] == "tavola.simulation/1"
    assert missing.exit_code == 3
    folder = CliRunner().invoke(app, ["simulate", str(document), "--trace", str(tmp_path)])
    assert folder.exit_code == 2
    assert "is a folder" in folder.stderr
