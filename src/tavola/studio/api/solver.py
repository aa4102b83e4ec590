"""The keys and indexes the solver proposes for a design, with price and reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from tavola.design.cost import MonthlyBill
from tavola.design.findings import Finding
from tavola.design.solver import (
    SCENARIOS,
    Alternative,
    Choice,
    SolverError,
    Style,
    render_declarations,
    solve,
)
from tavola.design.solver.explain import Pattern
from tavola.prices import PriceBook
from tavola.studio.designs import DesignAnalysis, DiffLine, design_text, diff_lines, find_analysis
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import DOCUMENT_BYTES_MAX, ApiMessage, DesignRequest

_CENT = Decimal("0.01")


class SolveRequest(DesignRequest, kw_only=True):
    """The design to solve, the style of its keys, and how many alternatives to return for each choice."""

    style: Style = "auto"
    alternatives: int = 3
    region: str | None = None


class SolverProposal(ApiMessage):
    """The proposed design with its reasons and cost, and its differences from the present design."""

    month: MonthlyBill
    total: Decimal  # of `month`
    total_before: Decimal | None  # of the present design; None if it has no keys
    needs_without_route: tuple[str, ...]  # not part of `total_before`
    choices: tuple[Choice, ...]
    scenarios: Mapping[Pattern, str]  # when each pattern is used
    alternatives: tuple[Alternative, ...]  # to the whole design
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    python: str
    text: str  # the design as its document, indented
    lines: tuple[DiffLine, ...]
    tables: int
    indexes: int
    tables_before: int
    indexes_before: int
    difference: str  # the change of the monthly cost, in one sentence


async def solve_design(studio: Studio, params: SolveRequest) -> SolverProposal:
    """Return the solver's proposal for a design."""
    subject = await find_analysis(studio, params.design, params.document)
    book = studio.book(params.region) if params.region else studio.local_prices()
    name = ("solved", params.style, params.alternatives, book.title)
    return await studio.run_in_thread(subject.get_or_compute, name, lambda: _propose(subject, params, book))


def _propose(subject: DesignAnalysis, params: SolveRequest, book: PriceBook) -> SolverProposal:
    try:
        solved = solve(subject.design, style=params.style, book=book)
    except SolverError as refused:
        raise RequestRefused(
            "solve-refused",
            "No keys serve every access pattern",
            str(refused),
            "Change or remove the access pattern it names, then solve again.",
            status=409,
        ) from refused
    text = design_text(solved.design)
    shown = max(0, params.alternatives)
    return SolverProposal(
        month=solved.month,
        total=solved.month.total,
        total_before=None if solved.before is None else solved.before.total,
        needs_without_route=solved.needs_without_route,
        choices=tuple(replace(choice, alternatives=choice.alternatives[:shown]) for choice in solved.choices),
        scenarios=SCENARIOS,
        alternatives=tuple(
            alternative for alternative in solved.alternatives if alternative.place == "design"
        )[:shown],
        findings=solved.findings,
        notes=solved.notes,
        python=render_declarations(
            solved.design, f"The design of {subject.name}, as solved by `tavola solve`."
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
    """Return the change of the monthly cost in one sentence: by price component, and by access pattern."""
    whats = dict.fromkeys(line.what for line in (*before.lines, *after.lines))
    parts = [(after.of(what) - before.of(what), what) for what in whats]
    changes = [
        f"{what} {_format_change(amount)}"
        for amount, what in sorted(parts, key=lambda part: -abs(part[0]))
        if abs(amount) >= _CENT
    ]
    if not changes:
        return "The proposal costs the same as the current design."
    was = {bill.title: bill.amount for bill in before.bills}
    moved = [(bill.amount - was[bill.title], bill.title) for bill in after.bills if bill.title in was]
    most = [
        change
        for change in sorted(moved, key=lambda moved_amount: -abs(moved_amount[0]))
        if abs(change[0]) >= _CENT
    ][:2]
    where = "; mostly from " + " and ".join(f"“{title}” ({_format_change(amount)})" for amount, title in most)
    total = after.total - before.total
    return (
        f"The proposal costs {_format_change(total)} per month: {', '.join(changes)}{where if most else ''}."
    )


def _format_change(amount: Decimal) -> str:
    rounded = abs(amount).quantize(_CENT, ROUND_HALF_UP)
    return f"${rounded:,} {'less' if amount < 0 else 'more'}"


ENDPOINTS = (Endpoint("POST", "/design/solve", solve_design, body_bytes_max=DOCUMENT_BYTES_MAX),)
