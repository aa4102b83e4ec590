"""Tokens to the tree of a statement.

To PartiQL a statement is an expression, and may stand where one stands; so `SLECT * FROM t` is a product whose
second factor begins with FROM, and is refused for that. The order of the refusals follows from it, which is why
the grammar has the same shape here.
"""

from __future__ import annotations

from functools import lru_cache

from tavola.expressions.partiql.errors import Place, StatementError
from tavola.expressions.partiql.grammar import NAMES, Grammar
from tavola.expressions.partiql.lexer import END, KEYWORD, NAME
from tavola.expressions.partiql.nodes import (
    Assignment,
    Column,
    Expression,
    Function,
    Name,
    Ordering,
    Parameter,
    Parsed,
    Path,
    Removal,
    Returning,
    Scalar,
    Source,
    Statement,
    Struct,
    Typed,
)

STATEMENTS_MAX = 512  # texts kept parsed
KEPT_CHARACTERS_MAX = 1024  # of one: a longer text is hardly sent again, and its tree is large
# What PartiQL calls the node that a text turns out to be, where it is no statement.
_OPERATIONS = {
    Typed: "IsType",
    Name: "Id",
    Path: "Path",
    Scalar: "Lit",
    Parameter: "Parameter",
    Function: "Call",
    Struct: "Struct",
}


def parse_statement(text: str) -> Statement:
    """Return what a text asks for; refuse a text that is no statement, or names no table."""
    return _parse(text) if len(text) > KEPT_CHARACTERS_MAX else _kept(text)


def _parse(text: str) -> Statement:
    parser = _Parser(text)
    found = parser.expression()
    if parser.at(";"):
        parser.advance()
    if not parser.at(END):
        parser.refuse("Unexpected token after expression")
    if isinstance(found, Function) and found.name == "exists":
        inner = found.operands[0] if len(found.operands) == 1 else None
        if not isinstance(inner, Parsed) or inner.kind != "select":
            raise StatementError("EXISTS() must contain a single item read with additional condition")
        return _statement(inner, text, parser.parameters, exists=True)
    if not isinstance(found, Parsed):
        operation = _OPERATIONS.get(type(found), getattr(found, "operator", "Sequence"))
        raise StatementError(f"Unsupported operation: {operation}")
    return _statement(found, text, parser.parameters)


_kept = lru_cache(maxsize=STATEMENTS_MAX)(_parse)


def _statement(parsed: Parsed, text: str, parameters: int, *, exists: bool = False) -> Statement:
    table, index = _named(parsed)
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


def _named(parsed: Parsed) -> tuple[str, str | None]:
    """Return the table and the index that a statement names."""
    source = parsed.source.expression
    names: list[str] = []
    match source:
        case Name(name):
            names = [name]
        case Path(Name(name), steps):
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


class _Parser(Grammar):
    """The statements."""

    def statement(self, word: str) -> Expression | None:
        """Parse the statement that begins with a word; None if none does."""
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

    def select(self) -> Parsed:
        place = self.advance().place
        refused: tuple[str, Place] | None = None
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
            found = self.several(self.expression)
            refused = refused or (clause.upper(), found[0].place)
        return Parsed(
            "select", source, where, place, columns, aliased=aliased, orderings=orderings, refused=refused
        )

    def columns(self) -> tuple[tuple[Column, ...] | None, bool]:
        """Return what SELECT names, None for everything, and whether any of it is renamed."""
        if self.at("*"):
            self.advance()
            if self.at(","):
                self.refuse(
                    "Other expressions may not be present in the select list when '*' is used without dot notation."
                )
            return None, False
        found = self.several(self.column)
        return tuple(column for column, _ in found), any(aliased for _, aliased in found)

    def column(self) -> tuple[Column, bool]:
        column = Column(self.expression())
        return column, self.alias() is not None

    def ordering(self) -> Ordering:
        expression = self.expression()
        descending = self.word() == "desc"
        if self.word() in ("asc", "desc"):
            self.advance()
        return Ordering(expression, descending)

    def source(self, *, simple: bool) -> Source:
        expression = self.path(simple=True) if simple else self.expression()
        return Source(expression, self.alias())

    def alias(self) -> Place | None:
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

    def insert(self) -> Parsed:
        place = self.advance().place
        source = Source(self.path(simple=True), None)
        refused: tuple[str, Place] | None = None
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
        return Parsed("insert", source, None, place, item=item, returning=self.returning(), refused=refused)

    def update(self) -> Parsed:
        place = self.advance().place
        source = self.source(simple=True)
        changes = self.changes()
        where = self.where()
        return Parsed("update", source, where, place, changes=changes, returning=self.returning())

    def from_first(self) -> Parsed:
        """Parse the form of UPDATE that begins with FROM."""
        place = self.advance().place
        source = self.source(simple=False)
        where = self.where()
        changes = self.changes()
        return Parsed("update", source, where, place, changes=changes, returning=self.returning())

    def delete(self) -> Parsed:
        place = self.advance().place
        if self.word() != "from":
            self.refuse("Expected FROM after DELETE")
        self.advance()
        source = self.source(simple=True)
        where = self.where()
        return Parsed("delete", source, where, place, returning=self.returning())

    def changes(self) -> tuple[Assignment | Removal, ...]:
        found: list[Assignment | Removal] = []
        while self.word() in ("set", "remove"):
            if self.advance().text == "set":
                found += self.several(self.assignment)
            else:
                found.append(Removal(self.path(simple=True)))
        if not found:
            self.refuse("Expected data manipulation")
        return tuple(found)

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
