"""Compiled expressions, cached, and the checks of the placeholders they use.

A request carries its expressions as text, and programs repeat the same texts. So a compiled plan is cached by its
text, with the names and the types of values it was checked with, and reused where those agree. Values are looked up
when a plan is used; only the rules about values are checked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from tavola.expressions.bindings import Bindings
from tavola.expressions.checker import ValueRule, check_condition, check_projection, check_text, check_update
from tavola.expressions.conditions import CompiledCondition, compile_with_sets
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import KeyCondition, clauses_of
from tavola.expressions.nodes import (
    ConditionNode,
    DeleteElements,
    NameRef,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Tree,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.parser import parse_condition, parse_projection, parse_update
from tavola.expressions.paths import paths_of, steps_of, terms_of, tree_operands
from tavola.expressions.projections import CompiledProjection, compile_picker
from tavola.expressions.updates import CompiledUpdate, compile_change
from tavola.limits import EXPRESSION_PLACEHOLDER_BYTES_MAX
from tavola.values import name_problem, tag_of

TEXTS_MAX = 2048  # cached texts of each kind
VARIANTS_MAX = 8  # cached plans per text

_NAME_KEY = re.compile(r"#[A-Za-z0-9_]+")
_VALUE_KEY = re.compile(r":[A-Za-z0-9_]+")
_NO_RULES: tuple[ValueRule, ...] = ()


class Plan(Protocol):
    """A compiled expression, as seen by placeholder checks."""

    @property
    def names_used(self) -> frozenset[str]:
        """The name placeholders that the expression uses."""

    @property
    def values_used(self) -> frozenset[str]:
        """The value placeholders that the expression uses."""


P = TypeVar("P", bound=Plan)


def check_placeholder_keys(names: Mapping[str, str] | None, values: Mapping[str, Any] | None) -> None:
    """Refuse an empty map of placeholders, an invalid placeholder and an empty name."""
    if names is not None:
        _check_keys("ExpressionAttributeNames", names, _NAME_KEY)
        for key, name in names.items():
            problem = name_problem(name)
            if problem is not None:
                raise ExpressionError(
                    f"ExpressionAttributeNames contains invalid value: {problem} for key {key}"
                )
    if values is not None:
        _check_keys("ExpressionAttributeValues", values, _VALUE_KEY)


def _check_keys(parameter: str, entries: Mapping[str, Any], form: re.Pattern[str]) -> None:
    if not entries:
        raise ExpressionError(f"{parameter} must not be empty")
    for key in entries:
        if len(key) > EXPRESSION_PLACEHOLDER_BYTES_MAX:
            raise ExpressionError(
                f"{parameter} contains invalid key: The expression attribute map contains a key that is "
                f"too long; size of key: {len(key.encode(errors='surrogatepass'))}"
            )
        if not form.fullmatch(key):
            raise ExpressionError(f'{parameter} contains invalid key: Syntax error; key: "{key}"')


def check_placeholders(bindings: Bindings, plans: Iterable[Plan]) -> None:
    """Refuse placeholders that no expression of the request uses; names are checked before values."""
    if bindings.names or bindings.values:
        plans = tuple(plans)
    if bindings.names:
        _check_used("ExpressionAttributeNames", bindings.names, [plan.names_used for plan in plans])
    if bindings.values:
        _check_used("ExpressionAttributeValues", bindings.values, [plan.values_used for plan in plans])


def _check_used(parameter: str, bound: Mapping[str, Any], used: list[frozenset[str]]) -> None:
    if len(used) == 1 and bound.keys() <= used[0]:
        return
    unused = [key for key in bound if not any(key in some for some in used)]
    if unused:
        raise ExpressionError(
            f"Value provided in {parameter} unused in expressions: keys: {{{', '.join(unused)}}}"
        )


class _CachedPlan(Generic[P]):
    """A plan, and the bindings it depends on."""

    __slots__ = ("names", "plan", "rules", "types")

    def __init__(self, plan: P, bindings: Bindings, rules: tuple[ValueRule, ...]) -> None:
        self.plan = plan
        self.names = tuple((ref, bindings.names[ref]) for ref in plan.names_used)
        self.types = tuple((ref, tag_of(bindings.values[ref])) for ref in plan.values_used)
        self.rules = rules


class _PlanCache(Generic[P]):
    """The plans of one kind by field and text; the oldest text is evicted first."""

    def __init__(self, make: Callable[[str, Bindings, str], tuple[P, tuple[ValueRule, ...]]]) -> None:
        self.make = make
        self.lock = Lock()  # held while adding; lookups need no lock
        self.kept: dict[tuple[str, str], tuple[_CachedPlan[P], ...]] = {}

    def plan(self, text: str, bindings: Bindings, field: str) -> P:
        key = (field, text)
        for cached in self.kept.get(key, ()):
            for ref, name in cached.names:
                if bindings.names.get(ref) != name:
                    break
            else:
                for ref, tag in cached.types:
                    value = bindings.values.get(ref)
                    if value is None or tag not in value:
                        break
                else:
                    for rule in cached.rules:
                        rule(bindings.values)
                    return cached.plan
        plan, rules = self.make(text, bindings, field)
        with self.lock:
            variants = self.kept.get(key, ())
            if not variants and len(self.kept) >= TEXTS_MAX:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = (_CachedPlan(plan, bindings, rules), *variants[: VARIANTS_MAX - 1])
        return plan


def compile_condition(
    text: str, bindings: Bindings, *, field: str = "ConditionExpression"
) -> CompiledCondition:
    """Compile a condition or filter."""
    return _conditions.plan(text, bindings, field)


def compile_update(text: str, bindings: Bindings) -> CompiledUpdate:
    """Compile an update."""
    return _updates.plan(text, bindings, "UpdateExpression")


def compile_projection(
    text: str, bindings: Bindings, *, field: str = "ProjectionExpression"
) -> CompiledProjection:
    """Compile a projection."""
    return _projections.plan(text, bindings, field)


def compile_key_condition(text: str, bindings: Bindings) -> KeyCondition:
    """Compile a key condition; its schema is applied later."""
    return _key_conditions.plan(text, bindings, "KeyConditionExpression")


def condition_of(tree: ConditionNode, types: Mapping[str, str], names: frozenset[str]) -> CompiledCondition:
    """Return the plan of a checked condition; `types` are those of its values."""
    test, operand_sets = compile_with_sets(tree, types)
    return CompiledCondition(
        tree, test, _attributes(tree), _nested_attributes(tree), names, frozenset(types), operand_sets
    )


def update_of(
    tree: UpdateNode, names: frozenset[str], values: frozenset[str], *, legacy: bool = False
) -> CompiledUpdate:
    """Return the plan of a checked update."""
    touched = tuple(steps_of(action.path) for action in tree.actions)
    return CompiledUpdate(
        tree=tree,
        change=compile_change(tree, legacy=legacy),
        touched=touched,
        attributes=_attributes(tree),
        written=frozenset(str(steps[0]) for steps in touched),
        nested=_nested_attributes(tree),
        removes_only=bool(tree.actions)
        and all(isinstance(action, Remove | DeleteElements) for action in tree.actions),
        copied=frozenset(
            str(steps[0])
            for action, steps in zip(tree.actions, touched, strict=True)
            if isinstance(action, Set) and isinstance(action.value, Path) and len(steps) == 1
        ),
        names_used=names,
        values_used=values,
    )


def projection_of(tree: ProjectionNode, names: frozenset[str]) -> CompiledProjection:
    """Return the plan of a checked projection."""
    pick = compile_picker(tuple(map(steps_of, tree.paths)))
    return CompiledProjection(tree, pick, _attributes(tree), _nested_attributes(tree), names)


def _make_condition(
    text: str, bindings: Bindings, field: str
) -> tuple[CompiledCondition, tuple[ValueRule, ...]]:
    check_text(text, field)
    parsed = parse_condition(text, field)
    checked = check_condition(parsed, bindings, field)
    types = {ref: tag_of(bindings.values[ref]) for ref in _value_refs(parsed.tree)}
    return condition_of(checked.tree, types, _name_refs(parsed.tree)), checked.value_rules


def _make_key_condition(
    text: str, bindings: Bindings, field: str
) -> tuple[KeyCondition, tuple[ValueRule, ...]]:
    check_text(text, field)
    parsed = parse_condition(text, field)
    checked = check_condition(parsed, bindings, field)
    clauses = clauses_of(checked.tree)
    plan = KeyCondition(
        clauses,
        frozenset(clause.name for clause in clauses),
        _name_refs(parsed.tree),
        _value_refs(parsed.tree),
    )
    return plan, checked.value_rules


def _make_update(text: str, bindings: Bindings, field: str) -> tuple[CompiledUpdate, tuple[ValueRule, ...]]:
    check_text(text, field)
    parsed = parse_update(text, field)
    checked = check_update(parsed, bindings, field)
    return update_of(checked.tree, _name_refs(parsed.tree), _value_refs(parsed.tree)), _NO_RULES


def _make_projection(
    text: str, bindings: Bindings, field: str
) -> tuple[CompiledProjection, tuple[ValueRule, ...]]:
    check_text(text, field)
    parsed = parse_projection(text, field)
    checked = check_projection(parsed, bindings, field)
    return projection_of(checked.tree, _name_refs(parsed.tree)), _NO_RULES


def _name_refs(tree: Tree) -> frozenset[str]:
    return frozenset(s.name for path in paths_of(tree) for s in path.steps if isinstance(s, NameRef))


def _value_refs(tree: Tree) -> frozenset[str]:
    return frozenset(term.name for term in terms_of(tree_operands(tree)) if isinstance(term, ValueRef))


def _attributes(tree: Tree) -> frozenset[str]:
    return frozenset(_head(path) for path in paths_of(tree))


def _nested_attributes(tree: Tree) -> frozenset[str]:
    return frozenset(_head(path) for path in paths_of(tree) if len(path.steps) > 1)


def _head(path: Path) -> str:
    return str(steps_of(path)[0])


_conditions = _PlanCache(_make_condition)
_key_conditions = _PlanCache(_make_key_condition)
_updates = _PlanCache(_make_update)
_projections = _PlanCache(_make_projection)
