"""The design as a diagram, its lint findings, their remedies as diffs, and its differences from live tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

from tavola.design.findings import Severity
from tavola.design.lint import FIXERS, RULES, LintFix, Rule, report_document, rule_document
from tavola.design.solver import render_declarations
from tavola.errors import TavolaError
from tavola.iac import DesignChange, TableComparison, comparison_steps
from tavola.prices import PriceBook
from tavola.studio.designs import (
    DesignAnalysis,
    DiffLine,
    TablePicture,
    design_names,
    design_of_table,
    design_text,
    diff_lines,
    draw_tables,
    find_analysis,
    finding_id,
    monthly_cost_of,
    node_id,
    studio_analysis,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.studio import Studio
from tavola.studio.types import DesignRequest, NoParameters
from tavola.web import Problem

_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignOrTableRequest(DesignRequest):
    """A design, or a table of one of the studio's designs; in comparisons the only table to compare."""

    table: str | None = None


@dataclass(frozen=True, slots=True)
class NeedPicture:
    """A question that is to be answered and says no query of its own."""

    name: str
    title: str
    entities: tuple[str, ...]
    asked_with: tuple[str, ...]
    route: str  # how it is queried today; empty if unknown


@dataclass(frozen=True, slots=True)
class DesignPicture:
    """A design as it is drawn, table by table."""

    name: str
    own: bool  # it is one of the studio's, and no document that came along
    names: tuple[str, ...]  # of the studio's own designs
    tables_of: tuple[tuple[str, str], ...]  # every table of these, with the design that it belongs to
    tables: tuple[TablePicture, ...]
    needs: tuple[NeedPicture, ...]
    entities_without_table: tuple[str, ...]
    policies: tuple[str, ...]


async def draw_design(studio: Studio, params: DesignOrTableRequest) -> DesignPicture:
    """Return a design to be drawn."""
    subject = await find_analysis(
        studio, params.design or design_of_table(studio, params.table), params.document
    )
    return await studio.run_in_thread(_draw_design, studio, subject, params.document is None)


def _draw_design(studio: Studio, subject: DesignAnalysis, own: bool) -> DesignPicture:
    design = subject.design
    results = {pattern.result for _, _, pattern in design.patterns()}
    homes = {entity.name for table in design.tables for entity in table.entities}
    names = design_names(studio)
    return DesignPicture(
        name=subject.name,
        own=own,
        names=names,
        tables_of=tuple(
            (table.name, name) for name in names for table in studio_analysis(studio, name).design.tables
        ),
        tables=subject.cached("picture", lambda: draw_tables(design)),
        needs=tuple(
            NeedPicture(
                need.name,
                need.title,
                need.entities,
                tuple(each.field for each in need.where),
                "" if need.route is None else f"{need.route.operation} {need.route.index or ''}".strip(),
            )
            for need in design.needs
        ),
        entities_without_table=tuple(
            view.name for view in design.views if view.name not in results and view.name not in homes
        ),
        policies=tuple(policy.name for policy in design.policies),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsRequest(DesignRequest):
    """The design to check, and whether to apply production rules."""

    production: bool = False


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding as `tavola lint --json` tells it, with the node it is pinned on."""

    id: str
    node: str
    rule: str
    severity: Severity
    place: str
    kind: str
    table: str
    file: str | None
    line: int | None
    message: str
    remedy: str
    mechanical: bool  # the rule's remedy may be a change of the design alone
    reason: str = ""  # of one that is ignored


@dataclass(frozen=True, slots=True)
class FindingCounts:
    """How many there are of each severity."""

    error: int
    warning: int
    advice: int


@dataclass(frozen=True, slots=True)
class LintReport:
    """What `tavola lint` says of a design."""

    findings: tuple[LintFinding, ...]
    ignored: tuple[LintFinding, ...]
    counts: FindingCounts


async def list_findings(studio: Studio, params: FindingsRequest) -> LintReport:
    """Return what is wrong with a design, each finding with its node, its file and its line."""
    subject = await find_analysis(studio, params.design, params.document)
    return await studio.run_in_thread(_cached_report, subject, params.production)


def _cached_report(subject: DesignAnalysis, production: bool) -> LintReport:
    return subject.cached(("shown", production), lambda: _build_report(subject, production))


def _build_report(subject: DesignAnalysis, production: bool) -> LintReport:
    report = subject.report(production=production)
    document = report_document(report, subject.sources)
    ignored = [finding for finding, _ in report.ignored]

    def shown(finding: Any, document: dict[str, Any]) -> LintFinding:
        return LintFinding(
            finding_id(finding),
            node_id(subject.design, finding.place),
            mechanical=finding.rule in FIXERS,
            **document,
        )

    return LintReport(
        tuple(map(shown, report.findings, document["findings"])),
        tuple(map(shown, ignored, document["ignored"])),
        FindingCounts(**document["counts"]),
    )


@dataclass(frozen=True, slots=True)
class RulePage:
    """What a rule says: what is wrong, why, an example, and what to do instead."""

    name: str
    severity: Severity
    title: str
    why: str
    example: str
    instead: str
    mechanical: bool


@dataclass(frozen=True, slots=True)
class RulePages:
    """Every rule, by name."""

    rules: tuple[RulePage, ...]


async def list_rules(studio: Studio, params: NoParameters) -> RulePages:
    """Return every rule's page, as `tavola explain --json` tells them."""
    return RulePages(_rule_pages())


@cache
def _rule_pages() -> tuple[RulePage, ...]:
    return tuple(_rule_page(RULES[name]) for name in sorted(RULES))


def _rule_page(rule: Rule) -> RulePage:
    document: dict[str, Any] = rule_document(rule)
    return RulePage(**document, mechanical=rule.name in FIXERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyRequest(FindingsRequest):
    """One finding, by its id."""

    finding: str
    region: str | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a finding: as a change of the design where that does it, and in the rule's words in any case."""

    finding: LintFinding
    rule: RulePage
    summary: (
        str  # what the change is, and what it asks for besides; empty: no change of the design alone does it
    )
    lines: tuple[DiffLine, ...]  # of the document
    python: tuple[DiffLine, ...]  # of the module that declares it
    document: str  # the altered design, whole; empty where there is none
    gone: tuple[LintFinding, ...]
    new: tuple[LintFinding, ...]
    counts: FindingCounts | None
    month_before: str | None  # dollars, as `tavola cost` computes them
    month_after: str | None
    prices: str


async def find_remedy(studio: Studio, params: RemedyRequest) -> Remedy:
    """Return a finding's remedy as a difference, with what the rules and the prices say of the altered design."""
    subject = await find_analysis(studio, params.design, params.document)
    book = studio.book(params.region) if params.region else studio.local_prices()
    return await studio.run_in_thread(_find_remedy, subject, params.finding, params.production, book)


def _find_remedy(subject: DesignAnalysis, known: str, production: bool, book: PriceBook) -> Remedy:
    report = _cached_report(subject, production)
    finding = next((each for each in report.findings if each.id == known), None)
    if finding is None:
        raise RequestRefused(
            "finding-unknown",
            "There is no such finding",
            "The design has no finding of this id; it may have been another design's.",
            "Look at the findings again.",
            status=404,
        )
    page = _rule_page(RULES[finding.rule])
    mended = subject.apply_remedy(known, production=production)
    before = subject.monthly_cost(book)
    if mended is None:
        return Remedy(finding, page, "", (), (), "", (), (), None, before, None, book.title)
    return subject.cached(
        ("remedy", known, production, book.title),
        lambda: _apply_remedy(subject, finding, page, mended, production, book),
    )


def _apply_remedy(
    subject: DesignAnalysis,
    finding: LintFinding,
    page: RulePage,
    mended: LintFix,
    production: bool,
    book: PriceBook,
) -> Remedy:
    after = DesignAnalysis(subject.name, mended.design)
    after.cached(("report", production), lambda: mended.report)
    now, was = _cached_report(after, production), _cached_report(subject, production)
    text = design_text(mended.design)
    return Remedy(
        finding=finding,
        rule=page,
        summary=mended.summary,
        lines=diff_lines(subject.text, text),
        python=_python_diff(subject, mended),
        document=text,
        gone=_findings_not_in(was.findings, now.findings),
        new=_findings_not_in(now.findings, was.findings),
        counts=now.counts,
        month_before=subject.monthly_cost(book),
        month_after=monthly_cost_of(mended.design, book),
        prices=book.title,
    )


def _findings_not_in(
    findings: tuple[LintFinding, ...], others: tuple[LintFinding, ...]
) -> tuple[LintFinding, ...]:
    """Return the findings that others have no like of; one that is worded otherwise at its place is the same still."""
    same = {each.id for each in others}
    alike = Counter((each.rule, each.kind, each.table, each.place) for each in others)
    alike.subtract((each.rule, each.kind, each.table, each.place) for each in findings if each.id in same)
    remaining = []
    for each in findings:
        what = (each.rule, each.kind, each.table, each.place)
        if each.id in same:
            continue
        if alike[what] > 0:
            alike[what] -= 1
        else:
            remaining.append(each)
    return tuple(remaining)


def _python_diff(subject: DesignAnalysis, mended: LintFix) -> tuple[DiffLine, ...]:
    """Return the difference as the declarations in Python have it; nothing where a design cannot be declared so."""
    try:
        before = subject.cached("declared", lambda: render_declarations(subject.design, "The design."))
        return diff_lines(before, render_declarations(mended.design, "The design."))
    except TavolaError:
        return ()


@dataclass(frozen=True, slots=True)
class DriftChange:
    """One thing that stands otherwise than the design says, and what making it so takes."""

    kind: str
    effect: str
    place: str
    what: str
    removes: bool
    warnings: tuple[str, ...]
    work: str
    node: str


@dataclass(frozen=True, slots=True)
class TableDrift:
    """A table of the design held against what is there."""

    table: str
    exists: bool
    changes: tuple[DriftChange, ...]
    notes: tuple[str, ...]
    problem: Problem | None = None  # why it could not be looked at


@dataclass(frozen=True, slots=True)
class Drift:
    """What the tables that stand have otherwise, as `tavola plan` tells it."""

    tables: tuple[TableDrift, ...]


async def compare_live(studio: Studio, params: DesignOrTableRequest) -> Drift:
    """Return what the tables that stand have otherwise than a design; a table that cannot be looked at is told of."""
    subject = await find_analysis(studio, params.design, params.document)
    drifts = []
    for table in subject.design.tables:
        if params.table and table.name != params.table:
            continue
        try:
            comparison = await studio.db.run(comparison_steps(table))
        except TavolaError as error:
            drifts.append(
                TableDrift(table.name, exists=False, changes=(), notes=(), problem=problem_of(error))
            )
            continue
        drifts.append(_table_drift(subject, comparison))
    return Drift(tuple(drifts))


def _table_drift(subject: DesignAnalysis, comparison: TableComparison) -> TableDrift:
    return TableDrift(
        comparison.table,
        comparison.exists,
        tuple(_drift_change(subject, change) for change in comparison.changes),
        comparison.notes,
    )


def _drift_change(subject: DesignAnalysis, change: DesignChange) -> DriftChange:
    table = subject.design.table(change.table)
    indexes = {index.name for index in table.indexes}
    entities = {entity.name for entity in table.entities}
    node = f"table:{table.name}"
    if change.place in indexes:
        node = f"index:{table.name}/{change.place}"
    elif change.place in entities:
        node = f"entity:{table.name}/{change.place}"
    work = "" if change.work is None else str(change.work)
    return DriftChange(
        change.kind, change.effect, change.place, change.what, change.removes, change.warnings, work, node
    )


@dataclass(frozen=True, slots=True)
class DesignText:
    """A design as the document that `tavola design --json` prints."""

    name: str
    text: str


async def design_document(studio: Studio, params: DesignRequest) -> DesignText:
    """Return a design as its document."""
    subject = await find_analysis(studio, params.design, params.document)
    return DesignText(subject.name, await studio.run_in_thread(lambda: subject.text))


ENDPOINTS = (
    Endpoint("POST", "/design", draw_design, body_bytes_max=_DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/findings", list_findings, body_bytes_max=_DOCUMENT_BYTES_MAX),
    Endpoint("GET", "/design/rules", list_rules),
    Endpoint("POST", "/design/remedy", find_remedy, body_bytes_max=_DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/drift", compare_live, body_bytes_max=_DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/document", design_document, body_bytes_max=_DOCUMENT_BYTES_MAX),
)
