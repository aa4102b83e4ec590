"""Trigger: run a handler on a stream as a Lambda event source mapping does.

    shards ─read─► filters ─► partition queues ─batch─► handler ─outcome─► done │ retry │ dead letter ─► checkpoint

One thread reads, decides and saves checkpoints; only the handler runs in other threads, and only if the mapping has a
parallelization factor above one. `step` does one turn and `drain` repeats it until nothing is left, both in the
calling thread and in a fixed order, so tests are repeatable.

Invariant: the checkpoint never runs ahead. It passes a record only after the handler has handled it, a filter has dropped
it, or its dead letter is on disk. So after a crash a record may be handled twice, and none is lost.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from tavola.client.checkpoints import CheckpointStore, MemoryCheckpoint
from tavola.client.streams import DISCOVERY_S
from tavola.clock import SYSTEM_CLOCK, Clock, ManualClock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.triggers.checkpoints import CheckpointLog
from tavola.triggers.dead_letters import BatchOrigin, DeadLetterFile, DeadLetters, failure_document
from tavola.triggers.errors import DrainUnfinished, HandlerFailing, TriggerError, TriggerFileRefused
from tavola.triggers.events import batch_event, window_event
from tavola.triggers.functions import Handler, HandlerFunction, Invocation, invoke
from tavola.triggers.mapping import EventSourceMapping
from tavola.triggers.outcomes import Discard, Failed, Outcome, Succeeded
from tavola.triggers.partition_queues import Backoff, InvocationTask, PartitionQueue
from tavola.triggers.shard_consumer import ShardConsumer
from tavola.triggers.stream_consumer import StreamConsumer, StreamSource

POLL_S = 0.25  # Lambda polls a shard four times a second
WORKERS_MAX = 64

_log = logging.getLogger("tavola.triggers")

RunningTask: TypeAlias = tuple[ShardConsumer, PartitionQueue, InvocationTask]
FilePath: TypeAlias = str | os.PathLike[str]


class StreamBackend(Protocol):
    """What a trigger calls DynamoDB's operations on: a connection, or a backend."""

    def call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the response to an operation; raise its fault."""
        ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a trigger has done since it was created."""

    invocations: int = 0
    failures: int = 0  # invocations that left records to retry or discard
    unread_failures: int = 0  # those whose batchItemFailures the mapping does not read
    read: int = 0
    filtered: int = 0
    handled: int = 0
    discarded: int = 0
    discarded_windows: int = 0  # tumbling windows whose state was dropped
    gaps: int = 0  # places where records had left the stream before they were read


class Trigger:
    """Runs a handler on the records of a table's stream; the guide says what is guaranteed.

    `checkpoints` and `dead_letters` may be the path of a file. `clock`, `entropy` and `sleeper` are for tests: with a
    `ManualClock`, waiting advances the clock.
    """

    def __init__(
        self,
        source: StreamBackend,
        *,
        handler: Handler,
        table: str | None = None,
        stream_arn: str | None = None,
        mapping: EventSourceMapping | None = None,
        checkpoints: CheckpointStore | FilePath | None = None,
        dead_letters: DeadLetters | FilePath | None = None,
        dead_letter_payload: bool = False,
        name: str | None = None,
        timeout_s: float | None = None,
        backoff: Backoff | None = None,
        poll_s: float = POLL_S,
        discovery_s: float = DISCOVERY_S,
        clock: Clock = SYSTEM_CLOCK,
        entropy: Entropy = SYSTEM_ENTROPY,
        sleeper: Callable[[float], object] | None = None,
    ) -> None:
        if (table is None) == (stream_arn is None):
            raise TriggerError("Give either table or stream_arn")
        self.mapping = EventSourceMapping() if mapping is None else mapping
        self.function = HandlerFunction.of(handler, name=name, timeout_s=timeout_s)
        self._payload = dead_letter_payload
        self._poll_s = poll_s
        self._clock = clock
        self._entropy = entropy
        self._stopping = threading.Event()
        default_sleeper = clock.advance if isinstance(clock, ManualClock) else self._stopping.wait
        self._sleeper = sleeper or default_sleeper
        self._running_lock = threading.Lock()
        self._file_error: TriggerFileRefused | None = None
        self._running: dict[Future[Outcome], RunningTask] = {}
        self._statistics = Statistics()
        self._owned_files: list[CheckpointLog | DeadLetterFile] = []
        self._dead_letters = self._open_file(dead_letters, DeadLetterFile)
        self._stream = StreamConsumer(
            StreamSource(source.call, table, stream_arn),
            self.mapping,
            self._open_file(checkpoints, CheckpointLog) or MemoryCheckpoint(),
            clock,
            backoff=Backoff() if backoff is None else backoff,
            discovery_s=discovery_s,
        )
        for remark in self.mapping.filters.remarks():
            _log.warning("%s", remark)

    @property
    def statistics(self) -> Statistics:
        """What the trigger has done so far."""
        stream = self._stream
        return replace(
            self._statistics,
            gaps=stream.gaps,
            discarded_windows=self._statistics.discarded_windows + stream.dropped_windows,
        )

    @property
    def stream_arn(self) -> str | None:
        """The stream that is read; None until it is known."""
        return self._stream.stream_arn

    @property
    def has_ended(self) -> bool:
        """Whether the stream is disabled and handled to its end."""
        return self._stream.has_ended

    def start(self) -> None:
        """Find the stream and the positions to continue from; LATEST starts now. Does nothing the second time."""
        with self._exclusive():
            self._stream.start()

    def step(self) -> bool:
        """Do one turn: read what there is and run what is due; return whether anything was done."""
        with self._exclusive():
            self._stream.start()
            return self._turn(flush=False)

    def drain(self, timeout_s: float = 30.0, *, patient: bool = True) -> int:
        """Handle everything that is in the stream now, retries included; return how many records were handled.

        Partial batches do not wait for their window. `stop` ends it early. Raises `DrainUnfinished` after `timeout_s` by
        the trigger's clock, and unless `patient`, `HandlerFailing` as soon as only retries without a limit are left.
        """
        with self._exclusive():
            self._stream.start()
            before = self._statistics.handled
            self._stream.read_soon()
            try:
                self._drain(timeout_s, patient=patient)
            finally:
                self._stream.read_soon()
                self._stopping.clear()
            return self._statistics.handled - before

    def run(self) -> None:
        """Run until `stop` or the end of the stream; a batch in progress is finished first."""
        with self._exclusive():
            factor = self.mapping.parallelization_factor
            workers = min(WORKERS_MAX, 8 * factor)
            pool = ThreadPoolExecutor(workers, "tavola-trigger") if factor > 1 else None
            try:
                while not self._stopping.is_set() and not self._stream.start_or_wait(self._poll_s):
                    self._sleeper(self._stream.wait_s())
                while not self._stopping.is_set() and not self.has_ended:
                    if not self._turn(flush=False, pool=pool):
                        self._wait()
            finally:
                if pool is not None:
                    pool.shutdown(wait=True, cancel_futures=True)
                    self._settle_finished()
                self._stopping.clear()

    def stop(self) -> None:
        """Make `run` or `drain` return after the batch in progress; may be called from any thread or signal handler."""
        self._stopping.set()

    @contextmanager
    def running(self) -> Iterator[Trigger]:
        """Run in a thread for the duration of a block; raise at its end what ended the thread early."""
        self.start()
        failed: list[BaseException] = []

        def work() -> None:
            try:
                self.run()
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                failed.append(error)

        thread = threading.Thread(target=work, name="tavola-trigger", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()
            self._stopping.clear()
        if failed:
            raise failed[0]

    def close(self) -> None:
        """Close the files that the trigger opened; does nothing the second time."""
        for file in self._owned_files:
            file.close()

    def __enter__(self) -> Trigger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_file(self, store: Any, open_path: Callable[[FilePath], Any]) -> Any:
        """Return `store`, or the file at that path, which the trigger then closes."""
        if not isinstance(store, str | os.PathLike):
            return store
        file = open_path(store)
        self._owned_files.append(file)
        return file

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other threads out, and refuse to continue after a file could not be written."""
        if not self._running_lock.acquire(blocking=False):
            raise TriggerError("This trigger is already running; stop it first, or create another one")
        try:
            if self._file_error is not None:
                raise self._file_error
            yield
        except TriggerFileRefused as error:
            self._file_error = error  # memory is ahead of the file; a new trigger continues from the file
            raise
        finally:
            self._running_lock.release()

    def _drain(self, timeout_s: float, *, patient: bool) -> None:
        deadline_s = self._clock.now() + timeout_s
        endless = self.mapping.maximum_retry_attempts == -1
        while True:
            worked = self._turn(flush=True)
            if self._stream.is_drained or self._stopping.is_set():
                return
            remaining_s = deadline_s - self._clock.now()
            consumers = self._stream.consumers.values()
            failure = next(filter(None, (consumer.last_failure for consumer in consumers)), None)
            pending = sum(consumer.pending for consumer in consumers)
            if remaining_s <= 0:
                raise DrainUnfinished(timeout_s, pending, failure)
            if not worked and endless and not patient and failure is not None:
                raise HandlerFailing(pending, failure)
            if not worked:
                self._sleeper(min(self._stream.wait_s(), remaining_s))

    def _turn(self, *, flush: bool, pool: ThreadPoolExecutor | None = None) -> bool:
        """Discover shards, read them and run what is due; return whether there was anything to do."""
        stream = self._stream
        worked = stream.discover(self._poll_s) | self._settle_finished()
        poll_s = inf if flush else self._poll_s  # a drain reads what is there now, once
        for consumer in tuple(stream.consumers.values()):
            counts = stream.read(consumer, poll_s)
            if counts is not None:
                self._count(read=counts.read, filtered=counts.filtered)
                worked |= counts.read > 0
            worked |= self._run_due(consumer, flush=flush, pool=pool)
            worked |= stream.retire(consumer)
        return worked

    def _run_due(self, consumer: ShardConsumer, *, flush: bool, pool: ThreadPoolExecutor | None) -> bool:
        """Run a shard's due invocations, or submit them to the pool."""
        tasks = consumer.due_tasks(self._clock.now(), flush=flush)
        for queue, task in tasks:
            discard = None if task.final else queue.expire(self._clock.now())
            if discard is not None:
                self._discard(consumer, queue, discard)
                self._stream.save_position(consumer)
            elif pool is not None:
                queue.busy = True
                self._running[pool.submit(self._invoke, consumer, task)] = (consumer, queue, task)
            else:
                self._settle(consumer, queue, task, self._invoke(consumer, task))
        return bool(tasks)

    def _settle_finished(self) -> bool:
        """Settle the invocations that the pool has finished."""
        done = [future for future in self._running if future.done()]
        for future in done:
            consumer, queue, task = self._running.pop(future)
            queue.busy = False
            if not future.cancelled():
                self._settle(consumer, queue, task, future.result())
        return bool(done)

    def _invoke(self, consumer: ShardConsumer, task: InvocationTask) -> Outcome:
        """Run the handler for a task; the only part of a trigger that runs in other threads."""
        arn = self._stream.stream.arn
        records = task.segment.records
        if task.window is None:
            event = batch_event(records)
        else:
            event = window_event(
                records, task.window, consumer.shard_id, arn, final=task.final, early=task.early
            )
        invocation = Invocation(
            event,
            tuple(record.sequence for record in records),
            report_batch_item_failures=self.mapping.report_batch_item_failures,
            stateful=task.window is not None and not task.final,
        )
        return invoke(self.function, invocation, stream_arn=arn, clock=self._clock, entropy=self._entropy)

    def _settle(
        self, consumer: ShardConsumer, queue: PartitionQueue, task: InvocationTask, outcome: Outcome
    ) -> None:
        """Apply an outcome: write the dead letter of discarded records first, then advance the checkpoint."""
        decision = consumer.settle(queue, task, outcome, self._clock.now())
        failed = not isinstance(outcome, Succeeded)
        unread = isinstance(outcome, Failed) and outcome.unread
        self._count(
            invocations=1, failures=int(failed), unread_failures=int(unread), handled=len(decision.done)
        )
        if decision.done:
            _log.info(
                "%s: %d handled, up to %s", consumer.shard_id, len(decision.done), decision.done[-1].sequence
            )
        if decision.discarded is not None:
            self._discard(consumer, queue, decision.discarded)
        self._stream.save_position(consumer)

    def _discard(self, consumer: ShardConsumer, queue: PartitionQueue, discard: Discard) -> None:
        if not discard.records:
            _log.error(
                "%s: a window is closed without its final invocation, and its state is lost (%s)",
                consumer.shard_id,
                discard.reason,
            )
            self._count(discarded_windows=1)
            return
        _log.error(
            "%s: %d records from %s to %s are discarded (%s)%s",
            consumer.shard_id,
            len(discard.records),
            discard.records[0].sequence,
            discard.records[-1].sequence,
            discard.condition,
            "" if self._dead_letters is not None else "; there is no dead-letter file to record them",
        )
        if self._dead_letters is not None:
            arn = self._stream.stream.arn
            document = failure_document(
                discard,
                BatchOrigin(arn, consumer.shard_id, self.function.arn(arn)),
                request_id=self._entropy.uuid(),
                now_s=self._clock.now(),
                payload=self._payload,
            )
            self._dead_letters.append(document)
        consumer.mark_discarded(queue, discard.records)
        self._count(discarded=len(discard.records))

    def _wait(self) -> None:
        """Wait until something may be due."""
        wait_s = self._stream.wait_s()
        if self._running:
            wait(self._running, timeout=min(wait_s, self._poll_s), return_when=FIRST_COMPLETED)
        else:
            self._sleeper(wait_s)

    def _count(self, **increments: int) -> None:
        self._statistics = replace(
            self._statistics, **{name: getattr(self._statistics, name) + n for name, n in increments.items()}
        )
