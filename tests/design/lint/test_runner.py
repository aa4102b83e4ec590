"""The runner: which rules run, in which order findings come, and what is let stand."""

from __future__ import annotations

import pytest

from tavola.design.lint import RULES, UnknownRule, find_rule, lint
from tavola.model.document import DocumentRefused, Ignore, Need, check_references
from tests.design.builders import access, design, entity, gsi, table, text

SHOP = table(
    entity("User", text("user_id"), text("name"), pk="USER#{user_id}"), indexes=[gsi("by_mail", "GSI1PK")]
)
MARKET = table(
    entity("Stall", text("stall_id"), pk="STALL#{stall_id}"),
    label="Market",
    indexes=[gsi("by_day", "GSI1PK")],
)
ONLY = ["unused-index", "unserved-pattern"]


def test_findings_come_by_the_worst_of_their_place_then_by_table_and_place() -> None:
    """Places with errors come first; the others in the order of the tables, then of the names of places."""
    both = design(SHOP, MARKET, needs=[Need("by name", "User", "name")])

    found = lint(both, select=ONLY).findings

    assert [str(each.place) for each in found] == ["by name", "Shop.by_mail", "Market.by_day"]


@pytest.mark.parametrize("place", ["Shop.by_mail", "Shop", "*"])
def test_an_ignore_covers_its_place_and_what_is_in_it(place: str) -> None:
    """A finding is let stand by an ignore of its rule at its place, at what holds it, or everywhere; it is kept with the reason."""
    told = Ignore("unused-index", place, "a job asks it")

    report = lint(design(SHOP, ignores=[told]), select=ONLY)

    assert report.findings == ()
    assert [ignore.reason for _, ignore in report.ignored] == ["a job asks it"]


@pytest.mark.parametrize(
    "ignore",
    [
        Ignore("unserved-pattern", "Shop", "why"),
        Ignore("unused-index", "Sho", "why"),
        Ignore("unused-index", "Shop", ""),
    ],
)
def test_an_ignore_covers_nothing_else(ignore: Ignore) -> None:
    """Another rule, another place, or no reason lets nothing stand."""
    report = lint(design(SHOP, ignores=[ignore]), select=ONLY)

    assert [each.rule for each in report.findings] == ["unused-index"]


def test_an_ignore_for_production_is_not_idle_before() -> None:
    """What a rule asks of production alone may be ignored in a design that is linted without it."""
    bare = table(entity("User", text("user_id"), pk="USER#{user_id}"), recovery=False)
    told = design(bare, ignores=[Ignore("no-point-in-time-recovery", "Shop", "a copy is kept elsewhere")])

    rules = {each.rule for each in lint(told).findings}

    assert "unused-ignore" not in rules
    assert "no-point-in-time-recovery" not in {each.rule for each in lint(told, production=True).findings}


def test_rules_can_be_left_out() -> None:
    """An ignored rule is not run, and its ignores are not judged."""
    told = design(SHOP, ignores=[Ignore("unused-index", "User", "why")])

    assert lint(told, select=[*ONLY, "unused-ignore"], ignore=["unused-index"]).findings == ()


def test_a_rule_that_nobody_knows_is_refused_with_the_nearest() -> None:
    """A misspelt rule is told, with the one that was meant."""
    with pytest.raises(UnknownRule, match="did you mean unused-index"):
        lint(design(SHOP), select=["unused-indx"])
    with pytest.raises(UnknownRule, match="tavola explain"):
        find_rule("zzz")


def test_a_design_of_nothing_has_no_findings_of_keys() -> None:
    """An empty design is linted like any other."""
    assert {each.rule for each in lint(design()).findings} <= {"table-without-entities"}
    assert len(RULES) > 60


def test_a_need_that_is_called_by_a_number_is_told_by_its_title() -> None:
    """Files of other tools number their patterns; a finding says which one it is."""
    numbered = Need("3", "User", "name", access=access("users of a name"))

    [finding] = lint(design(SHOP, needs=[numbered]), select=["unserved-pattern"]).findings

    assert finding.message.startswith("“users of a name”: No key serves User by name")


def test_two_entities_of_one_name_are_no_design() -> None:
    """A need names an entity by its name alone, so one of the two would be judged by the other's keys."""
    stall = entity("User", text("stall_id"), pk="STALL#{stall_id}")
    both = design(SHOP, table(stall, label="Market"), needs=[Need("by id", "User", "user_id")])

    with pytest.raises(DocumentRefused, match=r"entities\[0\].name: Shop has an entity 'User' too"):
        check_references(both)
