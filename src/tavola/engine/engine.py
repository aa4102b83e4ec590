"""Engine: DynamoDB in this process; open it, call it, close it.

A request is the JSON body that AWS would receive, and the response is the body that AWS would send, so callers in this
process and over HTTP get the same responses from the same code. The engine executes one call at a time, under a lock; it
can be used from several threads. Long calls are the exception: they can pause, and other calls are executed meanwhile
(`pending_calls`, `reads`, `tavola.protocol.large_requests`). `commit_group` explains when a call's writes become durable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import inf
from threading import RLock
from types import TracebackType
from typing import Any, get_args, overload

import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock, monotonic
from tavola.engine.background import BackgroundTasks, upgrade
from tavola.engine.catalog import Catalog
from tavola.engine.commit_group import CommitGroup, GroupState
from tavola.engine.emulation import Emulation, Hottest, Switches, parse_switches
from tavola.engine.isolation import ClientTokens
from tavola.engine.jobs import JobStore
from tavola.engine.operations import HANDLERS, EmulatedCall, OperationCall, Services
from tavola.engine.pending_calls import PendingCall
from tavola.engine.request_context import ObservedContext, Observer, ObserverNotifier, RequestContext
from tavola.engine.signed_tokens import TokenSigner
from tavola.engine.storage import Store, StoreError, StoreFailed, StoreFull
from tavola.engine.store_time import StoreTime
from tavola.engine.streams import Streams
from tavola.engine.transfer import Buckets
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import Fault, InternalServerFault, ResourceNotFoundFault, SerializationFault
from tavola.protocol.large_requests import LARGE_BODY_BYTES, parse_in_steps
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.requests import parse, parse_coerced, unknown_operation
from tavola.values import Steps, ValueMalformed, ValueRefused, release_in_steps

_BACKGROUND_CALLER_S = 5.0
_FILE_CHECK_S = 1.0  # how often background work checks the files, and whether a full disk has space again


class Engine:
    """DynamoDB on local storage: in memory, or in one file that this process owns."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        wording: MessageStyle,
        delay_s: float,
        ttl_interval_s: float,
        switches: Switches,
        buckets: Buckets | None = None,
    ) -> None:
        self._store = store
        self._lock = RLock()
        self._closed = False
        self._wording: MessageStyle = wording
        time = StoreTime(store, clock)
        self._catalog = Catalog(store, time, keeps_all_history=switches.needs_history)
        self._group = CommitGroup(store, self._catalog, self._reload)
        self._observing: ObserverNotifier | None = None  # None: no observer
        self._background_called_at_s = -_BACKGROUND_CALLER_S  # when `run_background_work` was last called
        self._file_checked_at_s = monotonic()
        self._services = Services(
            catalog=self._catalog,
            tokens=ClientTokens(store, time),
            clock=clock,
            time=time,
            entropy=entropy,
            wording=wording,
            table_delay_s=delay_s,
            begin=self._group.begin,
            begin_maintenance=self._group.begin,
            store=store,
            streams=Streams(store, self._catalog),
            token_signer=TokenSigner(store, entropy, self._group.begin),
            jobs=JobStore(store),
            emulation=Emulation(switches, clock, self._catalog),
            buckets=buckets,
        )
        self._background = BackgroundTasks(self._services, ttl_interval_s)
        upgrade(self._services)
        if store.open_transaction:
            self._group.commit()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        entropy: Entropy = SYSTEM_ENTROPY,
        sync: str = "full",
        wording: MessageStyle = "current",
        cache_mb: int = 1024,
        table_delay_ms: int = 0,
        ttl_interval_s: float = 60.0,
        key: str | None = None,
        emulate: str | None = None,
        buckets: str | os.PathLike[str] | Buckets | None = None,
    ) -> Engine:
        """Return an engine on the file at `path`, which is created if it does not exist, or in memory without a path.

        `sync` "full" never loses an acknowledged write; "off" leaves syncing to the operating system.
        `cache_mb` limits the memory for pages of the file; it is allocated as pages are read.
        `table_delay_ms` is how long a new table or index stays CREATING, as it does for a while on AWS.
        `key` encrypts the file: any text; the file opens with the same key only.
        `ttl_interval_s` is the interval at which expired items are deleted.
        `emulate` turns on effects of production, such as "throughput,gsi-lag=200ms"; see `emulation`.
        `buckets` is the folder whose subfolders act as S3 buckets, for exports and imports.
        """
        if wording not in get_args(MessageStyle):
            raise ValueError(f"wording must be one of {', '.join(get_args(MessageStyle))}, not {wording!r}")
        switches = Switches() if emulate is None else parse_switches(emulate)
        if key is not None and (path is None or not key):
            raise ValueError("`key` needs a path (a store in memory is not encrypted), and must not be empty")
        store = Store.open(path, sync=sync, cache_mb=cache_mb, key=key)
        try:
            return cls(
                store,
                clock,
                entropy,
                wording,
                table_delay_ms / 1000,
                ttl_interval_s,
                switches,
                Buckets(buckets) if isinstance(buckets, str | os.PathLike) else buckets,
            )
        except BaseException:
            with suppress(StoreError):
                store.close()
            raise

    @overload
    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = DEFAULT_SCOPE,
        context: RequestContext | None = None,
        *,
        participant: object = None,
    ) -> bytes: ...

    @overload
    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = DEFAULT_SCOPE,
        context: RequestContext | None = None,
        *,
        participant: object = None,
        slice_s: float | None,
    ) -> bytes | PendingCall: ...

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = DEFAULT_SCOPE,
        context: RequestContext | None = None,
        *,
        participant: object = None,
        slice_s: float | None = None,
    ) -> bytes | PendingCall:
        """Return the response body of a request, or raise the fault that AWS would return.

        Writes are durable on return, unless the thread collects writes or the call names a `participant` of the commit
        group. The caller must then check `dirty` and, if it is set, `commit(participant)` before it reveals the
        response. A participant of its own for each call gets the outcome of that call alone.

        With `slice_s`, a call that takes longer than that may be returned unfinished: a long read, a large body or a
        batch of large items. Its context must not be used for another request until it ends. Every slice but the last
        only reads and prepares, except that a batch may have written some of its items.
        """
        if self._observing is not None and not isinstance(context, ObservedContext):
            return self._execute_observed(
                self._observing, operation, body, scope, context, participant, slice_s
            )
        handler = HANDLERS.get(operation)
        if handler is None:
            raise unknown_operation(operation)
        is_large = slice_s is not None and len(body) > LARGE_BODY_BYTES
        request = None if is_large else parse(operation, body, self._wording)
        call_type = EmulatedCall if self._services.emulation.active else OperationCall
        call = call_type(operation, body, scope, self._services, context)
        if context is not None and context.as_of_us is not None:
            call.make_read_only()
        group = self._group
        with self._lock:
            if self._closed:
                self._check_open()
            group.check_accepting()
            joins = participant is not None or group.collects()
            try:
                if is_large:
                    response: Any = self._execute_large(call, handler)
                else:
                    if context is not None and context.guard is not None:
                        context.guard.check(operation, request, call)
                    try:
                        response = handler(call, request)
                    except ValueMalformed:
                        response = self._execute_coerced(call, handler)
                if response.__class__ is not bytes:
                    response = self._begin_steps(response, slice_s, participant)
            except Fault:
                # Every refusal happens before the first row is written.
                if joins:
                    group.join(participant)
                raise
            except StoreError as error:
                group.fail_call(error)
                raise InternalServerFault(str(error)) from error
            except BaseException as error:
                group.fail_call(StoreError(f"the request failed unexpectedly ({error!r})"))
                raise
            if joins:
                group.join(participant)
            else:
                self._commit_call()
            return response  # type: ignore[no-any-return]  # not steps

    def _execute_large(self, call: OperationCall, handler: Any) -> Steps[bytes]:
        """Execute a request with a large body: it is parsed in steps, and has no conversions of wrong JSON types."""
        contents: list[Any] = []
        try:
            request = yield from parse_in_steps(call.operation, call.body, self._wording, contents)
        except ValueRefused as refused:
            raise call.value_fault(refused) from refused
        if call.context is not None and call.context.guard is not None:
            call.context.guard.check(call.operation, request, call)
        refusal: Fault | None = None
        try:
            answer: bytes | Steps[bytes] = handler(call, request)
            response = answer if isinstance(answer, bytes) else (yield from answer)
        except ValueMalformed as malformed:
            refusal = SerializationFault(str(malformed))
        except Fault as fault:
            refusal = fault
        for content in contents:
            yield from release_in_steps(content)
        if refusal is not None:
            raise refusal
        return response

    def _begin_steps(
        self, steps: Steps[bytes], slice_s: float | None, participant: object
    ) -> bytes | PendingCall:
        """Run steps for one slice; emulated throttling charges a page at once, so with it they run to the end."""
        pending = PendingCall(steps, participant)
        at_once = slice_s is None or self._services.emulation.active
        response = pending.run(inf if at_once else slice_s)  # type: ignore[arg-type]  # a number
        return pending if response is None else response

    def resume(self, pending: PendingCall, slice_s: float) -> bytes | None:
        """Continue a call for one slice of time; return its response, or None if it is still unfinished.

        As after `execute`, nothing may be revealed before the open transaction is durable: check `dirty`.
        """
        group = self._group
        with self._lock:
            try:
                self._check_open()
                group.check_accepting()
                response = pending.run(slice_s)
            except Fault as fault:
                pending.end(fault)
                raise
            except BaseException as error:
                known = error if isinstance(error, StoreError) else StoreError(f"the call failed ({error!r})")
                group.fail_call(known)
                pending.end(InternalServerFault(str(known)))
                if isinstance(error, StoreError):
                    raise InternalServerFault(str(error)) from error
                raise
            finally:
                group.join(pending.participant)
            if response is not None:
                pending.end()
            return response

    def _execute_observed(
        self,
        observing: ObserverNotifier,
        operation: str,
        body: bytes,
        scope: Scope,
        context: RequestContext | None,
        participant: object,
        slice_s: float | None,
    ) -> bytes | PendingCall:
        """Execute a call and notify the observer, after the commit if the response has to wait for one."""
        began_s, began = self._services.clock.now(), monotonic()
        observed = ObservedContext.of(context)

        def report(fault: Fault | None) -> None:
            if context is not None:
                observed.copy_to(context)
            accesses = (*(observed.accesses or ()), *self._services.emulation.take_refused())
            note = operation, scope, began_s, began, accesses, fault, body
            if self._group.state is GroupState.OPEN:
                observing.report_after_commit(note)
            else:
                observing.report(note)

        with self._lock:  # no commit between the call and the check of the state
            try:
                response = self.execute(
                    operation, body, scope, observed, participant=participant, slice_s=slice_s
                )
            except Fault as fault:
                report(fault)
                raise
            except BaseException as error:
                report(InternalServerFault(str(error)))
                raise
            if isinstance(response, bytes):
                report(None)
            else:
                response.report_end(report)
            return response

    def observe(self, observer: Observer | None) -> None:
        """Set the observer that is notified after each call, replacing the current one; None removes it.

        Without an observer, a call pays for one test.
        """
        with self._lock:
            self._services.emulation.take_refused()  # not for the new observer
            self._observing = self._group.observing = None if observer is None else ObserverNotifier(observer)

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        scope: Scope = DEFAULT_SCOPE,
        context: RequestContext | None = None,
    ) -> dict[str, Any]:
        """Return the response to a request, both as DynamoDB JSON in Python's types."""
        body = self.execute(operation, msgspec.json.encode(request), scope, context)
        response: dict[str, Any] = msgspec.json.decode(body) if body else {}
        return response

    def hottest(
        self, table_name: str, index_name: str | None = None, scope: Scope = DEFAULT_SCOPE, *, count: int = 10
    ) -> Hottest:
        """Return the most accessed and the most throttled keys of a table or global index.

        They are counted while Contributor Insights is enabled for it, or throughput is emulated.
        """
        with self._lock:
            table = self._catalog.find(scope, table_name)
            if table is None:
                raise ResourceNotFoundFault.of_table(table_name)
            index = None if index_name is None else table.by_name.get(index_name)
            if index_name is not None and (index is None or not index.is_global):
                raise ResourceNotFoundFault(
                    f"Requested resource not found: Index: {index_name} not found for table: {table_name}"
                )
            return self._services.emulation.hottest(table, index, count)

    def changes_between(
        self, table_name: str, moments_us: Sequence[int], scope: Scope = DEFAULT_SCOPE
    ) -> tuple[int, ...]:
        """Return the number of changes in a table's log between each two times; empty if it has no log."""
        with self._lock:
            self._check_open()
            table = self._catalog.find(scope, table_name)
            if table is None:
                raise ResourceNotFoundFault.of_table(table_name)
            if table.journal is None:
                return ()
            ids = [table.journal.log.id_at(moment_us) for moment_us in moments_us]
            return tuple(later - earlier for earlier, later in pairwise(ids))

    @property
    def clock(self) -> Clock:
        """The clock of this engine."""
        return self._services.clock

    @property
    def closed(self) -> bool:
        """Whether the engine was closed."""
        return self._closed

    @property
    def syncs(self) -> bool:
        """Whether a commit waits for the disk, so that collecting writes saves time."""
        return self._store.syncs

    def collect_writes(self) -> None:
        """Collect the writes of this thread in one transaction, until `commit`.

        Other participants may write in the same transaction, each `execute` with a name. The first to commit makes the
        writes of all durable; if that fails, each participant gets the error when it commits, and nothing else does.
        A call from another thread commits the transaction before it returns.
        """
        with self._lock:
            self._group.collect()

    def commit_pending(self) -> None:
        """Commit the collected writes now, for a caller on the collecting thread that cannot wait for `commit`."""
        with self._lock:
            self._check_open()
            self._group.check_failed()
            self._commit_call()

    @property
    def dirty(self) -> bool:
        """Whether some writes are not durable yet, or were lost and a participant does not know it yet.

        Read without the lock, while another thread may use the store; therefore it does not query the store.
        """
        return self._group.state is not GroupState.IDLE

    def commit(self, participant: object = None) -> None:
        """Make durable what this participant wrote; raise if it was rolled back, and none of it was kept.

        The failure may have happened in another participant's commit. If one of those succeeded, nothing is left to do.
        """
        with self._lock:
            committed = self._group.commit_for(participant)
            if committed and participant is not None:  # a collecting thread runs background work itself
                self._run_due_tasks()

    def run_background_work(self, budget_ms: float = 5.0) -> bool:
        """Do background work for about `budget_ms` and return whether there is more.

        While this is called regularly, calls do no background work themselves.
        """
        now_s = self._background_called_at_s = monotonic()
        with self._lock:
            if now_s - self._file_checked_at_s >= _FILE_CHECK_S and not self._closed:
                self._file_checked_at_s = now_s
                self._group.check_file()
            return self._run_tasks(budget_ms)

    def _run_tasks(self, budget_ms: float) -> bool:
        """Run due tasks, each in its own transaction, until the budget is used; not while a group is open."""
        group = self._group
        if self._closed or group.state is GroupState.FAILED or group.write_failure is not None:
            return False
        if self._store.open_transaction:
            return self._background.may_have_work
        until = monotonic() + budget_ms / 1000
        while self._background.has_due_work():
            group.call_has_written = False
            try:
                group.begin()
                self._background.run_step()
                group.commit()
            except (StoreFull, StoreFailed) as error:
                group.roll_back(error)
                return False  # retried when there is space, or after the store was opened again
            except Exception as error:  # noqa: BLE001 - a task that fails must not block the others
                group.roll_back(StoreError(f"background work failed ({error!r})"))
                if not self._abandon_job(error):
                    return False
            if monotonic() >= until:
                return self._background.has_due_work()
        return False

    def _abandon_job(self, error: Exception) -> bool:
        """Abandon the job that failed and return whether there was one; other tasks are retried."""
        try:
            self._group.begin()
            was_job = self._background.abandon_job(error)
            self._group.commit()
        except StoreError as second:
            self._group.roll_back(second)
            return False
        except Exception as second:  # noqa: BLE001 - clients are served regardless
            self._group.roll_back(StoreError(f"abandoning background work failed ({second!r})"))
            return False
        return was_job

    @property
    def write_failure(self) -> str | None:
        """Why writes are refused until the store is opened again; None while they are accepted."""
        return self._group.write_failure

    @property
    def unready_reason(self) -> str | None:
        """Why a write would be refused now: `write_failure`, or a full or read-only disk, which may pass; None if it would not."""
        return self._group.write_failure or self._group.space_failure

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._services.buckets is not None:
                    self._services.buckets.close()
                try:
                    self._group.close()
                    self._save_time()
                finally:
                    self._store.close()

    def _save_time(self) -> None:
        """Save the store time if the wall clock was set, so that its jump does not count as time that passed."""
        if self._services.time.was_clock_set and self._group.write_failure is None:
            with suppress(StoreError):
                self._store.begin()
                self._services.time.stamp()
                self._store.commit()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _execute_coerced(self, call: OperationCall, handler: Any) -> bytes | Steps[bytes]:
        """Execute a request whose values need the conversions that AWS makes; refuse it where AWS makes none."""
        try:
            request = parse_coerced(call.operation, call.body, self._wording)
            if call.context is not None and call.context.guard is not None:
                call.context.guard.check(call.operation, request, call)
            response: bytes | Steps[bytes] = handler(call, request)
        except ValueMalformed as malformed:
            raise SerializationFault(str(malformed)) from malformed
        return response

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the engine is closed; open it again to continue")

    def _commit_call(self) -> None:
        """Commit what a call wrote, then run due tasks if no one calls `run_background_work`."""
        if self._store.open_transaction:
            try:
                self._group.commit()
            except StoreError as error:
                raise InternalServerFault(str(error)) from error
        self._run_due_tasks()

    def _run_due_tasks(self) -> None:
        group = self._group
        if not self._background.may_have_work or group.is_collecting or group.state is GroupState.OPEN:
            return
        if monotonic() - self._background_called_at_s > _BACKGROUND_CALLER_S:
            while self._run_tasks(budget_ms=1000.0):
                pass

    def _reload(self) -> None:
        """Re-read from the store what is kept in memory beside the catalog, after a rollback."""
        services = self._services
        services.streams.load()
        services.jobs.load()
        services.token_signer.forget_secret()
        services.emulation.update_active(self._catalog)
        services.time.mark_unsaved()
