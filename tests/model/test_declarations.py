"""What cannot work is refused where it is declared, with the class, the part and what to do.

The cases are told in `declarations.txt`: the rule, the declaration, and every word of the refusal.
"""

from __future__ import annotations
import __future__

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tavola import Entity, ModelError
from tavola.model import Selection, Sort, Step

SCRIPT = Path(__file__).with_name("declarations.txt")
MODULE = "tests.model.declared"


@dataclass(frozen=True, slots=True)
class Case:
    """One declaration, and how it is refused."""

    rule: str
    code: str
    refusal: str


def cases(text: str) -> tuple[str, list[Case]]:
    """Return what every case begins with, and the cases."""
    prelude, *told = text.split("====\n")
    found = []
    for block in told:
        rule, _, rest = block.strip().partition("\n")
        code, _, refusal = rest.partition("\n---\n")
        found.append(Case(rule.removeprefix("# "), code, refusal.strip()))
    return prelude, found


PRELUDE, CASES = cases(SCRIPT.read_text(encoding="utf-8"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Run code as a module of its own, with the design that all cases share."""
    module = ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    flags = __future__.annotations.compiler_flag

    def run_(code: str) -> dict[str, Any]:
        exec(compile(code, SCRIPT.name, "exec", flags, dont_inherit=True), vars(module))
        return vars(module)

    run_(PRELUDE)
    return run_


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_wrong_declaration_is_refused(case: Case, run: Any) -> None:
    """The refusal is an error of the model's, in these words."""
    with pytest.raises(ModelError) as refused:
        run(case.code)

    assert str(refused.value) == case.refusal
    assert str(refused.value) == f"{refused.value.place}: {refused.value.problem}"


def test_the_cases_are_of_one_rule_each() -> None:
    """No rule is told twice, and each ends as a sentence."""
    rules = [case.rule for case in CASES]

    assert len(rules) == len(set(rules)) > 120
    assert all(rule.endswith(".") for rule in rules)


def test_a_refusal_says_what_to_do() -> None:
    """After the fault comes the remedy."""
    without = [case.refusal for case in CASES if not any(sign in case.refusal for sign in ";?:—")]

    assert not without
    assert all("<locals>" not in case.refusal for case in CASES)


def test_the_shared_design_is_sound(run: Any) -> None:
    """What the cases begin with is refused by nothing."""
    names = run("")

    assert issubclass(names["Ticket"], Entity)


@pytest.mark.parametrize("mark", [Sort[int], Step[int, Selection[Any]]])
def test_sort_parts_tell_their_type(mark: Any) -> None:
    """The annotation of a sort part is its type with a mark on it."""
    assert mark.__origin__ is int
