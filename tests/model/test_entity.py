"""Entities are pydantic models all the way, and operands on the class are in nobody's way."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, computed_field, field_validator

from tavola import Attr, Entity, Gsi, ModelError, PrimaryKey, Query, Sort, Table, attr, connect, sort
from tavola.model import Operand, shape_of
from tests.client.desk import Ticket, TicketRef

AT = datetime(2026, 1, 1, tzinfo=UTC)
T = TypeVar("T")


class Shelf(Table):
    """Where the test's entities live."""

    by_name = Gsi(pk="gpk", sk="gsk")


class Stamped(Entity):
    """What every item has, without a table of its own."""

    created_at: Attr[datetime] = attr(default_factory=lambda: AT)
    kind: Attr[str] = attr(default="plain")


class Book(Stamped, table=Shelf):
    """A concrete entity of a base, which redeclares a field."""

    book_id: Attr[str]
    name: Attr[Annotated[str, Field(min_length=2)]]
    kind: Attr[str] = attr(default="book")
    pages: Attr[int] = attr(default=0, name="p", description="how many there are")
    parent: Attr[Book | None] = attr(default=None)
    shelves: ClassVar[int] = 3

    class Key(PrimaryKey["Book"], pk="BOOK#{book_id}", sk="BOOK"):
        book_id: str

    class ByName(Query["Book"], on=Shelf.by_name, pk="KIND#{kind}", sk="{name}"):
        kind: str
        name: Sort[str] = sort()

    @field_validator("name")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def label(self) -> str:
        """The name and the number of pages."""
        return f"{self.name} ({self.pages})"


class Loan(BaseModel):
    """A model of somebody else's, with an entity in it."""

    book: Book
    to: str


class Frozen(Entity, frozen=True):  # type: ignore[misc]  # checkers want it said in model_config
    """An entity that cannot be changed."""

    name: Attr[str]


class Versioned(Entity, Generic[T]):
    """A generic base."""

    doc_id: Attr[str]
    body: Attr[T]


class Page(Versioned[list[str]], table=Shelf):
    """What the generic base becomes."""

    class Key(PrimaryKey["Page"], pk="PAGE#{doc_id}", sk="PAGE"):
        doc_id: str


def book(**more: Any) -> Book:
    """Return a book."""
    return Book(**{"book_id": "b1", "name": "Emma", **more})


def test_the_class_has_operands_and_an_instance_values() -> None:
    """A field is an operand on the class, inherited ones too, and a value on an instance."""
    operands: list[Any] = [Book.name, Book.created_at, Stamped.created_at, TicketRef.status]

    assert all(isinstance(operand, Operand) for operand in operands)
    assert (book().name, book().created_at) == ("Emma", AT)
    assert not hasattr(Book, "nothing")
    assert Book.shelves == 3


def test_operands_are_no_defaults() -> None:
    """A redeclared field has its own default, and a required one stays required."""
    assert Book.model_fields["kind"].default == "book"
    assert Book.model_fields["book_id"].is_required()
    assert Book.model_fields["name"].annotation is str
    assert book().kind == "book"


def test_pydantic_checks_values() -> None:
    """Constraints, validators and unknown names are pydantic's matter, as in any model."""
    with pytest.raises(ValidationError, match="at least 2"):
        book(name="E")
    with pytest.raises(ValidationError, match="Extra inputs"):
        book(colour="red")

    assert book(name=" Emma ").name == "Emma"


@pytest.mark.parametrize(
    "copied",
    [
        lambda it: pickle.loads(pickle.dumps(it)),
        copy.copy,
        copy.deepcopy,
        lambda it: it.model_copy(),
        lambda it: Book.model_validate_json(it.model_dump_json(round_trip=True)),
        lambda it: TypeAdapter(Book).validate_python(it.model_dump(round_trip=True)),
        lambda it: Loan(book=it, to="ann").book,
    ],
)
def test_an_entity_is_copied_whole(copied: Any) -> None:
    """Pickle, copies, JSON and other models give the same entity back."""
    told = book(pages=7, parent=book(name="Persuasion"))

    assert copied(told) == told


def test_the_json_schema_is_of_the_bare_types() -> None:
    """Tools see the types that were written inside of `Attr`, with their constraints and descriptions."""
    schema = json.loads(json.dumps(Book.model_json_schema()))
    properties = schema["$defs"]["Book"]["properties"]

    assert properties["name"] == {"minLength": 2, "title": "Name", "type": "string"}
    assert properties["pages"]["description"] == "how many there are"


def test_a_frozen_entity_has_operands_too() -> None:
    """Pydantic's settings may stand among the class keywords."""
    told = Frozen(name="x")

    with pytest.raises(ValidationError, match="frozen"):
        told.name = "y"  # type: ignore[misc]
    assert isinstance(Frozen.name, Operand)
    assert hash(told) == hash(Frozen(name="x"))


def test_a_generic_base_is_stored_as_what_it_became() -> None:
    """The type argument of a generic entity is its field's type."""
    with connect("memory:") as db:
        db.create_tables(Shelf)
        db.put(Page(doc_id="d", body=["a", "b"]))
        found = db.get(Page.Key(doc_id="d"))

    assert found is not None
    assert found.body == ["a", "b"]
    assert shape_of(Page).fields["body"].annotation == list[str]
    assert isinstance(Page.body, Operand)  # type: ignore[misc]  # mypy: generic on the class


def test_inherited_fields_feed_keys() -> None:
    """A base's fields are stored, indexed and asked for as an entity's own."""
    with connect("memory:") as db:
        db.create_tables(Shelf)
        db.put(book())
        found = db.query(Book.ByName(kind="book").name.begins_with("Em").where(Book.created_at >= AT))

    assert found.items == [book()]


def test_a_condition_is_not_true_or_false() -> None:
    """`and`, `or`, `not`, `in` and chained comparisons would lose terms in silence, so they are errors."""
    one: Any = Book.name == "x"
    pages: Any = Book.pages

    for wrong in (lambda: one and one, lambda: one or one, lambda: not one, lambda: 1 < pages < 5):
        with pytest.raises(TypeError, match="combine conditions with &"):
            wrong()


def test_a_class_that_was_refused_leaves_nothing_behind() -> None:
    """A declaration that failed can be mended and made again, with its view, as in a notebook."""
    module = ModuleType("tests.model.notebook")
    wrong, right = "held: Attr[int]", "held: Attr[str]"
    cell = """
class Case(Entity, table=Desk):
    case_id: Attr[str]
    held: Attr[str]

    class Key(PrimaryKey["Case"], pk="CASE#{case_id}", sk="CASE"):
        case_id: str

    class ByHeld(Query["Held"], on=Desk.keys, pk="H#{held}", sk="X"):
        held: str

class Held(Entity):
    case_id: Attr[str]
    HELD
"""
    sys.modules[module.__name__] = module
    vars(module).update(Entity=Entity, Attr=Attr, PrimaryKey=PrimaryKey, Query=Query)
    exec(
        "from tavola import *\nclass Desk(Table):\n    keys = Gsi(pk='a', sk='b', projection='KEYS_ONLY')",
        vars(module),
    )

    with pytest.raises(
        ModelError, match=r"its type is int, but str in Case, which Case\.ByHeld returns; use that type"
    ):
        exec(cell.replace("HELD", wrong), vars(module))
    for _ in range(2):
        exec(cell.replace("HELD", right), vars(module))

    del sys.modules[module.__name__]
    assert shape_of(module.Case).patterns["ByHeld"].result == "Held"


def test_names_may_be_declared_later() -> None:
    """An entity that speaks of a class below it is whole when it is first used."""

    class Case(Entity, table=Shelf):
        case_id: Attr[str]
        parts: Attr[list[Later]]

        class Key(PrimaryKey["Case"], pk="CASE#{case_id}", sk="CASE"):
            case_id: str

    told = Case(case_id="c", parts=[Later(word="x")])
    with connect("memory:") as db:
        db.create_tables(Shelf)
        db.put(told)

        assert db.get(Case.Key(case_id="c")) == told


class Later(BaseModel):
    """A model that is declared after what speaks of it."""

    word: str


def test_a_ticket_is_made_by_name() -> None:
    """Defaults are applied when an entity is made."""
    ticket = Ticket(ticket_id="t", customer_id="c", subject="s", created_at=AT)

    assert (ticket.status, ticket.priority, ticket.assignee) == ("open", 3, None)
