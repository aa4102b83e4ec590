"""When a batch closes, and what is in it."""

from __future__ import annotations

import pytest

from tavola.triggers import EventSourceMapping
from tavola.triggers.partition_queues import RecordBuffer
from tests.triggers.fake import START_S, sequence
from tests.triggers.records import kept


def gathered(mapping: EventSourceMapping, *numbers: int, at_s: float = 0.0) -> RecordBuffer:
    buffer = RecordBuffer(mapping)
    for number in numbers:
        buffer.add(kept(number), at_s)
    return buffer


def numbers(buffer: RecordBuffer, now_s: float, **how: bool) -> list[str]:
    return [record.sequence for record in buffer.take(now_s, **how)]


def test_without_a_window_whatever_is_there_goes() -> None:
    """A window of zero seconds means that one record is a batch."""
    buffer = gathered(EventSourceMapping(batch_size=2), 1, 2, 3)

    assert numbers(buffer, 0) == [sequence(1), sequence(2)]
    assert numbers(buffer, 0) == [sequence(3)]
    assert numbers(buffer, 0) == []


def test_a_window_waits_for_more() -> None:
    """A partial batch goes when its oldest record has waited for the window, and a full one at once."""
    mapping = EventSourceMapping(batch_size=3, maximum_batching_window_in_seconds=10)
    buffer = gathered(mapping, 1, 2, at_s=5)

    assert buffer.due_at_s() == 15
    assert numbers(buffer, 14.9) == []
    buffer.add(kept(3), 14.9)
    assert len(numbers(buffer, 14.9)) == 3
    buffer.add(kept(4), 20)
    assert numbers(buffer, 29.9) == []
    assert numbers(buffer, 30) == [sequence(4)]


def test_a_flush_does_not_wait() -> None:
    """Where nothing more can come there is nothing to wait for."""
    buffer = gathered(EventSourceMapping(maximum_batching_window_in_seconds=300), 1)

    assert numbers(buffer, 0) == []
    assert numbers(buffer, 0, flush=True) == [sequence(1)]


def test_a_payload_is_never_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends before the record that would pass six megabytes, and that much closes a window early."""
    one = kept(1).payload_bytes
    monkeypatch.setattr("tavola.triggers.partition_queues.TRIGGER_PAYLOAD_BYTES_MAX", 2 * one + 20)
    buffer = gathered(EventSourceMapping(maximum_batching_window_in_seconds=300), 1, 2)

    before = buffer.full
    buffer.add(kept(3), 0)
    assert (before, buffer.full) == (False, True)
    assert numbers(buffer, 0) == [sequence(1), sequence(2)]
    assert buffer.payload_bytes == one


def test_a_record_that_is_too_large_alone_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record past the limit could never go, so it goes as it is."""
    monkeypatch.setattr("tavola.triggers.partition_queues.TRIGGER_PAYLOAD_BYTES_MAX", 10)
    buffer = gathered(EventSourceMapping(), 1, 2)

    assert numbers(buffer, 0) == [sequence(1)]
    assert numbers(buffer, 0) == [sequence(2)]


def test_a_batch_ends_with_its_tumbling_window() -> None:
    """Records of two windows are never in one batch, and the first of the next window closes the batch."""
    mapping = EventSourceMapping(maximum_batching_window_in_seconds=300)
    buffer = RecordBuffer(mapping)
    buffer.add(kept(1, at_s=START_S), 0)
    assert buffer.take(0, until_s=START_S + 60) == ()
    buffer.add(kept(2, at_s=START_S + 60), 0)

    assert [record.sequence for record in buffer.take(0, until_s=START_S + 60)] == [sequence(1)]
    assert buffer.take(0, until_s=START_S + 60) == ()
    assert len(buffer) == 1
