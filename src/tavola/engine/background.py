"""BackgroundTasks: index backfill, copies, expiry and clean-up, done in small steps between calls.

A program with an event loop calls `Engine.run_background_work`; without one, the calls themselves run what is due. Each
step is a transaction of its own, so a task that fails does not roll back any caller's write.
"""

from __future__ import annotations

import logging
from math import inf

import msgspec

from tavola.engine.backfill import fill_slice, next_unfilled
from tavola.engine.backups import Backups
from tavola.engine.catalog import NEVER_S, IndexDefinition, TableDefinition
from tavola.engine.expiry import delete_expired_slice, enable_expiry, tables_with_expiry
from tavola.engine.expiry import fill_slice as fill_expiry
from tavola.engine.expiry import next_unfilled as next_unfilled_expiry
from tavola.engine.jobs import BackgroundJob
from tavola.engine.operations import ABANDONED, STEPS, Services
from tavola.engine.vectors import VectorDefinition
from tavola.errors import TavolaError
from tavola.limits import STREAM_RETENTION_S

_log = logging.getLogger("tavola.engine")

_DAY_S = 86_400
_CLEANUP_S = 60.0  # interval of the clean-up
_EMULATION_HISTORY_S = 3_600.0  # how far back the history goes that emulation needs
_TRIM_ROWS = 2_000
_KEY_INDEX_S = 3_600.0  # how long a log stays indexed by key after a read as of a time


class BackgroundTasks:
    """Decides which background step is due, and runs it."""

    def __init__(self, services: Services, sweep_every_s: float) -> None:
        self._services = services
        self._sweep_every_s = sweep_every_s
        self._sweep_at_s = 0.0
        self._cleanup_at_s = 0.0
        self._sweeping: list[int] = []  # tables with expired items left in this round
        self._trimming: list[int] = []  # logs left to trim in this round
        self._dropping_expired = False  # streams or backups have expired
        self._saving_time = False  # the wall clock was set
        self._expiring = False
        self._unfilled = False
        self._logged_error = ""  # the last error that was logged, to log it once
        self._running_job: BackgroundJob | None = None  # the job whose step has begun and not ended

    @property
    def may_have_work(self) -> bool:
        """Whether there may be something to do; a cheap test that does not read the clock."""
        services = self._services
        return (
            services.catalog.has_changed
            or self._unfilled
            or bool(services.jobs.unfinished)
            or self._expiring
            or services.catalog.has_logs
        )

    def has_due_work(self) -> bool:
        """Return whether there is something to do now."""
        services = self._services
        if services.catalog.has_changed:
            self._inspect_catalog()
        if (
            self._unfilled
            or services.jobs.unfinished
            or self._sweeping
            or self._trimming
            or self._dropping_expired
            or self._saving_time
        ):
            return True
        store_s = services.time.elapsed_s()
        if self._expiring and store_s >= self._sweep_at_s:
            self._sweep_at_s = store_s + self._sweep_every_s
            self._sweeping = [table.definition.number for table in tables_with_expiry(services.catalog)]
        if store_s >= self._cleanup_at_s:
            self._cleanup_at_s = store_s + _CLEANUP_S
            self._trimming = sorted(services.catalog.logs())
            self._dropping_expired = (
                Backups(services.store).any_expired(store_s) or services.streams.has_due_work()
            )
            self._saving_time = services.time.was_clock_set
        return bool(self._sweeping or self._trimming or self._dropping_expired or self._saving_time)

    def run_step(self) -> None:
        """Run one due step, in the open transaction."""
        catalog = self._services.catalog
        unfilled = next_unfilled(catalog)
        if unfilled is not None:
            fill_slice(catalog, *unfilled)
            return
        column = next_unfilled_expiry(catalog)
        if column is not None:
            fill_expiry(catalog, column)
            return
        self._unfilled = False
        if self._saving_time:
            self._saving_time = False
            self._services.time.stamp()
        elif self._sweeping:
            self._delete_expired(self._sweeping.pop(0))
        elif self._dropping_expired:
            self._dropping_expired = False
            self._services.streams.roll_and_expire()
            Backups(self._services.store).drop_expired(self._services.time.elapsed_s())
        elif self._trimming:
            self._trim_log(self._trimming.pop(0))
        else:
            self._run_job()

    def _inspect_catalog(self) -> None:
        catalog = self._services.catalog
        catalog.has_changed = False
        self._expiring = bool(tables_with_expiry(catalog))
        self._unfilled = next_unfilled(catalog) is not None or next_unfilled_expiry(catalog) is not None

    def _delete_expired(self, number: int) -> None:
        services = self._services
        table = services.catalog.of_number(number)
        delay_s = services.emulation.ttl_delay_s
        if table is not None and delete_expired_slice(services.catalog, table, services.clock.now(), delay_s):
            self._sweeping.append(number)

    def _run_job(self) -> None:
        jobs = self._services.jobs
        job = jobs.next()
        if job is None:
            return
        self._running_job = job
        step = STEPS.get(job.kind)
        if step is None:
            raise LookupError(f"this version of Tavola has no job of kind {job.kind}")
        jobs.advance(job, step(self._services, job.state))
        self._running_job = None

    def abandon_job(self, error: Exception) -> bool:
        """Abandon the job that failed unexpectedly, in the open transaction; return whether it was a job."""
        job, self._running_job = self._running_job, None
        if job is None:
            if repr(error) != self._logged_error:
                self._logged_error = repr(error)
                _log.error("Background work failed and will be retried: %r", error)
        else:
            _log.error("Job %s (%s) failed and is abandoned: %r", job.id, job.kind, error)
            self._services.jobs.cancel(job.id)
            if job.kind in ABANDONED:
                why = str(error) if isinstance(error, TavolaError) else repr(error)
                ABANDONED[job.kind](self._services, job.state | {"failure": why})
        return job is not None

    def _trim_log(self, number: int) -> None:
        """Remove changes that can no longer be read, and a log that is not needed."""
        services = self._services
        kept_s = self._kept_for_s(number)
        if kept_s is None:
            services.catalog.drop_log(number)
            return
        log = services.store.log(number)
        if log.has_key_index and not self._was_read_as_of(number):
            log.set_key_index(enabled=False)
            services.catalog.history.forget(number)
        if kept_s == inf:
            return
        if log.trim(log.id_at(services.time.log_us_ago(kept_s)), _TRIM_ROWS) == _TRIM_ROWS:
            self._trimming.append(number)

    def _was_read_as_of(self, number: int) -> bool:
        """Return whether the table was recently read as of a time, so that the log's index by key is worth its cost."""
        catalog = self._services.catalog
        table = catalog.of_number(number)
        pinned = number in catalog.kept_logs() if table is None else table.definition.pins > 0
        read_at_s = catalog.as_of_read_at_s.get(number)
        return pinned or (
            read_at_s is not None and self._services.time.elapsed_s() < read_at_s + _KEY_INDEX_S
        )

    def _kept_for_s(self, number: int) -> float | None:
        """Return how long a log's records may be read; None if they never are."""
        catalog = self._services.catalog
        needed: list[float] = []
        if self._services.streams.of_table(number):
            needed.append(STREAM_RETENTION_S)
        table = catalog.of_number(number)
        if table is not None:
            recovery = table.definition.recovery
            if recovery is not None:
                needed.append(recovery.days * _DAY_S)
            if table.definition.pins:
                needed.append(inf)
            if catalog.keeps_all_history:
                needed.append(_EMULATION_HISTORY_S)
        if number in catalog.kept_logs():
            needed.append(inf)
        return max(needed) if needed else None


def upgrade(services: Services) -> None:
    """Upgrade tables of an older store: add the column for expiry and the stream that their settings imply.

    Also, a table that would still be CREATING for a while becomes ACTIVE: that delay is for programs that wait for a new
    table, and how much of it has passed cannot be known if the clock was set back meanwhile.
    """
    catalog = services.catalog
    store_s = services.time.elapsed_s()
    for table in list(catalog.tables()):
        settled = _settle(table.definition, store_s)
        if settled is not table.definition:
            services.begin()
            catalog.change(table, settled)
    for table in list(catalog.tables()):
        ttl = table.definition.ttl
        if ttl is not None and ttl.enabled and ttl.column is None:
            services.begin()
            enable_expiry(catalog, table, ttl.attribute, ttl.changed_at_s)
    for table in catalog.tables():
        stream = table.definition.stream
        labels = {live_stream.label for live_stream in services.streams.of_table(table.definition.number)}
        if stream is not None and stream.enabled and stream.label not in labels:
            services.begin()
            services.streams.enable(table)


def _settle(definition: TableDefinition, store_s: float) -> TableDefinition:
    """Return a definition in which nothing is CREATING at a store time, except what a job completes."""

    def is_delayed(ready_at_s: float) -> bool:
        return store_s < ready_at_s < NEVER_S

    parts: tuple[TableDefinition | IndexDefinition | VectorDefinition, ...]
    parts = (definition, *definition.indexes, *definition.vectors)
    if not any(is_delayed(part.ready_at_s) for part in parts):
        return definition
    replace = msgspec.structs.replace
    return replace(
        definition,
        ready_at_s=0.0 if is_delayed(definition.ready_at_s) else definition.ready_at_s,
        indexes=tuple(
            replace(index, ready_at_s=0.0) if is_delayed(index.ready_at_s) else index
            for index in definition.indexes
        ),
        vectors=tuple(
            replace(vector, ready_at_s=0.0) if is_delayed(vector.ready_at_s) else vector
            for vector in definition.vectors
        ),
    )
