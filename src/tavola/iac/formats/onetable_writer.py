"""Write the tables of a design as OneTable schemas, one each, and note what a schema cannot express.

A model is named after its items' type attribute, so that OneTable finds items that Tavola wrote. Keys become value templates; a note
says where OneTable and Tavola would write different keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tavola.iac.formats.import_result import FormatNote, ImportReport
from tavola.keys import Placeholder, part_for
from tavola.model import SHARD
from tavola.model.document import (
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    SourceDesign,
    TableDesign,
)

_FORMAT = "onetable:1.1.0"
_VERSION = "0.0.1"
_TAG = "_type"
_KINDS = {
    "S": "string",
    "N": "number",
    "B": "binary",
    "BOOL": "boolean",
    "L": "array",
    "M": "object",
    "SS": "set",
    "NS": "set",
    "BS": "set",
}
_PROJECTIONS = {"ALL": "all", "KEYS_ONLY": "keys"}
_VERBATIM_KINDS = ("text", "enum")  # kinds of key parts that contain the value unchanged


def write_onetable(design: Design) -> tuple[dict[str, dict[str, Any]], tuple[FormatNote, ...]]:
    """Return a schema for each table of a design, by the name of its file, and notes on what a schema cannot hold."""
    report = ImportReport()
    made = {
        re.sub(r"[^\w.-]|^\.+", "_", table.name) + ".json": _SchemaWriter(table, report).schema()
        for table in design.tables  # an imported table name may contain anything
    }
    report.note_unwritten(design, "a OneTable schema")
    return made, report.notes


class _SchemaWriter:
    """Writes one table as a schema."""

    def __init__(self, table: TableDesign, report: ImportReport) -> None:
        self.table = table
        self.report = report
        self.indexes = [index for index in table.indexes if self._holds(index)]
        self.dated = any(
            field.type == "datetime" and field.tags == ("S",)
            for entity in table.entities
            for field in entity.fields
        )

    def schema(self) -> dict[str, Any]:
        settings = self.table.settings
        primary = {"hash": settings.hash, **({} if settings.range is None else {"sort": settings.range})}
        made: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "indexes": {"primary": primary, **{index.name: self._index(index) for index in self.indexes}},
            "models": {
                entity.tag or entity.name: dict(self._members(entity)) for entity in self.table.entities
            },
            "params": {
                "isoDates": self.dated,
                "nulls": False,
                "separator": settings.delimiter,
                "timestamps": False,
                "typeField": settings.tag or _TAG,
            },
        }
        self._note_losses()
        return made

    def _holds(self, index: IndexDesign) -> bool:
        """Return whether a schema can express an index: one attribute for each half of its key."""
        if len(index.hash) == 1 and len(index.range) <= 1:
            return True
        self.report.add(
            f"{self.table.name}.{index.name}",
            "a OneTable schema cannot hold multi-attribute keys; index not written",
        )
        return False

    def _index(self, index: IndexDesign) -> dict[str, Any]:
        key = {"type": "local"} if index.local else {"hash": index.hash[0]}
        if index.range:
            key["sort"] = index.range[0]
        projection = index.projection
        return {
            **key,
            "project": _PROJECTIONS[projection] if isinstance(projection, str) else list(projection),
        }

    def _members(self, entity: EntityDesign) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the fields of a model: its key attributes, then its own."""
        held = {index.name for index in self.indexes}
        keys = [each for each in entity.all_keys if each.index in {None, *held}]
        own = {source.field for key in keys for source in key.sources if source.template is None}
        made: dict[str, dict[str, Any]] = {}
        for key in keys:
            self._note_key(entity, key)
            for source in key.sources:
                if source.template is not None and source.attribute not in made:
                    made[source.attribute] = self._key_attribute(entity, source)
        yield from made.items()
        for field in entity.fields:
            name = field.attribute if field.name in own else field.name
            if name in made:
                self.report.add(
                    f"{entity.name}.{field.name}",
                    f"{name} is also the name of a key attribute; field not written",
                )
                continue
            schema = self._field(entity, field)
            yield name, schema if name == field.attribute else {**schema, "map": field.attribute}

    def _key_attribute(self, entity: EntityDesign, source: SourceDesign) -> dict[str, Any]:
        """Return the schema of a key attribute with a template; required input if OneTable cannot render it."""
        assert source.template is not None, "the caller checked"
        parts: list[str] = []
        for segment in source.template.segments:
            if not isinstance(segment, Placeholder):
                parts.append(segment)
            elif segment.field == SHARD:
                self.report.add(
                    f"{entity.name}.{source.attribute}",
                    "OneTable does not shard keys; your program must set this attribute",
                )
                return {"type": "string", "required": True}
            else:
                parts.append(self._part(entity, source, segment))
        return {"type": "string", "value": "".join(parts)}

    def _part(self, entity: EntityDesign, source: SourceDesign, segment: Placeholder) -> str:
        field = entity.field(segment.field)
        kind = field.key_kind or "text"
        part = part_for(kind, segment.spec, field.choices)
        if kind == "int" and not part.descending:
            digits = len(part.encode(0))
            return f"${{{field.name}:{digits}:0}}" if digits > 1 else f"${{{field.name}}}"
        if kind not in _VERBATIM_KINDS or part.descending or "rank" in segment.spec:
            self.report.add(
                f"{entity.name}.{source.attribute}",
                f"Tavola encodes {field.name} ({field.type}) in this key differently from OneTable: neither finds items that "
                "the other wrote",
            )
        return f"${{{field.name}}}"

    def _field(self, entity: EntityDesign, field: FieldDesign) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self._kind(entity, field)}
        if not field.nullable:
            schema["required"] = True
        if field.attribute == self.table.settings.ttl:
            schema |= {"type": "date", "ttl": True}
        if field.choices is not None and all(isinstance(each, str) for each in field.choices):
            schema["enum"] = list(field.choices)
        if field.unique:
            schema["unique"] = True
            if field.within:
                schema["scope"] = "#".join(f"${{{name}}}" for name in field.within)
        if field.description:
            schema["description"] = field.description
        return schema

    def _kind(self, entity: EntityDesign, field: FieldDesign) -> str:
        if field.tags == ("S",) and field.type == "datetime":
            return "date"
        if field.tags == ("N",) and field.type == "epoch-milliseconds" and not self.dated:
            return "date"
        tag = field.tags[0] if field.tags else "S"
        if len(field.tags) != 1 or tag not in _KINDS:
            self.report.add(
                f"{entity.name}.{field.name}",
                f"OneTable has no type for {field.type}; using {_KINDS.get(tag, 'object')}",
            )
        return _KINDS.get(tag, "object")

    def _note_key(self, entity: EntityDesign, key: KeyDesign) -> None:
        if key.members:
            self.report.add(
                f"{entity.name}.{key.index or self.table.name}",
                "a OneTable schema cannot hold the condition for membership: OneTable indexes every item that has the key's fields",
            )

    def _note_losses(self) -> None:
        table, settings = self.table, self.table.settings
        report = self.report
        if settings.tag is None:
            report.add(table.name, f"the table has no entity type attribute; OneTable uses {_TAG}")
        if not table.foreign and any(entity.keys or entity.key for entity in table.entities):
            report.add(table.name, f"Tavola escapes {settings.delimiter} in key values, OneTable does not")
        report.add(
            table.name,
            "a OneTable schema cannot hold the table's name, capacity, stream, recovery, encryption, tags, access patterns and writes",
        )
