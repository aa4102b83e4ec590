"""The projector: statistics kept by the table's stream, exact however often a record comes.

For each review and each finding there is a mark, which says what it has added to statistics and how far in its life it was then. A
change renews the mark and changes the statistics by the difference, in one transaction: so at every moment they are the sum of the
marks. Reviews have version numbers, and a finding is as far as its review: it is open while that one names it. So a mark needs no place in the
stream to know what is older: a record that comes again, late or out of order is no newer than its mark and changes nothing.

`tavola.patterns.Projector` keeps numbers, one an item. Here they are fields of entities that also sort by them and tell facts, so this
one is written out, on the same marks and with the same face.
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
    Counted,
    DayRisk,
    Finding,
    IssueFrequency,
    IssueTotal,
    Review,
    Reviews,
    ReviewVersion,
    StackStats,
)
from tavola.apps.terraform_review.numbers import Fixed, Statistic, changes, key_of, names_of
from tavola.apps.terraform_review.standings import (
    Batch,
    Found,
    Sheet,
    Standing,
    Work,
    item_key,
    packed,
    standing_of,
)
from tavola.patterns import BlobDamaged, BlobMissing, FailedRecord, Projected, ProjectionFailed, Rebuilt

KEEP = timedelta(days=7)  # the mark of what is gone, while an old record may still come again
SETTLED_MAX = 3  # how often statistics are put right in one rebuild
ROUNDS_MAX = 8  # how often a batch is worked out again that another reader was faster with

_READ = (Review, Finding, ReviewVersion)

Complete = Callable[[ReviewVersion], Awaitable[int]]

_log = logging.getLogger("tavola.apps")


class ReviewProjector:
    """Statistics about reviews and findings; `complete` makes items of findings that did not fit beside their review."""

    table = Reviews
    mark = Counted
    name = "statistics"

    def __init__(self, db: AsyncConnection, complete: Complete) -> None:
        self.db = db
        self._complete = complete

    async def handler(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """Count the records of an event, as a Lambda function; those that fail are reported, and come again."""
        done = await self.apply(changes_of(Reviews, event))
        return {"batchItemFailures": [{"itemIdentifier": each.sequence} for each in done.failed]}

    async def apply(self, given: Iterable[AnyChange]) -> Projected:
        """Count changes; what is known already changes nothing."""
        batch = Batch()
        failed: list[FailedRecord] = []
        fixes: list[Fixed] = []
        for change in given:
            if isinstance(change, RawChange):
                if change.entity in _READ and change.problem is not None:
                    failed.append(FailedRecord(change.sequence, change.problem))
                continue
            item = change.old if change.kind == "removed" else change.new
            if isinstance(item, Review):
                batch.review(item, change.old, gone=change.kind == "removed")
            elif isinstance(item, Finding):
                batch.finding(item, gone=change.kind == "removed")
            elif isinstance(item, ReviewVersion) and change.kind != "removed":
                await self._completed(item)
                fixes += await self._fixes(item)
        standings = await self._standings(batch)
        renewed = await self._count(standings, fixes)
        return Projected(renewed, len(standings) - renewed, tuple(failed))

    async def follow(self, subscription: AsyncSubscription) -> int:
        """Count what a subscription gives until it ends, and return how many changes that were."""
        seen = 0
        while (batch := await subscription.take()) is not None:
            done = await self.apply(batch.changes)
            if done.failed:
                raise ProjectionFailed(done.failed)
            seen += len(batch)
        return seen

    async def recount(self) -> dict[str, Statistic]:
        """Return what the statistics come to by the items themselves, reading the whole table; nothing is written."""
        found = await self._all()
        sheet = Sheet()
        for standing in found.standings:
            sheet.add(standing.shares, standing.item)
        for fix in found.fixes:
            sheet.add({}, fix)
        return {name: entity for name, entity in sheet.standing.items() if entity is not None}

    async def kept(self) -> dict[str, Statistic]:
        """Return the statistics as they stand, reading the whole table; of some nothing is counted any more."""
        return (await self._all()).statistics

    async def rebuild(self) -> Rebuilt:
        """Bring the statistics to what the table says, reading all of it; the stream may be read meanwhile.

        Findings that are yet to be made items are made. Marks that are missing, or of something else than the items are now, are renewed. Then
        statistics that are not the sum of the marks, because one was lost or somebody wrote to it, are put right.
        """
        found = await self._all()
        if sum([await self._completed(version) for version in found.halves]):
            found = await self._all()
        wanted: list[Standing] = []
        for standing in found.standings:
            mark = found.marks.get(standing.source)
            if mark is None:
                wanted.append(standing)
            elif mark.shares != standing.shares and mark.place.rstrip("+") <= standing.place:
                # Of the same state it adds something else now: a little further than the mark, and before the next state.
                place = standing.place if mark.place < standing.place else mark.place + "+"
                wanted.append(replace(standing, place=place))
        renewed = 0
        for at in range(0, len(wanted), 1000):
            renewed += await self._count(wanted[at : at + 1000], ())
        await self._count((), found.fixes)
        removed = await self._release(found)
        if renewed or removed:
            found = await self._all()
        await self._settle(found)
        return Rebuilt(renewed, removed)

    async def fill(self, items: Iterable[Review | Finding | ReviewVersion] | None = None) -> int:
        """Write the statistics of a table that has none yet, in batches, and return of how many items.

        For a table that was just loaded, while nobody reads its stream: there are no conditions in a batch. `items` are those that
        were loaded, in any order; without them the table is read.
        """
        if items is None:
            found = await self._all()
        else:
            found = Found()
            for item in items:
                found.add(item)
        sheet = Sheet()
        for standing in found.standings:
            sheet.add(standing.shares, standing.item)
        for fix in found.fixes:
            sheet.add({}, fix)
        marks = [self._mark(standing) for standing in found.standings]
        told = [entity.model_copy(update={"revision": 1}) for entity in sheet.standing.values() if entity]
        await self.db.put_many([*marks, *told])
        return len(marks)

    # How.

    async def _count(self, standings: Sequence[Standing], fixes: Sequence[Fixed]) -> int:
        """Renew marks, and the statistics by that; return how many were not known."""
        wanted, facts, renewed = list(standings), list(fixes), 0
        for _ in range(ROUNDS_MAX):
            marks = await self._marks([each.source for each in wanted])
            work: list[Work] = [
                (each, marks[each.source]) for each in wanted if _news(each, marks[each.source])
            ]
            work += [(fix, None) for fix in facts]
            sheet = Sheet(await self._statistics(work))
            while work:
                some = packed(work)
                try:
                    await self._commit(some, sheet)
                except TransactionCancelled as error:
                    if not overtaken(error):
                        raise
                    break  # somebody else counts as well: look again
                renewed += sum(isinstance(told, Standing) for told, _ in some)
                del work[: len(some)]
            wanted = [told for told, _ in work if isinstance(told, Standing)]
            facts = [told for told, _ in work if isinstance(told, Fixed)]
            if not work:
                return renewed
        raise ProjectionFailed([FailedRecord("", RuntimeError("other readers were faster each time"))])

    async def _commit(self, some: Sequence[Work], sheet: Sheet) -> None:
        before = dict(sheet.standing)
        sheet.touched.clear()
        async with self.db.transaction() as tx:
            for told, mark in some:
                if isinstance(told, Fixed):
                    sheet.add({}, told)
                    continue
                sheet.add(changes({} if mark is None else mark.shares, told.shares), told.item)
                renewed = self._mark(told)
                if mark is None:
                    tx.create(renewed)
                else:
                    tx.put(renewed, when=Counted.place == mark.place)
            for name in sorted(sheet.touched):
                was, now = before[name], sheet.standing[name]
                assert now is not None, "what was counted is there"
                revised = now.model_copy(update={"revision": 1 if was is None else was.revision + 1})
                sheet.standing[name] = revised
                if was is None:
                    tx.create(revised)
                else:
                    _put(tx, revised, was.revision)

    def _mark(self, standing: Standing) -> Counted:
        gone = standing.item is None
        now = datetime.fromtimestamp(int(self.db.context.clock.now()), UTC)
        return Counted(
            projector=self.name,
            source=standing.source,
            kind=standing.source.partition("/")[0],
            place=standing.place,
            shares=standing.shares,
            expires=now + KEEP if gone else None,
        )

    async def _marks(self, sources: Sequence[str]) -> dict[str, Counted | None]:
        keys = [Counted.Key(source=source, projector=self.name) for source in sources]
        found = await self.db.get_many(keys, consistent=True) if keys else []
        return dict(zip(sources, found, strict=True))

    async def _statistics(self, work: Sequence[Work]) -> dict[str, Statistic | None]:
        names: dict[str, None] = {}
        for told, mark in work:
            telling = told if isinstance(told, Fixed) else told.item
            for name in (*(mark.shares if mark else ()), *(names_of(telling) if telling else ())):
                names[name] = None
        found: Sequence[Any] = []
        if names:
            found = await self.db.get_many([key_of(name) for name in names], consistent=True)
        return dict(zip(names, found, strict=True))

    async def _fixes(self, version: ReviewVersion) -> list[Fixed]:
        """Return which issues a version fixed: those of the findings that it resolved."""
        details = version.fix_details
        if details is None or details.fix_version != version.version:
            return []
        keys = [Finding.Key(finding_id=each, review_id=version.review_id) for each in details.resolved]
        found = await self.db.get_many(keys, consistent=True)
        return [Fixed(finding, details.applied_at) for finding in found if finding is not None]

    async def _standings(self, batch: Batch) -> list[Standing]:
        """Return what the items of a batch have come to; what it does not tell of them is read."""
        unread = [key for key, finding in batch.findings.items() if finding is None]
        keys = [Finding.Key(review_id=review, finding_id=ident) for review, ident in unread]
        read = await self.db.get_many(keys, consistent=True) if keys else []
        batch.findings.update(zip(unread, read, strict=True))
        asked = list(
            dict.fromkeys(
                review
                for (review, _), finding in batch.findings.items()
                if finding is not None and (review in batch.gone or review not in batch.reviews)
            )
        )
        others = (
            await self.db.get_many([Review.Key(review_id=each) for each in asked], consistent=True)
            if asked
            else []
        )
        reviews: dict[str, Review | None] = {**batch.reviews, **dict(zip(asked, others, strict=True))}
        for (review, _), finding in batch.findings.items():
            if finding is not None:
                told = standing_of(finding, reviews[review])
                standing = batch.standings.get(told.source)
                if standing is None or standing.place <= told.place:
                    batch.standings[told.source] = told
        return list(batch.standings.values())

    async def _completed(self, version: ReviewVersion) -> int:
        """Make the findings of a version items; where what they are kept in is gone, nobody can, and the rest is counted all the same."""
        try:
            return await self._complete(version)
        except (BlobMissing, BlobDamaged) as error:
            _log.error(
                "Findings of version %d of the review %s cannot be made: %s",
                version.version,
                version.review_id,
                error,
            )
            return 0

    async def _settle(self, found: Found) -> None:
        """Put statistics right that are not the sum of the marks; the ones that are counted meanwhile are looked at again."""
        for _ in range(SETTLED_MAX):
            if not found.wrong(found):
                return
            wrong = found.wrong(await self._all())
            for name, right in wrong.items():
                was = found.statistics.get(name)
                revised = right.model_copy(update={"revision": 1 if was is None else was.revision + 1})
                try:
                    async with self.db.transaction() as tx:
                        if was is None:
                            tx.create(revised)
                        else:
                            _put(tx, revised, was.revision)
                except TransactionCancelled as error:
                    if not overtaken(error):
                        raise
            _log.warning("%d statistics were not the sum of what was counted, and were put right", len(wrong))
            found = await self._all()

    async def _scanned(self) -> AsyncIterator[Entity]:
        cursor: str | None = None
        while True:
            page = await self.db.scan_table(Reviews, cursor=cursor, consistent=True)
            for entity in page.items:
                yield entity
            cursor = page.cursor
            if cursor is None:
                return

    async def _all(self) -> Found:
        """Read the whole table, once."""
        found = Found()
        async for entity in self._scanned():
            found.add(entity)
        return found

    async def _release(self, found: Found) -> int:
        """Take back what items added that are gone; return how many."""
        known = {standing.source for standing in found.standings}
        left = [mark for mark in found.marks.values() if mark.shares and mark.source not in known]
        items = (
            await self.db.get_many([item_key(mark.source) for mark in left], consistent=True) if left else []
        )
        gone = [
            Standing(mark.source, mark.place + "~", None)
            for mark, item in zip(left, items, strict=True)
            if item is None
        ]
        return await self._count(gone, ())


def _news(standing: Standing, mark: Counted | None) -> bool:
    """Return whether a standing is newer than its mark; a finding tells nothing more where it adds the same."""
    if mark is None:
        return True
    same = isinstance(standing.item, Finding) and mark.shares == standing.shares
    return mark.place < standing.place and not same


def overtaken(error: TransactionCancelled) -> bool:
    """Return whether a transaction was cancelled because somebody else counts as well."""
    return any(reason.kind in ("exists", "condition") for reason in error.reasons if reason is not None)


def _put(tx: AsyncTransaction, revised: Statistic, revision: int) -> None:
    """Store a statistic over the one that was read."""
    match revised:
        case StackStats():
            tx.put(revised, when=StackStats.revision == revision)
        case DayRisk():
            tx.put(revised, when=DayRisk.revision == revision)
        case IssueFrequency():
            tx.put(revised, when=IssueFrequency.revision == revision)
        case IssueTotal():
            tx.put(revised, when=IssueTotal.revision == revision)
