"""Error messages name the item by its key and never show its contents, because messages go into logs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tavola import (
    Attr,
    ConditionFailed,
    Connection,
    Entity,
    ItemUnreadable,
    PrimaryKey,
    Query,
    Sort,
    Table,
    TransactionCancelled,
    UniqueViolation,
    attr,
    connect,
    sort,
)

SECRET = "ann@example.org"


class Town(Table):
    """A table."""


class Person(Entity, table=Town):
    """A person with private data."""

    person_id: Attr[str]
    email: Attr[str | None] = attr(default=None, unique=True)
    notes: Attr[str] = attr(default="")

    class Key(PrimaryKey["Person"], pk="PERSON#{person_id}", sk="PERSON"):
        person_id: str


class Pass(Entity, table=Town):
    """A key that is itself a secret."""

    token: Attr[str] = attr(repr=False)
    uses: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Pass"], pk="PASS#{token}", sk="PASS#{uses}"):
        token: str
        uses: int

    class All(Query["Pass"], on=Key):
        token: str
        uses: Sort[int] = sort()


@pytest.fixture
def db() -> Iterator[Connection]:
    """A connection with one person."""
    with connect("memory:") as db:
        db.create_tables(Town)
        db.put(Person(person_id="p1", email=SECRET, notes="x" * 300_000))
        yield db


def test_a_failed_condition_names_the_key_and_holds_the_item(db: Connection) -> None:
    """The sentence is short whatever the item holds; `found` is the item."""
    with pytest.raises(ConditionFailed) as refused:
        db.update(Person.Key(person_id="p1"), Person.notes.set("y"), when=Person.notes == "z")

    assert (
        str(refused.value)
        == "Person person_id='p1': the condition does not hold; the stored item is in .found"
    )
    assert refused.value.found.email == SECRET


def test_a_taken_value_is_on_the_error_and_not_in_its_words(db: Connection) -> None:
    """The value and its owner are attributes of the error, not part of its message."""
    with pytest.raises(UniqueViolation) as refused:
        db.put(Person(person_id="p2", email=SECRET))

    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)
    assert (refused.value.value, refused.value.owner["pk"]) == (SECRET, {"S": "PERSON#p1"})


def test_a_cancelled_transaction_shows_no_content(db: Connection) -> None:
    """Its reasons hold the items and show none of them."""
    with pytest.raises(TransactionCancelled) as refused, db.transaction() as tx:
        tx.update(Person.Key(person_id="p1"), Person.notes.set("y"), when=Person.notes == "z")

    texts = f"{refused.value} {refused.value!r} {refused.value.reasons!r} {refused.value.failed!r}"
    assert SECRET not in texts
    assert len(texts) < 2000
    (reason,) = refused.value.reasons
    assert reason is not None
    assert reason.item is not None
    assert reason.item.email == SECRET


def test_a_field_that_is_not_shown_is_shown_nowhere(db: Connection) -> None:
    """`attr(repr=False)` hides a value in the reprs of entities, keys and selections, and in every message."""
    with pytest.raises(ConditionFailed) as missing:
        db.delete(Pass.Key(token=SECRET, uses=0), when=Pass.token.exists())
    item = {
        "pk": {"S": f"PASS#{SECRET}"},
        "sk": {"S": "PASS#0"},
        "uses": {"S": "none"},
        "_entity": {"S": "Pass"},
    }
    db.call("PutItem", {"TableName": "Town", "Item": item})
    with pytest.raises(ItemUnreadable) as unreadable:
        list(db.scan(Pass))

    shown = [
        missing.value,
        unreadable.value,
        Pass(token=SECRET),
        Pass.Key(token=SECRET, uses=0),
        Pass.All(token=SECRET),
    ]
    assert [SECRET in f"{each} {each!r}" for each in shown] == [False] * 5
    assert str(missing.value).startswith("Pass token=…, uses=0")
    assert unreadable.value.key == {"pk": {"S": f"PASS#{SECRET}"}, "sk": {"S": "PASS#0"}}
