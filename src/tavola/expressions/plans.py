"""Compiled expressions, cached.

A request carries its expressions as text, and programs repeat the same texts. So a compiled plan is cached by its
text, with the names and the types of values it was checked with, and reused where those agree. Values are looked up
when a plan is used; only the rules about values are checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from tavola.expressions.bindings import Bindings, Plan
from tavola.expressions.checker import ValueRule, check_condition, check_projection, check_text, check_update
from tavola.expressions.conditions import Condition, compile_decider
from tavola.expressions.key_conditions import KeyCondition, clauses_of
from tavola.expressions.nodes import (
    ConditionNode,
    Delete,
    NameRef,
    Path,
    ProjectionNode,
    Remove,
    Tree,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.parser import parse_condition, parse_projection, parse_update
from tavola.expressions.paths import steps_of
from tavola.expressions.projections import Projection, compile_picker
from tavola.expressions.updates import Update, compile_change
from tavola.expressions.walks import paths_of, terms_of, tree_operands
from tavola.values import tag_of

TEXTS_MAX = 2048  # cached texts of each kind
VARIANTS_MAX = 8  # cached plans per text

P = TypeVar("P", bound=Plan)

_NO_RULES: tuple[ValueRule, ...] = ()


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
        for kept in self.kept.get(key, ()):
            for ref, name in kept.names:
                if bindings.names.get(ref) != name:
                    break
            else:
                for ref, tag in kept.types:
                    value = bindings.values.get(ref)
                    if value is None or tag not in value:
                        break
                else:
                    for rule in kept.rules:
                        rule(bindings.values)
                    return kept.plan
        plan, rules = self.make(text, bindings, field)
        with self.lock:
            variants = self.kept.get(key, ())
            if not variants and len(self.kept) >= TEXTS_MAX:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = (_CachedPlan(plan, bindings, rules), *variants[: VARIANTS_MAX - 1])
        return plan


def compile_condition(text: str, bindings: Bindings, *, field: str = "ConditionExpression") -> Condition:
    """Compile a condition or filter."""
    return _conditions.plan(text, bindings, field)


def compile_update(text: str, bindings: Bindings) -> Update:
    """Compile an update."""
    return _updates.plan(text, bindings, "UpdateExpression")


def compile_projection(text: str, bindings: Bindings, *, field: str = "ProjectionExpression") -> Projection:
    """Compile a projection."""
    return _projections.plan(text, bindings, field)


def compile_key_condition(text: str, bindings: Bindings) -> KeyCondition:
    """Compile a key condition; its schema is applied later."""
    return _key_conditions.plan(text, bindings, "KeyConditionExpression")


def condition_of(tree: ConditionNode, types: Mapping[str, str], names: frozenset[str]) -> Condition:
    """Return the plan of a checked condition; `types` are those of its values."""
    test = compile_decider(tree, types)
    return Condition(tree, test, _attributes(tree), _nested(tree), names, frozenset(types))


def update_of(
    tree: UpdateNode, names: frozenset[str], values: frozenset[str], *, legacy: bool = False
) -> Update:
    """Return the plan of a checked update."""
    touched = tuple(steps_of(action.path) for action in tree.actions)
    return Update(
        tree=tree,
        change=compile_change(tree, legacy=legacy),
        touched=touched,
        attributes=_attributes(tree),
        written=frozenset(str(steps[0]) for steps in touched),
        nested=_nested(tree),
        removes_only=all(isinstance(action, Remove | Delete) for action in tree.actions),
        names_used=names,
        values_used=values,
    )


def projection_of(tree: ProjectionNode, names: frozenset[str]) -> Projection:
    """Return the plan of a checked projection."""
    pick = compile_picker(tuple(map(steps_of, tree.paths)))
    return Projection(tree, pick, _attributes(tree), _nested(tree), names)


def _make_condition(text: str, bindings: Bindings, field: str) -> tuple[Condition, tuple[ValueRule, ...]]:
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


def _make_update(text: str, bindings: Bindings, field: str) -> tuple[Update, tuple[ValueRule, ...]]:
    check_text(text, field)
    parsed = parse_update(text, field)
    checked = check_update(parsed, bindings, field)
    return update_of(checked.tree, _name_refs(parsed.tree), _value_refs(parsed.tree)), _NO_RULES


def _make_projection(text: str, bindings: Bindings, field: str) -> tuple[Projection, tuple[ValueRule, ...]]:
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


def _nested(tree: Tree) -> frozenset[str]:
    return frozenset(_head(path) for path in paths_of(tree) if len(path.steps) > 1)


def _head(path: Path) -> str:
    return str(steps_of(path)[0])


_conditions = _PlanCache(_make_condition)
_key_conditions = _PlanCache(_make_key_condition)
_updates = _PlanCache(_make_update)
_projections = _PlanCache(_make_projection)
