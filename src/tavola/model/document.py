"""Document: a whole design ⇄ JSON.

Written by `design_document`, read back by `read_document` to the very same `Design`. Order is that of declaration
and what is meant anyway is left out, so that two designs can be compared line by line. A reader trusts nothing:
whatever names something that is not there is refused with its JSON path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tavola.errors import TavolaError
from tavola.model.access import AccessPattern, WritePattern
from tavola.model.design import (
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Membership,
    PatternDesign,
    SourceDesign,
    TableDesign,
)
from tavola.model.errors import DocumentRefused
from tavola.model.forms import (
    DELIMITER,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Choices,
    Entry,
    Form,
    Many,
    Maybe,
    Named,
    OneOf,
    Projected,
    Stored,
    Templated,
    below,
    shown,
)
from tavola.model.survey import Declaration, design_of
from tavola.model.tables import Shards, TableSettings
from tavola.values import TAGS

FORMAT = "tavola-design"
VERSION = 1

_TEXTS = Many(TEXT)
_KEY_TAG = OneOf(("S", "N", "B"))

ACCESS = Form(
    AccessPattern,
    (
        Entry("title", TEXT),
        Entry("per_second", Maybe(NUMBER), None),
        Entry("peak_per_second", Maybe(NUMBER), None),
        Entry("items", Maybe(WHOLE), None),
        Entry("item_bytes", Maybe(WHOLE), None),
        Entry("consistent", FLAG, default=False),
    ),
)
WRITE = Form(
    WritePattern,
    (
        Entry("title", TEXT),
        Entry("kind", OneOf(("put", "update", "delete"))),
        Entry("changes", _TEXTS, ()),
        Entry("per_second", Maybe(NUMBER), None),
        Entry("peak_per_second", Maybe(NUMBER), None),
        Entry("item_bytes", Maybe(WHOLE), None),
        Entry("transactional", FLAG, default=False),
    ),
)
FIELD = Form(
    FieldDesign,
    (
        Entry("name", TEXT),
        Entry("attribute", TEXT),
        Entry("type", TEXT),
        Entry("tags", Many(OneOf(TAGS))),
        Entry("required", FLAG, default=True),
        Entry("nullable", FLAG, default=False),
        Entry("key_kind", Maybe(TEXT), None),
        Entry("choices", Maybe(Many(Choices())), None),
        Entry("lock", FLAG, default=False),
        Entry("unique", FLAG, default=False),
        Entry("within", _TEXTS, ()),
        Entry("description", TEXT, ""),
    ),
)
SHARDS = Form(
    Shards,
    (
        Entry("count", WHOLE),
        Entry("by", OneOf(("hash", "random", "time")), "hash"),
        Entry("of", _TEXTS, ()),
        Entry("reading", Maybe(WHOLE), None),
        Entry("bucket", TEXT, ""),
    ),
)
SOURCE = Form(
    SourceDesign,
    (
        Entry("attribute", TEXT),
        Entry("type", _KEY_TAG, attribute="tag"),
        Entry("field", Maybe(TEXT), None),
        Entry("template", Maybe(Templated()), None),
    ),
)
MEMBERSHIP = Form(Membership, (Entry("field", TEXT), Entry("values", Many(Maybe(Stored())))))
KEY = Form(
    KeyDesign,
    (
        Entry("index", Maybe(TEXT), None),
        Entry("hash", Many(SOURCE)),
        Entry("range", Many(SOURCE), ()),
        Entry("sparse", FLAG, default=False),
        Entry("members", Many(MEMBERSHIP), ()),
        Entry("shards", Maybe(SHARDS), None),
    ),
)
PATTERN = Form(
    PatternDesign,
    (
        Entry("name", TEXT),
        Entry("index", Maybe(TEXT), None),
        Entry("partition", _TEXTS),
        Entry("sorts", _TEXTS, ()),
        Entry("result", TEXT),
        Entry("hydrate", FLAG, default=False),
        Entry("access", Maybe(ACCESS), None),
    ),
)
ENTITY = Form(
    EntityDesign,
    (
        Entry("name", TEXT),
        Entry("tag", TEXT),
        Entry("description", TEXT, ""),
        Entry("version", WHOLE, 1),
        Entry("stale", OneOf(("read", "refuse")), "read"),
        Entry("fields", Many(FIELD)),
        Entry("key", Maybe(KEY), None),
        Entry("keys", Many(KEY), ()),
        Entry("primary", Maybe(PATTERN), None),
        Entry("patterns", Many(PATTERN), ()),
        Entry("writes", Many(WRITE), ()),
    ),
)
INDEX = Form(
    IndexDesign,
    (
        Entry("name", TEXT),
        Entry("label", TEXT),
        Entry("local", FLAG, default=False),
        Entry("hash", _TEXTS),
        Entry("range", _TEXTS, ()),
        Entry("projection", Projected(), "ALL", always=True),
        Entry("native", FLAG, default=False),
    ),
)
MEMBER = Form(MemberDesign, (Entry("name", TEXT), Entry("entity", TEXT), Entry("many", FLAG)))
COLLECTION = Form(
    CollectionDesign,
    (
        Entry("name", TEXT),
        Entry("description", TEXT, ""),
        Entry("index", Maybe(TEXT), None),
        Entry("partition", Templated()),
        Entry("prefix", TEXT, ""),
        Entry("parts", _TEXTS, ()),
        Entry("members", Many(MEMBER)),
        Entry("access", Maybe(ACCESS), None),
    ),
)
SETTINGS = Form(
    TableSettings,
    (
        Entry("name", TEXT),
        Entry("hash", TEXT),
        Entry("range", Maybe(TEXT), None, always=True),
        Entry("ttl", Maybe(TEXT), None, always=True),
        Entry("tag", Maybe(TEXT), None, always=True),
        Entry("delimiter", TEXT, DELIMITER, always=True),
        Entry(
            "stream",
            Maybe(OneOf(("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"))),
            None,
            always=True,
        ),
        Entry("recovery", FLAG, default=False, always=True),
        Entry("recovery_days", WHOLE, 35, always=True),
        Entry("encryption", Maybe(TEXT), None, always=True),
        Entry("table_class", OneOf(("STANDARD", "STANDARD_INFREQUENT_ACCESS")), "STANDARD", always=True),
        Entry("deletion_protection", FLAG, default=False, always=True),
        Entry("read_units", Maybe(WHOLE), None, always=True),
        Entry("write_units", Maybe(WHOLE), None, always=True),
        Entry("tags", Named(TEXT), {}, always=True),
    ),
)
TABLE = Form(
    TableDesign,
    (
        Entry("label", TEXT),
        Entry("description", TEXT, ""),
        Entry("settings", SETTINGS),
        Entry("key_types", Named(_KEY_TAG)),
        Entry("indexes", Many(INDEX), (), always=True),
        Entry("entities", Many(ENTITY), (), always=True),
        Entry("collections", Many(COLLECTION), ()),
    ),
)
DESIGN = Form(
    lambda format, version, **told: Design(**told),
    (
        Entry("format", OneOf((FORMAT,))),
        Entry("version", WHOLE),
        Entry("tables", Many(TABLE)),
        Entry("views", Many(ENTITY), ()),
    ),
)


def design_document(*declarations: Declaration) -> dict[str, Any]:
    """Return the design of tables, or of modules that declare them, as a JSON document."""
    return write_document(design_of(*declarations))


def write_document(design: Design) -> dict[str, Any]:
    """Return a design as a JSON document, made of dicts, lists, text, numbers, booleans and None alone."""
    told = {"format": FORMAT, "version": VERSION, "tables": design.tables, "views": design.views}
    document: dict[str, Any] = DESIGN.write(told)
    return document


def read_document(document: Mapping[str, Any]) -> Design:
    """Return the design that a JSON document describes; refuse one that is wrong, with its path."""
    if not isinstance(document, dict):
        raise DocumentRefused("$", f"{shown(document)} is no document of a design, which is an object")
    version = document.get("version")
    if document.get("format") == FORMAT and type(version) is int and version > VERSION:
        raise DocumentRefused(
            "$.version",
            f"{version} is newer than this Tavola, which reads {VERSION}; update Tavola to read it",
        )
    design: Design = DESIGN.read(document, "$")
    if version != VERSION:
        raise DocumentRefused("$.version", f"{version} is no version; the first is 1")
    _check(design)
    return design


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document, for editors and for tools in other languages."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Tavola design",
        **DESIGN.schema(),
    }


def _check(design: Design) -> None:
    """Refuse a design in which something names what is not there."""
    _check_once("$.tables", (table.name for table in design.tables), "name")
    givable = {view.name for view in design.views}
    for at, view in enumerate(design.views):
        _check_fields(f"$.views[{at}]", view)
        if view.key is not None:
            raise DocumentRefused(f"$.views[{at}].key", "a view has none; put the entity into its table")
    for at, table in enumerate(design.tables):
        _TableCheck(table, f"$.tables[{at}]", givable | {entity.name for entity in table.entities}).check()


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

    def __init__(self, table: TableDesign, path: str, givable: set[str]) -> None:
        self.table = table
        self.path = path
        self.givable = givable
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
            self._check_names(write.changes, f"{path}.writes[{at}].changes", names)
        for at, found in enumerate(entity.fields):
            self._check_names(found.within, f"{path}.fields[{at}].within", names)

    def _check_key(self, entity: EntityDesign, key: KeyDesign, path: str, names: set[str]) -> None:
        settings = self.table.settings
        if key.index is None:
            wanted = ((settings.hash,), () if settings.range is None else (settings.range,))
        else:
            index = self._index(key.index, path)
            wanted = (index.hash, index.range)
        for word, sources, attributes in (("hash", key.hash, wanted[0]), ("range", key.range, wanted[1])):
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
                below(path, "type"),
                f"{source.tag} is not the type that key_types has for {source.attribute!r}",
            )
        try:
            entity.bound(source)
        except TavolaError as error:
            raise DocumentRefused(below(path, "template"), str(error)) from error

    def _check_pattern(
        self, entity: EntityDesign, pattern: PatternDesign, path: str, names: set[str]
    ) -> None:
        if pattern.index is not None:
            self._index(pattern.index, path)
        if entity.key_on(pattern.index) is None:
            raise DocumentRefused(
                below(path, "index"), f"{entity.name} has no key in {pattern.index}; add it to keys"
            )
        self._check_names(pattern.partition, below(path, "partition"), names)
        self._check_names(pattern.sorts, below(path, "sorts"), names)
        if pattern.result not in self.givable:
            raise DocumentRefused(below(path, "result"), f"there is no entity or view {pattern.result!r}")

    def _check_collection(self, collection: CollectionDesign, path: str) -> None:
        if collection.index is not None:
            self._index(collection.index, path)
        if set(collection.parts) != set(collection.partition.fields):
            raise DocumentRefused(below(path, "parts"), "they are the fields of the partition, just these")
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
            raise DocumentRefused(below(path, "index"), f"there is no index {name!r}; there are {known}")
        return found

    def _check_names(self, told: Iterable[str], path: str, names: set[str]) -> None:
        for name in told:
            if name not in names:
                raise DocumentRefused(
                    path, f"{name!r} is no field of the entity; it has {', '.join(sorted(names))}"
                )
