"""The checkpoint never passes a record that is not dealt with."""

from __future__ import annotations

from tavola.triggers.progress import Progress
from tests.triggers.fake import sequence
from tests.triggers.records import several


def read(progress: Progress, *numbers: int) -> None:
    for number in numbers:
        progress.note_read(sequence(number))


def test_it_stops_before_the_first_that_is_open() -> None:
    """Lanes may finish in any order; the position follows the slowest."""
    progress = Progress(None, {})
    read(progress, 1, 2, 3, 4)
    progress.note_done(1, several(2, 4))

    assert (progress.after, progress.lanes) == (None, {1: sequence(4)})
    progress.note_done(0, several(1))
    assert (progress.after, progress.lanes) == (sequence(2), {1: sequence(4)})
    progress.note_done(0, several(3))
    assert (progress.after, progress.lanes, progress.open) == (sequence(4), {}, 0)


def test_what_nobody_wants_is_passed_over() -> None:
    """A filtered record is dealt with, once those before it are."""
    progress = Progress(sequence(1), {})
    read(progress, 2, 3)
    progress.note_passed_over(sequence(3))

    assert progress.after == sequence(1)
    progress.note_done(0, several(2))
    assert progress.after == sequence(3)


def test_a_lane_is_not_handed_what_it_had_done() -> None:
    """After a restart a lane that was ahead is known to be."""
    progress = Progress(sequence(1), {2: sequence(5)})

    assert progress.knows(2, 5)
    assert not progress.knows(2, 6)
    assert not progress.knows(0, 5)
