"""Sweeps: read a whole table, item by item, and write those items that an inspector wants repaired.

The table is scanned in concurrent segments, one small page at a time, so that an event loop is never blocked for long:

    scan one page of each segment ──► inspect the items ──► write the repairs, 8 at a time ──► save a checkpoint ──► repeat

Each repair is conditional on its item being as it was read. If another writer was faster, the item is inspected again as it is
stored now. The checkpoint is saved after each round: an interrupted sweep continues there, and repeating part of a round does
no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tavola.client.batches import SERVER_ERROR_STATUS, Progress, ProgressReporter
from tavola.client.checkpoints import CheckpointRefused, CheckpointStore
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep, call_concurrently, responses_to
from tavola.client.guard_checks import GuardedRewrite, OrphanedGuard
from tavola.client.requests import fault_item
from tavola.client.retries import CONTENTION_MAX
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
CONCURRENT_WRITES_MAX = 8
REPORTED_MAX = 1000  # problems of each kind that a report lists; all are counted

SCHEMA = "tavola.checkpoint/1"
CONTENDED = f"other writers changed it during all {CONTENTION_MAX} attempts; run the operation again later"


class Repair(Protocol):
    """A write that corrects an item, conditional on everything that it was computed from."""

    @property
    def key(self) -> Item:
        """The key of the item."""
        ...

    @property
    def entity(self) -> str:
        """The name of the item's entity."""
        ...

    def call(self, context: Context) -> Call:
        """Return the request."""
        ...


@dataclass(slots=True)
class ItemInspector:
    """Decides which items of a table need a repair, and counts what it finds; subclasses define the rules."""

    context: Context
    table: type[Table]
    counts: dict[str, int] = field(default_factory=dict)

    def load_guards(self, items: Sequence[Item]) -> Program[None]:
        """Read the guards of unique values that are needed to inspect the items of a round."""
        raise NotImplementedError

    def inspect(self, item: Item) -> Repair | None:
        """Return the repair that an item needs, if any; called once for each item."""
        raise NotImplementedError

    def inspect_again(self, item: Item) -> Repair | None:
        """Return the repair of an item that another writer changed in the meantime."""
        raise NotImplementedError

    def report_written(self, repair: Repair) -> None:
        """Count an item that was repaired."""
        self.count("written")

    def report_failed(self, repair: Repair, reason: str) -> None:
        """Record a repair that DynamoDB rejects, such as one that makes the item too large."""
        raise NotImplementedError

    def report_contended(self, repair: Repair) -> None:
        """Record a repair that was given up because other writers were faster each time."""
        raise NotImplementedError

    def counters(self) -> dict[str, int]:
        """Return all counts, for a checkpoint."""
        return {"items": 0, "written": 0, **self.counts}

    def count(self, kind: str, number: int = 1) -> None:
        """Add to one of the counts."""
        self.counts[kind] = self.counts.get(kind, 0) + number

    def note(self, kind: str, listed: list[Any], problem: Any) -> None:
        """Count a problem, and list it if there are not too many."""
        self.count(kind)
        if len(listed) < REPORTED_MAX:
            listed.append(problem)


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Segments and write rate of a sweep, and where its progress is stored and reported."""

    segments: int = 1
    # Write units of the table and its indexes together; None: no limit. Reads are not limited.
    units_per_second: float | None = None
    checkpoints: CheckpointStore | None = None
    progress: ProgressReporter | None = None
    page_size: int = PAGE_ITEMS
    consistent: bool = False

    def check(self, place: str) -> None:
        """Refuse values out of range."""
        if not 1 <= self.segments <= SEGMENTS_MAX:
            raise ModelError(place, f"segments={self.segments} is outside 1 to {SEGMENTS_MAX}")
        if self.units_per_second is not None and not self.units_per_second > 0:
            raise ModelError(place, f"units_per_second={self.units_per_second} is not valid; use more than 0")


@dataclass(slots=True)
class SweepPosition:
    """The position of each segment of a sweep, and the counts so far."""

    work: str  # the operation, the table and the design
    starts: list[Item | None]  # ExclusiveStartKey of each segment; None: its beginning
    ended: list[bool]
    counts: dict[str, int]

    @classmethod
    def parse(cls, work: str, checkpoint: Mapping[str, Any]) -> SweepPosition:
        """Return the position in a checkpoint; refuse one of another operation."""
        if checkpoint.get("schema") != SCHEMA:
            raise CheckpointRefused("it has another version, or is not a checkpoint")
        if checkpoint.get("work") != work:
            raise CheckpointRefused(f"it belongs to {checkpoint.get('work')}, and this is {work}")
        return cls(work, list(checkpoint["starts"]), list(checkpoint["ended"]), dict(checkpoint["counts"]))

    def document(self) -> dict[str, Any]:
        """Return the checkpoint as JSON data."""
        return {
            "schema": SCHEMA, "work": self.work, "starts": self.starts, "ended": self.ended, "counts": self.counts,
        }  # fmt: skip


class Sweep:
    """One pass over a table; with `dry_run`, items are inspected and nothing is written."""

    def __init__(
        self, inspector: ItemInspector, options: SweepOptions, work: str, *, dry_run: bool = False
    ) -> None:
        options.check(inspector.table.__name__)
        self._context = context = inspector.context
        self._name = context.name_of(inspector.table)
        self._inspector = inspector
        self._options = options
        self._dry_run = dry_run
        rate = options.units_per_second
        self._bucket = None if rate is None else _TokenBucket(context, rate)
        checkpoint = None if options.checkpoints is None else options.checkpoints.load()
        count = options.segments
        self.position = (
            SweepPosition(work, [None] * count, [False] * count, {})
            if checkpoint is None
            else SweepPosition.parse(work, checkpoint)
        )
        self.resumed = any(self.position.ended) or any(start is not None for start in self.position.starts)
        self.units = 0.0
        self.read_units = 0.0

    def run(self) -> Program[None]:
        """Sweep the table; progress is saved and reported after each round."""
        total: int | None = None
        try:
            total = (yield Call("DescribeTable", {"TableName": self._name}))["Table"].get("ItemCount")
        except AccessDeniedFault:
            pass  # it is needed for progress reports only
        position, options = self.position, self._options
        while not all(position.ended):
            open_segments = [number for number, ended in enumerate(position.ended) if not ended]
            pages = yield from responses_to([Call("Scan", self._scan(number)) for number in open_segments])
            self.read_units += sum(p.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0) for p in pages)
            yield from self._process([item for page in pages for item in page["Items"]])
            for number, page in zip(open_segments, pages, strict=True):
                position.starts[number] = page.get("LastEvaluatedKey")
                position.ended[number] = "LastEvaluatedKey" not in page
            position.counts = self._inspector.counters()
            if options.checkpoints is not None:
                options.checkpoints.save(position.document())
            if options.progress is not None:
                done = position.counts["items"]
                expected = None if total is None else max(total, done)
                options.progress(Progress(done, expected, written=position.counts["written"]))
        if options.checkpoints is not None:
            options.checkpoints.clear()

    def _scan(self, number: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "TableName": self._name, "Limit": self._options.page_size, "ReturnConsumedCapacity": "TOTAL",
        }  # fmt: skip
        starts = self.position.starts
        if len(starts) > 1:
            request |= {"Segment": number, "TotalSegments": len(starts)}
        if self._options.consistent:
            request["ConsistentRead"] = True
        if starts[number] is not None:
            request["ExclusiveStartKey"] = starts[number]
        return request

    def _process(self, items: Sequence[Item]) -> Program[None]:
        """Inspect the items of a round, and write the repairs."""
        yield from self._inspector.load_guards(items)
        pending: list[Repair] = []
        for item in items:
            repair = self._inspector.inspect(item)
            if repair is not None and not self._dry_run:
                pending.append(repair)
                if len(pending) == CONCURRENT_WRITES_MAX:
                    yield from self._write(pending)
                    pending = []
        if pending:
            yield from self._write(pending)

    def _write(self, pending: list[Repair]) -> Program[None]:
        attempt = 0
        while pending:
            if self._bucket is not None:
                yield from self._bucket.wait()
            calls = [repair.call(self._context) for repair in pending]
            left: list[Repair] = []
            for repair, response in zip(pending, (yield from call_concurrently(calls)), strict=True):
                units = 1.0
                if isinstance(response, TavolaError):
                    left += self._after_failure(repair, response)
                else:
                    self._inspector.report_written(repair)
                    units = _consumed_units(response)
                self.units += units
                if self._bucket is not None:
                    self._bucket.take(units)
            pending = left
            attempt += 1
            if attempt == CONTENTION_MAX:
                for repair in pending:
                    self._inspector.report_contended(repair)
                return
            if pending:
                yield Sleep(self._context.retry_policy.pause_s(min(attempt, 6)))

    def _after_failure(self, repair: Repair, error: TavolaError) -> list[Repair]:
        """Return what to try instead of a repair that failed, if anything."""
        if isinstance(error, ConditionalCheckFailedFault):
            stored = fault_item(error.extra.get("Item"))
        elif isinstance(error, TransactionCanceledFault) and isinstance(
            repair, GuardedRewrite | OrphanedGuard
        ):
            outcome, value = repair.outcome(error)
            if outcome == "retry":
                return [value]
            if outcome == "failed":
                self._inspector.report_failed(repair, value)
                return []
            stored = value
        elif isinstance(error, ValidationFault):
            self._inspector.report_failed(repair, str(error))
            return []
        elif isinstance(error, Fault) and error.status >= SERVER_ERROR_STATUS:
            # If it was written after all, its condition fails and the item is inspected again
            return [repair]
        else:
            raise error
        again = None if stored is None else self._inspector.inspect_again(stored)
        return [] if again is None else [again]


def _consumed_units(response: Mapping[str, Any]) -> float:
    consumed = response.get("ConsumedCapacity") or [{}]
    parts = consumed if isinstance(consumed, list) else [consumed]
    return sum(float(part.get("CapacityUnits", 1.0)) for part in parts)


class _TokenBucket:
    """Limits units per second, with bursts of up to one second's units; overdrafts are waited for."""

    def __init__(self, context: Context, units_per_second: float) -> None:
        self._clock = context.clock
        self._rate = units_per_second
        self._units = units_per_second
        self._at_s = context.clock.now()

    def take(self, units: float) -> None:
        """Subtract consumed units."""
        self._units -= units

    def wait(self) -> Program[None]:
        """Wait until there are units again."""
        now_s = self._clock.now()
        self._units = min(self._rate, self._units + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if self._units <= 0:
            wait_s = -self._units / self._rate
            yield Sleep(wait_s)
            self._units += wait_s * self._rate
            self._at_s = now_s + wait_s
