"""What a verb is handed and does not take is told with what to give, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tavola import (
    Attr,
    Collection,
    Entity,
    ModelError,
    PrimaryKey,
    Query,
    QueryRefused,
    Table,
    attr,
    connect,
    found,
)


class Library(Table):
    """A table of two kinds."""


class Lent(Entity):
    """What books and records have in common."""

    copies: Attr[int] = attr(default=0)


class Book(Lent, table=Library):
    """A book."""

    isbn: Attr[str]

    class Key(PrimaryKey["Book"], pk="BOOK#{isbn}", sk="BOOK"):
        isbn: str

    class All(Query["Book"], on=Key):
        isbn: str


class Member(Entity, table=Library):
    """Somebody with a field that books have too."""

    member_id: Attr[str]
    copies: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
        member_id: str


class BookFile(Collection, pk="BOOK#{isbn}"):
    """A book by itself."""

    isbn: str
    book: Book | None = found()


@pytest.fixture
def db() -> Iterator[Any]:
    """A connection with one book; not typed, for what no checker would let pass."""
    with connect("memory:") as db:
        db.create_tables(Library)
        db.put(Book(isbn="1"))
        yield db


KEY = Book.Key(isbn="1")
CHANGE = Book.copies.set(1)
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a comparison of an instance": (
        lambda db: db.put(Book(isbn="1"), when=Book(isbn="1").copies == 0),
        "Book.put: when= takes a condition .*: True is no condition; compare the field of the class",
    ),
    "a change for a condition": (
        lambda db: db.update(KEY, CHANGE, when=Book.copies.set(2)),
        "a change of copies is no condition; changes stand before when=",
    ),
    "a function for a condition": (
        lambda db: db.delete(KEY, when=lambda _: True),
        "a function is no condition",
    ),
    "a condition on another": (
        lambda db: db.update(KEY, CHANGE, when=Member.copies == 0),
        "when= is a condition on Member; name fields of Book",
    ),
    "in a transaction": (
        lambda db: db.transaction().check(KEY, when=True),
        "Book.check: when= takes a condition",
    ),
    "a filter on another": (
        lambda _: Book.All(isbn="1").where(Member.copies == 0),  # type: ignore[arg-type]  # the mistake
        "the filter is on Member, and it gives Book",
    ),
    "a scan's filter": (
        lambda db: db.scan(Book, where=Member.copies == 0),
        "where= is a condition on Member",
    ),
    "two kinds at once": (
        lambda _: (Book.copies == 0) & (Member.copies == 0),  # type: ignore[operator]  # the mistake
        "Book: & joins it with .* on Member",
    ),
    "and True": (
        lambda _: (Book.copies == 0) & True,  # type: ignore[operator]  # the mistake
        "& joins conditions, and True is none",
    ),
    "a dict for a change": (
        lambda db: db.update(KEY, {"copies": 3}),
        "takes changes such as .*: a dict is none",
    ),
    "a condition for a change": (lambda db: db.update(KEY, Book.copies == 3), "it goes into when="),
    "a field for a change": (
        lambda db: db.update(KEY, Book.copies),
        "say what becomes of it, Book.copies.set",
    ),
    "a change of another": (
        lambda db: db.update(KEY, Member.copies.set(1)),
        "a change of Member.copies is given",
    ),
    "explained": (lambda db: db.explain.update(KEY, Book.copies == 3), "it goes into when="),
    "a dict for an entity": (lambda db: db.put({}), "put: it stores entities, such as .*, not a dict"),
    "a key for an entity": (lambda db: db.create(KEY), r"not the key Book.Key\(isbn='1'\)"),
    "dicts for entities": (lambda db: db.put_many([{}]), "put_many takes entities"),
    "a class for a key": (lambda db: db.get(Book.Key), "Book.Key: it is a class"),
    "text for a key": (lambda db: db.get("1"), "str: give an entity or its key"),
    "an unnamed argument": (
        lambda _: Book.Key("1"),  # type: ignore[call-arg]  # the mistake
        r"Book.Key: its arguments are given by name: \(isbn=…\)",
    ),
    "an entity for a query": (lambda db: db.query(Book), "Book: it is no query; give one of an entity's"),
    "a key for a query": (lambda db: db.query(KEY), r"Book.Key: it is no query; .* get\(\) takes keys"),
    "a query's class": (lambda db: db.count(Book.All), r"Book.All: it is a class; call it .*: All\(…\)"),
    "a collection's class": (lambda db: db.collect(BookFile), r"call it .*: BookFile\(isbn=…\)"),
    "no collection": (lambda db: db.explain.collect(KEY), "it takes a collection such as"),
    "a key's class to scan": (lambda db: db.scan(Book.Key), "it takes an entity's class such as Ticket"),
    "an entity for a table": (
        lambda db: db.create_tables(Book),
        "Book: it is an entity; give its table, Library",
    ),
    "an entity to look through": (lambda db: db.verify_keys(Book), "Book: it is an entity"),
    "an entity to rewrite": (lambda db: db.backfill(Book), "Book: it is an entity"),
    "text for a table": (lambda db: db.table_changes("Library"), "'Library': it is no table"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_wrong_argument_is_told_with_the_right_one(db: Any, case: str) -> None:
    """No slip of an argument is an AttributeError from the inside, and none is carried out."""
    call, problem = WRONG[case]

    with pytest.raises(ModelError, match=problem):
        call(db)
    assert db.get(KEY) == Book(isbn="1")


def test_conditions_of_a_base_hold_for_what_is_made_of_it(db: Any) -> None:
    """A field of a base is the field of its subclasses, alone and joined with theirs."""
    changed = db.update(KEY, CHANGE, when=(Lent.copies == 0) & (Book.isbn == "1"))
    assert changed.copies == 1
    assert db.update(KEY, Lent.copies.set(2), when=(Book.isbn == "1") | (Lent.copies == 9)).copies == 2
    with pytest.raises(QueryRefused):
        db.update(Member.Key(member_id="1"), Member.copies.set(1), when=Book.isbn == "1")
