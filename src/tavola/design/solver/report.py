"""Render a solution as text and as a document for programs."""

from __future__ import annotations

from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.solver.explain import SCENARIOS, Alternative, Choice, describe_members
from tavola.design.solver.solver import Solved
from tavola.model.document import IndexDesign, KeyDesign, TableDesign, write_document

WIDTH = 110


def as_text(solved: Solved, alternatives: int = 3) -> str:
    """Return a solved design as a page: what it is, why, what it costs, what else was weighed, what to know."""
    month = solved.month
    many = sum(len(table.indexes) for table in solved.design.tables)
    head = (
        f"{_count(len(solved.design.tables), 'table')} and {_count(many, 'index', 'indexes')}: "
        f"{_money(month.total, month.currency)} a month (of {month.hours} hours, prices of {month.book})"
    )
    told = [head]
    if solved.before is not None:
        beside = len(solved.beside)
        but = (
            f", without {_count(beside, 'need')} that nobody says how it asks today" if beside == 1
            else f", without {_count(beside, 'need')} that nobody says how they are asked today" if beside
            else ""
        )  # fmt: skip
        told.append(f"As it is keyed now it costs {_money(solved.before.total, month.currency)}{but}.")
    for table in solved.design.tables:
        told += ["", *_table(table, solved, alternatives)]
    others = [each for each in solved.alternatives if each.place == "design"][:alternatives]
    if others:
        told += ["", "the whole design otherwise", *(_lines(each, month.currency) for each in others)]
    if solved.findings:
        told += ["", "what the linter says of it"]
        for finding in solved.findings:
            told += _wrapped(f"{finding.severity} {finding.rule}, {finding.place}: {finding.message}", "  ")
    if solved.notes:
        told += ["", "to know"]
        for text in solved.notes:
            told += _wrapped(text, "  ")
    return "\n".join(told)


def _table(table: TableDesign, solved: Solved, alternatives: int) -> list[str]:
    settings = table.settings
    told = [f"{table.label} ({', '.join(settings.key_names)})"]
    told += [f"  {entity.name}: {_key(entity.key)}" for entity in table.entities]
    told += _chosen(solved, table.label, alternatives)
    for index in table.indexes:
        told += ["", f"{table.label}.{index.label} ({_shape(index)})"]
        for entity in table.entities:
            key = entity.key_on(index.name)
            if key is not None:
                told.append(f"  {entity.name}: {_key(key)}")
        told += _chosen(solved, f"{table.label}.{index.label}", alternatives)
    for collection in table.collections:
        members = ", ".join(member.entity for member in collection.members)
        told += ["", f"{collection.name}: {members} together by {collection.partition.source}"]
    return told


def _chosen(solved: Solved, place: str, alternatives: int) -> list[str]:
    told: list[str] = []
    currency = solved.month.currency
    for choice in solved.choices:
        if choice.place != place:
            continue
        money = "" if choice.amount is None else f", {_money(choice.amount, currency)}"
        told += _wrapped(f"{choice.pattern} ({SCENARIOS[choice.pattern]}){money}: {choice.sentence}", "  ")
        told += [_lines(each, currency) for each in choice.instead[:alternatives]]
    return told


def _lines(each: Alternative, currency: str) -> str:
    return "\n".join(_wrapped(f"not {each.what}, {_money(each.amount, currency)} in all: {each.why}", "    "))


def _key(key: KeyDesign | None) -> str:
    assert key is not None
    parts = [
        " + ".join(s.template.source if s.template is not None else f"{{{s.field}}}" for s in half)
        for half in (key.hash, key.range)
        if half
    ]
    told = " / ".join(part.replace("#{__shard__:04}", "") for part in parts)
    if key.shards is not None:
        told += f" over {key.shards.count} shards"
    if key.members:
        told += f" where {' and '.join(describe_members(key.members))}"
    elif key.sparse:
        told += " where all of it is there"
    return told


def _shape(index: IndexDesign) -> str:
    kind = "local" if index.local else "native" if index.native else "global"
    projection = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
    return f"{kind}; {', '.join(index.hash)}; {', '.join(index.range) or 'no order'}; projects {projection}"


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False)


def _money(amount: Decimal, currency: str) -> str:
    sign = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{amount:,.2f}"


def _count(many: int, one: str, more: str = "") -> str:
    return f"{many} {one if many == 1 else more or f'{one}s'}"


def as_document(solved: Solved, alternatives: int | None = None) -> dict[str, Any]:
    """Return a solved design with its reasons as a document of dicts, lists, texts and numbers."""
    month = solved.month
    return {
        "design": write_document(solved.design),
        "month": {
            "total": str(month.total),
            "currency": month.currency,
            "hours": month.hours,
            "prices": month.book,
            "before": None if solved.before is None else str(solved.before.total),
            "beside": list(solved.beside),
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
        "instead": [_alternative(each) for each in choice.instead][:alternatives],
    }


def _alternative(each: Alternative) -> dict[str, Any]:
    return {"place": each.place, "what": each.what, "amount": str(each.amount), "why": each.why}
