"""Subscriptions: a table's stream read as it grows, as changes of entities, from a place that is kept.

    for change in db.subscribe(Desk, checkpoint="desk.place"):
        …

Shards are read side by side, a child after its parent's end, so the changes of an item come in their order.
A change is done when the next one is asked for; what was not done when a program ended comes again. What
the stream has lost, because nobody read it for a day, is an error and no silence.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from tavola.client.checkpoints import CheckpointRefused, Checkpoints
from tavola.client.context import Context
from tavola.client.effects import Call, CallGroup, Program, Sleep
from tavola.client.stream_changes import AnyChange, changes_of
from tavola.client.stream_shards import (
    Loss,
    Records,
    Shard,
    ShardReading,
    Stream,
    StreamError,
    StreamGone,
    describe_stream,
    latest_stream_arn,
    readable,
    sequence_of,
)
from tavola.errors import TavolaError
from tavola.model import Table

R = TypeVar("R")

From: TypeAlias = Literal["now", "start"]

SCHEMA = "tavola.subscription/1"
POLL_S = 0.5
DISCOVERY_S = 10.0  # how often a stream is asked for new shards, besides when one has ended
SHARDS_AT_ONCE = 16
DRY_READS = 3  # readings of an open shard in a row that bring nothing: it has nothing more for now

_log = logging.getLogger("tavola.client")


class RecordsLost(StreamError):
    """Changes that the stream no longer has, because nobody read them for a day; or never had, because it was put back."""

    def __init__(self, table: str, shard: str, after: str | None, loss: Loss) -> None:
        self.table = table
        self.shard = shard
        self.after = after
        self.loss = loss
        told = "its beginning" if after is None else f"number {after}"
        what = f"what came after {told} in {shard} was not read for a day and may be lost"
        if loss == "ahead":
            what = f"{shard} does not go as far as {told}, so that what was read is not what the table went through: it was put back"
        super().__init__(
            f"{table}: {what}; bring what was made of the changes up to date from the table itself, and go on with "
            f'on_loss="go on"'
        )


OnLoss: TypeAlias = Literal["refuse", "go on"] | Callable[[RecordsLost], object]


@dataclass(frozen=True, slots=True)
class Place:
    """How far one shard is dealt with."""

    after: str | None = None  # everything up to this sequence number
    since_s: float | None = None  # begun then, and nothing is dealt with yet
    finished: bool = False

    def document(self) -> dict[str, Any]:
        """Return the place as it is kept."""
        told = {"after": self.after, "since": self.since_s, "finished": self.finished or None}
        return {name: value for name, value in told.items() if value is not None}

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Place:
        """Return a place that was kept."""
        return cls(told.get("after"), told.get("since"), bool(told.get("finished")))


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one shard that were read together, in order."""

    shard: str
    changes: tuple[AnyChange, ...]

    def __iter__(self) -> Iterator[AnyChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(slots=True)
class _Open:
    """A shard that is being read."""

    reading: ShardReading
    dry: int = 0  # readings in a row that brought nothing


@dataclass(frozen=True, slots=True)
class Manner:
    """How a subscription goes about it."""

    from_: From = "now"
    follow: bool = True  # wait for more at the end of the stream
    poll_s: float = POLL_S
    on_loss: OnLoss = "refuse"
    checkpoints: Checkpoints | None = None


@dataclass(slots=True)
class _Queued:
    shard: str
    records: tuple[dict[str, Any], ...]
    ended: bool


class Following:
    """A table's stream under way: what was read and not given yet, and how far each shard is dealt with."""

    def __init__(self, context: Context, table: type[Table] | str, manner: Manner) -> None:
        self.table = None if isinstance(table, str) else table
        self.closed = False
        self._name = table if isinstance(table, str) else context.name_of(table)
        self._clock = context.clock
        self._manner = manner
        self._stream: Stream | None = None
        self._places: dict[str, Place] = {}
        self._open: dict[str, _Open] = {}
        self._queue: deque[_Queued] = deque()
        self._given: tuple[str, str] | None = None  # the shard and number of what is in the consumer's hands
        self._ended: str | None = None  # a shard whose end comes after that
        self._discover_at_s = 0.0
        self._kept: dict[str, Any] | None = None

    def start(self) -> Program[None]:
        """Find the stream and where to go on; a second time does nothing."""
        if self._stream is not None:
            return
        told = None if self._manner.checkpoints is None else self._manner.checkpoints.load()
        if told is None:
            arn = yield from latest_stream_arn(self._name)
            yield from self._begin((yield from describe_stream(arn)), self._manner.from_)
        else:
            yield from self._resume(told)
        self.keep()

    def batch(self) -> Program[ChangeBatch | None]:
        """Return the next changes, None where there are no more: what was given before is dealt with."""
        self.done()
        while not self.closed:
            if not self._queue:
                yield from self._turn()
            while self._queue:
                found = self._queue[0]
                batch = ChangeBatch(found.shard, tuple(self._changes(found)))
                self._queue.popleft()
                if found.ended:
                    self._ended = found.shard
                if found.records:
                    self._given = (found.shard, sequence_of(found.records[-1]))
                if batch.changes:
                    return batch
                self.done()
            if self.over and not (yield from self._succeeded()):
                return None
            if not self._manner.follow:
                if self._drained():
                    return None
            elif all(each.dry for each in self._open.values()):
                yield Sleep(self._manner.poll_s)
        return None

    def hold(self, batch: ChangeBatch, number: int) -> None:
        """Let one change of a batch be in the consumer's hands: those before it are dealt with."""
        changes = batch.changes
        held = changes[number].sequence
        if number and changes[number - 1].sequence != held:  # one record may be two changes
            self._places[batch.shard] = Place(after=changes[number - 1].sequence)
        whole = number + 1 == len(changes) or changes[number + 1].sequence != held
        self._given = (batch.shard, held) if whole else None

    def done(self) -> None:
        """Keep that what was given is dealt with."""
        if self._given is not None:
            shard, after = self._given
            self._places[shard] = Place(after=after)
            self._given = None
        if self._ended is not None:
            ended, self._ended = self._ended, None
            self._finish(ended)
        self.keep()

    def keep(self) -> None:
        """Save how far each shard is dealt with, if that is new."""
        if self._manner.checkpoints is None or self._stream is None:
            return
        document = {
            "schema": SCHEMA,
            "table": self._name,
            "stream": self._stream.arn,
            "shards": {id_: place.document() for id_, place in sorted(self._places.items())},
        }
        if document != self._kept:
            self._manner.checkpoints.save(document)
            self._kept = document

    def _changes(self, found: _Queued) -> Iterator[AnyChange]:
        assert self._stream is not None, "records are of a stream"
        return changes_of(self.table, found.records, stream=self._stream.arn, shard=found.shard)

    def _begin(self, stream: Stream, from_: From) -> Program[None]:
        """Begin a stream that was never read; now means this moment."""
        self._stream = stream
        now_s = self._clock.now()
        self._places = {}
        for shard in stream.shards if from_ == "now" else ():
            self._places[shard.id] = Place(finished=True) if shard.closed else Place(since_s=now_s)
        self._take_up(latest=from_ == "now")
        if from_ == "now":
            for each in self._open.values():
                yield from each.reading.open()
        self._discover_at_s = now_s + DISCOVERY_S

    def _resume(self, told: Mapping[str, Any]) -> Program[None]:
        """Go on from a checkpoint, with the stream that it is of."""
        if told.get("schema") != SCHEMA or not isinstance(told.get("shards"), dict):
            raise CheckpointRefused("it is of another kind or version")
        if told.get("table") != self._name:
            raise CheckpointRefused(f"it is of the table {told.get('table')}, and this is {self._name}")
        places = {id_: Place.read(place) for id_, place in told["shards"].items()}
        try:
            stream = yield from describe_stream(told["stream"])
        except StreamGone:
            arn = yield from latest_stream_arn(self._name)
            if arn == told["stream"]:
                raise
            self._tell("gone", told["stream"], None)
            yield from self._begin((yield from describe_stream(arn)), "start")
            return
        self._stream = stream
        described = {shard.id for shard in stream.shards}
        for id_, place in places.items():
            if id_ in described:
                self._places[id_] = place
            elif not place.finished:
                self._tell("gone", id_, place.after)
        self._take_up(latest=False)
        self._discover_at_s = self._clock.now() + DISCOVERY_S

    def _turn(self) -> Program[None]:
        """Look for new shards where it is time, and read each once."""
        yield from self.start()
        if self._clock.now() >= self._discover_at_s:
            yield from self._discover()
        wanted = list(self._open.items())
        for start in range(0, len(wanted), SHARDS_AT_ONCE):
            some = wanted[start : start + SHARDS_AT_ONCE]
            answers = yield from side_by_side([each.reading.read() for _, each in some])
            for (shard, each), answer in zip(some, answers, strict=True):
                if not isinstance(answer, TavolaError):
                    self._took(shard, each, answer)
            errors = [answer for answer in answers if isinstance(answer, TavolaError)]
            if errors:
                raise errors[0]

    def _took(self, shard: str, each: _Open, found: Records) -> None:
        each.dry = 0 if found.records or found.passed else each.dry + 1
        if found.records or found.ended:
            self._queue.append(_Queued(shard, found.records, found.ended))
        if found.ended:
            del self._open[shard]
            self._discover_at_s = 0.0  # its children are next

    def _finish(self, shard: str) -> None:
        self._places[shard] = Place(after=self._places.get(shard, Place()).after, finished=True)

    def _discover(self) -> Program[None]:
        assert self._stream is not None, "a stream is found before its new shards are"
        self._stream = yield from describe_stream(self._stream.arn)
        self._discover_at_s = self._clock.now() + DISCOVERY_S
        described = {shard.id for shard in self._stream.shards}
        self._places = {
            id_: place
            for id_, place in self._places.items()
            if id_ in described or id_ in self._open or not place.finished
        }
        self._take_up(latest=False)

    def _take_up(self, *, latest: bool) -> None:
        """Open the shards whose turn has come: all of their parent's records are read."""
        assert self._stream is not None, "shards are of a stream"
        read = {id_ for id_, place in self._places.items() if place.finished}
        read |= {queued.shard for queued in self._queue if queued.ended}
        if self._ended is not None:
            read.add(self._ended)
        for shard in readable(self._stream.shards, read):
            if shard.id not in self._open:
                self._open[shard.id] = _Open(self._reading(shard, latest=latest))

    def _reading(self, shard: Shard, *, latest: bool) -> ShardReading:
        assert self._stream is not None, "shards are of a stream"
        place = self._places.get(shard.id, Place())
        return ShardReading(
            self._stream.arn,
            shard.id,
            after=place.after,
            since_s=place.since_s,
            latest=latest,
            tell=self._tell,
        )

    @property
    def over(self) -> bool:
        """Whether the stream is disabled and read to its end."""
        stream = self._stream
        if stream is None or stream.status != "DISABLED" or self._open or self._queue:
            return False
        return self._discover_at_s > self._clock.now()

    def _succeeded(self) -> Program[bool]:
        """Go over to the stream that the table has now, if it is another, from its start."""
        assert self._stream is not None, "what is over was there"
        arn = yield from latest_stream_arn(self._name)
        if arn == self._stream.arn:
            return False
        yield from self._begin((yield from describe_stream(arn)), "start")
        self.keep()
        return True

    def _drained(self) -> bool:
        """Return whether everything that the stream has now was read."""
        if self._queue or self._clock.now() >= self._discover_at_s:
            return False
        return all(each.dry >= DRY_READS for each in self._open.values())

    def _tell(self, loss: Loss, shard: str, after: str | None) -> None:
        lost = RecordsLost(self._name, shard, after, loss)
        if self._manner.on_loss == "refuse":
            raise lost
        if callable(self._manner.on_loss):
            self._manner.on_loss(lost)
            return
        _log.warning("%s: what came after %s in %s may be lost", self._name, after or "its beginning", shard)


def side_by_side(several: Sequence[Program[R]]) -> Program[list[R | TavolaError]]:
    """Do several steps at the same time; return what each came to, or its error."""
    outcomes: list[Any] = [None] * len(several)
    asked: dict[int, Call] = {}

    def go_on(number: int, resume: Callable[[], Any]) -> None:
        try:
            ask = resume()
            assert isinstance(ask, Call), "steps side by side make calls and do not wait"
            asked[number] = ask
        except StopIteration as stopped:
            outcomes[number] = stopped.value
        except TavolaError as error:
            outcomes[number] = error

    for number, steps in enumerate(several):
        go_on(number, steps.__next__)
    while asked:
        pending, asked = asked, {}
        answers = yield CallGroup(tuple(pending.values()))
        for (number, _), answer in zip(pending.items(), answers, strict=True):
            steps = several[number]
            resume = steps.throw if isinstance(answer, TavolaError) else steps.send
            go_on(number, lambda resume=resume, answer=answer: resume(answer))  # type: ignore[misc]  # each its own
    return outcomes


class Subscription:
    """The changes of a table, one after another; see `Db.subscribe`."""

    def __init__(self, run: Callable[[Program[Any]], Any], following: Following) -> None:
        self._run = run
        self._following = following

    def __iter__(self) -> Iterator[AnyChange]:
        try:
            while (batch := self.take()) is not None:
                for number, change in enumerate(batch.changes):
                    self._following.hold(batch, number)
                    yield change
        finally:
            self._following.keep()

    def take(self) -> ChangeBatch | None:
        """Return the next changes of some shard, up to a thousand; None: there are no more.

        Those that were returned before are dealt with. It waits until there is one, unless `follow` is false.
        """
        found: ChangeBatch | None = self._run(self._following.batch())
        return found

    def done(self) -> None:
        """Keep that everything given so far is dealt with; asking for more does it too."""
        self._following.done()

    @property
    def over(self) -> bool:
        """Whether the stream was switched off and read to its end: nothing comes before the table has another."""
        return self._following.over

    def close(self) -> None:
        """End it, from any thread: whoever waits for a change gets no more."""
        self._following.closed = True

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.done()
        self.close()


class AsyncSubscription:
    """The same for a loop: `async for change in await db.subscribe(Desk)`."""

    def __init__(self, run: Callable[[Program[Any]], Awaitable[Any]], following: Following) -> None:
        self._run = run
        self._following = following

    async def __aiter__(self) -> AsyncIterator[AnyChange]:
        try:
            while (batch := await self.take()) is not None:
                for number, change in enumerate(batch.changes):
                    self._following.hold(batch, number)
                    yield change
        finally:
            self._following.keep()

    async def take(self) -> ChangeBatch | None:
        """Return the next changes of some shard, as `Subscription.take` does."""
        found: ChangeBatch | None = await self._run(self._following.batch())
        return found

    def done(self) -> None:
        """Keep that everything given so far is dealt with; asking for more does it too."""
        self._following.done()

    @property
    def over(self) -> bool:
        """Whether the stream was switched off and read to its end: nothing comes before the table has another."""
        return self._following.over

    def close(self) -> None:
        """End it: whoever waits for a change gets no more."""
        self._following.closed = True

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.done()
        self.close()
