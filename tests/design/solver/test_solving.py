"""Solving: the applications' and the gallery's access patterns, keyed anew, no dearer, and right on the engine."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from functools import cache
from types import ModuleType

import pytest

from tavola import connect
from tavola.apps.gallery.samples import SAMPLES
from tavola.design.cost import Assumptions, estimate_month
from tavola.design.lint.rule import LintContext
from tavola.design.lint.runner import lint
from tavola.design.solver import STYLES, SolvedDesign, Style, render_declarations, solve
from tavola.keys import Template
from tavola.model.document import Design, check_references, design_of, needs_of, read_document, write_document
from tavola.prices import load_book
from tests.design.solver.measuring import differences

APPLICATIONS = ("support_desk", "service_desk", "terraform_review")
GALLERY = tuple(name.replace("-", "_") for name in SAMPLES)
NAMES = (*APPLICATIONS, *GALLERY)
STYLED = [  # the gallery shows all of the styles, which are quick there; of the applications the largest does
    (name, style)
    for name in NAMES
    for style in STYLES
    if style == "auto" or name in (*GALLERY, "terraform_review")
]
SECONDS_MAX = 10


@cache
def given(name: str) -> Design:
    """Return a design of ours, with its keys."""
    place = f"tavola.apps.{name}.model" if name in APPLICATIONS else f"tavola.apps.gallery.{name}"
    return design_of(importlib.import_module(place))


@cache
def timed(name: str, style: Style) -> tuple[SolvedDesign, float]:
    """Return the same, solved, and how long that took."""
    start = time.monotonic()
    found = solve(given(name), style=style)
    return found, time.monotonic() - start


def solved(name: str, style: Style = "auto") -> SolvedDesign:
    """Return the same, solved."""
    return timed(name, style)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_solved_design_is_no_dearer_than_ours(name: str) -> None:
    """By one price book and one cost function; and it takes less than the ten seconds it may."""
    book = load_book("us-east-1")
    found, seconds = timed(name, "auto")

    assert found.before is not None
    assert found.month.total <= found.before.total
    if not any("counts as one a second" in note for note in found.notes):  # else both are weighed so
        assert found.before.total == estimate_month(given(name), Assumptions(), book).total
        assert found.month.total == estimate_month(found.design, Assumptions(), book).total
    assert seconds < SECONDS_MAX


@pytest.mark.parametrize(("name", "style"), STYLED)
def test_every_question_is_answered_on_the_engine_for_the_units_foretold(name: str, style: Style) -> None:
    """Items by the solved keys, each question by its pattern: the right ones, in order, for what capacity says."""
    assert differences(given(name), solved(name, style).design) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_solved_design_is_a_design(name: str) -> None:
    """It refers to nothing that is not there, and survives its document."""
    design = solved(name).design

    check_references(design)
    assert read_document(write_document(design)) == design


@pytest.mark.parametrize("name", NAMES)
def test_a_solved_design_lints_as_clean_as_its_source(name: str) -> None:
    """No error, no warning that the entities and settings did not have before, and every need has its key."""
    before = {(finding.rule, finding.place.name) for finding in lint(given(name)).findings}
    design = solved(name).design

    serious = [f for f in lint(design).findings if f.severity != "advice"]
    assert [f for f in serious if (f.rule, f.place.name) not in before] == []
    subject = LintContext(design)
    for need in needs_of(given(name)):
        best = subject.access_paths(need)[0]
        assert best.operation in ("get", "query"), need.name
        assert best.ordered, need.name
        assert not best.filtered, need.name


@pytest.mark.parametrize(("name", "style"), STYLED)
def test_the_python_module_declares_the_solved_design(name: str, style: Style) -> None:
    """What `--python` prints is imported and compiled, and its keys, indexes and patterns are the solved ones."""
    design = solved(name, style).design
    module = ModuleType(f"solved_{name}_{style}")
    exec(compile(render_declarations(design), module.__name__, "exec"), _named(module))

    again = design_of(module)
    _forget(module)
    for ours, theirs in zip(design.tables, again.tables, strict=True):
        assert theirs.indexes == ours.indexes
        assert theirs.key_types == ours.key_types
        assert theirs.collections == ours.collections
        assert theirs.settings == ours.settings
        assert theirs.consumers == ours.consumers
        for one, other in zip(ours.entities, theirs.entities, strict=True):
            assert {key.index: key for key in other.keys} == {key.index: key for key in one.keys}
            alike = {"fields": (), "keys": ()}
            assert replace(other, **alike) == replace(one, **alike)  # type: ignore[arg-type]
            for field, again_ in zip(one.fields, other.fields, strict=True):
                named = (
                    field.choices is not None or field.type != again_.type
                )  # enums and records: by their values
                told = {"type": ""} if named else {}
                if field.required != again_.required:  # a default that no design holds
                    told["required"] = ""
                assert replace(again_, **told) == replace(field, **told)  # type: ignore[arg-type]


def _named(module: ModuleType) -> dict[str, object]:
    import sys

    sys.modules[module.__name__] = module  # pydantic looks for a class's names in its module
    return vars(module)


def _forget(module: ModuleType) -> None:
    import sys

    del sys.modules[module.__name__]


def test_the_same_design_is_solved_alike() -> None:
    """Twice the same, and the same with its own keys taken off: keys count for nothing."""
    for name in ("service_desk", "catalogue", "organisation"):
        first = solve(given(name))

        assert first == solve(given(name))
        assert solve(first.design).month.total == first.month.total


def _broken(design: Design, index: str, hash_text: str = "", range_text: str = "") -> Design:
    """Return a design whose entities have another key in an index."""
    tables = []
    for table in design.tables:
        entities = []
        for entity in table.entities:
            keys = []
            for key in entity.keys:
                if key.index == index:
                    halves = [
                        tuple(replace(source, template=Template.parse(text)) for source in half)
                        if text
                        else half
                        for half, text in ((key.hash, hash_text), (key.range, range_text))
                    ]
                    keys.append(replace(key, hash=halves[0], range=halves[1]))
                    continue
                keys.append(key)
            entities.append(replace(entity, keys=tuple(keys)))
        tables.append(replace(table, entities=tuple(entities)))
    return replace(design, tables=tuple(tables))


def test_a_broken_index_key_is_found_on_the_engine() -> None:
    """Planted: the reviews of a stack are put under their run, or run along their ids; neither answers the question."""
    design = solved("terraform_review").design

    by_run = differences(given("terraform_review"), _broken(design, "by_stack", "STACK#{run_id}"))
    by_id = differences(
        given("terraform_review"), _broken(design, "by_stack", "", "{review_id}#{created_at}")
    )

    assert any("Review.ByStack cannot be asked" in each for each in by_run)
    assert any("Review.ByStack" in each for each in by_id)


def test_a_projection_that_lacks_a_field_is_found_on_the_engine() -> None:
    """Planted: an index forgets the subject that a customer's list shows."""
    design = solved("support_desk").design
    table = design.tables[0]
    indexes = tuple(
        replace(index, projection=tuple(name for name in index.projection if name != "subject"))
        if index.name == "by_customer"
        else index
        for index in table.indexes
    )

    found = differences(
        given("support_desk"), replace(design, tables=(replace(table, indexes=indexes), *design.tables[1:]))
    )

    assert any("lacks subject" in each for each in found)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_each_choice_has_its_reason_and_its_price(name: str) -> None:
    """A sentence for every table and index, in the vocabulary; alternatives are priced whole and never cheaper."""
    found = solved(name)
    places = [choice.place for choice in found.choices]

    for table in found.design.tables:
        assert table.label in places
        assert all(f"{table.label}.{index.label}" in places for index in table.indexes)
    for choice in found.choices:
        assert choice.sentence.endswith(".")
        assert choice.amount is None or choice.amount >= 0
    assert found.alternatives
    assert all(each.amount >= found.month.total for each in found.alternatives)
    assert all(each.why for each in found.alternatives)


def test_the_python_module_works_with_the_client() -> None:
    """Entities of the solved module are put, got, queried in order and collected, with one of each style of index."""
    for style in STYLES:
        module = ModuleType(f"used_{style}")
        exec(
            compile(render_declarations(solved("organisation", style).design), module.__name__, "exec"),
            _named(module),
        )
        told = vars(module)
        table, org, user, together = told["CompanyDirectory"], told["Org"], told["OrgUser"], told["OrgFile"]
        with connect("memory:") as db:
            db.create_tables(table)
            db.put(org(org_id="o#1", plan="large"))
            for number, status in enumerate(("active", "left", "active")):
                db.put(user(org_id="o#1", user_id=f"u{number}", status=status, bio="…"))

            one = db.get(user.Key(org_id="o#1", user_id="u1"))
            assert one is not None
            assert one.status == "left"
            active = db.query(user.ByStatus(org_id="o#1").status.eq("active"))
            assert [each.user_id for each in active.items] == ["u0", "u2"]
            found = db.collect(together(org_id="o#1"))
            assert found.org.plan == "large"
            assert len(found.users) == 3
        _forget(module)
