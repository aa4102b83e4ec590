"""Statements translated to the trees of conditions, updates and projections.

Everything that depends on the text alone is done here, once per text: names become placeholders, since expressions'
reserved words do not apply, and literals become values beside the parameters. So statements and native requests share
checks, evaluation and plans.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    InList,
    NameRef,
    Not,
    Operand,
    Or,
    Path,
    Remove,
    Set,
    Step,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.partiql.errors import StatementError, StatementPosition
from tavola.expressions.partiql.keywords import TYPES
from tavola.expressions.partiql.literals import members_of, value_of
from tavola.expressions.partiql.nodes import (
    Assignment,
    CollectionLiteral,
    Expression,
    FunctionExpression,
    InfixOperator,
    Name,
    NestedStatement,
    Parameter,
    PathExpression,
    PrefixOperator,
    Removal,
    Scalar,
    Statement,
    Struct,
    Typed,
)
from tavola.expressions.partiql.parser import KEPT_CHARACTERS_MAX, STATEMENTS_MAX, parse_statement
from tavola.limits import STATEMENT_IN_VALUES_MAX
from tavola.values import Value

_LIST_INDEX_MAX = 2**31 - 1
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
_CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"}
)
_UPDATE_FUNCTIONS = frozenset({"list_append", "if_not_exists"})
_SET_FUNCTIONS = frozenset({"set_add", "set_delete"})

Steps = tuple[str | int, ...]


class SelectedColumn(msgspec.Struct, frozen=True):
    """One column of a SELECT: its path and its result name."""

    steps: Steps
    name: str


class Translation(msgspec.Struct, frozen=True):
    """The trees of a statement, with placeholders for names (`#0`), literals (`:0`) and parameters (`?0`)."""

    statement: Statement
    names: dict[str, str]
    literals: dict[str, Value]
    where: ConditionNode | None
    update: UpdateNode | None
    item: tuple[tuple[str, ValueRef], ...]
    columns: tuple[SelectedColumn, ...] | None
    orderings: tuple[tuple[str, bool], ...]  # attribute, and whether it is descending
    # Parameters that must be sets: function and position
    sets: tuple[tuple[ValueRef, str, StatementPosition], ...]


def translate(statement: Statement) -> Translation:
    """Return a statement's trees; refuse what DynamoDB's PartiQL does not have."""
    if len(statement.text) > KEPT_CHARACTERS_MAX:
        return _Translator().statement(statement)
    return _translate(statement.text)


@lru_cache(maxsize=STATEMENTS_MAX)
def _translate(text: str) -> Translation:
    return _Translator().statement(parse_statement(text))


def parameter_ref(position: int) -> str:
    """Return the placeholder of a parameter."""
    return f"?{position}"


class _Translator(msgspec.Struct):
    names: dict[str, str] = msgspec.field(default_factory=dict)
    literals: dict[str, Value] = msgspec.field(default_factory=dict)
    refs: dict[str, NameRef] = msgspec.field(default_factory=dict)
    sets: list[tuple[ValueRef, str, StatementPosition]] = msgspec.field(default_factory=list)

    def statement(self, statement: Statement) -> Translation:
        if statement.refused is not None:
            clause, place = statement.refused
            raise StatementError(f"Unsupported clause: {clause}", place)
        self.check_returning(statement)
        columns = self.columns(statement)
        item = tuple(
            (name, self.parameter(value) if isinstance(value, Parameter) else self.literal(value))
            for name, value in (members_of(statement.item) if statement.item is not None else ())
        )
        update = UpdateNode(tuple(map(self.change, statement.changes))) if statement.changes else None
        return Translation(
            statement=statement,
            names=self.names,
            literals=self.literals,
            where=None if statement.where is None else self.condition(statement.where),
            update=update,
            item=item,
            columns=columns,
            orderings=tuple(
                (self.ordering(ordering.expression), ordering.descending) for ordering in statement.orderings
            ),
            sets=tuple(self.sets),
        )

    def check_returning(self, statement: Statement) -> None:
        returning = statement.returning
        if returning is None:
            return
        if statement.kind == "insert":
            raise StatementError("RETURNING is not supported in INSERT")
        if statement.kind == "delete" and (returning.part, returning.image) != ("ALL", "OLD"):
            raise StatementError(
                f"Invalid returning clause: {returning.text}. "
                "Only RETURNING ALL OLD * is allowed in DELETE statements."
            )

    # Names and values

    def ref(self, name: str) -> NameRef:
        if name not in self.refs:
            self.refs[name] = NameRef(f"#{len(self.refs)}")
            self.names[self.refs[name].name] = name
        return self.refs[name]

    def literal(self, expression: Expression) -> ValueRef:
        value = value_of(expression)
        ref = ValueRef(f":{len(self.literals)}")
        self.literals[ref.name] = value
        return ref

    def parameter(self, parameter: Parameter) -> ValueRef:
        return ValueRef(parameter_ref(parameter.position))

    def path(self, expression: Expression) -> Path:
        steps: list[Step] = [
            self.ref(step) if isinstance(step, str) else step for step in steps_of(expression)
        ]
        return Path(tuple(steps))

    # SELECT

    def columns(self, statement: Statement) -> tuple[SelectedColumn, ...] | None:
        if statement.columns is None:
            return None
        selected: dict[str, SelectedColumn] = {}
        for column in statement.columns:
            steps = steps_of(column.expression)
            last = max(position for position, step in enumerate(steps) if isinstance(step, str))
            name = str(steps[last]) + "".join(f"[{index}]" for index in steps[last + 1 :])
            if name in selected:
                raise StatementError(f"Duplicate identifiers in select clause: {name}")
            selected[name] = SelectedColumn(steps, name)
        return tuple(selected.values())

    def ordering(self, expression: Expression) -> str:
        if not isinstance(expression, Name):
            raise StatementError("Unexpected path component", expression.place)
        return expression.text

    # WHERE

    def condition(self, expression: Expression) -> ConditionNode:
        match expression:
            case InfixOperator("and" | "or" as operator, operands):
                parts = tuple(map(self.condition, operands))
                return And(parts) if operator == "and" else Or(parts)
            case PrefixOperator("not", operand):
                return Not(self.condition(operand))
            case InfixOperator(operator, (left, right)) if operator in _COMPARATORS:
                return Comparison(operator, self.operand(left), self.operand(right))
            case InfixOperator("between" | "not between" as operator, (operand, lower, upper)):
                between = Between(self.operand(operand), self.operand(lower), self.operand(upper))
                return between if operator == "between" else Not(between)
            case InfixOperator("in" | "not in" as operator, (operand, choices)):
                member = self.member(operand, choices)
                return member if operator == "in" else Not(member)
            case Typed(operand, type_, negated):
                typed = self.type_test(operand, type_, expression.place)
                return Not(typed) if negated else typed
            case FunctionExpression():
                return self.call(expression)
            case InfixOperator(operator) | PrefixOperator(operator):
                raise StatementError(
                    f"Unsupported operator in Condition Expression. Operator: {operator.upper()}",
                    expression.place,
                )
            case NestedStatement():
                raise StatementError(
                    f"Unsupported operation: {expression.kind.capitalize()}", expression.place
                )
            case _:
                raise StatementError("A condition must compare or test something", expression.place)

    def member(self, operand: Expression, choices: Expression) -> InList:
        if not isinstance(choices, CollectionLiteral):
            raise StatementError("The IN operator requires a list of values", choices.place)
        if len(choices.items) > STATEMENT_IN_VALUES_MAX:
            raise StatementError(
                "The IN operator is provided with too many operands; "
                f"number of operands: {len(choices.items)}"
            )
        if not choices.items:
            raise StatementError("The IN operator requires a list of values", choices.place)
        return InList(self.operand(operand), tuple(map(self.operand, choices.items)))

    def type_test(self, operand: Expression, type_: str, place: StatementPosition) -> ConditionNode:
        path = self.operand(operand)
        if type_ == "missing":
            return FunctionCall("attribute_not_exists", (path,))
        tags = TYPES[type_]
        if not tags:
            raise StatementError(f"Unsupported data type for IS operator: {type_.upper()}", place)
        tests = tuple(
            FunctionCall("attribute_type", (path, self.literal(Scalar("S", tag, place)))) for tag in tags
        )
        return tests[0] if len(tests) == 1 else Or(tests)

    def call(self, function: FunctionExpression) -> FunctionCall:
        name = function.name.lower()
        if name not in _CONDITION_FUNCTIONS:
            raise StatementError(f"Unrecognized function: {function.name}", function.place)
        return FunctionCall(name, tuple(map(self.operand, function.operands)))

    def operand(self, expression: Expression) -> Operand:
        match expression:
            case Name() | PathExpression():
                return self.path(expression)
            case Parameter():
                return self.parameter(expression)
            case Scalar() | CollectionLiteral() | Struct():
                return self.literal(expression)
            case FunctionExpression(name) if name.lower() == "size":
                return self.call(expression)
            case _:
                return Truth(self.condition(expression))

    # UPDATE

    def change(self, change: Assignment | Removal) -> Action:
        path = self.path(change.path)
        if isinstance(change, Removal):
            return Remove(path)
        value = change.value
        if isinstance(value, FunctionExpression) and value.name.lower() in _SET_FUNCTIONS:
            return self.set_change(path, value)
        if isinstance(value, InfixOperator) and value.operator in ("+", "-"):
            left, right = value.operands
            return Set(
                path, Arithmetic(value.operator, self.update_operand(left), self.update_operand(right))
            )
        return Set(path, self.update_operand(value))

    def set_change(self, path: Path, function: FunctionExpression) -> Action:
        name = function.name.upper()
        if len(function.operands) != 2:
            raise StatementError(f"{name} must have exactly two arguments", function.place)
        first, second = function.operands
        if not isinstance(first, Name | PathExpression) or self.path(first) != path:
            raise StatementError(
                f"The first argument to {name} must equal the assignment value", function.place
            )
        if isinstance(second, Parameter):
            value = self.parameter(second)
            self.sets.append((value, name, first.place))
        elif isinstance(second, CollectionLiteral) and second.kind == "bag":
            value = self.literal(second)
        else:
            raise not_a_set(name, first.place)
        return Add(path, value) if name == "SET_ADD" else DeleteElements(path, value)

    def update_operand(self, expression: Expression) -> Operand:
        match expression:
            case Name() | PathExpression():
                return self.path(expression)
            case Parameter():
                return self.parameter(expression)
            case Scalar() | CollectionLiteral() | Struct():
                return self.literal(expression)
            case FunctionExpression(name, operands) if name.lower() in _UPDATE_FUNCTIONS:
                return FunctionCall(name.lower(), tuple(map(self.update_operand, operands)))
            case FunctionExpression(name):
                raise StatementError(f"Unrecognized function: {name}", expression.place)
            case PrefixOperator(operator) | InfixOperator(operator):
                raise StatementError(
                    f"Unsupported operator in Update Expression. Operator: {operator.upper()}",
                    expression.place,
                )
            case _:
                raise StatementError("IS operator is not supported in update expressions", expression.place)


def not_a_set(function: str, place: StatementPosition) -> StatementError:
    """Return the error for an operand that must be a set.

    DynamoDB gives the position of the previous argument.
    """
    return StatementError(f"The second argument to {function} must be a value with type SET", place)


def steps_of(expression: Expression) -> Steps:
    """Return the steps of a document path; refuse any other expression."""
    match expression:
        case Name(text):
            return (text,)
        case PathExpression(Name(text), steps):
            return (text, *(_step(step, expression.place) for step in steps))
        case _:
            raise StatementError("Unexpected path component", expression.place)


def _step(step: Name | Expression | None, place: StatementPosition) -> str | int:
    match step:
        case Name(text):
            return text
        case Scalar("N", text) if text.lstrip("-").isdigit():
            digits = text.lstrip("-").lstrip("0") or "0"
            if digits != "0" and (text.startswith("-") or len(digits) > 10 or int(digits) > _LIST_INDEX_MAX):
                raise StatementError(
                    f"List index is not within the allowable range; index: [{text}]", step.place
                )
            return int(digits)
        case _:
            raise StatementError("Unexpected path component", place if step is None else step.place)
