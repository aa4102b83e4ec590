"""Recognise which entity an item is, and parse its keys.

By the design's tag, then by its key templates. Without either, the key's first word gives a guess that is reported as one.
Everything is compiled once per table, so a page of a thousand items takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tavola.errors import TavolaError
from tavola.model import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE
from tavola.model.document import EntityDesign, KeyDesign, SourceDesign, TableDesign
from tavola.studio.key_text import (
    KeyPiece,
    KeyReader,
    field_reader,
    guessed_pieces,
    leading_word,
    loose_reader,
    strict_reader,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout, parse_layout
from tavola.studio.types import AttributeValue, Item

Kind = Literal["entity", "guard", "marker", "guess", "unknown"]

TableKeys = Mapping[str | None, tuple[str, ...]]
"""The key attributes of a table (under None) and of each of its indexes, partition key first."""

_TAGS = ("_entity", "entity_type", "EntityType", "entityType", "__typename", "_type", "_et")


@dataclass(frozen=True, slots=True)
class KeyReading:
    """One key attribute of an item, split into pieces."""

    attribute: str
    pieces: tuple[KeyPiece, ...]


@dataclass(frozen=True, slots=True)
class RecognisedItem:
    """What an item is; `note` gives the reason if it is not clearly an entity of the design."""

    entity: str | None
    kind: Kind
    note: str = ""


@dataclass(frozen=True, slots=True)
class _KeySource:
    """The source of a key attribute: a template, or a field stored as is."""

    attribute: str
    templated: bool
    reader: KeyReader
    weight: int  # number of literal characters

    def pieces(self, value: AttributeValue) -> tuple[KeyPiece, ...] | None:
        """Return the pieces of a value; None if it does not match the template."""
        if not self.templated:
            return self.reader.pieces(value_text(value))
        text = value.get("S")
        return None if text is None else self.reader.pieces(text)


@dataclass(frozen=True, slots=True)
class _KnownEntity:
    recognised: RecognisedItem
    sources_by_index: Mapping[str | None, tuple[_KeySource, ...]]

    def fits(self, item: Item) -> bool:
        """Return whether an item's key matches the entity's templates."""
        for source in self.sources_by_index[None]:
            value = item.get(source.attribute)
            if value is None or source.pieces(value) is None:
                return False
        return True


class Recogniser:
    """Recognises the items of one table."""

    def __init__(self, keys: TableKeys, design: TableDesign | None = None) -> None:
        self.keys = keys
        self.design = design
        entities = () if design is None else design.entities
        compiled = [
            (entity, _compile_entity(entity, design is not None and design.foreign)) for entity in entities
        ]
        self._by_tag = {entity.tag: matcher for entity, matcher in compiled}
        # Templates with more literal text come first: a match with them is more likely to be right.
        self._entities = sorted((matcher for _, matcher in compiled), key=_weight, reverse=True)
        self._by_name = {entity.name: matcher for entity, matcher in compiled}
        self._tag = None if design is None else design.settings.tag
        ttl = None if design is None else design.settings.ttl
        bare = {name for names in keys.values() for name in names}
        self._bare = bare | {name for name in (self._tag, ttl) if name is not None}

    def recognise(self, item: Item) -> RecognisedItem:
        """Return what an item or index entry is."""
        if UNIQUE_ATTRIBUTE in item and OWNER_ATTRIBUTE in item:
            return self._guard(item)
        if self._tag is not None and (tag_value := item.get(self._tag)) is not None:
            tag = str(tag_value.get("S", ""))
            known = self._by_tag.get(tag)
            if known is not None:
                return known.recognised
            if tag == UNIQUE:  # an entry of an index that does not project the guarded value
                return RecognisedItem(None, "guard", "Reserves a unique value.")
            if tag:
                return RecognisedItem(tag, "guess", f"From {self._tag}; the design has no such entity.")
        for entity in self._entities:
            if entity.fits(item):
                return entity.recognised
        return self._unknown(item)

    def parse_keys(
        self, item: Item, index: str | None = None, recognised: RecognisedItem | None = None
    ) -> tuple[KeyReading, ...]:
        """Return an item's keys split into pieces: the index's, if one is given, then the table's.

        `recognised` saves recognising the item again.
        """
        entity = self._by_name.get((recognised or self.recognise(item)).entity or "")
        readings = [] if index is None else self._readings(entity, item, index)
        taken = {reading.attribute for reading in readings}
        readings += [
            reading for reading in self._readings(entity, item, None) if reading.attribute not in taken
        ]
        return tuple(readings)

    def read_all(self, item: Item) -> Mapping[str, tuple[KeyReading, ...]]:
        """Return an item's keys in the table (under "") and in each index that contains it, split into pieces."""
        entity = self._by_name.get(self.recognise(item).entity or "")
        return {
            index or "": tuple(self._readings(entity, item, index))
            for index, names in self.keys.items()
            if all(name in item for name in names)
        }

    def key_readers(
        self, entity: str | None, index: str | None = None
    ) -> tuple[tuple[str, KeyReader | None], ...]:
        """Return a reader for each key attribute: the index's first, then the table's; None: only a guess is possible."""
        known_entity = self._by_name.get(entity or "")
        readers: dict[str, KeyReader | None] = {}
        for target in (index, None):
            sources = () if known_entity is None else known_entity.sources_by_index.get(target, ())
            known = {source.attribute: source.reader for source in sources}
            for name in self.keys[target]:
                readers.setdefault(name, known.get(name))
        return tuple(readers.items())

    def can_make(self, entity: str, index: str | None, values: Item) -> bool:
        """Return whether an entity's templates match these key values, in the table or an index."""
        known_entity = self._by_name.get(entity)
        sources = () if known_entity is None else known_entity.sources_by_index.get(index, ())
        relevant = [source for source in sources if source.attribute in values]
        return bool(relevant) and all(
            source.pieces(values[source.attribute]) is not None for source in relevant
        )

    def _readings(self, entity: _KnownEntity | None, item: Item, index: str | None) -> list[KeyReading]:
        sources = () if entity is None else entity.sources_by_index.get(index, ())
        known = {source.attribute: source for source in sources}
        readings = []
        for name in self.keys[index]:
            value = item.get(name)
            if value is None:
                continue
            source = known.get(name)
            pieces = None if source is None else source.pieces(value)
            readings.append(
                KeyReading(name, guessed_pieces(value_text(value)))
                if pieces is None
                else KeyReading(name, pieces)
            )
        return readings

    def _guard(self, item: Item) -> RecognisedItem:
        tag, _, field = str(item[UNIQUE_ATTRIBUTE].get("S", "")).rpartition(".")
        owner = self._by_tag.get(tag)
        name = tag if owner is None else owner.recognised.entity
        return RecognisedItem(
            name, "guard", f"Reserves the unique value of {name}.{field}; {OWNER_ATTRIBUTE} is its owner."
        )

    def _unknown(self, item: Item) -> RecognisedItem:
        for name in _TAGS if self._tag is None else ():
            note = item.get(name, {}).get("S")
            if note and self.design is None:
                return RecognisedItem(note, "guess", f"Inferred from the attribute {name}.")
        word = self._word(item)
        if item.keys() <= self._bare:
            return RecognisedItem(word, "marker", "The item has only key attributes.")
        if word is not None:
            return RecognisedItem(word, "guess", "Inferred from the first part of its key.")
        note = "No entity in the design matches this key." if self.design else "No design is loaded."
        return RecognisedItem(None, "unknown", note)

    def _word(self, item: Item) -> str | None:
        """Return the first word of the sort key, which distinguishes members of a collection, or of the partition key."""
        for name in reversed(self.keys[None]):
            word = leading_word(item.get(name, {}).get("S", ""))
            if word is not None:
                return word
        return None


def layout_keys(layout: TableLayout) -> TableKeys:
    """Return the keys of an existing table."""
    return {target.index: target.attributes for target in layout.targets}


def designed_keys(design: TableDesign) -> TableKeys:
    """Return the keys of a table as its design declares them."""
    settings = design.settings
    table_key = (settings.hash,) if settings.range is None else (settings.hash, settings.range)
    return {None: table_key} | {index.name: (*index.hash, *index.range) for index in design.indexes}


async def load_recogniser(studio: Studio, table: str) -> Recogniser:
    """Return the recogniser of a live table."""
    if not table:
        raise RequestRefused(
            "table-missing", "No table selected", "The request names no table.", "Choose a table."
        )
    answer = await studio.db.call("DescribeTable", {"TableName": table})
    return cached_recogniser(studio, parse_layout(answer["Table"]))


def cached_recogniser(studio: Studio, layout: TableLayout) -> Recogniser:
    """Return the recogniser of a table's items, cached as long as the table has the same keys."""
    table, keys = layout.table, layout_keys(layout)
    recogniser: Recogniser | None = studio.cache.get(("recogniser", table))
    if recogniser is None or recogniser.keys != keys:
        recogniser = studio.cache["recogniser", table] = Recogniser(keys, studio.table_design(table))
    return recogniser


def value_text(value: AttributeValue) -> str:
    """Return a key value as text; bytes in base64."""
    return str(next(iter(value.values()), ""))


def _weight(entity: _KnownEntity) -> int:
    return sum(source.weight for source in entity.sources_by_index[None])


def _compile_entity(entity: EntityDesign, foreign: bool) -> _KnownEntity:
    assert entity.key is not None, "a stored entity has a key"
    table = _key_sources(entity, entity.key, foreign)
    base = {source.attribute: source for source in table}
    sources: dict[str | None, tuple[_KeySource, ...]] = {None: table}
    for key in entity.keys:
        # A local index shares the table's partition key and its template.
        key_sources = _key_sources(entity, key, foreign)
        sources[key.index] = tuple(base.get(reading.attribute, reading) for reading in key_sources)
    return _KnownEntity(RecognisedItem(entity.name, "entity"), sources)


def _key_sources(entity: EntityDesign, key: KeyDesign, foreign: bool) -> tuple[_KeySource, ...]:
    return tuple(_source(entity, source, foreign) for source in key.sources)


def _source(entity: EntityDesign, source: SourceDesign, foreign: bool) -> _KeySource:
    if source.template is None:
        return _KeySource(source.attribute, False, field_reader(source.field), 0)
    weight = sum(len(segment) for segment in source.template.segments if isinstance(segment, str))
    reader = (None if foreign else _strict(entity, source)) or loose_reader(source.template)
    return _KeySource(source.attribute, True, reader, weight)


def _strict(entity: EntityDesign, source: SourceDesign) -> KeyReader | None:
    """Return a reader for keys that Tavola wrote; None if the template cannot be bound to the fields."""
    try:
        bound = entity.bind_template(source)
    except TavolaError:
        return None
    assert bound is not None, "it has a template"
    return strict_reader(bound)
