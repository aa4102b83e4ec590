"""Decide which index keys share an index and what that index projects: by price, then by the number of indexes.

An index holds at most one key per entity. Sharing an index costs nothing in itself; what keys share is the projection, so the price
decides. The search is branch and bound: keys are placed one after the other, each into an index that can hold it or into a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from tavola.design.solver.assembly import ViewRegistry, assemble_table
from tavola.design.solver.conditions import fits_key_attribute, fits_template
from tavola.design.solver.pricing import UnitRates, former_shards, note_unknown_heat, shards_needed
from tavola.design.solver.proposals import (
    EntityProposal,
    IndexKey,
    IndexProposal,
    Projection,
    Style,
    TableProposal,
)
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.text import HALF_CENT
from tavola.limits import MULTI_KEY_ATTRIBUTES_MAX, PROJECTED_ATTRIBUTES_MAX, PROJECTED_ATTRIBUTES_TOTAL_MAX
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import VERSION_ATTRIBUTE

_NODES_MAX = 3_000  # search nodes visited before the best packing so far is returned
_HYDRATION_SUBSETS_MAX = 4  # with more questions, whole items are fetched for all of them or none
PRICE_STEP = float(HALF_CENT)  # prices that differ by less are equal


@dataclass(frozen=True, slots=True)
class IndexGroup:
    """Index keys that share an index, with the cheapest projection and its monthly price."""

    index: IndexProposal
    price: float
    others: tuple[tuple[IndexProposal, float], ...] = ()  # other projections, the next cheapest first


class Packer:
    """Packs the index keys of one table's entities; caches the prices it computes."""

    def __init__(
        self,
        subject: SolverInput,
        label: str,
        home: TableDesign | None,
        names: Sequence[str],
        rates: UnitRates,
        style: Style,
        views: dict[str, EntityDesign],
    ) -> None:
        self.subject, self.label, self.home, self.names = subject, label, home, tuple(names)
        self.rates, self.style, self.known_views = rates, style, views
        self._prices: dict[object, float] = {}
        self._groups: dict[object, IndexGroup | None] = {}
        self._shards: dict[object, int] = {}
        self._hot: dict[object, bool] = {}
        self._identities = {name: subject.identities(name) for name in names}

    # Prices of single entities. They add up, because entities share no index entries.

    def price_without_indexes(self, plan: EntityProposal) -> float:
        """Return the monthly price of an entity without its indexes."""
        key = ("base", plan.entity, plan.base, _names(plan.served))
        if key not in self._prices:
            self._prices[key] = self.rates.monthly_price(self.single_entity_table(plan, ()))
        return self._prices[key]

    def _index_price(self, plan: EntityProposal, index: IndexProposal) -> float:
        """Return what an index adds to the monthly price of one entity."""
        index_key = index.key_of(plan.entity)
        assert index_key is not None
        entity = self.subject.entities[plan.entity]
        projection: object = index.projection
        if isinstance(index.projection, tuple):
            entity_attributes = {field.attribute for field in entity.fields}
            projection = frozenset(name for name in index.projection if name in entity_attributes)
        hydrated = frozenset(served for served in index.hydrated if served[0] == plan.entity)
        key = (
            plan.entity,
            plan.base,
            index_key.key.text,
            _names(index_key.questions),
            projection,
            hydrated,
            index.native,
        )
        if key not in self._prices:
            single_index = IndexProposal(
                (index_key,),
                index.projection,
                hydrated,
                index.native,
                {plan.entity: index.shards.get(plan.entity, 1)},
            )
            self._prices[key] = self.rates.monthly_price(
                self.single_entity_table(plan, (single_index,))
            ) - self.price_without_indexes(plan)
        return self._prices[key]

    def single_entity_table(self, plan: EntityProposal, indexes: tuple[IndexProposal, ...]) -> TableDesign:
        """Return a table of one entity, to price its keys."""
        shards = {plan.entity: self.base_shards(plan)}
        return self._assemble(
            TableProposal(self.label, self.home, (plan,), indexes, self.has_native_key(plan), shards)
        )

    def _assemble(self, plan: TableProposal) -> TableDesign:
        views = ViewRegistry(dict(self.known_views), set(self.subject.entities))
        return assemble_table(plan, self.subject, views, with_collections=False)

    def base_shards(self, plan: EntityProposal) -> int:
        """Return how many shards an entity's table key needs so that no partition is too hot."""
        if any(question.has_several_entities for question in plan.served):
            return 1  # a collection is one partition
        key = (plan.entity, plan.base, _names(plan.served))
        if key not in self._shards:
            entity = self.subject.entities[plan.entity]
            table = self._assemble(TableProposal(self.label, self.home, (plan,)))
            self._shards[key] = shards_needed(
                table,
                table.entities[0],
                None,
                self._identities[plan.entity],
                former_shards(entity, plan.base.partition),
            )
        return self._shards[key]

    def may_be_hot(self, plan: EntityProposal) -> bool:
        """Return whether a partition of the table may be too hot."""
        key = (plan.entity, plan.base, _names(plan.served))
        if key not in self._hot:
            table = self._assemble(TableProposal(self.label, self.home, (plan,)))
            note = note_unknown_heat(table, table.entities[0], None, self._identities[plan.entity])
            self._hot[key] = note is not None or self.base_shards(plan) > 1
        return self._hot[key]

    def has_native_key(self, plan: EntityProposal) -> bool:
        """Return whether the attributes of the table's only entity can be its key."""
        if len(self.names) > 1 or self.style == "overloaded":
            return False
        if len(plan.base.partition) != 1 or len(plan.base.sorts) > 1:
            return False
        entity = self.subject.entities[plan.entity]
        return (
            all(fits_key_attribute(entity.field(name)) for name in plan.base.fields)
            and self.base_shards(plan) == 1
        )

    # Index keys that share an index.

    def best_index(self, plans: dict[str, EntityProposal], keys: tuple[IndexKey, ...]) -> IndexGroup | None:
        """Return the cheapest index for some index keys; None if no index can hold them together."""
        key = tuple((plans[b.entity].base, b.entity, b.key.text, _names(b.questions)) for b in keys)
        if key not in self._groups:
            self._groups[key] = self._find_best_index(plans, keys)
        return self._groups[key]

    def _find_best_index(
        self, plans: dict[str, EntityProposal], keys: tuple[IndexKey, ...]
    ) -> IndexGroup | None:
        if len({index_key.entity for index_key in keys}) < len(keys) or len({b.local for b in keys}) > 1:
            return None
        candidates: list[tuple[float, int, bool, int, IndexProposal]] = []
        for native in self._key_styles(plans, keys):
            for rank, (projection, hydrated) in enumerate(self._projections(plans, keys, native)):
                index = IndexProposal(keys, projection, hydrated, native)
                if not native and not keys[0].local:
                    index = self._add_shards(plans, index)
                price = sum(self._index_price(plans[index_key.entity], index) for index_key in keys)
                candidates.append(
                    (round(price / PRICE_STEP) * PRICE_STEP, len(hydrated), not native, rank, index)
                )
        if not candidates:
            return None
        candidates.sort(key=lambda candidate: candidate[:4])
        best = candidates[0][4]
        price = sum(self._index_price(plans[index_key.entity], best) for index_key in keys)
        return IndexGroup(best, price, tuple((index, cost) for cost, _, _, _, index in candidates[1:]))

    def _key_styles(self, plans: dict[str, EntityProposal], index_keys: tuple[IndexKey, ...]) -> list[bool]:
        """Return how an index can be keyed, native (True) first: by the items' own attributes, or by templates."""
        native = self.style != "overloaded" and self._can_be_native(plans, index_keys)
        if native:
            sharded = self._add_shards(plans, IndexProposal(index_keys, "ALL"))
            native = not sharded.shards
        fit_templates = all(
            fits_template(self.subject.entities[index_key.entity].field(name))
            for index_key in index_keys
            for name in index_key.key.fields
        )
        if native:
            return [True, False] if fit_templates and self.style == "auto" else [True]
        return [False] if fit_templates else []

    def _can_be_native(self, plans: dict[str, EntityProposal], index_keys: tuple[IndexKey, ...]) -> bool:
        """Return whether an entity's own attributes can be the index key, and no other entity of the table has all of them."""
        if len(index_keys) != 1 or index_keys[0].local:
            return False
        index_key = index_keys[0]
        entity, key = self.subject.entities[index_key.entity], index_key.key
        limit = MULTI_KEY_ATTRIBUTES_MAX
        if (
            not 1 <= len(key.partition) <= limit
            or len(key.sorts) > limit
            or key.members
            or index_key.shared_questions
        ):
            return False
        if not all(fits_key_attribute(entity.field(name)) for name in key.fields):
            return False
        if self.has_native_key(plans[index_key.entity]) and key.fields == plans[index_key.entity].base.fields:
            return False
        key_attributes = {(key_field := entity.field(name)).attribute: key_field.tags for name in key.fields}
        if self.home is not None and self.home.settings.tag in key_attributes:
            return False
        for name in self.names:
            attributes = {field.attribute: field.tags for field in self.subject.entities[name].fields}
            if name != index_key.entity and key_attributes.keys() <= attributes.keys():
                return False  # its items would be in the index as well
            if any(attributes.get(attribute, tags) != tags for attribute, tags in key_attributes.items()):
                return False  # its items could not be written: a key attribute has one type
        return True

    def _add_shards(self, plans: dict[str, EntityProposal], index: IndexProposal) -> IndexProposal:
        shards = {}
        for index_key in index.keys:
            if index_key.shared_questions:
                continue  # a collection is one partition
            count = self._index_shards(plans[index_key.entity], index_key, index)
            if count > 1:
                shards[index_key.entity] = count
        return IndexProposal(index.keys, index.projection, index.hydrated, index.native, shards)

    def _index_shards(self, plan: EntityProposal, index_key: IndexKey, index: IndexProposal) -> int:
        entity = self.subject.entities[index_key.entity]
        entity_attributes = {field.attribute for field in entity.fields}
        projected = index.projection
        if isinstance(projected, tuple):
            projected = tuple(name for name in projected if name in entity_attributes) or "KEYS_ONLY"
        hydrated = frozenset(served for served in index.hydrated if served[0] == plan.entity)
        key = (
            index_key.entity,
            plan.base,
            index_key.key.text,
            _names(index_key.questions),
            projected,
            hydrated,
        )
        if key not in self._shards:
            table = self.single_entity_table(plan, (IndexProposal((index_key,), projected, hydrated),))
            self._shards[key] = shards_needed(
                table,
                table.entities[0],
                table.indexes[0],
                self._identities[index_key.entity],
                former_shards(entity, index_key.key.partition),
            )
        return self._shards[key]

    def _projections(
        self, plans: dict[str, EntityProposal], index_keys: tuple[IndexKey, ...], native: bool
    ) -> Iterable[tuple[Projection, frozenset[tuple[str, str]]]]:
        """Yield the projections that an index may have, each with the questions that then fetch whole items."""
        questions = [
            (index_key.entity, question) for index_key in index_keys for question in index_key.questions
        ]
        fetchable = [
            (name, question)
            for name, question in questions
            if question.result_fields is None
            and not question.has_several_entities
            and not question.consistent
        ]
        returns_all_fields = any(question.result_fields is None for _, question in questions)
        # There is nothing to project
        keys_suffice = self._attributes(plans, index_keys, frozenset(), native) == ()
        if keys_suffice:
            yield "KEYS_ONLY", frozenset()
        if returns_all_fields:
            yield "ALL", frozenset()
        subsets = (
            chain.from_iterable(combinations(fetchable, count) for count in range(len(fetchable) + 1))
            if len(fetchable) <= _HYDRATION_SUBSETS_MAX
            else iter(((), tuple(fetchable)))
        )
        for subset in subsets:
            hydrated = frozenset((name, question.name) for name, question in subset)
            if keys_suffice:
                break
            names = self._attributes(plans, index_keys, hydrated, native)
            if names is None:
                continue
            if not names:
                yield "KEYS_ONLY", hydrated
            elif not self._covers_all_fields(plans, index_keys, names):
                yield names, hydrated
        if not returns_all_fields:
            yield "ALL", frozenset()

    def _covers_all_fields(
        self, plans: dict[str, EntityProposal], index_keys: tuple[IndexKey, ...], names: tuple[str, ...]
    ) -> bool:
        """Return whether the keys and some attributes are all that the entities have."""
        for index_key in index_keys:
            key_fields = {*index_key.key.fields, *plans[index_key.entity].base.fields}
            fields = self.subject.entities[index_key.entity].fields
            if not all(field.attribute in names or field.name in key_fields for field in fields):
                return False
        return True

    def _key_attributes(self, plan: EntityProposal, index_key: IndexKey, native: bool) -> set[str]:
        """Return the item attributes that are key attributes of the index or of the table, and so always projected."""
        entity = self.subject.entities[index_key.entity]
        attributes = {entity.field(name).attribute for name in index_key.key.fields} if native else set()
        if self.has_native_key(plan):
            attributes |= {entity.field(name).attribute for name in plan.base.fields}
        return attributes

    def _attributes(
        self,
        plans: dict[str, EntityProposal],
        index_keys: tuple[IndexKey, ...],
        hydrated: frozenset[tuple[str, str]],
        native: bool,
    ) -> tuple[str, ...] | None:
        """Return the attributes that must be projected; None if DynamoDB does not allow that many."""
        needed: dict[str, bool] = {}  # whether a key template contains the value as well
        for index_key in index_keys:
            entity, proposal = self.subject.entities[index_key.entity], plans[index_key.entity]
            key_attributes = self._key_attributes(proposal, index_key, native)
            key_fields = {*index_key.key.fields, *proposal.base.fields}
            for question in index_key.questions:
                if (index_key.entity, question.name) in hydrated:
                    continue
                for attribute, name in self._needed_attributes(entity, question):
                    if attribute not in key_attributes:
                        needed[attribute] = needed.get(attribute, True) and name in key_fields
        if len(needed) > PROJECTED_ATTRIBUTES_MAX and len(index_keys) == 1:
            needed = {name: False for name, known in needed.items() if not known}
        return None if len(needed) > PROJECTED_ATTRIBUTES_MAX else tuple(sorted(needed))

    def _needed_attributes(self, entity: EntityDesign, question: SolverQuestion) -> Iterable[tuple[str, str]]:
        """Yield the attributes, with their fields, that a question reads."""
        ttl = None if self.home is None else self.home.settings.ttl
        for field in entity.fields:
            if (
                question.result_fields is None
                or field.name in question.result_fields
                or field.attribute == ttl
            ):
                yield field.attribute, field.name
        if entity.version > 1:
            yield VERSION_ATTRIBUTE, ""

    # Packing.

    def pack(self, plans: Sequence[EntityProposal]) -> tuple[tuple[IndexGroup, ...], float] | None:
        """Return the indexes for some entities' index keys: the cheapest, and among those the fewest."""
        by_name = {plan.entity: plan for plan in plans}
        units = _join_collections([index_key for plan in plans for index_key in plan.index_keys])
        counts = {plan.entity: len(plan.index_keys) for plan in plans}
        units.sort(key=lambda unit: (-max(counts[index_key.entity] for index_key in unit), unit[0].entity))
        solo = []
        for unit in units:
            best = self.best_index(by_name, unit)
            if best is None:
                return None
            solo.append(best.price)
        groups = _PackingSearch(
            units, solo, lambda keys: self.best_index(by_name, keys), self._may_share
        ).best
        if groups is None:
            return None
        return groups, sum(group.price for group in groups)

    def _may_share(self, one: IndexGroup, unit: tuple[IndexKey, ...], solo: IndexGroup) -> bool:
        """Return whether an index may take more keys: in the native style, native indexes stay alone."""
        return self.style != "native" or not (one.index.native or solo.index.native)


class _PackingSearch:
    """Branch and bound: each unit goes into an existing index that can hold it, or into a new one."""

    def __init__(
        self,
        units: list[tuple[IndexKey, ...]],
        solo: list[float],
        group: Callable[[tuple[IndexKey, ...]], IndexGroup | None],
        may_share: Callable[[IndexGroup, tuple[IndexKey, ...], IndexGroup], bool],
    ) -> None:
        self.units, self.solo, self.group, self.may_share = units, solo, group, may_share
        self.rest = [sum(solo[position:]) for position in range(len(solo) + 1)]
        self.nodes = 0
        self.best: tuple[IndexGroup, ...] | None = None
        self._score: tuple[int, int, int] | None = None
        self._visit(0, ())

    def _visit(self, position: int, groups: tuple[IndexGroup, ...]) -> None:
        self.nodes += 1
        spent = sum(group.price for group in groups)
        named = sum(len(g.index.projection) for g in groups if isinstance(g.index.projection, tuple))
        score = (round((spent + self.rest[position]) / PRICE_STEP), len(groups), named)
        if self._score is not None and (score[:2] > self._score[:2] or self.nodes > _NODES_MAX):
            return
        if position == len(self.units):
            if named <= PROJECTED_ATTRIBUTES_TOTAL_MAX and (self._score is None or score < self._score):
                self.best, self._score = groups, score
            return
        unit = self.units[position]
        solo = self.group(unit)
        assert solo is not None
        shared = []
        for number, group in enumerate(groups):
            if not self.may_share(group, unit, solo):
                continue
            joined = self.group((*group.index.keys, *unit))
            if joined is not None:
                shared.append((round((joined.price - group.price) / PRICE_STEP), number, joined))
        for _, number, joined in sorted(shared, key=lambda candidate: candidate[:2]):
            self._visit(position + 1, (*groups[:number], joined, *groups[number + 1 :]))
        self._visit(position + 1, (*groups, solo))


def _join_collections(index_keys: list[IndexKey]) -> list[tuple[IndexKey, ...]]:
    """Return index keys in units that must share an index, because one collection contains them."""
    units: list[tuple[IndexKey, ...]] = []
    for index_key in index_keys:
        shared = {question.name for question in index_key.shared_questions}
        joined = [
            unit for unit in units if shared & {q.name for other in unit for q in other.shared_questions}
        ]
        units = [unit for unit in units if unit not in joined] + [(*chain.from_iterable(joined), index_key)]
    return units


def _names(questions: Iterable[SolverQuestion]) -> frozenset[str]:
    return frozenset(question.name for question in questions)
