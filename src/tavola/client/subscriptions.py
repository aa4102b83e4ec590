"""Subscriptions: read a table's stream as changes of entities, and continue after a restart.

    for change in db.subscribe(Desk, checkpoint="desk.place"):
        …

A change counts as processed when the next one is requested. The checkpoint follows processing and never runs
ahead, so a program that is restarted sees unprocessed changes again: each change is delivered at least once. Shards are read
concurrently, a child after the end of its parent, so the changes of one item arrive in order. If the stream has
dropped changes because they were not read within a day, the subscription raises `RecordsLost` instead of skipping them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from tavola.client.checkpoints import CheckpointRefused, CheckpointStore
from tavola.client.context import Context
from tavola.client.effects import Call, CallGroup, Program, Sleep
from tavola.client.stream_changes import AnyChange, changes_of
from tavola.client.streams import (
    LossKind,
    RecordPage,
    ShardPosition,
    StreamDescription,
    StreamError,
    StreamGone,
    StreamReader,
    describe_stream,
    latest_stream_arn,
    sequence_number,
)
from tavola.errors import TavolaError
from tavola.model import Table

R = TypeVar("R")

From: TypeAlias = Literal["now", "start"]

SCHEMA = "tavola.subscription/1"
POLL_S = 0.5
SHARDS_AT_ONCE = 16  # GetRecords calls in flight
EMPTY_READS = 3  # consecutive empty reads after which an open shard has nothing more for now

_log = logging.getLogger("tavola.client")


class RecordsLost(StreamError):
    """Changes that were not read within a day, so the stream has dropped them, or the table was restored."""

    def __init__(self, table: str, shard: str, after: str | None, loss: LossKind) -> None:
        self.table = table
        self.shard = shard
        self.after = after
        self.loss = loss
        start = "its beginning" if after is None else f"sequence number {after}"
        what = f"changes after {start} in {shard} were not read within a day and may be lost"
        if loss == "ahead":
            what = f"{shard} ends before {start}, so the table was restored to an earlier state since"
        super().__init__(
            f"{table}: {what}; rebuild what you derived from the changes by reading the table, then continue with "
            f'on_loss="continue"'
        )


OnLoss: TypeAlias = Literal["raise", "continue"] | Callable[[RecordsLost], object]


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one shard that were read together, in order."""

    shard: str
    changes: tuple[AnyChange, ...]

    def __iter__(self) -> Iterator[AnyChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """Where a subscription starts, whether it waits at the end, and where its checkpoint is stored."""

    from_: From = "now"
    follow: bool = True  # wait for more at the end of the stream
    poll_s: float = POLL_S
    on_loss: OnLoss = "raise"
    checkpoints: CheckpointStore | None = None


@dataclass(frozen=True, slots=True)
class _QueuedPage:
    shard: str
    page: RecordPage


class ChangeFeed:
    """The state of a subscription: pages read but not delivered, and which delivered changes are processed.

    Written as effects programs; `Subscription` and `AsyncSubscription` run them.
    """

    def __init__(self, context: Context, table: type[Table] | str, options: SubscriptionOptions) -> None:
        self.table = None if isinstance(table, str) else table
        self.closed = False
        self._name = table if isinstance(table, str) else context.name_of(table)
        self._options = options
        self._reader = StreamReader(ShardPosition, context.clock, on_loss=self._report_loss)
        self._empty_reads: dict[str, int] = {}  # consecutive, by shard
        self._queue: deque[_QueuedPage] = deque()
        self._delivered: tuple[str, str] | None = None  # shard and sequence number that the consumer works on
        self._ended_shard: str | None = None  # finished once what is delivered is processed
        self._saved: dict[str, Any] | None = None

    def start(self) -> Program[None]:
        """Find the stream and the position to continue from; does nothing the second time."""
        if self._reader.started:
            return
        checkpoints = self._options.checkpoints
        checkpoint = None if checkpoints is None else checkpoints.load()
        if checkpoint is None:
            arn = yield from latest_stream_arn(self._name)
            yield from self._start_stream((yield from describe_stream(arn)), self._options.from_)
        else:
            yield from self._resume(checkpoint)
        self.save_checkpoint()

    def next_batch(self) -> Program[ChangeBatch | None]:
        """Return the next changes, None at the end; marks those returned before as processed."""
        self.acknowledge()
        while not self.closed:
            if not self._queue:
                yield from self._read_shards()
            while self._queue:
                queued = self._queue[0]
                batch = ChangeBatch(queued.shard, tuple(self._decode(queued)))
                self._queue.popleft()
                if queued.page.ended:
                    self._ended_shard = queued.shard
                if queued.page.records:
                    self._delivered = (queued.shard, sequence_number(queued.page.records[-1]))
                if batch.changes:
                    return batch
                self.acknowledge()
            if self.ended and not (yield from self._switch_to_new_stream()):
                return None
            if not self._options.follow:
                if self._is_drained():
                    return None
            elif all(self._empty_reads.get(shard) for shard in self._reader.open):
                yield Sleep(self._options.poll_s)
        return None

    def deliver(self, batch: ChangeBatch, number: int) -> None:
        """Note that the consumer works on one change of a batch: those before it are processed."""
        changes = batch.changes
        sequence = changes[number].sequence
        if number and changes[number - 1].sequence != sequence:  # one record may be two changes
            self._reader.positions[batch.shard] = ShardPosition(after=changes[number - 1].sequence)
        last_of_record = number + 1 == len(changes) or changes[number + 1].sequence != sequence
        self._delivered = (batch.shard, sequence) if last_of_record else None

    def acknowledge(self) -> None:
        """Mark everything delivered as processed, and save the checkpoint."""
        positions = self._reader.positions
        if self._delivered is not None:
            shard, after = self._delivered
            positions[shard] = ShardPosition(after=after)
            self._delivered = None
        if self._ended_shard is not None:
            shard, self._ended_shard = self._ended_shard, None
            positions[shard] = ShardPosition(after=self._reader.position(shard).after, finished=True)
        self.save_checkpoint()

    def save_checkpoint(self) -> None:
        """Save every shard's position, if one has changed."""
        checkpoints = self._options.checkpoints
        if checkpoints is None or not self._reader.started:
            return
        positions = sorted(self._reader.positions.items())
        checkpoint = {
            "schema": SCHEMA,
            "table": self._name,
            "stream": self._reader.stream.arn,
            "shards": {id_: msgspec.to_builtins(position) for id_, position in positions},
        }
        if checkpoint != self._saved:
            checkpoints.save(checkpoint)
            self._saved = checkpoint

    @property
    def ended(self) -> bool:
        """Whether the stream is disabled and read to its end."""
        reader = self._reader
        if not reader.started or reader.stream.status != "DISABLED" or reader.open or self._queue:
            return False
        return not reader.discovery_due

    def _decode(self, queued: _QueuedPage) -> Iterator[AnyChange]:
        return changes_of(self.table, queued.page.records, stream=self._reader.stream.arn, shard=queued.shard)

    def _start_stream(self, stream: StreamDescription, from_: From) -> Program[None]:
        latest = from_ == "now"
        positions = self._reader.starting_positions(stream, latest=True) if latest else {}
        for shard in self._reader.resume(stream, positions, latest=latest):
            if latest:
                yield from shard.open()

    def _resume(self, checkpoint: Mapping[str, Any]) -> Program[None]:
        """Continue from a checkpoint, in the stream that it names."""
        if checkpoint.get("schema") != SCHEMA or not isinstance(checkpoint.get("shards"), dict):
            raise CheckpointRefused("it has another kind or version")
        if checkpoint.get("table") != self._name:
            raise CheckpointRefused(
                f"it belongs to the table {checkpoint.get('table')}, and this is {self._name}"
            )
        positions = msgspec.convert(checkpoint["shards"], dict[str, ShardPosition])
        try:
            stream = yield from describe_stream(checkpoint["stream"])
        except StreamGone:
            arn = yield from latest_stream_arn(self._name)
            if arn == checkpoint["stream"]:
                raise
            self._report_loss("gone", checkpoint["stream"], None)
            yield from self._start_stream((yield from describe_stream(arn)), "start")
            return
        described = {shard.id for shard in stream.shards}
        for id_, position in positions.items():
            if id_ not in described and not position.finished:
                self._report_loss("gone", id_, position.after)
        self._reader.resume(stream, {id_: positions[id_] for id_ in positions if id_ in described})

    def _read_shards(self) -> Program[None]:
        """Discover new shards if that is due, then read each open shard once."""
        yield from self.start()
        if self._reader.discovery_due:
            yield from self._reader.discover()
        readers = list(self._reader.open.values())
        for start in range(0, len(readers), SHARDS_AT_ONCE):
            group = readers[start : start + SHARDS_AT_ONCE]
            pages = yield from run_concurrently([reader.read() for reader in group])
            for reader, page in zip(group, pages, strict=True):
                if not isinstance(page, TavolaError):
                    self._enqueue(reader.shard_id, page)
            for page in pages:
                if isinstance(page, TavolaError):
                    raise page

    def _enqueue(self, shard: str, page: RecordPage) -> None:
        empty = not (page.records or page.skipped)
        self._empty_reads[shard] = self._empty_reads.get(shard, 0) + 1 if empty else 0
        if page.records or page.ended:
            self._queue.append(_QueuedPage(shard, page))
        if page.ended:
            self._reader.close_shard(shard)
            del self._empty_reads[shard]

    def _switch_to_new_stream(self) -> Program[bool]:
        """Continue at the start of the table's current stream; False: the table has no newer one."""
        arn = yield from latest_stream_arn(self._name)
        if arn == self._reader.stream.arn:
            return False
        yield from self._start_stream((yield from describe_stream(arn)), "start")
        self.save_checkpoint()
        return True

    def _is_drained(self) -> bool:
        """Return whether everything that the stream has now is read."""
        if self._queue or self._reader.discovery_due:
            return False
        return all(self._empty_reads.get(shard, 0) >= EMPTY_READS for shard in self._reader.open)

    def _report_loss(self, loss: LossKind, shard: str, after: str | None) -> None:
        lost = RecordsLost(self._name, shard, after, loss)
        if self._options.on_loss == "raise":
            raise lost
        if callable(self._options.on_loss):
            self._options.on_loss(lost)
            return
        _log.warning("%s: changes after %s in %s may be lost", self._name, after or "the beginning", shard)


def run_concurrently(programs: Sequence[Program[R]]) -> Program[list[R | TavolaError]]:
    """Run programs that only make calls, their calls together; return each one's result or error."""
    results: list[Any] = [None] * len(programs)
    calls: dict[int, Call] = {}

    def advance(number: int, resume: Callable[[], Any]) -> None:
        try:
            effect = resume()
            assert isinstance(effect, Call), "concurrent programs make calls and do not wait"
            calls[number] = effect
        except StopIteration as stopped:
            results[number] = stopped.value
        except TavolaError as error:
            results[number] = error

    for number, program in enumerate(programs):
        advance(number, program.__next__)
    while calls:
        pending, calls = calls, {}
        responses = yield CallGroup(tuple(pending.values()))
        for number, response in zip(pending, responses, strict=True):
            program = programs[number]
            resume = program.throw if isinstance(response, TavolaError) else program.send
            advance(number, lambda resume=resume, response=response: resume(response))  # type: ignore[misc]  # bound now
    return results


class _BaseSubscription:
    """What `Subscription` and `AsyncSubscription` share."""

    def __init__(self, run: Callable[[Program[Any]], Any], feed: ChangeFeed) -> None:
        self._run = run
        self._feed = feed

    def acknowledge(self) -> None:
        """Mark everything returned so far as processed, as requesting more does."""
        self._feed.acknowledge()

    @property
    def ended(self) -> bool:
        """Whether the stream is disabled and read to its end; nothing follows until the table has a new stream."""
        return self._feed.ended

    def close(self) -> None:
        """Stop, from any thread: a waiting `take` returns None."""
        self._feed.closed = True

    def _leave_block(self, error: type[BaseException] | None) -> None:
        if error is None:
            self.acknowledge()
        self.close()


class Subscription(_BaseSubscription):
    """The changes of a table, in the order of its stream; see `Connection.subscribe`."""

    def __iter__(self) -> Iterator[AnyChange]:
        try:
            while (batch := self.take()) is not None:
                for number, change in enumerate(batch.changes):
                    self._feed.deliver(batch, number)
                    yield change
        finally:
            self._feed.save_checkpoint()

    def take(self) -> ChangeBatch | None:
        """Return the next changes of one shard, up to a thousand, or None at the end of the stream.

        Marks the batch before as processed. Waits until there is a change, unless `follow` is false.
        """
        batch: ChangeBatch | None = self._run(self._feed.next_batch())
        return batch

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave_block(kind)


class AsyncSubscription(_BaseSubscription):
    """A `Subscription` for asyncio: `async for change in await db.subscribe(Desk)`."""

    async def __aiter__(self) -> AsyncIterator[AnyChange]:
        try:
            while (batch := await self.take()) is not None:
                for number, change in enumerate(batch.changes):
                    self._feed.deliver(batch, number)
                    yield change
        finally:
            self._feed.save_checkpoint()

    async def take(self) -> ChangeBatch | None:
        """Return the next changes of one shard, as `Subscription.take` does."""
        batch: ChangeBatch | None = await self._run(self._feed.next_batch())
        return batch

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave_block(kind)
