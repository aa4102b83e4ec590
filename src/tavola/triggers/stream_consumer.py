"""Stream consumer: the shard consumers of one stream, and the checkpoint that records how far each is.

Finds the stream, applies the starting position once for all restarts, consumes children after their parents, and
saves a position when it changes. Transient errors of the service are retried later; others are raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tavola.client.checkpoints import CheckpointStore
from tavola.client.effects import Call, Program, run_program
from tavola.client.retries import RetryPolicy
from tavola.client.streams import (
    LossKind,
    ShardReader,
    StreamDescription,
    StreamReader,
    describe_stream,
    latest_stream_arn,
)
from tavola.clock import Clock
from tavola.errors import TavolaError
from tavola.triggers.checkpoints import Position, TriggerCheckpoint, table_arn
from tavola.triggers.mapping import EventSourceMapping
from tavola.triggers.partition_queues import Backoff
from tavola.triggers.shard_consumer import ReadCounts, ShardConsumer

R = TypeVar("R")

_SERVICE_BACKOFF = Backoff(first_s=0.25, most_s=10.0)
_TRANSIENT = RetryPolicy()  # decides which errors of the service are worth another try, not when

_log = logging.getLogger("tavola.triggers")


@dataclass(frozen=True, slots=True)
class StreamSource:
    """What answers the calls, and whether to read a table's current stream or one stream by its ARN."""

    call: Callable[..., dict[str, object]]
    table: str | None
    stream_arn: str | None


class StreamConsumer:
    """The shards of one stream that a trigger consumes."""

    def __init__(
        self,
        source: StreamSource,
        mapping: EventSourceMapping,
        store: CheckpointStore,
        clock: Clock,
        *,
        backoff: Backoff,
        discovery_s: float,
    ) -> None:
        self.stream_arn = source.stream_arn
        self.consumers: dict[str, ShardConsumer] = {}
        self.gaps = 0  # places where records had left the stream before they were read
        self.dropped_windows = 0  # that a changed mapping cannot continue
        self._source = source
        self._mapping = mapping
        self._checkpoint = TriggerCheckpoint(store)
        self._clock = clock
        self._backoff = backoff
        self._reader = StreamReader(Position, clock, on_loss=self._on_loss, discovery_s=discovery_s)
        self._failed_discoveries = 0  # consecutive

    @property
    def stream(self) -> StreamDescription:
        """The stream as it was last described."""
        return self._reader.stream

    @property
    def has_ended(self) -> bool:
        """Whether the stream is disabled and handled to its end."""
        if not self._reader.started or self.stream.status != "DISABLED" or self.consumers:
            return False
        return all(self._reader.position(shard.id).finished for shard in self.stream.shards)

    @property
    def is_drained(self) -> bool:
        """Whether everything that the stream has now is handled."""
        if not self._reader.started or self._failed_discoveries or self._reader.discovery_due:
            return False
        return all(consumer.is_drained for consumer in self.consumers.values())

    def start(self) -> None:
        """Find the stream and the positions to continue from; a stream that is still being enabled has no shards yet."""
        if self._reader.started:
            return
        if self.stream_arn is None:
            assert self._source.table is not None, "a trigger has a table or a stream"
            self.stream_arn = self._run(latest_stream_arn(self._source.table))
        stream = self._run(describe_stream(self.stream_arn))
        positions = self._checkpoint.load(stream.arn)
        if positions:
            _log.info("continuing with %s", stream.arn)
            self._add_consumers(self._reader.resume(stream, positions))
        elif stream.shards:
            self._start_stream(stream)

    def start_or_wait(self, poll_s: float) -> bool:
        """Start if the service permits; return whether it has started. `wait_s` is the time until the next try."""
        try:
            self.start()
        except TavolaError as error:
            self._retry_later(error)
            return False
        self._failed_discoveries = 0
        if not self._reader.started:
            self._reader.discover_at_s = self._clock.now() + poll_s
        return self._reader.started

    def discover(self, poll_s: float) -> bool:
        """Look for new shards if that is due; return whether there is one to consume."""
        if not self._reader.discovery_due:
            return False
        if not self._reader.started:
            return self.start_or_wait(poll_s)
        known = set(self._reader.positions)
        try:
            opened = self._run(self._reader.discover())
        except TavolaError as error:
            self._retry_later(error)
            return False
        self._failed_discoveries = 0
        dropped = known - set(self._reader.positions)
        if dropped:
            self._checkpoint.save(self.stream.arn, dict.fromkeys(dropped))
        self._add_consumers(opened)
        return bool(opened)

    def read(self, consumer: ShardConsumer, poll_s: float) -> ReadCounts | None:
        """Read a shard; None: it is not due, or the service refused for now."""
        now_s = self._clock.now()
        if not consumer.wants_records(now_s):
            return None
        try:
            page = self._run(consumer.reader.read())
        except TavolaError as error:
            self._retry_later(error, consumer)
            return None
        counts = consumer.accept(page, now_s, poll_s)
        if consumer.failed_reads:
            _log.info("%s can be read again", consumer.shard_id)
            consumer.failed_reads = 0
        if counts.filtered:
            self.save_position(consumer)
        return counts

    def retire(self, consumer: ShardConsumer) -> bool:
        """Drop the consumer of a shard that is handled to its end; its children are next."""
        if not consumer.is_finished:
            return False
        self.save_position(consumer)
        del self.consumers[consumer.shard_id]
        self._reader.close_shard(consumer.shard_id)
        _log.info("%s is closed and fully handled", consumer.shard_id)
        return True

    def save_position(self, consumer: ShardConsumer) -> None:
        """Save a shard's position if it has changed."""
        position = consumer.position()
        if self._reader.positions.get(consumer.shard_id) != position:
            self._checkpoint.save(self.stream.arn, {consumer.shard_id: position})
            self._reader.positions[consumer.shard_id] = position

    def read_soon(self) -> None:
        """Make discovery and every shard's next read due now."""
        self._reader.discover_at_s = 0.0
        for consumer in self.consumers.values():
            consumer.read_soon()

    def wait_s(self) -> float:
        """Return the time until something may be due."""
        times = [self._reader.discover_at_s, *(consumer.next_at_s() for consumer in self.consumers.values())]
        return max(0.001, min(times) - self._clock.now())

    def _start_stream(self, stream: StreamDescription) -> None:
        """Apply the starting position, and save it so that restarts do not apply it again.

        If the stream may have been started before and its positions are lost, LATEST would skip what came since, so
        everything in the stream is handled again instead.
        """
        starting = self._mapping.starting_position
        latest = starting == "LATEST" and not self._checkpoint.is_damaged
        if starting == "LATEST" and not latest:
            starting = "TRIM_HORIZON"
            _log.warning(
                "the checkpoints are damaged, so the position in %s is unknown; starting at TRIM_HORIZON instead of "
                "LATEST so that no record is skipped; records may be handled a second time",
                stream.arn,
            )
        _log.info("starting %s at %s", stream.arn, starting)
        self._warn_of_unfinished(stream)
        positions = self._reader.starting_positions(stream, latest=latest)
        self._checkpoint.save(stream.arn, positions)
        self._add_consumers(self._reader.resume(stream, positions, latest=latest), open_now=latest)

    def _warn_of_unfinished(self, stream: StreamDescription) -> None:
        """Warn of an older stream of the same table that was started and is not handled to its end."""
        table = table_arn(stream.arn)
        for arn in self._checkpoint.streams():
            unfinished = any(not position.finished for position in self._checkpoint.load(arn).values())
            if arn != stream.arn and table_arn(arn) == table and unfinished:
                _log.warning(
                    "%s was started with these checkpoints and is not finished; to finish it, run a "
                    "trigger on that stream_arn with the same checkpoints",
                    arn,
                )

    def _add_consumers(self, readers: list[ShardReader], *, open_now: bool = False) -> None:
        for reader in readers:
            position = self._reader.position(reader.shard_id)
            consumer = ShardConsumer(reader, self.stream, self._mapping, self._backoff, position)
            self.consumers[reader.shard_id] = consumer
            self.dropped_windows += consumer.dropped_windows
            if open_now:
                try:
                    self._run(reader.open())
                except TavolaError as error:
                    self._retry_later(error, consumer)

    def _run(self, program: Program[R]) -> R:
        """Run a program without retries: a trigger decides itself when to read a shard again."""

        def perform(call: Call) -> dict[str, object]:
            return self._source.call(call.operation, call.request)

        return run_program(program, perform)

    def _on_loss(self, loss: LossKind, shard_id: str, last_read: str | None) -> None:
        self.gaps += 1
        _log_loss(loss, shard_id, last_read)

    def _retry_later(self, error: TavolaError, consumer: ShardConsumer | None = None) -> None:
        """Schedule another try after a transient error; raise any other."""
        if _TRANSIENT.wait_s("GetRecords", {}, error, 1) is None:
            raise error
        if consumer is None:
            self._failed_discoveries += 1
            failures = self._failed_discoveries
            self._reader.discover_at_s = self._clock.now() + _SERVICE_BACKOFF.wait_s(failures)
        else:
            consumer.failed_reads += 1
            failures = consumer.failed_reads
            consumer.read_at_s = self._clock.now() + _SERVICE_BACKOFF.wait_s(failures)
        if failures == 1:
            what = "the stream" if consumer is None else consumer.shard_id
            _log.warning("cannot read %s: %s; retrying", what, error)


def _log_loss(loss: LossKind, shard_id: str, last_read: str | None) -> None:
    if loss == "gone":
        _log.error("%s is no longer in the stream; its unread records are lost to this trigger", shard_id)
    else:
        _log.error(
            "%s: records after %s have left the stream and are lost to this trigger; continuing with the "
            "oldest record (TRIM_HORIZON)",
            shard_id,
            last_read or "its beginning",
        )
