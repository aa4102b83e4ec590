"""Checks that need no item, in DynamoDB's order and words.

Each check returns the tree with its name placeholders replaced, and the few rules that depend on values rather than
types, which are checked again for every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NoReturn, TypeVar

from msgspec import Struct

from tavola.expressions.bindings import Bindings, Substitution
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    Add,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    InList,
    Leaf,
    NameRef,
    Operand,
    Path,
    ProjectionNode,
    Set,
    Tree,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.parser import Parsed
from tavola.expressions.paths import (
    calls_of,
    check_disjoint,
    leaves_of,
    operands_of,
    path_text,
    paths_of,
    steps_of,
    terms_of,
    tree_operands,
)
from tavola.expressions.renderer import is_reserved
from tavola.limits import (
    EXPRESSION_BYTES_MAX,
    EXPRESSION_IN_OPERANDS_MAX,
    EXPRESSION_OPERATORS_MAX,
    PATH_LEVELS_MAX,
)
from tavola.values import Value, compare, tag_of

LIST_INDEX_MAX = 2**31 - 1  # an index is a signed 32-bit integer

TreeT = TypeVar("TreeT", bound=Tree)
Values = Mapping[str, Value]
ValueRule = Callable[[Values], None]  # refuses values; keeps none, since it is cached with the plan

_CONDITION_ARITY = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}
_UPDATE_ARITY = {"if_not_exists": 2, "list_append": 2}
_ORDERED = ("S", "N", "B")
_TYPE_NAMES = "{S,SS,N,NS,B,BS,BOOL,NULL,L,M}"
_TYPES = _TYPE_NAMES.strip("{}").split(",")
# What DynamoDB prints for a type name that is not a valid value.
_ALL_TYPE_NAMES = (
    "{S,SS,N,NS,B,BS,BOOL,NULL,L,M,HD,DOUBLE,FLOAT,HDS,FS,DOUBLESET,DICT,DECIMAL,INT,DECIMALSET,INTSET}"
)
_LONG_TYPES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "L": "LIST",
    "M": "MAP",
    "NULL": "NULL",
    "BOOL": "BOOL",
}


class CheckedTree(Struct, Generic[TreeT], frozen=True):
    """A tree that passed its checks, and its rules about values."""

    tree: TreeT
    value_rules: tuple[ValueRule, ...] = ()


def check_text(text: str, field: str) -> None:
    """Refuse an empty or oversized text before it is parsed."""
    if not text:
        raise ExpressionError(f"Invalid {field}: The expression can not be empty;")
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > EXPRESSION_BYTES_MAX:
        raise ExpressionError(
            f"Invalid {field}: Expression size has exceeded the maximum allowed size; expression size: {size}"
        )


def check_condition(
    parsed: Parsed[ConditionNode], bindings: Bindings, field: str = "ConditionExpression"
) -> CheckedTree[ConditionNode]:
    """Check a condition, filter or key condition: first the whole, then each comparison."""
    check = _Check(bindings, field)
    check.form(parsed)
    if parsed.redundant:
        check.refuse("The expression has redundant parentheses;")
    leaves = tuple(leaves_of(parsed.tree))
    for leaf in leaves:
        check.known_functions(
            calls_of((leaf,)) if isinstance(leaf, FunctionCall) else calls_of(operands_of(leaf))
        )
    for leaf in leaves:
        check.well_used(leaf)
    check.no_reserved_word(parsed.tree)
    rules: list[ValueRule] = []
    for leaf in leaves:
        for term in terms_of(operands_of(leaf)):
            check.check_defined(term)
        rules += check.leaf(leaf)
    return CheckedTree(check.resolve(parsed.tree), tuple(rules))


def check_update(
    parsed: Parsed[UpdateNode], bindings: Bindings, field: str = "UpdateExpression"
) -> CheckedTree[UpdateNode]:
    """Check an update."""
    check = _Check(bindings, field)
    check.form(parsed)
    if parsed.redundant:
        check.refuse("The expression has redundant parentheses;")
    check.no_reserved_word(parsed.tree)
    operands = tuple(tree_operands(parsed.tree))
    calls = calls_of(operands)
    for call in calls:
        if call.function in _CONDITION_ARITY:
            check.refuse(f"The function is not allowed in an update expression; function: {call.function}")
        if call.function not in _UPDATE_ARITY:
            check.refuse(f"Invalid function name; function: {call.function}")
    for call in calls:
        for inner in call.operands:
            if isinstance(inner, FunctionCall) and inner.function == "list_append":
                check.refuse_use(inner.function)
    if parsed.repeated:
        check.refuse(f'The "{parsed.repeated}" section can only be used once in an update expression;')
    for kind in (Path, ValueRef):
        for term in terms_of(operands):
            if isinstance(term, kind):
                check.check_defined(term)
    tree = check.resolve(parsed.tree)
    check_disjoint([steps_of(action.path) for action in tree.actions], field)
    for action in tree.actions:
        if isinstance(action, Add | DeleteElements):
            check.amount(action)
    for action in tree.actions:
        if isinstance(action, Set):
            check.set_value(action.value)
    return CheckedTree(tree)


def check_projection(
    parsed: Parsed[ProjectionNode], bindings: Bindings, field: str = "ProjectionExpression"
) -> CheckedTree[ProjectionNode]:
    """Check a projection."""
    check = _Check(bindings, field)
    check.form(parsed)
    check.no_reserved_word(parsed.tree)
    for path in parsed.tree.paths:
        check.check_defined(path)
    tree = check.resolve(parsed.tree)
    check_disjoint(map(steps_of, tree.paths), field)
    return CheckedTree(tree)


def _check_bounds(field: str, lower: str, upper: str, values: Values) -> None:
    low, high = values[lower], values[upper]
    order = compare(low, high)
    if order is not None and order <= 0:
        return
    broken = (
        "same data type for lower and upper bounds"
        if order is None
        else "upper bound to be greater than or equal to lower bound"
    )
    raise ExpressionError(
        f"Invalid {field}: The BETWEEN operator requires {broken}; lower bound operand: {_render_value(low)}, "
        f"upper bound operand: {_render_value(high)}"
    )


def _check_type_name(field: str, ref: str, values: Values) -> None:
    name = values[ref]["S"]
    if name not in _TYPES:
        raise ExpressionError(
            f"Invalid {field}: Invalid attribute type name found; type: {name}, valid types: {_TYPE_NAMES}"
        )


def _render_value(value: Value) -> str:
    tag = tag_of(value)
    return f"AttributeValue: {{{tag}:{value[tag]}}}"


class _Check:
    """The checks of one text with its placeholders."""

    def __init__(self, bindings: Bindings, field: str) -> None:
        self.names = bindings.names
        self.values = bindings.values
        self.field = field

    def refuse(self, sentence: str) -> NoReturn:
        raise ExpressionError(f"Invalid {self.field}: {sentence}")

    def refuse_use(self, function: str) -> NoReturn:
        self.refuse(f"The function is not allowed to be used this way in an expression; function: {function}")

    def needs_path(self, function: str) -> NoReturn:
        self.refuse(f"Operator or function requires a document path; operator or function: {function}")

    def resolve(self, tree: TreeT) -> TreeT:
        return Substitution(self.names).tree(tree)

    def form(self, parsed: Parsed[TreeT]) -> None:
        for index in parsed.indexes:
            if int(index) > LIST_INDEX_MAX:
                self.refuse(f"List index is not within the allowable range; index: [{index}]")
        if parsed.operators > EXPRESSION_OPERATORS_MAX:
            # DynamoDB stops counting here.
            self.refuse(
                f"The expression contains too many operators; operator count: {EXPRESSION_OPERATORS_MAX + 1}"
            )
        for path in paths_of(parsed.tree):
            if len(path.steps) > PATH_LEVELS_MAX:
                self.refuse(
                    f"The document path has too many nesting levels; nesting levels: {len(path.steps)}"
                )

    def no_reserved_word(self, tree: Tree) -> None:
        for path in paths_of(tree):
            for step in path.steps:
                if isinstance(step, str) and is_reserved(step):
                    self.refuse(f"Attribute name is a reserved keyword; reserved keyword: {step}")

    def check_defined(self, term: Operand) -> None:
        if isinstance(term, ValueRef) and term.name not in self.values:
            self.refuse(
                "An expression attribute value used in expression is not defined; "
                f"attribute value: {term.name}"
            )
        if isinstance(term, Path):
            for step in term.steps:
                if isinstance(step, NameRef) and step.name not in self.names:
                    self.refuse(
                        "An expression attribute name used in the document path is not defined; "
                        f"attribute name: {step.name}"
                    )

    def type_of(self, operand: Operand) -> str | None:
        """Return the type that an operand has for any item; None if it depends on the item."""
        if isinstance(operand, ValueRef):
            return tag_of(self.values[operand.name])
        if isinstance(operand, FunctionCall):
            return "N" if operand.function == "size" else "BOOL"
        if isinstance(operand, Truth):
            return "BOOL"
        return None

    def check_type(self, function: str, operand: Operand, allowed: tuple[str, ...]) -> None:
        tag = self.type_of(operand)
        if tag is not None and tag not in allowed:
            self.wrong_type(function, tag)

    def wrong_type(self, function: str, tag: str) -> NoReturn:
        self.refuse(
            "Incorrect operand type for operator or function; "
            f"operator or function: {function}, operand type: {tag}"
        )

    def refuse_count(self, function: str, count: int) -> NoReturn:
        self.refuse(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {function}, number of operands: {count}"
        )

    # Conditions

    def known_functions(self, calls: list[FunctionCall]) -> None:
        for call in calls:
            if call.function in _UPDATE_ARITY:
                self.refuse(
                    f"The function is not allowed in a condition expression; function: {call.function}"
                )
            if call.function not in _CONDITION_ARITY:
                self.refuse(f"Invalid function name; function: {call.function}")

    def well_used(self, leaf: Leaf) -> None:
        """Only `size` returns a value, and it is not a condition by itself."""
        for call in (*calls_of(operands_of(leaf)), leaf):
            for operand in operands_of(call):
                if isinstance(operand, FunctionCall) and operand.function != "size":
                    self.refuse_use(operand.function)
        if isinstance(leaf, FunctionCall) and leaf.function == "size":
            self.refuse_use(leaf.function)

    def leaf(self, leaf: Leaf) -> list[ValueRule]:
        """Check one comparison or call: operand counts, then distinctness, then types."""
        nodes: tuple[Leaf, ...] = (*calls_of(operands_of(leaf)), leaf)
        for node in nodes:
            if isinstance(node, FunctionCall) and len(node.operands) != _CONDITION_ARITY[node.function]:
                self.refuse_count(node.function, len(node.operands))
            if isinstance(node, InList) and len(node.choices) > EXPRESSION_IN_OPERANDS_MAX:
                self.refuse_count("IN", len(node.choices) + 1)
        for node in nodes:
            self.distinct(node)
        rules: list[ValueRule] = []
        for node in nodes:
            rules += self.types(node)
        return rules

    def distinct(self, leaf: Leaf) -> None:
        first, *others = operands_of(leaf)
        if not isinstance(first, Path):
            return
        replaced = Substitution(self.names).path
        path = replaced(first)
        if any(isinstance(other, Path) and replaced(other) == path for other in others):
            match leaf:
                case Comparison(operator):
                    name = operator
                case FunctionCall(function):
                    name = function
                case Between():
                    name = "BETWEEN"
                case _:
                    name = "IN"
            self.refuse(
                "The first operand must be distinct from the remaining operands for this operator or "
                f"function; operator: {name}, first operand: {path_text(steps_of(path))}"
            )

    def types(self, leaf: Leaf) -> list[ValueRule]:
        match leaf:
            case Comparison(operator, left, right) if operator not in ("=", "<>"):
                self.check_type(operator, left, _ORDERED)
                self.check_type(operator, right, _ORDERED)
            case Between(operand, lower, upper):
                for part in (operand, lower, upper):
                    self.check_type("BETWEEN", part, _ORDERED)
                if isinstance(lower, ValueRef) and isinstance(upper, ValueRef):
                    return [self.value_rule(partial(_check_bounds, self.field, lower.name, upper.name))]
            case FunctionCall("attribute_exists" | "attribute_not_exists" as function, (operand,)):
                if not isinstance(operand, Path):
                    self.needs_path(function)
            case FunctionCall("begins_with", (first, second)):
                self.check_type("begins_with", first, ("S", "B"))
                self.check_type("begins_with", second, ("S", "B"))
            case FunctionCall("size", (operand,)):
                tag = self.type_of(operand)
                if tag in ("N", "BOOL", "NULL"):
                    self.wrong_type("size", tag)
            case FunctionCall("attribute_type", (_, operand)):
                if not isinstance(operand, ValueRef):
                    self.wrong_type("attribute_type", self.type_of(operand) or _ALL_TYPE_NAMES)
                self.check_type("attribute_type", operand, ("S",))
                return [self.value_rule(partial(_check_type_name, self.field, operand.name))]
            case _:
                pass
        return []

    def value_rule(self, rule: ValueRule) -> ValueRule:
        """Check a rule against the current values and return it."""
        rule(self.values)
        return rule

    # Updates

    def amount(self, action: Add | DeleteElements) -> None:
        tag = self.type_of(action.value)
        operator = "ADD" if isinstance(action, Add) else "DELETE"
        if tag in _LONG_TYPES and not (operator == "ADD" and tag == "N"):
            # DELETE's error also names the type set of ADD.
            self.refuse(
                f"Incorrect operand type for operator or function; operator: {operator}, "
                f"operand type: {_LONG_TYPES[tag]}, typeSet: ALLOWED_FOR_ADD_OPERAND"
            )

    def set_value(self, value: Operand | Arithmetic) -> None:
        operands = (value.left, value.right) if isinstance(value, Arithmetic) else (value,)
        for call in calls_of(operands):
            if len(call.operands) != _UPDATE_ARITY[call.function]:
                self.refuse_count(call.function, len(call.operands))
            if call.function == "if_not_exists" and not isinstance(call.operands[0], Path):
                self.needs_path(call.function)
            if call.function == "list_append":
                for operand in call.operands:
                    if isinstance(operand, ValueRef):
                        self.check_type(call.function, operand, ("L",))
        if isinstance(value, Arithmetic):
            for operand in operands:
                if isinstance(operand, ValueRef):
                    self.check_type(value.operator, operand, ("N",))
