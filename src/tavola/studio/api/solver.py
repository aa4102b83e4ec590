"""The keys and indexes the solver proposes for a design, with price and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tavola.design.cost import MonthlyBill
from tavola.design.solver import SolveRefused, Style, as_document, render_declarations, solve
from tavola.model.document import write_document
from tavola.prices import PriceBook
from tavola.studio.designs import DesignAnalysis, DiffLine, design_text, diff_lines, find_analysis
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import Document

_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """Which design is to be keyed anew, in which style, and how many other ways are told of each choice."""

    design: str | None = None
    document: str | None = None
    style: Style = "auto"
    alternatives: int = 3
    region: str | None = None


@dataclass(frozen=True, slots=True)
class SolverAlternative:
    """Another way, what the whole design would cost with it in a month, and why it was not taken."""

    place: str
    what: str
    amount: str
    why: str


@dataclass(frozen=True, slots=True)
class SolverChoice:
    """One decision: where, which pattern it follows, why, and what else was weighed."""

    place: str
    pattern: str
    scenario: str
    sentence: str
    amount: str | None
    instead: tuple[SolverAlternative, ...]


@dataclass(frozen=True, slots=True)
class SolverMonth:
    """What a month costs as the solver would have it, and as it is."""

    total: str
    currency: str
    hours: int
    prices: str
    before: str | None
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
class SolverProposal:
    """What `tavola solve --json` prints, the module that `--python` prints, and how the document differs from the present one."""

    design: Document
    month: SolverMonth
    choices: tuple[SolverChoice, ...]
    alternatives: tuple[SolverAlternative, ...]
    findings: tuple[SolverFinding, ...]
    notes: tuple[str, ...]
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
            "No keys serve everything that is params",
            str(refused),
            "Change what it names, or leave that question out, and solve again.",
            status=409,
        ) from refused
    told = as_document(solved, max(0, params.alternatives))
    text = design_text(solved.design)
    return SolverProposal(
        design=write_document(solved.design),
        month=SolverMonth(**{**told["month"], "beside": tuple(told["month"]["beside"])}),
        choices=tuple(_solver_choice(each) for each in told["choices"]),
        alternatives=tuple(SolverAlternative(**each) for each in told["alternatives"]),
        findings=tuple(SolverFinding(**each) for each in told["findings"]),
        notes=tuple(told["notes"]),
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
    told = [
        f"{what} {_format_change(amount)}"
        for amount, what in sorted(parts, key=lambda part: -abs(part[0]))
        if abs(amount) >= _CENT
    ]
    if not told:
        return "The offer costs what the present keys cost."
    was = {bill.title: bill.amount for bill in before.bills}
    moved = [(bill.amount - was[bill.title], bill.title) for bill in after.bills if bill.title in was]
    most = [each for each in sorted(moved, key=lambda each: -abs(each[0])) if abs(each[0]) >= _CENT][:2]
    where = "; most of it by " + " and ".join(
        f"“{title}” ({_format_change(amount)})" for amount, title in most
    )
    total = after.total - before.total
    return f"The offer costs {_format_change(total)} a month: {', '.join(told)}{where if most else ''}."


def _format_change(amount: Decimal) -> str:
    told = abs(amount).quantize(_CENT, ROUND_HALF_UP)
    return f"${told:,} {'less' if amount < 0 else 'more'}"


def _solver_choice(told: dict[str, Any]) -> SolverChoice:
    return SolverChoice(**{**told, "instead": tuple(SolverAlternative(**each) for each in told["instead"])})


ENDPOINTS = (Endpoint("POST", "/design/solve", solve_design, body_bytes_max=_DOCUMENT_BYTES_MAX),)
