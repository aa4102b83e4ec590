"""A trigger on a stream that does what a real one seldom does: split, expire, trim, throttle, fall silent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tavola.backends.errors import CredentialsMissing, EndpointUnreachable
from tavola.client.checkpoints import CheckpointRefused
from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.protocol.faults import AccessDeniedFault, ResourceNotFoundFault, ThrottlingFault
from tavola.triggers import (
    Backoff,
    CheckpointLog,
    DrainUnfinished,
    EventSourceMapping,
    HandlerFailing,
    MemoryCheckpoint,
    MemoryDeadLetters,
    Position,
    StreamGone,
    Trigger,
    TriggerCheckpoint,
    TriggerError,
    TriggerFileRefused,
)
from tavola.triggers.events import stream_record
from tests.triggers.fake import ARN, START_S, FakeStream, sequence, shard_id


class Seen:
    """A handler that notes its batches, and fails as it is told."""

    def __init__(self, *poison: int) -> None:
        self.batches: list[list[int]] = []
        self.poison = set(poison)
        self.handled: list[int] = []

    def __call__(self, event: dict[str, Any], context: object) -> None:
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in event["Records"]]
        self.batches.append(numbers)
        if self.poison & set(numbers):
            raise ValueError(f"poison in {numbers}")
        self.handled += numbers


class Reporting(Seen):
    """A handler that reports the first record that it cannot handle."""

    def __call__(self, event: dict[str, Any], context: object) -> Any:
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in event["Records"]]
        self.batches.append(numbers)
        for number in numbers:
            if number in self.poison:
                return {"batchItemFailures": [{"itemIdentifier": sequence(number)}]}
            self.handled.append(number)
        return {"batchItemFailures": []}


def trigger(stream: FakeStream, handler: Any, **settings: Any) -> Trigger:
    given = {"table": "Orders", "clock": ManualClock(START_S), "entropy": SeededEntropy(1), **settings}
    return Trigger(stream, handler=handler, **given)


@pytest.fixture
def stream() -> FakeStream:
    """One shard with ten records."""
    found = FakeStream()
    found.add("a")
    for _ in range(10):
        found.put("a")
    return found


def test_everything_is_handled_once_in_batches(stream: FakeStream) -> None:
    """A drain hands over what is there, in order, a batch at a time; a second finds what came since."""
    seen = Seen()
    found = trigger(stream, seen, mapping=EventSourceMapping(batch_size=4))

    assert found.drain() == 10
    assert seen.batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert found.drain() == 0
    stream.put("a")
    assert found.drain() == 1
    assert found.statistics.invocations == 4


def test_a_drain_does_not_wait_for_the_window(stream: FakeStream) -> None:
    """A test need not wait five minutes for a partial batch; a step does."""
    seen = Seen()
    clock = ManualClock(START_S)
    mapping = EventSourceMapping(batch_size=100, maximum_batching_window_in_seconds=300)
    found = trigger(stream, seen, mapping=mapping, clock=clock)

    while found.step():
        pass
    assert seen.batches == []
    clock.advance(300)
    found.step()
    assert seen.batches == [list(range(1, 11))]
    stream.put("a")
    found.drain()
    assert seen.batches[1:] == [[11]]


def test_children_come_after_their_parents(stream: FakeStream) -> None:
    """A split is followed, and nothing of a child is handled before the last of its parent."""
    stream.add("b", "a")
    stream.add("c", "a")
    stream.put("b")
    stream.put("c")
    stream.finish("a")
    late = stream.add("d", "b")
    stream.put("d")
    seen = Seen()
    found = trigger(stream, seen, mapping=EventSourceMapping(batch_size=3))
    found.drain()

    assert seen.handled == [*range(1, 11), 11, 12]
    stream.finish("b")
    assert found.drain() == 1
    assert seen.handled[-1] == 13
    assert late in stream.shards


def test_a_poison_record_of_the_parent_holds_the_child_up(stream: FakeStream) -> None:
    """Order goes before speed: a child waits for ever behind a record that is never handled."""
    stream.finish("a")
    stream.add("b", "a")
    stream.put("b")
    seen = Seen(10)

    with pytest.raises(DrainUnfinished, match="poison"):
        trigger(stream, seen, mapping=EventSourceMapping(batch_size=1)).drain()
    assert 11 not in seen.handled


def test_other_shards_go_on_beside_a_poison_record(stream: FakeStream) -> None:
    """A shard that is held up holds up no other."""
    stream.add("z")
    stream.put("z")
    seen = Seen(1)

    with pytest.raises(DrainUnfinished):
        trigger(stream, seen).drain()
    assert seen.handled == [11]


def test_an_impatient_drain_does_not_wait_for_ever(stream: FakeStream) -> None:
    """Where retries have no end, one attempt is made of what fails, and of everything beside it."""
    stream.add("b")
    for _ in range(3):
        stream.put("b")
    seen = Seen(2)
    running = trigger(stream, seen, mapping=EventSourceMapping(batch_size=5))
    with pytest.raises(HandlerFailing, match="poison") as failing:
        running.drain(timeout_s=float("inf"), patient=False)
    assert failing.value.left == 10
    assert [2 in batch for batch in seen.batches].count(True) == 1
    assert len(seen.handled) == 3


def test_an_impatient_drain_makes_the_retries_that_are_bounded(stream: FakeStream) -> None:
    """Then the record is given up, and the rest is handled."""
    seen = Seen(2)
    running = trigger(stream, seen, mapping=EventSourceMapping(batch_size=1, maximum_retry_attempts=2))
    assert running.drain(timeout_s=float("inf"), patient=False) == 9
    assert seen.batches.count([2]) == 3
    assert running.statistics.discarded == 1


def test_new_shards_are_found_in_time(stream: FakeStream) -> None:
    """A stream is asked for new shards now and then, without one having ended."""
    seen = Seen()
    clock = ManualClock(START_S)
    found = trigger(stream, seen, clock=clock)
    while found.step():
        pass
    stream.add("z")
    stream.put("z")
    clock.advance(9)
    found.step()
    assert 11 not in seen.handled
    clock.advance(1)
    while found.step():
        pass

    assert seen.handled[-1] == 11


def test_a_restart_goes_on(stream: FakeStream) -> None:
    """Checkpoints carry over to the next trigger; finished shards are not read again."""
    checkpoints = MemoryCheckpoint()
    stream.finish("a")
    stream.add("b", "a")
    trigger(stream, Seen(), checkpoints=checkpoints).drain()
    stream.put("b")
    seen = Seen()
    trigger(stream, seen, checkpoints=checkpoints).drain()

    assert seen.handled == [11]
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].finished


def test_positions_of_shards_that_are_gone_are_forgotten(stream: FakeStream) -> None:
    """A checkpoint file does not grow with every shard there ever was."""
    checkpoints = MemoryCheckpoint()
    stream.finish("a")
    stream.add("b", "a")
    found = trigger(stream, Seen(), checkpoints=checkpoints)
    found.drain()
    del stream.shards[shard_id("a")]
    found.drain()

    assert set(TriggerCheckpoint(checkpoints).load(ARN)) == {shard_id("b")}


def test_a_handler_that_raises_loses_nothing(stream: FakeStream) -> None:
    """A failed batch is tried again until it is handled, and the checkpoint waits for it."""
    checkpoints = MemoryCheckpoint()
    failures = [True, True]

    def handler(event: dict[str, Any], context: object) -> None:
        assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after is None
        if failures:
            raise OSError(f"not yet {failures.pop()}")

    found = trigger(stream, handler, checkpoints=checkpoints)

    assert found.drain() == 10
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after == sequence(10)
    assert (found.statistics.invocations, found.statistics.failures) == (3, 2)


def test_a_poison_record_is_written_down_and_passed(stream: FakeStream) -> None:
    """With bisect and bounded retries exactly the poison is given up, and the rest is handled in order."""
    letters = MemoryDeadLetters()
    seen = Seen(4)
    mapping = EventSourceMapping(bisect_batch_on_function_error=True, maximum_retry_attempts=1)
    found = trigger(stream, seen, mapping=mapping, dead_letters=letters, name="projector")

    assert found.drain() == 9
    assert seen.handled == [1, 2, 3, *range(5, 11)]
    (document,) = letters.documents
    assert document["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert document["requestContext"]["functionArn"].endswith(":function:projector")
    assert document["DDBStreamBatchInfo"]["startSequenceNumber"] == sequence(4)
    assert document["DDBStreamBatchInfo"]["batchSize"] == 1
    assert document["DDBStreamBatchInfo"]["shardId"] == shard_id("a")
    assert "payload" not in document
    assert found.statistics.discarded == 1


def test_without_bisect_the_whole_batch_is_given_up(stream: FakeStream) -> None:
    """Lambda gives up the batch that it tried, good records too; a payload keeps them."""
    letters = MemoryDeadLetters()
    mapping = EventSourceMapping(batch_size=5, maximum_retry_attempts=0)
    found = trigger(stream, Seen(4), mapping=mapping, dead_letters=letters, dead_letter_payload=True)

    assert found.drain() == 5
    (document,) = letters.documents
    assert document["DDBStreamBatchInfo"]["batchSize"] == 5
    assert len(document["payload"]["Records"]) == 5


def test_what_is_given_up_without_a_file_is_told(
    stream: FakeStream, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing disappears in silence."""
    with caplog.at_level(logging.ERROR):
        trigger(stream, Seen(1), mapping=EventSourceMapping(maximum_retry_attempts=0)).drain()

    assert "no dead-letter file to record them" in caplog.text


def test_the_dead_letter_is_written_before_the_checkpoint(stream: FakeStream) -> None:
    """A disk that cannot take the letter keeps the checkpoint where it is; a restart tries again."""
    checkpoints = MemoryCheckpoint()

    class Full(MemoryDeadLetters):
        def append(self, document: dict[str, Any]) -> None:
            raise TriggerFileRefused(Path("dead"), "cannot be written")

    found = trigger(
        stream,
        Seen(1),
        mapping=EventSourceMapping(batch_size=1, maximum_retry_attempts=0),
        dead_letters=Full(),
        checkpoints=checkpoints,
    )
    for _ in range(2):  # it does not go on as if nothing had happened
        with pytest.raises(TriggerFileRefused):
            found.drain()
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after is None

    letters = MemoryDeadLetters()
    again = EventSourceMapping(batch_size=1, maximum_retry_attempts=0)
    trigger(stream, Seen(1), mapping=again, dead_letters=letters, checkpoints=checkpoints).drain()
    assert len(letters.documents) == 1


def test_reported_failures_are_tried_from_the_lowest(stream: FakeStream) -> None:
    """What comes before the report is checkpointed and not handed over again."""
    checkpoints = MemoryCheckpoint()
    seen = Reporting(6)
    mapping = EventSourceMapping(report_batch_item_failures=True)
    found = trigger(stream, seen, mapping=mapping, checkpoints=checkpoints)

    found.step()
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after == sequence(5)
    found.step()
    seen.poison.clear()
    found.drain()
    assert seen.batches == [list(range(1, 11)), *[list(range(6, 11))] * 2]
    assert seen.handled == list(range(1, 11))


def test_records_grow_too_old_while_they_wait(stream: FakeStream) -> None:
    """A maximum age ends retries that have no other end."""
    letters = MemoryDeadLetters()
    seen = Seen(*range(1, 11))
    stream.put("a", at_s=START_S + 300)
    mapping = EventSourceMapping(batch_size=10, maximum_record_age_in_seconds=60)
    found = trigger(stream, seen, mapping=mapping, dead_letters=letters)

    assert found.drain(timeout_s=200) == 1
    assert seen.handled == [11]
    (document,) = letters.documents
    assert document["requestContext"]["condition"] == "RecordAgeExceeded"
    assert document["DDBStreamBatchInfo"]["batchSize"] == 10


def test_filtered_records_count_as_handled(stream: FakeStream) -> None:
    """What nobody wants does not come, and the checkpoint passes it."""
    checkpoints = MemoryCheckpoint()
    seen = Seen()
    wanted = {"dynamodb": {"NewImage": {"n": {"N": ["3", "7"]}}}}
    mapping = EventSourceMapping(batch_size=10, filter_criteria=[wanted])
    found = trigger(stream, seen, mapping=mapping, checkpoints=checkpoints)

    assert found.drain() == 2
    assert seen.batches == [[3, 7]]
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after == sequence(10)
    assert found.statistics.filtered == 8


def test_a_stream_of_nothing_wanted_is_passed(stream: FakeStream) -> None:
    """The handler is not called for nothing."""
    checkpoints = MemoryCheckpoint()
    seen = Seen()
    mapping = EventSourceMapping(filter_criteria=[{"eventName": ["REMOVE"]}])
    trigger(stream, seen, mapping=mapping, checkpoints=checkpoints).drain()

    assert seen.batches == []
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after == sequence(10)


def test_latest_begins_now(stream: FakeStream) -> None:
    """What was there before is left, closed shards with it; what comes after the start is handled."""
    stream.finish("a")
    stream.add("b", "a")
    stream.put("b")
    seen = Seen()
    found = trigger(stream, seen, mapping=EventSourceMapping(starting_position="LATEST"))
    found.start()
    stream.put("b")
    stream.finish("b")
    stream.add("c", "b")
    stream.put("c")

    assert found.drain() == 2
    assert seen.handled == [12, 13]


def test_latest_is_begun_once(stream: FakeStream) -> None:
    """A trigger that stops before its first record does not skip what came meanwhile."""
    checkpoints = MemoryCheckpoint()
    mapping = EventSourceMapping(starting_position="LATEST")
    clock = ManualClock(START_S + 100)
    trigger(stream, Seen(), mapping=mapping, checkpoints=checkpoints, clock=clock).start()
    stream.put("a", at_s=START_S + 101)
    seen = Seen()
    trigger(stream, seen, mapping=mapping, checkpoints=checkpoints, clock=clock).drain()

    assert seen.handled == [11]


def test_latest_is_not_begun_anew_on_damaged_checkpoints(
    stream: FakeStream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the file no longer tells how far it was, everything comes again and nothing is passed over."""
    path = tmp_path / "checkpoints"
    mapping = EventSourceMapping(starting_position="LATEST")
    clock = ManualClock(START_S + 100)
    with trigger(stream, Seen(), mapping=mapping, checkpoints=path, clock=clock) as first:
        first.start()
    stream.put("a", at_s=START_S + 101)
    path.write_bytes(path.read_bytes().replace(b'"since"', b'"sinse"'))
    seen = Seen()
    with trigger(stream, seen, mapping=mapping, checkpoints=path, clock=clock) as second:
        second.drain()

    assert 11 in seen.handled
    assert "starting at TRIM_HORIZON instead of LATEST" in caplog.text


def test_a_trigger_refuses_the_checkpoints_of_another_tables_stream(
    stream: FakeStream, tmp_path: Path
) -> None:
    """It says whose they are, before a record is read."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as log:
        TriggerCheckpoint(log).save(
            "arn:aws:dynamodb:eu-west-1:1:table/Other/stream/x", {"a": Position(after="1")}
        )
    seen = Seen()

    with (
        trigger(stream, seen, checkpoints=path) as found,
        pytest.raises(CheckpointRefused, match="table/Other/"),
    ):
        found.drain()
    assert seen.batches == []


def test_a_stream_that_is_being_enabled_is_waited_for() -> None:
    """A stream without shards has not begun."""
    stream = FakeStream()
    seen = Seen()
    found = trigger(stream, seen, mapping=EventSourceMapping(starting_position="LATEST"))
    found.step()
    stream.add("a")
    found.start()
    stream.put("a")
    found.drain()

    assert seen.handled == [1]


@pytest.mark.parametrize("error", [ThrottlingFault("slow down"), EndpointUnreachable("http://x", "refused")])
@pytest.mark.parametrize("operation", ["GetRecords", "GetShardIterator", "DescribeStream"])
def test_a_service_that_fails_for_a_while_is_asked_again(
    stream: FakeStream, caplog: pytest.LogCaptureFixture, error: Any, operation: str
) -> None:
    """A throttle or a silence costs time and nothing else, and is told once."""
    seen = Seen()
    found = trigger(stream, seen)
    if operation == "DescribeStream":
        found.start()
    stream.fail(operation, *[error] * 4)

    with caplog.at_level(logging.WARNING):
        found.drain()
    assert seen.handled == list(range(1, 11))
    assert caplog.text.count("; retrying") == 1


@pytest.mark.parametrize("error", [AccessDeniedFault("no"), CredentialsMissing("none")])
def test_a_refusal_is_raised(stream: FakeStream, error: Any) -> None:
    """What does not pass by itself is for a person."""
    found = trigger(stream, Seen())
    stream.fail("GetRecords", error)

    with pytest.raises(type(error)):
        found.drain()


def test_a_run_begins_when_the_service_is_there(stream: FakeStream) -> None:
    """A trigger may be started before its server."""
    stream.fail("DescribeTable", *[EndpointUnreachable("http://x", "refused")] * 3)
    found: Trigger

    def handler(event: dict[str, Any], context: object) -> None:
        found.stop()

    found = trigger(stream, handler)
    found.run()

    assert found.statistics.handled == 10


def test_a_run_ends_with_its_stream(stream: FakeStream) -> None:
    """A stream that was disabled is handled to its end, and then there is nothing to wait for."""
    stream.finish("a")
    stream.status = "DISABLED"
    found = trigger(stream, Seen())
    found.run()

    assert found.has_ended
    assert found.statistics.handled == 10


def test_a_stream_that_is_deleted_ends_the_run(stream: FakeStream) -> None:
    """A table may be deleted under its trigger."""
    found = trigger(stream, Seen())
    found.drain()
    stream.fail("DescribeStream", ResourceNotFoundFault())

    with pytest.raises(StreamGone):
        found.drain()


def test_lanes_keep_the_order_of_a_key() -> None:
    """Parallel batches of one shard hold each key in its order, and each key in one lane."""
    stream = FakeStream()
    stream.add("a")
    for number in range(60):
        stream.put("a", f"key-{number % 7}")
    by_key: dict[str, list[int]] = {}
    batches: list[set[str]] = []

    def handler(event: dict[str, Any], context: object) -> None:
        batches.append({record["dynamodb"]["Keys"]["id"]["S"] for record in event["Records"]})
        for record in event["Records"]:
            change = record["dynamodb"]
            by_key.setdefault(change["Keys"]["id"]["S"], []).append(int(change["SequenceNumber"]))

    mapping = EventSourceMapping(parallelization_factor=3, batch_size=5)
    trigger(stream, handler, mapping=mapping).drain()

    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    assert sorted(number for numbers in by_key.values() for number in numbers) == list(range(1, 61))
    assert any(len(batch) > 1 for batch in batches)


def test_a_lane_that_is_held_up_holds_up_no_other() -> None:
    """A poison record stops its own lane; what the others did is not done again after a restart."""
    stream = FakeStream()
    stream.add("a")
    for number in range(20):
        stream.put("a", f"key-{number}")
    checkpoints = MemoryCheckpoint()
    mapping = EventSourceMapping(parallelization_factor=10, batch_size=1)
    seen = Seen(1)
    with pytest.raises(DrainUnfinished):
        trigger(stream, seen, mapping=mapping, checkpoints=checkpoints).drain(5)
    before = list(seen.handled)
    assert len(before) >= 10
    assert TriggerCheckpoint(checkpoints).load(ARN)[shard_id("a")].after is None

    again = Seen()
    trigger(stream, again, mapping=mapping, checkpoints=checkpoints).drain()
    assert sorted(before + again.handled) == list(range(1, 21))


def test_another_number_of_lanes_begins_at_the_checkpoint() -> None:
    """How far lanes were says nothing about other lanes, so their records come again rather than never."""
    stream = FakeStream()
    stream.add("a")
    for number in range(20):
        stream.put("a", f"key-{number}")
    checkpoints = MemoryCheckpoint()
    first = Seen(1)
    mapping = EventSourceMapping(parallelization_factor=10, batch_size=1)
    with pytest.raises(DrainUnfinished):
        trigger(stream, first, mapping=mapping, checkpoints=checkpoints).drain(5)
    second = Seen()
    trigger(
        stream, second, mapping=EventSourceMapping(parallelization_factor=3), checkpoints=checkpoints
    ).drain()

    assert sorted(second.handled) == list(range(1, 21))


def test_parallel_batches_run_at_the_same_time() -> None:
    """With a factor of two, two handlers of one shard meet."""
    stream = FakeStream()
    stream.add("a")
    for number in range(20):
        stream.put("a", f"key-{number}")
    meeting = threading.Barrier(2, timeout=10)
    handled = threading.Semaphore(0)

    def handler(event: dict[str, Any], context: object) -> None:
        if event["Records"][0]["dynamodb"]["SequenceNumber"] in first:
            meeting.wait()
        for _ in event["Records"]:
            handled.release()

    records = stream.shards[shard_id("a")].records
    lanes = {stream_record(record, "id").partition % 2: record for record in reversed(records)}
    first = {record["dynamodb"]["SequenceNumber"] for record in lanes.values()}
    found = Trigger(
        stream, table="Orders", handler=handler, mapping=EventSourceMapping(parallelization_factor=2)
    )
    with found.running():
        for _ in range(20):
            assert handled.acquire(timeout=10)

    assert found.statistics.handled == 20
    assert found.statistics.failures == 0


def test_windows_sum_up_and_close() -> None:
    """A handler gets its state back batch after batch, once more at the end, and then begins anew."""
    stream = FakeStream()
    stream.add("a")
    clock = ManualClock(START_S)
    for at_s in (0, 1, 2, 70, 71):
        stream.put("a", at_s=START_S - START_S % 60 + at_s)
    sums: list[tuple[str, int]] = []

    def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
        count = event["state"].get("count", 0) + len(event["Records"])
        if event["isFinalInvokeForWindow"]:
            sums.append((event["window"]["start"], count))
        return {"state": {"count": count}}

    mapping = EventSourceMapping(tumbling_window_in_seconds=60, batch_size=2)
    checkpoints = MemoryCheckpoint()
    trigger(stream, handler, mapping=mapping, checkpoints=checkpoints, clock=clock).drain()
    assert sums == [("2023-11-14T22:13:00Z", 3)]

    again = trigger(stream, handler, mapping=mapping, checkpoints=checkpoints, clock=clock)
    clock.advance(120)
    again.drain()  # the state of the second window outlived the first trigger
    assert sums == [("2023-11-14T22:13:00Z", 3), ("2023-11-14T22:14:00Z", 2)]


def test_a_checkpoint_that_cannot_be_saved_stops_the_trigger(stream: FakeStream) -> None:
    """A trigger that cannot say how far it is does not go on."""

    class Full(MemoryCheckpoint):
        def save(self, checkpoint: Mapping[str, Any]) -> None:
            if any("after" in position for position in checkpoint["streams"][ARN].values()):
                raise TriggerFileRefused(Path("checkpoints"), "cannot be written")
            super().save(checkpoint)

    found = trigger(stream, Seen(), checkpoints=Full())
    for _ in range(2):
        with pytest.raises(TriggerFileRefused):
            found.drain()


def test_an_interrupted_handler_is_tried_again(stream: FakeStream) -> None:
    """Ctrl-C in the middle of a batch leaves the batch undone, and the trigger usable."""
    interrupts = [True]

    def handler(event: dict[str, Any], context: object) -> None:
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt

    found = trigger(stream, handler)
    with pytest.raises(KeyboardInterrupt):
        found.drain()

    assert found.drain() == 10


def test_one_thread_at_a_time(stream: FakeStream) -> None:
    """A trigger that runs is not stepped from elsewhere."""
    found: Trigger
    refused: list[str] = []

    def handler(event: dict[str, Any], context: object) -> None:
        with pytest.raises(TriggerError) as caught:
            found.step()
        refused.append(str(caught.value))

    found = trigger(stream, handler)
    found.drain()

    assert "already running" in refused[0]


def test_a_trigger_names_its_stream_one_way(stream: FakeStream) -> None:
    """A table or a stream, and not both or neither."""
    named: list[dict[str, Any]] = [{}, {"table": "Orders", "stream_arn": ARN}]
    for given in named:
        with pytest.raises(TriggerError, match="table or stream_arn"):
            Trigger(stream, handler=Seen(), **given)

    seen = Seen()
    trigger(stream, seen, table=None, stream_arn=ARN).drain()
    assert len(seen.handled) == 10


def test_what_ends_a_running_trigger_is_raised(stream: FakeStream) -> None:
    """An error in the thread is not lost with it."""
    asked = threading.Event()

    class Denying:
        def call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if operation == "GetRecords":
                asked.set()
                raise AccessDeniedFault("no")
            return stream.call(operation, request)

    found = Trigger(Denying(), table="Orders", handler=Seen())

    with pytest.raises(AccessDeniedFault), found.running():
        assert asked.wait(10)


def test_a_drain_can_be_stopped(stream: FakeStream) -> None:
    """Whoever waits at the terminal is heard, also in the middle of a long drain."""
    found: Trigger

    def handler(event: dict[str, Any], context: object) -> None:
        found.stop()

    found = trigger(stream, handler, mapping=EventSourceMapping(batch_size=1), backoff=Backoff(first_s=0.1))
    assert found.drain() < 10


def test_files_are_closed_with_the_trigger(stream: FakeStream, tmp_path: Path) -> None:
    """Paths are opened by the trigger, and let go by it."""
    for handled in (10, 0):
        with trigger(
            stream, Seen(), checkpoints=tmp_path / "checkpoints", dead_letters=tmp_path / "dead.jsonl"
        ) as found:
            assert found.drain() == handled
