"""Plans: expressions compiled once and found again.

A request brings its expressions as text every time, and nearly always the same texts. So a compiled
plan is kept by its text, with the names and the types of values it was checked with; it serves again
where those agree. Values are looked up when a plan is used, and only the rules that look at a value
are gone through again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from tavola.expressions.bindings import Bindings, Plan
from tavola.expressions.checker import ValueRule, check_condition, check_projection, check_text, check_update
from tavola.expressions.conditions import Condition, decider_of
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
from tavola.expressions.projections import Projection, pick_of
from tavola.expressions.updates import Update, change_of
from tavola.expressions.walks import paths_of, terms_of, tree_operands
from tavola.values import tag_of

TEXTS_MAX = 2048  # texts kept of each kind
VARIANTS_MAX = 8  # plans kept of one text

P = TypeVar("P", bound=Plan)

_NO_RULES: tuple[ValueRule, ...] = ()


class _Kept(Generic[P]):
    """A plan, and the bindings it was made with as far as it depends on them."""

    __slots__ = ("names", "plan", "rules", "types")

    def __init__(self, plan: P, bindings: Bindings, rules: tuple[ValueRule, ...]) -> None:
        self.plan = plan
        self.names = tuple((ref, bindings.names[ref]) for ref in plan.names_used)
        self.types = tuple((ref, tag_of(bindings.values[ref])) for ref in plan.values_used)
        self.rules = rules


class _Cache(Generic[P]):
    """The plans of one kind, by field and text; the oldest text leaves first."""

    def __init__(self, make: Callable[[str, Bindings, str], tuple[P, tuple[ValueRule, ...]]]) -> None:
        self.make = make
        self.lock = Lock()  # of those that add; finding needs none
        self.kept: dict[tuple[str, str], tuple[_Kept[P], ...]] = {}

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
            self.kept[key] = (_Kept(plan, bindings, rules), *variants[: VARIANTS_MAX - 1])
        return plan


def compile_condition(text: str, bindings: Bindings, *, field: str = "ConditionExpression") -> Condition:
    """Return a condition or filter ready to be evaluated; refuse what DynamoDB refuses of it."""
    return _conditions.plan(text, bindings, field)


def compile_update(text: str, bindings: Bindings) -> Update:
    """Return an update ready to be applied; refuse what DynamoDB refuses of it."""
    return _updates.plan(text, bindings, "UpdateExpression")


def compile_projection(text: str, bindings: Bindings, *, field: str = "ProjectionExpression") -> Projection:
    """Return a projection ready for items; refuse what DynamoDB refuses of it."""
    return _projections.plan(text, bindings, field)


def compile_key_condition(text: str, bindings: Bindings) -> KeyCondition:
    """Return a key condition ready to meet a schema; refuse what DynamoDB refuses of it by itself."""
    return _key_conditions.plan(text, bindings, "KeyConditionExpression")


def condition_of(tree: ConditionNode, types: Mapping[str, str], names: frozenset[str]) -> Condition:
    """Return the plan of a checked condition; `types` are those of the values it mentions."""
    test = decider_of(tree, types)
    return Condition(tree, test, _attributes(tree), _nested(tree), names, frozenset(types))


def update_of(
    tree: UpdateNode, names: frozenset[str], values: frozenset[str], *, legacy: bool = False
) -> Update:
    """Return the plan of a checked update."""
    touched = tuple(steps_of(action.path) for action in tree.actions)
    return Update(
        tree=tree,
        change=change_of(tree, legacy=legacy),
        touched=touched,
        attributes=_attributes(tree),
        written=frozenset(str(steps[0]) for steps in touched),
        nested=_nested(tree),
        takes_only=all(isinstance(action, Remove | Delete) for action in tree.actions),
        names_used=names,
        values_used=values,
    )


def projection_of(tree: ProjectionNode, names: frozenset[str]) -> Projection:
    """Return the plan of a checked projection."""
    pick = pick_of(tuple(map(steps_of, tree.paths)))
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


_conditions = _Cache(_make_condition)
_key_conditions = _Cache(_make_key_condition)
_updates = _Cache(_make_update)
_projections = _Cache(_make_projection)
