"""Follower: a stream with its shards as they come and go, and how far each is, kept.

Finds the stream, takes its starting position once for all restarts, takes up children when their parents
are done, and saves a position when it changes. What the service puts off is asked again; what it refuses is
raised.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass

from tavola.clock import Clock
from tavola.errors import TavolaError
from tavola.triggers.checkpoints import Checkpoints, Position, table_of
from tavola.triggers.consumer import Reading, ShardConsumer
from tavola.triggers.lanes import Backoff
from tavola.triggers.mapping import Mapping
from tavola.triggers.patience import is_passing
from tavola.triggers.shards import Call, ShardReader, Stream, describe_stream, latest_stream_arn, readable

_SERVICE_BACKOFF = Backoff(first_s=0.25, most_s=10.0)

_log = logging.getLogger("tavola.triggers")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records come from: the calls, and a table's present stream or one stream by its ARN."""

    call: Call
    table: str | None
    stream_arn: str | None


class Follower:
    """The shards of one stream that are being read."""

    def __init__(
        self,
        source: Source,
        mapping: Mapping,
        checkpoints: Checkpoints,
        clock: Clock,
        *,
        backoff: Backoff,
        discovery_s: float,
    ) -> None:
        self.stream_arn = source.stream_arn
        self.discover_at_s = 0.0
        self.consumers: dict[str, ShardConsumer] = {}
        self._call = source.call
        self._table = source.table
        self._mapping = mapping
        self._checkpoints = checkpoints
        self._clock = clock
        self._backoff = backoff
        self._discovery_s = discovery_s
        self._stream: Stream | None = None
        self._positions: dict[str, Position] = {}
        self._latest: set[str] = set()  # shards that this process begins at LATEST
        self._misses = 0

    @property
    def stream(self) -> Stream:
        """The stream as it was last described."""
        assert self._stream is not None, "nothing is read before the stream is found"
        return self._stream

    @property
    def ended(self) -> bool:
        """Whether the stream is disabled and everything in it is dealt with."""
        if self._stream is None or self._stream.status != "DISABLED" or self.consumers:
            return False
        return all(self._position(shard.id).finished for shard in self._stream.shards)

    @property
    def drained(self) -> bool:
        """Whether everything that the stream has now is dealt with."""
        if self._stream is None or self._misses or self._clock.now() >= self.discover_at_s:
            return False
        return all(consumer.dry for consumer in self.consumers.values())

    def start(self) -> None:
        """Find the stream and where to go on; a stream that is being enabled has not begun yet."""
        if self._stream is not None:
            return
        if self.stream_arn is None:
            assert self._table is not None, "a trigger has a table or a stream"
            self.stream_arn = latest_stream_arn(self._call, self._table)
        stream = describe_stream(self._call, self.stream_arn)
        self._positions = self._checkpoints.load(stream.arn)
        if self._positions:
            _log.info("goes on with %s", stream.arn)
        elif stream.shards:
            self._begin(stream)
        else:
            return
        self._stream = stream
        self._take_up()
        self.discover_at_s = self._clock.now() + self._discovery_s

    def start_or_wait(self, poll_s: float) -> bool:
        """Start if the service lets it; tell whether it has, `discover_at_s` is when to try again."""
        try:
            self.start()
        except TavolaError as error:
            self._put_off(error)
            return False
        self._misses = 0
        if self._stream is None:
            self.discover_at_s = self._clock.now() + poll_s
        return self._stream is not None

    def discover(self, poll_s: float) -> bool:
        """Ask for the stream's shards where it is time; tell whether there is a new one to read."""
        if self._clock.now() < self.discover_at_s:
            return False
        if self._stream is None:
            return self.start_or_wait(poll_s)
        try:
            self._stream = describe_stream(self._call, self._stream.arn)
        except TavolaError as error:
            self._put_off(error)
            return False
        self._misses = 0
        self.discover_at_s = self._clock.now() + self._discovery_s
        self._forget(self._stream)
        return self._take_up()

    def read(self, consumer: ShardConsumer, poll_s: float) -> Reading | None:
        """Read a shard if it is time; None: it is not, or the service put it off."""
        now_s = self._clock.now()
        if not consumer.wants(now_s):
            return None
        try:
            reading = consumer.read(now_s, poll_s)
        except TavolaError as error:
            self._put_off(error, consumer)
            return None
        if consumer.misses:
            _log.info("%s can be read again", consumer.shard_id)
            consumer.misses = 0
        if reading.filtered:
            self.keep(consumer)
        return reading

    def retire(self, consumer: ShardConsumer) -> bool:
        """Let go of a shard that is done to its end; its children are next."""
        if not consumer.finished:
            return False
        self.keep(consumer)
        del self.consumers[consumer.shard_id]
        self.discover_at_s = 0.0
        _log.info("%s is closed, and handled to its end", consumer.shard_id)
        return True

    def keep(self, consumer: ShardConsumer) -> None:
        """Save how far a shard is, if that is new."""
        position = consumer.position()
        if self._positions.get(consumer.shard_id) != position:
            self._save({consumer.shard_id: position})
            self._positions[consumer.shard_id] = position

    def look_again(self) -> None:
        """Read every shard at once, and the list of them."""
        self.discover_at_s = 0.0
        for consumer in self.consumers.values():
            consumer.look_again()

    def wait_s(self) -> float:
        """Return how long there is nothing to do by time alone."""
        times = [self.discover_at_s, *(consumer.next_at_s() for consumer in self.consumers.values())]
        return max(0.001, min(times) - self._clock.now())

    def _begin(self, stream: Stream) -> None:
        """Take the starting position, once for all restarts to come.

        Where it may have been taken before and is lost, LATEST would pass over what came since: so all there is
        comes again instead.
        """
        starting = self._mapping.starting_position
        latest = starting == "LATEST" and not self._checkpoints.damaged
        if starting == "LATEST" and not latest:
            starting = "TRIM_HORIZON"
            _log.warning(
                "the checkpoints are damaged and do not tell how far %s was handled; it is begun at TRIM_HORIZON, "
                "not at LATEST, so that nothing is passed over: records may be handled a second time",
                stream.arn,
            )
        now_s = self._clock.now()
        positions: dict[str, Position] = {}
        for shard in stream.shards:
            if latest and shard.closed:
                positions[shard.id] = Position(finished=True)
            else:
                positions[shard.id] = Position(since_s=now_s if latest else None)
        _log.info("begins with %s at %s", stream.arn, starting)
        self._tell_of_others(stream)
        self._save(positions)
        self._positions = positions
        if latest:
            self._latest = {id_ for id_, position in positions.items() if not position.finished}

    def _tell_of_others(self, stream: Stream) -> None:
        """Warn of a stream of the same table that was begun and is not finished: nobody reads it now."""
        table = table_of(stream.arn)
        for arn in self._checkpoints.streams():
            unfinished = any(not position.finished for position in self._checkpoints.load(arn).values())
            if arn != stream.arn and table_of(arn) == table and unfinished:
                _log.warning(
                    "%s was begun with these checkpoints and is not handled to its end; to finish it, run a "
                    "trigger on that stream_arn with the same checkpoints",
                    arn,
                )

    def _take_up(self) -> bool:
        """Take up the shards whose turn has come; tell whether there is one."""
        stream = self.stream
        finished = {id_ for id_, position in self._positions.items() if position.finished}
        taken = False
        for shard in readable(stream.shards, finished):
            if shard.id in self.consumers:
                continue
            position = self._position(shard.id)
            latest = shard.id in self._latest
            reader = ShardReader(self._call, stream.arn, shard.id, position, latest=latest)
            consumer = ShardConsumer(reader, stream, self._mapping, self._backoff, position)
            if latest:
                self._latest.remove(shard.id)
                try:
                    reader.open()  # now, and not when it is first read
                except TavolaError as error:
                    self._put_off(error, consumer)
            self.consumers[shard.id] = consumer
            taken = True
        return taken

    def _forget(self, stream: Stream) -> None:
        """Let go of the positions of shards that the stream has no more."""
        described = {shard.id for shard in stream.shards}
        gone = [id_ for id_ in self._positions if id_ not in described and id_ not in self.consumers]
        if gone:
            self._save(dict.fromkeys(gone))
            for id_ in gone:
                del self._positions[id_]

    def _save(self, positions: AnyMapping[str, Position | None]) -> None:
        assert self.stream_arn is not None, "positions are of a stream"
        self._checkpoints.save(self.stream_arn, positions)

    def _position(self, shard_id: str) -> Position:
        return self._positions.get(shard_id, Position())

    def _put_off(self, error: TavolaError, consumer: ShardConsumer | None = None) -> None:
        """Try again later what may pass; raise what will not."""
        if not is_passing(error):
            raise error
        if consumer is None:
            self._misses += 1
            misses = self._misses
            self.discover_at_s = self._clock.now() + _SERVICE_BACKOFF.wait_s(misses)
        else:
            consumer.misses += 1
            misses = consumer.misses
            consumer.read_again_at_s = self._clock.now() + _SERVICE_BACKOFF.wait_s(misses)
        if misses == 1:
            what = "the stream" if consumer is None else consumer.shard_id
            _log.warning("%s cannot be read now: %s; it is tried again until it can", what, error)
