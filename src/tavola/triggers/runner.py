"""Trigger: a handler on a stream, as an event source mapping of Lambda runs it.

One thread reads, decides and keeps the checkpoints; only the handler runs in others, and only where the
mapping asks for parallel batches. `step` does one turn and `drain` turns until nothing is left, both in the
calling thread and in a fixed order, so that a test repeats. A record is passed for good when the handler has
handled it, a filter does not want it, or it is written down as given up; the checkpoint follows and never
goes ahead. So a record may come twice, after a crash, and none is lost.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from collections.abc import Mapping as AnyMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from tavola.clock import SYSTEM_CLOCK, Clock, ManualClock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.triggers.checkpoints import Checkpoints, FileCheckpoints, MemoryCheckpoints
from tavola.triggers.consumer import ShardConsumer
from tavola.triggers.dead_letters import DeadLetterFile, DeadLetters, Origin, failure_document
from tavola.triggers.errors import DrainUnfinished, FileRefused, HandlerFailing, TriggerError
from tavola.triggers.events import batch_event, window_event
from tavola.triggers.follower import Follower, Source
from tavola.triggers.functions import Function, Handler, Invocation, invoke
from tavola.triggers.lanes import Backoff, Lane, Task
from tavola.triggers.mapping import Mapping
from tavola.triggers.outcomes import Discard, Outcome, Succeeded

POLL_S = 0.25  # Lambda looks at a shard four times a second
DISCOVERY_S = 10.0  # how often a stream is asked for new shards, besides when one has ended
WORKERS_MAX = 64

_log = logging.getLogger("tavola.triggers")

Running: TypeAlias = tuple[ShardConsumer, Lane, Task]
Place: TypeAlias = str | os.PathLike[str]


class Answering(Protocol):
    """Whatever answers DynamoDB's operations: a connection, or a backend."""

    def call(self, operation: str, request: AnyMapping[str, Any], /) -> dict[str, Any]:
        """Return the response to an operation, or raise its fault."""
        ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a trigger has done since it was made."""

    invocations: int = 0
    failures: int = 0  # invocations that left something to be tried again or given up
    read: int = 0
    filtered: int = 0
    handled: int = 0
    discarded: int = 0


class Trigger:
    """Runs a handler on the records of a table's stream; see the guide for what is promised.

    `checkpoints` and `dead_letters` take a path for a file. `clock`, `entropy` and `sleeper` are for tests: with
    a `ManualClock`, waiting moves the clock.
    """

    def __init__(
        self,
        source: Answering,
        *,
        handler: Handler,
        table: str | None = None,
        stream_arn: str | None = None,
        mapping: Mapping | None = None,
        checkpoints: Checkpoints | Place | None = None,
        dead_letters: DeadLetters | Place | None = None,
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
            raise TriggerError(
                "A trigger reads the stream of a table, or one stream: give table or stream_arn"
            )
        self.mapping = Mapping() if mapping is None else mapping
        self.function = Function.of(handler, name=name, timeout_s=timeout_s)
        self._payload = dead_letter_payload
        self._poll_s = poll_s
        self._clock = clock
        self._entropy = entropy
        self._stopping = threading.Event()
        moved = clock.advance if isinstance(clock, ManualClock) else self._stopping.wait
        self._sleeper = sleeper or moved
        self._turning = threading.Lock()
        self._broken: FileRefused | None = None
        self._running: dict[Future[Outcome], Running] = {}
        self._statistics = Statistics()
        self._owned: list[Checkpoints | DeadLetters] = []
        self._dead_letters = self._opened(dead_letters, DeadLetterFile)
        self._follower = Follower(
            Source(source.call, table, stream_arn),
            self.mapping,
            self._opened(checkpoints, FileCheckpoints) or MemoryCheckpoints(),
            clock,
            backoff=Backoff() if backoff is None else backoff,
            discovery_s=discovery_s,
        )
        for remark in self.mapping.filters.remarks():
            _log.warning("%s", remark)

    @property
    def statistics(self) -> Statistics:
        """What has been done so far."""
        return self._statistics

    @property
    def stream_arn(self) -> str | None:
        """The stream that is read; None until it is known."""
        return self._follower.stream_arn

    @property
    def ended(self) -> bool:
        """Whether the stream is disabled and everything in it is dealt with."""
        return self._follower.ended

    def start(self) -> None:
        """Find the stream and the places to go on from; LATEST begins now. A second time does nothing."""
        with self._alone():
            self._follower.start()

    def step(self) -> bool:
        """Do one turn: read what there is and run what is due; tell whether anything was done."""
        with self._alone():
            self._follower.start()
            return self._turn(flush=False)

    def drain(self, timeout_s: float = 30.0, *, patient: bool = True) -> int:
        """Handle everything that is in the stream now, retries included; return how many records were handled.

        A partial batch does not wait for its window. `stop` ends it early; when its time is up, by the
        trigger's own clock, it raises `DrainUnfinished`. One that is not `patient` raises `HandlerFailing`
        where only retries are left that have no end.
        """
        with self._alone():
            self._follower.start()
            before = self._statistics.handled
            self._follower.look_again()
            try:
                self._drain(timeout_s, patient=patient)
            finally:
                self._follower.look_again()
                self._stopping.clear()
            return self._statistics.handled - before

    def run(self) -> None:
        """Run until `stop`, or until the stream has ended; the batch at hand is finished first."""
        with self._alone():
            factor = self.mapping.parallelization_factor
            workers = min(WORKERS_MAX, 8 * factor)
            pool = ThreadPoolExecutor(workers, "tavola-trigger") if factor > 1 else None
            try:
                while not self._stopping.is_set() and not self._follower.start_or_wait(self._poll_s):
                    self._sleeper(self._follower.wait_s())
                while not self._stopping.is_set() and not self.ended:
                    if not self._turn(flush=False, pool=pool):
                        self._rest()
            finally:
                if pool is not None:
                    pool.shutdown(wait=True, cancel_futures=True)
                    self._harvest()
                self._stopping.clear()

    def stop(self) -> None:
        """Let `run` or `drain` end after the batch at hand; from any thread, or from a signal's handler."""
        self._stopping.set()

    @contextmanager
    def running(self) -> Iterator[Trigger]:
        """Run in a thread of its own for the length of a block; what ended it too early is raised at the end."""
        self.start()
        failed: list[BaseException] = []

        def work() -> None:
            try:
                self.run()
            except BaseException as error:  # noqa: BLE001 - it is raised where somebody can see it
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
        """Close the files that the trigger opened; a second time does nothing."""
        for kept in self._owned:
            kept.close()

    def __enter__(self) -> Trigger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self, given: Any, file: Callable[[Place], Any]) -> Any:
        """Return what was given, or the file of this name, which is then the trigger's to close."""
        if not isinstance(given, str | os.PathLike):
            return given
        kept = file(given)
        self._owned.append(kept)
        return kept

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep a second thread out, and do not go on after a file could not be written."""
        if not self._turning.acquire(blocking=False):
            raise TriggerError("This trigger is running already; stop it first, or make another one")
        try:
            if self._broken is not None:
                raise self._broken
            yield
        except FileRefused as error:
            self._broken = error  # memory is ahead of the file now; a new trigger begins where the file is
            raise
        finally:
            self._turning.release()

    def _drain(self, timeout_s: float, *, patient: bool) -> None:
        deadline_s = self._clock.now() + timeout_s
        endless = self.mapping.maximum_retry_attempts == -1
        while True:
            worked = self._turn(flush=True)
            if self._follower.drained or self._stopping.is_set():
                return
            left_s = deadline_s - self._clock.now()
            consumers = self._follower.consumers.values()
            failure = next(filter(None, (consumer.last_failure for consumer in consumers)), None)
            left = sum(consumer.left for consumer in consumers)
            if left_s <= 0:
                raise DrainUnfinished(timeout_s, left, failure)
            if not worked and endless and not patient and failure is not None:
                raise HandlerFailing(left, failure)
            if not worked:
                self._sleeper(min(self._follower.wait_s(), left_s))

    def _turn(self, *, flush: bool, pool: ThreadPoolExecutor | None = None) -> bool:
        """Do what is to be done now: shards, readings, invocations; tell whether there was anything."""
        follower = self._follower
        worked = follower.discover(self._poll_s) | self._harvest()
        poll_s = inf if flush else self._poll_s  # a drain wants what is there now, and looks once
        for consumer in tuple(follower.consumers.values()):
            reading = follower.read(consumer, poll_s)
            if reading is not None:
                self._count(read=reading.read, filtered=reading.filtered)
                worked |= reading.read > 0
            worked |= self._work(consumer, flush=flush, pool=pool)
            worked |= follower.retire(consumer)
        return worked

    def _work(self, consumer: ShardConsumer, *, flush: bool, pool: ThreadPoolExecutor | None) -> bool:
        """Run what is due of a shard, or hand it to the pool."""
        tasks = consumer.due(self._clock.now(), flush=flush)
        for lane, task in tasks:
            discard = None if task.final else lane.expire(self._clock.now())
            if discard is not None:
                self._give_up(consumer, lane, discard)
                self._follower.keep(consumer)
            elif pool is not None:
                lane.busy = True
                self._running[pool.submit(self._invoke, consumer, task)] = (consumer, lane, task)
            else:
                self._settle(consumer, lane, task, self._invoke(consumer, task))
        return bool(tasks)

    def _harvest(self) -> bool:
        """Settle what the pool has finished."""
        done = [future for future in self._running if future.done()]
        for future in done:
            consumer, lane, task = self._running.pop(future)
            lane.busy = False
            if not future.cancelled():
                self._settle(consumer, lane, task, future.result())
        return bool(done)

    def _invoke(self, consumer: ShardConsumer, task: Task) -> Outcome:
        """Run the handler for a task; the only thing of a trigger that happens in another thread."""
        arn = self._follower.stream.arn
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
            reports_failures=self.mapping.reports_failures and not task.final,
            stateful=task.window is not None and not task.final,
        )
        return invoke(self.function, invocation, stream_arn=arn, clock=self._clock, entropy=self._entropy)

    def _settle(self, consumer: ShardConsumer, lane: Lane, task: Task, outcome: Outcome) -> None:
        """Take an outcome: first what is given up is written down, then the checkpoint moves."""
        decision = consumer.settle(lane, task, outcome, self._clock.now())
        failed = not isinstance(outcome, Succeeded)
        self._count(invocations=1, failures=int(failed), handled=len(decision.done))
        if decision.done:
            _log.info(
                "%s: %d handled, up to %s", consumer.shard_id, len(decision.done), decision.done[-1].sequence
            )
        if decision.discarded is not None:
            self._give_up(consumer, lane, decision.discarded)
        self._follower.keep(consumer)

    def _give_up(self, consumer: ShardConsumer, lane: Lane, discard: Discard) -> None:
        if not discard.records:
            _log.error(
                "%s: a window is closed without its final invocation (%s)", consumer.shard_id, discard.reason
            )
            return
        _log.error(
            "%s: %d records from %s to %s are given up (%s)%s",
            consumer.shard_id,
            len(discard.records),
            discard.records[0].sequence,
            discard.records[-1].sequence,
            discard.condition,
            "" if self._dead_letters is not None else "; no dead-letter file keeps a trace of them",
        )
        if self._dead_letters is not None:
            arn = self._follower.stream.arn
            document = failure_document(
                discard,
                Origin(arn, consumer.shard_id, self.function.arn(arn)),
                request_id=self._entropy.uuid(),
                now_s=self._clock.now(),
                payload=self._payload,
            )
            self._dead_letters.append(document)
        consumer.note_discarded(lane, discard.records)
        self._count(discarded=len(discard.records))

    def _rest(self) -> None:
        """Wait until there may be something to do."""
        wait_s = self._follower.wait_s()
        if self._running:
            wait(self._running, timeout=min(wait_s, self._poll_s), return_when=FIRST_COMPLETED)
        else:
            self._sleeper(wait_s)

    def _count(self, **more: int) -> None:
        self._statistics = replace(
            self._statistics, **{name: getattr(self._statistics, name) + n for name, n in more.items()}
        )
