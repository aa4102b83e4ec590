"""Heat: sums stay exact in bounded memory, rows lie in key order, and planted patterns are found and named."""

from __future__ import annotations

import asyncio
import random
import re
from array import array
from base64 import b64decode
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import decompress

import pytest

from tavola.clock import ManualClock
from tavola.connections import connect_async
from tavola.engine import Engine, ItemAccess
from tavola.keys import KeyAttribute, KeySchema
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.faults import ProvisionedThroughputExceededFault, TransactionCanceledFault
from tavola.studio.monitoring import heat_recorder
from tavola.studio.monitoring.heat_diagnosis import diagnose, window_traffic
from tavola.studio.monitoring.heat_keys import KEYS_SHOWN, hottest_items, hottest_keys
from tavola.studio.monitoring.heat_map import ROWS_MAX, build_layout, column_count, paint_cells
from tavola.studio.monitoring.heat_recorder import TIERS, HeatRecorder, HeatWindow
from tavola.studio.monitoring.heat_slots import HeatSlot, merge_slots
from tavola.studio.monitoring.key_order import SchemaKeys, hash_count, natural, partition_of
from tavola.studio.problems import RequestRefused
from tests.studio.api_client import ApiClient

NOW = 1_700_000_000
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Tickets"
SCHEMA = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
KEYS = SchemaKeys(SCHEMA)


def key(name: str, sort: str = "A") -> bytes:
    return SCHEMA.key_of({"pk": {"S": name}, "sk": {"S": sort}})


class Planting:
    """A recorder and a clock to plant traffic with."""

    def __init__(self, **more: Any) -> None:
        self.clock = ManualClock(float(NOW))
        self.recorder = HeatRecorder(self.clock, **more)

    def write(self, name: str, units: float = 1.0, sort: str = "A") -> None:
        self.note("PutItem", ItemAccess(ARN, None, key(name, sort), 0.0, units))

    def read(self, name: str, units: float = 0.5) -> None:
        self.note("GetItem", ItemAccess(ARN, None, key(name), units, 0.0))

    def note(self, operation: str, *accesses: ItemAccess, fault: Any = None) -> None:
        self.recorder.note(operation, DEFAULT_SCOPE, self.clock.now(), 0.001, accesses, fault, b"")

    def window(self, seconds: int = 600) -> HeatWindow:
        end = int(self.clock.now()) + 1
        return self.recorder.window(ARN, None, end - seconds, end)

    def kinds(self) -> list[str]:
        window = self.window(8 * 3600)
        return [
            each.kind
            for each in diagnose(
                [window_traffic(window, KEYS, "writes"), window_traffic(window, KEYS, "reads")]
            )
        ]

    def sentence(self) -> str:
        window = self.window(8 * 3600)
        return diagnose([window_traffic(window, KEYS, "writes"), window_traffic(window, KEYS, "reads")])[
            0
        ].sentence


def unpacked(layer: Any) -> list[float]:
    """The numbers of a layer, as a page unpacks them."""
    response = (
        layer
        if isinstance(layer, dict)
        else {name: getattr(layer, name) for name in ("bits", "scale", "data")}
    )
    numbers = array({8: "B", 16: "H", 32: "I"}[response["bits"]])
    numbers.frombytes(decompress(b64decode(response["data"])))
    return [number * response["scale"] for number in numbers]


def rows_of(layer: Any, width: int) -> list[list[float]]:
    cells = unpacked(layer)
    return [cells[at : at + width] for at in range(0, len(cells), width)]


def seconds(planting: Planting, count: int) -> Iterator[int]:
    for second in range(count):
        yield second
        planting.clock.advance(1.0)


def test_a_partition_is_found_in_a_key_however_many_values_its_hash_has() -> None:
    """The position at the start of a key reveals how many values its partition key has."""
    many = KeySchema(tuple(KeyAttribute(name, "S") for name in "abc"), (KeyAttribute("r", "N"),))
    made = many.key_of({**{name: {"S": name * 3} for name in "abc"}, "r": {"N": "7"}})

    assert hash_count(made) == 3
    assert partition_of(made, 3) == made[: 4 + 3 * 5]
    mixed = KeySchema((KeyAttribute("a", "N"), KeyAttribute("b", "S"), KeyAttribute("c", "N")))
    assert hash_count(mixed.key_of({"a": {"N": "-1.5"}, "b": {"S": "x"}, "c": {"N": "0"}})) == 3
    assert hash_count(key("one")) == 1
    assert hash_count(b"none") is None


def test_keys_lie_as_a_person_counts() -> None:
    """Numbers in a key sort by their value, and ULIDs by their letters."""
    names = ["ORDER#10", "ORDER#9", "CART#2", "ORDER#100", "T7", "T11"]
    ulids = ["01HF2A", "01HF19", "01HF1A"]

    assert sorted(names, key=natural) == ["CART#2", "ORDER#9", "ORDER#10", "ORDER#100", "T7", "T11"]
    assert sorted(ulids, key=natural) == sorted(ulids)


def test_the_sum_of_the_map_is_the_sum_of_what_was_consumed() -> None:
    """Also with more keys than rows, more keys than a slot names, scans and indexes."""
    planting, chance = Planting(), random.Random(7)
    reads = writes = 0.0
    for _ in seconds(planting, 6):
        for _ in range(1500):
            units = chance.choice((0.5, 1.0, 4.0))
            planting.read(f"USER#{chance.randrange(40_000)}", units)
            reads += units
        planting.write("HOT", 2.0)
        writes += 2.0
        planting.note("Scan", ItemAccess(ARN, None, None, 128.0, 0.0))
        reads += 128.0
    window = planting.window()
    layout = build_layout(window, KEYS)

    assert len(layout.rows) == ROWS_MAX
    assert layout.shared
    assert sum(unpacked(paint_cells(window, layout, KEYS, "reads"))) == reads
    assert sum(unpacked(paint_cells(window, layout, KEYS, "writes"))) == writes
    assert sum(unpacked(paint_cells(window, layout, KEYS, "operations"))) == 6 * 1502
    assert window.sums.reads == reads


def test_rows_lie_in_key_order_and_a_hot_key_keeps_its_own() -> None:
    """Among ten thousand keys the hot key has its own row, between ranges in key order."""
    planting, chance = Planting(), random.Random(3)
    for _ in seconds(planting, 20):
        for _ in range(900):
            planting.write(f"ITEM#{chance.randrange(10_000):05}")
        for _ in range(100):
            planting.write("ITEM#04242")
    layout = build_layout(planting.window(), KEYS)
    keyed = layout.rows[: layout.keyed]

    assert [row.first for row in keyed] == sorted(row.first for row in keyed)
    assert all(before.last < after.first for before, after in pairwise(keyed))
    assert [row.keys for row in keyed if row.label == "ITEM#04242"] == [1]
    assert len(layout.rows) <= ROWS_MAX


def test_growing_coarser_keeps_every_sum() -> None:
    """Seconds become tens of seconds and minutes, and nothing is lost until it is too old."""
    planting = Planting()
    for second in seconds(planting, 1_300):
        for number in range(second % 5 + 1):
            planting.write(f"KEY#{number}", 1.5)
    for _ in range(70):
        planting.clock.advance(60.0)
        planting.write("KEY#0")
    window = planting.window(TIERS[-1].reach_s)
    expected = sum((second % 5 + 1) * 1.5 for second in range(1_300)) + 70

    assert window.sums.writes == expected
    assert {stretch.span_s for stretch in window.slots} == {1, 10, 60}
    assert sum(unpacked(paint_cells(window, build_layout(window, KEYS), KEYS, "writes"))) == expected
    planting.clock.advance(9 * 3600)
    planting.write("KEY#0")
    assert planting.window(24 * 3600).sums.writes == 1.0


def test_memory_is_bounded_whatever_comes() -> None:
    """Keys that never come again are named up to a bound; their sums stay."""
    planting = Planting(entries_max=5_000)
    number = 0
    for _ in seconds(planting, 200):
        for _ in range(100):
            number += 1
            planting.write(f"ORDER#{number}")

    assert planting.recorder.entries() <= 5_000 + 60 * 124
    assert planting.window().sums.operations == number


def test_one_second_with_too_many_keys_is_one_slot() -> None:
    """A second that overflows is put into its slot in parts."""
    planting = Planting()
    for number in range(20_000):
        planting.write(f"ORDER#{number}")
    window = planting.window()

    assert len(window.slots) == 1
    assert window.sums.writes == 20_000


def test_places_are_bounded() -> None:
    """Of too many tables the least recently used one is dropped."""
    planting = Planting()
    for number in range(300):
        planting.note("GetItem", ItemAccess(f"{ARN}{number}", None, key("A"), 0.5, 0.0))
        planting.clock.advance(1.0)

    assert len(planting.recorder.places()) == 256
    assert planting.recorder.window(f"{ARN}299", None, 0, NOW * 2).sums.reads == 0.5
    assert not planting.recorder.window(f"{ARN}0", None, 0, NOW * 2).slots


def test_the_hottest_keys_have_an_error_bound() -> None:
    """A count is never too large, and with its error never too small."""
    planting, chance = Planting(), random.Random(5)
    true: dict[str, int] = {}
    for _ in seconds(planting, 700):  # so that the oldest are merged
        for _ in range(60):
            name = f"K#{int(chance.paretovariate(0.4)) % 3_000}"
            true[name] = true.get(name, 0) + 1
            planting.write(name, sort=f"S#{chance.randrange(5)}")
    window = planting.window(1_000)
    response = hottest_keys(window, "writes", 10)

    assert sorted((each.count for each in response), reverse=True) == [each.count for each in response]
    for each in response:
        assert each.count <= true[KEYS.label(each.key)] <= each.count + each.error
    assert KEYS.label(response[0].key) == max(true, key=lambda name: true[name])
    assert response[0].by_operation == (("PutItem", response[0].count),)
    assert len(hottest_items(window, "writes", 10)) == 10


def test_late_notes_count_where_the_clock_is() -> None:
    """A call that began before the second turned is counted in the second that is open."""
    planting = Planting()
    planting.write("A")
    planting.clock.advance(5.0)
    planting.write("A")
    planting.recorder.note(
        "PutItem", DEFAULT_SCOPE, NOW + 1.5, 3.0, (ItemAccess(ARN, None, key("A"), 0.0, 1.0),), None, b""
    )

    assert [each.slot.start - NOW for each in planting.window().slots] == [0, 5]
    assert planting.window().sums.writes == 3.0


def test_a_throttled_call_of_an_endpoint_counts_at_its_table() -> None:
    """If the key is unknown, a throttled call counts for the table in the request."""
    planting = Planting()
    fault = ProvisionedThroughputExceededFault("too much", [])
    planting.recorder.note("GetItem", DEFAULT_SCOPE, NOW, 0.0, (), fault, b'{"TableName":"Tickets"}')
    planting.recorder.note("GetItem", DEFAULT_SCOPE, NOW, 0.0, (), fault, b"not JSON")

    assert planting.window().sums.throttles == 1


def test_throttled_batches_of_an_endpoint_count_at_each_table() -> None:
    """A batch names its tables where others name one."""
    planting = Planting()
    fault = ProvisionedThroughputExceededFault("too much", [])
    body = b'{"RequestItems":{"Tickets":[],"Others":[]}}'
    planting.recorder.note("BatchWriteItem", DEFAULT_SCOPE, NOW, 0.0, (), fault, body)

    assert planting.window().sums.throttles == 1
    assert len(planting.recorder.places()) == 2


def test_the_past_is_made_coarser_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call after a busy hour does not wait until all of it is merged, and nothing is lost."""
    planting = Planting()
    for _ in seconds(planting, 600):
        for number in range(20):
            planting.write(f"KEY#{number}")
    merges: list[int] = []

    def counted(start: int, *more: Any) -> HeatSlot:
        merges.append(start)
        return merge_slots(start, *more)

    monkeypatch.setattr(heat_recorder, "merge_slots", counted)
    planting.clock.advance(3 * 3600.0)
    planting.write("KEY#0")

    assert len(merges) <= len(TIERS)
    assert planting.window(8 * 3600).sums.writes == 600 * 20 + 1


def test_a_clock_that_was_set_back_clears_the_record() -> None:
    """What comes after is counted at its own time, and not at the time that was."""
    planting = Planting()
    planting.write("A")
    planting.clock.set(NOW - 3_600.0)
    planting.write("B", 2.0)
    window = planting.window()

    assert [(each.slot.start, each.slot.sums.writes) for each in window.slots] == [(NOW - 3_600, 2.0)]


class Counted:
    """Keys that count how often they are put in order: the work of a map."""

    def __init__(self) -> None:
        self.orders = 0

    def order(self, partition: bytes) -> Any:
        self.orders += 1
        return KEYS.order(partition)

    def label(self, whole: bytes) -> str:
        return KEYS.label(whole)

    def values(self, whole: bytes) -> Any:
        return KEYS.values(whole)


@pytest.mark.slow
def test_very_many_keys_are_looked_at_by_a_fair_sample() -> None:
    """The work is bounded, every sum stays, keys that stand out are named, and the pattern is seen all the same."""
    planting, number = Planting(), 0
    for _ in seconds(planting, 60):
        for _ in range(500):
            number += 1
            planting.write(f"ORDER#{number}")
        for _ in range(80):
            planting.write("HOT")
    window, keys = planting.window(), Counted()
    layout = build_layout(window, keys)
    ordered = keys.orders
    layer = paint_cells(window, layout, keys, "writes")
    result = diagnose([window_traffic(window, keys, "writes")])

    assert number > 2 * KEYS_SHOWN
    assert ordered < 1.2 * KEYS_SHOWN
    assert keys.orders < 4 * KEYS_SHOWN
    assert sum(unpacked(layer)) == 60 * 580
    assert "HOT" in [row.label for row in layout.rows]
    (order,) = (each for each in result if each.kind == "sequential")
    assert order.share == pytest.approx(500 / 580, abs=0.02)
    assert re.search(r"about (29|30),\d00 keys with 86%", order.sentence)


def test_a_part_of_a_map_has_finer_rows() -> None:
    """Between the first and last key of a range each key has its own row, and together they have what the range had."""
    planting, chance = Planting(), random.Random(8)
    for _ in seconds(planting, 10):
        for _ in range(900):
            planting.write(f"ITEM#{chance.randrange(5_000):05}")
    window = planting.window()
    layout = build_layout(window, KEYS, 50)
    width = column_count(layout, window)
    rows = rows_of(paint_cells(window, layout, KEYS, "writes"), width)
    at = next(number for number, row in enumerate(layout.rows) if row.kind == "range")
    row = layout.rows[at]
    finer = build_layout(window, KEYS, ROWS_MAX, (row.first, row.last))
    inside = rows_of(paint_cells(window, finer, KEYS, "writes"), width)

    assert len(finer.rows) == row.keys > 50
    assert all(each.kind == "key" for each in finer.rows)
    assert [sum(column) for column in zip(*inside, strict=True)] == rows[at]


# Planted patterns.


def test_a_hot_key_is_named_with_its_share_and_its_factor() -> None:
    """The sentence has the key, the share, the limit and how far away it is."""
    planting = Planting()
    for _ in seconds(planting, 60):
        for number in range(38):
            planting.write(f"TICKET#{number + 100}")
        for _ in range(62):
            planting.write("TICKET#42")

    assert planting.kinds()[0] == "hot-key"
    assert planting.sentence() == (
        "TICKET#42 receives 62% of writes: 62 write units per second at its peak. The partition limit is 1,000, "
        "which is 16 times as much."
    )


def test_a_key_above_the_partition_limit_is_reported() -> None:
    """A key that takes more than a partition today needs no factor."""
    planting = Planting()
    for _ in seconds(planting, 10):
        planting.write("COUNTER", 1_200.0)
        planting.write("OTHER", 10.0)

    assert (
        "1,200 write units per second at its peak, above the partition limit of 1,000." in planting.sentence()
    )


def test_keys_in_order_are_a_diagonal() -> None:
    """New keys at every moment, each for a moment: the hash spreads them, and the sentence says so."""
    planting, number = Planting(), 0
    for _ in seconds(planting, 60):
        for _ in range(7):
            number += 1
            planting.write(f"ORDER#{number}")

    assert planting.kinds()[0] == "sequential"
    assert "ORDER#1 … ORDER#420" in planting.sentence()


def test_keys_in_order_one_at_a_time_are_a_hot_key_that_moves() -> None:
    """A date as a partition key takes all writes of its time."""
    planting = Planting()
    for second in seconds(planting, 120):
        for _ in range(50):
            planting.write(f"DAY#{second // 4:03}")

    assert planting.kinds()[0] == "moving-key"
    assert "at any time one key receives 100%" in planting.sentence()


def test_an_even_load_is_called_even() -> None:
    """Chance alone is no pattern."""
    planting, chance = Planting(), random.Random(1)
    for _ in seconds(planting, 60):
        for _ in range(100):
            planting.write(f"USER#{chance.randrange(500)}")

    assert planting.kinds() == ["even"]


def test_zipf_is_skewed_and_names_its_first() -> None:
    """Zipf's law with exponent 0.8 is neither even nor one hot key."""
    planting, chance = Planting(), random.Random(2)
    weights = [1 / (rank + 1) ** 0.8 for rank in range(1_000)]
    names = [f"USER#{rank}" for rank in range(1_000)]
    for _ in seconds(planting, 60):
        for name in chance.choices(names, weights, k=200):
            planting.write(name)

    assert planting.kinds()[0] == "skewed"
    assert "USER#0" in planting.sentence()


def test_a_burst_is_seen() -> None:
    """A few seconds that have most of the writes."""
    planting, chance = Planting(), random.Random(4)
    for second in seconds(planting, 120):
        for _ in range(400 if 60 <= second < 66 else 4):
            planting.write(f"USER#{chance.randrange(500)}")

    assert "burst" in planting.kinds()
    assert planting.sentence().startswith("Traffic comes in bursts: 12 s of 120 s")


def test_scans_that_read_most_are_named() -> None:
    """Accesses without a key belong to scans."""
    planting = Planting()
    for second in seconds(planting, 60):
        planting.note("Scan", ItemAccess(ARN, None, None, 128.0, 0.0))
        planting.read(f"USER#{second}")

    assert planting.kinds()[0] == "scan-heavy"
    assert planting.sentence().startswith("Scans are 100% of reads: a query by key")


def test_a_handful_of_requests_is_no_pattern() -> None:
    """Three reads of one key say nothing of a program, and the sentence says that."""
    planting = Planting()
    for _ in seconds(planting, 3):
        planting.read("CUSTOMER#c1", 1.0)

    assert planting.kinds() == ["few"]
    assert planting.sentence() == "3 read units were consumed, too little for a diagnosis."


def test_idle_time_is_reported() -> None:
    """A table without requests is idle."""
    assert Planting().kinds() == ["idle"]


# The API, on a real engine.


TICKETS = {
    "TableName": "Tickets",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "status")
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def ticket(name: str, status: str = "open", sort: str = "A") -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": sort}, "status": {"S": status}}


class Desk(ApiClient):
    """A studio on an engine with tickets, and a clock to move."""

    def __init__(self, **more: Any) -> None:
        self.clock = ManualClock(float(NOW))
        super().__init__(Engine.open(clock=self.clock, **more))
        self.engine.call("CreateTable", TICKETS)
        self.engine.observe(self.monitor)

    def put(self, name: str, status: str = "open", sort: str = "A") -> None:
        self.engine.call("PutItem", {"TableName": "Tickets", "Item": ticket(name, status, sort)})

    def heat(self, **asked: Any) -> Any:
        return self.call("GET /heat", {"table": "Tickets", **asked})


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.engine.close()


def test_a_planted_hot_key_is_a_bright_row_and_the_diagnosis(desk: Desk) -> None:
    """Live heat of an engine: the row of the key has what was written, second by second."""
    for second in range(20):
        for number in range(6):
            desk.put(f"TICKET#{number * 20 + second}")
        for _ in range(14):
            desk.put("TICKET#42")
        desk.clock.advance(1.0)
    result = desk.heat(metric="writes", seconds=60)
    rows = rows_of(result["cells"], result["columns"])
    sums = {label: sum(row) for label, row in zip(result["labels"], rows, strict=True)}

    assert (result["whole"], result["source"], result["column_s"]) == (True, "engine", 1)
    assert max(sums, key=lambda label: sums[label]) == "TICKET#42"
    assert sum(sums.values()) == sum(result["totals"]["writes"]) == 20 * 20
    assert result["diagnosis"][0]["kind"] == "hot-key"
    assert result["diagnosis"][0]["share"] == pytest.approx(281 / 400, abs=0.01)


def test_a_sequential_key_goes_down_the_map_as_time_goes_on(desk: Desk) -> None:
    """Each row is bright later than the one above it."""
    for number in range(60):
        desk.put(f"TICKET#{number}")
        if number % 3 == 2:
            desk.clock.advance(1.0)
    result = desk.heat(metric="writes", seconds=60)
    rows = rows_of(result["cells"], result["columns"])
    bright = [row.index(max(row)) for row in rows]

    assert result["labels"] == [f"TICKET#{number}" for number in range(60)]
    assert bright == sorted(bright)
    assert result["diagnosis"][0]["kind"] == "sequential"


def test_writes_to_an_index_are_at_the_entries_own_keys(desk: Desk) -> None:
    """An entry that moves is written at both keys, and together they cost what the index consumed."""
    desk.put("TICKET#1", "open")
    desk.put("TICKET#2", "open")
    desk.put("TICKET#1", "closed")
    desk.engine.call(
        "Query",
        {
            "TableName": "Tickets",
            "IndexName": "by-status",
            "KeyConditionExpression": "#s = :s",
            "ExpressionAttributeNames": {"#s": "status"},
            "ExpressionAttributeValues": {":s": {"S": "open"}},
        },
    )
    result = desk.heat(index="by-status", metric="writes")
    reads = desk.heat(index="by-status", metric="reads")
    sums = dict(zip(result["labels"], map(sum, rows_of(result["cells"], result["columns"])), strict=True))

    assert sums == {"open": 3.0, "closed": 1.0}
    assert sum(unpacked(reads["cells"])) == 0.5


def test_new_columns_come_without_the_map(desk: Desk) -> None:
    """A request with a layout gets the new columns, and the new rows with their positions."""
    desk.put("TICKET#1")
    desk.put("TICKET#3")
    desk.clock.advance(1.0)
    whole = desk.heat(seconds=60)
    desk.put("TICKET#2")
    desk.put("TICKET#3")
    desk.clock.advance(1.0)
    more = desk.heat(seconds=60, layout=whole["layout"], since_s=NOW + 1)

    assert not more["whole"]
    assert (more["labels"], more["places"], more["rows"]) == (["TICKET#2"], [1], 3)
    assert (more["from_s"], more["columns"]) == (NOW + 1, 2)
    assert rows_of(more["cells"], 2) == [[0, 0], [1, 0], [1, 0]]
    again = desk.heat(seconds=60, layout="L0", since_s=NOW + 1)
    assert again["whole"]


def test_a_key_that_does_not_fit_needs_a_new_map(desk: Desk) -> None:
    """A first scan has no row, so the map comes whole."""
    desk.put("TICKET#1")
    whole = desk.heat()
    desk.engine.call("Scan", {"TableName": "Tickets"})
    more = desk.heat(layout=whole["layout"], since_s=NOW)

    assert more["whole"]
    assert more["kinds"] == ["key", "none"]


def test_a_cell_has_its_keys_and_operations(desk: Desk) -> None:
    """Behind a cell: partition keys, whole keys and operations."""
    desk.put("TICKET#1", sort="A")
    desk.put("TICKET#1", sort="B")
    desk.engine.call("GetItem", {"TableName": "Tickets", "Key": {"pk": {"S": "TICKET#1"}, "sk": {"S": "A"}}})
    desk.put("TICKET#2")
    whole = desk.heat()
    request = {"table": "Tickets", "layout": whole["layout"], "row": 0, "from_s": NOW, "to_s": NOW + 1}
    cell = desk.call("GET /heat/cell", request)

    assert cell["label"] == "TICKET#1"
    assert (cell["operations"], cell["writes"], cell["reads"]) == (3.0, 2.0, 0.5)
    assert cell["by_operation"] == [
        {"operation": "PutItem", "amount": 2.0},
        {"operation": "GetItem", "amount": 1.0},
    ]
    assert [row["key"] for row in cell["keys"]] == [{"pk": {"S": "TICKET#1"}}]
    assert [(row["label"], row["count"]) for row in cell["items"]] == [
        ("TICKET#1 A", 2.0),
        ("TICKET#1 B", 1.0),
    ]
    with pytest.raises(RequestRefused, match="out of date"):
        desk.call("GET /heat/cell", {**request, "layout": "gone"})


def test_throttled_keys_are_reported(desk: Desk) -> None:
    """What throughput emulation refuses is counted at its key, also of transactions and batches."""
    tight = Desk(emulate="throughput")
    try:
        tight.engine.call(
            "UpdateTable",
            {
                "TableName": "Tickets",
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                "GlobalSecondaryIndexUpdates": [
                    {
                        "Update": {
                            "IndexName": "by-status",
                            "ProvisionedThroughput": {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100},
                        }
                    }
                ],
            },
        )
        refused = 0
        for _ in range(400):
            try:
                tight.put("TICKET#9")
            except ProvisionedThroughputExceededFault:
                refused += 1
        puts = [{"Put": {"TableName": "Tickets", "Item": ticket("TICKET#9")}}]
        with pytest.raises(TransactionCanceledFault):
            tight.engine.call("TransactWriteItems", {"TransactItems": puts})
        expected = [{"PutRequest": {"Item": ticket(name)}} for name in ("TICKET#9", "TICKET#8")]
        with pytest.raises(ProvisionedThroughputExceededFault):
            tight.engine.call("BatchWriteItem", {"RequestItems": {"Tickets": expected}})
        refused += 2
        result = tight.heat(metric="throttles")
        hottest_ = tight.call("GET /heat/hottest", {"table": "Tickets", "metric": "throttles"})
    finally:
        tight.engine.close()

    assert refused > 50
    assert sum(unpacked(result["cells"])) == refused + 1 == sum(unpacked(result["throttled"]))
    assert result["diagnosis"][0]["kind"] == "throttled"
    assert (
        f"{refused + 1} requests were throttled, 100% of them on TICKET#9"
        in result["diagnosis"][0]["sentence"]
    )
    assert hottest_["partitions"][0]["throttles"] == refused
    assert hottest_["insights"]["throttled"][0]["key"] == {"pk": {"S": "TICKET#9"}}
    assert result["limits"] == {
        "partition_reads": 3000,
        "partition_writes": 1000,
        "reads": 1.0,
        "writes": 1.0,
        "mode": "provisioned",
    }


def test_the_hottest_keys_have_their_share(desk: Desk) -> None:
    """Shares are relative to all requests."""
    for _ in range(3):
        desk.put("TICKET#1")
    desk.put("TICKET#2")
    result = desk.call("GET /heat/hottest", {"table": "Tickets", "metric": "writes"})

    assert [(row["label"], row["count"], row["share"]) for row in result["partitions"]] == [
        ("TICKET#1", 3.0, 0.75),
        ("TICKET#2", 1.0, 0.25),
    ]
    assert result["insights"] is None


@pytest.mark.parametrize("sync", [False, True])
def test_the_studios_own_calls_are_in_no_map(tmp_path: Path, sync: bool) -> None:
    """The studio's own reads and writes are not recorded, also with a synced file, where calls are reported late."""
    desk = Desk(**({"path": tmp_path / "shop.db", "sync": "full"} if sync else {}))
    for number in range(2):
        desk.put(f"TICKET#{number}")

    async def both() -> None:
        async with connect_async(desk.engine) as program:
            studio = desk.studio(program)
            own = studio.db.call("PutItem", {"TableName": "Tickets", "Item": ticket("TICKET#9")})
            other = program.call("PutItem", {"TableName": "Tickets", "Item": ticket("TICKET#2")})
            await asyncio.gather(own, other)  # they share a sync, and whose they are is told apart
            await studio.db.call("Scan", {"TableName": "Tickets"})

    asyncio.run(both())
    result = desk.heat(metric="operations")
    response = desk.call("GET /operations", {})
    desk.engine.close()

    assert result["labels"] == ["TICKET#0", "TICKET#1", "TICKET#2"]
    assert {row["operation"]: row["totals"]["requests"] for row in response["rows"]} == {"PutItem": 3}
    assert response["own_calls"] >= 2


def test_tables_of_another_process_have_a_note(desk: Desk) -> None:
    """Where the engine is elsewhere, the note says that only the studio's own calls are seen, and what to do."""
    desk.settings = {"engine": None}
    result = desk.heat()

    assert result["source"] == "studio"
    assert "tavola serve --studio" in result["note"]


def test_a_recreated_table_starts_empty(desk: Desk) -> None:
    """A table of the same name may have other keys, by which the old ones cannot be read."""
    desk.put("TICKET#1")
    desk.engine.call("DeleteTable", {"TableName": "Tickets"})
    desk.clock.advance(1.0)
    schema = [{"AttributeName": "n", "KeyType": "HASH"}]
    types = [{"AttributeName": "n", "AttributeType": "N"}]
    request = {"TableName": "Tickets", "KeySchema": schema, "AttributeDefinitions": types}
    desk.engine.call("CreateTable", {**request, "BillingMode": "PAY_PER_REQUEST"})
    desk.engine.call("PutItem", {"TableName": "Tickets", "Item": {"n": {"N": "5"}}})

    assert desk.heat()["labels"] == ["5"]
    assert SchemaKeys(KeySchema((KeyAttribute("n", "N"),))).label(key("A")).startswith("key ")


def test_a_layout_of_another_table_gives_a_whole_map(desk: Desk) -> None:
    """Rows are of the table that they were made for."""
    desk.engine.call("CreateTable", {**TICKETS, "TableName": "Others"})
    desk.put("TICKET#1")
    whole = desk.heat()
    other = desk.call("GET /heat", {"table": "Others", "layout": whole["layout"], "since_s": NOW})

    assert other["whole"]
    assert other["rows"] == 0


def test_a_page_that_was_away_for_long_gets_a_whole_map(desk: Desk) -> None:
    """New columns are for a map that still has some of its old ones."""
    desk.put("TICKET#1")
    whole = desk.heat(seconds=60)
    desk.clock.advance(1_200.0)
    desk.put("TICKET#1")
    more = desk.heat(seconds=60, layout=whole["layout"], since_s=NOW)

    assert more["whole"]
    assert more["columns"] == 60


def test_a_part_of_a_map_is_requested_by_its_keys(desk: Desk) -> None:
    """Ranges tell their first and last key, and with those the same map comes in finer rows, and goes on so."""
    for number in range(60):
        desk.put(f"TICKET#{number}")
    whole = desk.heat(buckets=10, metric="writes")
    at = whole["kinds"].index("range")
    ends = {"first": whole["first_keys"][at], "last": whole["last_keys"][at]}
    finer = desk.heat(buckets=10, metric="writes", **ends)
    desk.put("TICKET#59")
    desk.put(finer["labels"][0])
    more = desk.heat(metric="writes", layout=finer["layout"], since_s=NOW, **ends)

    assert finer["labels"] == [f"TICKET#{number}" for number in range(whole["keys"][at])]
    assert sum(unpacked(finer["cells"])) == whole["keys"][at]
    assert not more["whole"]
    assert sum(unpacked(more["cells"])) == whole["keys"][at] + 1
    with pytest.raises(RequestRefused, match="hexadecimal"):
        desk.heat(first="no", last="hex")


def test_an_old_cell_reports_its_time_range(desk: Desk) -> None:
    """A second that was merged with others is returned with their time range."""
    for _ in range(10):
        desk.put("TICKET#1")
        desk.clock.advance(1.0)
    whole = desk.heat()
    desk.clock.advance(1_200.0)
    request = {"table": "Tickets", "layout": whole["layout"], "row": 0, "from_s": NOW + 3, "to_s": NOW + 4}
    cell = desk.call("GET /heat/cell", request)

    assert (cell["from_s"], cell["to_s"], cell["writes"]) == (NOW, NOW + 10, 10.0)


def test_an_unknown_index_is_refused(desk: Desk) -> None:
    """A map of what is not there is none."""
    with pytest.raises(RequestRefused, match="no index by-nothing"):
        desk.heat(index="by-nothing")
    with pytest.raises(RequestRefused, match="No access log"):
        desk.heat(log=True)


def record(second: int, keys: Sequence[str], writes: float, error: str | None = None) -> dict[str, Any]:
    response: dict[str, Any] = {
        "eventTime": f"2026-11-01T09:00:{second:02}Z",
        "eventName": "BatchWriteItem" if len(keys) > 1 else "PutItem",
        "requestParameters": {"tableName": "Tickets", "keys": list(keys)},
        "additionalEventData": {"consumed": [{"table": "Tickets", "reads": 0.0, "writes": writes}]},
    }
    return response if error is None else {**response, "errorCode": error, "additionalEventData": {}}


def test_an_access_log_gives_a_map_of_hashes(desk: Desk) -> None:
    """Units of a call of several keys are shared in halves, and nothing is lost; refusals are throttles."""
    records = [
        record(0, ["aaaa", "bbbb"], 3.0),
        record(1, ["aaaa"], 1.0),
        record(2, ["aaaa"], 0.0, "ThrottlingException"),
        record(3, ["bbbb"], 0.0, "ConditionalCheckFailedException"),
        {"eventName": "odd"},
    ]
    desk.settings = {"log": lambda question: iter(reversed(records))}
    result = desk.heat(log=True, metric="writes")
    sums = dict(zip(result["labels"], map(sum, rows_of(result["cells"], result["columns"])), strict=True))

    first = result["from_s"]
    request = {"table": "Tickets", "layout": result["layout"], "row": 0, "from_s": first, "to_s": first + 1}
    cell = desk.call("GET /heat/cell", {**request, "metric": "writes"})

    assert sums == {"hash aaaa": 2.5, "hash bbbb": 1.5}
    assert sum(unpacked(result["throttled"])) == 1
    assert (result["source"], result["columns"]) == ("log", 3)
    assert (cell["label"], cell["writes"]) == ("hash aaaa", 1.5)
    assert cell["by_operation"] == [{"operation": "BatchWriteItem", "amount": 1.0}]


def test_a_log_in_another_format_is_skipped(desk: Desk) -> None:
    """Records of another shape, and more operations than there are, make no map and no error."""
    whole = record(0, ["aaaa"], 1.0)
    odd: list[dict[str, Any]] = [
        {**whole, "requestParameters": {"tables": 5}},
        {**whole, "requestParameters": ["Tickets"]},
        {**whole, "additionalEventData": {"consumed": ["Tickets"]}},
        {**whole, "additionalEventData": {"consumed": [{"table": "Tickets", "writes": "many"}]}},
        {**whole, "eventTime": "yesterday"},
    ]
    many = [{**whole, "eventName": f"Operation{number}"} for number in range(400)]
    desk.settings = {"log": lambda question: iter([*odd, *many])}
    result = desk.heat(log=True, metric="writes")

    assert sum(unpacked(result["cells"])) == 400


def test_a_whole_map_is_small() -> None:
    """A thousand keys over six hundred seconds: the cells are well under a megabyte."""
    planting = Planting()
    accesses = [(ItemAccess(ARN, None, key(f"K#{number}"), 0.0, 1.0),) for number in range(1_000)]
    for second in range(600):
        for access in accesses[second % 10 :: 10]:
            planting.recorder.note("PutItem", DEFAULT_SCOPE, NOW + second, 0.0, access, None, b"")
    planting.clock.set(NOW + 599.0)
    window = planting.window(600)
    layout = build_layout(window, KEYS)
    layer = paint_cells(window, layout, KEYS, "writes")

    assert (len(layout.rows), column_count(layout, window)) == (1_000, 600)
    assert sum(unpacked(layer)) == 60_000
    assert len(layer.data) < 300_000
