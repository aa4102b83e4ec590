"""Read an entity's field values from a stored item, in the types its key templates take.

Works from the design as data; the entity classes need not be importable. Only constant defaults come from the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from tavola.errors import TavolaError
from tavola.model import declared_tables, entities_of, shape_of
from tavola.model.document import EntityDesign, FieldDesign
from tavola.values import Item, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FieldUnreadable(ValueError):
    """A stored value that does not fit its field; `attribute` is where it is."""

    def __init__(self, sentence: str = "", attribute: str = "") -> None:
        self.attribute = attribute
        super().__init__(sentence)


def key_part_value(field: FieldDesign, stored: Value) -> Any:
    """Return a stored value in the type that key templates take; raise `FieldUnreadable` if it does not fit."""
    read = _READERS.get(field.key_kind or "")
    if read is None:
        raise FieldUnreadable(f"{field.name} is {field.type}, which a key cannot contain", field.attribute)
    try:
        return read(field, stored)
    except (KeyError, ValueError, ArithmeticError, OverflowError) as error:
        raise FieldUnreadable(f"{field.name} must be {_expected_type(field)}", field.attribute) from error


def field_values(entity: EntityDesign, item: Item, names: tuple[str, ...]) -> dict[str, Any]:
    """Return some fields of an item; absent ones are parsed from the primary key if it contains them."""
    values: dict[str, Any] = {}
    for name in names:
        field = entity.field(name)
        stored = item.get(field.attribute)
        if stored is not None:
            values[name] = key_part_value(field, stored)
        elif (value := _value_from_key(entity, item, name)) is not None:
            values[name] = value
    return values


def _value_from_key(entity: EntityDesign, item: Item, name: str) -> Any:
    """Return a field parsed from the primary key; index keys do not count, as the edit may change them."""
    for source in () if entity.key is None else entity.key.sources:
        if source.template is None or name not in source.fields:
            continue
        bound = entity.bind_template(source)
        text = item.get(source.attribute, {}).get("S")
        values = None if bound is None or text is None else bound.read(text)
        if values is not None and bound is not None and name not in bound.lossy_fields:
            return values.get(name)
    return None


def _expected_type(field: FieldDesign) -> str:
    if field.choices is not None:
        return "one of " + ", ".join(str(choice) for choice in field.choices[:12])
    return f"of type {field.type}"


def _text(field: FieldDesign, stored: Value) -> Any:
    return stored["N"] if "N" in stored and "S" not in field.tags else stored["S"]


def _integer(field: FieldDesign, stored: Value) -> Any:
    number = Decimal(stored["N"])
    if number != number.to_integral_value():
        raise FieldUnreadable
    return int(number)


def _datetime(field: FieldDesign, stored: Value) -> Any:
    if "N" in stored:
        micros = 1_000 if "milliseconds" in field.type else 1_000_000
        return _EPOCH + timedelta(microseconds=int(Decimal(stored["N"]) * micros))
    moment = datetime.fromisoformat(stored["S"])
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _choice(field: FieldDesign, stored: Value) -> Any:
    content = stored["S"] if "S" in stored else _integer(field, stored)
    if field.choices is not None and content not in field.choices:
        raise FieldUnreadable
    return content


_READERS: Mapping[str, Callable[[FieldDesign, Value], Any]] = {
    "text": _text,
    "int": _integer,
    "decimal": lambda field, stored: Decimal(stored["N"]),
    "datetime": _datetime,
    "date": lambda field, stored: date.fromisoformat(stored["S"]),
    "bool": lambda field, stored: stored["BOOL"],
    "enum": _choice,
    "uuid": lambda field, stored: UUID(stored["S"]),
}


def constant_defaults(table: str, entity: str) -> dict[str, Value]:
    """Return the constant defaults of an entity's fields as stored values, by attribute."""
    declared_entity = next(
        (
            candidate
            for declared in declared_tables()
            if declared.settings.name == table
            for candidate in entities_of(declared)
            if candidate.__name__ == entity
        ),
        None,
    )
    if declared_entity is None:
        return {}
    defaults: dict[str, Value] = {}
    for field in shape_of(declared_entity).fields.values():
        if field.default is None or field.lock:
            continue
        try:
            defaults[field.attribute] = field.encode(field.default)
        except (TavolaError, ValidationError, TypeError, ValueError, AttributeError):
            continue  # the client could not store it either
    return defaults
