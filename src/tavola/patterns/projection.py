"""Projection: numbers kept up to date by a table's stream, exact however often a record comes.

    class Numbers(Metric, table=Board):
        class Key(PrimaryKey["Numbers"], pk="METRIC#{name}", sk="{part}"):
            name: str
            part: str

    class Counted(ProjectionMark, table=Board):
        class Key(PrimaryKey["Counted"], pk="MARK#{source}", sk="{projector}"):
            source: str
            projector: str

    desk = Projector(db, Desk, Numbers, Counted)

    @desk.of(Ticket)
    def shares(ticket: Ticket) -> Iterator[Share]:
        yield Share("tickets", ticket.status)

A function says what an item adds to the numbers as it is now. A mark beside the numbers, one for each item, keeps what it
added last and by which record. A record changes the numbers by the difference and renews the mark, in one transaction: so at
every moment the numbers are the sum of the marks. A record that comes again is older than its mark and changes nothing; a
number never goes below what is counted in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from tavola.client import (
    AnyChange,
    AsyncSubscription,
    EntityChange,
    RawChange,
    Subscription,
    Transaction,
    TransactionCancelled,
    changes_of,
    failures,
)
from tavola.errors import TavolaError
from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Attr, Entity, Table, attr, shape_of
from tavola.patterns.recipe import D_co, Recipe, RecipeRefused, Steps, ask, expires_with, key_class, together, verb

E = TypeVar("E", bound=Entity)
M = TypeVar("M", bound="Metric")
K = TypeVar("K", bound="ProjectionMark")

ROUNDS_MAX = 8  # how often a batch is worked out again that another reader was faster with

_log = logging.getLogger("tavola.patterns")


class Metric(Entity):
    """A number, by name and by what it is broken down into; give it a table and a key of name and part."""

    name: Attr[str]
    part: Attr[str] = attr(default="all")
    count: Attr[int] = attr(default=0)
    total: Attr[Decimal] = attr(default=Decimal(0))

    @property
    def mean(self) -> Decimal | None:
        """The average of what was added, None where there is nothing."""
        return self.total / self.count if self.count else None


class ProjectionMark(Entity):
    """What an item has added to the numbers; give it a table and a key of source and projector."""

    projector: Attr[str]
    source: Attr[str]  # the item's key
    entity: Attr[str]  # its tag
    place: Attr[str]  # of the record that was last counted, in the stream
    shares: Attr[dict[str, dict[str, Decimal]]] = attr(default_factory=dict)
    expires: Attr[datetime | None] = attr(default=None)  # where the item is gone


@dataclass(frozen=True, slots=True)
class Share:
    """What an item adds to one number: one to its count, and a value to its total.

    `part` breaks the number down: a status, a day. Averages come of both, `Metric.mean`.
    """

    name: str
    part: str = "all"
    value: Decimal | int = 0


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that could not be counted, and comes again."""

    sequence: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Projected:
    """What became of some records."""

    counted: int = 0  # items whose share in the numbers was renewed
    known: int = 0  # items whose records had been counted before
    failed: tuple[FailedRecord, ...] = ()


class ProjectionFailed(TavolaError):
    """Records that could not be counted; what could be is, and the rest comes again."""

    def __init__(self, failed: Sequence[FailedRecord]) -> None:
        self.failed = tuple(failed)
        first = failed[0]
        super().__init__(
            f"{len(failed)} records could not be counted, the first is {first.sequence}: {first.error!r}; mend it, and they "
            "are counted when they come again"
        )


Shares: TypeAlias = dict[str, dict[str, Decimal]]  # by name and part


@dataclass(slots=True)
class Item:
    """The records of one item in a batch: what it comes to, and how far that is in the stream."""

    source: str
    tag: str
    place: str
    shares: Shares = field(default_factory=dict)
    gone: bool = False
    moved: bool = False  # whether a record changed what the item adds
    sequences: list[str] = field(default_factory=list)
    error: Exception | None = None  # why the last state could not be counted


@dataclass(frozen=True, slots=True)
class Entry(Generic[K]):
    """A mark to be renewed, and what that changes."""

    mark: K
    before: K | None
    change: Mapping[tuple[str, str], tuple[int, Decimal]]  # of each number: its count and total
    sequences: Sequence[str] = ()

    def write(self, writes: Transaction, entity: type[K]) -> None:
        """Add the mark to a transaction, which holds while the one before is as it was read."""
        if self.before is None:
            writes.create(self.mark)
        else:
            writes.put(self.mark, when=entity.place == self.before.place)


class Projector(Recipe[D_co], Generic[D_co, M, K]):
    """Numbers about the entities of a table, kept by its stream.

    `name` tells the marks of several projectors apart. The mark of an item that is gone is kept for as long as an old record
    may still come again, `keep`. `reports_failures` is for a Lambda mapping with ReportBatchItemFailures.
    """

    def __init__(
        self,
        db: D_co,
        table: type[Table],
        metric: type[M],
        mark: type[K],
        *,
        name: str = "projector",
        keep: timedelta = timedelta(days=7),
        reports_failures: bool = True,
    ) -> None:
        super().__init__(db)
        self.table = table
        self.metric = metric
        self.mark = mark
        self.name = name
        self.keep = keep
        self.reports_failures = reports_failures
        self.functions: dict[type[Entity], Callable[[Any], Iterable[Share]]] = {}
        self.metric_key = key_class(metric, "name", "part")
        self.mark_key = key_class(mark, "source", "projector")
        expires_with(mark, "expires")
        if table.settings.stream in ("KEYS_ONLY", "OLD_IMAGE"):
            raise RecipeRefused(
                table.__name__, f"its stream tells no new images; declare it with stream=NEW_AND_OLD_IMAGES"
            )

    def of(self, entity: type[E]) -> Callable[[Callable[[E], Iterable[Share]]], Callable[[E], Iterable[Share]]]:
        """Decorate the function that says what an entity adds to the numbers; it looks at nothing else."""
        if shape_of(entity).home is not self.table:
            raise RecipeRefused(entity.__name__, f"it lives in another table than {self.table.__name__}")
        if issubclass(entity, self.metric | self.mark):
            raise RecipeRefused(entity.__name__, "its items are what the projector writes; it would go on for ever")
        if entity in self.functions:
            raise RecipeRefused(entity.__name__, "there is a function for it already; let one give all shares")

        def declare(function: Callable[[E], Iterable[Share]]) -> Callable[[E], Iterable[Share]]:
            self.functions[entity] = function
            return function

        return declare

    @verb
    def handler(self, event: Mapping[str, Any], context: object = None) -> Steps[dict[str, Any] | None]:
        """Count the records of an event, as a Lambda function; those that fail are reported, and come again."""
        done = yield from self._apply(event, None)
        for each in done.failed:
            _log.error("the record %s could not be counted; it comes again", each.sequence, exc_info=each.error)
        if self.reports_failures:
            return failures([each.sequence for each in done.failed])
        if done.failed:
            raise ProjectionFailed(done.failed)
        return None

    @verb
    def apply(
        self, records: Mapping[str, Any] | Iterable[Mapping[str, Any] | AnyChange], *, stream: str | None = None
    ) -> Steps[Projected]:
        """Count records, or changes made of them; `stream` is the ARN where they do not tell it."""
        return (yield from self._apply(records, stream))

    @verb
    def follow(self, subscription: Subscription | AsyncSubscription) -> Steps[int]:
        """Count what a subscription gives until it ends, and return how many changes that were.

        A batch that cannot be counted is raised as `ProjectionFailed`, and comes first when the subscription goes on.
        """
        seen = 0
        while True:
            batch = yield from ask(lambda db: subscription.take())
            if batch is None:
                return seen
            assert not isinstance(batch, Iterator)
            done = yield from self._apply(batch, None)  # type: ignore[arg-type]  # awaited where it must be
            if done.failed:
                raise ProjectionFailed(done.failed)
            seen += len(batch)  # type: ignore[arg-type]  # as above

    @verb
    def value(self, name: str, part: str = "all") -> Steps[M]:
        """Return a number as it is now; one that nothing was added to is 0."""
        key = self.metric_key(name=name, part=part)
        found = yield from ask(lambda db: db.get(key, consistent=True))
        return self.metric(name=name, part=part) if found is None else found

    def shares_of(self, entity: Entity | None) -> Shares:
        """Return what an item adds to the numbers; nothing, if it is gone or of no entity that was declared."""
        function = None if entity is None else self.functions.get(type(entity))
        shares: Shares = {}
        for share in () if function is None else function(entity):
            parts = shares.setdefault(share.name, {})
            if share.part in parts:
                raise RecipeRefused(
                    type(entity).__name__,
                    f"it gives two shares of {share.name!r}, {share.part!r}; add them up, or give them two names",
                )
            if isinstance(share.value, float):
                raise RecipeRefused(type(entity).__name__, f"{share!r} is a float, which rounds; give a Decimal or an int")
            parts[share.part] = Decimal(share.value)
        return shares

    def _apply(
        self, given: Mapping[str, Any] | Iterable[Mapping[str, Any] | AnyChange], stream: str | None
    ) -> Steps[Projected]:
        items = self._items(given, stream)
        failed = [
            FailedRecord(sequence, item.error) for item in items if item.error for sequence in item.sequences
        ]
        wanted = [item for item in items if item.moved and item.error is None]
        counted = known = 0
        for _ in range(ROUNDS_MAX):
            entries = yield from self._entries(wanted)
            known += len(wanted) - len(entries)
            wanted = []
            for pack in packed(entries):
                try:
                    yield from self._commit(pack)
                except TransactionCancelled as error:
                    if not overtaken(error):
                        failed += [FailedRecord(s, error) for entry in pack for s in entry.sequences]
                    else:
                        sources = {entry.mark.source for entry in pack}
                        wanted += [item for item in items if item.source in sources and item.moved]
                except TavolaError as error:
                    failed += [FailedRecord(s, error) for entry in pack for s in entry.sequences]
                else:
                    counted += len(pack)
            if not wanted:
                break
        else:
            error = TavolaError("Other readers of the stream were faster each time; is it read twice?")
            failed += [FailedRecord(s, error) for item in wanted for s in item.sequences]
        return Projected(counted, known, tuple(sorted(failed, key=lambda each: int(each.sequence))))

    def _items(
        self, given: Mapping[str, Any] | Iterable[Mapping[str, Any] | AnyChange], stream: str | None
    ) -> list[Item]:
        """Return the items that records are about, each with its last state."""
        items: dict[str, Item] = {}
        for change in self._changes(given, stream):
            function_of = change.entity
            source = source_of(self.table, change.keys)
            item = items.get(source)
            if item is None:
                if function_of not in self.functions:
                    continue
                items[source] = item = Item(source, "", "")
            self._note(item, change)
        return list(items.values())

    def _changes(
        self, given: Mapping[str, Any] | Iterable[Mapping[str, Any] | AnyChange], stream: str | None
    ) -> Iterator[AnyChange]:
        if isinstance(given, Mapping):
            yield from changes_of(self.table, given, stream=stream)
            return
        for each in given:
            if isinstance(each, EntityChange | RawChange):
                yield each
            else:
                yield from changes_of(self.table, each, stream=stream)

    def _note(self, item: Item, change: AnyChange) -> None:
        """Take one more record of an item: only its last state counts, so what lay between need not be readable."""
        item.place = place_of(change)
        item.sequences.append(change.sequence)
        item.gone = change.kind == "removed"
        item.error = None
        if change.entity is not None:
            item.tag = shape_of(change.entity).name
        before: Shares | None = None
        try:
            if isinstance(change, RawChange):
                if change.problem is not None and change.found is None and not item.gone:
                    raise change.problem
                item.shares = self.shares_of(change.found)
            else:
                if change.new is None and not item.gone:
                    raise RecipeRefused(self.table.__name__, "its stream tells no new images, so nothing can be counted")
                item.shares = self.shares_of(change.new)
                if change.old is not None or change.kind == "inserted":
                    before = self.shares_of(change.old)
        except Exception as error:  # noqa: BLE001 - the user's function; the other items go on
            item.error = error
        item.moved = item.moved or before is None or before != item.shares

    def _entries(self, items: Sequence[Item]) -> Steps[list[Entry[K]]]:
        """Return the marks to be renewed, and what that changes; those that know the record already are left out."""
        keys = [self.mark_key(source=item.source, projector=self.name) for item in items]
        marks = (yield from ask(lambda db: db.get_many(keys, consistent=True))) if keys else []
        entries: list[Entry[K]] = []
        for item, before in zip(items, marks, strict=True):
            if before is None or before.place < item.place:
                entries.append(self.entry(item, before))
        return entries

    def entry(self, item: Item, before: K | None) -> Entry[K]:
        """Return an item's mark as it will be."""
        expires = None
        if item.gone:
            expires = datetime.fromtimestamp(int(self.clock.now()), UTC) + self.keep
        mark = self.mark(
            projector=self.name,
            source=item.source,
            entity=item.tag,
            place=item.place,
            shares=item.shares,
            expires=expires,
        )
        return Entry(mark, before, difference(before.shares if before else {}, item.shares), item.sequences)

    def _commit(self, pack: Sequence[Entry[K]]) -> Steps[None]:
        """Renew marks and change the numbers by what that makes, together."""
        sums: dict[tuple[str, str], tuple[int, Decimal]] = {}
        for entry in pack:
            for number, (count, total) in entry.change.items():
                had = sums.get(number, (0, Decimal(0)))
                sums[number] = (had[0] + count, had[1] + total)

        def fill(writes: Transaction) -> None:
            for entry in pack:
                entry.write(writes, self.mark)
            for (name, part), (count, total) in sums.items():
                changes = [self.metric.count.add(count)] if count else []
                changes += [self.metric.total.add(total)] if total else []
                if changes:
                    writes.update(self.metric_key(name=name, part=part), *changes, create=True)

        yield from together(fill)


def difference(before: Shares, after: Shares) -> dict[tuple[str, str], tuple[int, Decimal]]:
    """Return what changes in each number's count and total when an item adds something else to them."""
    change: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for shares, sign in ((before, -1), (after, 1)):
        for name, parts in shares.items():
            for part, value in parts.items():
                count, total = change.get((name, part), (0, Decimal(0)))
                change[name, part] = (count + sign, total + sign * value)
    return {number: told for number, told in change.items() if told != (0, 0)}


def packed(entries: Sequence[Entry[K]]) -> Iterator[list[Entry[K]]]:
    """Give entries in transactions that DynamoDB takes: a mark each, and the numbers that they share."""
    pack: list[Entry[K]] = []
    numbers: set[tuple[str, str]] = set()
    for entry in entries:
        if pack and len(pack) + 1 + len(numbers | entry.change.keys()) > TRANSACTION_ACTIONS_MAX:
            yield pack
            pack, numbers = [], set()
        pack.append(entry)
        numbers |= entry.change.keys()
    if pack:
        yield pack


def overtaken(error: TransactionCancelled) -> bool:
    """Return whether a transaction was cancelled only because marks were renewed meanwhile."""
    kinds = {reason.kind for reason in error.reasons if reason is not None}
    return kinds <= {"exists", "condition", "missing"}


def source_of(table: type[Table], keys: Mapping[str, Any]) -> str:
    """Return an item's key as text that no other item's is."""
    names = filter(None, (table.settings.hash, table.settings.range))
    return "/".join(quote(next(iter(keys[name].values())), safe="") for name in names)


def place_of(change: AnyChange) -> str:
    """Return how far in a table's streams a change is, as text that sorts so: the stream, then the number."""
    stream = change.origin.stream
    if stream is None:
        raise RecipeRefused(
            "the records", "they do not tell which stream they are of; give its ARN with stream=…"
        )
    label = stream.rpartition("/stream/")[2]
    return f"{label}/{change.sequence:0>40}"


__all__ = ["chain"]
