"""Tokens to the syntax tree of a statement.

In PartiQL a statement is an expression and may appear inside one; so `SLECT * FROM t` is a product whose second
factor begins with FROM, and is refused for that. The order of errors follows from this, which is why the grammar has
the same shape here.
"""

from __future__ import annotations

from functools import lru_cache

from tavola.expressions.partiql.errors import StatementError, StatementPosition
from tavola.expressions.partiql.grammar import NAMES, Grammar
from tavola.expressions.partiql.lexer import END, KEYWORD, NAME
from tavola.expressions.partiql.nodes import (
    Assignment,
    Column,
    Expression,
    FunctionExpression,
    Name,
    NestedStatement,
    Ordering,
    Parameter,
    PathExpression,
    Removal,
    Returning,
    Scalar,
    Statement,
    Struct,
    TableReference,
    Typed,
)

STATEMENTS_MAX = 512  # cached parsed texts
KEPT_CHARACTERS_MAX = 1024  # longer texts are rarely repeated, and their trees are large
# PartiQL's names for nodes, used when a text is not a statement.
_OPERATIONS = {
    Typed: "IsType",
    Name: "Id",
    PathExpression: "Path",
    Scalar: "Lit",
    Parameter: "Parameter",
    FunctionExpression: "Call",
    Struct: "Struct",
}


def parse_statement(text: str) -> Statement:
    """Parse a statement; refuse any other text, and a statement without a table."""
    return _parse(text) if len(text) > KEPT_CHARACTERS_MAX else _parse_cached(text)


def _parse(text: str) -> Statement:
    parser = _StatementParser(text)
    expression = parser.expression()
    if parser.at(";"):
        parser.advance()
    if not parser.at(END):
        parser.refuse("Unexpected token after expression")
    if isinstance(expression, FunctionExpression) and expression.name == "exists":
        inner = expression.operands[0] if len(expression.operands) == 1 else None
        if not isinstance(inner, NestedStatement) or inner.kind != "select":
            raise StatementError("EXISTS() must contain a single item read with additional condition")
        return _statement(inner, text, parser.parameters, exists=True)
    if not isinstance(expression, NestedStatement):
        operation = _OPERATIONS.get(type(expression), getattr(expression, "operator", "Sequence"))
        raise StatementError(f"Unsupported operation: {operation}")
    return _statement(expression, text, parser.parameters)


_parse_cached = lru_cache(maxsize=STATEMENTS_MAX)(_parse)


def _statement(parsed: NestedStatement, text: str, parameters: int, *, exists: bool = False) -> Statement:
    table, index = _table_and_index(parsed)
    return Statement(
        kind="exists" if exists else parsed.kind,
        table=table,
        index=index,
        where=parsed.where,
        columns=parsed.columns,
        orderings=parsed.orderings,
        changes=parsed.changes,
        item=parsed.item,
        returning=parsed.returning,
        parameters=parameters,
        refused=parsed.refused,
        text=text,
    )


def _table_and_index(parsed: NestedStatement) -> tuple[str, str | None]:
    """Return the table and index that a statement names."""
    source = parsed.source.expression
    names: list[str] = []
    match source:
        case Name(name):
            names = [name]
        case PathExpression(Name(name), steps):
            names = [name]
            for step in steps:
                if not isinstance(step, Name):
                    raise StatementError("Unexpected path component", source.place)
                names.append(step.text)
        case _:
            raise StatementError("FROM clause may only contain a single table name")
    if len(names) > 1 and parsed.kind == "insert":
        raise StatementError("FROM clause may only contain a single table name")
    if len(names) > 2:
        raise StatementError("A path may contain at most 2 components in the FROM clause")
    if "" in names:
        raise StatementError("Path component cannot be an empty string")
    if parsed.source.alias is not None or parsed.aliased:
        raise StatementError("Aliasing is not supported")
    return names[0], names[1] if len(names) > 1 else None


class _StatementParser(Grammar):
    """Parses statements."""

    def statement(self, word: str) -> Expression | None:
        """Parse the statement that begins with a word; None if there is none."""
        match word:
            case "select":
                return self.select()
            case "insert into":
                return self.insert()
            case "update":
                return self.update()
            case "delete":
                return self.delete()
            case "from":
                return self.from_first()
            case _:
                return None

    def select(self) -> NestedStatement:
        place = self.advance().place
        refused: tuple[str, StatementPosition] | None = None
        if self.word() == "distinct":
            refused = ("DISTINCT", self.advance().place)
        elif self.word() == "all":
            self.advance()
        columns, aliased = self.columns()
        if self.word() != "from":
            self.refuse("Expected FROM after SELECT list")
        self.advance()
        source = self.source(simple=False)
        if self.at(","):
            raise StatementError("FROM clause may only contain a single table name")
        where = self.where()
        orderings: tuple[Ordering, ...] = ()
        for clause in ("group by", "having", "order by", "limit"):
            if self.word() != clause:
                continue
            self.advance()
            if clause == "order by":
                orderings = self.several(self.ordering)
                continue
            expressions = self.several(self.expression)
            refused = refused or (clause.upper(), expressions[0].place)
        return NestedStatement(
            "select", source, where, place, columns, aliased=aliased, orderings=orderings, refused=refused
        )

    def columns(self) -> tuple[tuple[Column, ...] | None, bool]:
        """Return the columns of a SELECT (None for all) and whether any is renamed."""
        if self.at("*"):
            self.advance()
            if self.at(","):
                self.refuse(
                    "Other expressions may not be present in the select list when '*' is used without dot notation."
                )
            return None, False
        columns = self.several(self.column)
        return tuple(column for column, _ in columns), any(aliased for _, aliased in columns)

    def column(self) -> tuple[Column, bool]:
        column = Column(self.expression())
        return column, self.alias() is not None

    def ordering(self) -> Ordering:
        expression = self.expression()
        descending = self.word() == "desc"
        if self.word() in ("asc", "desc"):
            self.advance()
        return Ordering(expression, descending)

    def source(self, *, simple: bool) -> TableReference:
        expression = self.path(simple=True) if simple else self.expression()
        return TableReference(expression, self.alias())

    def alias(self) -> StatementPosition | None:
        if self.word() == "as":
            self.advance()
            if self.head.kind not in NAMES:
                self.refuse("Expected identifier for alias")
        return self.advance().place if self.head.kind in NAMES else None

    def where(self) -> Expression | None:
        if self.word() != "where":
            return None
        self.advance()
        return self.expression()

    def insert(self) -> NestedStatement:
        place = self.advance().place
        source = TableReference(self.path(simple=True), None)
        refused: tuple[str, StatementPosition] | None = None
        if self.word() == "value":
            self.advance()
            item = self.expression()
            if self.word() == "at":
                refused = ("AT", self.advance().place)
                self.expression()
        else:
            refused = ("VALUES", self.head.place)
            if self.word() == "values":
                self.advance()
            item = self.expression()
        return NestedStatement(
            "insert", source, None, place, item=item, returning=self.returning(), refused=refused
        )

    def update(self) -> NestedStatement:
        place = self.advance().place
        source = self.source(simple=True)
        changes = self.changes()
        where = self.where()
        return NestedStatement("update", source, where, place, changes=changes, returning=self.returning())

    def from_first(self) -> NestedStatement:
        """Parse the form of UPDATE that begins with FROM."""
        place = self.advance().place
        source = self.source(simple=False)
        where = self.where()
        changes = self.changes()
        return NestedStatement("update", source, where, place, changes=changes, returning=self.returning())

    def delete(self) -> NestedStatement:
        place = self.advance().place
        if self.word() != "from":
            self.refuse("Expected FROM after DELETE")
        self.advance()
        source = self.source(simple=True)
        where = self.where()
        return NestedStatement("delete", source, where, place, returning=self.returning())

    def changes(self) -> tuple[Assignment | Removal, ...]:
        changes: list[Assignment | Removal] = []
        while self.word() in ("set", "remove"):
            if self.advance().text == "set":
                changes += self.several(self.assignment)
            else:
                changes.append(Removal(self.path(simple=True)))
        if not changes:
            self.refuse("Expected data manipulation")
        return tuple(changes)

    def assignment(self) -> Assignment:
        path = self.path(simple=True)
        if not self.at("="):
            self.refuse("Expected '='")
        self.advance()
        return Assignment(path, self.expression())

    def returning(self) -> Returning | None:
        if self.word() != "returning":
            return None
        self.advance()
        words = []
        for allowed in (("ALL", "MODIFIED"), ("OLD", "NEW")):
            word = self.head.text.upper() if self.head.kind in (NAME, KEYWORD) else ""
            if word not in allowed:
                self.refuse("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in the returning clause.")
            self.advance()
            words.append(word)
        self.take("*")
        return Returning(*words)
