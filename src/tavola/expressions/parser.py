"""Tokens to trees: condition, key condition, update, projection.

The parser has its own stack, so deep nesting cannot exhaust Python's. It raises syntax errors only. Other errors are
noted in `Parsed` for the checker, because DynamoDB reports them in a fixed order.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, NoReturn, TypeVar

from msgspec import Struct

from tavola.expressions.errors import ExpressionError
from tavola.expressions.lexer import END, NAME, NAME_REF, NUMBER, VALUE_REF, Token, lex
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
    ProjectionNode,
    Remove,
    Set,
    Step,
    UpdateNode,
    ValueRef,
)

T = TypeVar("T")

COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
_CONDITION_KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"})
_SECTIONS = frozenset({"SET", "REMOVE", "ADD", "DELETE"})


class Parsed(Struct, Generic[T], frozen=True):
    """A tree, and the facts about its text that the checker needs."""

    tree: T
    redundant: bool  # parentheses directly around parentheses
    operators: int  # operators and functions, as DynamoDB counts them
    repeated: str | None  # the first section that an update uses twice
    indexes: tuple[str, ...]  # list indexes as written


def parse_condition(text: str, field: str = "ConditionExpression") -> Parsed[ConditionNode]:
    """Parse a condition, a filter or a key condition."""
    parser = _Parser(text, field, _CONDITION_KEYWORDS)
    return parser.done(parser.condition())


def parse_update(text: str, field: str = "UpdateExpression") -> Parsed[UpdateNode]:
    """Parse an update."""
    parser = _Parser(text, field, _SECTIONS)
    return parser.done(parser.update())


def parse_projection(text: str, field: str = "ProjectionExpression") -> Parsed[ProjectionNode]:
    """Parse a projection."""
    parser = _Parser(text, field, frozenset())
    return parser.done(parser.projection())


class _Term(NamedTuple):
    """An element of a condition so far: an operand, a condition, or a call, which may be either."""

    operand: Operand | None
    condition: ConditionNode | None
    grouped: bool  # in its own parentheses


class _Level:
    """The AND and OR chains inside one pair of parentheses."""

    __slots__ = ("ands", "nots", "ors")

    def __init__(self) -> None:
        self.ors: list[ConditionNode] = []
        self.ands: list[ConditionNode] = []
        self.nots = 0

    @property
    def empty(self) -> bool:
        return not (self.nots or self.ands or self.ors)

    def add(self, condition: ConditionNode) -> None:
        while self.nots:
            condition = Not(condition)
            self.nots -= 1
        self.ands.append(condition)

    def end_row(self) -> None:
        self.ors.append(self.ands[0] if len(self.ands) == 1 else And(tuple(self.ands)))
        self.ands = []

    def fold(self) -> ConditionNode:
        self.end_row()
        return self.ors[0] if len(self.ors) == 1 else Or(tuple(self.ors))


class _Parser:
    """One pass over the tokens of a text."""

    def __init__(self, text: str, field: str, keywords: frozenset[str]) -> None:
        self.text = text
        self.field = field
        self.keywords = keywords
        self.tokens = lex(text)
        self.at = 0
        self.redundant = False
        self.operators = 0
        self.repeated: str | None = None
        self.indexes: list[str] = []

    def done(self, tree: T) -> Parsed[T]:
        return Parsed(tree, self.redundant, self.operators, self.repeated, tuple(self.indexes))

    def refuse(self) -> NoReturn:
        """Raise the syntax error of the current token, quoting its neighbours."""
        token = self.tokens[self.at]
        last = len(self.tokens) - 1
        first = max(self.at - 1, 0)
        if token.kind == END:
            near = self.tokens[first].text if self.at else ""
        else:
            following = self.tokens[self.at + 1] if self.at + 1 < last else token
            near = self.text[self.tokens[first].start : following.end]
        raise ExpressionError(
            f'Invalid {self.field}: Syntax error; token: "{token.text}", near: "{near}"',
            (token.start, token.end),
        )

    def take(self, kind: str) -> Token:
        token = self.tokens[self.at]
        if token.kind != kind:
            self.refuse()
        self.at += 1
        return token

    def keyword(self) -> str:
        """Return the current token as an upper-case keyword; empty if it is none."""
        token = self.tokens[self.at]
        word = token.text.upper() if token.kind == NAME else ""
        return word if word in self.keywords else ""

    # Operands

    def step(self) -> Step:
        token = self.tokens[self.at]
        if token.kind == NAME_REF:
            self.at += 1
            return NameRef(token.text)
        if token.kind != NAME or self.keyword():
            self.refuse()
        self.at += 1
        return token.text

    def path(self, start: tuple[Step, ...] = ()) -> Path:
        steps = list(start) or [self.step()]
        while True:
            kind = self.tokens[self.at].kind
            if kind == ".":
                self.at += 1
                steps.append(self.step())
            elif kind == "[":
                self.at += 1
                index = self.take(NUMBER).text
                self.take("]")
                self.indexes.append(index)
                steps.append(int(index))
            else:
                return Path(tuple(steps))

    def value(self) -> ValueRef:
        return ValueRef(self.take(VALUE_REF).text)

    def at_call(self) -> bool:
        token = self.tokens[self.at]
        return token.kind == NAME and not self.keyword() and self.tokens[self.at + 1].kind == "("

    def operand(self) -> Operand:
        """Parse an operand with its calls and parentheses."""
        opened: list[tuple[str | None, list[Operand]]] = []  # a call, or None for parentheses
        while True:
            if self.tokens[self.at].kind == "(":
                self.at += 1
                opened.append((None, []))
                continue
            if self.at_call():
                opened.append((self.tokens[self.at].text, []))
                self.operators += 1
                self.at += 2
                continue
            node: Operand = self.value() if self.tokens[self.at].kind == VALUE_REF else self.path()
            grouped = False
            while opened:
                function, operands = opened[-1]
                if function is None:
                    self.take(")")
                    opened.pop()
                    self.redundant |= grouped
                    node, grouped = self.continue_path(node)
                    continue
                operands.append(node)
                if self.tokens[self.at].kind == ",":
                    self.at += 1
                    break
                self.take(")")
                opened.pop()
                node, grouped = FunctionCall(function, tuple(operands)), False
            else:
                return node

    def continue_path(self, node: Operand) -> tuple[Operand, bool]:
        """Return a parenthesized node, continue_path if it is a path (`(a).b`), and whether it was not."""
        if isinstance(node, Path) and self.tokens[self.at].kind in (".", "["):
            return self.path(node.steps), False
        return node, True

    # Conditions

    def condition(self) -> ConditionNode:
        levels = [_Level()]
        while True:
            if self.keyword() == "NOT":
                self.at += 1
                self.operators += 1
                levels[-1].nots += 1
                continue
            if self.tokens[self.at].kind == "(":
                self.at += 1
                levels.append(_Level())
                continue
            operand = self.operand()
            term = self.comparison(
                _Term(operand, operand if isinstance(operand, FunctionCall) else None, False)
            )
            while self.tokens[self.at].kind == ")" and len(levels) > 1:
                term = self.comparison(self.close_group(term, levels.pop()))
            level = levels[-1]
            word = self.keyword()
            if word in ("AND", "OR"):
                if term.condition is None:
                    self.refuse()
                self.at += 1
                self.operators += 1
                level.add(term.condition)
                if word == "OR":
                    level.end_row()
                continue
            if self.tokens[self.at].kind != END or len(levels) > 1 or term.condition is None:
                self.refuse()
            level.add(term.condition)
            return level.fold()

    def close_group(self, term: _Term, level: _Level) -> _Term:
        """Close one pair of parentheses."""
        if not level.empty:
            if term.condition is None:
                self.refuse()
            level.add(term.condition)
            self.at += 1
            return _Term(None, level.fold(), True)
        self.at += 1
        self.redundant |= term.grouped
        if term.operand is None:
            return _Term(None, term.condition, True)
        operand, grouped = self.continue_path(term.operand)
        return _Term(operand, term.condition, grouped)

    def comparison(self, term: _Term) -> _Term:
        """Continue with a comparison, BETWEEN or IN if one follows the term."""
        token = self.tokens[self.at]
        word = self.keyword()
        if token.kind not in COMPARATORS and word not in ("BETWEEN", "IN"):
            return term
        if term.operand is None:
            self.refuse()
        self.at += 1
        self.operators += 1
        if token.kind in COMPARATORS:
            return _Term(None, Comparison(token.kind, term.operand, self.operand()), False)
        if word == "BETWEEN":
            lower = self.operand()
            if self.keyword() != "AND":
                self.refuse()
            self.at += 1
            return _Term(None, Between(term.operand, lower, self.operand()), False)
        self.take("(")
        choices = [self.operand()]
        while self.tokens[self.at].kind == ",":
            self.at += 1
            choices.append(self.operand())
        self.take(")")
        return _Term(None, InList(term.operand, tuple(choices)), False)

    # Updates

    def update(self) -> UpdateNode:
        actions: list[Action] = []
        seen: set[str] = set()
        while True:
            section = self.keyword()
            if not section:
                self.refuse()
            self.at += 1
            if section in seen and self.repeated is None:
                self.repeated = section
            seen.add(section)
            actions.append(self.action(section))
            while self.tokens[self.at].kind == ",":
                self.at += 1
                actions.append(self.action(section))
            if self.tokens[self.at].kind == END:
                return UpdateNode(tuple(actions))

    def action(self, section: str) -> Action:
        path = self.path()
        match section:
            case "SET":
                self.take("=")
                return Set(path, self.set_value())
            case "REMOVE":
                return Remove(path)
            case "ADD":
                return Add(path, self.value())
            case _:
                return DeleteElements(path, self.value())

    def set_value(self) -> Operand | Arithmetic:
        """Parse an operand, or a sum or difference of two, optionally in parentheses."""
        opened = 0
        while self.tokens[self.at].kind == "(":
            self.at += 1
            opened += 1
        node: Operand | Arithmetic = self.operand()
        grouped = False
        while True:
            kind = self.tokens[self.at].kind
            if kind in ("+", "-") and not isinstance(node, Arithmetic):
                self.at += 1
                self.operators += 1
                node, grouped = Arithmetic(kind, node, self.operand()), False
            elif kind == ")" and opened:
                self.at += 1
                opened -= 1
                self.redundant |= grouped
                if isinstance(node, Arithmetic):
                    grouped = True
                else:
                    node, grouped = self.continue_path(node)
            elif opened:
                self.refuse()
            else:
                return node

    # Projections

    def projection(self) -> ProjectionNode:
        paths = [self.path()]
        while self.tokens[self.at].kind == ",":
            self.at += 1
            paths.append(self.path())
        self.take(END)
        return ProjectionNode(tuple(paths))
