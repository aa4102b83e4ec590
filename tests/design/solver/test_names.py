"""Names: whatever needs, entities and fields are called, the document is a design and the module can be imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tavola.design.solver import render_declarations, solve
from tavola.model.document import Design, Need, check_references, design_of, read_document, write_document
from tests.design.builders import choice, decimal, design, moment, text
from tests.design.solver.test_questions import asked, kept, put

THING = kept(
    "Thing", text("tid"), text("cust"), choice("state", "NEW", "DONE"), moment("at"), decimal("sum"), writes=[put(1)]
)  # fmt: skip
ONE = asked("t", "Thing", "tid", single=True)
AWKWARD = (
    "key", "Key", "class", "None", "none", "query", "attr", "Attr", "literal", "Config", "Thing", "thing", "tid", "Über",
    "für 2", "", "…", "x" * 300, "pk", "settings", "a", "Things", "Annotated", "match", "1st", "by-state", "dt", "Table",
)  # fmt: skip


@contextmanager
def imported(source: str) -> Iterator[ModuleType]:
    """The module that a text declares, as if it were imported."""
    module = ModuleType("solved_names")
    sys.modules[module.__name__] = module  # pydantic looks for a class's names in its module
    try:
        exec(compile(source, module.__name__, "exec"), vars(module))
        yield module
    finally:
        del sys.modules[module.__name__]


def keys_of(told: Design) -> list[object]:
    """Every key of a design."""
    return [
        sorted(
            ((key.index or "", key.hash, key.range) for key in (e.key, *e.keys) if key), key=lambda k: k[0]
        )
        for table in told.tables
        for e in table.entities
    ]


def checked(told: Design) -> str:
    """The module of a solution, after its design and what the module declares were found alike."""
    check_references(told)
    assert read_document(write_document(told)) == told
    source = render_declarations(told)
    with imported(source) as module:
        assert keys_of(design_of(module)) == keys_of(told)
    return source


@pytest.mark.parametrize("name", AWKWARD)
def test_a_need_may_have_any_name(name: str) -> None:
    """Words of Python, of the module and of the table, other letters, none and too many."""
    needs = [ONE, asked(name, "Thing", "cust", "at"), asked(f"{name} ", "Thing", "state", "at")]
    found = solve(design(views=[THING], needs=needs)).design

    checked(found)
    assert all(3 <= len(index.name) <= 255 and index.name.isascii() for index in found.tables[0].indexes)


@settings(max_examples=10, deadline=None)
@drawn(
    st.lists(st.one_of(st.text(max_size=12), st.sampled_from(AWKWARD)), min_size=1, max_size=4, unique=True)
)
def test_needs_may_have_any_names_together(names: list[str]) -> None:
    """Each has its class, and no two the same."""
    fields = ("cust", "state", "at", "sum")
    needs = [ONE, *(asked(name, "Thing", field) for name, field in zip(names, fields, strict=False))]

    checked(solve(design(views=[THING], needs=needs)).design)


@pytest.mark.parametrize(
    "name",
    [
        "Literal",
        "UUID",
        "Decimal",
        "Annotated",
        "Attr",
        "Query",
        "Table",
        "T",
        "Über",
        "Category",
        "Bus",
        "dt",
    ],
)
def test_an_entity_may_have_any_name(name: str) -> None:
    """What the module imports under that name it calls otherwise; tables have three letters and more."""
    needs = [
        asked("one", name, "tid", single=True),
        asked("of cust", name, "cust", "sum"),
        asked("in", name, "state"),
    ]
    found = solve(design(views=[replace(THING, name=name)], needs=needs)).design

    checked(found)
    label = found.tables[0].label
    assert label.isascii()
    assert len(label) >= 3
    assert label == {"Category": "Categories", "Bus": "Buses"}.get(name, label)


def test_fields_may_be_called_as_what_the_module_uses() -> None:
    """`attr`, `sort`, `str`, `set` and `dt` are fields like others, with defaults that stand in the class's way."""
    names = ("attr", "sort", "found", "str", "set", "dt", "Attr", "Decimal", "Sort")
    fields = [replace(text(name), nullable=True, required=False) for name in names]
    thing = kept("Thing", text("tid"), moment("at"), decimal("sum"), *fields, writes=[put(1)])
    needs = [ONE, *(asked(f"by {name}", "Thing", name, "at") for name in names[:4])]

    checked(solve(design(views=[thing], needs=needs)).design)


def test_names_that_python_does_not_take_are_written_otherwise_and_that_is_said() -> None:
    """The attribute stays as it is stored, and the comment at the head of the module says what is called how."""
    fields = (
        text("class"),
        text("_hidden"),
        text("json"),
        text("user-id"),
        replace(text("state"), required=False),
    )
    thing = kept("Thing", text("tid"), *fields, writes=[put(1)])
    needs = [ONE, asked("of class", "Thing", "class", "_hidden"), asked("of json", "Thing", "json")]
    source = render_declarations(solve(design(views=[thing], needs=needs)).design)

    with imported(source) as module:
        told = {field.name: field.attribute for field in design_of(module).tables[0].entities[0].fields}
    assert told == {
        "tid": "tid", "class_": "class", "hidden": "_hidden", "json_": "json", "user_id": "user-id", "state": "state",
    }  # fmt: skip
    head = source.split("from tavola", maxsplit=1)[0]
    assert "Thing.class is now class_" in head
    assert "fields with a default, which are required now: Thing.state" in head


def test_how_long_values_may_be_is_kept() -> None:
    """`length_max` was lost once, silently."""
    thing = replace(
        THING, fields=tuple(replace(f, length_max=40) if f.name == "cust" else f for f in THING.fields)
    )
    found = solve(design(views=[thing], needs=[ONE, Need("of", "Thing", "cust")])).design
    with imported(render_declarations(found)) as module:
        (table,) = design_of(module).tables

    assert table.entities[0].field("cust").length_max == 40
