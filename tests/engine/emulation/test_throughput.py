"""Throughput: what is refused, with which reason, when it passes again, and what helps against it."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.engine.emulation import throughput as metering
from tavola.engine.emulation.partitions import ThroughputPartition
from tavola.protocol.faults import (
    Fault,
    ProvisionedThroughputExceededFault,
    RequestLimitExceededFault,
    ThrottlingFault,
    TransactionCanceledFault,
)
from tests.engine.emulation.load import Outcome, item, make, offer, opened, put

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/tickets"


def _throttled(engine: Engine, operation: str, request: dict[str, Any]) -> Fault:
    with pytest.raises(Fault) as refused:
        engine.call(operation, request)
    return refused.value


def _exhaust(engine: Engine, operation: str, request: dict[str, Any]) -> tuple[int, Fault]:
    """Ask until it is refused; return how often it was not, and the refusal."""
    for number in range(10_000):
        try:
            engine.call(operation, request)
        except Fault as fault:
            return number, fault
    raise AssertionError("it was never refused")


def test_nothing_is_throttled_without_the_switch() -> None:
    """An engine without the switch takes any load."""
    engine, _ = opened()
    make(engine, "tickets", units=(1, 1))
    for number in range(50):
        put(engine, "tickets", item(f"k{number}", 20))


def test_provisioned_writes_are_refused_with_their_reason() -> None:
    """Past its units a table answers ProvisionedThroughputExceeded, with the reason and its ARN."""
    engine, _ = opened("throughput")
    make(engine, "tickets", units=(5, 5))
    done, fault = _exhaust(engine, "PutItem", {"TableName": "tickets", "Item": item("a")})

    assert done == 5
    assert isinstance(fault, ProvisionedThroughputExceededFault)
    assert fault.message == (
        "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
        "provisioning level with the UpdateTable API."
    )
    assert fault.extra == {
        "ThrottlingReasons": [{"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}]
    }


def test_reads_have_their_own_units_and_a_consistent_one_costs_twice() -> None:
    """Writes leave reads alone; five units are ten eventually consistent reads or five consistent ones."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(5, 5))
    _exhaust(engine, "PutItem", {"TableName": "tickets", "Item": item("a")})
    get: dict[str, Any] = {"TableName": "tickets", "Key": item("a")}
    eventual, fault = _exhaust(engine, "GetItem", get)
    clock.advance(1.0)
    consistent, _ = _exhaust(engine, "GetItem", get | {"ConsistentRead": True})

    assert (eventual, consistent) == (10, 5)
    assert fault.extra["ThrottlingReasons"][0]["reason"] == "TableReadProvisionedThroughputExceeded"


def test_a_burst_is_used_up_and_filled_again() -> None:
    """300 seconds of unused units go through at once, then only the rate does, and rest fills it again."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(5, 10))
    ask = {"TableName": "tickets", "Item": item("a")}
    first, _ = _exhaust(engine, "PutItem", ask)
    clock.advance(60.0)
    minute, _ = _exhaust(engine, "PutItem", ask)
    clock.advance(3600.0)
    hour, _ = _exhaust(engine, "PutItem", ask)
    after = offer(clock, 90, 40, lambda number: engine.call("PutItem", ask))

    assert (first, minute, hour) == (10, 600, 1000)  # the partition's 1,000 bind before the table's 3,000
    assert after.done == pytest.approx(3000 - 1000 + 90 * 10, abs=2)
    assert after.done_by_second[1] == 40  # still from what was saved
    assert sum(after.done_by_second[-10:]) == pytest.approx(10 * 10, abs=2)  # from the rate alone


def test_one_partition_key_is_throttled_at_1000_units_although_the_table_has_plenty() -> None:
    """A key takes 1,000 units of writing a second, however many the table has; the reason says key range."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(5, 40_000))
    clock.advance(300.0)
    hot = offer(clock, 10, 200, lambda number: put(engine, "tickets", item("hot", 10)))
    spread = offer(clock, 10, 200, lambda number: put(engine, "tickets", item(f"k{number}", 10)))

    # 2,000 units a second are offered. One second's worth may be saved at the start.
    assert 1000 <= hot.done <= 1105
    assert set(hot.reasons) == {"TableWriteKeyRangeThroughputExceeded"}
    assert (spread.done, spread.refused) == (2000, 0)


def test_adaptive_capacity_lends_a_partition_what_the_table_has_left() -> None:
    """One key may use all units of a table of several partitions, up to a partition's own limit."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(6000, 900))  # two partitions; an even share would be 450
    outcome = offer(clock, 20, 90, lambda number: put(engine, "tickets", item("one", 10)))

    assert outcome.refused == 0


def test_split_for_heat_cures_a_range_of_keys_and_not_a_single_one() -> None:
    """Heat over many keys of one partition is gone after the split; heat of one key stays."""
    for keys, cured in ((40, True), (1, False)):
        engine, clock = opened("throughput,split-after=60s")
        make(engine, "tickets", units=(5, 1000))
        engine.call(
            "UpdateTable",
            {
                "TableName": "tickets",
                "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1600},
            },
        )
        names = _in_one_partition(engine, keys)
        clock.advance(300.0)
        ask = lambda number, names=names, engine=engine: put(  # noqa: E731 - bound here
            engine, "tickets", item(names[number * 7 % len(names)], 10)
        )
        outcome = offer(clock, 90, 150, ask)

        assert sum(outcome.done_by_second[:10]) < 1120  # of 1,500 offered: one partition takes 1,000 units
        healed = sum(outcome.done_by_second[-10:])
        assert (healed == 1500) is cured


def _in_one_partition(engine: Engine, count: int) -> list[str]:
    """Return names of keys that all lie in the lower half of the hash space."""
    from tavola.keys import KeyAttribute, KeySchema

    schema = KeySchema((KeyAttribute("pk", "S"),))
    found = (f"k{number}" for number in range(10_000))
    return [name for name in found if schema.key_of({"pk": {"S": name}})[0] < 128][:count]


def test_on_demand_starts_warm_and_throttles_with_its_own_exception() -> None:
    """A new on-demand table has four partitions: 4,000 units spread, 1,000 on one key, ThrottlingException."""
    engine, clock = opened("throughput")
    make(engine, "tickets")
    spread = offer(clock, 5, 390, lambda number: put(engine, "tickets", item(f"k{number}", 10)))
    done, fault = _exhaust(engine, "PutItem", {"TableName": "tickets", "Item": item("hot", 100)})

    assert spread.refused <= spread.done * 0.02  # keys are spread by chance, not evenly
    assert done <= 11
    assert isinstance(fault, ThrottlingFault)
    assert fault.message is not None
    assert fault.message.startswith("Throughput exceeds the current capacity of your table or index.")
    assert fault.extra == {
        "throttlingReasons": [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}]
    }


def test_on_demand_doubles_half_an_hour_after_a_new_peak() -> None:
    """Traffic that holds at a new peak is served twice over half an hour later, and not before."""
    engine, clock = opened("throughput,split-after=24h")
    make(engine, "tickets")
    ask = lambda number: put(engine, "tickets", item(f"k{number}", 100))  # noqa: E731 - asked three times
    offer(clock, 130, 38, ask)
    early = offer(clock, 4, 70, ask)
    clock.advance(1900.0)
    put(engine, "tickets", item("later"))
    late = offer(clock, 4, 70, ask)

    assert early.refused > 70  # 7,000 units a second of the 4,000 that it is warm for
    assert late.refused < 30  # of 8,000; keys are spread by chance, not evenly


def test_a_maximum_of_on_demand_is_kept() -> None:
    """MaxWriteRequestUnits binds the table, and says so."""
    engine, _ = opened("throughput")
    make(engine, "tickets", OnDemandThroughput={"MaxReadRequestUnits": 3, "MaxWriteRequestUnits": 2})
    written, write = _exhaust(engine, "PutItem", {"TableName": "tickets", "Item": item("a")})
    _, read = _exhaust(engine, "Scan", {"TableName": "tickets"})

    assert written == 2
    assert isinstance(write, ThrottlingFault)
    assert write.message == "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
    assert write.extra["throttlingReasons"][0]["reason"] == "TableWriteMaxOnDemandThroughputExceeded"
    assert read.extra["throttlingReasons"][0]["reason"] == "TableReadMaxOnDemandThroughputExceeded"


def test_the_quota_of_the_account_binds_an_on_demand_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the quota of a table the answer is RequestLimitExceeded with an account reason."""
    monkeypatch.setattr(metering, "TABLE_CAPACITY_UNITS_MAX", 50)
    engine, _ = opened("throughput")
    make(engine, "tickets")
    done, fault = _exhaust(engine, "PutItem", {"TableName": "tickets", "Item": item("a", 10)})

    assert done == 5
    assert isinstance(fault, RequestLimitExceededFault)
    assert fault.extra["ThrottlingReasons"][0]["reason"] == "TableWriteAccountLimitExceeded"


def test_an_index_without_room_throttles_the_writes_of_its_table() -> None:
    """Back-pressure: the table has units and its index has none, so the write is refused for the index's sake."""
    engine, _ = opened("throughput")
    make(engine, "tickets", units=(100, 1000), indexes={"by_status": "status pk"}, index_units=(100, 3))
    put(engine, "tickets", item("first", 5, status="OPEN"))  # five units of the index's three
    fault = _throttled(engine, "PutItem", {"TableName": "tickets", "Item": item("b", 5, status="OPEN")})
    put(engine, "tickets", item("plain", 5))  # not in the index, so the index has no say
    put(engine, "tickets", item("first", 5, status="OPEN"))  # its entry stays as it is, and costs nothing

    assert isinstance(fault, ProvisionedThroughputExceededFault)
    assert fault.message is not None
    assert fault.message.startswith(
        "The level of configured provisioned throughput for one or more global secondary indexes"
    )
    assert fault.extra == {
        "ThrottlingReasons": [
            {"reason": "IndexWriteProvisionedThroughputExceeded", "resource": f"{ARN}/index/by_status"}
        ]
    }


def test_reading_an_index_takes_the_indexs_units() -> None:
    """A query of a global index is throttled by the index, and a read of the table passes."""
    engine, _ = opened("throughput")
    make(engine, "tickets", units=(100, 100), indexes={"by_status": "status pk"}, index_units=(2, 100))
    put(engine, "tickets", item("a", status="OPEN"))
    ask = {
        "TableName": "tickets",
        "IndexName": "by_status",
        "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":s": {"S": "OPEN"}},
    }
    done, fault = _exhaust(engine, "Query", ask)

    assert done == 4
    assert fault.message == "The level of configured provisioned throughput for the index was exceeded"
    assert fault.extra["ThrottlingReasons"][0]["reason"] == "IndexReadProvisionedThroughputExceeded"
    assert engine.call("GetItem", {"TableName": "tickets", "Key": {"pk": {"S": "a"}}})["Item"]


def test_a_refused_condition_costs_and_a_refused_request_does_not() -> None:
    """A condition that fails takes a write's units; a throttled request takes nothing and changes nothing."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(5, 2))
    failing = {"TableName": "tickets", "Item": item("a"), "ConditionExpression": "attribute_exists(pk)"}
    codes = [_throttled(engine, "PutItem", failing).code for _ in range(3)]
    for _ in range(100):
        _throttled(engine, "PutItem", {"TableName": "tickets", "Item": item("b")})
    clock.advance(1.0)
    engine.call("PutItem", {"TableName": "tickets", "Item": item("c")})
    kept = [found["pk"]["S"] for found in engine.call("Scan", {"TableName": "tickets"})["Items"]]

    assert codes == [
        "ConditionalCheckFailedException",
        "ConditionalCheckFailedException",
        "ProvisionedThroughputExceededException",
    ]
    assert kept == ["c"]


def test_a_throttled_transaction_says_of_each_action_why_and_does_nothing() -> None:
    """The actions whose table has no room have the reason; nothing is written; twice the units are taken."""
    engine, _ = opened("throughput")
    make(engine, "tickets", units=(50, 1))
    make(engine, "rich", units=(50, 100))
    actions = [
        {"Put": {"TableName": "rich", "Item": item("a")}},
        {"Put": {"TableName": "tickets", "Item": item("a")}},
    ]
    engine.call("TransactWriteItems", {"TransactItems": actions})  # two units of the one there is
    fault = _throttled(engine, "TransactWriteItems", {"TransactItems": actions})

    assert isinstance(fault, TransactionCanceledFault)
    assert [reason.code for reason in fault.reasons] == ["None", "ProvisionedThroughputExceeded"]
    assert fault.reasons[1].message is not None
    assert fault.reasons[1].message.startswith("The level of configured provisioned throughput for the table")


def test_throttled_members_of_a_batch_come_back_and_all_of_them_are_an_exception() -> None:
    """Some throttled: they are unprocessed. All throttled: the batch is."""
    engine, clock = opened("throughput")
    make(engine, "tickets", units=(2, 3))
    make(engine, "rich", units=(50, 100))
    writes = [{"PutRequest": {"Item": item(f"k{number}")}} for number in range(5)]
    some = engine.call("BatchWriteItem", {"RequestItems": {"tickets": writes, "rich": writes[:1]}})
    none = _throttled(engine, "BatchWriteItem", {"RequestItems": {"tickets": writes[3:]}})
    keys = [{"pk": {"S": f"k{number}"}} for number in range(6)]
    read = engine.call("BatchGetItem", {"RequestItems": {"tickets": {"Keys": keys}}})
    unread = _throttled(engine, "BatchGetItem", {"RequestItems": {"tickets": {"Keys": keys}}})
    clock.advance(2.0)
    again = engine.call("BatchWriteItem", {"RequestItems": some["UnprocessedItems"]})

    assert some["UnprocessedItems"] == {"tickets": writes[3:]}
    assert isinstance(none, ProvisionedThroughputExceededFault)
    assert (len(read["Responses"]["tickets"]), read["UnprocessedKeys"]) == (
        3,
        {"tickets": {"Keys": keys[4:]}},
    )
    assert isinstance(unread, ProvisionedThroughputExceededFault)
    assert again["UnprocessedItems"] == {}


def _status_load(shards: int, *, seconds: int = 30) -> Outcome:
    """Offer 3,000 units a second of new tickets, each 20 KB, that an index holds by their status.

    Every new ticket is OPEN; with shards, `OPEN#0` to the last in turn.
    """
    engine, clock = opened("throughput,seed=1")
    make(engine, "tickets", indexes={"by_status": "status created"})

    def ask(number: int) -> None:
        shard = f"#{number % shards}" if shards > 1 else ""
        created = f"{clock.now():020.6f}"
        put(engine, "tickets", item(f"t{number}", 20, created=created, status=f"OPEN{shard}"))

    return offer(clock, seconds, 150, ask)


def test_a_status_keyed_index_throttles_where_a_sharded_one_does_not() -> None:
    """Under one load the index by status refuses two thirds of the table's writes, the one in shards hardly any.

    All new tickets are OPEN, so one partition of the index takes every write, and no split can help: the
    tickets of a status come in the order of their time. The table itself is asked for evenly and has room.
    The numbers stand in the guide's page on emulation.
    """
    by_status, halved, in_shards = (_status_load(shards) for shards in (1, 2, 16))

    assert (by_status.done, by_status.refused) == (1550, 2950)  # 50 a second, and a second's worth saved
    assert (halved.done, halved.refused) == (3100, 1400)
    assert (in_shards.done, in_shards.refused) == (4362, 138)  # six shards are in one partition
    assert set(by_status.reasons) == set(halved.reasons) == {"IndexWriteKeyRangeThroughputExceeded"}


def test_the_load_finds_a_partition_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: if a partition took ten times as much, the index by status would pass for a good one."""
    made = ThroughputPartition.__init__

    def wide(self: ThroughputPartition, lower: bytes, upper: bytes | None, now_s: float) -> None:
        made(self, lower, upper, now_s)
        self.writes.set_rate(10_000.0, now_s)

    monkeypatch.setattr(ThroughputPartition, "__init__", wide)

    assert _status_load(1, seconds=10).refused == 0


def test_runs_repeat_from_their_seed() -> None:
    """The same requests at the same times are refused in the same places."""
    first, second = (_status_load(1, seconds=10) for _ in range(2))

    assert first == second


def test_more_units_help_at_once() -> None:
    """UpdateTable raises what a table may do from the next request on."""
    engine, _ = opened("throughput", ManualClock())
    make(engine, "tickets", units=(5, 1))
    ask = {"TableName": "tickets", "Item": item("a")}
    _exhaust(engine, "PutItem", ask)
    engine.call("UpdateTable", {"TableName": "tickets", "BillingMode": "PAY_PER_REQUEST"})

    engine.call("PutItem", ask)


def _scan_units(engine: Engine, **parameters: Any) -> float:
    request = {"TableName": "tickets", "ReturnConsumedCapacity": "TOTAL", **parameters}
    units: float = engine.call("Scan", request)["ConsumedCapacity"]["CapacityUnits"]
    return units


@pytest.mark.parametrize(
    ("parameters", "units"),
    [
        pytest.param({"ConsistentRead": True}, 4.0, id="consistent"),
        pytest.param({}, 2.0, id="eventually consistent"),
        pytest.param({"Segment": 0, "TotalSegments": 4}, 0.5, id="a segment is one partition"),
    ],
)
def test_a_scan_pays_in_every_partition(parameters: dict[str, Any], units: float) -> None:
    """A new on-demand table has four partitions, and each charges a scan at least the minimum, also without items."""
    engine, _ = opened("throughput")
    make(engine, "tickets")
    put(engine, "tickets", item("a"))

    assert _scan_units(engine, **parameters) == units


def test_the_pages_of_a_scan_pay_for_the_partitions_that_they_pass() -> None:
    """Pages of one item each pay for the item's partition and for the empty ones between; together for all of them."""
    engine, _ = opened("throughput")
    make(engine, "tickets")
    for number in range(8):
        put(engine, "tickets", item(f"k{number}", 5))
    pages: list[float] = []
    start: dict[str, Any] = {}
    while True:
        request = {
            "TableName": "tickets",
            "ReturnConsumedCapacity": "TOTAL",
            "Limit": 1,
            "ConsistentRead": True,
        }
        page = engine.call("Scan", request | start)
        pages.append(page["ConsumedCapacity"]["CapacityUnits"])
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    assert min(pages) >= 1.0
    assert sum(pages) >= 8 * 2.0
    assert _scan_units(engine, ConsistentRead=True) <= sum(pages)


def test_a_scan_of_a_provisioned_table_pays_in_its_one_partition() -> None:
    """A small provisioned table has one partition, so a scan costs what it reads."""
    engine, _ = opened("throughput")
    make(engine, "tickets", units=(5, 5))
    put(engine, "tickets", item("a"))

    assert _scan_units(engine, ConsistentRead=True) == 1.0


def test_a_scan_costs_what_it_reads_without_the_switch() -> None:
    """Partitions are emulated only with `throughput`."""
    engine, _ = opened()
    make(engine, "tickets")
    put(engine, "tickets", item("a"))

    assert _scan_units(engine, ConsistentRead=True) == 1.0
