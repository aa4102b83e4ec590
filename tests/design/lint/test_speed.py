"""A large design of other code is linted in the time of a look at it."""

from __future__ import annotations

from time import process_time

import pytest

from tavola.design.lint import RULES, lint
from tavola.design.lint.rule import LintContext, Rule
from tavola.design.lint.runner import run_rules
from tavola.model.document import Design, Given, Ignore, Need, Route, TableDesign
from tests.design.builders import access, design, entity, gsi, key, moment, put, query, table, text, update

BOUND_S = 5  # on a busy machine; alone it takes less than two


def _table(number: int, entities: int, *, shared: bool) -> TableDesign:
    indexes = [gsi(f"G{each}", f"G{each}PK", f"G{each}SK") for each in range(5)]
    told = []
    for each in range(entities):
        word = "E" if shared else f"E{each}"
        told.append(
            entity(
                f"E{number}_{each}", text("id"), text("a", distinct=5_000), text("b"), moment("at"),
                pk=f"{word}#{{a}}", sk=f"E{each}#{{id}}",
                keys=[key(index, f"{word}A{at}#{{a}}", f"E{each}#{{at}}") for at, index in enumerate(indexes)],
                patterns=[query(f"Q{at}", index, "a", "at", per_second=1, items=1, item_bytes=100) for at, index in enumerate(indexes)],
                writes=[put(per_second=1, item_bytes=100), update("b", per_second=1, item_bytes=100)],
                primary={"per_second": 1, "items": 1, "item_bytes": 100},
            )
        )  # fmt: skip
    return table(*told, label=f"T{number}", indexes=indexes, foreign=True)


def _large(tables: int, entities: int, *, shared: bool) -> Design:
    needs = [
        Need(
            f"need {number}.{each}", f"E{number}_{each}", "a", "at", access(f"need {number}.{each}", per_second=3, items=2),
            route=Route("query", "G1", (Given("G1PK"),)),
        )
        for number in range(tables)
        for each in range(entities)
    ]  # fmt: skip
    return design(*(_table(number, entities, shared=shared) for number in range(tables)), needs=needs)


@pytest.mark.slow
def test_twenty_tables_of_twenty_entities_are_linted_at_once() -> None:
    """400 entities of other code with 2,400 keys, half of the tables with all entities in one partition, and 400 routed needs."""
    apart, together = _large(10, 20, shared=False), _large(10, 20, shared=True)
    started = process_time()

    lint(apart)
    lint(together)

    assert process_time() - started < BOUND_S


def test_a_rule_is_asked_once() -> None:
    """Without an ignore that seems idle each rule runs once; with one, its rule alone runs again, as in production."""
    asked: list[tuple[str, bool]] = []

    def counting(rule: Rule) -> Rule:
        def find(subject: LintContext) -> object:
            asked.append((rule.name, subject.production))
            return rule.find(subject)

        return Rule(
            rule.name, rule.severity, rule.title, rule.why, rule.example, rule.remedy, find, rule.last  # type: ignore[arg-type]
        )  # fmt: skip

    rules = [counting(rule) for rule in RULES.values()]
    plain = _large(1, 2, shared=False)

    list(run_rules(rules, LintContext(plain)))
    assert sorted(name for name, _ in asked) == sorted(rule.name for rule in rules if not rule.last)

    asked.clear()
    idle = Design(
        plain.tables,
        needs=plain.needs,
        ignores=(Ignore("no-point-in-time-recovery", "T0", "a copy is kept"),),
    )
    list(run_rules(rules, LintContext(idle)))
    assert [name for name, production in asked if production] == ["no-point-in-time-recovery"]
