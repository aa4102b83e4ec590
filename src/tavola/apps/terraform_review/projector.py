"""ReviewProjector: keeps the statistics up to date from the table's stream, exactly, even if records repeat.

Each review and each finding has a mark, which records what the item has contributed to statistics, and the item's position: how far it
was in its life. A change updates the mark and the statistics by the difference, in one transaction, so that statistics are always the
sum of the marks:

    record ──► item's current state ──► position newer than the mark's?  ──no──► ignored
                                                     │yes
                                 transaction: mark + statistics (by the difference)

Reviews have version numbers, and a finding's position is the version of its review, which may stop listing it. So the order of
items is known without stream positions, and a record that comes again, late or out of order is no newer than its mark.

Two readers may count at the same time: every write is conditional on the mark's position and the statistic's revision, and the reader that
loses reads again and repeats. `tavola.patterns.Projector` does this for single numbers, one item each. Here the numbers are fields
of entities that are also sorted by them and hold facts, so this projector is written out, on the same marks.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tavola import (
    AnyChange,
    AsyncConnection,
    AsyncSubscription,
    AsyncTransaction,
    Entity,
    RawChange,
    TransactionCancelled,
    changes_of,
)
from tavola.apps.terraform_review.model import (
    DayRisk,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewFinding,
    Reviews,
    ReviewVersion,
    StackStats,
    StatisticsMark,
)
from tavola.apps.terraform_review.statistics import (
    IssueFix,
    RecordBatch,
    Statistic,
    StatisticsLedger,
    TableSnapshot,
    TrackedItem,
    Work,
    affected_statistics,
    item_key,
    share_differences,
    statistic_key,
    take_one_transaction,
    track_finding,
)
from tavola.patterns import BlobDamaged, BlobMissing, FailedRecord, Projected, ProjectionFailed, Rebuilt

DELETED_MARK_LIFE = timedelta(days=7)  # longer than the stream keeps records, so an old one finds the mark
CORRECTIONS_MAX = 3  # rounds of correcting statistics in one rebuild
ATTEMPTS_MAX = 8  # at counting a batch while other readers count too
_MARKS_PER_ROUND = 1000

_READ_TYPES = (Review, ReviewFinding, ReviewVersion)

WriteFindings = Callable[[ReviewVersion], Awaitable[int]]

_log = logging.getLogger("tavola.apps")


class ReviewProjector:
    """Statistics about reviews and findings; `write_findings` creates the items of findings that are still in a blob."""

    table = Reviews
    mark = StatisticsMark
    name = "statistics"

    def __init__(self, db: AsyncConnection, write_findings: WriteFindings) -> None:
        self.db = db
        self._write_findings = write_findings

    async def handler(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """Count the records of an event, as a Lambda function; report those that fail, so that they are delivered again."""
        result = await self.apply(changes_of(Reviews, event))
        return {"batchItemFailures": [{"itemIdentifier": failure.sequence} for failure in result.failed]}

    async def apply(self, changes: Iterable[AnyChange]) -> Projected:
        """Count changes; those that were counted before have no effect."""
        batch = RecordBatch()
        failed: list[FailedRecord] = []
        fixes: list[IssueFix] = []
        for change in changes:
            if isinstance(change, RawChange):
                if change.entity in _READ_TYPES and change.problem is not None:
                    failed.append(FailedRecord(change.sequence, change.problem))
                continue
            deleted = change.kind == "removed"
            item = change.old if deleted else change.new
            if isinstance(item, Review):
                batch.add_review(item, change.old, deleted=deleted)
            elif isinstance(item, ReviewFinding):
                batch.add_finding(item, deleted=deleted)
            elif isinstance(item, ReviewVersion) and not deleted:
                await self._try_write_findings(item)
                fixes += await self._read_fixes(item)
        items = await self._read_items(batch)
        counted = await self._count(items, fixes)
        return Projected(counted, len(items) - counted, tuple(failed))

    async def follow(self, subscription: AsyncSubscription) -> int:
        """Count the changes of a subscription until it ends; return how many there were."""
        count = 0
        while (batch := await subscription.take()) is not None:
            result = await self.apply(batch.changes)
            if result.failed:
                raise ProjectionFailed(result.failed)
            count += len(batch)
        return count

    async def recount(self) -> dict[str, Statistic]:
        """Return the statistics computed from all items of the table; nothing is written."""
        statistics = _count_snapshot(await self._scan()).statistics
        return {name: entity for name, entity in statistics.items() if entity is not None}

    async def read_statistics(self) -> dict[str, Statistic]:
        """Return all stored statistics, including those that count nothing any more; scans the table."""
        return (await self._scan()).statistics

    async def rebuild(self) -> Rebuilt:
        """Make marks and statistics match the table; scans all of it. The stream may be read meanwhile.

        First writes missing findings, then marks that are missing or out of date, and last corrects statistics that are not the
        sum of the marks, because one was lost or written by another program.
        """
        snapshot = await self._scan()
        if sum([await self._try_write_findings(version) for version in snapshot.incomplete_versions]):
            snapshot = await self._scan()
        outdated: list[TrackedItem] = []
        for tracked in snapshot.items:
            mark = snapshot.marks.get(tracked.source)
            if mark is None:
                outdated.append(tracked)
            elif mark.shares != tracked.shares and mark.place.rstrip("+") <= tracked.position:
                # In the same position with other shares: use a position just after the mark's, and before the next one.
                position = tracked.position if mark.place < tracked.position else mark.place + "+"
                outdated.append(replace(tracked, position=position))
        counted = 0
        for start in range(0, len(outdated), _MARKS_PER_ROUND):
            counted += await self._count(outdated[start : start + _MARKS_PER_ROUND], ())
        await self._count((), snapshot.fixes)
        removed = await self._remove_deleted(snapshot)
        if counted or removed:
            snapshot = await self._scan()
        await self._correct_statistics(snapshot)
        return Rebuilt(counted, removed)

    async def fill(self, items: Iterable[Review | ReviewFinding | ReviewVersion] | None = None) -> int:
        """Write the statistics of a table that has none yet; return how many items were counted.

        Only for a table that was just loaded and whose stream is not read, because the batches have no conditions. `items` are
        the loaded items in any order; without them the table is scanned.
        """
        if items is None:
            snapshot = await self._scan()
        else:
            snapshot = TableSnapshot()
            for item in items:
                snapshot.add(item)
        marks = [self._new_mark(tracked) for tracked in snapshot.items]
        statistics = _count_snapshot(snapshot).statistics.values()
        await self.db.put_many(
            [*marks, *(entity.model_copy(update={"revision": 1}) for entity in statistics if entity)]
        )
        return len(marks)

    # Counting.

    async def _count(self, items: Sequence[TrackedItem], fixes: Sequence[IssueFix]) -> int:
        """Update marks and statistics; return how many items had changed."""
        waiting, waiting_fixes, counted = list(items), list(fixes), 0
        for _ in range(ATTEMPTS_MAX):
            marks = await self._read_marks([item.source for item in waiting])
            work: list[Work] = [
                (item, marks[item.source]) for item in waiting if _is_newer(item, marks[item.source])
            ]
            work += [(fix, None) for fix in waiting_fixes]
            ledger = StatisticsLedger(await self._read_affected(work))
            while work:
                chunk = take_one_transaction(work)
                try:
                    await self._commit(chunk, ledger)
                except TransactionCancelled as error:
                    if not lost_race(error):
                        raise
                    break  # another reader counts as well: read again
                counted += sum(isinstance(tracked, TrackedItem) for tracked, _ in chunk)
                del work[: len(chunk)]
            waiting = [tracked for tracked, _ in work if isinstance(tracked, TrackedItem)]
            waiting_fixes = [tracked for tracked, _ in work if isinstance(tracked, IssueFix)]
            if not work:
                return counted
        raise ProjectionFailed(
            [FailedRecord("", RuntimeError("other readers kept changing the same statistics"))]
        )

    async def _commit(self, chunk: Sequence[Work], ledger: StatisticsLedger) -> None:
        before = dict(ledger.statistics)
        ledger.changed.clear()
        async with self.db.transaction() as tx:
            for counted, mark in chunk:
                if isinstance(counted, IssueFix):
                    ledger.add({}, counted)
                    continue
                old_shares = {} if mark is None else mark.shares
                ledger.add(share_differences(old_shares, counted.shares), counted.item)
                if mark is None:
                    tx.create(self._new_mark(counted))
                else:
                    tx.put(self._new_mark(counted), when=StatisticsMark.place == mark.place)
            for name in sorted(ledger.changed):
                after = ledger.statistics[name]
                assert after is not None, "a changed statistic exists"
                ledger.statistics[name] = _put_revision(tx, before[name], after)

    def _new_mark(self, tracked: TrackedItem) -> StatisticsMark:
        now = datetime.fromtimestamp(int(self.db.context.clock.now()), UTC)
        return StatisticsMark(
            projector=self.name,
            source=tracked.source,
            kind=tracked.source.partition("/")[0],
            place=tracked.position,
            shares=tracked.shares,
            expires=now + DELETED_MARK_LIFE if tracked.item is None else None,
        )

    async def _try_write_findings(self, version: ReviewVersion) -> int:
        """Create the findings of a version that are still in a blob; if the blob is lost, log it and count the rest."""
        try:
            return await self._write_findings(version)
        except (BlobMissing, BlobDamaged) as error:
            _log.error(
                "Cannot create the findings of version %d of review %s: %s",
                version.version,
                version.review_id,
                error,
            )
            return 0

    async def _remove_deleted(self, snapshot: TableSnapshot) -> int:
        """Take back the shares of items that no longer exist; return how many."""
        known = {tracked.source for tracked in snapshot.items}
        marks = [mark for mark in snapshot.marks.values() if mark.shares and mark.source not in known]
        keys = [item_key(mark.source) for mark in marks]
        items = await self.db.get_many(keys, consistent=True) if keys else []
        deleted = [
            TrackedItem(mark.source, mark.place + "~", None)
            for mark, item in zip(marks, items, strict=True)
            if item is None
        ]
        return await self._count(deleted, ())

    async def _correct_statistics(self, snapshot: TableSnapshot) -> None:
        """Correct statistics that are not the sum of the marks; those that another reader changes meanwhile are checked again."""
        for _ in range(CORRECTIONS_MAX):
            if not snapshot.find_wrong_statistics(snapshot):
                return
            wrong = snapshot.find_wrong_statistics(await self._scan())
            for name, corrected in wrong.items():
                try:
                    async with self.db.transaction() as tx:
                        _put_revision(tx, snapshot.statistics.get(name), corrected)
                except TransactionCancelled as error:
                    if not lost_race(error):
                        raise
            _log.warning("Corrected %d statistics that did not match the counted items", len(wrong))
            snapshot = await self._scan()

    # Reading.

    async def _read_marks(self, sources: Sequence[str]) -> dict[str, StatisticsMark | None]:
        keys = [StatisticsMark.Key(source=source, projector=self.name) for source in sources]
        marks = await self.db.get_many(keys, consistent=True) if keys else []
        return dict(zip(sources, marks, strict=True))

    async def _read_affected(self, work: Sequence[Work]) -> dict[str, Statistic | None]:
        names = list(
            dict.fromkeys(name for tracked, mark in work for name in affected_statistics(tracked, mark))
        )
        statistics: Sequence[Any] = []
        if names:
            statistics = await self.db.get_many([statistic_key(name) for name in names], consistent=True)
        return dict(zip(names, statistics, strict=True))

    async def _read_fixes(self, version: ReviewVersion) -> list[IssueFix]:
        """Return the issues that a version fixed: those of the findings that it resolved."""
        details = version.fix_details
        if details is None or details.fix_version != version.version:
            return []
        keys = [
            ReviewFinding.Key(finding_id=finding_id, review_id=version.review_id)
            for finding_id in details.resolved
        ]
        findings = await self.db.get_many(keys, consistent=True)
        return [IssueFix(finding, details.applied_at) for finding in findings if finding is not None]

    async def _read_items(self, batch: RecordBatch) -> list[TrackedItem]:
        """Return the items of a batch, reading the findings and reviews that its records do not contain."""
        unread = [key for key, finding in batch.findings.items() if finding is None]
        keys = [ReviewFinding.Key(review_id=review, finding_id=finding_id) for review, finding_id in unread]
        findings = await self.db.get_many(keys, consistent=True) if keys else []
        batch.findings.update(zip(unread, findings, strict=True))
        unread_reviews = list(
            dict.fromkeys(
                review
                for (review, _), finding in batch.findings.items()
                if finding is not None and (review in batch.deleted_reviews or review not in batch.reviews)
            )
        )
        review_keys = [Review.Key(review_id=review_id) for review_id in unread_reviews]
        read = await self.db.get_many(review_keys, consistent=True) if review_keys else []
        reviews: dict[str, Review | None] = {
            **batch.reviews,
            **dict(zip(unread_reviews, read, strict=True)),
        }
        for (review, _), finding in batch.findings.items():
            if finding is not None:
                batch.keep_latest(track_finding(finding, reviews[review]))
        return list(batch.items.values())

    async def _scan(self) -> TableSnapshot:
        snapshot = TableSnapshot()
        async for entity in self._scan_entities():
            snapshot.add(entity)
        return snapshot

    async def _scan_entities(self) -> AsyncIterator[Entity]:
        cursor: str | None = None
        while True:
            page = await self.db.scan_table(Reviews, cursor=cursor, consistent=True)
            for entity in page.items:
                yield entity
            cursor = page.cursor
            if cursor is None:
                return


def lost_race(error: TransactionCancelled) -> bool:
    """Return whether a transaction was cancelled because another reader counted the same items."""
    return any(reason.kind in ("exists", "condition") for reason in error.reasons if reason is not None)


def _count_snapshot(snapshot: TableSnapshot) -> StatisticsLedger:
    ledger = StatisticsLedger()
    for tracked in snapshot.items:
        ledger.add(tracked.shares, tracked.item)
    for fix in snapshot.fixes:
        ledger.add({}, fix)
    return ledger


def _is_newer(tracked: TrackedItem, mark: StatisticsMark | None) -> bool:
    """Return whether an item must be counted; a finding that contributes the same as before need not be."""
    if mark is None:
        return True
    unchanged = isinstance(tracked.item, ReviewFinding) and mark.shares == tracked.shares
    return mark.place < tracked.position and not unchanged


def _put_revision(tx: AsyncTransaction, before: Statistic | None, after: Statistic) -> Statistic:
    """Add the next revision of a statistic to a transaction, on condition that `before` is still stored; return it."""
    if before is None:
        first = after.model_copy(update={"revision": 1})
        tx.create(first)
        return first
    revised = after.model_copy(update={"revision": before.revision + 1})
    match revised:
        case StackStats():
            tx.put(revised, when=StackStats.revision == before.revision)
        case DayRisk():
            tx.put(revised, when=DayRisk.revision == before.revision)
        case IssueFrequency():
            tx.put(revised, when=IssueFrequency.revision == before.revision)
        case IssueTotal():
            tx.put(revised, when=IssueTotal.revision == before.revision)
    return revised
