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
from tavola.design.errors import SolverError
from tavola.design.findings import Finding
from tavola.design.lint.rule import suppresses
from tavola.design.lint.runner import lint
from tavola.design.solver.assembly import assemble_design
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
from tavola.design.solver.pricing import UnitRates, note_unknown_heat, shards_needed
from tavola.design.solver.proposals import STYLES, Style, TableProposal
from tavola.design.solver.questions import SolverInput, read_input
from tavola.design.solver.search import Solution, refine_projections, search_table
from tavola.design.solver.tables import TableGroup, group_entities
from tavola.design.text import CENT, format_count, format_money
from tavola.model.document import CollectionDesign, Design, EntityDesign, TableDesign, check_references
from tavola.prices import PriceBook, load_book

REGION = "us-east-1"
_LINTED_MAX = 4  # solutions of one table that are linted
_WARNING = Decimal("0.01")  # share of the price that one lint warning adds to a solution's rank
_UNFIT = "it has more lint findings, or a hot partition"


@dataclass(frozen=True, slots=True)
class SolvedDesign:
    """A solved design with its monthly cost, the reason for each choice, and alternatives."""

    design: Design
    month: MonthlyBill
    choices: tuple[Choice, ...]
    alternatives: tuple[Alternative, ...]  # the cheapest first
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    before: MonthlyBill | None  # cost of the original design at the same rates; None if it had no keys
    needs_without_route: tuple[
        str, ...
    ] = ()  # needs that `before` cannot price: they have no route in the original design


def solve(
    design: Design,
    *,
    style: Style = "auto",
    book: PriceBook | None = None,
    assumptions: Assumptions | None = None,
) -> SolvedDesign:
    """Return the cheapest keys and indexes that serve every need of a design; raise `SolverError` if there are none.

    Keys that the design already has are ignored; only its entities and needs count. `style` says how indexes are keyed: by
    the items' own attributes, by templates that entities share, or by whichever is cheaper.
    """
    if style not in STYLES:
        raise SolverError("style", f"unknown style {style!r}; use one of {', '.join(STYLES)}")
    return _Solver(design, style, book or load_book(REGION), assumptions or Assumptions()).run()


class _Solver:
    def __init__(self, design: Design, style: Style, book: PriceBook, assumptions: Assumptions) -> None:
        self.original, self.style, self.book, self.assumptions = design, style, book, assumptions
        self.subject: SolverInput = read_input(design)
        self.views: Mapping[str, EntityDesign] = {view.name: view for view in design.views}
        self.rates = UnitRates.of(book)
        self.groups = group_entities(self.subject)
        self.searched: dict[tuple[str, Style], tuple[Solution, ...]] = {}

    def run(self) -> SolvedDesign:
        ranked = [self._rank_solutions(group) for group in self.groups]
        chosen = [solutions[0] for solutions in ranked]
        plans = [solution.plan for solution in chosen]
        design = self._design(plans)
        check_references(design)
        month = estimate_month(design, self.assumptions, self.book)
        bare = self.subject.assumed_rates.remove_from_design(design, self._original_entities())
        report = lint(bare)
        ignores = tuple(
            ignore
            for ignore in self.original.ignores
            if any(suppresses(ignore, finding) for finding in report.findings)
        )
        if ignores:
            bare = replace(bare, ignores=ignores)
            report = lint(bare)
        choices = tuple(self._choices(design, month, plans))
        alternatives = sorted(
            self._alternatives(plans, ranked, month.total), key=lambda alternative: alternative.amount
        )
        choices = tuple(
            replace(
                choice,
                alternatives=tuple(
                    alternative for alternative in alternatives if alternative.place == choice.place
                ),
            )
            for choice in choices
        )
        notes = (*self.subject.notes, *self._notes(design, month))
        return SolvedDesign(
            bare,
            month,
            choices,
            tuple(alternatives),
            report.findings,
            notes,
            self._original_month(),
            tuple(need.name for need in self.original.needs if need.route is None and self.original.tables),
        )

    def _original_entities(self) -> dict[str, EntityDesign]:
        entities = {view.name: view for view in self.original.views}
        return entities | {entity.name: entity for table in self.original.tables for entity in table.entities}

    def _original_month(self) -> MonthlyBill | None:
        """Return the cost of the original design, with the same assumed rates; None if it has no keys."""
        keyed = any(entity.key is not None for table in self.original.tables for entity in table.entities)
        if not keyed:
            return None
        return estimate_month(
            self.subject.assumed_rates.add_to_design(self.original), self.assumptions, self.book
        )

    def _notes(self, design: Design, month: MonthlyBill) -> Iterator[str]:
        """Yield notes on a solution: the cost of filters, partitions that may be hot, time shards that were dropped."""
        for question in self.subject.questions:
            if question.filtered:
                amount = sum((b.amount for b in month.bills if b.title == question.title), Decimal(0))
                items = 1 if question.access is None else question.access.items or 1
                yield (
                    f"Need {question.need} reads {format_count(items, 'item')} per call, {format_money(amount, month.currency)} per month, "
                    f"and filters by {' and '.join(question.filtered)} after reading."
                )
        for table in design.tables:
            for entity in table.entities:
                for index in (None, *table.indexes):
                    note = note_unknown_heat(table, entity, index, self.subject.identities(entity.name))
                    if note is not None:
                        yield note
            for collection in table.collections:
                yield from self._hot_collections(table, collection)
        for entity in self._original_entities().values():
            for key in entity.all_keys:
                if key.shards is not None and key.shards.by == "time":
                    yield (
                        f"{entity.name} was partitioned by the {key.shards.bucket} of {key.shards.of[0]} in "
                        f"{key.index or 'its table'}; the new keys are not: time ranges use the sort key."
                    )

    def _hot_collections(self, table: TableDesign, collection: CollectionDesign) -> Iterator[str]:
        """Yield a note for each collection member with a hot partition: a collection is one partition and cannot be sharded."""
        index = None if collection.index is None else table.index(collection.index)
        for member in collection.members:
            entity = table.entity(member.entity)
            count = shards_needed(table, entity, index, self.subject.identities(entity.name))
            if count > 1:
                yield (
                    f"{entity.name} needs {count} shards but cannot be sharded, since {collection.name} reads it with other entities from "
                    "one partition; read them separately, or use a partition key with more values."
                )

    def _rank_solutions(self, group: TableGroup) -> tuple[Solution, ...]:
        """Return the solutions of a table by price and lint warnings; those with lint errors come last."""
        solutions = [*self._search_once(group, self.style)[:_LINTED_MAX]]
        if self.style == "auto":
            for style in STYLES:
                with suppress(SolverError):
                    solutions += self._search_once(group, style)[:1]
        ranked: list[tuple[bool, Decimal, int, int, Solution]] = []
        for position, solution in enumerate(solutions):
            refined = refine_projections(solution, self._month) if position == 0 else solution
            findings = lint(self._design([refined.plan])).findings
            has_errors = any(finding.severity == "error" for finding in findings)
            warnings = sum(finding.severity == "warning" for finding in findings)
            price = Decimal(str(round(self._month(refined.plan), 2)))
            ranked.append(
                (has_errors, price * (1 + _WARNING * warnings), len(refined.plan.indexes), position, refined)
            )
        ranked.sort(key=lambda ranking: ranking[:4])
        return tuple(ranking[4] for ranking in ranked)

    def _search_once(self, group: TableGroup, style: Style) -> tuple[Solution, ...]:
        """Return the solutions of a table in a style; each pair is searched once."""
        key = (group.label, style)
        if key not in self.searched:
            self.searched[key] = search_table(group, self.subject, self.rates, style, self.views)
        return self.searched[key]

    def _month(self, plan: TableProposal) -> float:
        return self.rates.monthly_price(self._design([plan]).tables[0])

    def _design(self, plans: list[TableProposal]) -> Design:
        return assemble_design(plans, self.subject, self.views)

    def _total(self, plans: list[TableProposal]) -> Decimal:
        return estimate_month(self._design(plans), self.assumptions, self.book).total

    def _choices(self, design: Design, month: MonthlyBill, plans: list[TableProposal]) -> Iterator[Choice]:
        for group, plan, table in zip(self.groups, plans, design.tables, strict=True):

            def amount(index: str | None, name: str = table.name) -> Decimal:
                amounts = (line.amount for line in month.lines if line.table == name and line.index == index)
                return sum(amounts, Decimal(0))

            yield explain_table(group, plan, table, self.subject, amount(None))
            yield from explain_shards(plan, table, self.subject)
            for index, index_design in zip(plan.indexes, table.indexes, strict=True):
                yield explain_index(plan, index, index_design, table, self.subject, amount(index_design.name))

    def _alternatives(
        self, plans: list[TableProposal], ranked: list[tuple[Solution, ...]], total: Decimal
    ) -> Iterator[Alternative]:
        design = self._design(plans)
        for position, (plan, solutions) in enumerate(zip(plans, ranked, strict=True)):
            table = design.tables[position]
            for number, index_group in enumerate(solutions[0].groups):
                for other, _ in index_group.others[:2]:
                    indexes = (*plan.indexes[:number], other, *plan.indexes[number + 1 :])
                    alternative_total = self._total(
                        [*plans[:position], replace(plan, indexes=indexes), *plans[position + 1 :]]
                    )
                    why = explain_projection(other, index_group.index, alternative_total - total)
                    place = f"{table.label}.{table.indexes[number].label}"
                    yield Alternative(
                        place, describe_projection(other, index_group.index), alternative_total, why
                    )
            for solution in solutions[1:3]:
                alternative_total = self._total([*plans[:position], solution.plan, *plans[position + 1 :]])
                what = describe_other_keys(solution.plan, plan)
                count = len(solution.plan.indexes)
                if what:
                    why = _compare_cost(alternative_total - total, count, len(plan.indexes))
                    shards = max(solution.plan.base_shards.values(), default=1)
                    if shards > max(plan.base_shards.values(), default=1):
                        why += f", and needs {shards} shards"
                    yield Alternative(table.label, what, alternative_total, why)
        for style in STYLES:
            if style in (self.style, "auto"):
                continue
            with suppress(SolverError):
                other_plans = [self._search_once(index_group, style)[0].plan for index_group in self.groups]
                alternative_total = self._total(other_plans)
                count, chosen_count = (
                    sum(len(plan.indexes) for plan in proposals) for proposals in (other_plans, plans)
                )
                but = f"--style {self.style} was requested" if self.style != "auto" else _UNFIT
                why = _compare_cost(alternative_total - total, count, chosen_count, but)
                if self._design(other_plans) != design:
                    yield Alternative("design", f"{style} keys throughout", alternative_total, why)


def _compare_cost(
    extra: Decimal, count: int, chosen_count: int, but: str = "it has more lint findings"
) -> str:
    word = "index" if count == 1 else "indexes"
    indexes = (
        f"{count} {word} instead of {chosen_count}" if count != chosen_count else "the same number of indexes"
    )
    if extra >= CENT:
        return f"costs {format_money(extra)} more and has {indexes}"
    if extra <= -CENT:
        return f"costs {format_money(-extra)} less and has {indexes}, but {but}"
    return f"costs the same and has {indexes}"
