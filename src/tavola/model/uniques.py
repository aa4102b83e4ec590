"""Uniques: fields that no two items of an entity may share, bound to the keys of the guards that see to it.

For each value that is taken there is a guard: an item of the same table under a key that only that value has,
written together with the entity that has it. So the table's keys are text, and no entity's key may meet a guard's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tavola.keys import BoundTemplate, Part, Template, part_for
from tavola.model.errors import ModelError
from tavola.model.shapes import FieldShape, KeySource, Shape, Unique

UNIQUE = "UNIQUE"  # what a guard's key begins with, and its tag
UNIQUE_ATTRIBUTE = "_unique"  # of a guard alone: which field it is for
OWNER_ATTRIBUTE = "_owner"  # of a guard alone: the key of the item that has the value

_LONG = "LONGUNIQUE"  # the same for a value that stands there by its digest


def bind_uniques(shape: Shape) -> None:
    """Give a shape its unique fields, each with the template of its guards' keys; refuse what cannot be one."""
    table = shape.home
    assert shape.key is not None
    for found in shape.fields.values():
        if not found.unique:
            if found.within:
                raise ModelError(_place(shape, found), "within= belongs to unique=True; say both")
            continue
        if any(source.tag != "S" for source in shape.key.key.sources):
            raise ModelError(
                _place(shape, found),
                f"unique=True needs a table whose keys are text, and a key of {table.__name__} is not; its guards "
                "are items of the same table",
            )
        shape.uniques = (*shape.uniques, _bind_unique(shape, found, table.settings.delimiter))
    for attribute in (UNIQUE_ATTRIBUTE, OWNER_ATTRIBUTE):
        if attribute in shape.by_attribute:
            raise ModelError(
                _place(shape, shape.by_attribute[attribute]),
                f"{attribute!r} is an attribute of guards; rename it",
            )
    if shape.name == UNIQUE:
        raise ModelError(
            shape.entity.__name__, f"{UNIQUE!r} is the tag of guards of unique values; give it tag=…"
        )
    check_guard_keys(shape, shape)


def _bind_unique(shape: Shape, found: FieldShape, delimiter: str) -> Unique:
    parts: list[Part] = []
    for name in (*found.within, found.name):
        field = shape.fields.get(name)
        if field is None:
            raise ModelError(
                _place(shape, found), f"within= names {name!r}, and {shape.entity.__name__} has no such field"
            )
        if field.converter.key_kind is None:
            word = "be unique" if field is found else "have others unique within it"
            raise ModelError(_place(shape, field), f"it cannot {word}; only what can be part of a key")
        parts.append(part_for(field.converter.key_kind, choices=field.converter.choices))
    return unique_of(shape.name, found.name, found.within, parts, delimiter)


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


def _place(shape: Shape, found: FieldShape) -> str:
    return f"{shape.entity.__name__}.{found.name}"


def check_guard_keys(shape: Shape, guarded: Shape) -> None:
    """Refuse an entity whose key could be that of a guard of another's values, or of its own."""
    assert shape.key is not None
    sources = shape.key.key.sources
    if shape is guarded and any(source.template is None for source in sources):
        return  # a field itself may hold anything; a key that begins as guards' do is refused when it is written
    for unique in guarded.uniques:
        for template in (unique.template, unique.long):
            if all(_may_meet(source, template) for source in sources):
                raise ModelError(
                    f"{shape.entity.__name__}.{shape.key.name}",
                    f"an item of it could have the key of a guard, {template.source!r}, that keeps "
                    f"{guarded.entity.__name__}.{unique.field} unique; tell them apart by a word in a template",
                )


def _may_meet(source: KeySource, template: BoundTemplate) -> bool:
    return source.template is None or source.template.may_meet(template)
