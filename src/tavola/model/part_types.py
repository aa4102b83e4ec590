"""Part types: check that each argument and sort part of a key has the type of its field.

A type checker cannot compare the two, since a nested class does not see its entity's fields, so they are compared when the
entity is complete. An annotation that cannot be resolved, such as a name local to a function, is not checked.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from tavola.model.errors import ModelError
from tavola.model.shapes import FieldShape
from tavola.model.sort_parts import Sort, Step

_UNKNOWN = object()


def check_part_types(
    place: str,
    cls: type,
    fields: Mapping[str, FieldShape],
    annotations: Mapping[str, Any],
    names: Mapping[str, Any],
    sorts: tuple[str, ...] = (),
) -> None:
    """Refuse parts, by name with their annotations, that have another type than the fields of a class.

    Those in `sorts` are marked as sort parts, and no others are: a checker believes the mark.
    """
    for name, annotation in annotations.items():
        field = fields.get(name)
        if field is None:
            continue  # refused by another check, which knows what the key needs
        part = _resolve(annotation, cls, names)
        if part is not _UNKNOWN and (name in sorts) != _is_marked(part):
            lacking = "is not annotated as one" if name in sorts else "has no value"
            raise ModelError(
                place,
                f"{name} is a sort part, but {lacking}; write {name}: Sort[{word_of(without_none(part))}] = sort()",
            )
        if part is not _UNKNOWN and not same_type(part, field.annotation):
            raise ModelError(
                place,
                f"{name} is {word_of(without_none(part))} here, and {word_of(without_none(field.annotation))} in "
                f"{cls.__name__}; use the field's type",
            )


def _resolve(annotation: Any, near: type, names: Mapping[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(near.__module__)
    try:
        return eval(annotation, {} if module is None else dict(vars(module)), dict(names))
    except Exception:  # noqa: BLE001  # whatever looking it up may raise
        return _UNKNOWN


def _is_marked(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and any(m in (Sort, Step) for m in annotation.__metadata__)


def same_type(one: Any, other: Any) -> bool:
    """Return whether two annotations are the same type, ignoring None and markers; a type variable matches any type."""
    one, other = without_none(one), without_none(other)
    if one is Any or other is Any or isinstance(one, TypeVar) or isinstance(other, TypeVar):
        return True
    return bool(one == other)


def without_none(annotation: Any) -> Any:
    """Return a type without its markers, its alias and None."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
            rest = tuple(member for member in get_args(annotation) if member is not type(None))
            annotation = Union[rest]  # noqa: UP007  # members in a tuple
        else:
            return annotation


def word_of(annotation: Any) -> str:
    """Return a type as a person writes it."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__name__
    return str(annotation).replace("typing.", "")
