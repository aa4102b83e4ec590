"""Background jobs: long work done in slices between requests, which continues after a restart, and why some failed.

A job is a kind and a state. A step does one slice and returns the state to continue from, which is stored in the
transaction of the slice itself: so each slice takes effect exactly once.

A restore is answered when it starts. If it fails, its table is deleted, as on AWS, where the console shows the reason. Here
the reason is kept for a day, and DescribeTable or DescribeBackup returns it for the missing table or backup.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.storage import Store
from tavola.engine.store_time import CurrentTime
from tavola.protocol.instants import instant_text

_KIND = "job"
_SEQUENCE = ("sequence", "job")
_FAILURE = "failure"
_FAILURE_KEPT_S = 86_400.0


class BackgroundJob(msgspec.Struct, frozen=True):
    """A job and its progress."""

    id: str
    kind: str
    state: dict[str, Any]


class JobStore:
    """The unfinished jobs, in the order in which they were started."""

    __slots__ = ("_store", "unfinished")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.unfinished: dict[str, BackgroundJob] = {}  # by id
        self.load()

    def load(self) -> None:
        """Reload the jobs from the store."""
        self.unfinished = {
            name: msgspec.json.decode(data, type=BackgroundJob) for name, data in self._store.records(_KIND)
        }

    def next(self) -> BackgroundJob | None:
        """Return the next job: the one that was started, or worked on, the longest ago."""
        return next(iter(self.unfinished.values()), None)

    def start(self, kind: str, state: dict[str, Any]) -> str:
        """Start a job in the open transaction and return its id."""
        last, name = _SEQUENCE
        number = int(self._store.get_record(last, name) or b"0") + 1
        self._store.put_record(last, name, str(number).encode())
        job = BackgroundJob(f"{number:010d}", kind, state)
        self._save(job)
        return job.id

    def advance(self, job: BackgroundJob, state: dict[str, Any] | None) -> None:
        """Store the progress of a job in the transaction of its slice; None: it is finished."""
        self.unfinished.pop(job.id, None)
        if state is None:
            self._store.delete_record(_KIND, job.id)
        else:
            self._save(BackgroundJob(job.id, job.kind, state))

    def cancel(self, id_: str) -> None:
        """Cancel an unfinished job."""
        if self.unfinished.pop(id_, None) is not None:
            self._store.delete_record(_KIND, id_)

    def _save(self, job: BackgroundJob) -> None:
        self._store.put_record(_KIND, job.id, msgspec.json.encode(job))
        self.unfinished[job.id] = job


def next_rows(rows: int, bytes_: int, *, slice_bytes: int, rows_min: int, rows_max: int) -> int:
    """Return the number of rows for the next slice, so that each has about `slice_bytes` and takes about as long."""
    if bytes_ > 2 * slice_bytes:
        return max(rows_min, rows * slice_bytes // bytes_)
    return min(rows_max, rows * 2) if bytes_ < slice_bytes else rows


class Failure(msgspec.Struct, frozen=True):
    """What failed, when and why."""

    at_s: float
    what: str
    why: str
    until_s: float = 0.0  # the store time until which it is kept

    @classmethod
    def of(cls, now: CurrentTime, what: str, why: str) -> Failure:
        """Return a failure of this moment, which is kept for a day."""
        return cls(now.wall_s, what, why, now.store_s + _FAILURE_KEPT_S)

    @property
    def sentence(self) -> str:
        """The failure as a sentence."""
        at = instant_text(round(self.at_s * 1000) * 1000)
        return f"{self.what} failed at {at}: {self.why}"


def record_failure(store: Store, arn: str, failure: Failure) -> None:
    """Store why a table or backup was not completed, in the open transaction."""
    store.delete_due(_FAILURE, failure.until_s - _FAILURE_KEPT_S)
    store.put_record(_FAILURE, arn, msgspec.json.encode(failure), due_s=failure.until_s)


def failure_of(store: Store, arn: str, store_s: float) -> Failure | None:
    """Return why a table or backup was not completed, if that was within a day."""
    data = store.get_record(_FAILURE, arn)
    failure = None if data is None else msgspec.json.decode(data, type=Failure)
    return failure if failure is not None and store_s < failure.until_s else None


def forget_failure(store: Store, arn: str) -> None:
    """Delete the failure of a table or backup that is created again, in the open transaction."""
    store.delete_record(_FAILURE, arn)
