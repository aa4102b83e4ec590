"""Parents before children, and a reading that finds its place again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tavola.client.effects import run_program
from tavola.client.streams import (
    RecordMalformed,
    RecordPage,
    Shard,
    ShardPosition,
    ShardReader,
    StreamGone,
    StreamMissing,
    describe_stream,
    latest_stream_arn,
    readable_shards,
)
from tavola.protocol.faults import ResourceNotFoundFault, ThrottlingFault
from tavola.triggers import stream_consumer
from tests.triggers.fake import ARN, START_S, FakeStream, sequence, shard_id


class Reader:
    """Runs the programs of a shard reader on a stream, without retries."""

    def __init__(self, stream: FakeStream, reader: ShardReader) -> None:
        self._stream = stream
        self._reader = reader

    def open(self) -> None:
        """Get the iterator."""
        run(self._stream.call, self._reader.open())

    def read(self) -> RecordPage:
        """Return the next records."""
        page: RecordPage = run(self._stream.call, self._reader.read())
        return page


def run(call: Callable[[str, Mapping[str, Any]], Any], program: Any) -> Any:
    """Return what a program returns, each call made once."""
    return run_program(program, lambda effect: call(effect.operation, effect.request))


def reader(stream: FakeStream, position: ShardPosition | None = None, *, latest: bool = False) -> Reader:
    shard = ShardReader(
        ARN, shard_id("a"), position or ShardPosition(), latest=latest, on_loss=stream_consumer._log_loss
    )
    return Reader(stream, shard)


def numbers(page: RecordPage) -> list[int]:
    return [int(record["dynamodb"]["SequenceNumber"]) for record in page.records]


@pytest.fixture
def stream() -> FakeStream:
    """One shard with five records, read two at a time."""
    found = FakeStream(page=2)
    found.add("a")
    for _ in range(5):
        found.put("a")
    return found


def test_a_description_of_many_pages_is_read_to_its_end() -> None:
    """A stream may have more shards than one answer holds."""
    stream = FakeStream(shards_a_page=2)
    for name in "abcde":
        stream.add(name)
    stream.finish("b")
    found = run(stream.call, describe_stream(ARN))

    assert [shard.id for shard in found.shards] == [shard_id(name) for name in "abcde"]
    assert [shard.closed for shard in found.shards] == [False, True, False, False, False]
    assert (found.hash_key, found.status, found.table) == ("id", "ENABLED", "Orders")


def test_a_child_waits_for_its_parent() -> None:
    """A shard may be read once its parent is finished, or is no longer in the stream."""
    lineage = (
        Shard("a", None, True),
        Shard("b", "a", True),
        Shard("c", "b", False),
        Shard("d", "gone", False),
    )

    assert [shard.id for shard in readable_shards(lineage, set())] == ["a", "d"]
    assert [shard.id for shard in readable_shards(lineage, {"a"})] == ["b", "d"]
    assert [shard.id for shard in readable_shards(lineage, {"a", "b", "d"})] == ["c"]


def test_both_children_of_a_split_are_read() -> None:
    """After a split both halves go on."""
    lineage = (Shard("a", None, True), Shard("b", "a", False), Shard("c", "a", False))

    assert [shard.id for shard in readable_shards(lineage, {"a"})] == ["b", "c"]


def test_a_table_without_a_stream_is_told() -> None:
    """The sentence says how to enable one."""
    with pytest.raises(StreamMissing, match="StreamSpecification"):
        run(lambda operation, request: {"Table": {}}, latest_stream_arn("Orders"))


def test_a_stream_that_is_gone_is_told(stream: FakeStream) -> None:
    """A deleted stream is no riddle of the service."""
    stream.fail("DescribeStream", ResourceNotFoundFault())

    with pytest.raises(StreamGone, match="no longer exists"):
        run(stream.call, describe_stream(ARN))


def test_a_closed_shard_ends(stream: FakeStream) -> None:
    """An open shard goes on for ever, a closed one to its last record."""
    found = reader(stream)
    assert [numbers(found.read()) for _ in range(4)] == [[1, 2], [3, 4], [5], []]
    assert not found.read().ended
    stream.finish("a")

    assert found.read().ended


def test_an_expired_iterator_is_got_anew(stream: FakeStream) -> None:
    """The reading goes on after the last record that was read, whatever is checkpointed."""
    found = reader(stream)
    found.read()
    stream.expire_iterators()

    assert numbers(found.read()) == [3, 4]
    assert stream.calls[-2][1]["SequenceNumber"] == sequence(2)


def test_a_restart_goes_on_after_its_position(stream: FakeStream) -> None:
    """The checkpoint is the last record that is dealt with."""
    assert numbers(reader(stream, ShardPosition(after=sequence(3))).read()) == [4, 5]


def test_latest_is_the_moment_it_is_opened(stream: FakeStream) -> None:
    """Records from the opening on are read, also if the iterator expires before the first of them."""
    found = reader(stream, ShardPosition(since_s=START_S + 100), latest=True)
    found.open()
    stream.put("a", at_s=START_S + 101)
    stream.expire_iterators()

    assert numbers(found.read()) == [6]


def test_a_restart_after_latest_goes_back_to_its_beginning(stream: FakeStream) -> None:
    """A trigger that was begun at LATEST, and stopped before its first record, does not begin anew."""
    stream.put("a", at_s=START_S + 101)

    assert numbers(reader(stream, ShardPosition(since_s=START_S + 100)).read()) == [6]


def test_a_beginning_is_found_where_no_time_is_known(stream: FakeStream) -> None:
    """An endpoint that refuses AT_TIMESTAMP is read from its start; what was made before the beginning is passed over."""
    stream.knows_times = False
    stream.put("a", at_s=START_S + 101)
    found = reader(stream, ShardPosition(since_s=START_S + 100))
    pages = [found.read() for _ in range(3)]

    assert [numbers(page) for page in pages] == [[], [], [6]]
    assert [page.skipped for page in pages] == [2, 2, 1]


@pytest.mark.parametrize("while_reading", [False, True])
def test_trimmed_records_are_told(
    stream: FakeStream, caplog: pytest.LogCaptureFixture, while_reading: bool
) -> None:
    """What is older than a day is gone; the reading goes on with the oldest there is, and says so."""
    found = reader(stream, ShardPosition(after=sequence(1)))
    if while_reading:
        assert numbers(found.read()) == [2, 3]
    stream.trim("a", 4)

    with caplog.at_level(logging.WARNING):
        assert numbers(found.read()) == [5]
    assert "TRIM_HORIZON" in caplog.text
    assert sequence(3 if while_reading else 1) in caplog.text


def test_a_shard_that_is_gone_has_ended(stream: FakeStream, caplog: pytest.LogCaptureFixture) -> None:
    """A closed shard disappears after its day; there is nothing left to read."""
    found = reader(stream)
    del stream.shards[shard_id("a")]

    with caplog.at_level(logging.WARNING):
        assert found.read() == RecordPage((), ended=True)
    assert "no longer in the stream" in caplog.text


def test_a_throttle_is_left_to_the_caller(stream: FakeStream) -> None:
    """When to ask again is not decided here; the place is not lost."""
    found = reader(stream)
    found.read()
    stream.fail("GetRecords", ThrottlingFault("slow down"))

    with pytest.raises(ThrottlingFault):
        found.read()
    assert numbers(found.read()) == [3, 4]


def test_no_record_is_read_twice(stream: FakeStream) -> None:
    """A place that lies before what was read gives only what is new."""
    found = reader(stream, ShardPosition(since_s=START_S))
    assert numbers(found.read()) == [1, 2]
    stream.trim("a", 1)  # the horizon is before what was read
    stream.expire_iterators()

    assert numbers(found.read()) == [3, 4]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"dynamodb": None},
        {"dynamodb": {"Keys": {}}},
        {"dynamodb": {"SequenceNumber": ""}},
        {"dynamodb": {"SequenceNumber": "x"}},
        {"dynamodb": {"SequenceNumber": sequence(3), "Keys": None}},
        {"dynamodb": {"SequenceNumber": sequence(3), "ApproximateCreationDateTime": "today"}},
    ],
)
def test_a_page_with_a_malformed_record_is_not_left_behind(
    stream: FakeStream, broken: dict[str, Any]
) -> None:
    """A record that cannot be told from others is an error each time it is read; the iterator stays before its page."""
    found = reader(stream)
    assert numbers(found.read()) == [1, 2]
    whole = stream.shards[shard_id("a")].records[2]
    stream.shards[shard_id("a")].records[2] = broken

    for _ in range(2):
        with pytest.raises(RecordMalformed):
            found.read()
    stream.shards[shard_id("a")].records[2] = whole

    assert numbers(found.read()) == [3, 4]
