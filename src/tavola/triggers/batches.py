"""Batches: when records that were read are enough for an invocation, and which of them go together.

A batch closes when it has the records or the bytes it may have, or when its oldest record has waited for the
batching window. In a tumbling window it also ends where the window ends.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tavola.limits import TRIGGER_PAYLOAD_BYTES_MAX
from tavola.triggers.events import StreamRecord, batch_bytes
from tavola.triggers.mapping import Mapping


class _Gathered(NamedTuple):
    record: StreamRecord
    at_s: float


class Gathering:
    """Records of one lane that wait for an invocation, in the stream's order."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._waiting: deque[_Gathered] = deque()
        self._payload_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def payload_bytes(self) -> int:
        """The bytes of what waits."""
        return self._payload_bytes

    @property
    def first(self) -> StreamRecord | None:
        """The record that goes next."""
        return self._waiting[0].record if self._waiting else None

    @property
    def full(self) -> bool:
        """Whether there is a whole batch, by number or by bytes."""
        return (
            len(self._waiting) >= self._mapping.batch_size
            or self._payload_bytes + batch_bytes(()) >= TRIGGER_PAYLOAD_BYTES_MAX
        )

    def add(self, record: StreamRecord, now_s: float) -> None:
        """Let a record wait for its batch."""
        self._waiting.append(_Gathered(record, now_s))
        self._payload_bytes += record.payload_bytes

    def due_at_s(self) -> float | None:
        """Return when a batch closes if nothing more comes; None: nothing waits."""
        if not self._waiting:
            return None
        return self._waiting[0].at_s + self._mapping.maximum_batching_window_in_seconds

    def take(
        self, now_s: float, *, flush: bool = False, until_s: float | None = None
    ) -> tuple[StreamRecord, ...]:
        """Return the records of the next batch; empty: it is not time yet.

        `flush`: nothing more will come, so there is nothing to wait for. `until_s` is the end of the tumbling
        window; records at or past it stay, and a batch that ends there does not wait either.
        """
        due_at_s = self.due_at_s()
        if due_at_s is None:
            return ()
        cut = until_s is not None and self._waiting[-1].record.created_at_s >= until_s
        if not (flush or cut or self.full or now_s >= due_at_s):
            return ()
        taken: list[StreamRecord] = []
        size = batch_bytes(())
        while self._waiting and len(taken) < self._mapping.batch_size:
            record = self._waiting[0].record
            if until_s is not None and record.created_at_s >= until_s:
                break
            if taken and size + record.payload_bytes > TRIGGER_PAYLOAD_BYTES_MAX:
                break  # one record alone always goes, however large: it could never go otherwise
            self._waiting.popleft()
            size += record.payload_bytes
            self._payload_bytes -= record.payload_bytes
            taken.append(record)
        return tuple(taken)
