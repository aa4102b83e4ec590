"""Runner: every rule over a design → findings, without those that somebody lets stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tavola.design.findings import SEVERITIES, Finding
from tavola.design.lint.errors import RulesMissing, RuleUnknown
from tavola.design.lint.guesses import guessed_places, softened
from tavola.design.lint.keyless import OF_ENTITIES, stand_in
from tavola.design.lint.rule import Rule, Subject, covers
from tavola.design.lint.rules import RULES
from tavola.model.document import Design, Ignore


@dataclass(frozen=True, slots=True)
class Report:
    """What the rules found: what stands, and what is ignored, with who said so and why."""

    findings: tuple[Finding, ...]
    ignored: tuple[tuple[Finding, Ignore], ...] = ()


def lint(
    design: Design,
    *,
    production: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Report:
    """Return what is wrong with a design, place by place; those with errors come first, and the worst of a place.

    `select` names the rules to run, all of them if none; `ignore` names some to leave out. A name of no rule is refused,
    and so is leaving out all of them.
    """
    rules = chosen(select, ignore)
    subject = Subject(design, production=production)
    found = list(run(rules, subject))
    standing: list[Finding] = []
    ignored: list[tuple[Finding, Ignore]] = []
    places = {table.name: number for number, table in reversed(tuple(enumerate(design.tables)))}
    worst: dict[str, int] = {}
    for finding in found:
        place, rank = str(finding.place), SEVERITIES.index(finding.severity)
        worst[place] = min(rank, worst.get(place, rank))
    for finding in sorted(found, key=lambda finding: (worst[str(finding.place)], *_order(places, finding))):
        by = next((each for each in design.ignores if each.reason and covers(each, finding)), None)
        if by is None:
            standing.append(finding)
        else:
            ignored.append((finding, by))
    return Report(tuple(standing), tuple(ignored))


def run(rules: Sequence[Rule], subject: Subject) -> Iterable[Finding]:
    """Give what rules find, each asked once, those that judge the others' findings last."""
    guessed = guessed_places(subject)
    first = [softened(finding, guessed) for rule in rules if not rule.last for finding in rule.find(subject)]
    bare = stand_in(subject.design)
    if bare is not None:
        of_entities = Subject(bare, production=subject.production)
        first += [finding for rule in rules if rule.name in OF_ENTITIES for finding in rule.find(of_entities)]
    yield from first
    judges = [rule for rule in rules if rule.last]
    if not judges or not subject.design.ignores:
        return
    names = frozenset(rule.name for rule in rules)
    more = () if subject.production else _in_production(rules, subject, first)
    last = replace(subject, findings=(*first, *more), rules=names, known=frozenset(RULES))
    for rule in judges:
        yield from rule.find(last)


def _in_production(rules: Sequence[Rule], subject: Subject, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what the rules of ignores that seem idle would find of a table in production: those are not."""
    idle = {
        ignore.rule
        for ignore in subject.design.ignores
        if not any(covers(ignore, finding) for finding in found)
    }
    asked = [rule for rule in rules if rule.name in idle and not rule.last]
    real = subject.as_production()
    return tuple(finding for rule in asked for finding in rule.find(real))


def rule_named(name: str) -> Rule:
    """Return a rule by its name; refuse a name that none has, with the nearest."""
    found = RULES.get(name)
    if found is None:
        near = get_close_matches(name, RULES, 1, 0.6)
        raise RuleUnknown(name, near[0] if near else None)
    return found


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that are named, or all, without those that are to be left out."""
    wanted = [rule_named(name) for name in select] or list(RULES.values())
    without = {rule_named(name).name for name in ignore}
    left = tuple(rule for rule in dict.fromkeys(wanted) if rule.name not in without)
    if not left:
        raise RulesMissing
    return left


def _order(places: Mapping[str, int], finding: Finding) -> tuple[int, str, int, str, str]:
    table = places.get(finding.place.table, len(places))
    return table, str(finding.place), SEVERITIES.index(finding.severity), finding.rule, finding.message
