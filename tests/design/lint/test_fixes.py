"""A remedy that is a change of the design is made of it: the finding ends, and no error comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from tavola.design.findings import Finding
from tavola.design.lint import RULES, lint
from tavola.design.lint.remedies import FIXERS, Proposal, propose_fix
from tavola.model.document import Design, EntityDesign, IndexDesign, check_references
from tests.design.builders import bare_number, design, entity, gsi, key, table, text
from tests.design.lint.cases.unused_index import FOUND as UNUSED
from tests.design.seeds import service_desk, support_desk, terraform_review

BY_A_PERSON = {("inefficient-filter", "Whole")}  # a collection whose partition would have to be keyed anew


def _case(name: str) -> Any:
    return import_module(f"tests.design.lint.cases.{name.replace('-', '_')}")


def _unused() -> Finding:
    [finding] = lint(UNUSED, select=["unused-index"]).findings
    return finding


@pytest.mark.parametrize("name", FIXERS)
def test_a_mended_design_has_its_finding_no_more(name: str) -> None:
    """Each finding of the design in which a rule finds its defect is ended by its remedy, which brings no new error."""
    case = _case(name)
    production = getattr(case, "PRODUCTION", False)
    before = lint(case.FOUND, production=production)
    errors = {(each.rule, each.place) for each in before.findings if each.severity == "error"}

    found = [each for each in before.findings if each.rule == name]

    assert found
    for finding in found:
        if (name, str(finding.place)) in BY_A_PERSON:
            continue
        mended = propose_fix(case.FOUND, finding, production=production, before=before)
        assert mended is not None, finding
        again = mended.report
        assert (name, finding.place) not in {(each.rule, each.place) for each in again.findings}
        assert {(each.rule, each.place) for each in again.findings if each.severity == "error"} <= errors
        assert mended.summary.strip()
        assert not mended.summary.endswith(".")
        assert mended.design != case.FOUND


def test_what_is_told_of_a_mended_design_is_what_the_rules_say() -> None:
    """The report that comes with a remedy is that of its design."""
    mended = propose_fix(UNUSED, _unused())

    assert mended is not None
    assert lint(mended.design) == mended.report


def _scores(*others: EntityDesign, nullable: bool = False) -> Design:
    by_score = gsi("by_score", "GSI1PK", "GSI1SK")
    review = entity(
        "Review", text("review_id"), bare_number("score", type="decimal", nullable=nullable), pk="REVIEW#{review_id}",
        keys=[key(by_score, "SCORES", "{score}")],
    )  # fmt: skip
    return design(table(review, *others, indexes=[by_score], foreign=True))


@pytest.mark.parametrize("nullable", [False, True])
def test_fractions_are_sorted_as_numbers_and_never_padded(nullable: bool) -> None:
    """Zeros in front put 000.72 before 0000.7: an index that is the entity's alone is sorted by the number itself."""
    told = _scores(nullable=nullable)
    [finding] = lint(told, select=["unpadded-number"]).findings

    mended = propose_fix(told, finding)

    assert mended is not None
    [only] = mended.design.tables
    assert only.index("by_score").range == ("score",)
    assert only.key_types == {"pk": "S", "sk": "S", "GSI1PK": "S", "score": "N"}
    assert only.entities[0].field("score").type == "decimal"
    assert only.entities[0].keys[0].sparse is nullable


def test_fractions_in_an_index_of_several_take_a_person() -> None:
    """Where others are in the index by another key, its sort key cannot become one entity's number."""
    by_score = gsi("by_score", "GSI1PK", "GSI1SK")
    other = entity("Day", text("day"), pk="DAY#{day}", keys=[key(by_score, "SCORES", "DAY#{day}")])
    told = _scores(other)
    [finding] = lint(told, select=["unpadded-number"]).findings

    assert propose_fix(told, finding) is None


def test_a_statement_that_grants_all_but_some_is_not_dropped() -> None:
    """NotAction names what is left out; taking actions off a list that it has not would take the statement away whole."""
    case = _case("policy-allows-immutable-updates")
    [policy] = case.FOUND.policies
    statement = dict(policy.document["Statement"][0])
    statement["NotAction"] = ["dynamodb:Scan"]
    del statement["Action"]
    told = replace(
        case.FOUND, policies=(replace(policy, document={**policy.document, "Statement": [statement]}),)
    )
    before = lint(told)
    found = [each for each in before.findings if each.rule == "policy-allows-immutable-updates"]

    assert found
    assert all(propose_fix(told, each, before=before) is None for each in found)


def test_most_remedies_are_mechanical() -> None:
    """There are menders for rules alone, and for most of them."""
    assert set(FIXERS) <= set(RULES)
    assert len(FIXERS) >= 55


@pytest.mark.parametrize("name", sorted(set(RULES) - set(FIXERS)))
def test_what_takes_a_person_is_left_to_them(name: str) -> None:
    """A rule whose remedy is no change of the design alone gives none, and still says what to do."""
    case = _case(name)
    found = [
        each
        for each in lint(case.FOUND, production=getattr(case, "PRODUCTION", False)).findings
        if each.rule == name
    ]

    assert found
    assert all(propose_fix(case.FOUND, finding) is None for finding in found)


def _same(found: Design, finding: Finding) -> Iterator[Proposal]:
    yield Proposal(found, "nothing")


def _no_help(found: Design, finding: Finding) -> Iterator[Proposal]:
    [only] = found.tables
    yield Proposal(replace(found, tables=(replace(only, description="other"),)), "a word")


def _worse(found: Design, finding: Finding) -> Iterator[Proposal]:
    [only] = found.tables
    users = tuple(replace(each, keys=()) for each in only.entities)
    bad = tuple(replace(user, immutable=True, writes=_changing(user)) for user in users)
    yield Proposal(replace(found, tables=(replace(only, indexes=(), entities=bad),)), "worse")


def _changing(user: Any) -> tuple[Any, ...]:
    from tests.design.builders import update

    return (update(user.fields[-1].name),)


def _torn(found: Design, finding: Finding) -> Iterator[Proposal]:
    [only] = found.tables
    none = IndexDesign("none", "none", False, ("missing",), (), "ALL")
    yield Proposal(replace(found, tables=(replace(only, indexes=(none,)),)), "torn")


@pytest.mark.parametrize("planted", [_same, _no_help, _worse, _torn])
def test_a_proposal_that_is_no_remedy_is_not_shown(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that changes nothing, ends nothing, brings an error or is no design is left out."""
    monkeypatch.setitem(FIXERS, "unused-index", planted)

    assert propose_fix(UNUSED, _unused()) is None


def test_the_first_proposal_without_a_warning_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several ways the first that is a remedy is shown, whatever came before it."""
    real = FIXERS["unused-index"]

    def several(found: Design, finding: Finding) -> Iterator[Proposal]:
        yield from _worse(found, finding)
        yield from real(found, finding)

    monkeypatch.setitem(FIXERS, "unused-index", several)

    mended = propose_fix(UNUSED, _unused())

    assert mended is not None
    assert "can delete it from an existing table" in mended.summary


def test_a_place_whose_name_begins_as_another_does_is_not_taken_for_it() -> None:
    """`User` and `UserGroup` are two: the remedy of one leaves the other as it is."""
    by_mail = gsi("by_mail", "GSI1PK")
    shop = design(
        table(
            entity("User", text("user_id"), pk="USER#{user_id}"),
            entity("UserGroup", text("group_id"), pk="GROUP#{group_id}"),
            indexes=[by_mail],
        )
    )
    [finding] = lint(shop, select=["unused-index"]).findings

    mended = propose_fix(shop, finding)

    assert mended is not None
    check_references(mended.design)
    assert mended.design.tables[0].entities == shop.tables[0].entities
    assert mended.design.tables[0].indexes == ()


def _every() -> Iterator[tuple[str, Design]]:
    for module in (support_desk, service_desk, terraform_review):
        found = [each for each in vars(module).values() if isinstance(each, Design)]
        yield from ((module.__name__.rpartition(".")[2], each) for each in found)
    for name in RULES:
        for word, each in getattr(_case(name), "ALSO", {}).items():
            yield f"{name}: {word}", each


@pytest.mark.parametrize(("name", "told"), list(_every()))
def test_whatever_is_found_is_mended_or_left(name: str, told: Design) -> None:
    """Of any finding of any design there is a remedy that ends it without a new error, or none; nothing breaks."""
    before = lint(told, production=True)
    errors = {(each.rule, each.place) for each in before.findings}

    for finding in before.findings:
        mended = propose_fix(told, finding, production=True, before=before)
        if mended is not None:
            after = mended.report.findings
            assert (finding.rule, finding.place) not in {(each.rule, each.place) for each in after}
            assert {(each.rule, each.place) for each in after if each.severity == "error"} <= errors
