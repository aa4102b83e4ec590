"""OneTable: the tables of a design written as schemas, one each, and what of the design a schema cannot hold.

A model has the name that its items carry in the type attribute, so that OneTable finds the items that Tavola wrote. Keys are value
templates; where OneTable would write one otherwise than Tavola does, that is told.
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
_AS_THEY_STAND = ("text", "enum")  # kinds of key parts whose text is the value


def write_onetable(design: Design) -> tuple[dict[str, dict[str, Any]], tuple[FormatNote, ...]]:
    """Return a schema for each table of a design, by the name of its file, and notes on what a schema cannot hold."""
    report = ImportReport()
    made = {_file(table): _Writer(table, report).schema() for table in design.tables}
    for what, several in (
        ("needs", design.needs),
        ("policies", design.policies),
        ("views", design.views),
        ("ignored findings", design.ignores),
    ):
        if several:
            report.add("", f"a schema has no place for {what}; {len(several)} left out")
    return made, report.notes


def _file(table: TableDesign) -> str:
    return re.sub(r"[^\w.-]|^\.+", "_", table.name) + ".json"  # a template's name for a table may be anything


class _Writer:
    """One table as a schema."""

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
        self._tell()
        return made

    def _holds(self, index: IndexDesign) -> bool:
        """Tell whether a schema can say an index: it knows one attribute for each half of a key."""
        if len(index.hash) == 1 and len(index.range) <= 1:
            return True
        self.report.add(
            f"{self.table.name}.{index.name}",
            "its key has several attributes in one half, which a schema cannot say; it is left out",
        )
        return False

    def _index(self, index: IndexDesign) -> dict[str, Any]:
        told = {"type": "local"} if index.local else {"hash": index.hash[0]}
        if index.range:
            told["sort"] = index.range[0]
        projection = index.projection
        return {
            **told,
            "project": _PROJECTIONS[projection] if isinstance(projection, str) else list(projection),
        }

    def _members(self, entity: EntityDesign) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the fields of a model: what its keys are made as, and what it has."""
        held = {index.name for index in self.indexes}
        keys = [
            each for each in (entity.key, *entity.keys) if each is not None and each.index in {None, *held}
        ]
        own = {source.field for key in keys for source in key.sources if source.template is None}
        made: dict[str, dict[str, Any]] = {}
        for key in keys:
            self._tell_key(entity, key)
            for source in key.sources:
                if source.template is not None and source.attribute not in made:
                    made[source.attribute] = self._made(entity, source)
        yield from made.items()
        for field in entity.fields:
            name = field.attribute if field.name in own else field.name
            if name in made:
                self.report.add(
                    f"{entity.name}.{field.name}", f"{name} is what a key is called, so it is left out"
                )
                continue
            told = self._field(entity, field)
            yield name, told if name == field.attribute else {**told, "map": field.attribute}

    def _made(self, entity: EntityDesign, source: SourceDesign) -> dict[str, Any]:
        """Return a key attribute that is made of fields; one that OneTable cannot make is for the program to give."""
        assert source.template is not None, "asked for by whoever looked"
        parts: list[str] = []
        for segment in source.template.segments:
            if not isinstance(segment, Placeholder):
                parts.append(segment)
            elif segment.field == SHARD:
                self.report.add(
                    f"{entity.name}.{source.attribute}",
                    "it is spread over shards, which OneTable does not do; the program is to give it",
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
        if kind not in _AS_THEY_STAND or part.descending or "rank" in segment.spec:
            self.report.add(
                f"{entity.name}.{source.attribute}",
                f"Tavola writes {field.name} ({field.type}) into it in a form of its own, and OneTable otherwise: items that one "
                "of them wrote are not found by the other",
            )
        return f"${{{field.name}}}"

    def _field(self, entity: EntityDesign, field: FieldDesign) -> dict[str, Any]:
        told: dict[str, Any] = {"type": self._kind(entity, field)}
        if not field.nullable:
            told["required"] = True
        if field.attribute == self.table.settings.ttl:
            told |= {"type": "date", "ttl": True}
        if field.choices is not None and all(isinstance(each, str) for each in field.choices):
            told["enum"] = list(field.choices)
        if field.unique:
            told["unique"] = True
            if field.within:
                told["scope"] = "#".join(f"${{{name}}}" for name in field.within)
        if field.description:
            told["description"] = field.description
        return told

    def _kind(self, entity: EntityDesign, field: FieldDesign) -> str:
        if field.tags == ("S",) and field.type == "datetime":
            return "date"
        if field.tags == ("N",) and field.type == "epoch-milliseconds" and not self.dated:
            return "date"
        tag = field.tags[0] if field.tags else "S"
        if len(field.tags) != 1 or tag not in _KINDS:
            self.report.add(
                f"{entity.name}.{field.name}",
                f"it is {field.type}, for which a schema has no word; {_KINDS.get(tag, 'object')} is taken",
            )
        return _KINDS.get(tag, "object")

    def _tell_key(self, entity: EntityDesign, key: KeyDesign) -> None:
        if key.members:
            self.report.add(
                f"{entity.name}.{key.index or self.table.name}",
                "which items are in it by their values is not said in a schema: with OneTable all are that have its fields",
            )

    def _tell(self) -> None:
        table, settings = self.table, self.table.settings
        report = self.report
        if settings.tag is None:
            report.add(
                table.name, f"it has no attribute that tells entities apart; OneTable writes and reads {_TAG}"
            )
        if not table.foreign and any(entity.keys or entity.key for entity in table.entities):
            report.add(
                table.name,
                f"Tavola escapes {settings.delimiter} inside the values that it puts into a key, and OneTable does not",
            )
        report.add(
            table.name,
            "a schema says neither its name nor its capacity, stream, recovery, encryption and tags, nor access patterns and writes",
        )
