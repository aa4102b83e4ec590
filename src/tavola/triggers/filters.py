"""Filters: which records of a stream a handler gets, by Lambda's filter patterns.

A pattern has the shape of a record, with arrays of rules as leaves; one rule of each array must match. All fields of a
pattern must match, and one of the patterns. AWS's quirks are reproduced: DynamoDB numbers are text in a record, so only text
rules match them; `exists` applies to leaves only; a field with a list matches if one of its elements does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import Any, TypeAlias, assert_never

from tavola.limits import TRIGGER_FILTERS_MAX, TRIGGER_PATTERN_CHARACTERS_MAX
from tavola.triggers.errors import FilterRefused, MappingRefused

Scalar: TypeAlias = str | int | float | bool | None

FIELDS = (
    "awsRegion",
    "dynamodb",
    "eventID",
    "eventName",
    "eventSource",
    "eventSourceARN",
    "eventVersion",
    "userIdentity",
)
_OPERATORS = '"prefix", "suffix", "equals-ignore-case", "anything-but", "exists", "numeric"'
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_PAIRED = {">": ("<", "<="), ">=": ("<", "<=")}


@dataclass(frozen=True, slots=True)
class Equals:
    """The exact value; null is a value too."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """Text that begins with `text`."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """Text that ends with `text`."""

    text: str


@dataclass(frozen=True, slots=True)
class EqualsIgnoreCase:
    """The same text, ignoring case."""

    text: str


@dataclass(frozen=True, slots=True)
class AnythingBut:
    """A value that matches none of the rules; an absent field is not a value."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """A leaf that is present, or absent."""

    present: bool


@dataclass(frozen=True, slots=True)
class Numeric:
    """A JSON number within bounds; a DynamoDB number is text and never matches."""

    bounds: tuple[tuple[str, float], ...]


Rule: TypeAlias = Equals | PrefixRule | Suffix | EqualsIgnoreCase | AnythingBut | Exists | Numeric


@dataclass(frozen=True, slots=True)
class Leaf:
    """The rules of one field, one of which must match."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields that must all match, and alternatives (`$or`) of which one must."""

    members: tuple[tuple[str, Node], ...]
    alternatives: tuple[Node, ...] = ()


Node: TypeAlias = Leaf | Fields


@dataclass(frozen=True, slots=True)
class FilterCriteria:
    """Patterns, one of which must match; without patterns, every record matches."""

    patterns: tuple[Fields, ...] = ()

    def match(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record, in the shape of Lambda's event, matches."""
        return not self.patterns or any(evaluate(pattern, record) for pattern in self.patterns)

    def remarks(self) -> tuple[str, ...]:
        """Return warnings about patterns that AWS accepts but that can never match."""
        return tuple(remark for pattern in self.patterns for remark in _remarks(pattern, ()))


def parse_criteria(criteria: object) -> FilterCriteria:
    """Return criteria from AWS's FilterCriteria or from plain patterns, each as JSON text or object."""
    if criteria is None:
        return FilterCriteria()
    if isinstance(criteria, FilterCriteria):
        return criteria
    if isinstance(criteria, Mapping) and set(criteria) == {"Filters"}:
        filters = criteria["Filters"] or ()
        if not isinstance(filters, Sequence) or not all(
            isinstance(row, Mapping) and set(row) <= {"Pattern"} for row in filters
        ):
            raise FilterRefused("", 'FilterCriteria is {"Filters": [{"Pattern": "…"}]}')
        patterns: Sequence[object] = [row.get("Pattern", "{}") for row in filters]
    elif isinstance(criteria, str | Mapping):
        patterns = [criteria]
    elif isinstance(criteria, Sequence):
        patterns = criteria
    else:
        raise FilterRefused("", f"A filter must be a JSON object or its text, not {criteria!r}")
    if len(patterns) > TRIGGER_FILTERS_MAX:
        raise MappingRefused(
            "filter_criteria",
            f"{len(patterns)} filters",
            f"Lambda accepts at most {TRIGGER_FILTERS_MAX}; combine some with arrays of values or $or",
        )
    return FilterCriteria(tuple(parse_pattern(pattern) for pattern in patterns))


def parse_pattern(pattern: object) -> Fields:
    """Return one pattern; refuse what Lambda refuses, naming the path of the mistake."""
    if isinstance(pattern, str):
        if len(pattern) > TRIGGER_PATTERN_CHARACTERS_MAX:
            raise FilterRefused(
                "",
                f"The filter pattern has {len(pattern)} characters; Lambda accepts at most "
                f"{TRIGGER_PATTERN_CHARACTERS_MAX}",
            )
        try:
            pattern = json.loads(pattern)
        except ValueError as error:
            raise FilterRefused("", f"The filter pattern is not valid JSON: {error}") from error
    if not isinstance(pattern, Mapping):
        raise FilterRefused("", f"A filter pattern must be a JSON object, not {pattern!r}")
    return _fields(pattern, ())


def evaluate(node: Node, value: object) -> bool:
    """Return whether a value of a record matches a pattern; an absent field matches only `exists: false`."""
    match node:
        case Leaf(rules):
            leaves = tuple(_leaves(value))
            return any(_matches_any(rule, leaves) for rule in rules)
        case Fields(members, alternatives):
            if isinstance(value, list) and value:
                return any(evaluate(node, element) for element in value)
            fields = value if isinstance(value, Mapping) else {}
            if alternatives and not any(evaluate(alternative, fields) for alternative in alternatives):
                return False
            return all(evaluate(member, fields.get(name, _ABSENT)) for name, member in members)
        case _:
            assert_never(node)


class _Absent:
    """Stands for a field that a record does not have; null is a value."""


_ABSENT = _Absent()


def _leaves(value: object) -> Iterator[Scalar]:
    """Yield the scalars of a field; an object is not a leaf, and an absent field has none."""
    if isinstance(value, list):
        for element in value:
            yield from _leaves(element)
    elif value is None or isinstance(value, str | int | float):
        yield value


def _matches_any(rule: Rule, values: tuple[Scalar, ...]) -> bool:
    if isinstance(rule, Exists):
        return bool(values) == rule.present
    return any(_matches(rule, value) for value in values)


def _matches(rule: Rule, value: Scalar) -> bool:
    match rule:
        case Equals(expected):
            return _same(expected, value)
        case PrefixRule(text):
            return isinstance(value, str) and value.startswith(text)
        case Suffix(text):
            return isinstance(value, str) and value.endswith(text)
        case EqualsIgnoreCase(text):
            return isinstance(value, str) and value.casefold() == text.casefold()
        case AnythingBut(rules):
            return not any(_matches(inner, value) for inner in rules)
        case Numeric(bounds):
            return _is_number(value) and all(_COMPARISONS[sign](value, bound) for sign, bound in bounds)
        case Exists():
            return rule.present
        case _:
            assert_never(rule)


def _same(expected: Scalar, value: Scalar) -> bool:
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    return expected == value and _is_number(expected) == _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


FieldPath: TypeAlias = tuple[str, ...]


def _path_text(path: FieldPath) -> str:
    return ".".join(path) or "the top level"


def _fields(pattern: Mapping[str, Any], path: FieldPath) -> Fields:
    members: list[tuple[str, Node]] = []
    alternatives: tuple[Node, ...] = ()
    for name, inner in pattern.items():
        member_path = (*path, name)
        if name == "$or":
            if not isinstance(inner, list) or len(inner) < 2 or not all(isinstance(e, dict) for e in inner):
                raise FilterRefused(_path_text(member_path), "$or takes an array of at least two patterns")
            alternatives = tuple(_fields(element, member_path) for element in inner)
        elif isinstance(inner, Mapping):
            if not inner:
                raise FilterRefused(
                    _path_text(member_path), "an empty object matches nothing; remove the field"
                )
            members.append((name, _fields(inner, member_path)))
        elif isinstance(inner, list | tuple):
            if not inner:
                raise FilterRefused(
                    _path_text(member_path), "an empty array matches nothing; add a value or a rule"
                )
            members.append((name, Leaf(tuple(_rule(element, member_path) for element in inner))))
        else:
            raise FilterRefused(
                _path_text(member_path),
                f"put the value in an array: [{json.dumps(inner)}]",
            )
    return Fields(tuple(members), alternatives)


def _rule(rule: object, path: FieldPath) -> Rule:
    if rule is None or isinstance(rule, str | int | float):
        return Equals(rule)
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise FilterRefused(_path_text(path), f"{rule!r} is not a rule; use a value, or one of {_OPERATORS}")
    ((operator, operand),) = rule.items()
    match operator:
        case "prefix":
            return PrefixRule(_text(operator, operand, path))
        case "suffix":
            return Suffix(_text(operator, operand, path))
        case "equals-ignore-case":
            return EqualsIgnoreCase(_text(operator, operand, path))
        case "anything-but":
            return AnythingBut(_parse_anything_but(operand, path))
        case "exists":
            if not isinstance(operand, bool):
                raise FilterRefused(_path_text(path), "exists takes true or false")
            return Exists(operand)
        case "numeric":
            return Numeric(_bounds(operand, path))
        case _:
            raise FilterRefused(_path_text(path), f"unknown rule {operator!r}; use one of {_OPERATORS}")


def _text(operator: str, operand: object, path: FieldPath) -> str:
    if not isinstance(operand, str):
        raise FilterRefused(_path_text(path), f"{operator} takes text, not {operand!r}")
    return operand


def _parse_anything_but(operand: object, path: FieldPath) -> tuple[Rule, ...]:
    """Return the rules of an anything-but: a value, a list of values, or prefixes or suffixes."""
    if isinstance(operand, Mapping):
        if len(operand) == 1:
            ((operator, inner),) = operand.items()
            texts = inner if isinstance(inner, list | tuple) and inner else [inner]
            rule_types: dict[str, Callable[[str], Rule]] = {
                "prefix": PrefixRule,
                "suffix": Suffix,
                "equals-ignore-case": EqualsIgnoreCase,
            }
            if operator in rule_types:
                return tuple(
                    rule_types[operator](_text(f"anything-but {operator}", text, path)) for text in texts
                )
        raise FilterRefused(
            _path_text(path), "anything-but takes values, or one of prefix, suffix, equals-ignore-case"
        )
    values: Sequence[Any] = operand if isinstance(operand, list | tuple) else [operand]
    if not values or not all(isinstance(value, str) or _is_number(value) for value in values):
        raise FilterRefused(_path_text(path), "anything-but takes text or numbers, one or a list of them")
    return tuple(Equals(value) for value in values)


def _bounds(operand: object, path: FieldPath) -> tuple[tuple[str, float], ...]:
    refusal = FilterRefused(_path_text(path), 'numeric is ["=", 5] or a range such as [">", 0, "<=", 5]')
    if not isinstance(operand, list | tuple) or len(operand) not in (2, 4):
        raise refusal
    bounds = list(zip(operand[::2], operand[1::2], strict=True))
    for sign, bound in bounds:
        if sign not in _COMPARISONS or not _is_number(bound):
            raise refusal
    if len(bounds) == 2 and (
        bounds[1][0] not in _PAIRED.get(bounds[0][0], ()) or bounds[0][1] >= bounds[1][1]
    ):
        raise refusal
    return tuple(bounds)


def _remarks(node: Fields, path: FieldPath) -> Iterator[str]:
    for alternative in node.alternatives:
        if isinstance(alternative, Fields):
            yield from _remarks(alternative, path)
    for name, member in node.members:
        member_path = (*path, name)
        if not path and name not in FIELDS:
            yield f"Records have no field {name}; they have {', '.join(FIELDS)}."
        if isinstance(member, Fields):
            yield from _remarks(member, member_path)
        elif name in ("N", "NS") and "dynamodb" in member_path and any(map(_needs_number, member.rules)):
            yield (
                f"{_path_text(member_path)} never matches a number: DynamoDB's numbers are text in a record. Compare with "
                f'exact text, such as ["5"].'
            )


def _needs_number(rule: Rule) -> bool:
    return isinstance(rule, Numeric) or (isinstance(rule, Equals) and _is_number(rule.value))
