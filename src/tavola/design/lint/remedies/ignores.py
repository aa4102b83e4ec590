"""Fixes that change or remove an ignore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from tavola.design.findings import Finding
from tavola.design.lint.remedies.proposal import Fixer, Proposal
from tavola.design.lint.rules import RULES
from tavola.model.document import Design, Ignore


def _ignores_at(design: Design, finding: Finding) -> tuple[Ignore, ...]:
    return tuple(each for each in design.ignores if each.place in (finding.place.name, "*"))


def _remove_ignore(design: Design, finding: Finding) -> Iterator[Proposal]:
    for ignore in _ignores_at(design, finding):
        rest = tuple(each for each in design.ignores if each is not ignore)
        yield Proposal(
            replace(design, ignores=rest),
            f"the ignore of {ignore.rule} at {ignore.place} is gone; in Python it is the comment # tavola: ignore[{ignore.rule}]",
        )


def _correct_rule_name(design: Design, finding: Finding) -> Iterator[Proposal]:
    for ignore in _ignores_at(design, finding):
        near = get_close_matches(ignore.rule, RULES, 1, 0.6)
        if ignore.rule not in RULES and near:
            meant = replace(ignore, rule=near[0])
            yield Proposal(
                replace(design, ignores=tuple(meant if each is ignore else each for each in design.ignores)),
                f"it ignores {near[0]}",
            )
    yield from _remove_ignore(design, finding)


FIXERS: dict[str, Fixer] = {
    "ignore-of-no-rule": _correct_rule_name,
    "ignore-of-nothing": _remove_ignore,
    "ignore-without-reason": _remove_ignore,
}
