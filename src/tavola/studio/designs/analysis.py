"""The design a request is about, with results computed once and shared between requests.

A request names one of the studio's designs or carries a document (an import, or a design with a remedy applied). For
documents only the most recent results are cached.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, Literal, TypeVar, cast

from tavola.design.cost import Assumptions, CostError, estimate_month
from tavola.design.findings import Finding
from tavola.design.lint import LintFix, LintReport, SourceFile, lint, propose_fix
from tavola.errors import TavolaError
from tavola.iac.formats import read_design_text
from tavola.model.document import Design, TableDesign, write_document
from tavola.prices import PriceBook
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, Studio

_AROUND = 3
_MATCHED_MAX = 1_000  # lines compared without heuristics: repeated lines make that quadratic
_COMPARED_MAX = 10_000  # lines after the first difference
_LINES_MAX = 2_000  # of a diff


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff; a line of only `…` stands for unchanged lines."""

    sign: Literal["+", "-", " "]
    text: str


def diff_lines(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return the diff of two texts; empty if they are equal, truncated with a note if it is very long."""
    lines = tuple(_lines(before.splitlines(), after.splitlines()))
    if len(lines) <= _LINES_MAX:
        return lines
    return (*lines[:_LINES_MAX], DiffLine(" ", f"… and {len(lines) - _LINES_MAX:,} more lines"))


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    shared = min(len(old), len(new))
    first = _common_prefix(old, new, shared)
    last = _common_prefix(old[::-1], new[::-1], shared - first)
    start, stop = max(0, first - _AROUND), max(0, last - _AROUND)
    was, now = old[start : len(old) - stop], new[start : len(new) - stop]
    cut = max(len(was), len(now)) > _COMPARED_MAX
    matcher = SequenceMatcher(
        None, was[:_COMPARED_MAX], now[:_COMPARED_MAX], autojunk=len(was) > _MATCHED_MAX
    )
    groups = list(matcher.get_grouped_opcodes(_AROUND))
    if cut and groups and groups[-1][-1][0] != "equal" and len(matcher.get_opcodes()) > 1:
        del groups[-1][-1]  # possibly not a change, only where the comparison stops
    end = 0
    for group in filter(None, groups):
        if group[0][1] + start > end:
            yield DiffLine(" ", "…")
        for word, old_from, old_to, new_from, new_to in group:
            if word == "equal":
                yield from (DiffLine(" ", text) for text in was[old_from:old_to])
                continue
            yield from (DiffLine("-", text) for text in was[old_from:old_to])
            yield from (DiffLine("+", text) for text in now[new_from:new_to])
        end = group[-1][2] + start
    if cut:
        yield DiffLine(" ", f"… lines after the first {_COMPARED_MAX:,} are not compared")
    elif 0 < end < len(old):
        yield DiffLine(" ", "…")


def _common_prefix(one: list[str], other: list[str], most: int) -> int:
    """Return the number of equal lines at the start of both."""
    return next((position for position in range(most) if one[position] != other[position]), most)


T = TypeVar("T")

_DOCUMENTS_MAX = 6  # cached designs that came as documents
_RESULTS_MAX = 48  # per design: a remedy contains a whole document
_OWN = "the studio's design"


class _CachedResult:
    """A result, or the lock under which it is being computed."""

    __slots__ = ("is_computed", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_computed = False
        self.value: Any = None


class DesignAnalysis:
    """A design with its name and source files, and cached results about it; thread-safe."""

    def __init__(
        self, name: str, design: Design, sources: tuple[SourceFile, ...] = (), target: str = ""
    ) -> None:
        self.name = name
        self.target = target  # its argument on the command line; empty: no command can read it
        self.design = design
        self.sources = sources
        self._results: dict[Hashable, _CachedResult] = {}
        self._lock = threading.Lock()

    def get_or_compute(self, name: Hashable, compute: Callable[[], T]) -> T:
        """Return a cached result by name, or compute it.

        A concurrent caller with the same name waits for the result; callers with other names do not, so a long solver
        run does not delay findings. The most recently used results are kept.
        """
        with self._lock:
            result = self._results.pop(name, None) or _CachedResult()
            self._results[name] = result
            while len(self._results) > _RESULTS_MAX:
                self._results.pop(next(iter(self._results)))
        with result.lock:
            if not result.is_computed:
                result.value = compute()
                result.is_computed = True
            return cast(T, result.value)

    def report(self, *, production: bool = False) -> LintReport:
        """Return the lint report."""
        return self.get_or_compute(("report", production), lambda: lint(self.design, production=production))

    def findings(self, *, production: bool = False) -> dict[str, Finding]:
        """Return the findings by id; an id is stable as long as rule, place and message are."""
        return {finding_id(finding): finding for finding in self.report(production=production).findings}

    def find_fix(self, id_: str, *, production: bool = False) -> LintFix | None:
        """Return the automatic fix of a finding; None if it has none."""
        finding = self.findings(production=production)[id_]
        before = self.report(production=production)
        return self.get_or_compute(
            ("fix", id_, production),
            lambda: propose_fix(self.design, finding, production=production, before=before),
        )

    def monthly_cost(self, book: PriceBook) -> str | None:
        """Return the monthly cost as text; None if it cannot be estimated."""
        return self.get_or_compute(("month", book.title), lambda: monthly_cost_of(self.design, book))

    @property
    def text(self) -> str:
        """The design as `tavola design --json` prints it."""
        return self.get_or_compute("text", lambda: design_text(self.design))


def monthly_cost_of(design: Design, book: PriceBook) -> str | None:
    """Return the monthly cost of a design as text; None if it cannot be estimated."""
    try:
        return str(estimate_month(design, Assumptions(), book).total)
    except CostError:
        return None


def finding_id(finding: Finding) -> str:
    """Return a short id of a finding."""
    place = finding.place
    identity = f"{finding.rule}\0{place.kind}\0{place.table}\0{place.name}\0{finding.message}"
    return f"{finding.rule}-{sha256(identity.encode()).hexdigest()[:10]}"


def design_text(design: Design) -> str:
    """Return a design as the document that `tavola design --json` prints."""
    return json.dumps(write_document(design), indent=2)


def design_names(studio: Studio) -> tuple[str, ...]:
    """Return the names of the studio's designs."""
    return tuple(design.name for design in _declared_designs(studio))


def design_of_table(studio: Studio, table: str | None) -> str | None:
    """Return the name of the design that declares a table; None if none does."""
    for design in _declared_designs(studio):
        if any(declared.name == table for declared in design.design.tables):
            return design.name
    return None


async def find_analysis(studio: Studio, name: str | None, document: str | None) -> DesignAnalysis:
    """Return the design of a request: its document, the named design, or by default the studio's first."""
    if document is None:
        return studio_analysis(studio, name)
    return await studio.run_in_thread(_analyse_document, studio, document)  # slow if it has megabytes


def studio_analysis(studio: Studio, name: str | None) -> DesignAnalysis:
    """Return one of the studio's designs by name, or the first."""
    declared = _declared_designs(studio)
    if not declared:
        studio.require_design()
    selected = (
        declared[0]
        if not name
        else next((declared_design for declared_design in declared if declared_design.name == name), None)
    )
    if selected is None:
        raise RequestRefused(
            "design-unknown",
            "Design not found",
            f"The studio was not started with {name!r}.",
            f"Choose one of {', '.join(declared_design.name for declared_design in declared)}.",
            status=404,
        )
    target = (
        selected.name
        if selected.name in (*studio.designs, *(declared_design.name for declared_design in studio.declared))
        else ""
    )
    analysis = DesignAnalysis(selected.name, selected.design, selected.sources, target)
    return cast(DesignAnalysis, studio.cache.setdefault(("subject", selected.name), analysis))


def _declared_designs(studio: Studio) -> tuple[DeclaredDesign, ...]:
    if studio.declared or studio.design is None:
        return studio.declared
    design, groups = studio.design, _groups(studio.design)
    if len(groups) == 1:
        return (DeclaredDesign(" + ".join(studio.designs) or _OWN, design),)
    return tuple(
        DeclaredDesign(", ".join(table.label for table in group), _select_tables(design, group))
        for group in groups
    )


def _groups(design: Design) -> list[tuple[TableDesign, ...]]:
    """Return the tables in groups: tables with entities of the same name come from different designs."""
    groups: list[tuple[TableDesign, ...]] = [()]
    for table in design.tables:
        taken = {entity.name for other in groups[-1] for entity in other.entities}
        if taken & {entity.name for entity in table.entities}:
            groups.append(())
        groups[-1] = (*groups[-1], table)
    return groups


def _select_tables(design: Design, tables: tuple[TableDesign, ...]) -> Design:
    """Return some tables of a design with the views, needs, policies and ignores that concern them."""
    entities = [entity for table in tables for entity in table.entities]
    entity_names = {entity.name for entity in entities}
    results = {pattern.result for entity in entities for pattern in entity.patterns}
    places = {"*", *entity_names, *(table.label for table in tables)}
    places |= {collection.name for table in tables for collection in table.collections}
    places |= {consumer.name for table in tables for consumer in table.consumers}
    names = {table.name for table in tables}
    return Design(
        tables,
        tuple(view for view in design.views if view.name in results - entity_names),
        tuple(need for need in design.needs if set(need.entities) <= entity_names),
        tuple(policy for policy in design.policies if not policy.tables or names & set(policy.tables)),
        tuple(
            ignore for ignore in design.ignores if ignore.place.partition(": ")[0].partition(".")[0] in places
        ),
    )


class _DocumentCache:
    """The most recently used designs that came as documents, by their text."""

    def __init__(self) -> None:
        self._analyses: dict[str, DesignAnalysis] = {}
        self._lock = threading.Lock()

    def find(self, document: str) -> DesignAnalysis:
        key = sha256(document.encode()).hexdigest()
        with self._lock:
            analysis = self._analyses.pop(key, None)
        if analysis is None:
            analysis = _read_document(document)
        with self._lock:
            analysis = self._analyses.setdefault(key, analysis)  # another thread may have parsed it too
            while len(self._analyses) > _DOCUMENTS_MAX:
                self._analyses.pop(next(iter(self._analyses)))
        return analysis


def _analyse_document(studio: Studio, document: str) -> DesignAnalysis:
    documents = cast(_DocumentCache, studio.cache.setdefault("documents", _DocumentCache()))
    return documents.find(document)


def _read_document(document: str) -> DesignAnalysis:
    try:
        imported = read_design_text(document, "design.json")
    except TavolaError as error:
        raise RequestRefused(
            "document-refused",
            "Invalid design document",
            str(error),
            "Fix the document, or import the file again.",
        ) from error
    return DesignAnalysis("the document", imported.design)
