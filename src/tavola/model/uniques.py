"""Uniques: fields whose value must be unique among an entity's items, and the keys of their guard items.

Each value in use has a guard: an item of the same table whose key is derived from the value, written in one transaction
with the entity. So the table's keys must be text, and no entity's key may equal a guard's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tavola.keys import BoundTemplate, Part, Template, part_for
from tavola.model.errors import ModelError
from tavola.model.shapes import EntityShape, FieldShape, KeySource, Unique

UNIQUE = "UNIQUE"  # what a guard's key begins with, and its tag
UNIQUE_ATTRIBUTE = "_unique"  # of a guard alone: which field it is for
OWNER_ATTRIBUTE = "_owner"  # of a guard alone: the key of the item that has the value

_LONG = "LONGUNIQUE"  # the same for a long value, stored as its digest


def bind_uniques(shape: EntityShape) -> None:
    """Set a shape's unique fields, each with the template of its guards' keys; refuse fields that cannot be unique."""
    table = shape.home
    assert shape.key is not None
    for field in shape.fields.values():
        if not field.unique:
            if field.within:
                raise ModelError(_place(shape, field), "within= requires unique=True")
            continue
        if any(source.tag != "S" for source in shape.key.key.sources):
            raise ModelError(
                _place(shape, field),
                f"unique=True needs a table with string keys, but a key of {table.__name__} is not a string; the "
                "guards of unique values are items of the same table",
            )
        shape.uniques = (*shape.uniques, _bind_unique(shape, field, table.settings.delimiter))
    for attribute in (UNIQUE_ATTRIBUTE, OWNER_ATTRIBUTE):
        if attribute in shape.by_attribute:
            raise ModelError(
                _place(shape, shape.by_attribute[attribute]),
                f"{attribute!r} is an attribute of guards; rename it",
            )
    if shape.name == UNIQUE:
        raise ModelError(
            shape.entity.__name__, f"{UNIQUE!r} is reserved for the guards of unique values; set tag=…"
        )
    check_guard_keys(shape, shape)


def _bind_unique(shape: EntityShape, field_shape: FieldShape, delimiter: str) -> Unique:
    parts: list[Part] = []
    for name in (*field_shape.within, field_shape.name):
        field = shape.fields.get(name)
        if field is None:
            raise ModelError(
                _place(shape, field_shape),
                f"within= names {name!r}, but {shape.entity.__name__} has no such field",
            )
        if field.converter.key_kind is None:
            word = "be unique" if field is field_shape else "be used in within="
            raise ModelError(_place(shape, field), f"it cannot {word}; only key types can")
        parts.append(part_for(field.converter.key_kind, choices=field.converter.choices))
    return unique_of(shape.name, field_shape.name, field_shape.within, parts, delimiter)


def unique_of(
    entity: str, field: str, within: tuple[str, ...], parts: Sequence[Part], delimiter: str
) -> Unique:
    """Return what makes the keys of a unique field's guards; the parts are those of `within`, then its own."""
    words = [UNIQUE, "{entity}", "{unique}", *(f"{{part{number}}}" for number in range(len(parts)))]
    bound = {name: part_for("text") for name in ("entity", "unique", "digest")}
    bound |= {f"part{number}": part for number, part in enumerate(parts)}

    def bind(*segments: str) -> BoundTemplate:
        return Template.parse(delimiter.join(segments), delimiter).bind(bound)

    return Unique(entity, field, within, bind(*words), bind(_LONG, "{entity}", "{unique}", "{digest}"))


def _place(shape: EntityShape, field_shape: FieldShape) -> str:
    return f"{shape.entity.__name__}.{field_shape.name}"


def check_guard_keys(shape: EntityShape, guarded: EntityShape) -> None:
    """Refuse an entity whose key could equal the key of a guard."""
    assert shape.key is not None
    sources = shape.key.key.sources
    if shape is guarded and any(source.template is None for source in sources):
        return  # a field itself may hold anything; a key that begins as guards' do is refused when it is written
    for unique in guarded.uniques:
        for template in (unique.template, unique.long):
            if all(_may_meet(source, template) for source in sources):
                raise ModelError(
                    f"{shape.entity.__name__}.{shape.key.name}",
                    f"its items could have the key of a guard, {template.source!r}, which keeps "
                    f"{guarded.entity.__name__}.{unique.field} unique; use a different constant prefix in the "
                    "template",
                )


def _may_meet(source: KeySource, template: BoundTemplate) -> bool:
    return source.template is None or source.template.may_meet(template)
