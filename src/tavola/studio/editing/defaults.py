"""Defaults: what a field of a new item holds where nobody gave it anything, as the program's classes say it.

A design as data says that a field has a default and not which; where the classes are in this process, they tell. One that is
made each time, such as the moment, is the program's alone.
"""

from __future__ import annotations

from pydantic import ValidationError

from tavola.errors import TavolaError
from tavola.model import declared_tables, entities_of, shape_of
from tavola.values import Value


def constant_defaults(table: str, entity: str) -> dict[str, Value]:
    """Return the constant defaults of an entity's fields as they are stored, by the attributes."""
    found = next(
        (
            each
            for declared in declared_tables()
            if declared.settings.name == table
            for each in entities_of(declared)
            if each.__name__ == entity
        ),
        None,
    )
    if found is None:
        return {}
    defaults: dict[str, Value] = {}
    for field in shape_of(found).fields.values():
        if field.default is None or field.lock:
            continue
        try:
            defaults[field.attribute] = field.encode(field.default)
        except (TavolaError, ValidationError, TypeError, ValueError, AttributeError):
            continue  # the client could not store it either
    return defaults
