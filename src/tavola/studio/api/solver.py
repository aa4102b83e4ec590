"""The keys and indexes the solver proposes for a design, with price and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import msgspec

from tavola.design.cost import MonthlyBill
from tavola.design.solver import Alternative, SolveRefused, Style, as_document, render_declarations, solve
from tavola.prices import PriceBook
from tavola.studio.designs import DesignAnalysis, DiffLine, design_text, diff_lines, find_analysis
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import DesignRequest, Document

_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest(DesignRequest):
    """The design to solve, the style of its keys, and how many alternatives to return for each choice."""

    style: Style = "auto"
    alternatives: int = 3
    region: str | None = None


@dataclass(frozen=True, slots=True)
class SolverChoice:
    """One decision: where, which pattern it follows, why, and what else was weighed."""

    place: str
    pattern: str
    scenario: str
    sentence: str
    amount: Decimal | None
    instead: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class SolverMonth:
    """The monthly cost of the proposed design, and of the present one."""

    total: Decimal
    currency: str
    hours: int
    prices: str
    before: Decimal | None
    beside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SolverFinding:
    """What the rules say of the offer."""

    rule: str
    severity: str
    place: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _SolverReport:
    """The document that `tavola solve --json` prints."""

    design: Document
    month: SolverMonth
    choices: tuple[SolverChoice, ...]
    alternatives: tuple[Alternative, ...]
    findings: tuple[SolverFinding, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SolverProposal(_SolverReport):
    """The solver's report, its design as Python declarations, and the differences from the present design."""

    python: str
    text: str  # the design as its document, indented
    lines: tuple[DiffLine, ...]
    tables: int
    indexes: int
    tables_before: int
    indexes_before: int
    difference: str = ""  # what costs less and what more than today, in one sentence


async def solve_design(studio: Studio, params: SolveRequest) -> SolverProposal:
    """Return the solver's offer for a design."""
    subject = await find_analysis(studio, params.design, params.document)
    book = studio.book(params.region) if params.region else studio.local_prices()
    return await studio.run_in_thread(_cached_proposal, subject, params, book)


def _cached_proposal(subject: DesignAnalysis, params: SolveRequest, book: PriceBook) -> SolverProposal:
    return subject.cached(
        ("solved", params.style, params.alternatives, book.title), lambda: _propose(subject, params, book)
    )


def _propose(subject: DesignAnalysis, params: SolveRequest, book: PriceBook) -> SolverProposal:
    try:
        solved = solve(subject.design, style=params.style, book=book)
    except SolveRefused as refused:
        raise RequestRefused(
            "solve-refused",
            "No keys serve every access pattern",
            str(refused),
            "Change what it names, or leave that question out, and solve again.",
            status=409,
        ) from refused
    text = design_text(solved.design)
    report = msgspec.convert(as_document(solved, max(0, params.alternatives)), _SolverReport)
    return SolverProposal(
        report.design,
        report.month,
        report.choices,
        report.alternatives,
        report.findings,
        report.notes,
        python=render_declarations(
            solved.design, f"The design of {subject.name}, as `tavola solve` found it."
        ),
        text=text,
        lines=diff_lines(subject.text, text),
        tables=len(solved.design.tables),
        indexes=sum(len(table.indexes) for table in solved.design.tables),
        tables_before=len(subject.design.tables),
        indexes_before=sum(len(table.indexes) for table in subject.design.tables),
        difference="" if solved.before is None else _describe_savings(solved.before, solved.month),
    )


def _describe_savings(before: MonthlyBill, after: MonthlyBill) -> str:
    """Return in one sentence what an offer saves and where: by what is paid for, and by the access patterns that make the most of it."""
    whats = dict.fromkeys(line.what for line in (*before.lines, *after.lines))
    parts = [(after.of(what) - before.of(what), what) for what in whats]
    changes = [
        f"{what} {_format_change(amount)}"
        for amount, what in sorted(parts, key=lambda part: -abs(part[0]))
        if abs(amount) >= _CENT
    ]
    if not changes:
        return "The offer costs what the present keys cost."
    was = {bill.title: bill.amount for bill in before.bills}
    moved = [(bill.amount - was[bill.title], bill.title) for bill in after.bills if bill.title in was]
    most = [each for each in sorted(moved, key=lambda each: -abs(each[0])) if abs(each[0]) >= _CENT][:2]
    where = "; most of it by " + " and ".join(
        f"“{title}” ({_format_change(amount)})" for amount, title in most
    )
    total = after.total - before.total
    return f"The offer costs {_format_change(total)} a month: {', '.join(changes)}{where if most else ''}."


def _format_change(amount: Decimal) -> str:
    rounded = abs(amount).quantize(_CENT, ROUND_HALF_UP)
    return f"${rounded:,} {'less' if amount < 0 else 'more'}"


ENDPOINTS = (Endpoint("POST", "/design/solve", solve_design, body_bytes_max=_DOCUMENT_BYTES_MAX),)
