"""Tokens to expressions: operators by precedence, paths, calls and literals.

In PartiQL a statement is an expression and may appear inside one; `parser` handles those. Nesting is limited to twice
the depth of a document, so that no text exhausts Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn, TypeVar

from tavola.expressions.partiql.errors import syntax_error
from tavola.expressions.partiql.keywords import FUNCTIONS, TYPES
from tavola.expressions.partiql.lexer import END, KEYWORD, NAME, QUOTED, STRING, StatementToken, lex
from tavola.expressions.partiql.nodes import (
    CollectionLiteral,
    Expression,
    FunctionExpression,
    InfixOperator,
    Name,
    Parameter,
    PathExpression,
    PrefixOperator,
    Scalar,
    Struct,
    Typed,
)

_DEPTH_MAX = 64
NAMES = (NAME, QUOTED)
_SIGNS = {
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
    "*": "STAR",
}
_PRECEDENCE = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("=", "<>", "!=", "is", "is not", "in", "not in"), 4),
    **dict.fromkeys(("<", "<=", ">", ">=", "between", "not between", "like", "not like"), 5),
    **dict.fromkeys(("||",), 6),
    **dict.fromkeys(("+", "-"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
}
_NOT = 3  # binds looser than a comparison
_OPERATORS = frozenset(_PRECEDENCE) - {"*", "and", "or"} | {"@"}
_CONSTANTS: dict[str, Literal["BOOL", "NULL", "MISSING"]] = {
    "true": "BOOL",
    "false": "BOOL",
    "null": "NULL",
    "missing": "MISSING",
}

T = TypeVar("T")


class Grammar:
    """One pass over the tokens of a text: its expressions; `statement` parses nested statements."""

    def __init__(self, text: str) -> None:
        self.tokens = lex(text)
        self.index = 0
        self.depth = 0
        self.parameters = 0

    @property
    def head(self) -> StatementToken:
        return self.tokens[self.index]

    def at(self, kind: str) -> bool:
        return self.tokens[self.index].kind == kind

    def word(self) -> str:
        """Return the keyword at the current position, empty if there is none."""
        token = self.tokens[self.index]
        return token.text if token.kind == KEYWORD else ""

    def advance(self) -> StatementToken:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def refuse(self, detail: str) -> NoReturn:
        raise syntax_error(detail, self.head.place)

    def take(self, sign: str) -> StatementToken:
        if not self.at(sign):
            self.refuse(f"Expected {_SIGNS[sign]}")
        return self.advance()

    def several(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """Parse one or more elements separated by commas."""
        elements = [parse()]
        while self.at(","):
            self.advance()
            elements.append(parse())
        return tuple(elements)

    # Expressions

    def expression(self, precedence: int = 0) -> Expression:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            self.refuse(f"The statement is nested deeper than {_DEPTH_MAX} levels")
        left = self.unary()
        while True:
            token = self.tokens[self.index]
            operator = token.text if token.kind == KEYWORD else token.kind
            binding = _PRECEDENCE.get(operator, 0)
            if binding <= precedence:
                self.depth -= 1
                return left
            left = self.infix(left, operator, binding)

    def infix(self, left: Expression, operator: str, binding: int) -> Expression:
        place = self.head.place
        if operator in ("is", "is not"):
            self.advance()
            return Typed(left, self.type_name(), operator == "is not", place)
        if operator in ("and", "or"):
            parts = [left]
            while self.word() == operator:
                parts.append(self.right(binding))
            return InfixOperator(operator, tuple(parts), place)
        if operator in ("in", "not in") and self.at_list():
            self.index += 2
            choices = self.several(self.expression)
            self.take(")")
            return InfixOperator(operator, (left, CollectionLiteral("list", choices, place)), place)
        right = self.right(binding)
        if operator in ("between", "not between"):
            if self.word() != "and":
                self.refuse("Expected AND keyword")
            self.advance()
            if self.at(END):
                self.refuse("Expected expression after AND")
            return InfixOperator(operator, (left, right, self.expression(binding)), place)
        return InfixOperator("<>" if operator == "!=" else operator, (left, right), place)

    def at_list(self) -> bool:
        """Return whether a parenthesized list follows, rather than a nested SELECT."""
        _, opening, *inside = self.tokens[self.index : self.index + 3]
        reads = bool(inside) and inside[0].kind == KEYWORD and inside[0].text in ("select", "values")
        return opening.kind == "(" and not reads

    def right(self, binding: int) -> Expression:
        if self.tokens[self.index + 1].kind == END:
            self.refuse("Missing right-hand side expression of infix operator")
        self.advance()
        return self.expression(binding)

    def type_name(self) -> str:
        name = self.head.text.lower() if self.head.kind in (KEYWORD, NAME) else ""
        if name not in TYPES:
            self.refuse("Expected type name")
        self.advance()
        return name

    def unary(self) -> Expression:
        token = self.tokens[self.index]
        if token.kind == STRING and self.tokens[self.index + 1].kind not in (".", "["):
            self.index += 1  # the most common case in a long statement
            return Scalar("S", token.text, token.place)
        signs: list[StatementToken] = []
        while self.head.kind in ("+", "-"):
            signs.append(self.advance())
        if self.word() == "not":
            place = self.advance().place
            term: Expression = PrefixOperator("not", self.expression(_NOT), place)
        else:
            term = self.path()
        for sign in reversed(signs):
            if not isinstance(term, Scalar) or term.kind != "N":
                return PrefixOperator(sign.kind, term, sign.place)
            if sign.kind == "-":
                text = term.text.removeprefix("-") if term.text.startswith("-") else f"-{term.text}"
                term = Scalar("N", text, term.place)
        return term

    def path(self, *, simple: bool = False) -> Expression:
        """Parse a term and the steps into it; a simple path starts with a name."""
        if simple and self.head.kind not in NAMES:
            self.refuse("Expected identifier for simple path")
        root = self.name() if simple else self.term()
        steps: list[Name | Expression | None] = []
        while self.head.kind in (".", "["):
            if self.advance().kind == ".":
                steps.append(self.dot_step(simple))
                continue
            if self.at("*"):
                self.advance()
                steps.append(None)
            else:
                step = self.expression()
                if isinstance(step, Name):  # brackets contain a value, and a bare name is not one
                    step = PathExpression(step, (), step.place)
                steps.append(step)
            self.take("]")
        return PathExpression(root, tuple(steps), root.place) if steps else root

    def dot_step(self, simple: bool) -> Name | None:
        if self.head.kind in NAMES:
            return self.name()
        if not self.at("*") or simple:
            self.refuse("Invalid path dot component")
        self.advance()
        return None

    def name(self) -> Name:
        token = self.advance()
        return Name(token.text, token.place)

    def term(self) -> Expression:
        token = self.head
        match token.kind:
            case "name" | "quoted":
                return self.call() if self.tokens[self.index + 1].kind == "(" else self.name()
            case "string" | "number":
                self.advance()
                return Scalar("S" if token.kind == STRING else "N", token.text, token.place)
            case "?":
                self.advance()
                self.parameters += 1
                return Parameter(self.parameters - 1, token.place)
            case "(":
                return self.group()
            case "[":
                return self.sequence("list", "]")
            case "<<":
                return self.sequence("bag", ">>")
            case "{":
                return self.struct()
            case "keyword":
                return self.keyword_term()
            case sign if sign in _OPERATORS:
                self.refuse("Unexpected operator")
            case _:
                self.refuse("Unexpected term")

    def keyword_term(self) -> Expression:
        token = self.head
        word = token.text
        if word in _CONSTANTS:
            self.advance()
            return Scalar(_CONSTANTS[word], word, token.place)
        statement = self.statement(word)
        if statement is not None:
            return statement
        match word:
            case _ if word in _OPERATORS:
                self.refuse("Unexpected operator")
            case _ if word in FUNCTIONS and self.tokens[self.index + 1].kind == "(":
                return self.call()
            case _:
                self.refuse("Unexpected keyword")

    def statement(self, word: str) -> Expression | None:
        """Parse the statement that begins with a word; None if there is none."""
        return None

    def call(self) -> FunctionExpression:
        name = self.advance()
        self.advance()
        operands: tuple[Expression, ...] = ()
        if self.at("*"):
            if name.text.lower() != "count":
                self.refuse(f"{name.text}(*) is not allowed")
            self.advance()
        elif not self.at(")"):
            operands = self.several(self.expression)
        self.take(")")
        return FunctionExpression(name.text, operands, name.place)

    def group(self) -> Expression:
        place = self.advance().place
        if self.at(")"):
            self.refuse("Expression group cannot be empty")
        expressions = self.several(self.expression)
        self.take(")")
        return expressions[0] if len(expressions) == 1 else CollectionLiteral("list", expressions, place)

    def sequence(self, kind: Literal["list", "bag"], end: str) -> CollectionLiteral:
        place = self.advance().place
        items = () if self.at(end) else self.several(self.expression)
        self.take(end)
        return CollectionLiteral(kind, items, place)

    def struct(self) -> Struct:
        place = self.advance().place
        fields = () if self.at("}") else self.several(self.field)
        self.take("}")
        return Struct(fields, place)

    def field(self) -> tuple[Expression, Expression]:
        key = self.expression()
        self.take(":")
        return key, self.expression()
