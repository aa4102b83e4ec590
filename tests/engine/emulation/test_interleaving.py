"""Interleaving: records change places across items, each item's order stays, and a reader may come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tavola.engine import Engine
from tavola.engine.emulation import interleave
from tavola.engine.storage import ChangeLogRow
from tests.engine.emulation.load import item, make, opened, put


def _rows(keys: Sequence[int]) -> list[ChangeLogRow]:
    return [
        ChangeLogRow(10 + place, 1000 + place, f"{key}".encode(), 0, None, f"{place}".encode())
        for place, key in enumerate(keys)
    ]


def _keeps_order(rows: Sequence[ChangeLogRow], mixed: Sequence[ChangeLogRow]) -> bool:
    """Return whether every item's changes come in the order they were made, all of them, under rising ids."""
    if [row.id for row in mixed] != [row.id for row in rows]:
        return False
    by_key: dict[bytes, list[Any]] = {}
    for row in mixed:
        by_key.setdefault(row.key, []).append(row.new)
    return all(
        came == [row.new for row in rows if row.key == key] for key, came in by_key.items()
    ) and sorted(row.at_us for row in mixed) == [row.at_us for row in rows]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 100))
def test_every_item_keeps_its_order(keys: list[int], seed: int) -> None:
    """Whatever the changes and the seed, ids rise as before and no item's changes overtake each other."""
    rows = _rows(keys)

    assert _keeps_order(rows, interleave(rows, f"interleave:{seed}"))


def test_the_check_of_the_order_finds_two_changes_exchanged() -> None:
    """A planted fault: two changes of one item in the wrong order are seen."""
    rows = _rows([1, 2, 1])
    planted = [rows[2]._replace(id=10), rows[1], rows[0]._replace(id=12)]

    assert not _keeps_order(rows, planted)


def test_different_items_change_places_by_the_seed() -> None:
    """Records of different items come in another order, the same for one seed and another for the next."""
    rows = _rows(list(range(12)))
    orders = [tuple(row.key for row in interleave(rows, f"interleave:{seed}")) for seed in (1, 1, 2)]

    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != tuple(row.key for row in rows)


def _streamed(engine: Engine) -> str:
    make(
        engine,
        "notes",
        units=(5, 5),
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    found: str = engine.call("DescribeTable", {"TableName": "notes"})["Table"]["LatestStreamArn"]
    return found


def _read(engine: Engine, arn: str, limit: int) -> list[tuple[str, str, str]]:
    shard = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = engine.call(
        "GetShardIterator", {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    )["ShardIterator"]
    found: list[tuple[str, str, str]] = []
    while True:
        page = engine.call("GetRecords", {"ShardIterator": iterator, "Limit": limit})
        for record in page["Records"]:
            result = record["dynamodb"]
            found.append(
                (result["SequenceNumber"], result["NewImage"]["pk"]["S"], result["NewImage"]["n"]["S"])
            )
        iterator = page["NextShardIterator"]
        if not page["Records"]:
            return found


def test_a_stream_interleaves_items_once_the_window_is_over() -> None:
    """Records come after their window, mixed across items, in order for each, however a reader pages."""
    engine, clock = opened("interleave=1s,seed=4")
    arn = _streamed(engine)
    clock.set(1_700_000_100.0)
    for number in range(32):
        put(engine, "notes", item(f"k{number % 8}", n=f"{number:03}"))
        clock.advance(1 / 16)
    early = _read(engine, arn, 1000)
    clock.advance(5.0)
    whole, in_pieces = _read(engine, arn, 1000), _read(engine, arn, 3)

    assert len(early) == 32  # two windows of 16, both over: the clock stands at the end of the second
    assert whole == in_pieces == early
    assert [number for _, _, number in whole] != sorted(number for _, _, number in whole)
    assert [sequence for sequence, _, _ in whole] == sorted(sequence for sequence, _, _ in whole)
    for key in {key for _, key, _ in whole}:
        own = [number for _, found, number in whole if found == key]
        assert own == sorted(own)
    # No record moved out of its window of 16.
    assert {number for _, _, number in whole[:16]} == {f"{number:03}" for number in range(16)}


def test_an_open_window_is_withheld() -> None:
    """What is in a window that is not over is not shown yet, and nothing of it is lost."""
    engine, clock = opened("interleave=10s")
    arn = _streamed(engine)
    clock.set(1_700_000_100.0)
    put(engine, "notes", item("a", n="0"))
    before = _read(engine, arn, 10)
    clock.advance(10.0)

    assert before == []
    assert len(_read(engine, arn, 10)) == 1


def test_a_reader_who_starts_in_a_window_misses_nothing_after() -> None:
    """LATEST and AT_TIMESTAMP start where their window began: some that came before, all that came after."""
    for seed in range(5):
        engine, clock = opened(f"interleave=10s,seed={seed}")
        arn = _streamed(engine)
        clock.set(1_700_000_100.0)
        shard = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]["ShardId"]
        ask = {"StreamArn": arn, "ShardId": shard}
        for number in range(8):
            put(engine, "notes", item(f"k{number}", n="before"))
        clock.advance(1.0)
        latest = engine.call("GetShardIterator", {**ask, "ShardIteratorType": "LATEST"})["ShardIterator"]
        timed = engine.call(
            "GetShardIterator", {**ask, "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": clock.now()}
        )["ShardIterator"]
        for number in range(8):
            put(engine, "notes", item(f"l{number}", n="after"))
        clock.advance(20.0)
        for iterator in (latest, timed):
            records = engine.call("GetRecords", {"ShardIterator": iterator})["Records"]
            result = [record["dynamodb"]["NewImage"]["n"]["S"] for record in records]

            assert result.count("after") == 8
