"""Render a solution as text and as a document for programs."""

from __future__ import annotations

from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.solver.explain import SCENARIOS, Alternative, Choice, describe_members
from tavola.design.solver.solver import SolvedDesign
from tavola.design.text import format_count
from tavola.model.document import IndexDesign, KeyDesign, TableDesign, write_document

WIDTH = 110


def as_text(solved: SolvedDesign, alternatives: int = 3) -> str:
    """Return a solved design as a report: keys, reasons, costs, alternatives, lint findings and notes."""
    month = solved.month
    index_count = sum(len(table.indexes) for table in solved.design.tables)
    head = (
        f"{format_count(len(solved.design.tables), 'table')} and {format_count(index_count, 'index', 'indexes')}: "
        f"{_format_money(month.total, month.currency)} a month (of {month.hours} hours, prices of {month.book})"
    )
    lines = [head]
    if solved.before is not None:
        unrouted = len(solved.needs_without_route)
        exclusion = (
            f", without {format_count(unrouted, 'need')} that nobody says how it asks today" if unrouted == 1
            else f", without {format_count(unrouted, 'need')} that nobody says how they are asked today" if unrouted
            else ""
        )  # fmt: skip
        lines.append(
            f"As it is keyed now it costs {_format_money(solved.before.total, month.currency)}{exclusion}."
        )
    for table in solved.design.tables:
        lines += ["", *_table_lines(table, solved, alternatives)]
    others = [each for each in solved.alternatives if each.place == "design"][:alternatives]
    if others:
        lines += [
            "",
            "the whole design otherwise",
            *(_alternative_lines(each, month.currency) for each in others),
        ]
    if solved.findings:
        lines += ["", "what the linter says of it"]
        for finding in solved.findings:
            lines += _wrap(f"{finding.severity} {finding.rule}, {finding.place}: {finding.message}", "  ")
    if solved.notes:
        lines += ["", "to know"]
        for text in solved.notes:
            lines += _wrap(text, "  ")
    return "\n".join(lines)


def _table_lines(table: TableDesign, solved: SolvedDesign, alternatives: int) -> list[str]:
    settings = table.settings
    lines = [f"{table.label} ({', '.join(settings.key_names)})"]
    lines += [f"  {entity.name}: {_key_text(entity.key)}" for entity in table.entities]
    lines += _choice_lines(solved, table.label, alternatives)
    for index in table.indexes:
        lines += ["", f"{table.label}.{index.label} ({_index_text(index)})"]
        for entity in table.entities:
            key = entity.key_on(index.name)
            if key is not None:
                lines.append(f"  {entity.name}: {_key_text(key)}")
        lines += _choice_lines(solved, f"{table.label}.{index.label}", alternatives)
    for collection in table.collections:
        members = ", ".join(member.entity for member in collection.members)
        lines += ["", f"{collection.name}: {members} together by {collection.partition.source}"]
    return lines


def _choice_lines(solved: SolvedDesign, place: str, alternatives: int) -> list[str]:
    lines: list[str] = []
    currency = solved.month.currency
    for choice in solved.choices:
        if choice.place != place:
            continue
        money = "" if choice.amount is None else f", {_format_money(choice.amount, currency)}"
        lines += _wrap(f"{choice.pattern} ({SCENARIOS[choice.pattern]}){money}: {choice.sentence}", "  ")
        lines += [_alternative_lines(each, currency) for each in choice.alternatives[:alternatives]]
    return lines


def _alternative_lines(each: Alternative, currency: str) -> str:
    return "\n".join(
        _wrap(f"not {each.what}, {_format_money(each.amount, currency)} in all: {each.why}", "    ")
    )


def _key_text(key: KeyDesign | None) -> str:
    assert key is not None
    parts = [
        " + ".join(s.template.source if s.template is not None else f"{{{s.field}}}" for s in half)
        for half in (key.hash, key.range)
        if half
    ]
    lines = " / ".join(part.replace("#{__shard__:04}", "") for part in parts)
    if key.shards is not None:
        lines += f" over {key.shards.count} shards"
    if key.members:
        lines += f" where {' and '.join(describe_members(key.members))}"
    elif key.sparse:
        lines += " where all of it is there"
    return lines


def _index_text(index: IndexDesign) -> str:
    kind = "local" if index.local else "native" if index.native else "global"
    projection = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
    return f"{kind}; {', '.join(index.hash)}; {', '.join(index.range) or 'no order'}; projects {projection}"


def _wrap(text: str, indent: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False)


def _format_money(amount: Decimal, currency: str) -> str:
    sign = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{amount:,.2f}"


def as_document(solved: SolvedDesign, alternatives: int | None = None) -> dict[str, Any]:
    """Return a solved design with its reasons as JSON data."""
    month = solved.month
    return {
        "design": write_document(solved.design),
        "month": {
            "total": str(month.total),
            "currency": month.currency,
            "hours": month.hours,
            "prices": month.book,
            "before": None if solved.before is None else str(solved.before.total),
            "beside": list(solved.needs_without_route),
        },
        "choices": [_choice(choice, alternatives) for choice in solved.choices],
        "alternatives": [_alternative(each) for each in solved.alternatives if each.place == "design"][
            :alternatives
        ],
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "place": str(finding.place),
                "message": finding.message,
                "remedy": finding.remedy,
            }
            for finding in solved.findings
        ],
        "notes": list(solved.notes),
    }


def _choice(choice: Choice, alternatives: int | None) -> dict[str, Any]:
    return {
        "place": choice.place,
        "pattern": choice.pattern,
        "scenario": SCENARIOS[choice.pattern],
        "sentence": choice.sentence,
        "amount": None if choice.amount is None else str(choice.amount),
        "instead": [_alternative(each) for each in choice.alternatives][:alternatives],
    }


def _alternative(each: Alternative) -> dict[str, Any]:
    return {"place": each.place, "what": each.what, "amount": str(each.amount), "why": each.why}
