"""Every rule finds its defect in the design that has it, and nothing in the one that has not.

`cases/<rule>.py` holds FOUND, in which the rule finds at PLACES and nowhere else; CLEAN, in which it finds nothing;
and where useful ALSO and ALSO_CLEAN, more designs by name. PRODUCTION says that the tables are real; SELECT names the
rules to run, where the rule needs others.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tavola.design.findings import Finding
from tavola.design.lint import RULES, lint
from tavola.design.lint import rule as rule_module
from tavola.model.document import Design


def _case(name: str) -> ModuleType:
    return import_module(f"tests.design.lint.cases.{name.replace('-', '_')}")


def _found(name: str, case: ModuleType, design: Design) -> list[Finding]:
    select = getattr(case, "SELECT", [name])
    report = lint(design, production=getattr(case, "PRODUCTION", False), select=select)
    return [finding for finding in report.findings if finding.rule == name]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_finds_its_defect_at_its_place(name: str) -> None:
    """FOUND is found exactly at PLACES, and each message and remedy is a sentence without a full stop."""
    case = _case(name)

    found = _found(name, case, case.FOUND)

    assert [str(finding.place) for finding in found] == list(case.PLACES)
    for finding in found:
        for sentence in (finding.message, finding.remedy):
            assert sentence.strip()
            assert not sentence.endswith(".")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_leaves_a_sound_design_alone(name: str) -> None:
    """CLEAN, and every other design that is said to be sound, has no finding of the rule."""
    case = _case(name)

    for design in (case.CLEAN, *getattr(case, "ALSO_CLEAN", {}).values()):
        assert _found(name, case, design) == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_finds_what_else_it_should(name: str) -> None:
    """Each of ALSO has at least one finding of the rule."""
    case = _case(name)

    for word, design in getattr(case, "ALSO", {}).items():
        assert _found(name, case, design), word


@pytest.mark.parametrize("name", RULES)
def test_a_rule_explains_itself(name: str) -> None:
    """A rule says what is wrong, why, an example and what to do instead."""
    rule = RULES[name]

    assert rule.title.endswith(".")
    assert all((rule.why, rule.example, rule.remedy))


def test_every_file_of_a_rule_is_run_and_has_its_case() -> None:
    """A rule is in RULES, under the name of its file, and has a case; there are more than forty."""
    here = Path(__file__).parent / "cases"
    rules = Path(rule_module.__file__).parent / "rules"

    names = {path.stem.replace("_", "-") for path in rules.glob("*.py") if path.stem != "__init__"}

    assert names == set(RULES)
    assert names == {path.stem.replace("_", "-") for path in here.glob("*.py")}
    assert len(RULES) >= 40
