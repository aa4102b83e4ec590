"""A queue hands out one invocation after the other, and windows one after the other."""

from __future__ import annotations

from typing import Any

from tavola.limits import TRIGGER_STATE_BYTES_MAX
from tavola.triggers import Backoff, EventSourceMapping
from tavola.triggers.events import Window
from tavola.triggers.outcomes import Failed, Succeeded
from tavola.triggers.partition_queues import InvocationTask, PartitionQueue
from tests.triggers.records import kept

FAILED = Failed("boom")


def queue(window: Window | None = None, **settings: Any) -> PartitionQueue:
    return PartitionQueue(0, EventSourceMapping(**settings), Backoff(), window)


def due(
    found: PartitionQueue, now_s: float = 0.0, *, empty_at_s: float | None = None, ended: bool = False
) -> InvocationTask | None:
    return found.next_task(now_s, flush=False, empty_at_s=empty_at_s, ended=ended)


def must(
    found: PartitionQueue, now_s: float = 0.0, *, empty_at_s: float | None = None, ended: bool = False
) -> InvocationTask:
    task = due(found, now_s, empty_at_s=empty_at_s, ended=ended)
    assert task is not None
    return task


def test_a_retry_waits_longer_each_time() -> None:
    """The wait doubles up to its most, and the batch stays at the head of its queue."""
    found = queue()
    found.add(kept(1), 0)
    now_s = 0.0
    waited = []
    for _ in range(8):
        task = must(found, now_s)
        found.settle(task, FAILED, now_s)
        assert due(found, now_s) is None
        waited.append(found.retry_at_s - now_s)
        now_s = found.retry_at_s
        found.add(kept(2), now_s)

    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]
    assert must(found, now_s).segment.records == (kept(1),)


def test_a_busy_lane_hands_out_nothing() -> None:
    """A queue has one invocation at a time."""
    found = queue(batch_size=1)
    found.add(kept(1), 0)
    found.add(kept(2), 0)
    must(found)
    found.busy = True

    assert due(found) is None
    assert found.next_at_s() is None


def test_the_backoff_never_overflows() -> None:
    """The ten thousandth retry waits as long as the tenth."""
    assert Backoff().wait_s(10_000) == 60


def test_a_window_takes_records_of_its_time_and_then_closes() -> None:
    """Windows are aligned to the epoch; the last invocation has no records and the state so far."""
    found = queue(tumbling_window_in_seconds=60)
    found.add(kept(1, at_s=100), 0)
    found.add(kept(2, at_s=121), 0)

    task = must(found)
    assert [r.number for r in task.segment.records] == [1]
    assert task.window == Window(60, 120)
    found.settle(task, Succeeded(b'{"n":1}'), 0)
    closing = must(found)
    assert (closing.final, closing.segment.records, closing.window) == (True, (), Window(60, 120, b'{"n":1}'))
    found.settle(closing, Succeeded(), 0)
    following = must(found)
    assert following.window == Window(120, 180)
    assert [r.number for r in following.segment.records] == [2]


def test_a_window_without_a_follower_closes_by_the_clock() -> None:
    """A window ends once the shard was found empty after the window's end, and not before."""
    found = queue(tumbling_window_in_seconds=60)
    found.add(kept(1, at_s=100), 0)
    found.settle(must(found), Succeeded(b"{}"), 0)

    assert due(found, 130, empty_at_s=119) is None
    assert found.next_at_s() == 120
    assert must(found, 130, empty_at_s=120).final


def test_the_end_of_a_shard_ends_its_window() -> None:
    """Windows do not go on in a child shard."""
    found = queue(tumbling_window_in_seconds=60)
    found.add(kept(1, at_s=100), 0)
    found.settle(must(found, ended=True), Succeeded(b"{}"), 0)

    assert must(found, ended=True).final


def test_a_window_that_cannot_be_closed_holds_the_lane() -> None:
    """Nothing goes past a final invocation that fails, until its retries are used up."""
    found = queue(tumbling_window_in_seconds=60, maximum_retry_attempts=1)
    found.add(kept(1, at_s=100), 0)
    found.settle(must(found), Succeeded(b"{}"), 0)
    found.add(kept(2, at_s=130), 0)
    assert found.settle(must(found), FAILED, 0).waits

    assert must(found, 1).final
    given_up = found.settle(must(found, 1), FAILED, 1).discarded
    assert given_up is not None
    assert given_up.records == ()
    assert must(found, 1).window == Window(120, 180)


def test_a_state_past_a_megabyte_ends_its_window_early() -> None:
    """The window is closed at once and says so; what follows in its time begins with an empty state."""
    found = queue(tumbling_window_in_seconds=60)
    found.add(kept(1, at_s=100), 0)
    large = b'{"n":"%b"}' % (b"x" * TRIGGER_STATE_BYTES_MAX)
    found.settle(must(found), Succeeded(large), 0)
    closing = must(found)
    assert (closing.final, closing.early) == (True, True)
    again = queue(Window(60, 120, large), tumbling_window_in_seconds=60)  # a restart in between

    assert must(again).early
    found.settle(closing, Succeeded(), 0)
    found.add(kept(2, at_s=101), 0)
    assert must(found).window == Window(60, 120)


def test_age_is_looked_at_before_each_try() -> None:
    """Records that grow too old while they wait are given up, the others are tried."""
    found = queue(maximum_record_age_in_seconds=60)
    found.add(kept(1, at_s=0), 0)
    found.add(kept(2, at_s=50), 0)
    found.settle(must(found, 0), FAILED, 0)
    must(found, 70)
    discard = found.expire(70)

    assert discard is not None
    assert [r.number for r in discard.records] == [1]
    assert [r.number for r in must(found, 70).segment.records] == [2]
