"""Measures: right to 2 %, bounded whatever comes, and the dear request is found among the many."""

from __future__ import annotations

import json
import math
import random
import threading
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, ItemAccess
from tavola.protocol.arns import DEFAULT_SCOPE, table_arn
from tavola.protocol.faults import ConditionalCheckFailedFault, Fault, TransactionConflictFault
from tavola.studio.monitoring import Monitor
from tavola.studio.monitoring.counters import (
    CELLS_MAX,
    OTHERS,
    PLACES_MAX,
    QUANTILES,
    CallKind,
    CallTally,
    CapacityTarget,
    ClosedSlice,
    CounterSlice,
    bucket_of,
    duration_of,
    quantiles,
    sum_slices,
)
from tavola.studio.monitoring.expensive_requests import (
    ALL_MAX,
    EACH_MAX,
    SPAN_BYTES_MAX,
    By,
    ExpensiveRequest,
    select_requests,
)
from tavola.studio.monitoring.request_metrics import (
    BYTES_MAX,
    FAILED_CALLS_MAX,
    SLICE_LENGTHS,
    UNKNOWN,
    RequestMetrics,
    Timeline,
)
from tavola.studio.monitoring.request_shapes import SHAPE_BYTES_MAX, is_read, request_shape

ARN = table_arn(DEFAULT_SCOPE, "Orders")


def _note(
    measures: RequestMetrics,
    at_s: float,
    took_s: float = 0.001,
    operation: str = "GetItem",
    accesses: tuple[ItemAccess, ...] = (ItemAccess(ARN, None, b"k", 0.5, 0.0),),
    fault: Fault | None = None,
    request: dict[str, Any] | None = None,
) -> None:
    body = json.dumps(request or {"TableName": "Orders"}).encode()
    measures.note(operation, DEFAULT_SCOPE, at_s, took_s, accesses, fault, body)


def _tally(slices: Iterable[ClosedSlice]) -> CallTally:
    return sum_slices(slices, None, None).tally


def _requests(measures: RequestMetrics, window_s: int) -> int:
    return _tally(measures.view(window_s).summed).requests


def _dearest(
    measures: RequestMetrics,
    clock: ManualClock,
    by: By,
    window_s: int,
    table: str | None,
    operation: str | None,
) -> list[ExpensiveRequest]:
    return select_requests(by, measures.expensive_requests(by), clock.now() - window_s, table, operation)


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_are_those_of_the_sorted_list_to_two_percent(seed: int) -> None:
    """For any durations each percentile is within 2 % of the exact value."""
    dice = random.Random(seed)
    took = [dice.lognormvariate(math.log(0.0005), 1.5) for _ in range(20_000)]
    counts: dict[int, int] = {}
    for each in took:
        counts[bucket_of(each)] = counts.get(bucket_of(each), 0) + 1
    took.sort()

    result = quantiles(counts)

    assert result is not None
    for share, response in zip(QUANTILES, result, strict=True):
        exact = took[math.ceil(share * len(took)) - 1]
        assert response == pytest.approx(exact, rel=0.02)


def test_a_bucket_is_accurate_to_two_percent() -> None:
    """From a microsecond to minutes."""
    for place in range(1, 400):
        took_s = 1e-6 * 1.05**place
        assert duration_of(bucket_of(took_s)) == pytest.approx(took_s, rel=0.02)
    assert quantiles({}) is None


@pytest.mark.slow
def test_a_window_counts_what_came_in_it_at_every_length() -> None:
    """A call a second for seven hours: each window has as many as it has seconds, to within a step."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    for _ in range(7 * 3600):
        clock.advance(1)
        _note(measures, clock.now())

    for step in SLICE_LENGTHS:
        counted = _requests(measures, step.kept_s)
        assert step.kept_s - step.length_s <= counted <= step.kept_s
    assert _requests(measures, 60) == 60


def test_the_series_and_the_sum_of_a_window_agree() -> None:
    """The same calls are counted in slices for a chart and in fewer for a sum, wherever the window begins."""
    clock = ManualClock(1_700_000_003.0)
    measures = RequestMetrics(clock)
    dice = random.Random(7)
    for _ in range(3000):
        clock.advance(dice.choice([0, 0, 0.3, 2, 17]))
        _note(measures, clock.now())
        if dice.random() < 0.05:
            for window_s in (60, 600, 3600):
                view = measures.view(window_s)
                tallies = [_tally(slices) for slices in (view.slices, view.summed)]
                sums = [(tally.requests, round(tally.reads, 6)) for tally in tallies]
                assert sums[0] == sums[1], (window_s, clock.now())


def test_memory_is_bounded_whatever_is_named_and_however_long_it_runs() -> None:
    """Ten thousand tables, as many faults, for days: what is kept does not grow beyond its bound."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    sizes = []
    for hour in range(20):
        for place in range(120):
            clock.advance(30)
            arn = table_arn(DEFAULT_SCOPE, f"Table{hour}x{place}")
            for operation in ("GetItem", "PutItem"):
                _note(
                    measures,
                    clock.now(),
                    operation=operation,
                    accesses=(ItemAccess(arn, None, b"k", 1.0, 0.0),),
                    fault=ConditionalCheckFailedFault() if place % 2 else None,
                    request={"TableName": f"T{place}", "Item": {"x": {"S": "y" * 100}}},
                )
        sizes.append(measures.record_count)

    for place in range(200):
        _note(
            measures,
            clock.now(),
            accesses=(ItemAccess(table_arn(DEFAULT_SCOPE, f"B{place}"), None, b"k", 1.0, 0.0),),
        )
    slices = sum(step.kept_s // step.length_s + 3 for step in SLICE_LENGTHS)
    dear = 2 * (EACH_MAX * CELLS_MAX + ALL_MAX * (62 + 38))
    assert max(sizes) <= slices + dear + FAILED_CALLS_MAX
    assert sizes[-1] <= 1.1 * sizes[12]
    view = measures.view(21_600)
    assert all(
        len(each.kinds) <= CELLS_MAX + 1 and len(each.places) <= PLACES_MAX + 1 for each in view.slices
    )
    assert any(kind.operation == OTHERS for each in view.slices for kind in each.kinds)


def test_the_memory_of_slices_is_measured_and_bounded() -> None:
    """Twenty kinds busy for five minutes take no more than they may: names go, the oldest seconds' first, and no count."""
    bytes_max = 900_000
    tracemalloc.start()
    try:
        timeline = Timeline(bytes_max)
        kinds = [CallKind("GetItem", (f"Table{place}",)) for place in range(20)]
        before = tracemalloc.get_traced_memory()[0]
        for second in range(1_700_000_000, 1_700_000_300):
            current: CounterSlice = timeline.slice_at(second)
            for at, kind in enumerate(kinds):
                current.cell(kind).took += [0.0001 * 1.1**at, 0.001, 0.02]
                current.place(CapacityTarget(kind.tables[0], None)).reads += 0.5
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert timeline.bytes <= bytes_max
    assert taken <= 2 * bytes_max
    hour = timeline.since(0, 1)
    assert _tally(hour).requests == 300 * 20 * 3
    assert sum(units[0] for each in hour for _, units in each.capacity_use()) == 300 * 20 * 0.5
    seconds = timeline.since(0, 0)
    assert seconds[0].kinds == (CallKind(OTHERS, ()),)
    assert _tally(seconds).requests == len(seconds) * 20 * 3
    assert set(hour[-1].kinds) == set(kinds)


def test_the_bound_of_all_slices_is_fit_for_a_guest() -> None:
    """A studio lives beside a program: its counts take less than twenty megabytes, the requests it keeps ten."""
    spans = 62 + 38
    requests = 2 * 8 * 1024 * EACH_MAX * CELLS_MAX + 2 * SPAN_BYTES_MAX * spans

    assert BYTES_MAX <= 20_000_000
    assert requests <= 10_000_000


def test_a_percentile_is_never_above_the_slowest() -> None:
    """A bucket's middle may lie above the one call in it, of which the exact duration is known."""
    clock = ManualClock()
    measures = RequestMetrics(clock)
    for took_s in (0.000_296, 0.000_297, 0.000_298):
        _note(measures, clock.now(), took_s)
    cell = sum_slices(measures.view(60).summed, None, None)

    shares = cell.quantiles()

    assert shares is not None
    assert quantiles(cell.latency) != shares
    assert max(shares) <= cell.tally.slowest_s == 0.000_298


def test_the_peak_of_a_place_is_that_of_one_second_at_every_length() -> None:
    """A burst of one second is not averaged away in an hour's steps of ten."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    for second in range(120):
        clock.advance(1)
        for _ in range(50 if second == 31 else 1):
            _note(measures, clock.now(), accesses=(ItemAccess(ARN, None, b"k", 2.0, 0.0),))

    for window_s in (600, 3600, 21_600):
        peaks = [units[2] for each in measures.view(window_s).summed for _, units in each.capacity_use()]
        assert max(peaks) == 100.0


def test_a_clock_that_is_set_back_a_little_loses_nothing() -> None:
    """What was counted in the second that is to come again stays in every window."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    _note(measures, clock.now())
    clock.advance(-30)
    _note(measures, clock.now())

    view = measures.view(60)

    assert _tally(view.slices).requests == _tally(view.summed).requests == 2
    assert view.start_s + (view.steps - 1) * view.step_s >= max(each.start_s for each in view.slices)


def test_operations_that_there_are_not_take_no_names() -> None:
    """Whatever a header says, it is one kind of call, and its name is not kept."""
    clock = ManualClock()
    measures = RequestMetrics(clock)
    for place in range(300):
        _note(measures, clock.now(), operation=f"Nonsense{place}" * 100, accesses=())

    assert {kind.operation for each in measures.view(60).summed for kind in each.kinds} == {UNKNOWN}


def test_each_form_of_a_kind_is_found_beside_a_dearer_flood() -> None:
    """Queries of one table are one kind: the flood of a dear form hides neither another form nor another index."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    for place in range(600):
        clock.advance(0.1)
        for _ in range(3):
            _note(
                measures,
                clock.now(),
                0.001,
                "Query",
                (ItemAccess(ARN, None, b"k", 50.0 + place % 5, 0.0),),
                None,
                {"KeyConditionExpression": "pk = :p"},
            )
        if place % 10 == 0:
            index = "ByDay" if place % 20 else None
            cheaper = {"KeyConditionExpression": "day = :d" if index else "pk = :p AND sk > :s"}
            _note(
                measures,
                clock.now(),
                0.002,
                "Query",
                (ItemAccess(ARN, index, b"d", 5.0, 0.0),),
                None,
                cheaper,
            )

    result = _dearest(measures, clock, "units", 600, None, None)

    assert [(dear.units, json.loads(dear.shape)["KeyConditionExpression"]) for dear in result] == [
        (54.0, "pk = :p"),
        (5.0, "day = :d"),
        (5.0, "pk = :p AND sk > :s"),
    ]


def test_a_flood_is_parsed_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a request costs more than to count it: of ten thousand calls a few dozen are looked at."""
    looked = []

    def counted(operation: str, body: bytes) -> bytes:
        looked.append(operation)
        return request_shape(operation, body)

    monkeypatch.setattr("tavola.studio.monitoring.expensive_requests.request_shape", counted)
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    dice = random.Random(3)
    for place in range(10_000):
        clock.advance(0.001)
        _note(
            measures,
            clock.now(),
            dice.lognormvariate(-8, 1),
            "Query",
            (ItemAccess(ARN, None, b"k", 1.0 + place % 9, 0.0),),
            None,
            {"KeyConditionExpression": f"a{place % 3} = :p"},
        )
        _note(measures, clock.now(), operation="DescribeTable", accesses=())

    assert len(looked) <= 500


def test_a_planted_expensive_request_and_a_planted_slow_one_are_found() -> None:
    """Among ten thousand cheap calls one that read most is first by units, and one that took longest first by time."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    for place in range(10_000):
        clock.advance(0.05)
        _note(measures, clock.now(), request={"TableName": "Orders", "Key": {"pk": {"S": str(place)}}})
        if place == 5000:
            dear = {"TableName": "Orders", "FilterExpression": "a = :a", "ReturnConsumedCapacity": "TOTAL"}
            _note(
                measures, clock.now(), 0.002, "Scan", (ItemAccess(ARN, None, None, 128.0, 0.0),), None, dear
            )
        if place == 6000:
            _note(measures, clock.now(), 0.750, "Query", (ItemAccess(ARN, "ByDay", b"d", 2.0, 0.0),))

    by_units = _dearest(measures, clock, "units", 600, None, None)
    by_time = _dearest(measures, clock, "time", 600, None, None)

    assert by_units[0].kind.operation == "Scan"
    assert by_units[0].units == 128.0
    assert json.loads(by_units[0].shape) == {"TableName": "Orders", "FilterExpression": "a = :a"}
    assert by_time[0].kind.operation == "Query"
    assert by_time[0].took_s == 0.750
    assert by_time[0].consumed[0].index == "ByDay"
    assert _dearest(measures, clock, "units", 600, "Others", None) == []
    assert {dear.kind.operation for dear in _dearest(measures, clock, "units", 600, None, "Query")} == {
        "Query"
    }


def test_an_expensive_request_is_kept_for_hours() -> None:
    """It outlives the minute, the hour and the floods after it, and is gone when the longest window is over."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    _note(measures, clock.now(), 0.1, "Scan", (ItemAccess(ARN, None, None, 99.0, 0.0),))
    result = []
    for _ in range(7 * 60):
        clock.advance(60)
        for _ in range(5):
            _note(measures, clock.now())
        result.append(_dearest(measures, clock, "units", 21_600, None, None)[0].kind.operation == "Scan")

    assert all(result[:355])
    assert not any(result[362:])


def test_lost_races_are_counted_apart_and_kept_with_their_request() -> None:
    """A failed condition is no conflict, and neither is a throttle."""
    clock = ManualClock()
    measures = RequestMetrics(clock)
    _note(measures, clock.now(), operation="PutItem", fault=ConditionalCheckFailedFault(), accesses=())
    _note(measures, clock.now(), operation="UpdateItem", fault=TransactionConflictFault(), accesses=())

    tally = _tally(measures.view(60).summed)
    assert (tally.requests, tally.faults, tally.conditions, tally.conflicts, tally.throttles) == (
        2,
        2,
        1,
        1,
        0,
    )
    assert [each.code for each in measures.failed_calls(60, None, None)] == [
        "TransactionConflictException",
        "ConditionalCheckFailedException",
    ]


def test_a_clock_that_is_set_back_clears_the_counts() -> None:
    """What was counted in a time that is to come again is dropped, and counting goes on."""
    clock = ManualClock(1_700_000_000.0)
    measures = RequestMetrics(clock)
    _note(measures, clock.now())
    clock.advance(-7200)
    for _ in range(3):
        _note(measures, clock.now())

    assert _requests(measures, 600) == 3


def test_what_is_kept_of_a_write_has_its_key_and_no_values() -> None:
    """Expressions and keys stay, values become their types and sizes; a read is kept whole, so it can be made again."""
    secret = "a private sentence"
    written = request_shape(
        "UpdateItem",
        json.dumps(
            {
                "TableName": "Orders",
                "Key": {"pk": {"S": "o#1"}},
                "UpdateExpression": "SET note = :n",
                "ExpressionAttributeValues": {":n": {"S": secret}},
            }
        ).encode(),
    )
    statement = request_shape(
        "ExecuteStatement", json.dumps({"Statement": f"UPDATE Orders SET note = '{secret}'"}).encode()
    )
    many = request_shape(
        "BatchWriteItem",
        json.dumps(
            {"RequestItems": {"Orders": [{"PutRequest": {"Item": {"pk": {"S": secret}}}}] * 25}}
        ).encode(),
    )

    assert json.loads(written)["Key"] == {"pk": {"S": "o#1"}}
    assert json.loads(written)["ExpressionAttributeValues"] == {":n": "S, 18 bytes"}
    assert secret.encode() not in written + statement + many
    assert "… and 22 more" in many.decode()
    assert len(request_shape("PutItem", b'{"Item": "' + b"x" * 100_000 + b'"}')) < SHAPE_BYTES_MAX
    assert request_shape("PutItem", b"no json") == b'{"omitted":"a request of 7 bytes"}'


@pytest.mark.parametrize(
    ("operation", "request_", "reads"),
    [
        ("Query", {}, True),
        ("PutItem", {}, False),
        ("ExecuteStatement", {"Statement": " select * from T"}, True),
        ("ExecuteStatement", {"Statement": "DELETE FROM T"}, False),
        (
            "BatchExecuteStatement",
            {"Statements": [{"Statement": "SELECT 1"}, {"Statement": "INSERT"}]},
            False,
        ),
        ("DeleteTable", {"TableName": "T"}, False),
    ],
)
def test_what_may_be_made_again_is_a_read(operation: str, request_: dict[str, Any], reads: bool) -> None:
    """A statement is what its text says."""
    assert is_read(operation, request_) is reads


def test_several_threads_lose_no_call() -> None:
    """The engine is called from four threads at once, and every call is counted."""
    watch = Monitor()
    with Engine.open() as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Orders",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        engine.observe(watch)

        def call() -> None:
            for place in range(250):
                engine.call("GetItem", {"TableName": "Orders", "Key": {"pk": {"S": str(place)}}})

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with watch.lock:
        assert _requests(watch.metrics, 60) == 1000
        assert watch.metrics.calls == 1000
