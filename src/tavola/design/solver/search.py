"""Search the keys and indexes of one table: the cheapest that serve every question.

Problem. Each entity may be keyed by any of its identities, split into partition and sort key in any order; every question that the
table key does not serve needs an index key; index keys may serve several questions and share an index with other entities.

    entities + questions
         │  base_keys: table keys that serve something no better key serves          (prune)
         ▼
    for each entity and table key: which questions does the table serve?
         │  groupings: ways in which the other questions share index keys            (prune)
         ▼
    EntityProposals, priced alone, the four cheapest kept                            (price)
         │  Packer.pack: branch and bound over which index keys share an index,
         │  with the cheapest projection of each
         ▼
    TableProposals ──► refine_projections ──► lint ──► cheapest without errors

Pruning. A table key is dropped if another of the same or a finer partition serves all its questions. Groupings whose questions no
single sort order serves are never built. Packing stops at a lower bound: the price so far plus the price of every remaining key in an
index of its own, which sharing an index never lowers.

Proof. Within one choice of entity proposals the packing is exact up to a cent as long as fewer than 3,000 nodes are visited; across
entities only one proposal at a time is varied, so the result is the best that differs from the cheapest proposals in one entity. Tests
compare small designs with an exhaustive search.

Determinism. Everything follows the order of the declarations, so the same design always gets the same solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tavola.design.solver.candidates import (
    EntityProposal,
    KeyProposal,
    base_keys,
    groupings,
    table_serves,
)
from tavola.design.solver.errors import SolveRefused
from tavola.design.solver.packing import CENT, IndexGroup, Packer
from tavola.design.solver.plans import Style, TableProposal
from tavola.design.solver.pricing import UnitRates
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.solver.tables import TableGroup
from tavola.limits import GLOBAL_INDEXES_MAX, LOCAL_INDEXES_MAX
from tavola.model.document import EntityDesign

_COLLECTIONS_APART_MAX = 6  # collections that are tried both in the table and in an index
_PLANS_KEPT = 4  # of each entity, for trying and for showing


@dataclass(frozen=True, slots=True)
class Solution:
    """A table that serves all its questions, its monthly price by what keys decide, and the groups of its indexes."""

    plan: TableProposal
    groups: tuple[IndexGroup, ...]
    price: float


def search_table(
    household: TableGroup,
    subject: SolverInput,
    rates: UnitRates,
    style: Style,
    views: Mapping[str, EntityDesign],
) -> tuple[Solution, ...]:
    """Return the ways of laying out one table, the cheapest first."""
    return _Search(household, subject, rates, style, dict(views)).run()


def refine_projections(solution: Solution, month: Callable[[TableProposal], float]) -> Solution:
    """Return a solution with other projections where that makes the whole table cheaper.

    The search prices indexes one by one, but the attributes of one key are stored in every index.
    """
    plan, groups = solution.plan, list(solution.groups)
    price = month(plan)
    for at, group in enumerate(solution.groups):
        for other, cost in group.others:
            changed = replace(plan, indexes=(*plan.indexes[:at], other, *plan.indexes[at + 1 :]))
            fresh = month(changed)
            if fresh < price - CENT:
                plan, price = changed, fresh
                rest = tuple(each for each in group.others if each[0] is not other)
                groups[at] = IndexGroup(other, cost, ((group.index, group.price), *rest))
    return Solution(plan, tuple(groups), price)


class _Search:
    def __init__(
        self,
        household: TableGroup,
        subject: SolverInput,
        rates: UnitRates,
        style: Style,
        views: dict[str, EntityDesign],
    ) -> None:
        self.household, self.subject, self.rates, self.views = household, subject, rates, views
        self.names = household.entities
        self.questions = [q for q in subject.questions if q.entities[0] in self.names]
        self.packer = Packer(subject, household.label, household.home, self.names, rates, style, views)
        self.bases = {name: base_keys(subject.entities[name], self._of(name)) for name in self.names}

    def _of(self, name: str) -> list[SolverQuestion]:
        return [question for question in self.questions if name in question.entities]

    def run(self) -> tuple[Solution, ...]:
        together = [question for question in self.questions if question.several]
        told: list[Solution] = []
        refused: SolveRefused | None = None
        for inside in self._places(together):
            try:
                told += self._solve(inside)
            except SolveRefused as refusal:
                refused = refused or refusal
        if not told:
            assert refused is not None
            raise refused
        told.sort(key=lambda each: (round(each.price / CENT), len(each.groups)))
        return tuple(told)

    def _places(self, together: list[SolverQuestion]) -> Iterator[frozenset[str]]:
        """Yield which collections are in the table itself; the others are in indexes."""
        if len(together) > _COLLECTIONS_APART_MAX:
            yield frozenset(question.name for question in together)
            return
        for inside in product((True, False), repeat=len(together)):
            yield frozenset(q.name for q, here in zip(together, inside, strict=True) if here)

    def _solve(self, inside: frozenset[str]) -> Iterator[Solution]:
        ranked = [self._entity_plans(name, inside) for name in self.names]
        ways = [tuple(plans[0] for plans in ranked)]
        for at, plans in enumerate(ranked):
            ways += [
                tuple(other if at == number else each[0] for number, each in enumerate(ranked))
                for other in plans[1:]
            ]
        told: list[Solution] = []
        refused: SolveRefused | None = None
        for way in ways:
            try:
                told.append(self._packed(way))
            except SolveRefused as refusal:
                refused = refused or refusal
        if not told:
            assert refused is not None
            raise refused
        return iter(told)

    def _entity_plans(self, name: str, inside: frozenset[str]) -> list[EntityProposal]:
        """Return an entity's proposals, the cheapest first."""
        entity = self.subject.entities[name]
        found: list[tuple[int, int, tuple[bool, ...], int, EntityProposal]] = []
        hindered: SolveRefused | None = None
        for key in self.bases[name]:
            base = self._aligned(name, key, inside)
            if base is None:
                continue
            served: list[SolverQuestion] = []
            rest: list[SolverQuestion] = []
            for question in self._of(name):
                there = question.name in inside if question.several else table_serves(base, question, entity)
                (served if there else rest).append(question)
            for blocks in groupings(entity, rest, base):
                plan = EntityProposal(name, base, tuple(served), blocks)
                hindered = hindered or self._hindered(plan)
                price = self._price(plan)
                if price is not None:
                    rank = self._rank(plan)
                    found.append((round(price / CENT), len(blocks), rank, len(found), plan))
        if not found:
            raise hindered or self._unserved(name, inside)
        found.sort(key=lambda each: each[:4])
        return [plan for *_, plan in found[:_PLANS_KEPT]]

    def _rank(self, plan: EntityProposal) -> tuple[bool, ...]:
        """Return the tie-breakers of proposals with equal price: heat, templates, a whole identity in one text."""
        whole = len(plan.base.partition) > 1 and not plan.base.sorts
        return self.packer.crowded(plan), not self.packer.plain(plan), whole

    def _aligned(self, name: str, key: KeyProposal, inside: frozenset[str]) -> KeyProposal | None:
        """Return a table key whose partition follows the entity's collections; None if it cannot."""
        for question in self._of(name):
            if question.several and question.name in inside:
                given = question.equal(name)
                entity = self.subject.entities[name]
                if question.members or any(entity.field(each).nullable for each in question.present):
                    return None  # only an index leaves the others out
                if set(given) != set(key.partition) or not given:
                    return None
                key = KeyProposal(given, key.sorts)
        return key

    def _price(self, plan: EntityProposal) -> float | None:
        if self._hindered(plan) is not None:
            return None
        price = self.packer.alone(plan)
        for block in plan.blocks:
            group = self.packer.group({plan.entity: plan}, (block,))
            if group is None:
                return None
            price += group.price
        return price

    def _hindered(self, plan: EntityProposal) -> SolveRefused | None:
        """Return why a proposal cannot have the local indexes that it needs; None if it can."""
        local = [block for block in plan.blocks if block.local]
        if len(local) > LOCAL_INDEXES_MAX:
            return SolveRefused(
                plan.entity,
                f"its questions that must see every write before them take {len(local)} local indexes, and a table has "
                f"{LOCAL_INDEXES_MAX} at most; let some be eventual",
            )
        if local and self.packer.base_shards(plan) > 1:
            return SolveRefused(
                f"Need {local[0].questions[0].need}",
                "it must see every write before it, which a local index would let it; but its partitions are written so "
                "fast that they must be spread, and then it would ask them all; let it be eventual",
            )
        return None

    def _unserved(self, name: str, inside: frozenset[str]) -> SolveRefused:
        entity = self.subject.entities[name]
        for question in self._of(name):
            bases = [
                base for key in self.bases[name] if (base := self._aligned(name, key, inside)) is not None
            ]
            if question.several and not bases:
                return SolveRefused(
                    f"Need {question.need}",
                    f"it wants {name} in one partition by {', '.join(question.equal(name)) or 'nothing'}, which is no "
                    f"part of what tells one {name} from another; identify {name} by it too",
                )
            if question.consistent and not any(table_serves(base, question, entity) for base in bases):
                return SolveRefused(
                    f"Need {question.need}",
                    "it must see every write before it, and only the table's own key or a local index is read so; give "
                    "the fields that it is asked by a place in what identifies the item, or let it be eventual",
                )
        return SolveRefused(name, "no keys serve all that is asked of it; ask by fewer fields at once")

    def _packed(self, plans: tuple[EntityProposal, ...]) -> Solution:
        found = self.packer.pack(plans)
        if found is None:
            raise SolveRefused(
                self.household.label,
                "its questions need an index that no attributes can be projected into; read fewer fields in some",
            )
        groups, price = found
        for local, most in ((False, GLOBAL_INDEXES_MAX), (True, LOCAL_INDEXES_MAX)):
            count = sum(group.index.local is local for group in groups)
            if count > most:
                raise SolveRefused(
                    self.household.label,
                    f"its questions need {count} {'local' if local else 'global'} indexes, and a table has {most} at most; "
                    f"{'let some be eventual' if local else 'ask fewer'}, or keep some entities in a table of their own",
                )
        plan = TableProposal(
            self.household.label,
            self.household.home,
            plans,
            tuple(group.index for group in groups),
            len(plans) == 1 and self.packer.plain(plans[0]),
            {each.entity: count for each in plans if (count := self.packer.base_shards(each)) > 1},
        )
        return Solution(plan, groups, price + sum(map(self.packer.alone, plans)))
