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


class TextNode(Struct, frozen=True):
    """A string, with its constraints."""

    characters_min: int | None = None
    characters_max: int | None = None
    words: tuple[str, ...] = ()  # enum values, in AWS's print order
    name: NameRule | None = None
    pattern: str | None = None  # as AWS prints it


class IntegerNode(Struct, frozen=True):
    """An integer; `java` is the class that AWS names in type errors."""

    java: str = "Long"
    value_min: int | None = None
    value_max: int | None = None


class TimeNode(Struct, frozen=True):
    """A time, in seconds since the epoch."""


class BooleanNode(Struct, frozen=True):
    """A boolean."""


class BytesNode(Struct, frozen=True):
    """Bytes, in base64."""


class ListNode(Struct, frozen=True):
    """A list of one kind of element."""

    element: Node
    count_min: int | None = None
    count_max: int | None = None


class MapNode(Struct, frozen=True):
    """A map from strings to one kind of value."""

    value: Node
    key: TextNode = TextNode()
    count_min: int | None = None
    count_max: int | None = None
    required_for: str | None = None  # the classic layer's message names this operation


class StructureMember(Struct, frozen=True):
    """One member of a structure."""

    name: str  # as AWS spells it
    node: Node
    required: bool


class StructureNode(Struct, frozen=True):
    """Named members, in the order in which AWS reports them."""

    name: str
    members: dict[str, StructureMember] = field(default_factory=dict)


Node: TypeAlias = (
    TextNode | IntegerNode | TimeNode | BooleanNode | BytesNode | ListNode | MapNode | StructureNode
)


def _attribute_value() -> StructureNode:
    value = StructureNode("AttributeValue")
    content: dict[str, Node] = {
        "S": TextNode(),
        "N": TextNode(),
        "B": BytesNode(),
        "SS": ListNode(TextNode()),
        "NS": ListNode(TextNode()),
        "BS": ListNode(BytesNode()),
        "M": MapNode(value),
        "L": ListNode(value),
        "NULL": BooleanNode(),
        "BOOL": BooleanNode(),
    }
    value.members.update({tag: StructureMember(tag, node, required=False) for tag, node in content.items()})
    return value


ATTRIBUTE_VALUE = _attribute_value()


@cache
def describe_shape(shape: type[Shape]) -> StructureNode:
    """Return the tree of a Struct's declarations."""
    structure = StructureNode(shape.__name__)
    hints = get_type_hints(shape, include_extras=True)
    for info in msgspec.structs.fields(shape):
        structure.members[info.encode_name] = StructureMember(
            info.encode_name, _node(hints[info.name]), info.required
        )
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
            return TextNode(name=name)
        return TextNode(meta.min_length, meta.max_length, pattern=extra.get("pattern"))
    if origin is Literal:
        return TextNode(words=get_args(hint))
    if hint is bool:
        return BooleanNode()
    if hint is float:
        return TimeNode()
    if hint is int:
        return IntegerNode(extra.get("java", "Long"), _own_bound(meta.ge), _own_bound(meta.le))
    if origin is list:
        return ListNode(_node(get_args(hint)[0]), meta.min_length, meta.max_length)
    if origin is dict:
        key, value = (_node(part) for part in get_args(hint))
        assert isinstance(key, TextNode), "JSON has no other keys"
        return MapNode(value, key, meta.min_length, meta.max_length, extra.get("required"))
    assert isinstance(hint, type), f"no shape for {hint}"
    assert issubclass(hint, Shape), f"no shape for {hint}"
    return describe_shape(hint)


def _own_bound(bound: float | None) -> int | None:
    """Return a bound of a member; the limits of the type itself do not count."""
    if bound is None or bound in (INTEGER_MAX, LONG_MAX, -LONG_MAX - 1):
        return None
    return int(bound)
