"""References: that everything a design names is there.

For designs that no compiler of ours has seen: read from a document, or made by a tool. Classes are checked where
they are declared, and more is checked there.
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
    """Refuse a design in which something names what is not there, with the JSON path of the name."""
    _check_once("$.tables", (table.name for table in design.tables), "name")
    _check_namesakes(design)
    givable = {view.name for view in design.views}
    for at, view in enumerate(design.views):
        _check_fields(f"$.views[{at}]", view)
        if view.key is not None:
            raise DocumentRefused(f"$.views[{at}].key", "a view has none; put the entity into its table")
    for at, need in enumerate(design.needs):
        _check_need(f"$.needs[{at}]", need, design)
    everywhere = {entity.name for table in design.tables for entity in table.entities}
    for at, table in enumerate(design.tables):
        own = {entity.name for entity in table.entities}
        _TableCheck(table, f"$.tables[{at}]", givable | own, everywhere).check()


def _check_namesakes(design: Design) -> None:
    """Refuse an entity whose name one of another table has: needs and consumers name it by that alone."""
    homes: dict[str, TableDesign] = {}
    for at, table in enumerate(design.tables):
        for number, entity in enumerate(table.entities):
            home = homes.setdefault(entity.name, table)
            if home is not table:
                raise DocumentRefused(
                    f"$.tables[{at}].entities[{number}].name",
                    f"{home.label} has an entity {entity.name!r} too; give one of them another name",
                )


def _check_need(path: str, need: Need, design: Design) -> None:
    known = {found.name: found for found in design.views}
    known |= {found.name: found for table in design.tables for found in table.entities}
    names: set[str] = set()
    for at, name in enumerate(need.entities):
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise DocumentRefused(f"{path}.entities[{at}]", f"there is no entity {name!r}; there are {there}")
        names |= {found.name for found in known[name].fields}
    told = [(f"where[{at}].field", given.field) for at, given in enumerate(need.where)]
    for place, name in (*told, *((f"order[{at}]", name) for at, name in enumerate(need.order))):
        if name not in names:
            raise DocumentRefused(
                f"{path}.{place}",
                f"{name!r} is no field of what it gives; there are {', '.join(sorted(names))}",
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
    for at, name in enumerate(names):
        if name in seen:
            raise DocumentRefused(f"{path}[{at}].{word}", f"{name!r} is taken by one before it")
        seen.add(name)


def _check_fields(path: str, entity: EntityDesign) -> None:
    _check_once(f"{path}.fields", (found.name for found in entity.fields), "name")
    _check_once(f"{path}.fields", (found.attribute for found in entity.fields), "attribute")
    for at, found in enumerate(entity.fields):
        try:
            _ = found.part
        except TavolaError as error:
            raise DocumentRefused(f"{path}.fields[{at}].key_kind", str(error)) from error


class _TableCheck:
    """One table of a document, held against itself."""

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
        for at, entity in enumerate(table.entities):
            self._check_entity(entity, f"{self.path}.entities[{at}]")
        for at, consumer in enumerate(table.consumers):
            for each, name in enumerate(consumer.writes):
                if name not in self.everywhere:
                    raise DocumentRefused(
                        f"{self.path}.consumers[{at}].writes[{each}]",
                        f"there is no entity {name!r} in the design",
                    )
        for at, collection in enumerate(table.collections):
            self._check_collection(collection, f"{self.path}.collections[{at}]")

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
            raise DocumentRefused(f"{path}.{lacking}", "it is missing; what lives in a table has a key")
        names = {found.name for found in entity.fields}
        self._check_key(entity, entity.key, f"{path}.key", names)
        for at, key in enumerate(entity.keys):
            self._check_key(entity, key, f"{path}.keys[{at}]", names)
        self._check_pattern(entity, entity.primary, f"{path}.primary", names)
        for at, pattern in enumerate(entity.patterns):
            self._check_pattern(entity, pattern, f"{path}.patterns[{at}]", names)
        _check_once(f"{path}.patterns", (pattern.name for pattern in entity.patterns), "name")
        for at, write in enumerate(entity.writes):
            _check_amounts(f"{path}.writes[{at}]", write)
            self._check_names(write.changes, f"{path}.writes[{at}].changes", names)
        for at, found in enumerate(entity.fields):
            self._check_names(found.within, f"{path}.fields[{at}].within", names)

    def _check_key(self, entity: EntityDesign, key: KeyDesign, path: str, names: set[str]) -> None:
        settings = self.table.settings
        if key.index is None:
            range_ = () if settings.range is None else (settings.range,)
            expected: tuple[tuple[str, ...], tuple[str, ...]] = ((settings.hash,), range_)
        else:
            index = self._index(key.index, path)
            expected = (index.hash, index.range)
        for word, sources, attributes in (("hash", key.hash, expected[0]), ("range", key.range, expected[1])):
            told = tuple(source.attribute for source in sources)
            if told != attributes:
                raise DocumentRefused(
                    f"{path}.{word}",
                    f"it is of {', '.join(told) or 'nothing'}, not of {', '.join(attributes) or 'nothing'}",
                )
            for at, source in enumerate(sources):
                self._check_source(entity, source, f"{path}.{word}[{at}]", names)
        for at, member in enumerate(key.members):
            self._check_names((member.field,), f"{path}.members[{at}].field", names)
        if key.shards is not None:
            self._check_names(key.shards.of, f"{path}.shards.of", names)

    def _check_source(self, entity: EntityDesign, source: SourceDesign, path: str, names: set[str]) -> None:
        if (source.field is None) == (source.template is None):
            raise DocumentRefused(path, "it is made by a field or by a template; give one of them")
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
            raise DocumentRefused(
                member_path(path, "result"), f"there is no entity or view {pattern.result!r}"
            )

    def _check_collection(self, collection: CollectionDesign, path: str) -> None:
        _check_amounts(member_path(path, "access"), collection.access)
        if collection.index is not None:
            self._index(collection.index, path)
        if set(collection.parts) != set(collection.partition.fields):
            raise DocumentRefused(
                member_path(path, "parts"), "they are the fields of the partition, just these"
            )
        entities = {entity.name for entity in self.table.entities}
        for at, member in enumerate(collection.members):
            if member.entity not in entities:
                raise DocumentRefused(
                    f"{path}.members[{at}].entity", f"there is no entity {member.entity!r} here"
                )

    def _index(self, name: str, path: str) -> IndexDesign:
        found = self.indexes.get(name)
        if found is None:
            known = ", ".join(self.indexes) or "none"
            raise DocumentRefused(
                member_path(path, "index"), f"there is no index {name!r}; there are {known}"
            )
        return found

    def _check_names(self, used: Iterable[str], path: str, names: set[str]) -> None:
        for name in used:
            if name not in names:
                raise DocumentRefused(
                    path, f"{name!r} is no field of the entity; it has {', '.join(sorted(names))}"
                )


def member_path(path: str, name: str) -> str:
    """Return the JSON path of a member."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"
