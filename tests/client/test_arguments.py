"""Wrong arguments are refused with a suggestion before any request is sent."""

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
    member,
)


class Library(Table):
    """A table of two kinds."""


class Lent(Entity):
    """Fields that books and records share."""

    copies: Attr[int] = attr(default=0)


class Book(Lent, table=Library):
    """A book."""

    isbn: Attr[str]

    class Key(PrimaryKey["Book"], pk="BOOK#{isbn}", sk="BOOK"):
        isbn: str

    class All(Query["Book"], on=Key):
        isbn: str


class Member(Entity, table=Library):
    """A member with a field that books have too."""

    member_id: Attr[str]
    copies: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
        member_id: str


class BookFile(Collection, pk="BOOK#{isbn}"):
    """A book by itself."""

    isbn: str
    book: Book | None = member()


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
        "Book.put: when= takes a condition .*: this is True; compare the field of the class",
    ),
    "a change for a condition": (
        lambda db: db.update(KEY, CHANGE, when=Book.copies.set(2)),
        "this is a change of copies; pass changes before when=",
    ),
    "a function for a condition": (
        lambda db: db.delete(KEY, when=lambda _: True),
        "this is a function",
    ),
    "a condition on another": (
        lambda db: db.update(KEY, CHANGE, when=Member.copies == 0),
        "when= is a condition on Member; use fields of Book",
    ),
    "in a transaction": (
        lambda db: db.transaction().check(KEY, when=True),
        "Book.check: when= takes a condition",
    ),
    "a filter on another": (
        lambda _: Book.All(isbn="1").where(Member.copies == 0),  # type: ignore[arg-type]  # the mistake
        "the filter is on Member, but the query returns Book; use fields of Book",
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
        "& combines conditions, but True is not one; use a field of the class, not of an",
    ),
    "a dict for a change": (
        lambda db: db.update(KEY, {"copies": 3}),
        "takes changes such as .*: this is a dict",
    ),
    "a condition for a change": (lambda db: db.update(KEY, Book.copies == 3), "pass it as when="),
    "a field for a change": (
        lambda db: db.update(KEY, Book.copies),
        "use Book.copies.set",
    ),
    "a change of another": (
        lambda db: db.update(KEY, Member.copies.set(1)),
        "Member.copies belongs to another entity",
    ),
    "explained": (lambda db: db.explain.update(KEY, Book.copies == 3), "pass it as when="),
    "a dict for an entity": (lambda db: db.put({}), "put: it stores entities, such as .*, not a dict"),
    "a key for an entity": (lambda db: db.create(KEY), r"not the key Book.Key\(isbn='1'\)"),
    "dicts for entities": (lambda db: db.put_many([{}]), "it stores entities"),
    "a class for a key": (lambda db: db.get(Book.Key), "Book.Key: this is a class"),
    "text for a key": (lambda db: db.get("1"), "str: pass an entity or its key"),
    "an unnamed argument": (
        lambda _: Book.Key("1"),  # type: ignore[call-arg]  # the mistake
        r"its arguments are keyword-only: \(isbn=…\)",
    ),
    "an entity for a query": (
        lambda db: db.query(Book),
        r"it is not a query; use one such as Ticket\.ByStatus\(status=…\)\. get\(\) takes keys",
    ),
    "a key for a query": (
        lambda db: db.query(KEY),
        r"it is not a query; use one such as Ticket\.ByStatus\(status=…\)\. get\(\) takes keys",
    ),
    "a query's class": (lambda db: db.count(Book.All), r"Book.All: it is a class; call it .*: All\(…\)"),
    "a collection's class": (lambda db: db.collect(BookFile), r"create an instance with BookFile\(isbn=…\)"),
    "no collection": (lambda db: db.explain.collect(KEY), "it takes a collection such as"),
    "a key's class to scan": (lambda db: db.scan(Book.Key), "it takes an entity class such as Ticket"),
    "an entity for a table": (
        lambda db: db.create_tables(Book),
        "it is an entity; use its table, Library",
    ),
    "an entity to look through": (lambda db: db.verify_keys(Book), "Book: it is an entity"),
    "an entity to rewrite": (lambda db: db.backfill(Book), "Book: it is an entity"),
    "text for a table": (
        lambda db: db.table_changes("Library"),
        r"it is not a table; use a class such as class Desk\(Table\)",
    ),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_wrong_argument_is_refused_with_a_suggestion(db: Any, case: str) -> None:
    """A wrong argument never raises an AttributeError from library code and is never executed."""
    call, problem = WRONG[case]

    with pytest.raises(ModelError, match=problem):
        call(db)
    assert db.get(KEY) == Book(isbn="1")


def test_conditions_of_a_base_class_apply_to_subclasses(db: Any) -> None:
    """A field of a base class is a field of its subclasses, alone and combined with theirs."""
    changed = db.update(KEY, CHANGE, when=(Lent.copies == 0) & (Book.isbn == "1"))
    assert changed.copies == 1
    assert db.update(KEY, Lent.copies.set(2), when=(Book.isbn == "1") | (Lent.copies == 9)).copies == 2
    with pytest.raises(QueryRefused):
        db.update(Member.Key(member_id="1"), Member.copies.set(1), when=Book.isbn == "1")
