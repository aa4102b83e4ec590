"""Conditions on attributes, as entered and as DynamoDB expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.errors import TavolaError
from tavola.expressions.nodes import And, Between, Comparison, ConditionNode, FunctionCall, InList, Not, Path
from tavola.expressions.nodes import Literal as Constant
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue
from tavola.values import TAGS, admit_value

Operator = Literal[
    "=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "not_contains", "in", "exists",
    "not_exists", "type", "size =", "size <>", "size <", "size <=", "size >", "size >=",
]  # fmt: skip

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_NUMBER_OF_VALUES = {"between": 2, "exists": 0, "not_exists": 0}
_MATCH_ABSENT = frozenset({"<>", "not_contains", "not_exists", "size <>"})
_IN_MAX = 100
_STEP = re.compile(r'"((?:[^"]|"")*)"|([^.\["]+)|\[([0-9]+)\]')
_WORDS = {
    "<>": "is not", "between": "is between", "begins_with": "begins with", "contains": "contains",
    "not_contains": "does not contain", "in": "is one of", "exists": "exists", "not_exists": "does not exist",
    "type": "has type",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class QueryCondition:
    """One condition; `attribute` is a name or document path. Names with dots need double quotes: `"a.b".c[0]`."""

    attribute: str
    operator: Operator
    values: tuple[AttributeValue, ...] = ()

    @property
    def steps(self) -> tuple[str | int, ...]:
        """The document path."""
        return parse_path(self.attribute)

    @property
    def name(self) -> str | None:
        """The attribute, if the condition is on the whole attribute."""
        steps = self.steps
        return str(steps[0]) if len(steps) == 1 else None

    @property
    def matches_absent(self) -> bool:
        """Whether items without the attribute can match."""
        return self.operator in _MATCH_ABSENT

    def __str__(self) -> str:
        values = (
            " and ".join(map(describe_value, self.values))
            if self.operator != "in"
            else ", ".join(map(describe_value, self.values))
        )
        word = _WORDS.get(self.operator, self.operator)
        if self.operator.startswith("size "):
            return f"the size of {self.attribute} {self.operator[5:]} {values}"
        return f"{self.attribute} {word} {values}".rstrip()


def parse_path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a document path; refuse an invalid one."""
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        if steps and text[at] == ".":
            at += 1
        match = _STEP.match(text, at)
        if match is None or (match[3] is not None and not steps):
            break
        if match[3] is not None:
            steps.append(int(match[3]))
        else:
            steps.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
    if at < len(text) or not steps or "" in steps:
        raise RequestRefused(
            "condition-malformed",
            "Invalid attribute",
            f"{text!r} is not an attribute name or path.",
            'Enter a name, or a path such as address.city[0]. Names that contain a dot need quotes: "a.b".',
        )
    return tuple(steps)


def check_condition(condition: QueryCondition) -> QueryCondition:
    """Return a condition with canonical values, so that `1.0` equals 1; refuse an invalid one."""
    condition.steps  # noqa: B018  # refuses an invalid path
    operator, values = condition.operator, condition.values
    value_count = _NUMBER_OF_VALUES.get(operator, 1)
    if operator == "in":
        if not 1 <= len(values) <= _IN_MAX:
            raise _condition_error(condition, f"IN takes 1 to {_IN_MAX} values, not {len(values)}")
    elif len(values) != value_count:
        raise _condition_error(
            condition, f"it takes {value_count} value{'' if value_count == 1 else 's'}, not {len(values)}"
        )
    for value in values:
        if len(value) != 1 or next(iter(value)) not in TAGS:
            raise _condition_error(condition, f"{dict(value)!r} is not an attribute value")
    if operator.startswith("size ") and "N" not in values[0]:
        raise _condition_error(condition, "a size must be compared with a number")
    if operator == "type" and values[0].get("S") not in TAGS:
        raise _condition_error(condition, f"the type must be one of {', '.join(TAGS)}")
    if operator == "begins_with" and not values[0].keys() <= {"S", "B"}:
        raise _condition_error(condition, "begins_with needs a string or binary value")
    return replace(condition, values=tuple(_canonical_value(condition, value) for value in values))


def _canonical_value(condition: QueryCondition, value: AttributeValue) -> AttributeValue:
    """Return a value in canonical form, which comparisons rely on."""
    raw: dict[str, Any] = deepcopy(dict(value))
    try:
        admit_value(raw)
    except TavolaError as error:
        raise _condition_error(condition, f"{str(dict(value))[:80]} is not a valid value: {error}") from error
    return raw


def _condition_error(condition: QueryCondition, problem: str) -> RequestRefused:
    return RequestRefused(
        "condition-malformed",
        "Invalid condition",
        f"{condition.attribute} {condition.operator}: {problem}.",
        "Complete or remove the condition.",
    )


def condition_node(condition: QueryCondition) -> ConditionNode:
    """Return a checked condition as an expression tree."""
    path = Path(condition.steps)
    values = [Constant(dict(value)) for value in condition.values]
    match condition.operator:
        case "between":
            return Between(path, values[0], values[1])
        case "in":
            return InList(path, tuple(values))
        case "exists" | "not_exists":
            return FunctionCall(f"attribute_{condition.operator}", (path,))
        case "type":
            return FunctionCall("attribute_type", (path, values[0]))
        case "begins_with" | "contains":
            return FunctionCall(condition.operator, (path, values[0]))
        case "not_contains":
            return Not(FunctionCall("contains", (path, values[0])))
        case operator if operator in _COMPARISONS:
            return Comparison(operator, path, values[0])
        case operator:
            return Comparison(operator.removeprefix("size "), FunctionCall("size", (path,)), values[0])


def combine_conditions(conditions: Sequence[QueryCondition]) -> ConditionNode | None:
    """Return the conjunction of conditions; None if there are none."""
    nodes = tuple(map(condition_node, conditions))
    if not nodes:
        return None
    return nodes[0] if len(nodes) == 1 else And(nodes)


def describe_value(value: AttributeValue) -> str:
    """Return a value as text for a sentence."""
    tag, content = next(iter(value.items()))
    if tag == "S":
        text = content if len(content) <= 60 else content[:59] + "…"
        return f"“{text}”"
    if tag == "N":
        return str(content)
    if tag == "BOOL":
        return "true" if content else "false"
    if tag == "NULL":
        return "null"
    return f"{tag} value"
