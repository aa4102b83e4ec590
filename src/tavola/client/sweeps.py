"""Sweeps: going through a whole table, item by item, and putting right those that a judge wants put right.

The table is scanned in segments side by side, a small page at a time, so that a loop is never held for long. The
rewrites of a round go out a few at a time, each under the condition that its item is as it was read; who is
overtaken is judged again on what stands there now. When a round is through, the place is kept: work that is
killed goes on there, and what it does twice comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tavola.client.batches import SERVER_FAILED, answers
from tavola.client.checkpoints import CheckpointRefused, CheckpointStore
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep
from tavola.client.guarding import Guarded, Orphan
from tavola.client.progress import Progress, ProgressReporter
from tavola.client.writes import CONTENTION_MAX, fault_item
from tavola.errors import TavolaError
from tavola.model import ModelError, Table
from tavola.protocol.faults import (
    AccessDeniedFault,
    ConditionalCheckFailedFault,
    Fault,
    TransactionCanceledFault,
    ValidationFault,
)
from tavola.values import Item

PAGE_ITEMS = 250
SEGMENTS_MAX = 64
WRITES_AT_ONCE = 8

SCHEMA = "tavola.checkpoint/1"
OVERTAKEN = f"others wrote it {CONTENTION_MAX} times before its rewrite came; run it again when they are done"


class Mending(Protocol):
    """A write that puts something right, and holds only while all that it follows from is as it was read."""

    @property
    def key(self) -> Item:
        """The key of what is written."""
        ...

    @property
    def entity(self) -> str:
        """Which entity it is of, by its tag."""
        ...

    def call(self, context: Context) -> Call:
        """Return the request."""
        ...


class Judge(Protocol):
    """What decides about items."""

    def learn(self, items: Sequence[Item]) -> Program[None]:
        """Find out what must be known before the items of a round are looked at."""
        ...

    def look(self, item: Item) -> Mending | None:
        """Return the write that an item needs, None if it needs none; called once for each item."""
        ...

    def again(self, item: Item) -> Mending | None:
        """Return the same for an item that was looked at and has changed since."""
        ...

    def wrote(self, mending: Mending) -> None:
        """Hear that a write was done."""
        ...

    def failed(self, mending: Mending, reason: str) -> None:
        """Hear that DynamoDB takes a write in no case, such as one that makes the item too large."""
        ...

    def overtaken(self, mending: Mending) -> None:
        """Hear that others wrote an item each time before its own write came, so that it was given up."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How a sweep goes: in how many segments, how fast it may write, where its place is kept and who is told."""

    segments: int = 1
    # Write units, of the table and its indexes together; None: as they come. Reads are not held back.
    units_per_second: float | None = None
    checkpoints: CheckpointStore | None = None
    progress: ProgressReporter | None = None
    page_size: int = PAGE_ITEMS
    consistent: bool = False

    def check(self, place: str) -> None:
        """Refuse what is no pace."""
        if not 1 <= self.segments <= SEGMENTS_MAX:
            raise ModelError(place, f"segments={self.segments} is outside 1 to {SEGMENTS_MAX}")
        if self.units_per_second is not None and not self.units_per_second > 0:
            raise ModelError(place, f"units_per_second={self.units_per_second} is none; give more than 0")


@dataclass(slots=True)
class Standing:
    """Where each segment of a table's scan stands, and what was counted so far."""

    work: str  # what is being done, to which table, by which design
    starts: list[Item | None]  # where each segment goes on; None: from its beginning
    ended: list[bool]
    counts: dict[str, int]

    @classmethod
    def new(cls, work: str, segments: int) -> Standing:
        """Return the beginning."""
        return cls(work, [None] * segments, [False] * segments, {})

    @classmethod
    def read(cls, work: str, told: Mapping[str, Any]) -> Standing:
        """Return where a checkpoint stands; refuse one of other work."""
        if told.get("schema") != SCHEMA:
            raise CheckpointRefused("it is of another version, or none at all")
        if told.get("work") != work:
            raise CheckpointRefused(f"it was made by {told.get('work')}, and this is {work}")
        return cls(work, list(told["starts"]), list(told["ended"]), dict(told["counts"]))

    def document(self) -> dict[str, Any]:
        """Return the checkpoint as it is kept."""
        return {
            "schema": SCHEMA, "work": self.work, "starts": self.starts, "ended": self.ended, "counts": self.counts,
        }  # fmt: skip


class Sweep:
    """One walk through a table."""

    def __init__(self, context: Context, table: type[Table], judge: Judge, pace: Pace, work: str) -> None:
        pace.check(table.__name__)
        self._context = context
        self._name = context.name_of(table)
        self._judge = judge
        self._pace = pace
        self._bucket = None if pace.units_per_second is None else Bucket(context, pace.units_per_second)
        told = None if pace.checkpoints is None else pace.checkpoints.load()
        self.standing = Standing.new(work, pace.segments) if told is None else Standing.read(work, told)
        self.units = 0.0
        self.read_units = 0.0

    @property
    def resumed(self) -> bool:
        """Whether it goes on from a checkpoint."""
        return any(self.standing.ended) or any(start is not None for start in self.standing.starts)

    def run(self, counts: Callable[[], dict[str, int]]) -> Program[None]:
        """Go through the table; `counts` gives what the judge has counted, for the checkpoint and the callback."""
        total: int | None = None
        try:
            total = (yield Call("DescribeTable", {"TableName": self._name}))["Table"].get("ItemCount")
        except AccessDeniedFault:
            pass  # it is for the progress alone
        standing = self.standing
        while not all(standing.ended):
            open_ = [number for number, ended in enumerate(standing.ended) if not ended]
            pages = yield from answers([Call("Scan", self._scan(number)) for number in open_])
            items: list[Item] = []
            for page in pages:
                if isinstance(page, TavolaError):
                    raise page
                items += page["Items"]
                self.read_units += page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            yield from self._settle(items)
            for number, page in zip(open_, pages, strict=True):
                assert isinstance(page, dict)
                standing.starts[number] = page.get("LastEvaluatedKey")
                standing.ended[number] = "LastEvaluatedKey" not in page
            standing.counts = counts()
            if self._pace.checkpoints is not None:
                self._pace.checkpoints.save(standing.document())
            if self._pace.progress is not None:
                done = standing.counts["items"]
                told = None if total is None else max(total, done)
                self._pace.progress(Progress(done, told, written=standing.counts["written"]))
        if self._pace.checkpoints is not None:
            self._pace.checkpoints.clear()

    def _scan(self, number: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "TableName": self._name, "Limit": self._pace.page_size, "ReturnConsumedCapacity": "TOTAL",
        }  # fmt: skip
        standing = self.standing
        if len(standing.starts) > 1:
            request |= {"Segment": number, "TotalSegments": len(standing.starts)}
        if self._pace.consistent:
            request["ConsistentRead"] = True
        if standing.starts[number] is not None:
            request["ExclusiveStartKey"] = standing.starts[number]
        return request

    def _settle(self, items: Sequence[Item]) -> Program[None]:
        """Put right those items of a round that need it."""
        yield from self._judge.learn(items)
        flight: list[Mending] = []
        for item in items:
            mending = self._judge.look(item)
            if mending is not None:
                flight.append(mending)
                if len(flight) == WRITES_AT_ONCE:
                    yield from self._write(flight)
                    flight = []
        if flight:
            yield from self._write(flight)

    def _write(self, flight: list[Mending]) -> Program[None]:
        attempt = 0
        while flight:
            if self._bucket is not None:
                yield from self._bucket.wait()
            calls = [mending.call(self._context) for mending in flight]
            left: list[Mending] = []
            for mending, answer in zip(flight, (yield from answers(calls)), strict=True):
                units = 1.0
                if isinstance(answer, TavolaError):
                    left += self._refused(mending, answer)
                else:
                    self._judge.wrote(mending)
                    units = _consumed(answer)
                self.units += units
                if self._bucket is not None:
                    self._bucket.take(units)
            flight = left
            attempt += 1
            if attempt == CONTENTION_MAX:
                for mending in flight:
                    self._judge.overtaken(mending)
                return
            if flight:
                yield Sleep(self._context.retry_policy.pause_s(min(attempt, 6)))

    def _refused(self, mending: Mending, error: TavolaError) -> list[Mending]:
        """Return what is to be tried in the place of a write that was refused."""
        if isinstance(error, ConditionalCheckFailedFault):
            stands = fault_item(error)
        elif isinstance(error, TransactionCanceledFault) and isinstance(mending, Guarded | Orphan):
            verdict, told = mending.judged(error)
            if verdict == "again":
                return [told]
            if verdict == "failed":
                self._judge.failed(mending, told)
                return []
            stands = told
        elif isinstance(error, ValidationFault):
            self._judge.failed(mending, str(error))
            return []
        elif isinstance(error, Fault) and error.status >= SERVER_FAILED:
            return [mending]  # if it was done after all, its condition fails and the item is judged again
        else:
            raise error
        anew = None if stands is None else self._judge.again(stands)
        return [] if anew is None else [anew]


def _consumed(answer: Mapping[str, Any]) -> float:
    told = answer.get("ConsumedCapacity") or [{}]
    return sum(float(each.get("CapacityUnits", 1.0)) for each in (told if isinstance(told, list) else [told]))


class Bucket:
    """So many units a second, a second's worth at once at most; what was taken beyond is waited for."""

    def __init__(self, context: Context, units_per_second: float) -> None:
        self._clock = context.clock
        self._rate = units_per_second
        self._held = units_per_second
        self._at_s = context.clock.now()

    def take(self, units: float) -> None:
        """Note what was consumed."""
        self._held -= units

    def wait(self) -> Program[None]:
        """Wait until there is something in it."""
        now_s = self._clock.now()
        self._held = min(self._rate, self._held + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if self._held <= 0:
            wait_s = -self._held / self._rate
            yield Sleep(wait_s)
            self._held += wait_s * self._rate
            self._at_s = now_s + wait_s
