"""Filters: which records of a stream a handler wants to see, as Lambda's filter patterns say it.

A pattern has the shape of a record; at its leaves stand arrays of rules, of which one must hold. Fields of
one pattern must all hold, patterns of one criteria are alternatives. The quirks are AWS's and kept: numbers
of DynamoDB are text, so only text rules hold for them; `exists` looks at leaves alone; a field that is a
list matches if one of its elements does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})
_PAIRED = {">": ("<", "<="), ">=": ("<", "<=")}


@dataclass(frozen=True, slots=True)
class Equals:
    """The value itself; null is a value too."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Prefix:
    """Text that begins so."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """Text that ends so."""

    text: str


@dataclass(frozen=True, slots=True)
class EqualsIgnoreCase:
    """The same text, capitals or not."""

    text: str


@dataclass(frozen=True, slots=True)
class AnythingBut:
    """A value for which none of the rules holds; a field that is not there is no value."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """A leaf that is there, or is not."""

    wanted: bool


@dataclass(frozen=True, slots=True)
class Numeric:
    """A JSON number within bounds; a DynamoDB number is text and never one."""

    bounds: tuple[tuple[str, float], ...]


Rule: TypeAlias = Equals | Prefix | Suffix | EqualsIgnoreCase | AnythingBut | Exists | Numeric


@dataclass(frozen=True, slots=True)
class Leaf:
    """The rules of one field, of which one must hold."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields that must all hold, and alternatives (`$or`) of which one must."""

    members: tuple[tuple[str, Node], ...]
    alternatives: tuple[Node, ...] = ()


Node: TypeAlias = Leaf | Fields


@dataclass(frozen=True, slots=True)
class FilterCriteria:
    """Patterns, of which one must match; without any, every record is wanted."""

    patterns: tuple[Fields, ...] = ()

    def match(self, record: Mapping[str, Any]) -> bool:
        """Tell whether the handler wants a record, which is in the shape of Lambda's event."""
        return not self.patterns or any(evaluate(pattern, record) for pattern in self.patterns)

    def remarks(self) -> tuple[str, ...]:
        """Return what AWS would accept in silence, and what yet never matches anything."""
        return tuple(remark for pattern in self.patterns for remark in _remarks(pattern, ()))


def parse_criteria(given: object) -> FilterCriteria:
    """Return criteria from AWS's FilterCriteria, or from patterns alone: JSON texts or the objects themselves."""
    if given is None:
        return FilterCriteria()
    if isinstance(given, FilterCriteria):
        return given
    if isinstance(given, Mapping) and set(given) == {"Filters"}:
        listed = given["Filters"] or ()
        if not isinstance(listed, Sequence) or not all(
            isinstance(row, Mapping) and set(row) <= {"Pattern"} for row in listed
        ):
            raise FilterRefused("", 'FilterCriteria is {"Filters": [{"Pattern": "…"}]}')
        patterns: Sequence[object] = [row.get("Pattern", "{}") for row in listed]
    elif isinstance(given, str | Mapping):
        patterns = [given]
    elif isinstance(given, Sequence):
        patterns = given
    else:
        raise FilterRefused("", f"A filter is a JSON object or its text, and not {given!r}")
    if len(patterns) > TRIGGER_FILTERS_MAX:
        raise MappingRefused(
            "filter_criteria",
            f"{len(patterns)} filters",
            f"Lambda takes at most {TRIGGER_FILTERS_MAX}; join some with arrays of values or $or",
        )
    return FilterCriteria(tuple(parse_pattern(pattern) for pattern in patterns))


def parse_pattern(given: object) -> Fields:
    """Return one pattern; refuse what Lambda refuses, with the place."""
    if isinstance(given, str):
        if len(given) > TRIGGER_PATTERN_CHARACTERS_MAX:
            raise FilterRefused(
                "",
                f"The filter pattern has {len(given)} characters; Lambda takes at most "
                f"{TRIGGER_PATTERN_CHARACTERS_MAX}",
            )
        try:
            given = json.loads(given)
        except ValueError as error:
            raise FilterRefused("", f"The filter pattern is no JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise FilterRefused("", f"A filter pattern is a JSON object, and not {given!r}")
    return _fields(given, ())


def evaluate(node: Node, value: object) -> bool:
    """Decide a pattern for a value of a record; for a field that is not there, only `exists: false` holds."""
    match node:
        case Leaf(rules):
            found = tuple(_leaves(value))
            return any(_holds(rule, found) for rule in rules)
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
    """What stands for a field that a record does not have; null is a value."""


_ABSENT = _Absent()


def _leaves(value: object) -> Iterator[Scalar]:
    """Give the scalars of a field; an object is no leaf, and an absent field has none."""
    if isinstance(value, list):
        for element in value:
            yield from _leaves(element)
    elif value is None or isinstance(value, str | int | float):
        yield value


def _holds(rule: Rule, found: tuple[Scalar, ...]) -> bool:
    if isinstance(rule, Exists):
        return bool(found) == rule.wanted
    return any(_fits(rule, value) for value in found)


def _fits(rule: Rule, value: Scalar) -> bool:
    match rule:
        case Equals(wanted):
            return _same(wanted, value)
        case Prefix(text):
            return isinstance(value, str) and value.startswith(text)
        case Suffix(text):
            return isinstance(value, str) and value.endswith(text)
        case EqualsIgnoreCase(text):
            return isinstance(value, str) and value.casefold() == text.casefold()
        case AnythingBut(rules):
            return not any(_fits(inner, value) for inner in rules)
        case Numeric(bounds):
            return _is_number(value) and all(_compare(sign, value, bound) for sign, bound in bounds)
        case Exists():
            return rule.wanted
        case _:
            assert_never(rule)


def _same(wanted: Scalar, value: Scalar) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    return wanted == value and _is_number(wanted) == _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compare(sign: str, value: Any, bound: float) -> bool:
    match sign:
        case "=":
            return bool(value == bound)
        case "<":
            return bool(value < bound)
        case "<=":
            return bool(value <= bound)
        case ">":
            return bool(value > bound)
        case _:
            return bool(value >= bound)


Place: TypeAlias = tuple[str, ...]


def _path_text(place: Place) -> str:
    return ".".join(place) or "its top"


def _fields(given: Mapping[str, Any], place: Place) -> Fields:
    members: list[tuple[str, Node]] = []
    alternatives: tuple[Node, ...] = ()
    for name, inner in given.items():
        here = (*place, name)
        if name == "$or":
            if not isinstance(inner, list) or len(inner) < 2 or not all(isinstance(e, dict) for e in inner):
                raise FilterRefused(_path_text(here), "$or is an array of two patterns or more")
            alternatives = tuple(_fields(element, here) for element in inner)
        elif isinstance(inner, Mapping):
            if not inner:
                raise FilterRefused(_path_text(here), "an empty object matches nothing; leave the field out")
            members.append((name, _fields(inner, here)))
        elif isinstance(inner, list | tuple):
            if not inner:
                raise FilterRefused(
                    _path_text(here), "an empty array matches nothing; give a value or a rule"
                )
            members.append((name, Leaf(tuple(_rule(element, here) for element in inner))))
        else:
            raise FilterRefused(
                _path_text(here),
                f"{json.dumps(inner)} stands alone; values stand in an array: [{json.dumps(inner)}]",
            )
    return Fields(tuple(members), alternatives)


def _rule(given: object, place: Place) -> Rule:
    if given is None or isinstance(given, str | int | float):
        return Equals(given)
    if not isinstance(given, Mapping) or len(given) != 1:
        raise FilterRefused(
            _path_text(place), f"{given!r} is no rule; a rule is a value, or one of {_OPERATORS}"
        )
    ((operator, operand),) = given.items()
    match operator:
        case "prefix":
            return Prefix(_text(operator, operand, place))
        case "suffix":
            return Suffix(_text(operator, operand, place))
        case "equals-ignore-case":
            return EqualsIgnoreCase(_text(operator, operand, place))
        case "anything-but":
            return AnythingBut(_parse_anything_but(operand, place))
        case "exists":
            if not isinstance(operand, bool):
                raise FilterRefused(_path_text(place), "exists is true or false")
            return Exists(operand)
        case "numeric":
            return Numeric(_bounds(operand, place))
        case _:
            raise FilterRefused(_path_text(place), f"there is no rule {operator!r}; there are {_OPERATORS}")


def _text(operator: str, operand: object, place: Place) -> str:
    if not isinstance(operand, str):
        raise FilterRefused(_path_text(place), f"{operator} takes a text, and not {operand!r}")
    return operand


def _parse_anything_but(operand: object, place: Place) -> tuple[Rule, ...]:
    """Return the rules behind an anything-but: a value, a list of values, or a prefix or suffix (or several)."""
    if isinstance(operand, Mapping):
        if len(operand) == 1:
            ((operator, inner),) = operand.items()
            texts = inner if isinstance(inner, list | tuple) and inner else [inner]
            kinds: dict[str, Callable[[str], Rule]] = {
                "prefix": Prefix,
                "suffix": Suffix,
                "equals-ignore-case": EqualsIgnoreCase,
            }
            if operator in kinds:
                return tuple(
                    kinds[operator](_text(f"anything-but {operator}", text, place)) for text in texts
                )
        raise FilterRefused(
            _path_text(place), "anything-but takes values, or one prefix, suffix, equals-ignore-case"
        )
    values: Sequence[Any] = operand if isinstance(operand, list | tuple) else [operand]
    if not values or not all(isinstance(value, str) or _is_number(value) for value in values):
        raise FilterRefused(_path_text(place), "anything-but takes texts and numbers, one or a list of them")
    return tuple(Equals(value) for value in values)


def _bounds(operand: object, place: Place) -> tuple[tuple[str, float], ...]:
    wrong = FilterRefused(_path_text(place), 'numeric is ["=", 5] or a range such as [">", 0, "<=", 5]')
    if not isinstance(operand, list | tuple) or len(operand) not in (2, 4):
        raise wrong
    bounds = list(zip(operand[::2], operand[1::2], strict=True))
    for sign, bound in bounds:
        if sign not in _COMPARISONS or not _is_number(bound):
            raise wrong
    if len(bounds) == 2 and (
        bounds[1][0] not in _PAIRED.get(bounds[0][0], ()) or bounds[0][1] >= bounds[1][1]
    ):
        raise wrong
    return tuple(bounds)


def _remarks(node: Fields, place: Place) -> Iterator[str]:
    for alternative in node.alternatives:
        if isinstance(alternative, Fields):
            yield from _remarks(alternative, place)
    for name, member in node.members:
        here = (*place, name)
        if not place and name not in FIELDS:
            yield f"No record has a field {name}; there are {', '.join(FIELDS)}."
        if isinstance(member, Fields):
            yield from _remarks(member, here)
        elif name in ("N", "NS") and "dynamodb" in here and any(map(_needs_number, member.rules)):
            yield (
                f"{_path_text(here)} never matches a number: DynamoDB's numbers are text in a record. Compare with "
                f'exact text, such as ["5"].'
            )


def _needs_number(rule: Rule) -> bool:
    return isinstance(rule, Numeric) or (isinstance(rule, Equals) and _is_number(rule.value))
