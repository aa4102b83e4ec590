"""Engine: open, call, close. The one door of DynamoDB in this process.

A request comes in as the JSON body that AWS would get and goes out as the one that AWS would send, so
every caller, in this process or over HTTP, gets the same answers from the same code. One writer at a time;
a lock makes it safe from several threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from threading import RLock
from types import TracebackType
from typing import Any, get_args

import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock, monotonic
from tavola.engine.background import BackgroundTasks, upgrade
from tavola.engine.catalog import Catalog
from tavola.engine.commit_group import CommitGroup, GroupState
from tavola.engine.emulation import Emulation, Hottest, Switches, active_emulation, parse_switches
from tavola.engine.isolation import ClientTokens
from tavola.engine.jobs import Jobs
from tavola.engine.observers import ObservedContext, Observer, ObserverNotifier
from tavola.engine.operations import HANDLERS, OperationCall, Services
from tavola.engine.request_context import ItemAccess, RequestContext
from tavola.engine.signed_tokens import TokenSigner
from tavola.engine.storage import Store, StoreError, StoreFailed, StoreFull
from tavola.engine.streams import Streams
from tavola.engine.transfer import Buckets
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault, InternalServerFault, ResourceNotFoundFault, SerializationFault
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.requests import parse, parse_coerced, unknown_operation
from tavola.values import ValueMalformed

_TENDED_S = 5.0


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
        self._catalog = Catalog(store, clock, keeps_all_history=switches.needs_history)
        self._group = CommitGroup(store, self._catalog, self._reload)
        self._observing: ObserverNotifier | None = None  # who is told of every call; None: nobody
        self._tended_at_s = -_TENDED_S  # when somebody last called `tend`
        self._services = Services(
            catalog=self._catalog,
            tokens=ClientTokens(store, clock),
            clock=clock,
            entropy=entropy,
            wording=wording,
            table_delay_s=delay_s,
            begin=self._group.begin,
            begin_maintenance=self._group.begin,
            store=store,
            streams=Streams(store, self._catalog),
            token_signer=TokenSigner(store, entropy, self._group.begin),
            jobs=Jobs(store),
            emulation=active_emulation(Emulation(switches, clock), self._catalog, clock),
            buckets=buckets,
        )
        self._chores = BackgroundTasks(self._services, ttl_interval_s)
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
        """Return an engine on the file at `path`, made if it is not there, or in memory without one.

        `sync` "full" loses no acknowledged write whatever happens; "off" leaves syncing to the system.
        `cache_mb` is the most memory that pages of the file may take; it is taken as they are read.
        `table_delay_ms` is how long a new table or index stays CREATING, as it does for a while on AWS.
        `key` encrypts the file: any text; without the right one it does not open.
        `ttl_interval_s` is how often expired items are looked for and deleted.
        `emulate` names what production does to requests and shall happen here too: "throughput,gsi-lag=200ms".
        `buckets` is the folder whose folders stand for S3's buckets, for exports and imports.
        """
        if wording not in get_args(MessageStyle):
            raise ValueError(f"wording must be one of {', '.join(get_args(MessageStyle))}, not {wording!r}")
        switches = Switches() if emulate is None else parse_switches(emulate)
        if key is not None and (path is None or not key):
            raise ValueError("a key is for a store in a file, and must not be empty")
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

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = DEFAULT_SCOPE,
        visit: RequestContext | None = None,
        *,
        participant: object = None,
    ) -> bytes:
        """Return the answer to a request body; raise the fault that AWS would answer.

        It is durable, unless the thread holds or the call is made `by` a name. Who gave it looks whether the engine is
        `dirty` then, and if so commits by that name before anything is told of the answer. A name for each call is
        told of that call alone.
        """
        if self._observing is not None and not isinstance(visit, ObservedContext):
            return self._observed(self._observing, operation, body, scope, visit, participant)
        handler = HANDLERS.get(operation)
        if handler is None:
            raise unknown_operation(operation)
        request = parse(operation, body, self._wording)
        call = OperationCall(operation, body, scope, self._services, visit)
        if visit is not None and visit.as_of_us is not None:
            call.make_read_only()
        group = self._group
        with self._lock:
            self._check_open()
            group.check_accepting()
            joins = group.collects(participant)
            try:
                if visit is not None and visit.guard is not None:
                    visit.guard.check(operation, request, call)
                try:
                    answer = handler(call, request)
                except ValueMalformed:
                    answer = self._mended(call, handler)
            except Fault:
                # Whatever is refused is refused before the first row is touched.
                if joins:
                    group.join(participant)
                raise
            except StoreError as error:
                group.fail_call(error)
                raise InternalServerFault(str(error)) from error
            except BaseException as error:
                group.fail_call(StoreError(f"the request could not be carried out ({error!r})"))
                raise
            if joins:
                group.join(participant)
            else:
                self._settle()
            return answer

    def _observed(
        self,
        observing: ObserverNotifier,
        operation: str,
        body: bytes,
        scope: Scope,
        visit: RequestContext | None,
        by: object,
    ) -> bytes:
        """Answer a call and have it told; one whose answer must wait for a commit is told then."""
        began_s, began = self._services.clock.now(), monotonic()
        watched = ObservedContext.of(visit)
        fault: Fault | None = None
        with self._lock:  # nobody commits between the call and the look whether it must wait
            try:
                return self.execute(operation, body, scope, watched, participant=by)
            except Fault as raised:
                fault = raised
                raise
            except BaseException as error:
                fault = InternalServerFault(str(error))
                raise
            finally:
                if visit is not None:
                    watched.copy_to(visit)
                touches: Sequence[ItemAccess] = watched.touches or ()
                if self._services.emulation is not None:
                    touches = (*touches, *self._services.emulation.take_refused())
                note = operation, scope, began_s, began, touches, fault, body
                if self._group.state is GroupState.OPEN:
                    observing.report_after_commit(note)
                else:
                    observing.report(note)

    def observe(self, observer: Observer | None) -> None:
        """Tell this one of every call from now on, in the place of whoever was told before; None: nobody.

        With nobody to tell, a call pays for one test.
        """
        with self._lock:
            if self._services.emulation is not None:
                self._services.emulation.take_refused()  # what nobody saw is not this one's
            self._observing = self._group.observing = None if observer is None else ObserverNotifier(observer)

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        scope: Scope = DEFAULT_SCOPE,
        visit: RequestContext | None = None,
    ) -> dict[str, Any]:
        """Return the answer to a request, both as DynamoDB JSON in Python's types."""
        answer: dict[str, Any] = msgspec.json.decode(
            self.execute(operation, msgspec.json.encode(request), scope, visit)
        )
        return answer

    def hottest(
        self, table_name: str, index_name: str | None = None, scope: Scope = DEFAULT_SCOPE, *, count: int = 10
    ) -> Hottest:
        """Return the keys of a table or global index that took most, and those refused most.

        They are counted while Contributor Insights is enabled on it, or throughput is emulated.
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
            emulation = self._services.emulation
            return Hottest() if emulation is None else emulation.hottest(table, index, count)

    def changes_between(
        self, table_name: str, moments_us: Sequence[int], scope: Scope = DEFAULT_SCOPE
    ) -> tuple[int, ...]:
        """Return how many changes a table's log has between each two moments; none where it keeps no log."""
        with self._lock:
            self._check_open()
            table = self._catalog.find(scope, table_name)
            if table is None:
                raise ResourceNotFoundFault.of_table(table_name)
            if table.journal is None:
                return ()
            places = [table.journal.log.id_at(moment_us) for moment_us in moments_us]
            return tuple(later - earlier for earlier, later in pairwise(places))

    @property
    def clock(self) -> Clock:
        """The clock that it goes by."""
        return self._services.clock

    @property
    def closed(self) -> bool:
        """Whether it was closed, and answers nothing more."""
        return self._closed

    @property
    def syncs(self) -> bool:
        """Whether a commit waits for the disk, so that gathering writes saves time."""
        return self._store.syncs

    def collect_writes(self) -> None:
        """Gather this thread's writes from now on in one transaction, until `commit`.

        Others may gather at the same time, each call `by` a name: connections on the same loop `execute` so. The first
        that commits makes the writes of all durable; if that fails, each who has a part in it is told when it
        commits, and nobody else. Another thread's call is answered when it is durable, and takes along what was
        gathered.
        """
        with self._lock:
            self._group.collect()

    def commit_pending(self) -> None:
        """Make durable what was gathered, for a caller of the holders' thread that does not wait for them."""
        with self._lock:
            self._check_open()
            self._group.check_failed()
            self._settle()

    @property
    def dirty(self) -> bool:
        """Tell whether there are writes that are not durable yet.

        Asked without the lock, while another thread may be at work in the store: so the store is not asked.
        """
        return self._group.state is not GroupState.IDLE

    def commit(self, participant: object = None) -> None:
        """Make durable what was gathered by this name; raise if that failed, and nothing of it was kept.

        It may have failed when somebody else tried. What somebody else made durable before is kept, and not told of.
        """
        with self._lock:
            if (
                self._group.commit_for(participant) and participant is not None
            ):  # who holds a thread also tends
                self._do_what_is_due()

    def run_background_work(self, budget_ms: float = 5.0) -> bool:
        """Do a slice of background work and tell whether there is more.

        Whoever calls this now and then has taken the work over: meanwhile no call does any of it in passing.
        """
        self._tended_at_s = monotonic()
        with self._lock:
            return self._work(budget_ms)

    def _work(self, budget_ms: float) -> bool:
        """Do what is due for so long; what others have begun and not committed is waited for."""
        group = self._group
        if self._closed or group.state is GroupState.FAILED or group.write_failure is not None:
            return False
        if self._store.open_transaction:
            return self._chores.may_have_work
        until = monotonic() + budget_ms / 1000
        while self._chores.has_due_work():
            group.call_has_written = False
            try:
                group.begin()
                self._chores.run_step()
                group.commit()
            except (StoreFull, StoreFailed) as error:
                group.roll_back(error)
                return False  # it is tried again when there is room, or when the store was opened again
            except Exception as error:  # noqa: BLE001 - what cannot go on must not keep the rest waiting
                group.roll_back(StoreError(f"background work failed ({error!r})"))
                if not self._give_up(error):
                    return False
            if monotonic() >= until:
                return self._chores.has_due_work()
        return False

    def _give_up(self, error: Exception) -> bool:
        """Let go of a job that cannot go on, and tell whether there was one; anything else is tried again."""
        try:
            self._group.begin()
            given_up = self._chores.abandon_job(error)
            self._group.commit()
        except StoreError as second:
            self._group.roll_back(second)
            return False
        except Exception as second:  # noqa: BLE001 - clients are served whatever becomes of it
            self._group.roll_back(StoreError(f"giving up background work failed ({second!r})"))
            return False
        return given_up

    @property
    def write_failure(self) -> str | None:
        """Return why writes are refused since the disk failed, None while all is well."""
        return self._group.write_failure

    def close(self) -> None:
        """Let go of the store; a second time does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._services.buckets is not None:
                    self._services.buckets.close()
                try:
                    self._group.close()
                finally:
                    self._store.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mended(self, call: OperationCall, handler: Any) -> bytes:
        """Answer a request whose values need the conversions that AWS makes; refuse where it makes none."""
        try:
            request = parse_coerced(call.operation, call.body, self._wording)
            if call.visit is not None and call.visit.guard is not None:
                call.visit.guard.check(call.operation, request, call)
            answer: bytes = handler(call, request)
        except ValueMalformed as malformed:
            raise SerializationFault(str(malformed)) from malformed
        return answer

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the engine is closed; open it again to go on")

    def _settle(self) -> None:
        """Commit what a call wrote; with nobody to tend the engine, do at once what is due."""
        if self._store.open_transaction:
            try:
                self._group.commit()
            except StoreError as error:
                raise InternalServerFault(str(error)) from error
        self._do_what_is_due()

    def _do_what_is_due(self) -> None:
        if (
            not self._chores.may_have_work
            or self._group.is_collecting
            or self._group.state is GroupState.OPEN
        ):
            return
        if monotonic() - self._tended_at_s > _TENDED_S:
            while self._work(budget_ms=1000.0):
                pass

    def _reload(self) -> None:
        """Re-read from the store what is kept in memory beside the catalog, after a rollback."""
        services = self._services
        services.streams.load()
        services.jobs.load()
        services.token_signer.forget_secret()
        services.emulation = active_emulation(services.emulation, self._catalog, services.clock)
