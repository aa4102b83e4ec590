"""Search the keys and indexes of one table: the cheapest that serve every question.

Problem. Each entity may be keyed by any of its identities, split into partition and sort key in any order; every question that the
table key does not serve needs an index key; index keys may serve several questions and share an index with other entities.

    entities + questions
         │  base_keys: table keys that serve something no better key serves          (prune)
         ▼
    for each entity and table key: which questions does the table serve?
         │  groupings: ways in which the other questions share index keys            (prune)
         ▼
    EntityProposals, each priced by itself; the four cheapest go on                 (price)
         │  Packer.pack: branch and bound over which index keys share an index,
         │  with the cheapest projection of each
         ▼
    TableProposals ──► refine_projections ──► lint ──► cheapest without errors

Pruning. A table key is dropped if another of the same or a finer partition serves all its questions. Groupings whose questions no
single sort order serves are never built. Packing stops at a lower bound: the price so far plus the price of every remaining key in an
index of its own, which sharing an index never lowers.

What it gives up. Within one choice of entity proposals the packing is exact to half a cent as long as fewer than 3,000 nodes are
visited. Across entities only one proposal at a time is varied: the result is the best that differs from the cheapest proposals in at
most one entity. Tests compare the search with an exhaustive one for designs of one entity.

Determinism. Everything follows the order of the declarations, so the same design always gets the same solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tavola.design.errors import SolverError
from tavola.design.solver.candidates import base_keys, groupings, table_serves
from tavola.design.solver.packing import PRICE_STEP, IndexGroup, Packer
from tavola.design.solver.pricing import UnitRates
from tavola.design.solver.proposals import EntityProposal, KeyProposal, Style, TableProposal
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.solver.tables import TableGroup
from tavola.limits import GLOBAL_INDEXES_MAX, LOCAL_INDEXES_MAX
from tavola.model.document import EntityDesign

_COLLECTIONS_APART_MAX = 6  # collections that are tried both in the table and in an index
_PROPOSALS_MAX = 4  # of each entity, to be combined and shown as alternatives


@dataclass(frozen=True, slots=True)
class Solution:
    """A table that serves all its questions, its monthly price as far as keys decide it, and its indexes with alternatives."""

    plan: TableProposal
    groups: tuple[IndexGroup, ...]
    price: float


def search_table(
    group: TableGroup, subject: SolverInput, rates: UnitRates, style: Style, views: Mapping[str, EntityDesign]
) -> tuple[Solution, ...]:
    """Return the layouts of one table, the cheapest first."""
    return _Search(group, subject, rates, style, dict(views)).run()


def refine_projections(solution: Solution, month: Callable[[TableProposal], float]) -> Solution:
    """Return a solution with other projections where that makes the whole table cheaper.

    The search prices indexes one by one, but the attributes of one key are stored in every index.
    """
    plan, groups = solution.plan, list(solution.groups)
    price = month(plan)
    for position, group in enumerate(solution.groups):
        for other, cost in group.others:
            changed = replace(plan, indexes=(*plan.indexes[:position], other, *plan.indexes[position + 1 :]))
            fresh = month(changed)
            if fresh < price - PRICE_STEP:
                plan, price = changed, fresh
                rest = tuple(member for member in group.others if member[0] is not other)
                groups[position] = IndexGroup(other, cost, ((group.index, group.price), *rest))
    return Solution(plan, tuple(groups), price)


class _Search:
    def __init__(
        self,
        table_group: TableGroup,
        subject: SolverInput,
        rates: UnitRates,
        style: Style,
        views: dict[str, EntityDesign],
    ) -> None:
        self.table_group, self.subject, self.rates, self.views = table_group, subject, rates, views
        self.names = table_group.entities
        self.questions = [q for q in subject.questions if q.entities[0] in self.names]
        self.packer = Packer(subject, table_group.label, table_group.home, self.names, rates, style, views)
        self.bases = {
            name: base_keys(subject.entities[name], self._questions_of(name)) for name in self.names
        }

    def _questions_of(self, name: str) -> list[SolverQuestion]:
        return [question for question in self.questions if name in question.entities]

    def run(self) -> tuple[Solution, ...]:
        shared = [question for question in self.questions if question.has_several_entities]
        solutions: list[Solution] = []
        first_refusal: SolverError | None = None
        for inside in self._collection_placements(shared):
            try:
                solutions += self._solve_placement(inside)
            except SolverError as refusal:
                first_refusal = first_refusal or refusal
        if not solutions:
            assert first_refusal is not None
            raise first_refusal
        solutions.sort(key=lambda solution: (round(solution.price / PRICE_STEP), len(solution.groups)))
        return tuple(solutions)

    def _collection_placements(self, shared: list[SolverQuestion]) -> Iterator[frozenset[str]]:
        """Yield which collections are in the table itself; the others are in indexes."""
        if len(shared) > _COLLECTIONS_APART_MAX:
            yield frozenset(question.name for question in shared)
            return
        for inside in product((True, False), repeat=len(shared)):
            yield frozenset(q.name for q, here in zip(shared, inside, strict=True) if here)

    def _solve_placement(self, inside: frozenset[str]) -> Iterator[Solution]:
        ranked = [self._entity_proposals(name, inside) for name in self.names]
        combinations = [tuple(plans[0] for plans in ranked)]
        for position, plans in enumerate(ranked):
            combinations += [
                tuple(other if position == number else ranking[0] for number, ranking in enumerate(ranked))
                for other in plans[1:]
            ]
        solutions: list[Solution] = []
        first_refusal: SolverError | None = None
        for combination in combinations:
            try:
                solutions.append(self._pack(combination))
            except SolverError as refusal:
                first_refusal = first_refusal or refusal
        if not solutions:
            assert first_refusal is not None
            raise first_refusal
        return iter(solutions)

    def _entity_proposals(self, name: str, inside: frozenset[str]) -> list[EntityProposal]:
        """Return an entity's proposals, the cheapest first."""
        entity = self.subject.entities[name]
        candidates: list[tuple[int, int, tuple[bool, ...], int, EntityProposal]] = []
        refusal: SolverError | None = None
        for key in self.bases[name]:
            base = self._align_partition(name, key, inside)
            if base is None:
                continue
            served: list[SolverQuestion] = []
            unserved: list[SolverQuestion] = []
            for question in self._questions_of(name):
                in_table = (
                    question.name in inside
                    if question.has_several_entities
                    else table_serves(base, question, entity)
                )
                (served if in_table else unserved).append(question)
            for index_keys in groupings(entity, unserved, base):
                plan = EntityProposal(name, base, tuple(served), index_keys)
                refusal = refusal or self._local_index_refusal(plan)
                price = self._price(plan)
                if price is not None:
                    rank = self._rank(plan)
                    candidates.append(
                        (round(price / PRICE_STEP), len(index_keys), rank, len(candidates), plan)
                    )
        if not candidates:
            raise refusal or self._explain_unserved(name, inside)
        candidates.sort(key=lambda candidate: candidate[:4])
        return [plan for *_, plan in candidates[:_PROPOSALS_MAX]]

    def _rank(self, plan: EntityProposal) -> tuple[bool, ...]:
        """Return the tie-breakers of proposals with equal price: hot partitions, templates, an identity with no sort key come last."""
        is_full_key = len(plan.base.partition) > 1 and not plan.base.sorts
        return self.packer.may_be_hot(plan), not self.packer.has_native_key(plan), is_full_key

    def _align_partition(self, name: str, key: KeyProposal, inside: frozenset[str]) -> KeyProposal | None:
        """Return a table key with its partition in the order of the entity's collections; None if it cannot serve them."""
        for question in self._questions_of(name):
            if question.has_several_entities and question.name in inside:
                equal = question.equal_fields(name)
                entity = self.subject.entities[name]
                if question.members or any(
                    entity.field(field_name).nullable for field_name in question.present
                ):
                    return None  # only an index can leave out items
                if set(equal) != set(key.partition) or not equal:
                    return None
                key = KeyProposal(equal, key.sorts)
        return key

    def _price(self, plan: EntityProposal) -> float | None:
        if self._local_index_refusal(plan) is not None:
            return None
        price = self.packer.price_without_indexes(plan)
        for index_key in plan.index_keys:
            group = self.packer.best_index({plan.entity: plan}, (index_key,))
            if group is None:
                return None
            price += group.price
        return price

    def _local_index_refusal(self, plan: EntityProposal) -> SolverError | None:
        """Return why a proposal cannot have the local indexes that it needs; None if it can."""
        local = [index_key for index_key in plan.index_keys if index_key.local]
        if len(local) > LOCAL_INDEXES_MAX:
            return SolverError(
                plan.entity,
                f"its strongly consistent access patterns need {len(local)} local indexes, and the limit is {LOCAL_INDEXES_MAX}; use "
                "eventual consistency for some",
            )
        if local and self.packer.base_shards(plan) > 1:
            return SolverError(
                f"Need {local[0].questions[0].need}",
                "strong consistency needs a local index, but its partitions receive so many writes that they must be sharded, which a "
                "local index does not support; use eventual consistency",
            )
        return None

    def _explain_unserved(self, name: str, inside: frozenset[str]) -> SolverError:
        """Return why no proposal serves all questions of an entity."""
        entity = self.subject.entities[name]
        for question in self._questions_of(name):
            bases = [
                base
                for key in self.bases[name]
                if (base := self._align_partition(name, key, inside)) is not None
            ]
            if question.has_several_entities and not bases:
                return SolverError(
                    f"Need {question.need}",
                    f"needs {name} in one partition by {', '.join(question.equal_fields(name)) or 'a constant'}, which is not part of "
                    f"the fields that identify {name}; add it to them",
                )
            if question.consistent and not any(table_serves(base, question, entity) for base in bases):
                return SolverError(
                    f"Need {question.need}",
                    "strong consistency needs the table's key or a local index; add the fields of its conditions to the fields that "
                    "identify the item, or use eventual consistency",
                )
        return SolverError(name, "no keys serve all access patterns; use fewer conditions per access pattern")

    def _pack(self, plans: tuple[EntityProposal, ...]) -> Solution:
        packing = self.packer.pack(plans)
        if packing is None:
            raise SolverError(
                self.table_group.label,
                "an index would have to project too many attributes; read fewer fields in some access patterns",
            )
        groups, price = packing
        for local, most in ((False, GLOBAL_INDEXES_MAX), (True, LOCAL_INDEXES_MAX)):
            count = sum(group.index.local is local for group in groups)
            if count > most:
                raise SolverError(
                    self.table_group.label,
                    f"its access patterns need {count} {'local' if local else 'global'} indexes, and the limit is {most}; "
                    f"{'use eventual consistency for some' if local else 'remove some'}, or move entities to another table",
                )
        plan = TableProposal(
            self.table_group.label,
            self.table_group.home,
            plans,
            tuple(group.index for group in groups),
            len(plans) == 1 and self.packer.has_native_key(plans[0]),
            {plan.entity: count for plan in plans if (count := self.packer.base_shards(plan)) > 1},
        )
        return Solution(plan, groups, price + sum(map(self.packer.price_without_indexes, plans)))
