"""Group commit: writes of many requests share one transaction, and with it one fsync.

The problem. A commit is durable only after an fsync, and SQLite has one writer. If every request committed for
itself, the disk would set the pace: at 150 µs for an fsync, 6,000 writes per second, however many clients there are.

The idea. Requests that arrive together join one open transaction. Each is executed at once, under the engine's lock,
but its response is held back. When the event loop has processed everything that was ready, one of the participants
commits for all:

    participant A ── PutItem ─────┐
    participant B ── PutItem ─────┼── one transaction ── commit, fsync ──► responses of A, B and C are sent
    participant C ── GetItem ─────┘
                     (may have read B's uncommitted write, so C waits too)

The invariant: no response is sent before everything it may reveal is durable. Therefore a read, or a refusal, that was
answered while the transaction is open makes its caller a participant, exactly as a write does.

A participant is any hashable name. The server is one participant (None) for the whole thread that called
`Engine.collect_writes`; an embedded asyncio client names each call, so that each call gets its own outcome. A call
that is neither commits the transaction before it returns, and makes the others durable along with its own writes.

States:

            begin()             commit()             durable
    IDLE ───────────► OPEN ───────────► COMMITTING ───────────► IDLE
     ▲                 │                    │
     │                 │ a write failed     │ the commit failed
     │                 ▼                    ▼
     └───────────── FAILED ◄────────────────┘
      every participant
      knows the error

FAILED means that the transaction was rolled back, and that some participants do not know it yet. Each of them gets the
error from its own `commit`. Until the last one has, every request is refused: it might otherwise be executed after a
participant's write was lost and before that participant knows. Without participants, the group returns to IDLE at once.

Separate from the states, and permanent until the store is opened again: after a failed write or fsync the content of
the disk is uncertain, so `write_failure` refuses all later writes while reads continue; and if even the rollback
fails, the catalog in memory may differ from the store, so `read_failure` refuses everything. Both are also set when another
program has replaced the file. A full disk is neither: the rollback leaves a sound state, and the next write may succeed. Until
one does, `space_failure` holds the reason, for those who ask whether the store is ready.

The cost: a request waits for at most the rest of the loop's turn and one fsync. Given up: isolation between
participants. One failed write rolls back the others of its group, which have to be retried by their clients.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from threading import get_ident

from tavola.engine.catalog import Catalog
from tavola.engine.request_context import ObserverNotifier
from tavola.engine.storage import Store, StoreError, StoreFailed, StoreFull, StoreReplaced
from tavola.protocol.faults import InternalServerFault

_PROBE = ("probe", "space")  # kind and name of a record that is written to find out whether there is space
_PROBE_BYTES = 64 * 1024


class GroupState(Enum):
    """Where the transaction of a `CommitGroup` is in its life; see the module's diagram."""

    IDLE = auto()
    OPEN = auto()
    COMMITTING = auto()
    FAILED = auto()


_IDLE, _OPEN, _COMMITTING, _FAILED = GroupState  # globals: an enum's member costs a lookup in its class


class CommitGroup:
    """The open transaction of an engine and the participants that wait for it.

    The engine's lock is held around every method; only `state` may be read without it.
    """

    __slots__ = (
        "_catalog",
        "_collecting_thread",
        "_failed_participants",
        "_participants",
        "_reload",
        "_store",
        "call_has_written",
        "error",
        "observing",
        "read_failure",
        "space_failure",
        "state",
        "write_failure",
    )

    def __init__(self, store: Store, catalog: Catalog, reload: Callable[[], None]) -> None:
        """Group the transactions of `store`; `reload` re-reads what is kept in memory, after a rollback."""
        self._store = store
        self._catalog = catalog
        self._reload = reload
        self._collecting_thread: int | None = None  # its calls join as the participant None
        self._participants: set[object] = set()  # those that wrote in the open transaction, or read from it
        self._failed_participants: dict[object, StoreError] = {}  # those that do not know of the rollback
        self.state = _IDLE
        self.error: StoreError | None = None  # why the group FAILED
        self.call_has_written = False  # the current call opened the transaction, or wrote in it
        self.write_failure: str | None = None  # why every write is refused
        self.read_failure: str | None = None  # why every request is refused
        self.space_failure: str | None = None  # why the last write was refused by a full or read-only disk
        self.observing: ObserverNotifier | None = None  # notified when calls become durable, or are undone

    def collect(self) -> None:
        """Let the calls of this thread join as the participant None, until that participant commits."""
        self._collecting_thread = get_ident()

    @property
    def is_collecting(self) -> bool:
        """Whether the calls of some thread join without a name."""
        return self._collecting_thread is not None

    def collects(self) -> bool:
        """Return whether calls of this thread join the group instead of committing for themselves."""
        return get_ident() == self._collecting_thread

    def check_failed(self) -> None:
        """Raise InternalServerFault while a participant does not know that the group failed."""
        if self.state is _FAILED:
            raise InternalServerFault(str(self.error))

    def check_accepting(self) -> None:
        """Start a call; raise InternalServerFault if no request can be executed now."""
        if self.state is _FAILED:
            raise InternalServerFault(str(self.error))
        if self.read_failure is not None:
            raise InternalServerFault(self.read_failure)
        self.call_has_written = False

    def begin(self) -> None:
        """Open the transaction, or join the open one, before the first write of a call."""
        if self.write_failure is not None:
            raise InternalServerFault(self.write_failure)
        is_first = not self.call_has_written
        self.call_has_written = True
        if not self._store.open_transaction:
            self._store.begin()
            self.state = _OPEN
        if is_first and self._catalog.has_logs:
            self._catalog.time.tick()

    def join(self, participant: object) -> None:
        """Make the participant wait for the open transaction, if there is one."""
        if self.state is _OPEN:
            self._participants.add(participant)

    def commit_for(self, participant: object) -> bool:
        """Make durable what this participant wrote; raise if it was rolled back, now or before.

        Return False if there was nothing to do, because another participant's commit had made it durable already.
        """
        if participant is None:
            self._collecting_thread = None
        error = self._failed_participants.pop(participant, None)
        if self.state is _FAILED and not self._failed_participants:
            self.state, self.error = _IDLE, None
        if error is not None:
            raise error
        # Where others wait and this participant does not, its own writes were committed with an earlier group.
        if self.state is _OPEN and (participant in self._participants or not self._participants):
            self._participants.discard(participant)
            self.commit()
            return True
        return False

    def commit(self) -> None:
        """Commit the open transaction; raise the error if it was rolled back instead.

        The caller gets a failure as the exception, the participants when they commit.
        """
        self.state = _COMMITTING
        try:
            self._catalog.save_counts()
            self._store.commit()
        except StoreError as error:
            self.roll_back(error)
            raise
        except BaseException as error:
            self.roll_back(StoreError(f"the commit was interrupted ({error!r})"))
            raise
        self.state = _IDLE
        self.space_failure = None
        self._participants.clear()
        if self.observing is not None:
            self.observing.report_durable()
        if self._store.trouble is not None:
            self.refuse_writes(self._store.trouble)

    def fail_call(self, error: StoreError) -> None:
        """Roll back if the failed call had written, or if SQLite rolled back by itself.

        The failure of a call that only read leaves the transaction of the others open.
        """
        if self.call_has_written or (self.state is _OPEN and not self._store.open_transaction):
            self.roll_back(error)

    def roll_back(self, error: StoreError) -> None:
        """Undo the open transaction and all writes of its participants, and re-read the state in memory."""
        if isinstance(error, StoreFailed):
            self.refuse_writes(error)
        elif isinstance(error, StoreFull):
            self.space_failure = str(error)
        had_begun = self.state in (_OPEN, _COMMITTING)
        self._end_undone(error, str(error))
        try:
            self._store.rollback()
            if had_begun and self.read_failure is None:  # otherwise nothing is read any more
                self._catalog.load()
                self._reload()
        except StoreError as second:
            self.read_failure = self.read_failure or str(second)
            self.write_failure = self.write_failure or self.read_failure

    def refuse_writes(self, error: StoreError) -> None:
        """Refuse every later write, and every read too if the content of the file was changed."""
        self.write_failure = str(error)
        if isinstance(error, StoreReplaced) and not error.is_readable:
            self.read_failure = str(error)

    def check_file(self) -> None:
        """Refuse writes if the file was replaced; after a full disk, find out whether it can be written again."""
        try:
            self._store.check_file()
            if self.space_failure is not None and self.write_failure is None and self.state is _IDLE:
                self._write_probe()
                self.space_failure = None
        except StoreFull as error:
            self.space_failure = str(error)
        except StoreError as error:
            self.refuse_writes(error)

    def _write_probe(self) -> None:
        """Write and remove a small record, each in its own transaction; raise if the disk refuses, with nothing changed."""
        for data in (bytes(_PROBE_BYTES), None):
            self._store.begin()
            try:
                if data is None:
                    self._store.delete_record(*_PROBE)
                else:
                    self._store.put_record(*_PROBE, data)
                self._store.commit()
            except StoreError:
                self._store.rollback()
                raise

    def close(self) -> None:
        """Undo the open transaction because the engine closes; its participants get an error."""
        reason = "the engine was closed before the write was durable"
        self._end_undone(StoreError(f"{reason}; it is not kept"), reason)
        self._store.rollback()

    def _end_undone(self, error: StoreError, reason: str) -> None:
        """Leave the OPEN or COMMITTING state without a commit, and keep the error for each participant."""
        if self.state in (_OPEN, _COMMITTING):
            self.state = _IDLE
        if self._participants:
            self._failed_participants.update(dict.fromkeys(self._participants, error))
            self._participants.clear()
            self.state, self.error = _FAILED, error
        if self.observing is not None:
            self.observing.report_undone(reason)
