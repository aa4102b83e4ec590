"""Views: entities without a key, which say what a query gives of the items of another.

An index that does not hold everything gives a view of its entity: what it projects, and what can be read back
out of its keys. A view is checked against every query that gives it, whichever of the two is declared last.
"""

from __future__ import annotations

from copy import copy

from tavola.model.errors import ModelError
from tavola.model.part_types import same_type, without_none, word_of
from tavola.model.shapes import FieldShape, KeyShape, Pattern, Shape
from tavola.model.tables import Index


def check_view(pattern: Pattern, owner: Shape, view: Shape) -> None:
    """Refuse a view that a query cannot give: with fields that its entity lacks, has otherwise, or does not index."""
    if view.key is not None:
        raise ModelError(
            pattern.place,
            f"it gives {owner.entity.__name__}, and {view.entity.__name__} has items of its own; write "
            f'Query["{owner.entity.__name__}"], or give an entity without a Key',
        )
    for name, field in view.fields.items():
        place = f"{view.entity.__name__}.{name}"
        found = owner.fields.get(name)
        if found is None:
            raise ModelError(
                place, f"{pattern.place} gives it, and {owner.entity.__name__} has no such field; remove it"
            )
        if not same_type(field.annotation, found.annotation):
            raise ModelError(
                place,
                f"it is {word_of(without_none(field.annotation))}, and {word_of(without_none(found.annotation))} in "
                f"{owner.entity.__name__}, of which {pattern.place} gives it; give it that type",
            )
        if found.nullable and not field.nullable and field.required:
            raise ModelError(
                place,
                f"{owner.entity.__name__}.{name} may be None, and {pattern.place} gives it; let it be None here too",
            )
        _check_held(place, pattern, owner, field, found)
        if found.converter.kind == "expiry":  # a view has no table that would tell it
            view.fields[name] = owned = copy(found)
            owned.entity = view.entity


def check_partial_view(owner: Shape, view: Shape) -> None:
    """Refuse a view that a get of an entity's item cannot give."""
    assert owner.key is not None
    check_view(owner.key, owner, view)


def _check_held(place: str, pattern: Pattern, owner: Shape, field: FieldShape, found: FieldShape) -> None:
    index = pattern.key.index
    if index is not None and not is_recoverable(found, index, pattern.key, owner):
        raise ModelError(
            place,
            f"{pattern.place} gives it, and {index.label} does not hold it; project {found.attribute!r} there, or "
            "leave it out of the view",
        )
    if (index is None or is_projected(found, index)) and field.attribute != found.attribute:
        raise ModelError(
            place,
            f"it is stored as {found.attribute!r} in {owner.entity.__name__}; say attr(name={found.attribute!r}) "
            "here too",
        )


def check_whole_entities(pattern: Pattern, owner: Shape) -> None:
    """Refuse a query that gives whole entities from an index that does not hold them."""
    index = pattern.key.index
    if index is None or index.projection == "ALL" or pattern.hydrate:
        return
    absent = sorted(
        found.name for found in owner.fields.values() if not is_recoverable(found, index, pattern.key, owner)
    )
    if absent:
        raise ModelError(
            pattern.place,
            f"{index.label} does not hold {', '.join(absent)}; project them, say hydrate=True to fetch them, or "
            "give a view: an entity of less, without a Key",
        )


def is_recoverable(found: FieldShape, index: Index, key: KeyShape, owner: Shape) -> bool:
    """Return whether a field can be had from an index's entries: as an attribute, or out of a key."""
    assert owner.key is not None
    return is_projected(found, index) or any(
        found.name in source.fields
        and (source.template is None or found.name not in source.template.lossy_fields)
        for source in (*key.sources, *owner.key.key.sources)
    )


def is_projected(found: FieldShape, index: Index) -> bool:
    """Return whether an index holds a field's attribute."""
    return index.holds(found.attribute)
