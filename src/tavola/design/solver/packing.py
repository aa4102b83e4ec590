"""Decide which index keys share an index and what that index projects: by price, then by the number of indexes.

An index holds at most one key per entity. Sharing an index costs nothing in itself; what keys share is the projection, so the price
decides. The search is branch and bound: keys are placed one after the other, each into an index that can hold it or into a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

from tavola.design.solver.assembly import ViewRegistry, assemble_table
from tavola.design.solver.candidates import EntityProposal, IndexKey
from tavola.design.solver.conditions import fits_key_attribute, fits_template
from tavola.design.solver.plans import IndexProposal, Projection, Style, TableProposal
from tavola.design.solver.pricing import UnitRates, former_shards, note_unknown_heat, shards_needed
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.limits import (
    MULTI_KEY_ATTRIBUTES_MAX,
    PROJECTED_ATTRIBUTES_MAX,
    PROJECTED_ATTRIBUTES_TOTAL_MAX,
)
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import VERSION_ATTRIBUTE

_NODES_MAX = 3_000  # of the tree of packings that are looked at; beyond, the best so far stands
_HYDRATED_APART_MAX = 4
CENT = 0.005


@dataclass(frozen=True, slots=True)
class IndexGroup:
    """Index keys that share an index, with the cheapest projection and its monthly price."""

    index: IndexProposal
    price: float
    others: tuple[tuple[IndexProposal, float], ...] = ()  # other ways, the next cheapest first


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

    # Prices of one entity by itself, which add up: what one has in an index is no other's.

    def alone(self, plan: EntityProposal) -> float:
        """Return the monthly price of an entity without its indexes."""
        key = ("base", plan.entity, plan.base, _names(plan.served))
        if key not in self._prices:
            self._prices[key] = self.rates.month(self.table(plan, ()))
        return self._prices[key]

    def _added(self, plan: EntityProposal, index: IndexProposal) -> float:
        """Return what an index adds to the cost of one entity."""
        block = index.block(plan.entity)
        assert block is not None
        entity = self.subject.entities[plan.entity]
        projection: object = index.projection
        if isinstance(index.projection, tuple):
            own = {found.attribute for found in entity.fields}
            projection = frozenset(name for name in index.projection if name in own)
        hydrated = frozenset(each for each in index.hydrated if each[0] == plan.entity)
        key = (
            plan.entity,
            plan.base,
            block.key.text,
            _names(block.questions),
            projection,
            hydrated,
            index.native,
        )
        if key not in self._prices:
            lone = IndexProposal(
                (block,),
                index.projection,
                hydrated,
                index.native,
                {plan.entity: index.shards.get(plan.entity, 1)},
            )
            self._prices[key] = self.rates.month(self.table(plan, (lone,))) - self.alone(plan)
        return self._prices[key]

    def table(self, plan: EntityProposal, indexes: tuple[IndexProposal, ...]) -> TableDesign:
        """Return a table of one entity, to price its keys."""
        shards = {plan.entity: self.base_shards(plan)}
        return self._table(TableProposal(self.label, self.home, (plan,), indexes, self.plain(plan), shards))

    def _table(self, plan: TableProposal) -> TableDesign:
        views = ViewRegistry(dict(self.known_views), set(self.subject.entities))
        return assemble_table(plan, self.subject, views, collections=False)

    def base_shards(self, plan: EntityProposal) -> int:
        """Return over how many shards an entity's table key is spread so that no partition is too hot."""
        if any(question.several for question in plan.served):
            return 1  # a collection is one partition
        key = (plan.entity, plan.base, _names(plan.served))
        if key not in self._shards:
            entity = self.subject.entities[plan.entity]
            table = self._table(TableProposal(self.label, self.home, (plan,)))
            self._shards[key] = shards_needed(
                table,
                table.entities[0],
                None,
                self._identities[plan.entity],
                former_shards(entity, plan.base.partition),
            )
        return self._shards[key]

    def crowded(self, plan: EntityProposal) -> bool:
        """Return whether a partition of the table may be too hot."""
        key = (plan.entity, plan.base, _names(plan.served))
        if key not in self._hot:
            table = self._table(TableProposal(self.label, self.home, (plan,)))
            told = note_unknown_heat(table, table.entities[0], None, self._identities[plan.entity])
            self._hot[key] = told is not None or self.base_shards(plan) > 1
        return self._hot[key]

    def plain(self, plan: EntityProposal) -> bool:
        """Return whether the attributes of the only entity can be the table's key."""
        if len(self.names) > 1 or self.style == "overloaded":
            return False
        if len(plan.base.partition) != 1 or len(plan.base.sorts) > 1:
            return False
        entity = self.subject.entities[plan.entity]
        return (
            all(fits_key_attribute(entity.field(name)) for name in plan.base.fields)
            and self.base_shards(plan) == 1
        )

    # Groups of blocks in one index.

    def group(self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...]) -> IndexGroup | None:
        """Return the cheapest index for some index keys; None if no index can hold them together."""
        key = tuple((plans[b.entity].base, b.entity, b.key.text, _names(b.questions)) for b in blocks)
        if key not in self._groups:
            self._groups[key] = self._group(plans, blocks)
        return self._groups[key]

    def _group(self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...]) -> IndexGroup | None:
        if len({block.entity for block in blocks}) < len(blocks) or len({b.local for b in blocks}) > 1:
            return None
        told: list[tuple[float, int, bool, int, IndexProposal]] = []
        for native in self._forms(plans, blocks):
            for rank, (projection, hydrated) in enumerate(self._projections(plans, blocks, native)):
                index = IndexProposal(blocks, projection, hydrated, native)
                if not native and not blocks[0].local:
                    index = self._sharded(plans, index)
                price = sum(self._added(plans[block.entity], index) for block in blocks)
                told.append((round(price / CENT) * CENT, len(hydrated), not native, rank, index))
        if not told:
            return None
        told.sort(key=lambda each: each[:4])
        best = told[0][4]
        price = sum(self._added(plans[block.entity], best) for block in blocks)
        return IndexGroup(best, price, tuple((index, cost) for cost, _, _, _, index in told[1:]))

    def _forms(self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...]) -> list[bool]:
        """Return how an index may be written: natively, or by templates."""
        native = self.style != "overloaded" and self._native(plans, blocks)
        if native:
            sharded = self._sharded(plans, IndexProposal(blocks, "ALL"))
            native = not sharded.shards
        made = all(
            fits_template(self.subject.entities[block.entity].field(name))
            for block in blocks
            for name in block.key.fields
        )
        if native:
            return [True, False] if made and self.style == "auto" else [True]
        return [False] if made else []

    def _native(self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...]) -> bool:
        """Tell whether an entity's own attributes can be an index's key, and no other entity has them all."""
        if len(blocks) != 1 or blocks[0].local:
            return False
        block = blocks[0]
        entity, key = self.subject.entities[block.entity], block.key
        most = MULTI_KEY_ATTRIBUTES_MAX
        if not 1 <= len(key.partition) <= most or len(key.sorts) > most or key.members or block.together:
            return False
        if not all(fits_key_attribute(entity.field(name)) for name in key.fields):
            return False
        if self.plain(plans[block.entity]) and key.fields == plans[block.entity].base.fields:
            return False
        own = {(found := entity.field(name)).attribute: found.tags for name in key.fields}
        if self.home is not None and self.home.settings.tag in own:
            return False
        for name in self.names:
            others = {found.attribute: found.tags for found in self.subject.entities[name].fields}
            if name != block.entity and own.keys() <= others.keys():
                return False  # its items would stand in the index as well
            if any(others.get(attribute, tags) != tags for attribute, tags in own.items()):
                return False  # its items could not be written: a key's attribute is of one type
        return True

    def _sharded(self, plans: dict[str, EntityProposal], index: IndexProposal) -> IndexProposal:
        shards = {}
        for block in index.blocks:
            if block.together:
                continue  # a collection is one partition
            count = self._block_shards(plans[block.entity], block, index)
            if count > 1:
                shards[block.entity] = count
        return IndexProposal(index.blocks, index.projection, index.hydrated, index.native, shards)

    def _block_shards(self, plan: EntityProposal, block: IndexKey, index: IndexProposal) -> int:
        entity = self.subject.entities[block.entity]
        own = {found.attribute for found in entity.fields}
        projected = index.projection
        if isinstance(projected, tuple):
            projected = tuple(name for name in projected if name in own) or "KEYS_ONLY"
        hydrated = frozenset(each for each in index.hydrated if each[0] == plan.entity)
        key = (block.entity, plan.base, block.key.text, _names(block.questions), projected, hydrated)
        if key not in self._shards:
            table = self.table(plan, (IndexProposal((block,), projected, hydrated),))
            self._shards[key] = shards_needed(
                table,
                table.entities[0],
                table.indexes[0],
                self._identities[block.entity],
                former_shards(entity, block.key.partition),
            )
        return self._shards[key]

    def _projections(
        self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...], native: bool
    ) -> Iterable[tuple[Projection, frozenset[tuple[str, str]]]]:
        """Give what an index may project, each with the questions that then fetch whole items."""
        questions = [(block.entity, question) for block in blocks for question in block.questions]
        fetching = [
            (name, question)
            for name, question in questions
            if question.wanted is None and not question.several and not question.consistent
        ]
        whole = any(question.wanted is None for _, question in questions)
        enough = self._attributes(plans, blocks, frozenset(), native) == ()  # keys are all there is
        if enough:
            yield "KEYS_ONLY", frozenset()
        if whole:
            yield "ALL", frozenset()
        apart = (
            chain.from_iterable(combinations(fetching, count) for count in range(len(fetching) + 1))
            if len(fetching) <= _HYDRATED_APART_MAX
            else iter(((), tuple(fetching)))
        )
        for told in apart:
            hydrated = frozenset((name, question.name) for name, question in told)
            if enough:
                break
            names = self._attributes(plans, blocks, hydrated, native)
            if names is None:
                continue
            if not names:
                yield "KEYS_ONLY", hydrated
            elif not self._everything(plans, blocks, names):
                yield names, hydrated
        if not whole:
            yield "ALL", frozenset()

    def _everything(
        self, plans: dict[str, EntityProposal], blocks: tuple[IndexKey, ...], names: tuple[str, ...]
    ) -> bool:
        """Tell whether attributes that are named and what keys tell are all that there is."""
        for block in blocks:
            told = {*block.key.fields, *plans[block.entity].base.fields}
            fields = self.subject.entities[block.entity].fields
            if not all(found.attribute in names or found.name in told for found in fields):
                return False
        return True

    def _held(self, plan: EntityProposal, block: IndexKey, native: bool) -> set[str]:
        """Return the attributes that an index holds as its own key or the table's."""
        entity = self.subject.entities[block.entity]
        held = {entity.field(name).attribute for name in block.key.fields} if native else set()
        if self.plain(plan):
            held |= {entity.field(name).attribute for name in plan.base.fields}
        return held

    def _attributes(
        self,
        plans: dict[str, EntityProposal],
        blocks: tuple[IndexKey, ...],
        hydrated: frozenset[tuple[str, str]],
        native: bool,
    ) -> tuple[str, ...] | None:
        """Return the attributes that must be projected, None if they are too many to be named."""
        needed: dict[str, bool] = {}  # and whether a key tells it too
        for block in blocks:
            entity, base = self.subject.entities[block.entity], plans[block.entity]
            held = self._held(base, block, native)
            told = {*block.key.fields, *base.base.fields}
            for question in block.questions:
                if (block.entity, question.name) in hydrated:
                    continue
                for attribute, name in self._wanted(entity, question):
                    if attribute not in held:
                        needed[attribute] = needed.get(attribute, True) and name in told
        if len(needed) > PROJECTED_ATTRIBUTES_MAX and len(blocks) == 1:
            needed = {name: False for name, known in needed.items() if not known}
        return None if len(needed) > PROJECTED_ATTRIBUTES_MAX else tuple(sorted(needed))

    def _wanted(self, entity: EntityDesign, question: SolverQuestion) -> Iterable[tuple[str, str]]:
        ttl = None if self.home is None else self.home.settings.ttl
        for found in entity.fields:
            if question.wanted is None or found.name in question.wanted or found.attribute == ttl:
                yield found.attribute, found.name
        if entity.version > 1:
            yield VERSION_ATTRIBUTE, ""

    # Packing.

    def pack(self, plans: Sequence[EntityProposal]) -> tuple[tuple[IndexGroup, ...], float] | None:
        """Return the indexes for some entities' index keys: the cheapest, and among those the fewest."""
        by_name = {plan.entity: plan for plan in plans}
        units = _forced([block for plan in plans for block in plan.blocks])
        counts = {plan.entity: len(plan.blocks) for plan in plans}
        units.sort(key=lambda unit: (-max(counts[block.entity] for block in unit), unit[0].entity))
        solo = []
        for unit in units:
            found = self.group(by_name, unit)
            if found is None:
                return None
            solo.append(found.price)
        search = _Packing(units, solo, lambda blocks: self.group(by_name, blocks), self._joins)
        groups = search.best
        if groups is None:
            return None
        return groups, sum(group.price for group in groups)

    def _joins(self, one: IndexGroup, unit: tuple[IndexKey, ...], solo: IndexGroup) -> bool:
        """Tell whether blocks may join an index: in the native style what can be native stays by itself."""
        return self.style != "native" or not (one.index.native or solo.index.native)


class _Packing:
    """The search: blocks one after the other, each into an index that has room, or into one of its own."""

    def __init__(
        self,
        units: list[tuple[IndexKey, ...]],
        solo: list[float],
        group: Callable[[tuple[IndexKey, ...]], IndexGroup | None],
        joins: Callable[[IndexGroup, tuple[IndexKey, ...], IndexGroup], bool],
    ) -> None:
        self.units, self.solo, self.group, self.joins = units, solo, group, joins
        self.rest = [sum(solo[at:]) for at in range(len(solo) + 1)]
        self.nodes = 0
        self._best: tuple[IndexGroup, ...] | None = None
        self._score: tuple[int, int, int] | None = None
        self._place(0, ())

    @cached_property
    def best(self) -> tuple[IndexGroup, ...] | None:
        return self._best

    def _place(self, at: int, groups: tuple[IndexGroup, ...]) -> None:
        self.nodes += 1
        spent = sum(group.price for group in groups)
        named = sum(len(g.index.projection) for g in groups if isinstance(g.index.projection, tuple))
        score = (round((spent + self.rest[at]) / CENT), len(groups), named)
        if self._score is not None and (score[:2] > self._score[:2] or self.nodes > _NODES_MAX):
            return
        if at == len(self.units):
            if named <= PROJECTED_ATTRIBUTES_TOTAL_MAX and (self._score is None or score < self._score):
                self._best, self._score = groups, score
            return
        unit = self.units[at]
        solo = self.group(unit)
        assert solo is not None
        ways = []
        for number, group in enumerate(groups):
            if not self.joins(group, unit, solo):
                continue
            found = self.group((*group.index.blocks, *unit))
            if found is not None:
                ways.append((round((found.price - group.price) / CENT), number, found))
        for _, number, found in sorted(ways, key=lambda way: way[:2]):
            self._place(at + 1, (*groups[:number], found, *groups[number + 1 :]))
        self._place(at + 1, (*groups, solo))


def _forced(blocks: list[IndexKey]) -> list[tuple[IndexKey, ...]]:
    """Return blocks together that a collection holds together."""
    units: list[tuple[IndexKey, ...]] = []
    for block in blocks:
        shared = {question.name for question in block.together}
        same = [unit for unit in units if shared & {q.name for other in unit for q in other.together}]
        units = [unit for unit in units if unit not in same] + [(*chain.from_iterable(same), block)]
    return units


def _names(questions: Iterable[SolverQuestion]) -> frozenset[str]:
    return frozenset(question.name for question in questions)
