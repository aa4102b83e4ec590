"""Solve a design: find keys and indexes for its access patterns, priced, linted and explained.

Tables are searched one by one (`search` describes the algorithm). The cheapest few solutions of each are linted: errors disqualify, and a
warning counts as one percent of the price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from tavola.design.cost.assumptions import Assumptions
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.findings import Finding
from tavola.design.lint.rule import suppresses
from tavola.design.lint.runner import lint
from tavola.design.solver.assembly import assemble_design
from tavola.design.solver.errors import SolveRefused
from tavola.design.solver.explain import (
    Alternative,
    Choice,
    describe_other_keys,
    describe_projection,
    explain_index,
    explain_projection,
    explain_shards,
    explain_table,
)
from tavola.design.solver.plans import STYLES, Style, TableProposal
from tavola.design.solver.pricing import UnitRates, note_unknown_heat, shards_needed
from tavola.design.solver.questions import SolverInput, read_input
from tavola.design.solver.search import Solution, refine_projections, search_table
from tavola.design.solver.tables import TableGroup, group_entities
from tavola.model.document import CollectionDesign, Design, EntityDesign, TableDesign, check_references
from tavola.prices import PriceBook, load_book

REGION = "us-east-1"
_JUDGED = 4  # solutions of a table that the linter is asked about
_WARNING = Decimal("0.01")  # of the price, that a warning counts as
_CENT = Decimal("0.01")
_UNFIT = "the linter has more against it, or a partition of it would be too hot"


@dataclass(frozen=True, slots=True)
class Solved:
    """A design with keys, what it costs in a month, why it is so, and what else it could be."""

    design: Design
    month: MonthlyBill
    choices: tuple[Choice, ...]
    alternatives: tuple[Alternative, ...]  # the cheapest first
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    before: MonthlyBill | None  # the design as it was, where it had keys; by the same rates
    beside: tuple[str, ...] = ()  # needs that are not in `before`: nobody says how they are asked today


def solve(
    design: Design,
    *,
    style: Style = "auto",
    book: PriceBook | None = None,
    assumptions: Assumptions | None = None,
) -> Solved:
    """Return the cheapest keys and indexes that serve every need of a design; raise `SolveRefused` if there are none.

    Keys that the design has are not looked at, only what is asked. `style` says how indexes are keyed: by the items' own
    attributes, by templates that entities share, or by whatever gives fewer indexes.
    """
    if style not in STYLES:
        raise SolveRefused("style", f"{style!r} is none; give one of {', '.join(STYLES)}")
    return _Solving(design, style, book or load_book(REGION), assumptions or Assumptions()).run()


class _Solving:
    def __init__(self, design: Design, style: Style, book: PriceBook, assumptions: Assumptions) -> None:
        self.given, self.style, self.book, self.assumptions = design, style, book, assumptions
        self.subject: SolverInput = read_input(design)
        self.views: Mapping[str, EntityDesign] = {view.name: view for view in design.views}
        self.rates = UnitRates.of(book)
        self.households = group_entities(self.subject)
        self.searched: dict[tuple[str, Style], tuple[Solution, ...]] = {}

    def run(self) -> Solved:
        ranked = [self._ranked(household) for household in self.households]
        chosen = [found[0] for found in ranked]
        plans = [solution.plan for solution in chosen]
        design = self._design(plans)
        check_references(design)
        month = estimate_month(design, self.assumptions, self.book)
        bare = self.subject.weights.without(design, self._given_entities())
        report = lint(bare)
        ignores = tuple(
            i for i in self.given.ignores if any(suppresses(i, finding) for finding in report.findings)
        )
        if ignores:
            bare = replace(bare, ignores=ignores)
            report = lint(bare)
        choices = tuple(self._choices(design, month, plans))
        alternatives = sorted(self._alternatives(plans, ranked, month.total), key=lambda each: each.amount)
        choices = tuple(
            replace(choice, instead=tuple(each for each in alternatives if each.place == choice.place))
            for choice in choices
        )
        notes = (*self.subject.notes, *self._notes(design, month))
        return Solved(
            bare,
            month,
            choices,
            tuple(alternatives),
            report.findings,
            notes,
            self._before(),
            self._beside(),
        )

    def _given_entities(self) -> dict[str, EntityDesign]:
        told = {view.name: view for view in self.given.views}
        return told | {entity.name: entity for table in self.given.tables for entity in table.entities}

    def _before(self) -> MonthlyBill | None:
        """Return what the design costs as it is keyed now, weighed as the solution is; None: it has no keys."""
        keyed = any(entity.key is not None for table in self.given.tables for entity in table.entities)
        if not keyed:
            return None
        return estimate_month(self.subject.weights.design(self.given), self.assumptions, self.book)

    def _beside(self) -> tuple[str, ...]:
        """Return the needs that the former price has nothing for: nobody says how they are asked today."""
        return tuple(need.name for need in self.given.needs if need.route is None and self.given.tables)

    def _notes(self, design: Design, month: MonthlyBill) -> Iterator[str]:
        """Give what is to know of a solution: what filters cost, what may be hot, what was spread otherwise."""
        for question in self.subject.questions:
            if question.filtered:
                spent = sum((b.amount for b in month.bills if b.title == question.title), Decimal(0))
                items = 1 if question.access is None else question.access.items or 1
                yield (
                    f"Need {question.need} reads {items:,} item{'s' if items > 1 else ''} a question for "
                    f"{spent:,.2f} {month.currency} a month, before {' and '.join(question.filtered)} filters them."
                )
        for table in design.tables:
            for entity in table.entities:
                for index in (None, *table.indexes):
                    told = note_unknown_heat(table, entity, index, self.subject.identities(entity.name))
                    if told is not None:
                        yield told
            for collection in table.collections:
                yield from self._crowds(table, collection)
        for entity in self._given_entities().values():
            for key in (entity.key, *entity.keys):
                if key is not None and key.shards is not None and key.shards.by == "time":
                    yield (
                        f"{entity.name} was spread by the {key.shards.bucket} of {key.shards.of[0]} in "
                        f"{key.index or 'its table'}; keys here are not: a stretch of time is asked along the sort key."
                    )

    def _crowds(self, table: TableDesign, collection: CollectionDesign) -> Iterator[str]:
        """Give the members of a collection whose partition gets too much: what is fetched together is in one."""
        index = None if collection.index is None else table.index(collection.index)
        for member in collection.members:
            entity = table.entity(member.entity)
            count = shards_needed(table, entity, index, self.subject.identities(entity.name))
            if count > 1:
                yield (
                    f"{entity.name} would have to be spread over {count} shards, and cannot be, since {collection.name} "
                    "fetches it together with others from one partition; ask for them apart, or by something with more "
                    "values."
                )

    def _ranked(self, household: TableGroup) -> tuple[Solution, ...]:
        """Return the solutions of a table by price and by what the linter says; errors come last."""
        found = [*self._found(household, self.style)[:_JUDGED]]
        if self.style == "auto":
            for style in STYLES:
                with suppress(SolveRefused):
                    found += self._found(household, style)[:1]
        judged: list[tuple[bool, Decimal, int, int, Solution]] = []
        for at, solution in enumerate(found):
            better = refine_projections(solution, self._month) if at == 0 else solution
            findings = lint(self._design([better.plan])).findings
            wrong = any(finding.severity == "error" for finding in findings)
            warnings = sum(finding.severity == "warning" for finding in findings)
            price = Decimal(str(round(self._month(better.plan), 2)))
            judged.append((wrong, price * (1 + _WARNING * warnings), len(better.plan.indexes), at, better))
        judged.sort(key=lambda each: each[:4])
        return tuple(each[4] for each in judged)

    def _found(self, household: TableGroup, style: Style) -> tuple[Solution, ...]:
        """Return the solutions of a table in a style, each searched for once."""
        key = (household.label, style)
        if key not in self.searched:
            self.searched[key] = search_table(household, self.subject, self.rates, style, self.views)
        return self.searched[key]

    def _month(self, plan: TableProposal) -> float:
        return self.rates.month(self._design([plan]).tables[0])

    def _design(self, plans: list[TableProposal]) -> Design:
        return assemble_design(plans, self.subject, self.views)

    def _total(self, plans: list[TableProposal]) -> Decimal:
        return estimate_month(self._design(plans), self.assumptions, self.book).total

    def _choices(self, design: Design, month: MonthlyBill, plans: list[TableProposal]) -> Iterator[Choice]:
        for household, plan, table in zip(self.households, plans, design.tables, strict=True):

            def amount(index: str | None, name: str = table.name) -> Decimal:
                told = (line.amount for line in month.lines if line.table == name and line.index == index)
                return sum(told, Decimal(0))

            yield explain_table(household, plan, table, self.subject, amount(None))
            yield from explain_shards(plan, table, self.subject)
            for index, made in zip(plan.indexes, table.indexes, strict=True):
                yield explain_index(plan, index, made, table, self.subject, amount(made.name))

    def _alternatives(
        self, plans: list[TableProposal], ranked: list[tuple[Solution, ...]], total: Decimal
    ) -> Iterator[Alternative]:
        design = self._design(plans)
        for at, (plan, found) in enumerate(zip(plans, ranked, strict=True)):
            table = design.tables[at]
            for number, group in enumerate(found[0].groups):
                for other, _ in group.others[:2]:
                    indexes = (*plan.indexes[:number], other, *plan.indexes[number + 1 :])
                    told = self._total([*plans[:at], replace(plan, indexes=indexes), *plans[at + 1 :]])
                    why = explain_projection(other, group.index, told - total)
                    place = f"{table.label}.{table.indexes[number].label}"
                    yield Alternative(place, describe_projection(other, group.index), told, why)
            for solution in found[1:3]:
                told = self._total([*plans[:at], solution.plan, *plans[at + 1 :]])
                what = describe_other_keys(solution.plan, plan)
                many = len(solution.plan.indexes)
                if what:
                    why = _why(told - total, many, len(plan.indexes))
                    shards = max(solution.plan.base_shards.values(), default=1)
                    if shards > max(plan.base_shards.values(), default=1):
                        why += f", spread over {shards} shards"
                    yield Alternative(table.label, what, told, why)
        for style in STYLES:
            if style in (self.style, "auto"):
                continue
            with suppress(SolveRefused):
                other_plans = [self._found(household, style)[0].plan for household in self.households]
                told = self._total(other_plans)
                many, now = (sum(len(plan.indexes) for plan in each) for each in (other_plans, plans))
                but = f"--style {self.style} was asked for" if self.style != "auto" else _UNFIT
                why = _why(told - total, many, now, but)
                if self._design(other_plans) != design:
                    yield Alternative("design", f"{style} keys throughout", told, why)


def _why(dearer: Decimal, many: int, now: int, but: str = "the linter has more against it") -> str:
    word = "index" if many == 1 else "indexes"
    indexes = f"{many} {word} instead of {now}" if many != now else "as many indexes"
    if dearer >= _CENT:
        return f"costs {dearer:,.2f} more, with {indexes}"
    if dearer <= -_CENT:
        return f"costs {-dearer:,.2f} less, with {indexes}, but {but}"
    return f"costs the same, with {indexes}"
