"""Views: entities without a key, with those fields of another entity that a query returns.

An index that does not project all attributes can return a view: the projected fields, and those that can be parsed from its
keys. A view is checked against each query that returns it, when the later of the two is declared.
"""

from __future__ import annotations

from copy import copy

from tavola.model.errors import ModelError
from tavola.model.part_types import same_type, without_none, word_of
from tavola.model.shapes import EntityShape, FieldShape, KeyShape, Pattern
from tavola.model.tables import Index


def check_view(pattern: Pattern, owner: EntityShape, view: EntityShape) -> None:
    """Refuse a view that a query cannot return: with fields that its entity lacks, declares differently, or does not project."""
    if view.key is not None:
        raise ModelError(
            pattern.place,
            f"it returns {owner.entity.__name__}, but {view.entity.__name__} has items of its own; "
            f'write Query["{owner.entity.__name__}"], or use an entity without a Key',
        )
    for name, field in view.fields.items():
        place = f"{view.entity.__name__}.{name}"
        owner_field = owner.fields.get(name)
        if owner_field is None:
            raise ModelError(
                place, f"{pattern.place} returns it, but {owner.entity.__name__} has no such field; remove it"
            )
        if not same_type(field.annotation, owner_field.annotation):
            raise ModelError(
                place,
                f"its type is {word_of(without_none(field.annotation))}, but "
                f"{word_of(without_none(owner_field.annotation))} in {owner.entity.__name__}, which "
                f"{pattern.place} returns; use that type",
            )
        if owner_field.nullable and not field.nullable and field.required:
            raise ModelError(
                place,
                f"{owner.entity.__name__}.{name} may be None, and {pattern.place} returns it; allow None here too",
            )
        _check_held(place, pattern, owner, field, owner_field)
        if owner_field.converter.kind == "expiry":  # a view has no table that would tell it
            view.fields[name] = owned = copy(owner_field)
            owned.entity = view.entity


def check_partial_view(owner: EntityShape, view: EntityShape) -> None:
    """Refuse a view that a get of an entity's item cannot return."""
    assert owner.key is not None
    check_view(owner.key, owner, view)


def _check_held(
    place: str, pattern: Pattern, owner: EntityShape, field: FieldShape, field_shape: FieldShape
) -> None:
    index = pattern.key.index
    if index is not None and not is_recoverable(field_shape, index, pattern.key, owner):
        raise ModelError(
            place,
            f"{pattern.place} returns it, but {index.label} does not project it; project {field_shape.attribute!r}, or "
            "remove it from the view",
        )
    if (index is None or is_projected(field_shape, index)) and field.attribute != field_shape.attribute:
        raise ModelError(
            place,
            f"it is stored as {field_shape.attribute!r} in {owner.entity.__name__}; add "
            f"attr(name={field_shape.attribute!r}) here too",
        )


def check_whole_entities(pattern: Pattern, owner: EntityShape) -> None:
    """Refuse a query that returns entities from an index that does not project all their fields."""
    index = pattern.key.index
    if index is None or index.projection == "ALL" or pattern.hydrate:
        return
    absent = sorted(
        field.name for field in owner.fields.values() if not is_recoverable(field, index, pattern.key, owner)
    )
    if absent:
        raise ModelError(
            pattern.place,
            f"{index.label} does not project {', '.join(absent)}; project them, set hydrate=True to fetch full items, or "
            "use a view: an entity with fewer fields and no Key",
        )


def is_recoverable(field_shape: FieldShape, index: Index, key: KeyShape, owner: EntityShape) -> bool:
    """Return whether a field can be read from an index's entries: as an attribute, or parsed from a key."""
    assert owner.key is not None
    return is_projected(field_shape, index) or any(
        field_shape.name in source.fields
        and (source.template is None or field_shape.name not in source.template.lossy_fields)
        for source in (*key.sources, *owner.key.key.sources)
    )


def is_projected(field_shape: FieldShape, index: Index) -> bool:
    """Return whether an index projects a field's attribute."""
    return index.holds(field_shape.attribute)
