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

from tavola.client.errors import ConditionFailed, ItemMissing
from tavola.client.stored import StoredPage, get_stored, primary_key, query_stored, read_stored
from tavola.client.transactions import Intents, TransactionCancelled
from tavola.client.writes import Intent
from tavola.model import ItemUnreadable, PrimaryKey
from tavola.patterns.audit import (
    ChangeKind,
    Difference,
    HistoryCheck,
    HistoryProblem,
    Verification,
    differences,
)
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Slice,
    call_client,
    query_all,
    query_slice,
    recipe_method,
    sleep,
    write_together,
)
from tavola.patterns.records import A, Edit, R, Records, V

_READS_MAX = 4  # how often `verify` starts again because the record changed meanwhile


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

    code = "history-ahead"

    def _sentence(self) -> str:
        current = f"is version {self.expected}" if self.expected else "is not there"
        return (
            f"{self.what} {current}, and its history has a version {self.expected + 1} already: the current record was set back "
            "past the library. Repair the record before you change it: run verify(), and restore it from its last version"
        )


@dataclass(frozen=True, slots=True)
class Staged(Generic[R]):
    """A change added to a transaction: the record as it will be, and the write that fails if the record has changed meanwhile."""

    record: R
    expected: int  # the version that the change starts from
    intent: Intent[R]
    kept: tuple[Intent[Any], ...] = ()  # the version and the audit row


class Versions(Recipe[D_co], Generic[D_co, R, V, A]):
    """Versioned records of one type.

    With `keep`, only that number of versions stays for each record: a change also deletes the oldest one; audit rows stay.
    With `chained`, each audit row contains the digest of the row before, and `verify` finds altered, removed and inserted
    rows. With a `secret`, a writer without the secret cannot compute the digests. Rows name the secret that signed them, so
    `verify` can tell a different secret from an altered row.
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
                version.__name__, f"keep={keep} would keep no version; use 1 or more, or None for all"
            )
        self.keep = keep
        self.chained = chained or secret is not None
        self._secret = secret

    # Changes.

    @recipe_method
    def create(self, /, record: R, *, by: str, why: str = "", **more: Any) -> PatternProgram[R]:
        """Store a new record as version 1 and return it; `more` sets your own fields of the audit row."""
        return (yield from self._write(None, record, Edit("created", by, why, self._now(), more)))

    @recipe_method
    def revise(self, /, record: R, *, by: str, why: str = "", **more: Any) -> PatternProgram[R]:
        """Store an edited record as its next version; raise `VersionConflict` if it is no longer the current version.

        If nothing differs, write nothing and return the current record.
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
        """Read a record, edit it and store it as its next version; `edit` returns a new record or alters its argument.

        Raise `VersionConflict` if the record changed meanwhile; with more `attempts`, first repeat the edit on the new version.
        """

        def write_edit(before: R) -> PatternProgram[R]:
            copy = before.model_copy(deep=True)
            returned = edit(copy)
            after = copy if returned is None else returned
            return (yield from self._write(before, after, Edit("changed", by, why, self._now(), more)))

        return (yield from self._retry_conflicts(key, write_edit, attempts))

    @recipe_method
    def restore(
        self, /, key: PrimaryKey[R], version: int, *, by: str, why: str = "", attempts: int = 1, **more: Any
    ) -> PatternProgram[R]:
        """Store the content of an old version as the next one and return it; the versions between stay.

        The record keeps its current expiry, not that of the old version.
        """
        content = self.records.validate((yield from self._version(key, version)))

        def write_restored(before: R) -> PatternProgram[R]:
            edit = Edit("restored", by, why, self._now(), more, version)
            return (
                yield from self._write(before, content.model_copy(update=self.records.life(before)), edit)
            )

        return (yield from self._retry_conflicts(key, write_restored, attempts))

    def stage(
        self, /, tx: Intents, before: R | None, after: R, *, by: str, why: str = "", **more: Any
    ) -> Staged[R]:
        """Add a change to your transaction, to be committed or cancelled with the rest of it.

        `before` is the current record as you read it, None for a new one. If the transaction is cancelled, `conflict` says
        whether this change was the reason.
        """
        kind: ChangeKind = "created" if before is None else "changed"
        return self._stage(tx, before, after, Edit(kind, by, why, self._now(), more))

    def rows(
        self, /, before: R | None, after: R, *, by: str, why: str = "", at: datetime, **more: Any
    ) -> tuple[R, V, A]:
        """Return the items that a change would write: the current record, the version and the audit row.

        For loading a history made elsewhere, with its own times: write each version with its audit row, and the last of the
        current records.
        """
        kind: ChangeKind = "created" if before is None else "changed"
        edit = Edit(kind, by, why, at, more)
        return self.records.make_items(before, after, edit, chained=self.chained, secret=self._secret)

    def conflict(self, error: TransactionCancelled, staged: Staged[R]) -> VersionConflict | None:
        """Return the conflict that cancelled a transaction, None if the reason was another."""
        reason = error.failed.get(staged.intent)
        if reason is not None and reason.kind in ("condition", "exists"):
            return VersionConflict(self.records.describe(staged.record), staged.expected, reason.item)
        reasons = [reason for write in staged.kept if (reason := error.failed.get(write)) is not None]
        if any(reason.kind == "exists" for reason in reasons):
            return HistoryAhead(self.records.describe(staged.record), staged.expected, None)
        return None

    # Reads.

    @recipe_method
    def latest(self, key: PrimaryKey[R]) -> PatternProgram[R | None]:
        """Return the current record, None if it does not exist."""
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    @recipe_method
    def version(self, key: PrimaryKey[R], version: int) -> PatternProgram[V | None]:
        """Return one version, None if it does not exist or was pruned."""
        return (
            yield from call_client(lambda db: db.get(self.records.version_row(key, version), consistent=True))
        )

    @recipe_method
    def versions(
        self, key: PrimaryKey[R], *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[V]]:
        """Return versions of a record, newest first: all, or with `limit` one page and a cursor for the next."""
        query = self.records.versions(**self.records.identity(key))
        return (yield from query_slice(query, limit, cursor, newest_first=True, consistent=True))

    @recipe_method
    def diff(self, key: PrimaryKey[R], one: int, other: int) -> PatternProgram[tuple[Difference, ...]]:
        """Return the differences between two versions, by path; version 0 is an empty record."""
        before = yield from self._content(key, one)
        after = yield from self._content(key, other)
        return differences(before, after)

    @recipe_method
    def history(
        self, key: PrimaryKey[R], *, limit: int | None = None, cursor: str | None = None
    ) -> PatternProgram[Slice[A]]:
        """Return the audit rows of a record, newest first: all, or with `limit` one page and a cursor for the next."""
        query = self.records.history(**self.records.identity(key))
        return (yield from query_slice(query, limit, cursor, newest_first=True, consistent=True))

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
        """Return one actor's changes to any record in a time range, newest first.

        All, or with `limit` one page and a cursor for the next. It queries an index, which shows a change a moment later.
        """
        query_class = self.records.by_actor
        if query_class is None:
            raise RecipeRefused(
                self.records.audit.__name__,
                "listing changes by actor needs a query; declare one on an index with actor as its argument and at as its "
                "first sort part",
            )
        query: Any = query_class(actor=actor)
        if since is not None and until is not None:
            query = query.at.between(since, until)
        elif since is not None:
            query = query.at.gte(since)
        elif until is not None:
            query = query.at.lte(until)
        return (yield from query_slice(query, limit, cursor, newest_first=True))

    # Retention and verification.

    @recipe_method
    def prune(self, key: PrimaryKey[R]) -> PatternProgram[int]:
        """Delete versions in excess of `keep` and return their number; needed only after `keep` was lowered."""
        current = yield from self._current(key)
        if self.keep is None:
            return 0
        query: Any = self.records.versions(**self.records.identity(key))
        excess = query.version.lte(current.version - self.keep)
        rows = yield from query_all(lambda db, cursor: db.query(excess, cursor=cursor))
        for row in rows:
            yield from self._erase_version(self.records.version_row(key, row.version))
        return len(rows)

    @recipe_method
    def verify(
        self, key: PrimaryKey[R], *, look: Callable[[V], object] | None = None
    ) -> PatternProgram[Verification]:
        """Read a record with its whole history and report everything that differs from what was written.

        Each version number must have its audit row, and its version unless that was pruned; the current record must equal the
        last version; no other row may exist. If rows are chained, every digest is recomputed from the stored items. `look` is
        called with each version, for checks of your own.

        Removal of the newest rows leaves no trace: if the last version, its audit row and the current record's change are all
        undone, the record verifies. Store the last digest elsewhere to detect that.
        """
        (current,) = yield from self._items([key])
        for _ in range(_READS_MAX - 1):
            result, stored = yield from self._verify_versions(key, current)
            if result:
                break
            (after,) = yield from self._items([key])
            if after == current:
                break
            current = after  # it changed during the reads
        if look is not None:
            for item in stored:
                with suppress(ItemUnreadable):  # an altered item, reported already
                    look(read_stored(self.records.version, item))
        return result

    def _verify_versions(
        self, key: PrimaryKey[R], current: dict[str, Any] | None
    ) -> PatternProgram[tuple[Verification, list[dict[str, Any]]]]:
        """Check the history of a record; return the result, and the version items that belong to it."""
        shape, version, audit = self.records.shapes
        last = 0 if current is None else int(current[shape.fields["version"].attribute]["N"])
        entries, stray_rows = yield from self._rows_by_version(
            self.records.history(**self.records.identity(key)), self.records.audit_row, key, last,
            audit.fields["version"].attribute,
        )  # fmt: skip
        versions, stray_versions = yield from self._rows_by_version(
            self.records.versions(**self.records.identity(key)), self.records.version_row, key, last, version.fields["version"].attribute,
        )  # fmt: skip
        if current is None:
            what = "there is no such record"
            if stray_rows or stray_versions:
                what = "the current record is gone, and its history is there"
            return Verification(0, None, None, (HistoryProblem(0, what),)), []
        check = HistoryCheck(
            self.records.shapes, self._secret, chained=self.chained, keep=self.keep, last=last
        )
        for number in range(1, last + 1):
            check.check_version(number, versions.get(number), entries.get(number))
        check.check_current(current)
        for number in stray_versions:
            check.add_stray(number, version=True)
        for number in stray_rows:
            check.add_stray(number, version=False)
        return check.result(), list(versions.values())

    def _rows_by_version(
        self,
        query: Any,
        row: Callable[[PrimaryKey[R], int], PrimaryKey[Any]],
        key: PrimaryKey[R],
        last: int,
        version_attribute: str,
    ) -> PatternProgram[tuple[dict[int, dict[str, Any]], list[int]]]:
        """Return the items of a history by version number, and the numbers of items whose key is not that of a version."""
        keys = [primary_key(row(key, number)) for number in range(1, last + 1)]
        numbers = {_key_text(place): number for number, place in enumerate(keys, 1)}
        names = primary_key(row(key, 1)).keys()
        rows: dict[int, dict[str, Any]] = {}
        strays: list[int] = []
        after: dict[str, Any] | None = None
        while True:
            page = yield from self._page(query, after)
            for item in page.items:
                number = numbers.get(_key_text({name: item[name] for name in names}))
                if number is None:
                    strays.append(int(item.get(version_attribute, {}).get("N", 0)))
                else:
                    rows[number] = item
            after = page.after
            if after is None:
                return rows, strays

    def _page(self, query: Any, after: dict[str, Any] | None) -> PatternProgram[StoredPage]:
        return (yield from call_client(lambda db: db.run(query_stored(db.context, query, after))))

    # Writing.

    def _write(self, before: R | None, after: R, edit: Edit) -> PatternProgram[R]:
        after = self.records.validate(after)
        if before is not None and self._alike(before, after):
            return before
        staged: list[Staged[R]] = []
        try:
            yield from write_together(lambda tx: staged.append(self._stage(tx, before, after, edit)))
        except TransactionCancelled as error:
            conflict = self.conflict(error, staged[0])
            if conflict is None:
                raise
            raise conflict from error
        return staged[0].record

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
        intents = (tx.create(version), tx.create(entry))
        if self.keep is not None and current.version > self.keep:
            tx.delete(self.records.version_row(current, current.version - self.keep), erase=True)
        return Staged(current, expected, intent, intents)

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
        """Return items as stored; an entity would show only its fields, upgraded to the current schema."""
        return (yield from call_client(lambda db: db.run(get_stored(db.context, keys))))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)


def _key_text(key: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a key in a hashable form."""
    return tuple(str(next(iter(value.values()))) for value in key.values())
