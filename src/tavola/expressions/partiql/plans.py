"""Statements compiled with their parameters to the plans of native requests.

A plan is cached by the text and the types of its parameters, like those of expressions; rules about values are
checked every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from msgspec import Struct, field

from tavola.expressions.bindings import Bindings
from tavola.expressions.checker import ValueRule, check_condition, check_update
from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    And,
    ConditionNode,
    FunctionCall,
    Or,
    Path,
    ProjectionNode,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.parser import Parsed
from tavola.expressions.partiql.errors import StatementError
from tavola.expressions.partiql.nodes import Statement
from tavola.expressions.partiql.parser import KEPT_CHARACTERS_MAX, STATEMENTS_MAX
from tavola.expressions.partiql.translation import (
    SelectedColumn,
    Translation,
    not_a_set,
    parameter_ref,
    translate,
)
from tavola.expressions.paths import compile_reader, terms_of, tree_operands
from tavola.expressions.plans import condition_of, update_of
from tavola.expressions.projections import CompiledProjection, Pick
from tavola.expressions.updates import CompiledUpdate
from tavola.values import Item, Value, tag_of

_CONDITION = "ConditionExpression"
_UPDATE = "UpdateExpression"
_SETS = ("SS", "NS", "BS")
_NONE: frozenset[str] = frozenset()
# DynamoDB lists type names in a different order here than for expressions.
_TYPE_NAMES = ("{S,SS,N,NS,B,BS,BOOL,NULL,L,M}", "{N,BS,L,B,NULL,M,S,SS,NS,BOOL}")


class PreparedStatement(Struct, frozen=True):
    """The plans of a statement, independent of its parameters' values."""

    translation: Translation
    where: CompiledCondition | None
    update: CompiledUpdate | None
    projection: CompiledProjection | None
    rules: tuple[ValueRule, ...]
    guards: dict[str, CompiledCondition] = field(default_factory=dict)  # built on demand, by key attribute


class StatementPlan(Struct, frozen=True):
    """A compiled statement with its values."""

    prepared: PreparedStatement
    bindings: Bindings

    @property
    def statement(self) -> Statement:
        """The parsed statement."""
        return self.prepared.translation.statement

    @property
    def where(self) -> CompiledCondition | None:
        """The condition of its WHERE clause."""
        return self.prepared.where

    @property
    def update(self) -> CompiledUpdate | None:
        """The update of SET and REMOVE."""
        return self.prepared.update

    @property
    def projection(self) -> CompiledProjection | None:
        """The projection of a SELECT, None for all attributes."""
        return self.prepared.projection

    @property
    def selected_attributes(self) -> tuple[str, ...]:
        """The top-level attributes of a SELECT, in order."""
        columns = self.prepared.translation.columns or ()
        return tuple(dict.fromkeys(str(column.steps[0]) for column in columns))

    @property
    def orderings(self) -> tuple[tuple[str, bool], ...]:
        """The attributes of ORDER BY, and whether each is descending."""
        return self.prepared.translation.orderings

    @property
    def item(self) -> Item:
        """Return the item of an INSERT, unchecked, as a new object."""
        values = self.bindings.values
        return {name: values[ref.name] for name, ref in self.prepared.translation.item}

    def write_condition(self, hash_name: str) -> CompiledCondition:
        """Return the condition of a write: its WHERE clause, and whether the item must exist.

        INSERT requires that it does not exist, UPDATE and EXISTS that it does; DELETE accepts both.
        """
        guards = self.prepared.guards
        if hash_name not in guards:
            guards[hash_name] = self._guard(hash_name)
        return guards[hash_name]

    def _guard(self, hash_name: str) -> CompiledCondition:
        absent = FunctionCall("attribute_not_exists", (Path((hash_name,)),))
        exists = FunctionCall("attribute_exists", (Path((hash_name,)),))
        if self.where is None:
            return condition_of(absent, {}, _NONE)
        tree = self.where.tree
        guarded = Or((absent, tree)) if self.statement.kind == "delete" else And((exists, tree))
        types = {ref: tag_of(self.bindings.values[ref]) for ref in self.where.values_used}
        return condition_of(guarded, types, _NONE)


TreeT = TypeVar("TreeT", ConditionNode, UpdateNode)

_kept: dict[tuple[str, tuple[str, ...]], PreparedStatement] = {}
_lock = Lock()


def compile_statement(statement: Statement, parameters: Sequence[Value]) -> StatementPlan:
    """Compile a statement, raising DynamoDB's errors that need no table.

    The parameters are already checked.
    """
    translation = translate(statement)
    if statement.parameters != len(parameters):
        raise StatementError("Number of parameters in request and statement don't match.")
    values = dict(translation.literals)
    for position, value in enumerate(parameters):
        values[parameter_ref(position)] = value
    bindings = Bindings(translation.names, values)
    key = (statement.text, tuple(map(tag_of, parameters)))
    prepared = _kept.get(key)
    try:
        if prepared is None:
            prepared = _prepare(translation, bindings)
            _keep(key, prepared)
        else:
            for rule in prepared.rules:
                rule(values)
    except StatementError:
        raise
    except ExpressionError as error:
        raise StatementError(_statement_error(error)) from error
    return StatementPlan(prepared, bindings)


def _keep(key: tuple[str, tuple[str, ...]], prepared: PreparedStatement) -> None:
    if len(key[0]) > KEPT_CHARACTERS_MAX:
        return
    with _lock:
        if len(_kept) >= STATEMENTS_MAX:
            del _kept[next(iter(_kept))]
        _kept[key] = prepared


def _prepare(translation: Translation, bindings: Bindings) -> PreparedStatement:
    for ref, function, place in translation.sets:
        if tag_of(bindings.values[ref.name]) not in _SETS:
            raise not_a_set(function, place)
    update: CompiledUpdate | None = None
    where: CompiledCondition | None = None
    rules: tuple[ValueRule, ...] = ()
    if translation.update is not None:
        checked_update = check_update(_as_parsed(translation.update), bindings, _UPDATE)
        update = update_of(checked_update.tree, _NONE, _NONE)
    if translation.where is not None:
        checked = check_condition(_as_parsed(translation.where), bindings, _CONDITION)
        types = {ref: tag_of(bindings.values[ref]) for ref in _refs(translation.where)}
        where = condition_of(checked.tree, types, _NONE)
        rules = checked.value_rules
    projection = None if translation.columns is None else _projection(translation.columns)
    return PreparedStatement(translation, where, update, projection, rules)


def _as_parsed(tree: TreeT) -> Parsed[TreeT]:
    return Parsed(tree, redundant=False, operators=0, repeated=None, indexes=())


def _refs(tree: ConditionNode) -> set[str]:
    return {term.name for term in terms_of(tree_operands(tree)) if isinstance(term, ValueRef)}


def _statement_error(error: ExpressionError) -> str:
    """Return an expression error in the words of statements, which have no parameter name."""
    text = str(error)
    for parameter in (_CONDITION, _UPDATE):
        text = text.removeprefix(f"Invalid {parameter}: ")
    return text.replace(*_TYPE_NAMES)


def _projection(columns: tuple[SelectedColumn, ...]) -> CompiledProjection:
    tree = ProjectionNode(tuple(Path(column.steps) for column in columns))
    attributes = frozenset(str(column.steps[0]) for column in columns)
    nested = frozenset(str(column.steps[0]) for column in columns if len(column.steps) > 1)
    return CompiledProjection(tree, _pick(columns), attributes, nested, _NONE)


def _pick(columns: tuple[SelectedColumn, ...]) -> Pick:
    """Return the function that selects an item's columns under their result names."""
    readers: tuple[tuple[str, Callable[[Item], Value | None]], ...] = tuple(
        (column.name, compile_reader(column.steps)) for column in columns
    )

    def pick(item: Item) -> Item:
        members = ((name, read(item)) for name, read in readers)
        return {name: value for name, value in members if value is not None}

    return pick
