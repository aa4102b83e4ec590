"""What verification sees: rollback, additions, other secrets, other places in an index; and digests of items as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest

from tavola import Attr, Entity, ManualClock, PrimaryKey, Table, attr, connect, to_item
from tavola.patterns import DigestReader, HistoryAhead, Versions, digest_of, stored_digest
from tests.patterns.test_versioning import KINDS, R1, Review, Reviews, ReviewVersion, put

NAME = Reviews.settings.name
CLOCK = ManualClock(2_000_000_000.0)


@pytest.fixture
def chained() -> Iterator[Any]:
    """Three chained versions."""
    with connect("memory:") as db:
        db.create_tables(Reviews)
        found = Versions(db, *KINDS, chained=True, secret=b"one secret")
        found.create(Review(review_id="r1"), by="ann", why="first")
        found.change(R1, put("done"), by="bob")
        found.change(R1, put("failed"), by="cid")
        yield found


def _what(reviews: Any) -> set[tuple[int, str]]:
    return {(problem.version, problem.what) for problem in reviews.verify(R1).problems}


def _write(reviews: Any, item: dict[str, Any]) -> None:
    """Put an item past the library, in a transaction, as a policy lets it through."""
    reviews.db.call("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": NAME, "Item": item}}]})


def test_a_current_record_that_was_set_back_is_found(chained: Any) -> None:
    """The current record as it was in version 2 is whole in itself; what stands past it in the history shows."""
    version = to_item(chained.version(R1, 2))
    current = to_item(chained.latest(R1))
    places = {name: current[name] for name in ("pk", "sk")}
    old = to_item(Review.model_validate(dict(chained.version(R1, 2)), by_name=True))
    assert chained.verify(R1)
    chained.db.call("PutItem", {"TableName": NAME, "Item": {**version, **old, **places}})

    assert chained.latest(R1).version == 2
    assert _what(chained) == {
        (3, "there is a version past the current record"),
        (3, "there is an audit row past the current record"),
    }
    with pytest.raises(HistoryAhead, match=r"has a version 3 already.*run verify\(\)"):
        chained.change(R1, put("pending"), by="dan")


def test_a_current_record_that_is_gone_is_found(chained: Any) -> None:
    """A record without a current one is told from one that never was; nothing is begun over its history."""
    chained.db.delete(R1)

    assert _what(chained) == {(0, "the current record is gone, and its history is there")}
    with pytest.raises(HistoryAhead, match="is not there, and its history has a version 1"):
        chained.create(Review(review_id="r1"), by="dan")


@pytest.mark.parametrize(
    ("kind", "number", "key", "what"),
    [
        ("version", 99, "99", "there is a version past the current record"),
        ("audit", 99, "99", "there is an audit row past the current record"),
        ("version", 2, "02x", "there is a version under a key of none"),
    ],
)
def test_what_was_slipped_in_is_found(chained: Any, kind: str, number: int, key: str, what: str) -> None:
    """A version or an audit row that no change made is found by its key, wherever in the history it stands."""
    row = chained.version(R1, 2) if kind == "version" else chained.history(R1).items[1]
    item = to_item(row)
    place = item["sk"]["S"]
    _write(chained, {**item, "sk": {"S": place[: -len(key)] + key}, "version": {"N": str(number)}})

    assert _what(chained) == {(number, what)}


def test_a_row_that_hides_in_an_index_is_found(chained: Any) -> None:
    """An audit row under another actor, and a current record under another status, have other index keys than they should."""
    row = to_item(chained.history(R1).items[0])
    _write(chained, {**row, "g2pk": {"S": "ACTOR#nobody"}})
    current = to_item(chained.latest(R1))
    _write(chained, {**current, "g1pk": {"S": "STATUS#done"}})

    assert _what(chained) == {
        (3, "its audit row has another place in an index than its fields say"),
        (3, "the current record has another place in an index than its fields say"),
    }


def test_another_secret_is_told_from_an_alteration(chained: Any) -> None:
    """Who verifies with another secret, or without one, is told so, and not that every row was altered."""
    for other in (b"another secret", None):
        told = Versions(chained.db, *KINDS, chained=True, secret=other).verify(R1)
        assert [problem.what for problem in told.problems] == [
            "its audit row was signed with a different secret"
        ] * 3


def test_versions_are_looked_at_while_verifying(chained: Any) -> None:
    """Who has more to ask of the versions is given them, and does not read them again."""
    seen: list[ReviewVersion] = []
    with chained.db.measure() as measured:
        assert chained.verify(R1, look=seen.append)

    assert [each.version for each in seen] == [1, 2, 3]
    assert measured.calls == 3


def test_a_change_while_verifying_is_no_alarm(chained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that comes between the reading of the record and of its history is no addition."""
    real = chained._verify_versions
    late: list[int] = []

    def walked(*given: Any) -> Any:
        if not late:
            late.append(chained.change(R1, put("done"), by="dan").version)
        return (yield from real(*given))

    monkeypatch.setattr(chained, "_verify_versions", walked)
    told = chained.verify(R1)
    assert (bool(told), told.versions) == (True, 4)


def test_rows_are_what_a_change_writes() -> None:
    """What `rows` gives for loading is what `create` and `change` write, seals and time to live and all."""
    at = datetime.fromtimestamp(CLOCK.now(), UTC)
    with connect("memory:", clock=CLOCK) as other:
        other.create_tables(Reviews)
        reviews = Versions(other, *KINDS, secret=b"secret")
        first = reviews.create(Review(review_id="r1", code="a"), by="ann", why="first")
        second = reviews.change(R1, put("done"), by="bob", address="::1")
        told = [
            *reviews.rows(None, Review(review_id="r1", code="a"), by="ann", why="first", at=at),
            *reviews.rows(first, first.model_copy(update={"status": "done"}), by="bob", at=at, address="::1"),
        ]
        assert told[0] == first
        assert told[3] == second
        assert told[1::3] == [reviews.version(R1, 1), reviews.version(R1, 2)]
        assert told[2::3] == list(reviews.history(R1))[::-1]


def test_time_does_not_go_back() -> None:
    """A clock that was set back gives a change the time of the one before it: the history stays in order."""
    clock = ManualClock(2_000_000_000.0)
    with connect("memory:", clock=clock) as db:
        db.create_tables(Reviews)
        reviews = Versions(db, *KINDS)
        first = reviews.create(Review(review_id="r1"), by="ann")
        clock.advance(-3600)
        second = reviews.change(R1, put("done"), by="bob")
        clock.advance(7200)
        third = reviews.change(R1, put("failed"), by="bob")

        assert second.changed_at == first.changed_at
        assert third.changed_at == first.changed_at + timedelta(hours=1)
        assert [row.at for row in reviews.history(R1)] == [
            third.changed_at,
            first.changed_at,
            first.changed_at,
        ]


class Notes(Table):
    """A table of things that are sealed one by one."""


class Note(Entity, table=Notes):
    """One of them."""

    name: Attr[str]
    words: Attr[str] = attr(default="")
    tags: Attr[set[str]] = attr(default_factory=set)

    class Key(PrimaryKey["Note"], pk="NOTE#{name}", sk="NOTE"):
        name: str


class LaterNotes(Table, name="Notes"):
    """The same table in a later design."""


class LaterNote(Entity, table=LaterNotes, tag="Note"):
    """The same with a field more."""

    name: Attr[str]
    words: Attr[str] = attr(default="")
    tags: Attr[set[str]] = attr(default_factory=set)
    grade: Attr[int] = attr(default=3)

    class Key(PrimaryKey["LaterNote"], pk="NOTE#{name}", sk="NOTE"):
        name: str


def test_a_digest_is_of_what_is_stored() -> None:
    """It holds when the entity gets a field, and not when an attribute is changed or one is added that nobody knows."""
    with connect("memory:") as db:
        db.create_tables(Notes)
        note = db.put(Note(name="a", words="b", tags={"x", "y"}))
        reader = DigestReader(db)
        (seen,) = reader.read([Note.Key(name="a")])
        assert seen is not None
        assert (seen.digest, seen.misplaced_keys) == (stored_digest(note), ())
        assert reader.read([LaterNote.Key(name="a"), Note.Key(name="b")]) == [seen, None]
        db.call("PutItem", {"TableName": "Notes", "Item": {**to_item(note), "extra": {"S": "x"}}})
        (touched,) = reader.read([Note.Key(name="a")])
        assert touched is not None
        assert touched.digest != seen.digest


DIGEST = "675948d4f61aa22b848c728edaa98f8f47707e469ffb06fb8ab143e0d9e06bf7"


class Colour(StrEnum):
    RED = "red"


def test_digests_stay_what_they_were() -> None:
    """Names that are text, enums of text or numbers give the digest that is in tables already."""
    told: dict[Any, Any] = {Colour.RED: 1, "blue": [Colour.RED, None, True], 7: {"é": "1"}}
    plain: dict[Any, Any] = {"red": 1, "blue": ["red", None, True], 7: {"é": "1"}}

    assert digest_of(told) == digest_of(plain) == DIGEST
