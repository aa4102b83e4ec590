"""Runs rules over a design and separates suppressed findings from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tavola.design.errors import NoRulesSelected, UnknownRule
from tavola.design.findings import SEVERITIES, DesignPath, Finding
from tavola.design.lint.old_names import current_rule_name
from tavola.design.lint.rule import LintContext, Rule, suppresses
from tavola.design.lint.rules import RULES
from tavola.design.lint.spelling import FileFormat, spell_for
from tavola.model.document import Design, Ignore, TableDesign, TableSettings

_ENTITY_RULES = frozenset(  # rules that need no key: they judge fields and writes
    ("immutable-entity-updated", "large-item", "lost-update", "sequence-from-count", "unbounded-list")
)
_KEY_RULES = frozenset(  # rules that judge what a key is made of
    """
    delimiter-collision hot-partition key-too-long mutable-index-key unpadded-number
    constant-partition-key overlapping-keys time-based-partition-key too-few-shards null-in-index-key
    old-versions-in-index
    """.split()
)


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of a design, and those that an `Ignore` of the design suppresses."""

    findings: tuple[Finding, ...]
    ignored: tuple[tuple[Finding, Ignore], ...] = ()


def lint(
    design: Design,
    *,
    production: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    file_format: FileFormat | None = None,
) -> LintReport:
    """Return the findings of a design, grouped by place: places with errors first, and the worst of a place first.

    `select` names the rules to run (default: all), `ignore` rules to leave out. `file_format` is the format that the design was
    imported from: fixes then name its settings. Raises `UnknownRule` for a name that no
    rule has, and `NoRulesSelected` if no rule is left.
    """
    rules = select_rules(select, ignore)
    raw_findings = list(run_rules(rules, LintContext(design, production=production)))
    findings: list[Finding] = []
    ignored: list[tuple[Finding, Ignore]] = []
    table_numbers = {table.name: number for number, table in reversed(tuple(enumerate(design.tables)))}
    worst: dict[str, int] = {}
    for finding in raw_findings:
        place, rank = str(finding.place), SEVERITIES.index(finding.severity)
        worst[place] = min(rank, worst.get(place, rank))
    for finding in sorted(
        raw_findings, key=lambda finding: (worst[str(finding.place)], *_sort_key(table_numbers, finding))
    ):
        suppressed_by = next(
            (ignore for ignore in design.ignores if ignore.reason and suppresses(ignore, finding)), None
        )
        if suppressed_by is None:
            findings.append(finding if file_format is None else spell_for(finding, file_format))
        else:
            ignored.append((finding, suppressed_by))
    return LintReport(tuple(findings), tuple(ignored))


def run_rules(rules: Sequence[Rule], context: LintContext) -> Iterable[Finding]:
    """Yield the findings of rules; rules that judge other findings (`Rule.last`) run last."""
    guessed = _guessed_places(context)
    first = [
        _soften_guess(finding, guessed) for rule in rules if not rule.last for finding in rule.find(context)
    ]
    keyless = _keyless_design(context.design)
    if keyless is not None:
        entities = LintContext(keyless, production=context.production)
        first += [finding for rule in rules if rule.name in _ENTITY_RULES for finding in rule.find(entities)]
    yield from first
    judges = [rule for rule in rules if rule.last]
    if not judges or not context.design.ignores:
        return
    names = frozenset(rule.name for rule in rules)
    production_findings = () if context.production else _find_as_production(rules, context, first)
    last = replace(context, findings=(*first, *production_findings), rules=names, known=frozenset(RULES))
    for rule in judges:
        yield from rule.find(last)


def find_rule(name: str) -> Rule:
    """Return a rule by its current or old name; `UnknownRule` names the most similar one."""
    rule = RULES.get(current_rule_name(name))
    if rule is None:
        near = get_close_matches(name, RULES, 1, 0.6) or [rule for rule in RULES if name and name in rule]
        raise UnknownRule(name, near[0] if near else None)
    return rule


def select_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the named rules, or all of them, without those in `ignore`."""
    named = [find_rule(name) for name in select] or list(RULES.values())
    excluded = {find_rule(name).name for name in ignore}
    rules = tuple(rule for rule in dict.fromkeys(named) if rule.name not in excluded)
    if not rules:
        raise NoRulesSelected
    return rules


def _find_as_production(
    rules: Sequence[Rule], context: LintContext, findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return what the rules of apparently idle ignores find in production, so that such ignores do not count as idle."""
    idle = {
        current_rule_name(ignore.rule)
        for ignore in context.design.ignores
        if not any(suppresses(ignore, finding) for finding in findings)
    }
    idle_rules = [rule for rule in rules if rule.name in idle and not rule.last]
    production = context.as_production()
    return tuple(finding for rule in idle_rules for finding in rule.find(production))


def _sort_key(table_numbers: Mapping[str, int], finding: Finding) -> tuple[int, str, int, str, str]:
    table = table_numbers.get(finding.place.table, len(table_numbers))
    return table, str(finding.place), SEVERITIES.index(finding.severity), finding.rule, finding.message


def _guessed_places(context: LintContext) -> frozenset[DesignPath]:
    """Return the places of keys that an import guessed from sample items."""
    return frozenset(
        context.key_place(table, entity, key)
        for table, entity, key in context.all_keys()
        if any(source.guessed for source in key.sources)
    )


def _soften_guess(finding: Finding, guessed: frozenset[DesignPath]) -> Finding:
    """Return a finding about a guessed key as advice: the guess itself may be wrong."""
    if finding.rule not in _KEY_RULES or finding.place not in guessed:
        return finding
    return replace(
        finding, severity="advice", message=f"{finding.message}; this key was inferred from sample items"
    )


def _keyless_design(design: Design) -> Design | None:
    """Return a design with one unnamed table for the entities of a design that has no tables yet; None if it has."""
    if design.tables or not design.views:
        return None
    settings = TableSettings(
        name="",
        hash="pk",
        range="sk",
        ttl=None,
        tag=None,
        delimiter="#",
        stream=None,
        recovery=True,
        recovery_days=35,
        encryption=None,
        table_class="STANDARD",
        deletion_protection=True,
        read_units=None,
        write_units=None,
    )
    table = TableDesign("", settings, {"pk": "S", "sk": "S"}, entities=design.views)
    return replace(design, tables=(table,), views=(), needs=())
