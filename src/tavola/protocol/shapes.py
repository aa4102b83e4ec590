"""Request types as trees, for validation.

The decoder needs no tree. For a body that it refuses, the tree guides the search for AWS's message. Trees are derived
from the Structs, so each member is declared in one place.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, field

from tavola.protocol.fields import INTEGER_MAX, LONG_MAX, NameRule, Shape


class Text(Struct, frozen=True):
    """A string, with its constraints."""

    characters_min: int | None = None
    characters_max: int | None = None
    words: tuple[str, ...] = ()  # enum values, in AWS's print order
    name: NameRule | None = None
    pattern: str | None = None  # as AWS prints it


class Whole(Struct, frozen=True):
    """An integer; `java` is the class that AWS names in type errors."""

    java: str = "Long"
    value_min: int | None = None
    value_max: int | None = None


class Moment(Struct, frozen=True):
    """A time, in seconds since the epoch."""


class Flag(Struct, frozen=True):
    """A boolean."""


class Blob(Struct, frozen=True):
    """Bytes, in base64."""


class Sequence(Struct, frozen=True):
    """A list of one kind of element."""

    element: Node
    count_min: int | None = None
    count_max: int | None = None


class Mapping(Struct, frozen=True):
    """A map from strings to one kind of value."""

    value: Node
    key: Text = Text()
    count_min: int | None = None
    count_max: int | None = None
    required_for: str | None = None  # the classic layer's message names this operation


class Member(Struct, frozen=True):
    """One member of a structure."""

    name: str  # as AWS spells it
    node: Node
    required: bool


class Structure(Struct, frozen=True):
    """Named members, in the order in which AWS reports them."""

    name: str
    members: dict[str, Member] = field(default_factory=dict)


Node: TypeAlias = Text | Whole | Moment | Flag | Blob | Sequence | Mapping | Structure


def _attribute_value() -> Structure:
    value = Structure("AttributeValue")
    content: dict[str, Node] = {
        "S": Text(),
        "N": Text(),
        "B": Blob(),
        "SS": Sequence(Text()),
        "NS": Sequence(Text()),
        "BS": Sequence(Blob()),
        "M": Mapping(value),
        "L": Sequence(value),
        "NULL": Flag(),
        "BOOL": Flag(),
    }
    value.members.update({tag: Member(tag, node, required=False) for tag, node in content.items()})
    return value


ATTRIBUTE_VALUE = _attribute_value()


@cache
def describe_shape(shape: type[Shape]) -> Structure:
    """Return the tree of a Struct's declarations."""
    structure = Structure(shape.__name__)
    hints = get_type_hints(shape, include_extras=True)
    for info in msgspec.structs.fields(shape):
        structure.members[info.encode_name] = Member(info.encode_name, _node(hints[info.name]), info.required)
    return structure


def _node(hint: Any) -> Node:
    origin = get_origin(hint)
    if origin is Union or origin is types.UnionType:
        (present,) = (arm for arm in get_args(hint) if arm is not type(None))
        return _node(present)
    meta = None
    if origin is Annotated:
        hint, *notes = get_args(hint)
        (meta,) = (note for note in notes if isinstance(note, msgspec.Meta))
        if meta.title == "AttributeValue":
            return ATTRIBUTE_VALUE
        origin = get_origin(hint)
    meta = meta or msgspec.Meta()
    extra = meta.extra or {}
    if hint is str:
        name = extra.get("name")
        if name is not None:
            return Text(name=name)
        return Text(meta.min_length, meta.max_length, pattern=extra.get("pattern"))
    if origin is Literal:
        return Text(words=get_args(hint))
    if hint is bool:
        return Flag()
    if hint is float:
        return Moment()
    if hint is int:
        return Whole(extra.get("java", "Long"), _bound(meta.ge), _bound(meta.le))
    if origin is list:
        return Sequence(_node(get_args(hint)[0]), meta.min_length, meta.max_length)
    if origin is dict:
        key, value = (_node(part) for part in get_args(hint))
        assert isinstance(key, Text), "JSON has no other keys"
        return Mapping(value, key, meta.min_length, meta.max_length, extra.get("required"))
    assert isinstance(hint, type), f"no shape for {hint}"
    assert issubclass(hint, Shape), f"no shape for {hint}"
    return describe_shape(hint)


def _bound(bound: float | None) -> int | None:
    """Return a bound of a member; the limits of the type itself do not count."""
    if bound is None or bound in (INTEGER_MAX, LONG_MAX, -LONG_MAX - 1):
        return None
    return int(bound)
