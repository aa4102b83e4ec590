"""Checks of member constraints (lengths, ranges, enums, patterns) with AWS's messages.

All violations are collected, in AWS's order, and up to ten are listed in one response. The classic layer echoes the
value and writes member names in lower camel case; the modern layer does neither for lengths and ranges, and has its
own messages for three enums.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from tavola.limits import LISTED_REFUSALS_MAX, TABLE_NAME_CHARACTERS_MAX, TABLE_NAME_CHARACTERS_MIN
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import NAME_PATTERN, NameRule, fits
from tavola.protocol.message_style import MessageStyle, ValidationLayer, layer_of
from tavola.protocol.shapes import (
    ATTRIBUTE_VALUE,
    IntegerNode,
    ListNode,
    MapNode,
    Node,
    StructureMember,
    StructureNode,
    TextNode,
)

_TOO_SHORT = "Member must have length greater than or equal to {}"
_TOO_LONG = "Member must have length less than or equal to {}"
_TOO_SMALL = "Member must have value greater than or equal to {}"
_TOO_LARGE = "Member must have value less than or equal to {}"
_MUST_MATCH = "Member must satisfy regular expression pattern: {}"
_PATTERN = _MUST_MATCH.format(NAME_PATTERN)
_NULL = "Member must not be null"
# Longer than any list that is allowed; beyond it only the length of the list is reported.
_WALKED_MAX = 1000
_ECHOED_MAX = 200

# The modern layer's own messages for these enums (the typo is AWS's).
_MODERN_ENUMS = {
    "ReturnValues": (
        frozenset({"PutItem", "UpdateItem", "DeleteItem"}),
        "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
    ),
    "ReturnItemCollectionMetrics": (
        frozenset({"PutItem", "UpdateItem"}),
        "ReturnItemCollectionMetrics can only be SIZE or NONE",
    ),
    "ConditionalOperator": (
        frozenset({"Query"}),
        "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
    ),
}
# The one length violation that the classic layer reports without the value.
_UNECHOED = ("ExecuteTransaction", "TransactStatements")


class MemberPath(Struct, frozen=True):
    """The path of a member: member names, list positions and map keys."""

    members: tuple[tuple[str, bool], ...] = ()  # (text, whether it is a member's name)

    def member(self, name: str) -> MemberPath:
        """Return the path of a structure's member."""
        return MemberPath((*self.members, (name, True)))

    def entry(self, key: str) -> MemberPath:
        """Return the path of a list's element or a map's value."""
        return MemberPath((*self.members, (f"{key}.member", False)))

    def render(self, style: ValidationLayer) -> str:
        """Return the path in the spelling of a validation layer."""
        return ".".join(
            text[:1].lower() + text[1:] if is_name and style == "classic" else text
            for text, is_name in self.members
        )


class ConstraintViolation(Struct, frozen=True):
    """One constraint that one member violates."""

    path: MemberPath
    node: Node
    value: Any  # None: the member is absent
    kind: str  # null, length, name, range, enum, keys, values
    rule: str


def check_members(operation: str, wording: MessageStyle, shape: StructureNode, data: dict[str, Any]) -> None:
    """Raise ValidationFault if members of a coerced body violate their constraints."""
    style = layer_of(operation, wording)
    _check_alone(operation, wording, shape, data)
    violations = list(islice(_structure(shape, data, MemberPath(), style), LISTED_REFUSALS_MAX))
    if violations:
        listed = "; ".join(_violation_message(violation, operation, style) for violation in violations)
        count = f"{len(violations)} validation error{'s' if len(violations) > 1 else ''} detected: "
        raise ValidationFault(count + listed)
    for member in shape.members.values():
        if isinstance(member.node, MapNode) and member.node.required_for and not data[member.name]:
            parameter = member.name[:1].lower() + member.name[1:]
            raise ValidationFault(f"The {parameter} parameter is required for {member.node.required_for}")


def _check_alone(operation: str, wording: MessageStyle, shape: StructureNode, data: dict[str, Any]) -> None:
    """Check table names on their own, as the control plane does before it looks at other members."""
    for member in shape.members.values():
        rule = member.node.name if isinstance(member.node, TextNode) else None
        if rule is None or not rule.alone:
            continue
        name = data.get(member.name)
        if name is None:
            if not member.required:
                continue
            raise ValidationFault(
                f"The parameter '{member.name}' is required but was not present in the request"
            )
        # Only TableName itself: other members that hold a table name, such as TargetTableName, keep the old
        # message.
        listed = wording == "modern" or (wording == "current" and member.name == "TableName")
        if listed or fits(rule, name) or rule.characters_min <= len(name) <= rule.characters_max:
            continue
        raise ValidationFault(
            f"{member.name} must be at least {TABLE_NAME_CHARACTERS_MIN} characters long and at most "
            f"{TABLE_NAME_CHARACTERS_MAX} characters long"
        )


def _structure(
    structure: StructureNode, data: dict[str, Any], path: MemberPath, style: ValidationLayer
) -> Iterator[ConstraintViolation]:
    for member in structure.members.values():
        yield from _member(member, data.get(member.name), path.member(member.name), style)


def _member(
    member: StructureMember, value: Any, path: MemberPath, style: ValidationLayer
) -> Iterator[ConstraintViolation]:
    if value is not None:
        yield from _value(member.node, value, path, style)
    elif member.required:
        yield ConstraintViolation(path, member.node, None, "null", _NULL)


def _value(node: Node, value: Any, path: MemberPath, style: ValidationLayer) -> Iterator[ConstraintViolation]:
    match node:
        case TextNode():
            yield from _text(node, value, path)
        case IntegerNode():
            if node.value_min is not None and value < node.value_min:
                yield ConstraintViolation(path, node, value, "range", _TOO_SMALL.format(node.value_min))
            if node.value_max is not None and value > node.value_max:
                yield ConstraintViolation(path, node, value, "range", _TOO_LARGE.format(node.value_max))
        case StructureNode():
            if node is not ATTRIBUTE_VALUE:  # attribute values have no constraints, and they nest
                yield from _structure(node, value, path, style)
        case ListNode():
            yield from _count(node, value, path)
            for place, element in enumerate(islice(value, _WALKED_MAX), start=1):
                yield from _value(node.element, element, path.entry(str(place)), style)
        case MapNode():
            yield from _mapping(node, value, path, style)
        case _:
            return


def _count(
    node: ListNode | MapNode, value: list[Any] | dict[str, Any], path: MemberPath
) -> Iterator[ConstraintViolation]:
    if node.count_min is not None and len(value) < node.count_min:
        yield ConstraintViolation(path, node, value, "length", _TOO_SHORT.format(node.count_min))
    if node.count_max is not None and len(value) > node.count_max:
        yield ConstraintViolation(path, node, value, "length", _TOO_LONG.format(node.count_max))


def _mapping(
    node: MapNode, value: dict[str, Any], path: MemberPath, style: ValidationLayer
) -> Iterator[ConstraintViolation]:
    if value or node.required_for is None or style == "modern":
        yield from _count(node, value, path)
    rule = node.key.name
    if rule is not None and not all(fits(rule, key) for key in value):
        limits = [_TOO_LONG.format(rule.characters_max), _TOO_SHORT.format(rule.characters_min), _PATTERN]
        yield ConstraintViolation(
            path, node, value, "keys", f"Map keys must satisfy constraint: [{', '.join(limits)}]"
        )
    inner = node.value
    if isinstance(inner, ListNode) and style == "classic":
        # The classic layer reports the map, the modern layer each list.
        if any(next(_count(inner, entry, path), None) for entry in value.values()):
            limits = [_TOO_LONG.format(inner.count_max), _TOO_SHORT.format(inner.count_min)]
            yield ConstraintViolation(
                path, node, value, "values", f"Map value must satisfy constraint: [{', '.join(limits)}]"
            )
        for key, entry in islice(value.items(), _WALKED_MAX):
            for place, element in enumerate(islice(entry, _WALKED_MAX), start=1):
                yield from _value(inner.element, element, path.entry(key).entry(str(place)), style)
        return
    for key, entry in islice(value.items(), _WALKED_MAX):
        yield from _value(inner, entry, path.entry(key), style)


def _text(node: TextNode, value: str, path: MemberPath) -> Iterator[ConstraintViolation]:
    if node.words and value not in node.words:
        yield ConstraintViolation(
            path, node, value, "enum", f"Member must satisfy enum value set: [{', '.join(node.words)}]"
        )
    if node.name is not None:
        yield from _name(node, node.name, value, path)
    if node.pattern is not None and not re.fullmatch(node.pattern, value):
        yield ConstraintViolation(path, node, value, "pattern", _MUST_MATCH.format(node.pattern))
    if node.characters_min is not None and len(value) < node.characters_min:
        yield ConstraintViolation(path, node, value, "length", _TOO_SHORT.format(node.characters_min))
    if node.characters_max is not None and len(value) > node.characters_max:
        yield ConstraintViolation(path, node, value, "length", _TOO_LONG.format(node.characters_max))


def _name(node: TextNode, rule: NameRule, value: str, path: MemberPath) -> Iterator[ConstraintViolation]:
    if fits(rule, value):
        return
    if value == "" and rule.characters_min == 1:
        yield ConstraintViolation(path, node, value, "length", _TOO_SHORT.format(rule.characters_min))
        return
    if not fits(NameRule(1, len(value), arn=False), value):
        yield ConstraintViolation(path, node, value, "name", _PATTERN)
    if len(value) < rule.characters_min:
        yield ConstraintViolation(path, node, value, "name", _TOO_SHORT.format(rule.characters_min))
    if len(value) > rule.characters_max:
        yield ConstraintViolation(path, node, value, "name", _TOO_LONG.format(rule.characters_max))


def _violation_message(violation: ConstraintViolation, operation: str, style: ValidationLayer) -> str:
    if style == "modern":
        if violation.kind == "enum" and violation.path.members[-1][0] in _MODERN_ENUMS:
            operations, text = _MODERN_ENUMS[violation.path.members[-1][0]]
            if operation in operations:
                return text
        if violation.kind in ("length", "range"):
            path = violation.path.render("modern")
            return f"Value at '{path}' failed to satisfy constraint: {violation.rule}"
    if violation.kind == "length" and (operation, violation.path.members[-1][0]) == _UNECHOED:
        return f"Value at '{violation.path.render('classic')}' failed to satisfy constraint: {violation.rule}"
    if violation.kind == "null":
        echo = "null"
    elif violation.kind == "keys" and style == "modern":
        echo = f"'{msgspec.json.encode(violation.value).decode()}'"
    else:
        echo = f"'{java_text(violation.node, violation.value)}'"
    return (
        f"Value {echo} at '{violation.path.render('classic')}' failed to satisfy constraint: {violation.rule}"
    )


def java_text(node: Node, value: Any) -> str:
    """Return a value in Java's format: `[KeySchemaElement(attributeName=a, keyType=HASH)]`."""
    match node:
        case StructureNode():
            members = (
                f"{MemberPath().member(name).render('classic') if node.name != 'AttributeValue' else name}"
                f"={java_text(node.members[name].node, entry)}"
                for name, entry in value.items()
            )
            return f"{node.name}({', '.join(members)})"
        case ListNode():
            return f"[{', '.join(java_text(node.element, entry) for entry in islice(value, _ECHOED_MAX))}]"
        case MapNode():
            entries = islice(value.items(), _ECHOED_MAX)
            return f"{{{', '.join(f'{key}={java_text(node.value, entry)}' for key, entry in entries)}}}"
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)
