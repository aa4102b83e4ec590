"""References: check that everything a design refers to exists.

For designs that are not compiled from classes: read from a document, or created by a tool. Classes are checked more
thoroughly when they are declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tavola.errors import TavolaError
from tavola.model.access import AccessPattern, WritePattern
from tavola.model.design import (
    CollectionDesign,
    Design,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    PatternDesign,
    SourceDesign,
    TableDesign,
)
from tavola.model.errors import DocumentRefused, ModelError
from tavola.model.needs import Need


def check_references(design: Design) -> None:
    """Refuse a design that refers to something that does not exist; the error has the JSON path of the reference."""
    _check_once("$.tables", (table.name for table in design.tables), "name")
    _check_namesakes(design)
    givable = {view.name for view in design.views}
    for position, view in enumerate(design.views):
        _check_fields(f"$.views[{position}]", view)
        if view.key is not None:
            raise DocumentRefused(f"$.views[{position}].key", "a view has no key; give the entity a table")
    for position, need in enumerate(design.needs):
        _check_need(f"$.needs[{position}]", need, design)
    everywhere = {entity.name for table in design.tables for entity in table.entities}
    for position, table in enumerate(design.tables):
        table_entities = {entity.name for entity in table.entities}
        _TableCheck(table, f"$.tables[{position}]", givable | table_entities, everywhere).check()


def _check_namesakes(design: Design) -> None:
    """Refuse entities of the same name in two tables: needs and consumers refer to entities by name alone."""
    homes: dict[str, TableDesign] = {}
    for position, table in enumerate(design.tables):
        for number, entity in enumerate(table.entities):
            first_table = homes.setdefault(entity.name, table)
            if first_table is not table:
                raise DocumentRefused(
                    f"$.tables[{position}].entities[{number}].name",
                    f"{first_table.label} has an entity {entity.name!r} too; rename one of them",
                )


def _check_need(path: str, need: Need, design: Design) -> None:
    known = {view.name: view for view in design.views}
    known |= {entity.name: entity for table in design.tables for entity in table.entities}
    names: set[str] = set()
    for position, name in enumerate(need.entities):
        if name not in known:
            known_names = ", ".join(sorted(known)) or "none"
            raise DocumentRefused(
                f"{path}.entities[{position}]", f"unknown entity {name!r}; the entities are {known_names}"
            )
        names |= {field.name for field in known[name].fields}
    places = [(f"where[{position}].field", condition.field) for position, condition in enumerate(need.where)]
    for place, name in (*places, *((f"order[{position}]", name) for position, name in enumerate(need.order))):
        if name not in names:
            raise DocumentRefused(
                f"{path}.{place}",
                f"{name!r} is not a field of the returned entity; the fields are {', '.join(sorted(names))}",
            )
    _check_amounts(f"{path}.access", need.access)


def _check_amounts(path: str, pattern: AccessPattern | WritePattern | None) -> None:
    if pattern is not None:
        try:
            pattern.check("it")
        except ModelError as error:
            raise DocumentRefused(path, error.problem) from error


def _check_once(path: str, names: Iterable[str], word: str) -> None:
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            raise DocumentRefused(f"{path}[{position}].{word}", f"{name!r} is taken by one before it")
        seen.add(name)


def _check_fields(path: str, entity: EntityDesign) -> None:
    _check_once(f"{path}.fields", (field.name for field in entity.fields), "name")
    _check_once(f"{path}.fields", (field.attribute for field in entity.fields), "attribute")
    for position, field in enumerate(entity.fields):
        try:
            _ = field.part
        except TavolaError as error:
            raise DocumentRefused(f"{path}.fields[{position}].key_kind", str(error)) from error


class _TableCheck:
    """The checks of one table of a document."""

    def __init__(self, table: TableDesign, path: str, givable: set[str], everywhere: set[str]) -> None:
        self.table = table
        self.path = path
        self.givable = givable
        self.everywhere = everywhere
        self.indexes = {index.name: index for index in table.indexes}

    def check(self) -> None:
        table = self.table
        _check_once(f"{self.path}.indexes", (index.name for index in table.indexes), "name")
        _check_once(f"{self.path}.entities", (entity.name for entity in table.entities), "name")
        _check_once(f"{self.path}.entities", (entity.tag for entity in table.entities), "tag")
        for attribute, place in self._key_attributes():
            if attribute not in table.key_types:
                raise DocumentRefused(f"{self.path}.key_types", f"{attribute!r} of {place} has no type in it")
        for position, entity in enumerate(table.entities):
            self._check_entity(entity, f"{self.path}.entities[{position}]")
        for position, consumer in enumerate(table.consumers):
            for number, name in enumerate(consumer.writes):
                if name not in self.everywhere:
                    raise DocumentRefused(
                        f"{self.path}.consumers[{position}].writes[{number}]",
                        f"the design has no entity {name!r}",
                    )
        for position, collection in enumerate(table.collections):
            self._check_collection(collection, f"{self.path}.collections[{position}]")

    def _key_attributes(self) -> Iterator[tuple[str, str]]:
        settings = self.table.settings
        for name in (settings.hash, settings.range):
            if name is not None:
                yield name, "the table's key"
        for index in self.table.indexes:
            for name in index.attributes:
                yield name, f"the index {index.name}"

    def _check_entity(self, entity: EntityDesign, path: str) -> None:
        _check_fields(path, entity)
        if entity.key is None or entity.primary is None:
            lacking = "key" if entity.key is None else "primary"
            raise DocumentRefused(f"{path}.{lacking}", "it is required: an entity with a table has a key")
        names = {field.name for field in entity.fields}
        self._check_key(entity, entity.key, f"{path}.key", names)
        for position, key in enumerate(entity.keys):
            self._check_key(entity, key, f"{path}.keys[{position}]", names)
        self._check_pattern(entity, entity.primary, f"{path}.primary", names)
        for position, pattern in enumerate(entity.patterns):
            self._check_pattern(entity, pattern, f"{path}.patterns[{position}]", names)
        _check_once(f"{path}.patterns", (pattern.name for pattern in entity.patterns), "name")
        for position, write in enumerate(entity.writes):
            _check_amounts(f"{path}.writes[{position}]", write)
            self._check_names(write.changes, f"{path}.writes[{position}].changes", names)
        for position, field in enumerate(entity.fields):
            self._check_names(field.within, f"{path}.fields[{position}].within", names)

    def _check_key(self, entity: EntityDesign, key: KeyDesign, path: str, names: set[str]) -> None:
        settings = self.table.settings
        if key.index is None:
            range_ = () if settings.range is None else (settings.range,)
            expected: tuple[tuple[str, ...], tuple[str, ...]] = ((settings.hash,), range_)
        else:
            index = self._index(key.index, path)
            expected = (index.hash, index.range)
        for word, sources, attributes in (("hash", key.hash, expected[0]), ("range", key.range, expected[1])):
            key_attributes = tuple(source.attribute for source in sources)
            if key_attributes != attributes:
                raise DocumentRefused(
                    f"{path}.{word}",
                    f"its attributes are {', '.join(key_attributes) or 'nothing'}, but the key's are "
                    f"{', '.join(attributes) or 'nothing'}",
                )
            for position, source in enumerate(sources):
                self._check_source(entity, source, f"{path}.{word}[{position}]", names)
        for position, member in enumerate(key.members):
            self._check_names((member.field,), f"{path}.members[{position}].field", names)
        if key.shards is not None:
            self._check_names(key.shards.of, f"{path}.shards.of", names)

    def _check_source(self, entity: EntityDesign, source: SourceDesign, path: str, names: set[str]) -> None:
        if (source.field is None) == (source.template is None):
            raise DocumentRefused(path, "it needs either a field or a template")
        self._check_names(source.fields, path, names)
        if source.tag != self.table.key_types[source.attribute]:
            raise DocumentRefused(
                member_path(path, "type"),
                f"{source.tag} is not the type that key_types has for {source.attribute!r}",
            )
        try:
            entity.bind_template(source)
        except TavolaError as error:
            raise DocumentRefused(member_path(path, "template"), str(error)) from error

    def _check_pattern(
        self, entity: EntityDesign, pattern: PatternDesign, path: str, names: set[str]
    ) -> None:
        _check_amounts(member_path(path, "access"), pattern.access)
        if pattern.index is not None:
            self._index(pattern.index, path)
        if entity.key_on(pattern.index) is None:
            raise DocumentRefused(
                member_path(path, "index"), f"{entity.name} has no key in {pattern.index}; add it to keys"
            )
        self._check_names(pattern.partition, member_path(path, "partition"), names)
        self._check_names(pattern.sorts, member_path(path, "sorts"), names)
        if pattern.result not in self.givable:
            raise DocumentRefused(member_path(path, "result"), f"unknown entity or view {pattern.result!r}")

    def _check_collection(self, collection: CollectionDesign, path: str) -> None:
        _check_amounts(member_path(path, "access"), collection.access)
        if collection.index is not None:
            self._index(collection.index, path)
        if set(collection.parts) != set(collection.partition.fields):
            raise DocumentRefused(
                member_path(path, "parts"), "they must be exactly the fields of the partition key"
            )
        entities = {entity.name for entity in self.table.entities}
        for position, member in enumerate(collection.members):
            if member.entity not in entities:
                raise DocumentRefused(
                    f"{path}.members[{position}].entity", f"this table has no entity {member.entity!r}"
                )

    def _index(self, name: str, path: str) -> IndexDesign:
        index = self.indexes.get(name)
        if index is None:
            known = ", ".join(self.indexes) or "none"
            raise DocumentRefused(
                member_path(path, "index"), f"unknown index {name!r}; the indexes are {known}"
            )
        return index

    def _check_names(self, used: Iterable[str], path: str, names: set[str]) -> None:
        for name in used:
            if name not in names:
                raise DocumentRefused(
                    path, f"{name!r} is not a field of the entity; the fields are {', '.join(sorted(names))}"
                )


def member_path(path: str, name: str) -> str:
    """Return the JSON path of a member."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"
