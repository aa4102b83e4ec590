"""The checkpoint never passes a record that is not dealt with."""

from __future__ import annotations

from tavola.triggers.shard_consumer import ShardProgress
from tests.triggers.fake import sequence
from tests.triggers.records import several


def read(progress: ShardProgress, *numbers: int) -> None:
    for number in numbers:
        progress.add_read(sequence(number))


def test_it_stops_before_the_first_that_is_open() -> None:
    """Lanes may finish in any order; the position follows the slowest."""
    progress = ShardProgress(None, {})
    read(progress, 1, 2, 3, 4)
    progress.mark_handled(1, several(2, 4))

    assert (progress.after, progress.queues) == (None, {1: sequence(4)})
    progress.mark_handled(0, several(1))
    assert (progress.after, progress.queues) == (sequence(2), {1: sequence(4)})
    progress.mark_handled(0, several(3))
    assert (progress.after, progress.queues, progress.open) == (sequence(4), {}, 0)


def test_what_nobody_wants_is_passed_over() -> None:
    """A filtered record is dealt with, once those before it are."""
    progress = ShardProgress(sequence(1), {})
    read(progress, 2, 3)
    progress.mark_skipped(sequence(3))

    assert progress.after == sequence(1)
    progress.mark_handled(0, several(2))
    assert progress.after == sequence(3)


def test_a_lane_is_not_handed_what_it_had_done() -> None:
    """After a restart a queue that was ahead is known to be."""
    progress = ShardProgress(sequence(1), {2: sequence(5)})

    assert progress.is_handled(2, 5)
    assert not progress.is_handled(2, 6)
    assert not progress.is_handled(0, 5)
