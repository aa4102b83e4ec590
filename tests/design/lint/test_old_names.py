"""Old rule names are accepted wherever a rule is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola.design.lint import OLD_RULE_NAMES, RULES, find_rule, lint
from tavola.model.document import Ignore
from tests.design.lint.cases import no_point_in_time_recovery as recovery

OLD, NEW = "recovery-missing", "no-point-in-time-recovery"


@pytest.mark.parametrize("old", OLD_RULE_NAMES)
def test_an_old_name_finds_the_rule_that_has_a_new_name(old: str) -> None:
    """Every old name leads to an existing rule, and is not the name of another one."""
    assert old not in RULES
    assert find_rule(old).name == OLD_RULE_NAMES[old]


def test_rules_are_selected_and_left_out_by_their_old_names() -> None:
    """`select` and `ignore` accept old names; findings have the new one."""
    found = lint(recovery.FOUND, production=True, select=[OLD]).findings
    others = lint(recovery.FOUND, production=True, ignore=[OLD]).findings

    assert [each.rule for each in found] == [NEW]
    assert NEW not in {each.rule for each in others}


def test_an_ignore_with_an_old_name_suppresses_the_finding() -> None:
    """An inline ignore that names the old rule is applied, and is neither unknown nor unused."""
    ignored = replace(recovery.FOUND, ignores=(Ignore(OLD, "*", "restored from an export"),))

    report = lint(ignored, production=True)

    assert [finding.rule for finding, _ in report.ignored] == [NEW]
    assert not {"unknown-ignore", "unused-ignore"} & {each.rule for each in report.findings}
