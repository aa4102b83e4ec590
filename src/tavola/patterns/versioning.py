"""Versioning: records of which every state is stored, numbered from 1, with who made it, when and why.

A change is one transaction of three items: it replaces the current record and creates a version and an audit row, on the
condition that the current record is still the one the change started from. So versions are sequential; of two concurrent
changes one wins, and the other gets `VersionConflict`.

Cost: three transactional writes per change. What it gives up: history grows without limit unless `keep` trims it.

    class ReviewFields(Versioned):
        review_id: Attr[str]
        status: Attr[str]

    class Review(ReviewFields, table=Reviews):                              the current one, with the indexes
        class Key(PrimaryKey["Review"], pk="REVIEW#{review_id}", sk="CURRENT"):
            review_id: str

    class ReviewVersion(ReviewFields, table=Reviews, immutable=True):
        class Key(PrimaryKey["ReviewVersion"], pk="HISTORY#{review_id}", sk="VERSION#{version}"):
            review_id: str
            version: int

        class All(Query["ReviewVersion"], on=Key):
            review_id: str
            version: Sort[int] = sort()

    class ReviewAudit(AuditEntry, table=Reviews):                           keyed likewise, AUDIT#{version}
        review_id: Attr[str]
        …

    reviews = Versions(db, Review, ReviewVersion, ReviewAudit)
    review = reviews.create(Review(review_id="r1", status="pending"), by="ann")
    reviews.change(Review.Key(review_id="r1"), done, by="ann", why="checked")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic

from tavola.client.cancellations import TransactionCancelled
from tavola.client.errors import ConditionFailed, ItemMissing
from tavola.client.intents import Intent, Intents
from tavola.client.stored import StoredPage, get_stored, place_of, query_stored, read_stored
from tavola.model import ItemUnreadable, PrimaryKey, Selection
from tavola.patterns.audit import ChangeKind, Difference, Problem, Verification, Walk, differences
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Slice,
    call_client,
    query_all,
    recipe_method,
    sleep,
    write_together,
)
from tavola.patterns.records import A, E, Edit, R, Records, V

_LOOKS_MAX = 4  # how often a record that is changed meanwhile is verified from the start


class VersionConflict(ConditionFailed):
    """A change of a version that is no longer current; `winner` is the current one."""

    def __init__(self, what: str, expected: int, winner: Any) -> None:
        self.expected = expected
        self.winner = winner
        super().__init__(what, winner)

    def _sentence(self) -> str:
        if self.winner is None:
            return f"{self.what} was changed at the same time; read it again and repeat the change"
        if self.expected == 0:
            return f"{self.what} exists already, in version {self.winner.version}; change that one"
        return (
            f"{self.what} was changed from version {self.expected}, and is version {self.winner.version} by now, made by "
            f"{self.winner.changed_by!r}; read it again and repeat the change"
        )


class HistoryAhead(VersionConflict):
    """A change whose version number exists already: the current record is older than its history, or missing."""

    def _sentence(self) -> str:
        stands = f"is version {self.expected}" if self.expected else "is not there"
        return (
            f"{self.what} {stands}, and its history has a version {self.expected + 1} already: the current record was set back "
            "past the library. Nothing can be changed before that is mended; verify it, and restore the record from its last version"
        )


@dataclass(frozen=True, slots=True)
class Staged(Generic[R]):
    """A change added to a transaction: the record as it will be, and the write that fails if the record has changed meanwhile."""

    record: R
    expected: int  # the version that it was made from
    intent: Intent[R]
    kept: tuple[Intent[Any], ...] = ()  # of the version and the audit row


class Versions(Recipe[D_co], Generic[D_co, R, V, A]):
    """Records of one kind.

    With `keep`, the latest so many versions of each are kept, and each change deletes the one that is too many; audit
    rows stay. With `chained`, audit rows are sealed one to the next, and `verify` sees whether anything was touched;
    with a `secret`, nobody can make the seals again who may only write to the table. Rows name the secret that sealed
    them, so one that was lost or is another one is told from a row that was altered.
    """

    def __init__(
        self,
        db: D_co,
        record: type[R],
        version: type[V],
        audit: type[A],
        *,
        keep: int | None = None,
        chained: bool = False,
        secret: bytes | None = None,
    ) -> None:
        super().__init__(db)
        self.records: Records[R, V, A] = Records(record, version, audit)
        if keep is not None and keep < 1:
            raise RecipeRefused(
                version.__name__, f"keep={keep} would keep none; give 1 or more, or None for all"
            )
        self.keep = keep
        self.chained = chained or secret is not None
        self._secret = secret

    # Changing.

    @recipe_method
    def create(self, /, record: R, *, by: str, why: str = "", **more: Any) -> PatternProgram[R]:
        """Store a new record as version 1 and return it; `more` is fields of your own in the audit row."""
        return (yield from self._write(None, record, Edit("created", by, why, self._now(), more)))

    @recipe_method
    def revise(self, /, record: R, *, by: str, why: str = "", **more: Any) -> PatternProgram[R]:
        """Store a record that was read and edited as its next version; one that is late is a `VersionConflict`.

        Where nothing differs, nothing is written and the current one is returned.
        """
        before = yield from self._current(self.records.key_of(record))
        if before.version != record.version:
            raise VersionConflict(self.records.describe(record), record.version, before)
        return (yield from self._write(before, record, Edit("changed", by, why, self._now(), more)))

    @recipe_method
    def change(
        self,
        /,
        key: PrimaryKey[R],
        edit: Callable[[R], R | None],
        *,
        by: str,
        why: str = "",
        attempts: int = 1,
        **more: Any,
    ) -> PatternProgram[R]:
        """Read a record, edit it and store it as its next version; `edit` returns another, or alters the one it is given.

        Who is overtaken is told by a `VersionConflict`; with more `attempts`, the edit is made again of what won.
        """

        def edited(before: R) -> PatternProgram[R]:
            given = before.model_copy(deep=True)
            told = edit(given)
            after = given if told is None else told
            return (yield from self._write(before, after, Edit("changed", by, why, self._now(), more)))

        return (yield from self._retry_conflicts(key, edited, attempts))

    @recipe_method
    def restore(
        self, /, key: PrimaryKey[R], version: int, *, by: str, why: str = "", attempts: int = 1, **more: Any
    ) -> PatternProgram[R]:
        """Store the content of an old version as the next one and return it; what came between stays as it is."""
        after = self.records.validate((yield from self._version(key, version)))

        def restored(before: R) -> PatternProgram[R]:
            edit = Edit("restored", by, why, self._now(), more, version)
            return (yield from self._write(before, self.records.restore_content(before, after), edit))

        return (yield from self._retry_conflicts(key, restored, attempts))

    def stage(
        self, /, tx: Intents, before: R | None, after: R, *, by: str, why: str = "", **more: Any
    ) -> Staged[R]:
        """Add a change to a transaction of yours, which does or leaves it with everything else in it.

        `before` is the current record as it was read, None for a new one. Where the transaction is cancelled, `conflict`
        tells whether this change was the reason.
        """
        kind: ChangeKind = "created" if before is None else "changed"
        return self._stage(tx, before, after, Edit(kind, by, why, self._now(), more))

    def rows(
        self, /, before: R | None, after: R, *, by: str, why: str = "", at: datetime, **more: Any
    ) -> tuple[R, V, A]:
        """Return the items that a change would write: the current record, the version and the audit row.

        For who loads a history that was made elsewhere, at its own times: each version with its audit row, and of the
        current ones the last.
        """
        kind: ChangeKind = "created" if before is None else "changed"
        edit = Edit(kind, by, why, at, more)
        return self.records.make_items(before, after, edit, chained=self.chained, secret=self._secret)

    def conflict(self, error: TransactionCancelled, staged: Staged[R]) -> VersionConflict | None:
        """Return the conflict for which a transaction was cancelled, None if it was for something else."""
        reason = error.failed.get(staged.intent)
        if reason is not None and reason.kind in ("condition", "exists"):
            return VersionConflict(self.records.describe(staged.record), staged.expected, reason.item)
        ahead = [told for each in staged.kept if (told := error.failed.get(each)) is not None]
        if any(told.kind == "exists" for told in ahead):
            return HistoryAhead(self.records.describe(staged.record), staged.expected, None)
        return None

    # Reading.

    @recipe_method
    def latest(self, key: PrimaryKey[R]) -> PatternProgram[R | None]:
        """Return the current record, None if there is none."""
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    @recipe_method
    def version(self, key: PrimaryKey[R], version: int) -> PatternProgram[V | None]:
        """Return one version, None if there is none, or none any more."""
        return (
            yield from call_client(lambda db: db.get(self.records.version_row(key, version), consistent=True))
        )

    @recipe_method
    def versions(
        self, key: PrimaryKey[R], *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[V]]:
        """Return the versions of a record, newest first: so many and a cursor for more, or all of them."""
        asked = self.records.versions(**self.records.identity(key))
        return (yield from _query_slice(asked, limit, cursor, consistent=True))

    @recipe_method
    def diff(self, key: PrimaryKey[R], one: int, other: int) -> PatternProgram[tuple[Difference, ...]]:
        """Return what is not the same in two versions, place by place; version 0 is nothing."""
        before = yield from self._content(key, one)
        after = yield from self._content(key, other)
        return differences(before, after)

    @recipe_method
    def history(
        self, key: PrimaryKey[R], *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[A]]:
        """Return who changed a record, when, why and what, newest first: so many and a cursor, or all of it."""
        asked = self.records.history(**self.records.identity(key))
        return (yield from _query_slice(asked, limit, cursor, consistent=True))

    @recipe_method
    def by_actor(
        self,
        actor: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PatternProgram[Slice[A]]:
        """Return what somebody changed, in whatever records, newest first, from one moment to another.

        So many and a cursor, or all of it. It is asked of an index, where a change shows a moment later.
        """
        query = self.records.by_actor
        if query is None:
            raise RecipeRefused(
                self.records.audit.__name__,
                "what somebody changed needs a query; declare one on an index with actor as its argument and at as its "
                "first sort part",
            )
        asked: Any = query(actor=actor)
        if since is not None and until is not None:
            asked = asked.at.between(since, until)
        elif since is not None:
            asked = asked.at.gte(since)
        elif until is not None:
            asked = asked.at.lte(until)
        return (yield from _query_slice(asked, limit, cursor))

    # Keeping.

    @recipe_method
    def prune(self, key: PrimaryKey[R]) -> PatternProgram[int]:
        """Delete the versions that are more than `keep` says and return how many; for when it was made less."""
        current = yield from self._current(key)
        if self.keep is None:
            return 0
        asked: Any = self.records.versions(**self.records.identity(key))
        over = asked.version.lte(current.version - self.keep)
        rows = yield from query_all(lambda db, cursor: db.query(over, cursor=cursor))
        for row in rows:
            yield from self._erase_version(self.records.version_row(key, row.version))
        return len(rows)

    @recipe_method
    def verify(
        self, key: PrimaryKey[R], *, look: Callable[[V], object] | None = None
    ) -> PatternProgram[Verification]:
        """Read a whole record and tell what is not as it was written.

        Every number has its audit row, and its version unless it was pruned; the current one is the last version, and
        nothing else stands in the history. Where rows are chained, every seal is worked out again of what stands in the
        table. `look` is given each version that was read, for what you have to ask of it yourself.

        What is not stored cannot be missed: who takes away the last version, its audit row and the current record's step
        to it leaves a record that is whole. Keep the last seal elsewhere, it shows that too.
        """
        (current,) = yield from self._items([key])
        for _ in range(_LOOKS_MAX - 1):
            told, seen = yield from self._verify_versions(key, current)
            if told:
                break
            (after,) = yield from self._items([key])
            if after == current:
                break
            current = after  # it was changed while it was read
        if look is not None:
            for item in seen:
                with suppress(ItemUnreadable):  # which was altered, and is told so
                    look(read_stored(self.records.version, item))
        return told

    def _verify_versions(
        self, key: PrimaryKey[R], current: dict[str, Any] | None
    ) -> PatternProgram[tuple[Verification, list[dict[str, Any]]]]:
        """Walk along the history of a record; return what was found, and the versions that belong to it."""
        shape, version, audit = self.records.shapes
        last = 0 if current is None else int(current[shape.fields["version"].attribute]["N"])
        entries, astray = yield from self._rows_by_version(
            self.records.history(**self.records.identity(key)), self.records.audit_row, key, last,
            audit.fields["version"].attribute,
        )  # fmt: skip
        versions, more = yield from self._rows_by_version(
            self.records.versions(**self.records.identity(key)), self.records.version_row, key, last, version.fields["version"].attribute,
        )  # fmt: skip
        if current is None:
            what = "there is no such record"
            if astray or more:
                what = "the current record is gone, and its history is there"
            return Verification(0, None, None, (Problem(0, what),)), []
        walk = Walk(self.records.shapes, self._secret, chained=self.chained, keep=self.keep, last=last)
        for number in range(1, last + 1):
            walk.one(number, versions.get(number), entries.get(number))
        walk.current(current)
        for number in more:
            walk.astray(number, version=True)
        for number in astray:
            walk.astray(number, version=False)
        return walk.over(), list(versions.values())

    def _rows_by_version(
        self,
        asked: Any,
        row: Callable[[PrimaryKey[R], int], PrimaryKey[Any]],
        key: PrimaryKey[R],
        last: int,
        counted: str,
    ) -> PatternProgram[tuple[dict[int, dict[str, Any]], list[int]]]:
        """Return the items of a history by the numbers that their keys are of, and the numbers of those of no key."""
        places = [place_of(row(key, number)) for number in range(1, last + 1)]
        numbers = {_key_text(place): number for number, place in enumerate(places, 1)}
        names = place_of(row(key, 1)).keys()
        found: dict[int, dict[str, Any]] = {}
        astray: list[int] = []
        after: dict[str, Any] | None = None
        while True:
            page = yield from self._page(asked, after)
            for item in page.items:
                number = numbers.get(_key_text({name: item[name] for name in names}))
                if number is None:
                    astray.append(int(item.get(counted, {}).get("N", 0)))
                else:
                    found[number] = item
            after = page.after
            if after is None:
                return found, astray

    def _page(self, asked: Any, after: dict[str, Any] | None) -> PatternProgram[StoredPage]:
        return (yield from call_client(lambda db: db.run(query_stored(db.context, asked, after))))

    # How.

    def _write(self, before: R | None, after: R, edit: Edit) -> PatternProgram[R]:
        after = self.records.validate(after)
        if before is not None and self._alike(before, after):
            return before
        told: list[Staged[R]] = []
        try:
            yield from write_together(lambda tx: told.append(self._stage(tx, before, after, edit)))
        except TransactionCancelled as error:
            conflict = self.conflict(error, told[0])
            if conflict is None:
                raise
            raise conflict from error
        return told[0].record

    def _alike(self, before: R, after: R) -> bool:
        records = self.records
        same = records.identity(before) == records.identity(after) and records.life(before) == records.life(
            after
        )
        return same and not differences(records.content(before), records.content(after))

    def _stage(self, tx: Intents, before: R | None, after: R, edit: Edit) -> Staged[R]:
        current, version, entry = self.records.make_items(
            before, after, edit, chained=self.chained, secret=self._secret
        )
        expected = 0 if before is None else before.version
        if before is None:
            intent = tx.create(current)
        else:
            intent = tx.put(current, when=self.records.current.version == expected)
        kept = (tx.create(version), tx.create(entry))
        if self.keep is not None and current.version > self.keep:
            tx.delete(self.records.version_row(current, current.version - self.keep), erase=True)
        return Staged(current, expected, intent, kept)

    def _retry_conflicts(
        self, key: PrimaryKey[R], write: Callable[[R], PatternProgram[R]], attempts: int
    ) -> PatternProgram[R]:
        attempt = 1
        while True:
            before = yield from self._current(key)
            try:
                return (yield from write(before))
            except VersionConflict:
                if attempt >= attempts:
                    raise
            yield from sleep(self.retry_policy.pause_s(attempt))
            attempt += 1

    def _current(self, key: PrimaryKey[R]) -> PatternProgram[R]:
        current = yield from call_client(lambda db: db.get(key, consistent=True))
        if current is None:
            raise ItemMissing(self.records.describe(key))
        return current

    def _version(self, key: PrimaryKey[R], version: int) -> PatternProgram[V]:
        row = yield from call_client(
            lambda db: db.get(self.records.version_row(key, version), consistent=True)
        )
        if row is None:
            raise ItemMissing(f"Version {version} of {self.records.describe(key)}")
        return row

    def _content(self, key: PrimaryKey[R], version: int) -> PatternProgram[dict[str, Any]]:
        return {} if version == 0 else self.records.content((yield from self._version(key, version)))

    def _erase_version(self, key: PrimaryKey[V]) -> PatternProgram[None]:
        yield from call_client(lambda db: db.delete(key, erase=True))

    def _items(self, keys: Sequence[PrimaryKey[Any]]) -> PatternProgram[list[dict[str, Any] | None]]:
        """Return items as they stand in their tables; an entity would tell its fields alone, and upgraded."""
        return (yield from call_client(lambda db: db.run(get_stored(db.context, keys))))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)


def _key_text(place: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where an item stands, to look it up by."""
    return tuple(str(next(iter(value.values()))) for value in place.values())


def _query_slice(
    asked: Selection[E], limit: int | None, cursor: str | None, *, consistent: bool | None = None
) -> PatternProgram[Slice[E]]:
    """Return so many, newest first, and a cursor for more; all of them where neither a limit nor a cursor is given."""
    if limit is None and cursor is None:
        found = yield from query_all(
            lambda db, place: db.query(asked, cursor=place, newest_first=True, consistent=consistent)
        )
        return Slice(tuple(found), None)
    page = yield from call_client(
        lambda db: db.query(
            asked, limit=limit or 100, cursor=cursor, newest_first=True, consistent=consistent
        )
    )
    return Slice(tuple(page.items), page.cursor)
