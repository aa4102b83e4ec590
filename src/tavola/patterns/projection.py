"""Projection: numbers maintained from a table's stream, exact however often a record is delivered.

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

Streams deliver records at least once, so adding on every record would count twice. Instead, a function says what an item
contributes in its current state (its shares), and a mark per item stores what it contributed last and as of which record:

    record ──► shares now − shares in mark ──► one transaction: update the numbers, replace the mark

So the numbers are always the sum of the marks. A repeated record is not newer than its mark and changes nothing. Records of one
item in a batch collapse to its last state.

Cost: a read and a transactional write of the mark per changed item, and of each number it touches; many items share a
transaction. What it gives up: numbers lag behind the table by the stream's delay, and one mark is stored per item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from tavola.client.backend import ResponseMissing
from tavola.client.connection import AsyncConnection, Transaction
from tavola.client.errors import ItemExists
from tavola.client.reading import scan_entities
from tavola.client.routers import failures
from tavola.client.stream_changes import AnyChange, EntityChange, RawChange, changes_of, key_of
from tavola.client.subscriptions import AsyncSubscription, Subscription
from tavola.client.transactions import TransactionCancelled
from tavola.errors import TavolaError
from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Entity, ItemUnreadable, PrimaryKey, Table, shape_of
from tavola.patterns.metrics import (
    FailedRecord,
    ItemState,
    Metric,
    Number,
    Projected,
    ProjectionContended,
    ProjectionFailed,
    ProjectionMark,
    Rebuilt,
    Share,
    ShareFunctions,
    Shares,
    Sum,
    Sums,
    difference,
    group_by_transaction,
    parse_source,
    source_of,
    sum_changes,
)
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    recipe_method,
    write_together,
)
from tavola.protocol.faults import Fault

E = TypeVar("E", bound=Entity)
M = TypeVar("M", bound=Metric)
K = TypeVar("K", bound=ProjectionMark)

Records: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any] | AnyChange]

ROUNDS_MAX = 8  # how often a batch is tried again because another reader was faster
FILLING = "!fill"  # source of the mark that exists during a fill; no item has this source
NEVER = "0"  # position of an item whose records were never counted

_log = logging.getLogger("tavola.patterns")


@dataclass(frozen=True, slots=True)
class Renewal(Generic[K]):
    """A mark to replace, and the change of the numbers that goes with it."""

    mark: K
    before: K | None
    change: Mapping[Number, Sum]
    sequences: Sequence[str] = ()


class Projector(Recipe[D_co], Generic[D_co, M, K]):
    """Numbers about the entities of a table, maintained from its stream.

    `name` distinguishes the marks of several projectors. The mark of a deleted item stays for `keep`, as long as an old
    record may be repeated.

    `handler` raises if a record cannot be counted, and the whole batch is delivered again, whatever the event source mapping's
    settings are. `report_batch_item_failures` makes it return the records that failed instead; Lambda reads that only if the
    mapping has the setting of the same name, and otherwise drops them.
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
        report_batch_item_failures: bool = False,
    ) -> None:
        super().__init__(db)
        self.table = table
        self.metric = metric
        self.mark = mark
        self.name = name
        self.keep = keep
        self.report_batch_item_failures = report_batch_item_failures
        self.declared = ShareFunctions(table)
        self.metric_key = key_class(metric, "name", "part")
        self.mark_key = key_class(mark, "source", "projector")
        check_expires_with(mark, "expires")
        if table.settings.stream in ("KEYS_ONLY", "OLD_IMAGE"):
            raise RecipeRefused(
                table.__name__, 'its stream has no new images; declare it with stream="NEW_AND_OLD_IMAGES"'
            )

    def of(
        self, entity: type[E]
    ) -> Callable[[Callable[[E], Iterable[Share]]], Callable[[E], Iterable[Share]]]:
        """Decorate the function that returns an entity's shares of the numbers; it must depend on nothing else."""
        if shape_of(entity).home is not self.table:
            raise RecipeRefused(entity.__name__, f"it is in another table than {self.table.__name__}")
        if issubclass(entity, self.metric | self.mark):
            raise RecipeRefused(entity.__name__, "the projector writes it itself, and would go on for ever")
        if entity in self.declared.functions:
            raise RecipeRefused(entity.__name__, "it already has a function; return all shares from that one")

        def declare(function: Callable[[E], Iterable[Share]]) -> Callable[[E], Iterable[Share]]:
            self.declared.functions[entity] = function
            return function

        return declare

    @recipe_method
    def handler(
        self, event: Mapping[str, Any], context: object = None
    ) -> PatternProgram[dict[str, Any] | None]:
        """Count the records of an event, as a Lambda function; records that fail are raised or reported."""
        done = yield from self._apply(event, None)
        for failure in done.failed:
            _log.error("the record %s could not be counted", failure.sequence, exc_info=failure.error)
        if not self.report_batch_item_failures:
            if done.failed:
                raise ProjectionFailed(done.failed)
            return None
        if done.failed:
            _log.error(
                "%d records are returned in batchItemFailures, which the event source mapping must read "
                "(report_batch_item_failures)",
                len(done.failed),
            )
        return failures([failure.sequence for failure in done.failed])

    @recipe_method
    def apply(self, records: Records, *, stream: str | None = None) -> PatternProgram[Projected]:
        """Count records, or changes made from them; `stream` is the stream's ARN if the records do not contain it."""
        return (yield from self._apply(records, stream))

    @recipe_method
    def follow(self, subscription: Subscription | AsyncSubscription) -> PatternProgram[int]:
        """Count the changes of a subscription until it ends, and return their number.

        If changes cannot be counted, raise `ProjectionFailed`; the subscription delivers them first when it continues.
        """
        if isinstance(subscription, AsyncSubscription) != isinstance(self.db, AsyncConnection):
            raise RecipeRefused(
                "the subscription",
                "it belongs to the other kind of client (sync or async); use one of the projector's client",
            )
        seen = 0
        while True:
            batch: Any = yield from call_client(lambda db: subscription.take())
            if batch is None:
                return seen
            done = yield from self._apply(batch.changes, None)
            if done.failed:
                raise ProjectionFailed(done.failed)
            seen += len(batch)

    @recipe_method
    def value(self, name: str, part: str = "all") -> PatternProgram[M]:
        """Return a number's current value; 0 if nothing was added to it."""
        key = self.metric_key(name=name, part=part)
        number = yield from call_client(lambda db: db.get(key, consistent=True))
        return self.metric(name=name, part=part) if number is None else number

    @recipe_method
    def recount(self) -> PatternProgram[Sums]:
        """Compute the numbers from the items, by a scan of the whole table, without writing anything.

        The result equals the stored numbers once the stream is read to its end; an expired item counts until it is deleted.
        """
        sums: Sums = {}
        cursor: str | None = None
        while True:
            entities, cursor = yield from self._scan_page(cursor)
            sums = sum_changes([sums, *(difference({}, self.shares_of(entity)) for entity in entities)])
            if cursor is None:
                return sums

    @recipe_method
    def rebuild(self) -> PatternProgram[Rebuilt]:
        """Correct the numbers from a scan of the whole table; the stream may be read meanwhile.

        For items older than the projector, for a share function that has changed, and for changes that the stream lost.
        Later records are counted relative to what is found here.
        """
        counted = removed = unknown = 0
        filling = yield from self._marks_of([FILLING])
        if filling != [None]:
            raise self._broken_off()
        fresh = not (yield from self._has_marks())
        cursor: str | None = None
        while True:
            entities, cursor = yield from self._scan_page(cursor)
            counted += yield from self._correct_marks(entities, fresh=fresh)
            if cursor is None:
                break
        if fresh:
            return Rebuilt(counted)  # nothing was counted before, so no deleted item can have been
        while True:
            marks, cursor = yield from self._marks(cursor)
            gone, lost = yield from self._release(marks)
            removed, unknown = removed + gone, unknown + lost
            if cursor is None:
                return Rebuilt(counted, removed, unknown)

    @recipe_method
    def fill(self, entities: Iterable[Entity]) -> PatternProgram[int]:
        """Count items that were just stored and are not counted yet, in batches; return how many have shares.

        For loading a table while its stream is not read: much faster than `rebuild`, and less careful. An item given twice
        counts twice. Marks and numbers are not written in one transaction, so an interrupted fill must start again after
        deleting both: until then, `fill` and `rebuild` refuse to run.
        """
        renewals: list[Renewal[K]] = []
        for entity in entities:
            shares = self.shares_of(entity)
            if shares:
                renewals.append(self._correction(entity, self._source(entity), shares, None))
        fill_mark = self.mark(projector=self.name, source=FILLING, kind="", place=NEVER)
        try:
            yield from call_client(lambda db: db.create(fill_mark))
        except ItemExists as error:
            raise self._broken_off() from error
        yield from call_client(lambda db: db.put_many([renewal.mark for renewal in renewals]))
        numbers = sorted(sum_changes([renewal.change for renewal in renewals]).items())
        parts = [
            numbers[position : position + TRANSACTION_ACTIONS_MAX]
            for position in range(0, len(numbers), TRANSACTION_ACTIONS_MAX)
        ]
        while parts:
            part = parts.pop()
            try:
                yield from write_together(lambda writes, part=part: self._add(writes, part))  # type: ignore[misc]  # has the signature that `write_together` expects
            except TavolaError as error:
                if len(part) == 1 or not is_permanent(error):
                    raise
                half = len(part) // 2  # some local servers accept fewer writes in one transaction
                parts += [part[half:], part[:half]]
        yield from call_client(lambda db: db.delete(key_of(self.mark, {}, fill_mark)))
        return len(renewals)

    def _broken_off(self) -> RecipeRefused:
        return RecipeRefused(
            self.name,
            "a fill of its numbers is under way, or was broken off and some are marked that are not counted; delete its "
            f"marks and numbers, the mark of {FILLING!r} last, and begin again",
        )

    def shares_of(self, entity: Entity | None) -> Shares:
        """Return an item's shares of the numbers; none if it is deleted or of an entity without a function."""
        return self.declared.shares_of(entity)

    # Records.

    def _apply(self, records: Records, stream: str | None) -> PatternProgram[Projected]:
        states = self.declared.last_states(self._changes(records, stream))
        failed = [
            FailedRecord(sequence, state.error)
            for state in states.values()
            if state.error is not None
            for sequence in state.sequences
        ]
        pending = [state for state in states.values() if state.changed and state.error is None]
        counted = known = 0
        for _ in range(ROUNDS_MAX):
            renewals = yield from self._renewals(pending)
            known += len(pending) - len(renewals)
            pending = []
            groups = list(group_by_transaction(renewals))
            while groups:
                group = groups.pop()
                try:
                    yield from self._commit(group)
                    counted += len(group)
                except TavolaError as error:
                    if is_mark_conflict(error):
                        pending += [states[renewal.mark.source] for renewal in group]
                    elif len(group) > 1 and is_permanent(error):
                        half = len(group) // 2  # so that one bad item does not hold up the others
                        groups += [group[half:], group[:half]]
                    else:
                        failed += [FailedRecord(s, error) for renewal in group for s in renewal.sequences]
            if not pending:
                break
        if pending:
            contended = ProjectionContended()
            failed += [FailedRecord(sequence, contended) for each in pending for sequence in each.sequences]
        return Projected(counted, known, tuple(sorted(failed, key=lambda each: int(each.sequence))))

    def _changes(self, records: Records, stream: str | None) -> Iterator[AnyChange]:
        for record in (records,) if isinstance(records, Mapping) else records:
            if isinstance(record, EntityChange | RawChange):
                yield record
            else:
                yield from changes_of(self.table, record, stream=stream)

    def _renewals(self, states: Sequence[ItemState]) -> PatternProgram[list[Renewal[K]]]:
        """Return the marks to replace, without those that include the records already."""
        marks = yield from self._marks_of([state.source for state in states])
        renewals: list[Renewal[K]] = []
        for state, before in zip(states, marks, strict=True):
            if before is None or before.place < state.position:
                renewals.append(self._renewal(state, before))
        return renewals

    # Marks.

    def _marks_of(self, sources: Sequence[str]) -> PatternProgram[list[K | None]]:
        if not sources:
            return []
        keys = [self.mark_key(source=source, projector=self.name) for source in sources]
        return (yield from call_client(lambda db: db.get_many(keys, consistent=True)))

    def _renewal(self, state: ItemState, before: K | None) -> Renewal[K]:
        expires = None
        if state.deleted:
            expires = datetime.fromtimestamp(int(self.clock.now()), UTC) + self.keep
        mark = self.mark(
            projector=self.name,
            source=state.source,
            kind=state.tag,
            place=state.position,
            shares=state.shares,
            expires=expires,
        )
        change = difference({} if before is None else before.shares, state.shares)
        return Renewal(mark, before, change, state.sequences)

    def _commit(self, group: Sequence[Renewal[K]]) -> PatternProgram[None]:
        """Replace marks and change the numbers accordingly in one transaction, if each mark is unchanged since it was read."""

        def fill(writes: Transaction) -> None:
            for renewal in group:
                if renewal.before is None:
                    writes.create(renewal.mark)
                else:
                    writes.put(renewal.mark, when=self.mark.place == renewal.before.place)
            self._add(writes, sum_changes([renewal.change for renewal in group]).items())

        yield from write_together(fill)

    def _add(self, writes: Transaction, numbers: Iterable[tuple[Number, Sum]]) -> None:
        """Add the changes of numbers to a transaction."""
        for (name, part), amount in numbers:
            changes = [self.metric.count.add(amount.count)] if amount.count else []
            changes += [self.metric.total.add(amount.total)] if amount.total else []
            writes.update(self.metric_key(name=name, part=part), *changes, create=True)

    # Rebuilding.

    def _scan_page(self, cursor: str | None) -> PatternProgram[tuple[list[Entity], str | None]]:
        kinds = self.declared.functions.keys()
        page = yield from call_client(lambda db: db.run(scan_entities(db.context, self.table, kinds, cursor)))
        return list(page.items), page.cursor

    def _marks(self, cursor: str | None) -> PatternProgram[tuple[list[K], str | None]]:
        page = yield from call_client(
            lambda db: db.scan(
                self.mark, where=self.mark.projector == self.name, cursor=cursor, consistent=True
            )
        )
        return list(page.items), page.cursor

    def _has_marks(self) -> PatternProgram[bool]:
        """Return whether this projector has any mark."""
        page = yield from call_client(
            lambda db: db.scan(self.mark, where=self.mark.projector == self.name, limit=1, consistent=True)
        )
        return bool(page.items)

    def _correct_marks(self, entities: Sequence[Entity], *, fresh: bool) -> PatternProgram[int]:
        """Replace the marks of items whose shares have changed; return how many.

        If there were no marks at the start (`fresh`), none is read: the write is conditional on the mark's absence.
        """
        sources = [self._source(entity) for entity in entities]
        read: Sequence[K | None] = [None] * len(entities) if fresh else (yield from self._marks_of(sources))
        renewals: list[Renewal[K]] = []
        outdated: list[tuple[Entity, str, K]] = []
        for entity, source, mark in zip(entities, sources, read, strict=True):
            shares = self.shares_of(entity)
            if mark is None and shares:
                # Any later change of the item is a record that is not counted yet, and is counted relative to this.
                renewals.append(self._correction(entity, source, shares, None))
            elif mark is not None and mark.shares != shares:
                outdated.append((entity, source, mark))
        # The item is read after its mark, so it is at least as new as the mark.
        current = yield from self._get_many([self._key(entity) for entity, _, _ in outdated])
        renewals += [
            self._correction(entity, source, self.shares_of(entity), mark)
            for (_, source, mark), entity in zip(outdated, current, strict=True)
            if entity is not None
        ]
        return (yield from self._replace_marks(renewals))

    def _correction(self, entity: Entity, source: str, shares: Shares, mark: K | None) -> Renewal[K]:
        place = NEVER if mark is None else mark.place
        return self._renewal(ItemState(source, shape_of(type(entity)).name, place + "+", shares), mark)

    def _release(self, marks: Sequence[K]) -> PatternProgram[tuple[int, int]]:
        """Subtract the shares of deleted items; return how many, and how many marks belong to no known item."""
        with_keys: list[tuple[K, PrimaryKey[Any]]] = []
        lost = 0
        for mark in marks:
            entity = self.table.entities.get(mark.kind)
            if not mark.shares:
                continue
            try:
                if entity is None:
                    raise ItemUnreadable(mark.kind, "there is no such entity now")
                with_keys.append((mark, key_of(entity, parse_source(mark.source, entity))))
            except ItemUnreadable:
                lost += 1
        items = yield from self._get_many([key for _, key in with_keys])
        renewals = [
            self._renewal(ItemState(mark.source, mark.kind, mark.place + "+", deleted=True), mark)
            for (mark, _), entity in zip(with_keys, items, strict=True)
            if entity is None
        ]
        return (yield from self._replace_marks(renewals)), lost

    def _get_many(self, keys: Sequence[PrimaryKey[Any]]) -> PatternProgram[list[Any]]:
        return (yield from call_client(lambda db: db.get_many(keys, consistent=True))) if keys else []

    def _replace_marks(self, renewals: Sequence[Renewal[K]]) -> PatternProgram[int]:
        """Replace marks and return how many; skip a mark that a stream record has replaced meanwhile, which is newer."""
        done = 0
        # Neighbours change the same numbers, so more of them fit into one transaction.
        groups = list(group_by_transaction(sorted(renewals, key=lambda renewal: sorted(renewal.change))))
        while groups:
            group = groups.pop()
            try:
                yield from self._commit(group)
                done += len(group)
            except TavolaError as error:
                if len(group) > 1 and (is_mark_conflict(error) or is_permanent(error)):
                    half = len(group) // 2  # one of them makes the whole transaction fail
                    groups += [group[half:], group[:half]]
                elif not is_mark_conflict(error):
                    raise
        return done

    def _key(self, entity: Entity) -> PrimaryKey[Any]:
        return key_of(type(entity), {}, entity)

    def _source(self, entity: Entity) -> str:
        return source_of(self.table, shape_of(type(entity)).primary(entity.__dict__))


def is_mark_conflict(error: TavolaError) -> bool:
    """Return whether a transaction was cancelled because a mark was replaced meanwhile."""
    return isinstance(error, TransactionCancelled) and any(
        reason.kind in ("exists", "condition") for reason in error.reasons if reason is not None
    )


def is_permanent(error: TavolaError) -> bool:
    """Return whether the same transaction would fail again because of its content."""
    if isinstance(error, TransactionCancelled):
        return any(reason.kind in ("too_large", "invalid") for reason in error.reasons if reason is not None)
    if isinstance(error, Fault):
        return not error.retryable and error.status < 500
    return not isinstance(error, ResponseMissing)
