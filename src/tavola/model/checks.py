"""Checks: what pydantic says of one field's values, taken out of the entity that the field stands in.

A value that an update writes passes what it would pass in an entity: the constraints of its type, types that
normalise, the validators of the field. Validators of the whole entity, and those of a field that look at other
fields, cannot judge a value by itself: there the type alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from tavola.model.converters.records import annotation_of

_SCALARS = frozenset({"bool", "bytes", "date", "datetime", "decimal", "int", "str", "timedelta", "uuid"})
_CHOICES = frozenset({"enum", "literal"})
_SILENT = frozenset({"allow_inf_nan", "metadata", "microseconds_precision", "ref", "serialization", "type"})
_SHAPELESS = frozenset({"extra_fields_behavior", "title", "validate_assignment"})  # settings of no one field


class Check:
    """The validation of one field, made once."""

    __slots__ = ("_alone", "_annotation", "_validator", "bare")

    def __init__(self, entity: Any, name: str, annotation: Any) -> None:
        fields = getattr(entity, "__pydantic_fields__", {})
        self._annotation = annotation_of(fields[name]) if name in fields else annotation
        self._alone: TypeAdapter[Any] | None = None
        self._validator: SchemaValidator | TypeAdapter[Any]
        schema, config, definitions = _schema_of(entity, name)
        # Whether it says nothing that the type does not: then whoever knows the type need not ask.
        self.bare = schema is not None and _is_bare(schema, config)
        if schema is None:
            self._validator = self._adapter()
        else:
            whole = {"type": "definitions", "schema": schema, "definitions": definitions}
            self._validator = SchemaValidator(whole if definitions else schema, config)

    def __call__(self, value: Any) -> Any:
        """Return a value as an entity would hold it; pydantic's ValidationError for one that none could."""
        try:
            return self._validator.validate_python(value)
        except ValidationError:
            raise
        except Exception:  # noqa: BLE001 - whatever a validator raises that misses the other fields
            return self._adapter().validate_python(value)

    def _adapter(self) -> TypeAdapter[Any]:
        if self._alone is None:
            self._alone = TypeAdapter(self._annotation)
        return self._alone


def _schema_of(entity: Any, name: str) -> tuple[Any, Any, list[Any]]:
    """Return a field's schema in its entity's, without the default, the settings around it, and what it refers to."""
    schema = getattr(entity, "__pydantic_core_schema__", None)
    config: Any = None
    definitions: list[Any] = []
    while isinstance(schema, Mapping) and schema["type"] != "model-fields":
        if schema["type"] == "definitions":
            definitions = schema["definitions"]
        if schema["type"] == "model":
            config = schema.get("config")
        if schema["type"] == "definition-ref":
            schema = next((each for each in definitions if each.get("ref") == schema["schema_ref"]), None)
        else:
            schema = schema.get("schema")
    if not isinstance(schema, Mapping):
        return None, None, []
    field: Any = schema["fields"][name]["schema"]
    while field["type"] == "default":
        field = field["schema"]
    return field, config, definitions


def _is_bare(schema: Mapping[str, Any], config: Mapping[str, Any] | None) -> bool:
    if config is not None and not config.keys() <= _SHAPELESS:
        return False
    if schema["type"] == "nullable":
        schema = schema["schema"]
    kind = schema["type"]
    return kind in _CHOICES or (kind in _SCALARS and schema.keys() <= _SILENT)


def summarize_errors(error: ValidationError) -> str:
    """Return what pydantic has against a value, in a line."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in error.errors()[:3]
    )
