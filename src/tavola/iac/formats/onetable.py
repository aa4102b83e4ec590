"""OneTable: a schema of DynamoDB OneTable as JSON, versions 1.0 and 1.1: indexes, models with value templates, parameters.

A model's field with a `value` is made of other fields, and stands in a key by its name. A template of which a field is absent is
not written, so that a key of what need not be there is sparse. The schema names no table; the name that it gets here is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tavola.iac.formats.entity_builder import EntityBuilder
from tavola.iac.formats.import_result import FormatRefused, ImportReport, ImportResult
from tavola.iac.formats.source_values import (
    TrackedMapping,
    ValueReader,
    as_text,
    python_label,
    report_unread,
    show_value,
)
from tavola.iac.formats.table_definitions import read_table
from tavola.model.document import Design, EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign

FORMAT = "onetable"
_PRIMARY = "primary"
_NAME = "onetable"  # of the table, which a schema does not name
_TAG = "_type"
_MARKED = "onetable:"
_TYPES = {
    "array": ("L", "list[any]"),
    "arraybuffer": ("B", "bytes"),
    "binary": ("B", "bytes"),
    "boolean": ("BOOL", "bool"),
    "buffer": ("B", "bytes"),
    "number": ("N", "decimal"),
    "object": ("M", "map[text, any]"),
    "set": ("SS", "set[text]"),
    "string": ("S", "text"),
}
_VALUE = re.compile(r"\$\{([^${}:]+)(?::(\d+))?(?::([^{}]*))?\}")
_PROJECTIONS = {"all": "ALL", "keys": "KEYS_ONLY"}
_DELIMITERS = "#:|/~"
_NOT_DESIGN = frozenset(  # how items are made and shown, and nothing of the tables
    (
        *(
            "format",
            "version",
            "description",
            "extensions",
            "generate",
            "uuid",
            "validate",
            "hidden",
            "crypt",
        ),
        *(
            "default",
            "queries",
            "items",
            "schema",
            "nulls",
            "filter",
            "timestamps",
            "createdField",
            "updatedField",
            "warn",
            "follow",
            "partial",
        ),
    )
)


def is_onetable(raw: Any) -> bool:
    """Tell whether data is such a schema: by its format, or by its primary index and its models."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("models"), Mapping):
        return False
    marked = isinstance(raw.get("format"), str) and str(raw["format"]).startswith(_MARKED)
    indexes = raw.get("indexes")
    return marked or (isinstance(indexes, Mapping) and _PRIMARY in indexes)


def read_onetable(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a schema: one table, an entity for each model."""
    report = ImportReport()
    schema = TrackedMapping(raw)
    table = _Schema(schema, report).table()
    if "queries" in schema:
        report.add("queries", "what somebody saved to look at is no access pattern; left out")
    if "items" in schema:
        report.add("items", "its sample items are left out; import them with the table's own data")
    report_unread(schema, "", report, ignore=_NOT_DESIGN)
    report.add("", f"a schema names no table, so it is called {_NAME!r}; rename it in the document")
    report.add(
        "",
        "it says no access pattern, so the design has none beside the keys; declare them to have them judged",
    )
    return ImportResult(Design((table,)), report.notes, FORMAT)


class _Schema:
    """A schema, read member by member."""

    def __init__(self, raw: TrackedMapping, report: ImportReport) -> None:
        self.raw = raw
        self.report = report
        self.read = ValueReader(report)
        self.params = self.read.object(raw.get("params"), "params")
        self.models = self._models()
        self.indexes = self._indexes()
        self.delimiter = self._delimiter()

    def table(self) -> TableDesign:
        hash_, range_ = self._schema(_PRIMARY)
        types = {name: self._type_of(name) for name in self._key_attributes()}
        body: dict[str, Any] = {
            "TableName": _NAME,
            "KeySchema": _elements(hash_, range_),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": tag} for name, tag in types.items()
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        for name in self.indexes:
            if name != _PRIMARY:
                member = "LocalSecondaryIndexes" if self._is_local(name) else "GlobalSecondaryIndexes"
                body.setdefault(member, []).append(self._index(name))
        base = read_table(body, "indexes", self.report)
        tag = as_text(self.params.get("typeField")) or _TAG
        settings = replace(
            base.settings,
            tag=tag,
            delimiter=self.delimiter,
            ttl=self._ttl(),
            unknown=(
                *base.settings.unknown,
                "recovery",
                "deletion_protection",
                "encryption",
                "stream",
                "tags",
            ),
        )
        table = replace(base, settings=settings)
        entities = tuple(self._entity(table, name, model) for name, model in self.models.items())
        return replace(table, entities=entities)

    def _models(self) -> dict[str, Mapping[str, Any]]:
        raw = self.raw.get("models")
        models: dict[str, Mapping[str, Any]] = {}
        for name, each in raw.items() if isinstance(raw, Mapping) else ():
            if isinstance(each, Mapping):
                models[name] = each
            else:
                self.report.add(f"models.{name}", f"{show_value(each)} is no model, so it is left out")
        return models

    def _indexes(self) -> dict[str, Mapping[str, Any]]:
        raw = self.read.object(self.raw.get("indexes"), "indexes")
        indexes = {name: self.read.object(raw.get(name), f"indexes.{name}") for name in raw}
        if not as_text(indexes.get(_PRIMARY, {}).get("hash")):
            raise FormatRefused(
                "it has no primary index with a hash; give it the key of the table", "indexes.primary"
            )
        return indexes

    def _is_local(self, name: str) -> bool:
        own = as_text(self.indexes[name].get("hash"))
        return as_text(self.indexes[name].get("type")) == "local" or own is None

    def _schema(self, name: str) -> tuple[str, str | None]:
        raw = self.indexes[name]
        primary = as_text(self.indexes[_PRIMARY].get("hash")) or ""
        hash_ = primary if name != _PRIMARY and self._is_local(name) else as_text(raw.get("hash")) or primary
        return hash_, as_text(raw.get("sort"))

    def _key_attributes(self) -> tuple[str, ...]:
        attributes = [attribute for name in self.indexes for attribute in self._schema(name) if attribute]
        return tuple(dict.fromkeys(attributes))

    def _type_of(self, attribute: str) -> str:
        """Return the type of a key attribute: a number where every model that has it says so and makes no text of it."""
        fields = [each for model in self.models.values() if isinstance(each := model.get(attribute), Mapping)]
        tags = {"S" if as_text(each.get("value")) else self._kind(each)[0] for each in fields}
        return "N" if tags == {"N"} else "B" if tags == {"B"} else "S"

    def _index(self, name: str) -> dict[str, Any]:
        raw = self.indexes[name]
        hash_, range_ = self._schema(name)
        project = raw.get("project", "all")
        keys = {*self._schema(_PRIMARY), hash_, range_}
        projection: dict[str, Any] = {"ProjectionType": _PROJECTIONS.get(str(project), "ALL")}
        if isinstance(project, list):
            more = [each for each in self.read.texts(project, f"indexes.{name}.project") if each not in keys]
            projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": more}
            if not more:
                projection = {"ProjectionType": "KEYS_ONLY"}
        elif str(project) not in _PROJECTIONS:
            self.report.add(
                f"indexes.{name}.project", f"{show_value(project)} is no projection; all is taken"
            )
        return {"IndexName": name, "KeySchema": _elements(hash_, range_), "Projection": projection}

    def _delimiter(self) -> str:
        """Return what the values' parts are joined by: as the parameters say, else the sign that most values have."""
        separator = as_text(self.params.get("separator"))
        if separator is not None and len(separator) == 1:
            return separator
        texts = [
            _VALUE.sub("", value)
            for model in self.models.values()
            for field in model.values()
            if isinstance(field, Mapping) and (value := as_text(field.get("value"))) is not None
        ]
        counts = {character: sum(text.count(character) for text in texts) for character in _DELIMITERS}
        return max(_DELIMITERS, key=lambda character: counts[character])

    def _ttl(self) -> str | None:
        ttl_attributes = {
            as_text(field.get("map")) or name
            for model in self.models.values()
            for name, field in model.items()
            if isinstance(field, Mapping) and field.get("ttl") is True
        }
        if len(ttl_attributes) > 1:
            self.report.add(
                "models",
                f"{' and '.join(sorted(ttl_attributes))} are all called ttl; a table has one, and the first is taken",
            )
        return min(ttl_attributes, default=None)

    def _entity(self, table: TableDesign, name: str, model: Mapping[str, Any]) -> EntityDesign:
        builder = EntityBuilder(python_label(name, "Entity"), name, self.delimiter, name, self.report)
        templates: dict[str, str] = {}
        padded = {
            found[1]
            for raw in model.values()
            if isinstance(raw, Mapping)
            for found in _VALUE.finditer(as_text(raw.get("value")) or "")
            if found[2] and found[3] in (None, "0")
        }
        for field, raw in model.items():
            field_schema = self.read.object(raw, f"models.{name}.{field}")
            value = as_text(field_schema.get("value"))
            if value is not None and field in table.key_types:
                templates[field] = self._template(value, name, model)
                field_schema.get("type"), field_schema.get("required")
            else:
                if value is not None:
                    self.report.add(
                        f"models.{name}.{field}",
                        f"it is made of {value!r}, which a design does not say; it stays a field",
                    )
                self._field(builder, field, field_schema, name, padded=field in padded)
        names = table.settings.key_names
        sources = [self._source(builder, table, attribute, templates, name) for attribute in names]
        keys = tuple(self._keys(builder, table, templates, model, name))
        return builder.entity(KeyDesign(None, (sources[0],), tuple(sources[1:])), keys)

    def _keys(
        self,
        builder: EntityBuilder,
        table: TableDesign,
        templates: Mapping[str, str],
        model: Mapping[str, Any],
        name: str,
    ) -> Iterator[KeyDesign]:
        for index in table.indexes:
            if all(
                attribute in model
                for attribute in index.attributes
                if attribute not in table.settings.key_names
            ):
                hash_ = tuple(self._source(builder, table, each, templates, name) for each in index.hash)
                range_ = tuple(self._source(builder, table, each, templates, name) for each in index.range)
                fields = [
                    found
                    for source in (*hash_, *range_)
                    for each in source.fields
                    if (found := builder.find(each))
                ]
                yield KeyDesign(index.name, hash_, range_, sparse=any(field.nullable for field in fields))

    def _source(
        self,
        builder: EntityBuilder,
        table: TableDesign,
        attribute: str,
        templates: Mapping[str, str],
        name: str,
    ) -> SourceDesign:
        place = f"models.{name}.{attribute}"
        return builder.source(attribute, table.key_types[attribute], templates.get(attribute), place)

    def _template(self, value: str, name: str, model: Mapping[str, Any]) -> str:
        """Return a value template as ours spells it; `${_type}` is the model's name, `${n:8}` is padded."""
        tag = as_text(self.params.get("typeField")) or _TAG

        def render_placeholder(found: re.Match[str]) -> str:
            field, size, pad = found[1], found[2], found[3]
            if field == tag:
                return name
            number = self._kind(self.read.object(model.get(field), name))[0] == "N"
            return f"{{{field}:0{size}}}" if number and size and pad in (None, "0") else f"{{{field}}}"

        return _VALUE.sub(
            render_placeholder, value.replace("{", "\0{").replace("$\0{", "${").replace("\0{", "{{")
        )

    def _field(
        self, builder: EntityBuilder, name: str, raw: Mapping[str, Any], model: str, *, padded: bool
    ) -> None:
        place = f"models.{model}.{name}"
        tag, word = self._kind(raw, place)
        attribute = (as_text(raw.get("map")) or name).partition(".")[0]
        if "." in (as_text(raw.get("map")) or ""):
            self.report.add(
                place,
                f"it is packed into {attribute!r} with others, which a design does not say; it stays a field",
            )
            attribute = name
        required = raw.get("required") is True or bool(raw.get("generate")) or bool(raw.get("uuid"))
        choices = self.read.texts(raw.get("enum"), place) if isinstance(raw.get("enum"), list) else ()
        if raw.get("encrypted") is True or raw.get("crypt") is True:
            self.report.add(place, "its values are encrypted by the program, which a design does not say")
        scope = _VALUE.findall(as_text(raw.get("scope")) or "")
        if "schema" in raw or "items" in raw:
            self.report.add(place, "what is inside it is not read")
        if raw.get("ttl") is True:
            tag, word = "N", "epoch-seconds"
        settings: dict[str, Any] = {
            "type": word,
            "required": required,
            "nullable": not required,
            "unique": raw.get("unique") is True,
            "within": tuple(found[0] for found in scope) if raw.get("unique") is True else (),
            "description": as_text(raw.get("description")) or "",
        }
        if padded and tag == "N":  # a number that is padded has no fraction
            settings |= {"type": "int", "key_kind": "int"}
        if choices and tag == "S":
            settings["choices"] = choices
        field: FieldDesign = builder.field(attribute, tag, name=name, **settings)
        if field.attribute != attribute or (field.name != name and builder.find(name) is not field):
            self.report.add(place, f"it is called {field.name} here")

    def _kind(self, raw: Mapping[str, Any], place: str = "") -> tuple[str, str]:
        type_name = (as_text(raw.get("type")) or "string").lower()
        if type_name == "date":
            return ("S", "datetime") if self.params.get("isoDates") is True else ("N", "epoch-milliseconds")
        if type_name not in _TYPES and place:
            self.report.add(place, f"{show_value(type_name)} is no type that is known; string is taken")
        return _TYPES.get(type_name, ("S", "text"))


def _elements(hash_: str, range_: str | None) -> list[dict[str, str]]:
    schema = [{"AttributeName": hash_, "KeyType": "HASH"}]
    return [*schema, {"AttributeName": range_, "KeyType": "RANGE"}] if range_ else schema
