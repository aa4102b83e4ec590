"""Versions: sequential whoever writes at once, never written again, and only the current one is found by its state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tavola import (
    Attr,
    Connection,
    Gsi,
    ItemImmutable,
    ItemMissing,
    ManualClock,
    PrimaryKey,
    Query,
    RetryPolicy,
    Sort,
    Table,
    TransactionCancelled,
    attr,
    connect,
    sort,
)
from tavola.backends.embedded import EmbeddedBackend
from tavola.client.batches import BatchUnfinished
from tavola.engine import Engine, RequestContext
from tavola.patterns import (
    AuditEntry,
    Difference,
    HistoryAhead,
    HistoryProblem,
    NotDigestible,
    PatternProgram,
    Recipe,
    RecipeRefused,
    VersionConflict,
    Versioned,
    Versions,
    call_client,
    digest_of,
    recipe_method,
    write_together,
)
from tavola.patterns.audit import ROW_BYTES_MAX, differences, shorten_differences
from tavola.protocol.faults import AccessDeniedFault
from tests.iam.tables import SCOPE, guard
from tests.patterns.interleaving import interleavings

Status = Literal["pending", "done", "failed"]


class Reviews(Table):
    """The one table."""

    states = Gsi(pk="g1pk", sk="g1sk")
    actors = Gsi(pk="g2pk", sk="g2sk")


class Cost(BaseModel):
    """A part of a review."""

    monthly: Decimal
    resources: int = 0


class ReviewFields(Versioned):
    """What a review says."""

    review_id: Attr[str]
    status: Attr[Status] = attr(default="pending")
    code: Attr[str] = attr(default="")
    score: Attr[Decimal | None] = attr(default=None)
    cost: Attr[Cost | None] = attr(default=None)
    findings: Attr[list[dict[str, Any]]] = attr(default_factory=list)
    tags: Attr[set[str]] = attr(default_factory=set)


class Review(ReviewFields, table=Reviews):
    """The current one."""

    class Key(PrimaryKey["Review"], pk="REVIEW#{review_id}", sk="CURRENT"):
        review_id: str

    class ByStatus(Query["Review"], on=Reviews.states, pk="STATUS#{status}", sk="{changed_at}#{review_id}"):
        status: Status
        changed_at: Sort[datetime] = sort()
        review_id: Sort[str] = sort()


class ReviewVersion(ReviewFields, table=Reviews, immutable=True):
    """One that was current once."""

    class Key(PrimaryKey["ReviewVersion"], pk="HISTORY#{review_id}", sk="VERSION#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewVersion"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class ReviewAudit(AuditEntry, table=Reviews):
    """Who did it."""

    review_id: Attr[str]
    address: Attr[str | None] = attr(default=None)

    class Key(PrimaryKey["ReviewAudit"], pk="HISTORY#{review_id}", sk="AUDIT#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewAudit"], on=Key):
        review_id: str
        version: Sort[int] = sort()

    class ByActor(Query["ReviewAudit"], on=Reviews.actors, pk="ACTOR#{actor}", sk="{at}#{review_id}"):
        actor: str
        at: Sort[datetime] = sort()
        review_id: Sort[str] = sort()


KINDS = (Review, ReviewVersion, ReviewAudit)
R1 = Review.Key(review_id="r1")


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Reviews)
    return found


@pytest.fixture
def reviews(db: Connection, made: Callable[..., Any]) -> Any:
    """Reviews with one in it."""
    found = made(Versions, db, *KINDS)
    found.create(
        Review(review_id="r1", code="a", cost=Cost(monthly=Decimal("12.50"))), by="ann", why="asked for"
    )
    return found


def put(status: Status) -> Callable[[Review], None]:
    """Return an edit that sets the status."""

    def edit(review: Review) -> None:
        review.status = status

    return edit


# What a change leaves.


def test_a_record_begins_at_version_1(reviews: Any, clock: ManualClock) -> None:
    """A new record is version 1, with who made it and when; its audit row says so."""
    current = reviews.latest(R1)

    assert (current.version, current.changed_by, current.code) == (1, "ann", "a")
    assert current.changed_at == datetime.fromtimestamp(clock.now(), UTC)
    assert reviews.version(R1, 1).cost == Cost(monthly=Decimal("12.5"))
    (row,) = reviews.history(R1)
    assert (row.version, row.kind, row.actor, row.why, row.differences) == (
        1,
        "created",
        "ann",
        "asked for",
        [],
    )


def test_a_change_is_the_next_version(reviews: Any, clock: ManualClock) -> None:
    """A change makes one version more; the ones before stay as they were; the audit row tells the difference."""
    clock.advance(60)
    after = reviews.change(R1, put("done"), by="bob", why="checked", address="::1")

    assert after == reviews.latest(R1)
    assert (after.version, after.status, after.changed_by) == (2, "done", "bob")
    assert [(v.version, v.status) for v in reviews.versions(R1)] == [(2, "done"), (1, "pending")]
    newest = reviews.history(R1).items[0]
    assert (newest.actor, newest.why, newest.address) == ("bob", "checked", "::1")
    assert newest.differences == [Difference(path="status", kind="changed", before="pending", after="done")]


def test_what_was_read_and_edited_is_revised(reviews: Any) -> None:
    """A record that was read, edited and handed back is its next version; the one handed back stays the caller's."""
    mine = reviews.latest(R1)
    mine.cost = Cost(monthly=Decimal(20), resources=3)
    after = reviews.revise(mine, by="ann")

    assert (after.version, mine.version) == (2, 1)
    assert [str(found) for found in reviews.diff(R1, 1, 2)] == [
        "cost.monthly: Decimal('12.5') → 20",
        "cost.resources: 0 → 3",
    ]


def test_a_change_of_nothing_is_none(reviews: Any, db: Connection) -> None:
    """Where nothing differs nothing is written: no version, no audit row, no write."""
    with db.measure() as spent:
        after = reviews.change(R1, lambda review: review.model_copy(update={"code": "a"}), by="bob")

    assert (after.version, after.changed_by) == (1, "ann")
    assert spent.writes == 0


def test_an_edit_is_validated(reviews: Any) -> None:
    """What an edit returns is checked as any record is, and its key cannot be edited."""
    with pytest.raises(ValueError, match="status"):
        reviews.change(R1, lambda review: review.model_copy(update={"status": "dnoe"}), by="bob")
    with pytest.raises(RecipeRefused, match="review_id identifies a record"):
        reviews.change(R1, lambda review: review.model_copy(update={"review_id": "r2"}), by="bob")

    assert reviews.latest(R1).version == 1


def test_what_is_not_there_cannot_change(reviews: Any) -> None:
    """A record or version that is not there is an `ItemMissing`, and None where it is read."""
    other = Review.Key(review_id="r9")

    with pytest.raises(ItemMissing, match="Review review_id='r9'"):
        reviews.change(other, put("done"), by="bob")
    with pytest.raises(ItemMissing, match="Version 7 of Review review_id='r1'"):
        reviews.restore(R1, 7, by="bob")
    assert reviews.latest(other) is None
    assert reviews.version(R1, 7) is None
    assert reviews.versions(other).items == ()


def test_all_of_a_change_or_nothing(db: Connection, reviews: Any) -> None:
    """Where one of the three items cannot be written, none is: here a version that somebody slipped in."""
    ahead = ReviewVersion(review_id="r1", version=2, code="slipped in")
    db.create(ahead)

    with pytest.raises(HistoryAhead, match="has a version 2 already") as caught:
        reviews.change(R1, put("done"), by="bob")
    assert (caught.value.expected, caught.value.winner) == (1, None)
    assert HistoryProblem(2, "there is a version past the current record") in reviews.verify(R1).problems
    assert reviews.latest(R1).version == 1
    assert len(reviews.history(R1)) == 1


# The pitfalls.


def test_ten_follows_nine(reviews: Any) -> None:
    """Pitfall 20: versions are numbers: after nine comes ten, newest first, page by page; the latest is the latest."""
    for number in range(2, 13):
        reviews.change(R1, lambda review, n=number: setattr(review, "code", f"{n}"), by="ann")
    first = reviews.versions(R1, limit=5)
    second = reviews.versions(R1, limit=5, cursor=first.cursor)
    third = reviews.versions(R1, limit=5, cursor=second.cursor)

    assert reviews.latest(R1).version == 12
    assert [v.version for page in (first, second, third) for v in page] == list(range(12, 0, -1))
    assert third.cursor is None
    assert [row.version for row in reviews.history(R1, limit=4)] == [12, 11, 10, 9]


def test_only_the_current_version_answers(db: Connection, reviews: Any) -> None:
    """Pitfall 21: old versions are in no index, so a review that is done is not among the pending any more."""
    reviews.create(Review(review_id="r2"), by="ann")
    reviews.change(R1, put("done"), by="bob")

    assert [r.review_id for r in db.query(Review.ByStatus(status="pending"))] == ["r2"]
    assert [(r.review_id, r.version) for r in db.query(Review.ByStatus(status="done"))] == [("r1", 2)]
    reviews.restore(R1, 1, by="bob")
    assert [r.review_id for r in db.query(Review.ByStatus(status="done"))] == []


def test_versions_in_an_index_are_refused() -> None:
    """Pitfall 21: a version kind with a query on an index is refused where the recipe is made, with what to do."""

    class Indexed(ReviewFields, table=Reviews, immutable=True):
        class Key(PrimaryKey["Indexed"], pk="INDEXED#{review_id}", sk="{version}"):
            review_id: str
            version: int

        class All(Query["Indexed"], on=Key):
            review_id: str
            version: Sort[int] = sort()

        class ByStatus(Query["Indexed"], on=Reviews.states, pk="STATUS#{status}", sk="{review_id}"):
            status: Status
            review_id: Sort[str] = sort()

    try:
        with connect("memory:") as db, pytest.raises(RecipeRefused, match=r"Indexed\.ByStatus: old versions"):
            Versions(db, Review, Indexed, ReviewAudit)
    finally:
        del Reviews.entities["Indexed"]


def _outcomes(kind: Callable[[Connection], Any]) -> set[tuple[Any, ...]]:
    """Return what two changes at once come to, over all orders of their calls: the numbers they got, and what is left."""
    held: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        held.append(connect("memory:"))
        held[-1].create_tables(Reviews)
        Versions(held[-1], *KINDS).create(Review(review_id="r1"), by="ann")
        recipe = kind(held[-1])
        verbs = [type(recipe).change.steps(recipe, R1, put(s), by=s) for s in ("done", "failed")]
        return held[-1], verbs

    found = set()
    for outcomes in interleavings(make):
        told = [
            f"lost to {o.winner.version}" if isinstance(o, VersionConflict) else o.version for o in outcomes
        ]
        kept = [v.version for v in Versions(held[-1], *KINDS).versions(R1)]
        found.add((*sorted(map(str, told)), *kept))
        held[-1].close()
    return found


class NaiveVersions(Recipe[Connection]):
    """The fault that the test must see: the next number is read, then written."""

    @recipe_method
    def change(
        self, key: PrimaryKey[Review], edit: Callable[[Review], None], *, by: str
    ) -> PatternProgram[Review]:
        """Store the next version, over whatever may be there."""
        review = yield from call_client(lambda db: db.get(key, consistent=True))
        assert review is not None
        review.version += 1
        edit(review)
        yield from write_together(lambda writes: writes.put(review))
        row = ReviewVersion.model_validate(dict(review))
        try:
            yield from call_client(lambda db: db.create(row))
        except Exception:  # noqa: BLE001 - a naive program goes on
            pass
        return review


def test_two_at_once_get_two_numbers_or_one_is_told() -> None:
    """Pitfall 24: in every order of their calls, two changes are versions 2 and 3, or one is told that 2 has won."""
    assert _outcomes(lambda db: Versions(db, *KINDS)) == {("2", "3", 3, 2, 1), ("2", "lost to 2", 2, 1)}
    assert ("2", "2", 2, 1) in _outcomes(NaiveVersions), "the check would not see a lost change"


@pytest.fixture(params=["memory", "http"])
def shared(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection that threads share."""
    target = "memory:" if request.param == "memory" else request.getfixturevalue("served")
    found = connect(target, table_prefix=f"{request.node.name[:20].replace('[', '-')}-")
    found.create_tables(Reviews)
    yield found
    found.delete_tables(Reviews)
    found.close()


def test_threads_make_a_sequence(shared: Connection) -> None:
    """Pitfall 24: eight threads that change one record at once make versions without a gap, and lose no change."""
    reviews = Versions(shared, *KINDS, chained=True)
    reviews.create(Review(review_id="r1"), by="0")

    def change(number: int) -> int:
        def edit(review: Review) -> None:
            review.findings.append({"by": number})

        return reviews.change(R1, edit, by=f"{number}", attempts=200).version

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(change, range(16)))

    assert sorted(numbers) == list(range(2, 18))
    current = reviews.latest(R1)
    assert current is not None
    assert sorted(found["by"] for found in current.findings) == list(range(16))
    assert [row.version for row in reviews.history(R1)] == list(range(17, 0, -1))
    assert reviews.verify(R1)


def test_who_is_late_is_told_who_won(reviews: Any) -> None:
    """Pitfall 24: a revision of an older version is refused with the version it was made from and the one that won."""
    mine, yours = reviews.latest(R1), reviews.latest(R1)
    mine.code, yours.code = "mine", "yours"
    reviews.revise(mine, by="ann")

    with pytest.raises(
        VersionConflict, match="from version 1, and is version 2 by now, made by 'ann'"
    ) as caught:
        reviews.revise(yours, by="bob")
    assert (caught.value.expected, caught.value.winner.code) == (1, "mine")
    with pytest.raises(VersionConflict, match="exists already, in version 2"):
        reviews.create(Review(review_id="r1"), by="bob")


# Looking back.


def test_a_difference_tells_the_place() -> None:
    """Differences go into documents and lists, name what came and went, and quote names that are no words."""
    before = {"a": 1, "b": {"c": [1, {"d": 2}], "x.y": 1}, "gone": "g", "s": {"x"}}
    after = {"a": True, "b": {"c": [1, {"d": 3}, 4]}, "new": [1], "s": {"y"}}

    assert [str(found) for found in differences(before, after)] == [
        "a: 1 → True",
        "b.c[1].d: 2 → 3",
        "b.c[2] added: 4",
        'b["x.y"] removed: 1',
        "gone removed: 'g'",
        "new added: [1]",
        "s: {'x'} → {'y'}",
    ]
    assert differences(before, dict(before)) == ()


def test_any_two_versions_are_compared(reviews: Any) -> None:
    """Any two versions are compared, either way round; version 0 is nothing, so all of the first is new."""
    reviews.change(R1, put("done"), by="bob")
    reviews.change(R1, lambda review: review.findings.append({"title": "open bucket"}), by="bob")

    assert [str(found) for found in reviews.diff(R1, 1, 3)] == [
        "findings[0] added: {'title': 'open bucket'}",
        "status: 'pending' → 'done'",
    ]
    assert [str(found) for found in reviews.diff(R1, 3, 2)] == [
        "findings[0] removed: {'title': 'open bucket'}"
    ]
    assert {found.path for found in reviews.diff(R1, 0, 1)} >= {"code", "status", "cost"}


def test_a_restored_version_is_a_new_one(reviews: Any) -> None:
    """What an old version said comes back as the next one; the versions between stay, the audit row names it."""
    reviews.change(R1, lambda review: setattr(review, "tags", {"x"}), by="bob")
    reviews.change(R1, put("failed"), by="bob")
    after = reviews.restore(R1, 1, by="ann", why="wrong review")

    assert (after.version, after.status, after.tags, after.changed_by) == (4, "pending", set(), "ann")
    assert reviews.diff(R1, 1, 4) == ()
    row = reviews.history(R1).items[0]
    assert (row.kind, row.restored) == ("restored", 1)
    assert [found.path for found in row.differences] == ["status", "tags"]


class Notes(Table, ttl="expires"):
    """A table whose records expire."""


class NoteFields(Versioned):
    """What a note says, and when it is over."""

    note_id: Attr[str]
    text: Attr[str] = attr(default="")
    expires: Attr[datetime | None] = attr(default=None)


class Note(NoteFields, table=Notes):
    """The current one."""

    class Key(PrimaryKey["Note"], pk="NOTE#{note_id}", sk="CURRENT"):
        note_id: str


class NoteVersion(NoteFields, table=Notes, immutable=True):
    """One that was current once."""

    class Key(PrimaryKey["NoteVersion"], pk="HISTORY#{note_id}", sk="VERSION#{version}"):
        note_id: str
        version: int

    class All(Query["NoteVersion"], on=Key):
        note_id: str
        version: Sort[int] = sort()


class NoteAudit(AuditEntry, table=Notes):
    """Who did it."""

    note_id: Attr[str]

    class Key(PrimaryKey["NoteAudit"], pk="HISTORY#{note_id}", sk="AUDIT#{version}"):
        note_id: str
        version: int

    class All(Query["NoteAudit"], on=Key):
        note_id: str
        version: Sort[int] = sort()


def test_when_a_record_expires_is_not_what_it_says(
    opened: Callable[..., Connection], clock: ManualClock
) -> None:
    """Time to live is in no difference and is not restored, but a change of it alone is a change, and is sealed."""
    db = opened()
    db.create_tables(Notes)
    notes, n1 = Versions(db, Note, NoteVersion, NoteAudit, chained=True), Note.Key(note_id="n1")
    soon, later = (datetime.fromtimestamp(int(clock.now()), UTC) + timedelta(days=days) for days in (1, 9))
    note = notes.create(Note(note_id="n1", text="a", expires=soon), by="ann")
    note = notes.revise(note.model_copy(update={"text": "b", "expires": later}), by="ann")
    back = notes.restore(n1, 1, by="bob")
    longer = notes.revise(back.model_copy(update={"expires": later + timedelta(days=1)}), by="bob")

    assert [found.path for found in notes.diff(n1, 1, 2)] == ["text"]
    assert (back.text, back.expires) == ("a", later)
    assert (longer.version, notes.diff(n1, 3, 4)) == (4, ())
    assert notes.verify(n1)


def test_what_somebody_did(reviews: Any, clock: ManualClock) -> None:
    """What one person changed is found over all records, newest first, from one moment to another, in pages."""
    start = datetime.fromtimestamp(clock.now(), UTC)
    for number in range(2, 6):
        clock.advance(3600)
        reviews.create(Review(review_id=f"r{number}"), by="bob" if number % 2 else "ann")

    assert [row.review_id for row in reviews.by_actor("ann")] == ["r4", "r2", "r1"]
    later = reviews.by_actor("ann", since=start + timedelta(minutes=1), until=start + timedelta(hours=2))
    assert [row.review_id for row in later] == ["r2"]
    assert [row.review_id for row in reviews.by_actor("ann", since=start + timedelta(hours=2))] == ["r4"]
    assert [row.review_id for row in reviews.by_actor("ann", until=start)] == ["r1"]
    first = reviews.by_actor("ann", limit=2)
    assert [row.review_id for row in reviews.by_actor("ann", limit=2, cursor=first.cursor)] == ["r1"]


def test_long_values_are_left_to_the_versions(reviews: Any) -> None:
    """An audit row repeats no long value: it says that it changed, and the versions hold it."""
    reviews.change(R1, lambda review: setattr(review, "code", "x" * 100_000), by="bob")

    (told,) = reviews.history(R1).items[0].differences
    assert (told.path, told.kind, told.omitted, told.after) == ("code", "changed", True, None)
    (whole,) = reviews.diff(R1, 1, 2)
    assert whole.after == "x" * 100_000


def test_many_differences_fit_into_a_row() -> None:
    """Where even the places are too many, an audit row tells the fields alone."""
    many = differences({}, {"rows": [{"n": n} for n in range(10)]})
    values = differences({"rows": ["a" * 900] * 200}, {"rows": ["b" * 900] * 200})
    places = differences({"rows": list(range(5000)), "x": 1}, {"rows": list(range(1, 5001)), "x": 2})

    assert shorten_differences(many) == list(many)
    assert {each.omitted for each in shorten_differences(values)} == {True}
    assert [each.path for each in shorten_differences(places)] == ["rows", "x"]
    assert sum(len(each.path) + 64 for each in shorten_differences(values)) < ROW_BYTES_MAX


# Keeping.


def test_what_is_immutable_stays(db: Connection, reviews: Any) -> None:
    """The client refuses to put, update or delete a version or audit row, alone, in a batch or in a transaction."""
    row = reviews.version(R1, 1)
    key = ReviewVersion.Key(review_id="r1", version=1)
    audit = ReviewAudit.Key(review_id="r1", version=1)

    for attempt in (
        lambda: db.put(row),
        lambda: db.update(key, ReviewVersion.code.set("forged")),
        lambda: db.delete(key),
        lambda: db.delete(audit),
        lambda: db.put_many([row]),
        lambda: db.delete_many([key]),
        lambda: db.transaction().put(row),
        lambda: db.transaction().update(key, ReviewVersion.code.set("forged")),
        lambda: db.transaction().delete(audit),
    ):
        with pytest.raises(ItemImmutable, match="immutable"):
            attempt()
    assert reviews.version(R1, 1).code == "a"
    assert reviews.verify(R1)


def test_what_must_go_is_erased(db: Connection, reviews: Any) -> None:
    """An immutable item is deleted only by who says so: `erase`."""
    gone = db.delete(ReviewVersion.Key(review_id="r1", version=1), erase=True)

    assert gone is not None
    assert reviews.version(R1, 1) is None


def test_so_many_versions_are_kept(db: Connection, made: Callable[..., Any]) -> None:
    """With `keep`, each change deletes the version that is too many; audit rows stay; fewer are pruned when asked."""
    reviews = made(Versions, db, *KINDS, keep=4)
    reviews.create(Review(review_id="r1"), by="ann")
    for number in range(6):
        reviews.change(R1, lambda review, n=number: setattr(review, "code", f"{n}"), by="ann")

    assert [v.version for v in reviews.versions(R1)] == [7, 6, 5, 4]
    assert len(reviews.history(R1)) == 7
    assert reviews.verify(R1)
    fewer = made(Versions, db, *KINDS, keep=2)
    assert fewer.prune(R1) == 2
    assert [v.version for v in fewer.versions(R1)] == [7, 6]
    assert made(Versions, db, *KINDS).prune(R1) == 0


def test_a_change_joins_a_transaction(db: Connection, reviews: Any) -> None:
    """A change may be staged in a transaction with other writes; where it is late, nothing of all is done."""
    before = reviews.latest(R1)
    after = before.model_copy(update={"code": "b"})
    tx, late = db.transaction(), db.transaction()
    tx.create(Review(review_id="r2"))
    reviews.stage(tx, before, after, by="bob")
    _commit(db, tx)
    late.create(Review(review_id="r3"))
    staged = reviews.stage(late, before, after, by="ann")

    with pytest.raises(TransactionCancelled) as caught:
        _commit(db, late)
    conflict = reviews.conflict(caught.value, staged)
    assert (conflict.expected, conflict.winner.version, conflict.winner.changed_by) == (1, 2, "bob")
    assert reviews.latest(R1).code == "b"
    assert db.get(Review.Key(review_id="r2")) is not None
    assert db.get(Review.Key(review_id="r3")) is None


def _commit(db: Any, tx: Any) -> None:
    answer = tx.commit()
    if answer is not None:
        db._loop.run_until_complete(answer)


def test_all_is_given_where_no_limit_is(reviews: Any, db: Connection) -> None:
    """Versions, history and what somebody did are whole without a limit, however many requests that takes, and as they are now."""
    for number in range(14):
        reviews.change(
            R1, lambda review, n=number: setattr(review, "code", f"{n:03}" + "x" * 150_000), by="ann"
        )

    with db.measure() as spent:
        found = reviews.versions(R1)
    assert [each.version for each in found] == list(range(15, 0, -1))
    assert found.cursor is None
    assert spent.operations["Query"] > 1
    assert [each.version for each in reviews.history(R1)] == list(range(15, 0, -1))
    assert len(reviews.by_actor("ann")) == 15
    page = reviews.versions(R1, limit=2)
    assert [each.version for each in reviews.versions(R1, limit=2, cursor=page.cursor)] == [13, 12]


def test_verification_ends_where_nothing_is_processed() -> None:
    """A table that leaves every key unprocessed is an error after a while, and is not asked for ever."""
    with connect("memory:", retry_policy=RetryPolicy(attempts_max=3, base_s=0)) as db:
        db.create_tables(Reviews)
        Versions(db, *KINDS).create(Review(review_id="r1"), by="ann")
        asked: list[str] = []

        class Stubborn:
            """A backend that never gets to the keys of a batch."""

            def call(self, operation: str, request: Any) -> Any:
                """Leave all keys."""
                asked.append(operation)
                if operation == "BatchGetItem":
                    return {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
                return db.backend.call(operation, request)

            def close(self) -> None:
                """Leave it open."""

        with pytest.raises(BatchUnfinished):
            Versions(Connection(Stubborn(), context=db.context), *KINDS).verify(R1)
        assert len(asked) < 10


# The chain.

TAMPERED: list[tuple[str, dict[str, str], str, str, HistoryProblem]] = [
    ("version", {"pk": "HISTORY#r1", "sk": "VERSION#2"}, "code", "forged", HistoryProblem(2, "the version was altered")),
    ("extra", {"pk": "HISTORY#r1", "sk": "VERSION#2"}, "g1pk", "STATUS#pending", HistoryProblem(2, "the version was altered")),
    ("actor", {"pk": "HISTORY#r1", "sk": "AUDIT#2"}, "actor", "nobody", HistoryProblem(2, "its audit row was altered")),
    ("reason", {"pk": "HISTORY#r1", "sk": "AUDIT#1"}, "why", "", HistoryProblem(1, "its audit row was altered")),
    ("current", {"pk": "REVIEW#r1", "sk": "CURRENT"}, "code", "forged",
     HistoryProblem(3, "the current record is not its last version")),
]  # fmt: skip


@pytest.fixture(params=[None, b"secret"])
def chained(
    request: pytest.FixtureRequest,
) -> Iterator[Versions[Connection, Review, ReviewVersion, ReviewAudit]]:
    """Three chained versions, with and without a secret."""
    with connect("memory:") as db:
        db.create_tables(Reviews)
        found = Versions(db, *KINDS, chained=True, secret=request.param)
        found.create(Review(review_id="r1", score=Decimal("0.700"), tags={"b", "a"}), by="ann", why="first")
        found.change(R1, put("done"), by="bob", address="::1")
        found.change(R1, put("failed"), by="bob")
        yield found


def _raw(reviews: Any, key: PrimaryKey[Any]) -> dict[str, Any]:
    asked: Any = next(reviews._items([key]))
    (item,) = asked(reviews.db)
    return dict(item)


def _key_of(reviews: Any, place: dict[str, str]) -> dict[str, Any]:
    """Return the key of a row whose sort key ends in a number, as it is written."""
    kind, _, number = place["sk"].partition("#")
    row = {"VERSION": reviews.records.version_row, "AUDIT": reviews.records.audit_row}.get(kind)
    item = _raw(reviews, R1 if row is None else row(R1, int(number)))
    return {name: item[name] for name in ("pk", "sk")}


@pytest.mark.parametrize(
    ("place", "attribute", "value", "problem"), [row[1:] for row in TAMPERED], ids=[r[0] for r in TAMPERED]
)
def test_a_planted_alteration_is_found(
    chained: Any, place: dict[str, str], attribute: str, value: str, problem: HistoryProblem
) -> None:
    """An attribute that somebody sets past the library, in any of the rows, is found and placed."""
    assert chained.verify(R1)
    chained.db.call(
        "UpdateItem",
        {
            "TableName": "Reviews", "Key": _key_of(chained, place), "UpdateExpression": "SET #a = :v",
            "ExpressionAttributeNames": {"#a": attribute}, "ExpressionAttributeValues": {":v": {"S": value}},
        },
    )  # fmt: skip

    assert problem in chained.verify(R1).problems


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("VERSION#2", "the version is gone"),
        ("AUDIT#2", "its audit row is gone"),
        ("AUDIT#3", "its audit row is gone"),
    ],
)
def test_a_planted_deletion_is_found(chained: Any, place: str, what: str) -> None:
    """A version or audit row that is gone is found, in the middle and at the end."""
    chained.db.call("DeleteItem", {"TableName": "Reviews", "Key": _key_of(chained, {"sk": place})})

    assert HistoryProblem(int(place[-1]), what) in chained.verify(R1).problems


def test_seals_cannot_be_made_again_without_the_secret() -> None:
    """Who alters a row and seals it again is found where seals need a secret, and not where they need none."""
    for secret, found in ((None, False), (b"secret", True)):
        with connect("memory:") as db:
            db.create_tables(Reviews)
            reviews = Versions(db, *KINDS, chained=True, secret=secret)
            reviews.create(Review(review_id="r1"), by="ann")
            forger = Versions(db, *KINDS, chained=True)
            db.delete(ReviewVersion.Key(review_id="r1", version=1), erase=True)
            db.delete(ReviewAudit.Key(review_id="r1", version=1), erase=True)
            db.delete(R1)
            forger.create(Review(review_id="r1"), by="nobody")

            assert bool(reviews.verify(R1)) is not found


def test_verification_tells_the_last_seal(chained: Any) -> None:
    """The last seal is told, to be kept elsewhere; of a record that is not there, that it is not there."""
    told = chained.verify(R1)

    assert (told.versions, told.chained_from) == (3, 1)
    assert told.chain_digest == chained.latest(R1).chain_digest
    assert not chained.verify(Review.Key(review_id="r9"))


def test_a_chain_may_begin_late(db: Connection, reviews: Any, made: Callable[..., Any]) -> None:
    """Rows from before they were chained are no fault; from the first sealed one on, each must be."""
    reviews.change(R1, put("done"), by="bob")
    later = made(Versions, db, *KINDS, chained=True)
    later.change(R1, put("failed"), by="bob")
    later.change(R1, put("done"), by="bob")

    told = later.verify(R1)
    assert (bool(told), told.chained_from) == (True, 3)


class Later(Table, name="Reviews"):
    """The same table in a later design."""


class LaterFields(ReviewFields):
    """Reviews have teams by now."""

    team: Attr[str] = attr(default="core")


class LaterReview(LaterFields, table=Later, tag="Review"):
    """The current one."""

    class Key(PrimaryKey["LaterReview"], pk="REVIEW#{review_id}", sk="CURRENT"):
        review_id: str


class LaterVersion(LaterFields, table=Later, tag="ReviewVersion", immutable=True):
    """One that was current once."""

    class Key(PrimaryKey["LaterVersion"], pk="HISTORY#{review_id}", sk="VERSION#{version}"):
        review_id: str
        version: int

    class All(Query["LaterVersion"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class LaterAudit(AuditEntry, table=Later, tag="ReviewAudit"):
    """Who did it."""

    review_id: Attr[str]

    class Key(PrimaryKey["LaterAudit"], pk="HISTORY#{review_id}", sk="AUDIT#{version}"):
        review_id: str
        version: int

    class All(Query["LaterAudit"], on=Key):
        review_id: str
        version: Sort[int] = sort()


def test_a_new_field_breaks_no_chain() -> None:
    """Seals are of what is stored, so that a field with a default that comes later changes none."""
    with connect("memory:") as db:
        db.create_tables(Reviews)
        Versions(db, *KINDS, chained=True).create(Review(review_id="r1"), by="ann", address="::1")
        later = Versions(db, LaterReview, LaterVersion, LaterAudit, chained=True)

        old = later.version(LaterReview.Key(review_id="r1"), 1)
        assert old is not None
        assert old.team == "core"
        assert later.verify(LaterReview.Key(review_id="r1"))


# Past the library.


class Guarded(EmbeddedBackend):
    """An engine that lets a policy decide about every request."""

    def __init__(self, engine: Engine, visit: RequestContext) -> None:
        super().__init__(engine, SCOPE)
        self._request_context = visit


PAST: dict[str, dict[str, Any]] = {
    "UpdateItem": {
        "Key": {"pk": {"S": "HISTORY#r1"}, "sk": {"S": "x"}}, "UpdateExpression": "SET a = :a",
        "ExpressionAttributeValues": {":a": {"S": "forged"}},
    },
    "DeleteItem": {"Key": {"pk": {"S": "HISTORY#r1"}, "sk": {"S": "x"}}},
    "PutItem": {"Item": {"pk": {"S": "HISTORY#r1"}, "sk": {"S": "x"}}},
    "BatchWriteItem": {"RequestItems": {"Reviews": [{"PutRequest": {"Item": {"pk": {"S": "HISTORY#r1"}, "sk": {"S": "x"}}}}]}},
    "ExecuteStatement": {"Statement": "UPDATE Reviews SET a = 1 WHERE pk = 'HISTORY#r1' AND sk = 'x'"},
    "TransactWriteItems": {
        "TransactItems": [{"Delete": {"TableName": "Reviews", "Key": {"pk": {"S": "HISTORY#r1"}, "sk": {"S": "x"}}}}]
    },
}  # fmt: skip


def test_the_policy_of_the_page_keeps_history() -> None:
    """The guide's policy denies every way to write history but one, and the pattern works under it."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "patterns" / "versions.md").read_text()
    (policy,) = [json.loads(found) for found in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    visit = RequestContext(guard=guard({"Effect": "Allow"}, *policy["Statement"]))
    with Engine.open() as engine, Connection(Guarded(engine, visit)) as db:
        db.create_tables(Reviews)
        reviews = Versions(db, *KINDS, chained=True)
        reviews.create(Review(review_id="r1"), by="ann")
        reviews.change(R1, put("done"), by="bob")

        for operation, request in PAST.items():
            named = (
                {}
                if operation in ("BatchWriteItem", "ExecuteStatement", "TransactWriteItems")
                else {"TableName": "Reviews"}
            )
            with pytest.raises(AccessDeniedFault):
                db.call(operation, named | request)
        forged = {
            "Put": {
                "TableName": "Reviews",
                "Item": _raw(reviews, reviews.records.audit_row(R1, 1)) | {"actor": {"S": "x"}},
            }
        }
        db.call("TransactWriteItems", {"TransactItems": [forged]})
        assert HistoryProblem(1, "its audit row was altered") in reviews.verify(R1).problems


# What can have versions.


def _refused(*kinds: Any) -> str:
    with connect("memory:") as db, pytest.raises(RecipeRefused) as caught:
        Versions(db, *kinds)
    return str(caught.value)


class Other(Table):
    """A table for what is declared wrong."""

    states = Gsi(pk="g1pk", sk="g1sk")


class Mutable(ReviewFields, table=Other):
    """Versions that could be written again."""

    class Key(PrimaryKey["Mutable"], pk="MUTABLE#{review_id}", sk="{version}"):
        review_id: str
        version: int


class Lacking(Versioned, table=Other, immutable=True):
    """Versions without the record's fields."""

    review_id: Attr[str]

    class Key(PrimaryKey["Lacking"], pk="LACKING#{review_id}", sk="{version}"):
        review_id: str
        version: int


class Unordered(ReviewFields, table=Other, immutable=True):
    """Versions that cannot be listed."""

    class Key(PrimaryKey["Unordered"], pk="UNORDERED#{review_id}", sk="{version}"):
        review_id: str
        version: int


class Homeless(ReviewFields):
    """A record without a table."""


def test_what_cannot_have_versions_is_refused() -> None:
    """Each declaration that would break a promise is refused, with what to declare instead."""
    assert "immutable=True" in _refused(Review, Mutable, ReviewAudit)
    assert "declare the fields in a base of both" in _refused(Review, Lacking, ReviewAudit)
    assert "Unordered: it is read in order; declare a query on=Key" in _refused(
        Review, Unordered, ReviewAudit
    )
    assert "declare its table and Key" in _refused(Homeless, ReviewVersion, ReviewAudit)
    assert "leave version out" in _refused(Mutable, ReviewVersion, ReviewAudit)
    with connect("memory:") as db, pytest.raises(RecipeRefused, match="would keep no version"):
        Versions(db, *KINDS, keep=0)


def test_immutability_is_inherited() -> None:
    """What an entity says of itself holds for those made of it; a mutable one is another's choice."""
    assert ReviewAudit.__shape__.immutable
    assert not Review.__shape__.immutable


# Digests.


def test_equal_values_have_one_digest() -> None:
    """Order of names, form of numbers and kind of list change no digest; anything else does."""
    one = digest_of({"a": 1, "b": [1.0, Decimal("2.50")], "c": {"x", "y"}})

    assert one == digest_of({"c": {"y", "x"}, "b": (1, 2.5), "a": Decimal("1.00")})
    others = [
        {"a": True},
        {"a": "1"},
        {"a": 1},
        {"a": 10},
        {"a": None},
        {},
        [],
        {"a": [1]},
        {"a": b"1"},
        {1: "a"},
    ]
    assert len({digest_of(other) for other in others}) == len(others)
    assert digest_of(1, b"one") != digest_of(1, b"other") != digest_of(1)


def test_what_nobody_can_compare_has_no_digest() -> None:
    """A value of which two cannot be known to be equal is refused, with its place."""
    with pytest.raises(NotDigestible, match=r"the value\['a'\]\[1\] is of type object"):
        digest_of({"a": [1, object()]})
