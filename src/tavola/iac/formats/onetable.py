"""Read a DynamoDB OneTable schema in JSON, versions 1.0 and 1.1: indexes, models with value templates, parameters.

A field with a `value` is rendered from other fields; a key refers to it by name. OneTable does not write a value if one of its fields is
absent, so an index key with an optional field is sparse. A schema does not name its table; the report states the name used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tavola.iac.formats.entity_builder import EntityBuilder
from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult
from tavola.iac.formats.source_values import (
    TrackedMapping,
    ValueReader,
    as_text,
    python_label,
    report_unread,
    show_value,
)
from tavola.iac.formats.table_definitions import key_schema, read_table
from tavola.model.document import Design, EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign

FORMAT = "onetable"
_PRIMARY = "primary"
_NAME = "onetable"  # of the table, which a schema does not state
_TAG = "_type"
_FORMAT_PREFIX = "onetable:"
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
_NOT_DESIGN = frozenset(  # how OneTable generates, validates and shows items
    """
    format version description extensions generate uuid validate hidden crypt default queries items
    schema nulls filter timestamps createdField updatedField warn follow partial
    """.split()
)


def is_onetable(raw: Any) -> bool:
    """Return whether data is such a schema: by its format, or by its models and primary index."""
    if not isinstance(raw, Mapping):
        return False
    if isinstance(raw.get("format"), str) and str(raw["format"]).startswith(_FORMAT_PREFIX):
        return True
    indexes = raw.get("indexes")
    return isinstance(raw.get("models"), Mapping) and isinstance(indexes, Mapping) and _PRIMARY in indexes


def read_onetable(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a schema: one table, an entity for each model."""
    report = ImportReport()
    schema = TrackedMapping(raw)
    table = _Schema(schema, report).table()
    if "queries" in schema:
        report.add("queries", "saved queries are not access patterns; not imported")
    if "items" in schema:
        report.add("items", "sample items are not imported")
    report_unread(schema, "", report, ignore=_NOT_DESIGN)
    report.add(
        "", f"OneTable schemas do not name their table; imported as {_NAME!r}. Rename it in the design."
    )
    report.add(
        "", "OneTable schemas have no access patterns. Add them to the design so that Tavola can check them."
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
            "KeySchema": key_schema((hash_,), (range_,) if range_ else ()),
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
        if not isinstance(raw, Mapping):
            raise FormatError("missing, or not an object of models", "models")
        models: dict[str, Mapping[str, Any]] = {}
        for name, model in raw.items():
            if isinstance(model, Mapping):
                models[name] = model
            else:
                self.report.add(
                    f"models.{name}", f"ignored {show_value(model)}: expected an object of fields"
                )
        return models

    def _indexes(self) -> dict[str, Mapping[str, Any]]:
        raw = self.read.object(self.raw.get("indexes"), "indexes")
        indexes = {name: self.read.object(raw.get(name), f"indexes.{name}") for name in raw}
        if not as_text(indexes.get(_PRIMARY, {}).get("hash")):
            raise FormatError(
                "hash is missing; set it to the table's partition key attribute", "indexes.primary"
            )
        return indexes

    def _is_local(self, name: str) -> bool:
        index_hash = as_text(self.indexes[name].get("hash"))
        return as_text(self.indexes[name].get("type")) == "local" or index_hash is None

    def _schema(self, name: str) -> tuple[str, str | None]:
        raw = self.indexes[name]
        primary = as_text(self.indexes[_PRIMARY].get("hash")) or ""
        hash_ = primary if name != _PRIMARY and self._is_local(name) else as_text(raw.get("hash")) or primary
        return hash_, as_text(raw.get("sort"))

    def _key_attributes(self) -> tuple[str, ...]:
        attributes = [attribute for name in self.indexes for attribute in self._schema(name) if attribute]
        return tuple(dict.fromkeys(attributes))

    def _type_of(self, attribute: str) -> str:
        """Return the type of a key attribute: number or binary only if every model with it agrees and has no value template."""
        fields = [
            model_field
            for model in self.models.values()
            if isinstance(model_field := model.get(attribute), Mapping)
        ]
        tags = {"S" if as_text(field.get("value")) else self._kind(field)[0] for field in fields}
        return "N" if tags == {"N"} else "B" if tags == {"B"} else "S"

    def _index(self, name: str) -> dict[str, Any]:
        raw = self.indexes[name]
        hash_, range_ = self._schema(name)
        project = raw.get("project", "all")
        keys = {*self._schema(_PRIMARY), hash_, range_}
        projection: dict[str, Any] = {"ProjectionType": _PROJECTIONS.get(str(project), "ALL")}
        if isinstance(project, list):
            projected = [
                text for text in self.read.texts(project, f"indexes.{name}.project") if text not in keys
            ]
            projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": projected}
            if not projected:
                projection = {"ProjectionType": "KEYS_ONLY"}
        elif str(project) not in _PROJECTIONS:
            self.report.add(
                f"indexes.{name}.project",
                f'{show_value(project)} is not "all", "keys" or a list of attributes; using all',
            )
        return {
            "IndexName": name,
            "KeySchema": key_schema((hash_,), (range_,) if range_ else ()),
            "Projection": projection,
        }

    def _delimiter(self) -> str:
        """Return the delimiter of value templates: params.separator, or the most frequent candidate."""
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
                f"several fields have ttl: {', '.join(sorted(ttl_attributes))}; a table has one, using the first",
            )
        return min(ttl_attributes, default=None)

    def _entity(self, table: TableDesign, name: str, model: Mapping[str, Any]) -> EntityDesign:
        builder = EntityBuilder(python_label(name, "Entity"), name, self.delimiter, name, self.report)
        templates: dict[str, str] = {}
        padded = {
            match[1]
            for raw in model.values()
            if isinstance(raw, Mapping)
            for match in _VALUE.finditer(as_text(raw.get("value")) or "")
            if match[2] and match[3] in (None, "0")
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
                        f"value template {value!r} is not part of a key; imported as a plain field",
                    )
                self._field(builder, field, field_schema, name, padded=field in padded)
        names = table.settings.key_names
        for attribute in names:
            if attribute not in model:
                self.report.add(
                    f"models.{name}", f"key attribute {attribute} is not defined; imported as a plain field"
                )
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
                hash_ = tuple(
                    self._source(builder, table, attribute, templates, name) for attribute in index.hash
                )
                range_ = tuple(
                    self._source(builder, table, attribute, templates, name) for attribute in index.range
                )
                fields = [
                    known_field
                    for source in (*hash_, *range_)
                    for field in source.fields
                    if (known_field := builder.find(field))
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
        """Return a value template in Tavola's syntax; `${_type}` is the model's name, `${n:8}` is padded."""
        tag = as_text(self.params.get("typeField")) or _TAG

        def render_placeholder(match: re.Match[str]) -> str:
            field, size, pad = match[1], match[2], match[3]
            if field == tag:
                return name
            if field not in model:
                self.report.add(
                    f"models.{name}", f"value {value!r} uses ${{{field}}}, which is not a field of the model"
                )
            number = self._kind(self.read.object(model.get(field), f"models.{name}.{field}"))[0] == "N"
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
                f"mapping into a part of {attribute!r} has no equivalent in a design; imported as a plain field",
            )
            attribute = name
        for member, kind in (("required", bool), ("unique", bool), ("ttl", bool), ("enum", list)):
            if not isinstance(raw.get(member), kind | None):
                expected = "a list" if kind is list else "true or false"
                self.report.add(
                    f"{place}.{member}", f"ignored {show_value(raw.get(member))}: expected {expected}"
                )
        required = raw.get("required") is True or bool(raw.get("generate")) or bool(raw.get("uuid"))
        choices = self.read.texts(raw.get("enum"), place) if isinstance(raw.get("enum"), list) else ()
        if raw.get("encrypted") is True or raw.get("crypt") is True:
            self.report.add(place, "client-side encryption has no equivalent in a design; not imported")
        scope = _VALUE.findall(as_text(raw.get("scope")) or "")
        if "schema" in raw or "items" in raw:
            self.report.add(place, "the nested schema is not imported")
        if raw.get("ttl") is True:
            tag, word = "N", "epoch-seconds"
        settings: dict[str, Any] = {
            "type": word,
            "required": required,
            "nullable": not required,
            "unique": raw.get("unique") is True,
            "within": tuple(placeholder[0] for placeholder in scope) if raw.get("unique") is True else (),
            "description": as_text(raw.get("description")) or "",
        }
        if padded and tag == "N":  # padded numbers are integers
            settings |= {"type": "int", "key_kind": "int"}
        if choices and tag == "S":
            settings["choices"] = choices
        field: FieldDesign = builder.field(attribute, tag, name=name, **settings)
        if field.attribute != attribute or (field.name != name and builder.find(name) is not field):
            self.report.add(place, f"imported as {field.name}")

    def _kind(self, raw: Mapping[str, Any], place: str = "") -> tuple[str, str]:
        type_name = (as_text(raw.get("type")) or "string").lower()
        if type_name == "date":
            return ("S", "datetime") if self.params.get("isoDates") is True else ("N", "epoch-milliseconds")
        if type_name not in _TYPES and place:
            self.report.add(place, f"unknown type {show_value(type_name)}; using string")
        return _TYPES.get(type_name, ("S", "text"))
