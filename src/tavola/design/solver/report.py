"""Render a solution as text and as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.solver.explain import SCENARIOS, Alternative, Choice, describe_members
from tavola.design.solver.solver import SolvedDesign
from tavola.design.text import CENT, format_count, format_money
from tavola.model.document import KeyDesign, TableDesign, write_document


def as_text(solved: SolvedDesign, alternatives: int = 3, width: int = 110) -> str:
    """Return a solved design as a report: keys, reasons, costs, alternatives, lint findings and notes."""
    return "\n".join(_TextReport(solved, alternatives, width).lines())


@dataclass(frozen=True, slots=True)
class _TextReport:
    solved: SolvedDesign
    alternatives: int  # shown for each choice
    width: int

    def lines(self) -> Iterator[str]:
        design, month = self.solved.design, self.solved.month
        indexes = format_count(sum(len(table.indexes) for table in design.tables), "index", "indexes")
        yield f"{format_count(len(design.tables), 'table')} and {indexes}: {self._money(month.total)} per month"
        if self.solved.before is not None:
            unrouted = len(self.solved.needs_without_route)
            excluded = f", without {format_count(unrouted, 'need')} that no key serves" if unrouted else ""
            yield f"Current keys: {self._money(self.solved.before.total)} per month{excluded}"
        yield f"Based on {month.hours} hours and prices of {month.book}"
        for table in design.tables:
            yield from self._table(table)
        others = [alternative for alternative in self.solved.alternatives if alternative.place == "design"][
            : self.alternatives
        ]
        yield from self._section("Alternatives for the whole design", map(self._spell, others))
        findings = self.solved.findings
        yield from self._section(
            "Lint findings",
            (
                f"{finding.severity} {finding.rule}, {finding.place}: {finding.message}"
                for finding in findings
            ),
        )
        yield from self._section("Notes", self.solved.notes)

    def _table(self, table: TableDesign) -> Iterator[str]:
        key = " / ".join(table.settings.key_names)
        yield from self._place(f"Table {table.label}", key, table.label)
        yield from (f"  {entity.name}: {_key_text(entity.key)}" for entity in table.entities)
        yield from self._choices(table.label)
        for index in table.indexes:
            place = f"{table.label}.{index.label}"
            kind = "Local index" if index.local else "Index"
            key = " / ".join(", ".join(half) for half in (index.hash, index.range) if half)
            yield from self._place(f"{kind} {place}", key, place)
            projection = (
                index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
            )
            yield from self._wrap(f"Projection: {projection}", "  ")
            for entity in table.entities:
                if (entity_key := entity.key_on(index.name)) is not None:
                    yield f"  {entity.name}: {_key_text(entity_key)}"
            yield from self._choices(place)
        for collection in table.collections:
            members = ", ".join(member.entity for member in collection.members)
            yield ""
            yield from self._wrap(
                f"Collection {collection.name}: {members} in the partition {collection.partition.source}"
            )

    def _place(self, name: str, key: str, place: str) -> Iterator[str]:
        """Yield the heading of a table or index with its cost, and its key attributes."""
        amounts = [
            choice.amount
            for choice in self.solved.choices
            if choice.place == place and choice.amount is not None
        ]
        yield ""
        yield f"{name}: {self._money(sum(amounts, Decimal(0)))} per month" if amounts else name
        yield from self._wrap(f"Key: {key}", "  ")

    def _choices(self, place: str) -> Iterator[str]:
        for choice in self.solved.choices:
            if choice.place == place:
                yield f"  {choice.pattern} ({SCENARIOS[choice.pattern]})"
                yield from self._wrap(choice.sentence, "    ", "    ")
                for alternative in choice.alternatives[: self.alternatives]:
                    yield from self._wrap(f"Alternative: {self._spell(alternative)}", "    ")

    def _spell(self, alternative: Alternative) -> str:
        total = (
            f" ({self._money(alternative.amount)} in total)"
            if abs(alternative.amount - self.solved.month.total) >= CENT
            else ""
        )
        return f"{alternative.what}: {alternative.why}{total}"

    def _section(self, heading: str, texts: Iterable[str]) -> Iterator[str]:
        entries = list(texts)
        if entries:
            yield ""
            yield heading
            for text in entries:
                yield from self._wrap(text, "  ")

    def _money(self, amount: Decimal) -> str:
        return format_money(amount, self.solved.month.currency)

    def _wrap(self, text: str, indent: str = "", hanging: str | None = None) -> list[str]:
        hanging = f"{indent}  " if hanging is None else hanging
        return wrap(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _key_text(key: KeyDesign | None) -> str:
    assert key is not None
    parts = [
        " + ".join(s.template.source if s.template is not None else f"{{{s.field}}}" for s in half)
        for half in (key.hash, key.range)
        if half
    ]
    text = " / ".join(part.replace("#{__shard__:04}", "") for part in parts)
    if key.shards is not None:
        text += f", {key.shards.count} shards"
    if key.members:
        text += f" where {' and '.join(describe_members(key.members))}"
    elif key.sparse:
        text += ", sparse"
    return text


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
        "alternatives": [
            _alternative(alternative) for alternative in solved.alternatives if alternative.place == "design"
        ][:alternatives],
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
        "instead": [_alternative(alternative) for alternative in choice.alternatives][:alternatives],
    }


def _alternative(alternative: Alternative) -> dict[str, Any]:
    return {
        "place": alternative.place,
        "what": alternative.what,
        "amount": str(alternative.amount),
        "why": alternative.why,
    }
