"""A design as a diagram, its lint findings, their fixes as diffs, and its differences from live tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from tavola.design.findings import Finding, Severity
from tavola.design.lint import (
    FIXERS,
    RULES,
    LintFix,
    Rule,
    SourceLocation,
    find_locations,
    locate_place,
    rule_document,
    severity_counts,
)
from tavola.design.solver import render_declarations
from tavola.errors import TavolaError
from tavola.iac import TableComparison, comparison_steps
from tavola.model.document import Need
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
from tavola.studio.types import DOCUMENT_BYTES_MAX, ApiMessage, DesignRequest, NoParameters, TextFile
from tavola.web import Problem


class DesignOrTableRequest(DesignRequest, kw_only=True):
    """A design, or a table of one of the studio's designs; in comparisons, the only table to compare."""

    table: str | None = None


class DesignPicture(ApiMessage):
    """A design as a diagram, table by table."""

    name: str
    own: bool  # one of the studio's designs, not a document sent with the request
    names: tuple[str, ...]  # of the studio's designs
    tables_of: tuple[tuple[str, str], ...]  # each table of these designs, with the name of its design
    tables: tuple[TablePicture, ...]
    needs: tuple[Need, ...]
    entities_without_table: tuple[str, ...]
    policies: tuple[str, ...]


async def draw_design(studio: Studio, params: DesignOrTableRequest) -> DesignPicture:
    """Return a design as a diagram."""
    subject = await find_analysis(
        studio, params.design or design_of_table(studio, params.table), params.document
    )
    return await studio.run_in_thread(_draw_design, studio, subject, params.document is None)


def _draw_design(studio: Studio, subject: DesignAnalysis, own: bool) -> DesignPicture:
    design = subject.design
    results = {pattern.result for _, _, pattern in design.patterns()}
    stored = {entity.name for table in design.tables for entity in table.entities}
    names = design_names(studio)
    return DesignPicture(
        name=subject.name,
        own=own,
        names=names,
        tables_of=tuple(
            (table.name, name) for name in names for table in studio_analysis(studio, name).design.tables
        ),
        tables=subject.get_or_compute("picture", lambda: draw_tables(design)),
        needs=design.needs,
        entities_without_table=tuple(
            view.name for view in design.views if view.name not in results and view.name not in stored
        ),
        policies=tuple(policy.name for policy in design.policies),
    )


class FindingsRequest(DesignRequest, kw_only=True):
    """The design to check, and whether to apply production rules."""

    production: bool = False


class LocatedFinding(ApiMessage):
    """A finding with its id, the node of the diagram it belongs to, and where it is declared."""

    id: str
    node: str
    finding: Finding
    location: SourceLocation | None
    reason: str = ""  # why it is ignored


class DesignFindings(ApiMessage):
    """The findings of `tavola lint` in a design."""

    findings: tuple[LocatedFinding, ...]
    ignored: tuple[LocatedFinding, ...]
    counts: Mapping[Severity, int]


async def list_findings(studio: Studio, params: FindingsRequest) -> DesignFindings:
    """Return the findings in a design, each with its node, file and line."""
    subject = await find_analysis(studio, params.design, params.document)
    return await studio.run_in_thread(_cached_report, subject, params.production)


def _cached_report(subject: DesignAnalysis, production: bool) -> DesignFindings:
    return subject.get_or_compute(("findings", production), lambda: _build_report(subject, production))


def _build_report(subject: DesignAnalysis, production: bool) -> DesignFindings:
    report = subject.report(production=production)
    known = find_locations(subject.sources)

    def locate(finding: Finding, reason: str = "") -> LocatedFinding:
        node = node_id(subject.design, finding.place)
        location = locate_place(finding.place, known, subject.sources)
        return LocatedFinding(finding_id(finding), node, finding, location, reason)

    return DesignFindings(
        tuple(map(locate, report.findings)),
        tuple(locate(finding, ignore.reason) for finding, ignore in report.ignored),
        severity_counts(report.findings),
    )


class RulePage(ApiMessage):
    """The documentation of a rule: what is wrong, why, an example, and what to do instead."""

    name: str
    severity: Severity
    title: str
    why: str
    example: str
    instead: str
    mechanical: bool


class RulePages(ApiMessage):
    """Every rule, by name."""

    rules: tuple[RulePage, ...]


async def list_rules(studio: Studio, params: NoParameters) -> RulePages:
    """Return the documentation of every rule, as `tavola explain --json` prints it."""
    return RulePages(_rule_pages())


@cache
def _rule_pages() -> tuple[RulePage, ...]:
    return tuple(_rule_page(RULES[name]) for name in sorted(RULES))


def _rule_page(rule: Rule) -> RulePage:
    document: dict[str, Any] = rule_document(rule)
    return RulePage(**document, mechanical=rule.name in FIXERS)


class RemedyRequest(FindingsRequest, kw_only=True):
    """The id of a finding."""

    finding: str
    region: str | None = None


class Remedy(ApiMessage):
    """What to do about a finding: the rule's documentation and, if there is one, an automatic fix of the design."""

    finding: LocatedFinding
    rule: RulePage
    summary: str  # what the fix changes and what else it requires; empty if there is none
    lines: tuple[DiffLine, ...]  # of the design document
    python: tuple[DiffLine, ...]  # of the Python declarations
    document: str  # the fixed design; empty if there is no fix
    resolved: tuple[LocatedFinding, ...]
    introduced: tuple[LocatedFinding, ...]
    counts: Mapping[Severity, int] | None
    month_before: str | None  # US dollars
    month_after: str | None
    prices: str


async def find_remedy(studio: Studio, params: RemedyRequest) -> Remedy:
    """Return a finding's fix as a diff, with the findings and the monthly cost of the fixed design."""
    subject = await find_analysis(studio, params.design, params.document)
    book = studio.book(params.region) if params.region else studio.local_prices()
    return await studio.run_in_thread(_find_remedy, subject, params.finding, params.production, book)


def _find_remedy(subject: DesignAnalysis, id_: str, production: bool, book: PriceBook) -> Remedy:
    report = _cached_report(subject, production)
    finding = next((finding for finding in report.findings if finding.id == id_), None)
    if finding is None:
        raise RequestRefused(
            "finding-unknown",
            "Finding not found",
            "The design has no finding with this id.",
            "Reload the findings.",
            status=404,
        )
    page = _rule_page(RULES[finding.finding.rule])
    fix = subject.find_fix(id_, production=production)
    before = subject.monthly_cost(book)
    if fix is None:
        return Remedy(finding, page, "", (), (), "", (), (), None, before, None, book.title)
    return subject.get_or_compute(
        ("remedy", id_, production, book.title),
        lambda: _apply_fix(subject, finding, page, fix, production, book),
    )


def _apply_fix(
    subject: DesignAnalysis,
    finding: LocatedFinding,
    page: RulePage,
    fix: LintFix,
    production: bool,
    book: PriceBook,
) -> Remedy:
    after = DesignAnalysis(subject.name, fix.design)
    after.get_or_compute(("report", production), lambda: fix.report)
    now, was = _cached_report(after, production), _cached_report(subject, production)
    text = design_text(fix.design)
    return Remedy(
        finding=finding,
        rule=page,
        summary=fix.summary,
        lines=diff_lines(subject.text, text),
        python=_python_diff(subject, fix),
        document=text,
        resolved=_findings_not_in(was.findings, now.findings),
        introduced=_findings_not_in(now.findings, was.findings),
        counts=now.counts,
        month_before=subject.monthly_cost(book),
        month_after=monthly_cost_of(fix.design, book),
        prices=book.title,
    )


def _findings_not_in(
    findings: tuple[LocatedFinding, ...], others: tuple[LocatedFinding, ...]
) -> tuple[LocatedFinding, ...]:
    """Return the findings that `others` lacks; findings of the same rule and place are the same, even with different messages."""
    same = {finding.id for finding in others}
    alike = Counter((finding.finding.rule, finding.finding.place) for finding in others)
    alike.subtract(
        (finding.finding.rule, finding.finding.place) for finding in findings if finding.id in same
    )
    remaining = []
    for finding in findings:
        what = finding.finding.rule, finding.finding.place
        if finding.id in same:
            continue
        if alike[what] > 0:
            alike[what] -= 1
        else:
            remaining.append(finding)
    return tuple(remaining)


def _python_diff(subject: DesignAnalysis, fix: LintFix) -> tuple[DiffLine, ...]:
    """Return the diff of the Python declarations; empty if the design cannot be declared in Python."""
    try:
        before = subject.get_or_compute(
            "declared", lambda: render_declarations(subject.design, "The design.")
        )
        return diff_lines(before, render_declarations(fix.design, "The design."))
    except TavolaError:
        return ()


class TableDrift(ApiMessage):
    """The differences between a live table and its design, or why the live table could not be read."""

    table: str
    comparison: TableComparison | None
    work: tuple[str, ...] = ()  # the work of each change, as text; may be empty
    problem: Problem | None = None


class Drift(ApiMessage):
    """The differences between all live tables and the design, as `tavola plan` prints them."""

    tables: tuple[TableDrift, ...]


async def compare_live(studio: Studio, params: DesignOrTableRequest) -> Drift:
    """Compare live tables with a design; a table that cannot be read is reported."""
    subject = await find_analysis(studio, params.design, params.document)
    drifts = []
    for table in subject.design.tables:
        if params.table and table.name != params.table:
            continue
        try:
            comparison = await studio.db.run(comparison_steps(table))
        except TavolaError as error:
            drifts.append(TableDrift(table.name, None, problem=problem_of(error)))
            continue
        work = tuple("" if change.work is None else str(change.work) for change in comparison.changes)
        drifts.append(TableDrift(table.name, comparison, work))
    return Drift(tuple(drifts))


async def design_document(studio: Studio, params: DesignRequest) -> TextFile:
    """Return a design as the document that `tavola design --json` prints."""
    subject = await find_analysis(studio, params.design, params.document)
    return TextFile(subject.name, await studio.run_in_thread(lambda: subject.text))


ENDPOINTS = (
    Endpoint("POST", "/design", draw_design, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/findings", list_findings, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("GET", "/design/rules", list_rules),
    Endpoint("POST", "/design/remedy", find_remedy, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/drift", compare_live, body_bytes_max=DOCUMENT_BYTES_MAX),
    Endpoint("POST", "/design/document", design_document, body_bytes_max=DOCUMENT_BYTES_MAX),
)
