"""Jobs: long work in slices, between the requests of others, that goes on after a restart.

A job is a kind and a state. A step does one slice and gives the state to go on from, kept in the same
transaction as the slice itself: whatever happens, a slice is done once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.storage import Store

_KIND = "job"
_SEQUENCE = ("sequence", "job")


class BackgroundJob(msgspec.Struct, frozen=True):
    """One piece of long work, as far as it has come."""

    id: str
    kind: str
    state: dict[str, Any]


class JobStore:
    """The jobs that are not finished, in the order they were started."""

    __slots__ = ("_store", "_waiting")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, BackgroundJob] = {}
        self.load()

    def load(self) -> None:
        """Read the jobs anew from the store."""
        self._waiting = {
            name: msgspec.json.decode(data, type=BackgroundJob) for name, data in self._store.records(_KIND)
        }

    @property
    def pending(self) -> bool:
        """Tell whether there is a job to be done."""
        return bool(self._waiting)

    def next(self) -> BackgroundJob | None:
        """Return the job whose turn it is: the one that was started, or worked on, the longest ago."""
        return next(iter(self._waiting.values()), None)

    def find(self, id_: str) -> BackgroundJob | None:
        """Return a job that is not finished."""
        return self._waiting.get(id_)

    def start(self, kind: str, state: dict[str, Any]) -> str:
        """Begin a job in the open transaction and return its id."""
        last, name = _SEQUENCE
        number = int(self._store.get_record(last, name) or b"0") + 1
        self._store.put_record(last, name, str(number).encode())
        job = BackgroundJob(f"{number:010d}", kind, state)
        self._save(job)
        return job.id

    def advance(self, job: BackgroundJob, state: dict[str, Any] | None) -> None:
        """Keep how far a job has come, in the transaction of its slice; None: it is finished."""
        self._waiting.pop(job.id, None)
        if state is None:
            self._store.delete_record(_KIND, job.id)
        else:
            self._save(BackgroundJob(job.id, job.kind, state))

    def cancel(self, id_: str) -> None:
        """Let go of a job that is not finished."""
        if self._waiting.pop(id_, None) is not None:
            self._store.delete_record(_KIND, id_)

    def _save(self, job: BackgroundJob) -> None:
        self._store.put_record(_KIND, job.id, msgspec.json.encode(job))
        self._waiting[job.id] = job


def next_rows(rows: int, bytes_: int, *, slice_bytes: int, rows_min: int, rows_max: int) -> int:
    """Return how many rows a next slice takes, so that it stays near the bytes that a slice should have.

    Slices of small and of large items then take about as long.
    """
    if bytes_ > 2 * slice_bytes:
        return max(rows_min, rows * slice_bytes // bytes_)
    return min(rows_max, rows * 2) if bytes_ < slice_bytes else rows
