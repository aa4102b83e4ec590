"""Rule, and LintContext: the design under test with facts that several rules need.

A rule is a module in `rules`. Its docstring has the title, then the paragraphs Why, Example and Instead, which are also its
page in the reference. Its `find` takes a LintContext and yields defects. A LintContext computes each fact once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import cleandoc
from math import prod
from types import ModuleType
from typing import Any, TypeVar, cast

from tavola.design.access_paths import AccessPath, access_paths, key_parts
from tavola.design.cost.capacity import IndexEffect, index_effects
from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.naming import is_production
from tavola.design.lint.old_names import current_rule_name
from tavola.model.document import (
    CollectionDesign,
    Consumer,
    Design,
    EntityDesign,
    FieldDesign,
    Ignore,
    IndexDesign,
    KeyDesign,
    Need,
    PatternDesign,
    Route,
    TableDesign,
    WritePattern,
    needs_of,
)

T = TypeVar("T")

_PARAGRAPH = re.compile(r"^(Why|Example|Instead):\s*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of defect, and the function that finds it."""

    name: str
    severity: Severity  # the highest severity of its findings
    title: str
    why: str
    example: str
    remedy: str
    find: Callable[[LintContext], Iterator[Finding]]
    last: bool = False  # it runs after the others and judges their findings


def load_rule(module: ModuleType) -> Rule:
    """Return the rule that a module implements; its texts are the paragraphs of the module docstring."""
    code = cast(Any, module)

    name = module.__name__.rpartition(".")[2].replace("_", "-")

    def find(context: LintContext) -> Iterator[Finding]:
        for defect in code.find(context):
            severity = defect.severity or code.SEVERITY
            yield Finding(name, severity, defect.place, context.message_of(defect), defect.remedy)

    text = cleandoc(module.__doc__ or "")
    title, *rest = _PARAGRAPH.split(text)
    paragraphs: Mapping[str, str] = dict(zip(rest[::2], map(str.strip, rest[1::2]), strict=True))
    return Rule(
        name,
        code.SEVERITY,
        " ".join(title.split()),
        paragraphs["Why"],
        paragraphs["Example"],
        paragraphs["Instead"],
        find,
        getattr(module, "LAST", False),
    )


@dataclass(frozen=True, slots=True)
class Defect:
    """What a rule reports: where, what is wrong and what to do. `severity` replaces that of the rule."""

    place: DesignPath
    message: str
    remedy: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class RoutedNeed:
    """A need with the route by which the application reads it today."""

    need: Need
    route: Route
    table: TableDesign
    entity: EntityDesign
    index: IndexDesign | None  # None: the route uses the table, or an index that does not exist

    @property
    def index_exists(self) -> bool:
        """Whether the table or index that the route uses exists."""
        return self.route.index is None or self.index is not None

    @property
    def partition_attributes(self) -> tuple[str, ...]:
        """The partition key attributes of the table or index."""
        return (self.table.settings.hash,) if self.index is None else self.index.hash

    @property
    def sort_attributes(self) -> tuple[str, ...]:
        """The sort key attributes of the table or index."""
        if self.index is not None:
            return self.index.range
        return () if self.table.settings.range is None else (self.table.settings.range,)

    @property
    def target_name(self) -> str:
        """The table or index, for messages."""
        return "the table" if self.route.index is None else self.route.index


@dataclass(frozen=True)
class LintContext:
    """A design and facts about it that rules share. `production` applies the rules for real data."""

    design: Design
    production: bool = False
    findings: tuple[Finding, ...] = ()  # of the rules that ran before, for rules that run last
    rules: frozenset[str] = frozenset()  # names of the rules that run
    known: frozenset[str] = frozenset()  # names of all rules

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """Every read of the design as a need, without its key."""
        return needs_of(self.design)

    @cached_property
    def entities_by_name(self) -> Mapping[str, tuple[TableDesign, EntityDesign]]:
        """Each entity and its table, by entity name."""
        return {entity.name: (table, entity) for table in self.design.tables for entity in table.entities}

    @cached_property
    def unplaced_entities(self) -> frozenset[str]:
        """Names of entities without a table: views that no pattern returns."""
        given = {pattern.result for _, _, pattern in self.design.patterns()}
        return frozenset(view.name for view in self.design.views) - given - self.entities_by_name.keys()

    @cached_property
    def result_types(self) -> Mapping[str, EntityDesign]:
        """The entities and views that a pattern can return, by name."""
        return {view.name: view for view in self.design.views} | {
            name: entity for name, (_, entity) in self.entities_by_name.items()
        }

    @cached_property
    def needs_by_entity(self) -> Mapping[str, tuple[Need, ...]]:
        """The needs of each entity, by entity name."""
        found: dict[str, list[Need]] = {}
        for need in self.needs:
            for name in dict.fromkeys(need.entities):
                found.setdefault(name, []).append(need)
        return {name: tuple(needs) for name, needs in found.items()}

    @cached_property
    def routed_needs_by_entity(self) -> Mapping[str, tuple[Need, ...]]:
        """The needs that have a route, by entity name."""
        return {
            name: routed
            for name, needs in self.needs_by_entity.items()
            if (routed := tuple(need for need in needs if need.route is not None))
        }

    @cached_property
    def pattern_titles(self) -> frozenset[str]:
        """Titles of the patterns and collections; a need with one of these titles repeats the pattern."""
        titles = [
            pattern.access.title for _, _, pattern in self.design.patterns() if pattern.access is not None
        ]
        titles += [
            collection.name if collection.access is None else collection.access.title
            for table in self.design.tables
            for collection in table.collections
        ]
        return frozenset(titles)

    @cached_property
    def _access_paths(self) -> dict[int, tuple[Need, tuple[AccessPath, ...]]]:
        return {}  # by id(need), since hashing a need walks all of it; the need is kept so that its id stays taken

    @cached_property
    def _cache(self) -> dict[Hashable, Any]:
        return {}

    def compute_once(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return the cached value of a key, or compute it. Keys may contain the `id` of parts of the design."""
        if what not in self._cache:
            self._cache[what] = find()
        return cast(T, self._cache[what])

    def index_effects(
        self, table: TableDesign, entity: EntityDesign, write: WritePattern
    ) -> tuple[IndexEffect, ...]:
        """Return how a write changes the entries of its item in each index."""
        return self.compute_once(
            ("effects", id(table), id(entity), id(write)), lambda: index_effects(table, entity, write)
        )

    @cached_property
    def keys_by_index(self) -> Mapping[tuple[str, str | None], tuple[tuple[EntityDesign, KeyDesign], ...]]:
        """The keys of all entities, by table name and index."""
        found: dict[tuple[str, str | None], list[tuple[EntityDesign, KeyDesign]]] = {}
        for table, entity, key in self.all_keys():
            found.setdefault((table.name, key.index), []).append((entity, key))
        return {place: tuple(keys) for place, keys in found.items()}

    def as_production(self) -> LintContext:
        """Return a context with the production rules on, which shares the computed facts."""
        real = replace(self, production=True)
        real.__dict__.update(
            {name: known for name, known in self.__dict__.items() if name not in real.__dict__}
        )
        return real

    def all_entities(self) -> Iterator[tuple[TableDesign, EntityDesign]]:
        """Yield every entity with its table."""
        return ((table, entity) for table in self.design.tables for entity in table.entities)

    def all_keys(self) -> Iterator[tuple[TableDesign, EntityDesign, KeyDesign]]:
        """Yield every key of every entity, in the table and in indexes."""
        for table, entity in self.all_entities():
            for key in entity.all_keys:
                yield table, entity, key

    def all_writes(self) -> Iterator[tuple[TableDesign, EntityDesign, WritePattern]]:
        """Yield every write pattern."""
        return ((table, entity, write) for table, entity in self.all_entities() for write in entity.writes)

    def all_consumers(self) -> Iterator[tuple[TableDesign, Consumer]]:
        """Yield every stream consumer with its table."""
        return ((table, consumer) for table in self.design.tables for consumer in table.consumers)

    def production_tables_without(self, setting: str) -> Iterator[TableDesign]:
        """Yield the production tables that leave a setting off; a setting that an import does not know is not off."""
        for table in self.design.tables:
            off = not getattr(table.settings, setting) and setting not in table.settings.unknown
            if off and (self.production or is_production(table)):
                yield table

    def updates_of(self, entity: EntityDesign, field: str) -> tuple[WritePattern, ...]:
        """Return the updates of an entity that change a field."""
        return tuple(
            write
            for write in entity.writes
            if write.kind == "update" and field in (*write.changes, *write.adds)
        )

    def access_paths(self, need: Need) -> tuple[AccessPath, ...]:
        """Return how keys answer a need, the best first; empty if an entity is unknown.

        For a need of several entities, only keys on an index that all of them have, each as bad as its worst entity.
        """
        known = self._access_paths.get(id(need))
        if known is None:
            known = self._access_paths[id(need)] = (need, self._find_access_paths(need))
        return known[1]

    def _find_access_paths(self, need: Need) -> tuple[AccessPath, ...]:
        found: tuple[AccessPath, ...] | None = None
        for name in need.entities:
            home = self.entities_by_name.get(name)
            if home is None:
                return ()
            here = access_paths(*home, need)
            if found is None:
                found = here
                continue
            by_key = {(serving.table.name, serving.key.index): serving for serving in here}
            both = [
                max(serving, by_key[serving.table.name, serving.key.index], key=lambda each: each.rank)
                for serving in found
                if (serving.table.name, serving.key.index) in by_key
            ]
            found = tuple(sorted(both, key=lambda serving: serving.rank))
        return found or ()

    def count_partitions(self, table: TableDesign, entity: EntityDesign, key: KeyDesign) -> int | None:
        """Return the number of distinct partition key values, shards aside; None if the design does not say.

        It is at most the number of items, and equal to it if the partition key identifies an item. A field limited to
        members has as many values as members; a field that identifies another entity, as many as that has items.
        """
        found = key_parts(key.hash)
        if entity.items is not None and key.index is None and found and not key_parts(key.range):
            return entity.items
        counts: list[int] = []
        for slot in found:
            values = self._count_values(table, entity, key, slot.field)
            if values is None:
                return None
            counts.append(values)
        return prod(counts) if entity.items is None else max(1, min(prod(counts), entity.items))

    def _count_values(
        self, table: TableDesign, entity: EntityDesign, key: KeyDesign, name: str
    ) -> int | None:
        declared = entity.field(name).values
        member = next((each for each in key.members if each.field == name), None)
        if member is not None:
            return len([value for value in member.values if value is not None]) or 1
        return self._identifier_counts.get((table.name, name)) if declared is None else declared

    @cached_property
    def _identifier_counts(self) -> Mapping[tuple[str, str], int]:
        """Number of values of fields that alone identify an entity, by table and field name."""
        found: dict[tuple[str, str], int] = {}
        for table, entity in self.all_entities():
            own = entity.key
            if own is None or entity.items is None or key_parts(own.range):
                continue
            names = sorted({slot.field for slot in key_parts(own.hash)})
            if len(names) == 1:
                found.setdefault((table.name, names[0]), entity.items)
        return found

    def reader_titles(self, table: TableDesign, index: str | None) -> tuple[str, ...]:
        """Return the titles of the reads on an index, or on the table itself."""
        return self._reader_titles.get((table.name, index), ())

    @cached_property
    def _reader_titles(self) -> Mapping[tuple[str, str | None], tuple[str, ...]]:
        titles_by_index: dict[tuple[str, str | None], list[str]] = {}
        for table in self.design.tables:
            for entity in table.entities:
                for pattern in entity.all_patterns:
                    title = pattern.access.title if pattern.access else f"{entity.name}.{pattern.name}"
                    titles_by_index.setdefault((table.name, pattern.index), []).append(title)
            for found in table.collections:
                title = found.access.title if found.access else found.name
                titles_by_index.setdefault((table.name, found.index), []).append(title)
        for need in self.design.needs:
            home = self.entities_by_name.get(need.entities[0])
            if home is None:
                continue
            if need.route is not None:
                titles_by_index.setdefault((home[0].name, need.route.index), []).append(need.title)
                continue
            best = next(iter(self.access_paths(need)), None)
            if best is not None and best.operation != "scan":
                titles_by_index.setdefault((home[0].name, best.key.index), []).append(need.title)
        return {place: tuple(titles) for place, titles in titles_by_index.items()}

    # Places of findings.

    def table_place(self, table: TableDesign) -> DesignPath:
        """Return the place of a table."""
        return DesignPath("table", table.name, table.label or table.name)

    def index_place(self, table: TableDesign, index: str | None) -> DesignPath:
        """Return the place of an index, given its name in DynamoDB; None: the table itself."""
        if index is None:
            return self.table_place(table)
        label = next((each.label for each in table.indexes if each.name == index), index)
        return DesignPath("index", table.name, f"{table.label}.{label}")

    def entity_place(self, table: TableDesign, entity: EntityDesign) -> DesignPath:
        """Return the place of an entity."""
        return DesignPath("entity", table.name, entity.name)

    def key_place(self, table: TableDesign, entity: EntityDesign, key: KeyDesign) -> DesignPath:
        """Return the place of a key: the first pattern that uses it, else the entity."""
        for pattern in entity.all_patterns:
            if pattern.index == key.index:
                return self.pattern_place(table, entity, pattern)
        return self.entity_place(table, entity)

    def pattern_place(self, table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> DesignPath:
        """Return the place of a key or query class."""
        return DesignPath("pattern", table.name, f"{entity.name}.{pattern.name}")

    def field_place(self, table: TableDesign, entity: EntityDesign, field: FieldDesign | str) -> DesignPath:
        """Return the place of a field."""
        name = field if isinstance(field, str) else field.name
        return DesignPath("field", table.name, f"{entity.name}.{name}")

    def write_place(self, table: TableDesign, entity: EntityDesign, write: WritePattern) -> DesignPath:
        """Return the place of a write pattern."""
        return DesignPath("write", table.name, f"{entity.name}: {write.title}")

    def collection_place(self, table: TableDesign, collection: CollectionDesign) -> DesignPath:
        """Return the place of a collection."""
        return DesignPath("collection", table.name, collection.name)

    def consumer_place(self, table: TableDesign, consumer: Consumer) -> DesignPath:
        """Return the place of a stream consumer."""
        return DesignPath("consumer", table.name, consumer.name)

    def need_place(self, need: Need) -> DesignPath:
        """Return the place of a need."""
        home = self.entities_by_name.get(need.entities[0]) if need.entities else None
        return DesignPath("need", home[0].name if home else "", need.name)

    def message_of(self, defect: Defect) -> str:
        """Return the message of a defect; for a need, with the need's title if that differs from its name."""
        title = self._need_titles.get(defect.place.name) if defect.place.kind == "need" else None
        return defect.message if title is None else f"“{title}”: {defect.message}"

    @cached_property
    def _need_titles(self) -> Mapping[str, str]:
        return {need.name: need.title for need in self.design.needs if need.title != need.name}

    def parse_place(self, name: str) -> DesignPath:
        """Return the place with a name as an `Ignore` writes it: a table, an index, an entity or a part of one."""
        head, _, rest = name.replace(": ", ".", 1).partition(".")
        for table in self.design.tables:
            if head == table.label:
                return DesignPath("index" if rest else "table", table.name, name)
        home = self.entities_by_name.get(head)
        if home is None:
            return DesignPath("design", "", name)
        table, entity = home
        if not rest:
            return DesignPath("entity", table.name, name)
        if ": " in name:
            return DesignPath("write", table.name, name)
        field = any(each.name == rest for each in entity.fields)
        return DesignPath("field" if field else "pattern", table.name, name)

    def routed_needs(self) -> Iterator[RoutedNeed]:
        """Yield the needs that have a route, with the table and index of the route."""
        for need in self.design.needs:
            home = self.entities_by_name.get(need.entities[0])
            if need.route is not None and home is not None:
                yield RoutedNeed(need, need.route, *home, self.find_index(home[0], need.route.index))

    def routed_queries(self) -> Iterator[RoutedNeed]:
        """Yield the needs that query a table or an index that exists."""
        return (each for each in self.routed_needs() if each.route.operation == "query" and each.index_exists)

    def best_paths(self) -> Iterator[tuple[Need, AccessPath, tuple[AccessPath, ...]]]:
        """Yield the needs without a route, each with the best way to serve it and all ways."""
        for need in self.design.needs:
            if need.route is None and (paths := self.access_paths(need)):
                yield need, paths[0], paths

    def find_index(self, table: TableDesign, name: str | None) -> IndexDesign | None:
        """Return an index by its name in DynamoDB; None if the table has no such index."""
        return next((index for index in table.indexes if index.name == name), None)


def suppresses(ignore: Ignore, finding: Finding) -> bool:
    """Return whether an ignore suppresses a finding: it names the rule, and the place or what contains it."""
    place = finding.place
    inside = ignore.place in (place.name, "*") or place.name.startswith(
        (f"{ignore.place}.", f"{ignore.place}:")
    )
    return current_rule_name(ignore.rule) == finding.rule and inside
