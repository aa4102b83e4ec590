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

from tavola.design.cost import Assumptions, CostRefused, estimate_month
from tavola.design.findings import Finding
from tavola.design.lint import LintFix, LintReport, SourceFile, lint, propose_fix
from tavola.errors import TavolaError
from tavola.iac.formats import read_design_text
from tavola.model.document import Design, TableDesign, write_document
from tavola.prices import PriceBook
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, Studio

_AROUND = 3
_MATCHED_MAX = (
    1_000  # lines that are compared each with each; a document's lines repeat, so that takes its square
)
_COMPARED_MAX = 10_000  # lines from the first that differs on
_LINES_MAX = 2_000  # of a difference; a person reads fewer


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference; `…` alone stands for those that are left out because they stay."""

    sign: Literal["+", "-", " "]
    text: str


def diff_lines(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return what changed from one text to another; nothing where they are the same, and how much is left out of a long one."""
    lines = tuple(_lines(before.splitlines(), after.splitlines()))
    if len(lines) <= _LINES_MAX:
        return lines
    return (
        *lines[:_LINES_MAX],
        DiffLine(" ", f"… and {len(lines) - _LINES_MAX:,} lines of the difference more"),
    )


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
        del groups[-1][-1]  # it may be no change, but where the comparison ends
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
        yield DiffLine(" ", f"… what comes after {_COMPARED_MAX:,} lines is too much to be compared here")
    elif 0 < end < len(old):
        yield DiffLine(" ", "…")


def _common_prefix(one: list[str], other: list[str], most: int) -> int:
    """Return how many lines are the same at the beginning of both."""
    return next((at for at in range(most) if one[at] != other[at]), most)


T = TypeVar("T")

_KEPT = 6  # designs that questions brought along
_ANSWERS_MAX = 48  # of one design: a remedy holds a whole document
_OWN = "the studio's design"


class _CachedResult:
    """What is known under a name, or is being found."""

    __slots__ = ("found", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.found = False
        self.value: Any = None


class DesignAnalysis:
    """A design, its name and its files, and what the judges said of it; safe to ask from several threads."""

    def __init__(
        self, name: str, design: Design, sources: tuple[SourceFile, ...] = (), target: str = ""
    ) -> None:
        self.name = name
        self.target = target  # what a command calls it; empty: it is in no file that a command could read
        self.design = design
        self.sources = sources
        self._known: dict[Hashable, _CachedResult] = {}
        self._lock = threading.Lock()

    def cached(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return what was found before under a name, or find it.

        Who asks the same meanwhile waits for it; who asks something else does not, so that a long search for keys holds up nobody
        who looks at findings. The answers that were asked for last are kept.
        """
        with self._lock:
            answer = self._known.pop(what, None) or _CachedResult()
            self._known[what] = answer
            while len(self._known) > _ANSWERS_MAX:
                self._known.pop(next(iter(self._known)))
        with answer.lock:
            if not answer.found:
                answer.value = find()
                answer.found = True
            return cast(T, answer.value)

    def report(self, *, production: bool = False) -> LintReport:
        """Return what the rules found."""
        return self.cached(("report", production), lambda: lint(self.design, production=production))

    def findings(self, *, production: bool = False) -> dict[str, Finding]:
        """Return what stands, each under an id that stays as long as its rule, its place and its words do."""
        by_id: dict[str, Finding] = {}
        for finding in self.report(production=production).findings:
            by_id[finding_id(finding)] = finding
        return by_id

    def apply_remedy(self, known: str, *, production: bool = False) -> LintFix | None:
        """Return the design as a finding's remedy would have it; None where no change of the design alone does it."""
        finding = self.findings(production=production)[known]
        before = self.report(production=production)
        return self.cached(
            ("mended", known, production),
            lambda: propose_fix(self.design, finding, production=production, before=before),
        )

    def monthly_cost(self, book: PriceBook) -> str | None:
        """Return what a month costs, as text; None where there is nothing to pay for."""
        return self.cached(("month", book.title), lambda: monthly_cost_of(self.design, book))

    @property
    def text(self) -> str:
        """The design as `tavola design --json` prints it."""
        return self.cached("text", lambda: design_text(self.design))


def monthly_cost_of(design: Design, book: PriceBook) -> str | None:
    """Return what a month of a design costs, as text; None where nobody can tell."""
    try:
        return str(estimate_month(design, Assumptions(), book).total)
    except CostRefused:
        return None


def finding_id(finding: Finding) -> str:
    """Return a short name of a finding."""
    place = finding.place
    identity = f"{finding.rule}\0{place.kind}\0{place.table}\0{place.name}\0{finding.message}"
    return f"{finding.rule}-{sha256(identity.encode()).hexdigest()[:10]}"


def design_text(design: Design) -> str:
    """Return a design as the document that `tavola design --json` prints."""
    return json.dumps(write_document(design), indent=2)


def design_names(studio: Studio) -> tuple[str, ...]:
    """Return the names of the studio's own designs."""
    return tuple(each.name for each in _declared_designs(studio))


def design_of_table(studio: Studio, table: str | None) -> str | None:
    """Return the name of the design that has a table; None where none has it."""
    for each in _declared_designs(studio):
        if any(declared.name == table for declared in each.design.tables):
            return each.name
    return None


async def find_analysis(studio: Studio, name: str | None, document: str | None) -> DesignAnalysis:
    """Return the design that a question is about: one that it brings, one that it names, or the first there is."""
    if document is None:
        return studio_analysis(studio, name)
    return await studio.run_in_thread(
        _analyse_document, studio, document
    )  # a document of megabytes takes a while to read


def studio_analysis(studio: Studio, name: str | None) -> DesignAnalysis:
    """Return one of the studio's own designs by its name, or the first there is."""
    declared = _declared_designs(studio)
    if not declared:
        studio.require_design()
    selected = declared[0] if not name else next((each for each in declared if each.name == name), None)
    if selected is None:
        raise RequestRefused(
            "design-unknown",
            "There is no such design",
            f"The studio was not started with {name!r}.",
            f"There are {', '.join(each.name for each in declared)}.",
            status=404,
        )
    target = (
        selected.name if selected.name in (*studio.designs, *(each.name for each in studio.declared)) else ""
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
    """Return the tables of a design, those apart that have an entity of one name: they come of two designs."""
    groups: list[tuple[TableDesign, ...]] = [()]
    for table in design.tables:
        taken = {entity.name for other in groups[-1] for entity in other.entities}
        if taken & {entity.name for entity in table.entities}:
            groups.append(())
        groups[-1] = (*groups[-1], table)
    return groups


def _select_tables(design: Design, tables: tuple[TableDesign, ...]) -> Design:
    """Return some tables of a design with what speaks of them."""
    entities = [entity for table in tables for entity in table.entities]
    own = {entity.name for entity in entities}
    results = {pattern.result for entity in entities for pattern in entity.patterns}
    places = {"*", *own, *(table.label for table in tables)}
    places |= {each.name for table in tables for each in table.collections}
    places |= {each.name for table in tables for each in table.consumers}
    names = {table.name for table in tables}
    return Design(
        tables,
        tuple(view for view in design.views if view.name in results - own),
        tuple(need for need in design.needs if set(need.entities) <= own),
        tuple(policy for policy in design.policies if not policy.tables or names & set(policy.tables)),
        tuple(each for each in design.ignores if each.place.partition(": ")[0].partition(".")[0] in places),
    )


class _DocumentCache:
    """The designs that questions brought along, by their text; the last few that were asked about."""

    def __init__(self) -> None:
        self._found: dict[str, DesignAnalysis] = {}
        self._lock = threading.Lock()

    def find(self, document: str) -> DesignAnalysis:
        key = sha256(document.encode()).hexdigest()
        with self._lock:
            analysis = self._found.pop(key, None)
        if analysis is None:
            analysis = _read_document(document)
        with self._lock:
            analysis = self._found.setdefault(key, analysis)  # who read the same meanwhile has it already
            while len(self._found) > _KEPT:
                self._found.pop(next(iter(self._found)))
        return analysis


def _analyse_document(studio: Studio, document: str) -> DesignAnalysis:
    visitors = cast(_DocumentCache, studio.cache.setdefault("visitors", _DocumentCache()))
    return visitors.find(document)


def _read_document(document: str) -> DesignAnalysis:
    try:
        imported = read_design_text(document, "design.json")
    except TavolaError as error:
        raise RequestRefused(
            "document-refused",
            "The document is no design",
            str(error),
            "Mend it there, or import the file again.",
        ) from error
    return DesignAnalysis("the document", imported.design)
