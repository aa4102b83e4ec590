"""Parsing of statements: their contents and the cache."""

from __future__ import annotations

import pytest

from tavola.expressions.partiql import StatementError, parse_statement
from tavola.expressions.partiql.nodes import InfixOperator, Name, PrefixOperator, Returning, Scalar, Statement


@pytest.mark.parametrize(
    ("text", "kind", "table", "index"),
    [
        ("SELECT * FROM t", "select", "t", None),
        ('select a from "T-1"."i.x" where b = 1;', "select", "T-1", "i.x"),
        ("INSERT INTO t VALUE {'a': 1}", "insert", "t", None),
        ("UPDATE t SET a = 1 WHERE b = 2", "update", "t", None),
        ("FROM t WHERE b = 2 SET a = 1", "update", "t", None),
        ("DELETE FROM t WHERE a = 1", "delete", "t", None),
        ("EXISTS(SELECT * FROM t WHERE a = 1)", "exists", "t", None),
        (
            'SELECT * FROM "arn:aws:dynamodb:eu-west-1:123456789012:table/tab"',
            "select",
            "arn:aws:dynamodb:eu-west-1:123456789012:table/tab",
            None,
        ),
    ],
)
def test_what_a_statement_is_about(text: str, kind: str, table: str, index: str | None) -> None:
    """The kind, the table and the index are known without a table."""
    statement = parse_statement(text)

    assert (statement.kind, statement.table, statement.index) == (kind, table, index)


def test_precedence() -> None:
    """OR binds looser than AND, AND than NOT, NOT than a comparison, and that than a sum."""
    where = parse_statement("SELECT * FROM t WHERE a = 1 OR NOT b = c + 1 AND d = 2").where

    assert isinstance(where, InfixOperator)
    assert where.operator == "or"
    conjunction = where.operands[1]
    assert isinstance(conjunction, InfixOperator)
    assert (conjunction.operator, len(conjunction.operands)) == ("and", 2)
    negated = conjunction.operands[0]
    assert isinstance(negated, PrefixOperator)
    compared = negated.operand
    assert isinstance(compared, InfixOperator)
    assert isinstance(compared.operands[1], InfixOperator)
    assert compared.operands[1].operator == "+"


def test_signs_are_part_of_a_number() -> None:
    """Signs before a number make another number, at the position of its digits."""
    where = parse_statement("SELECT * FROM t WHERE a = - - + -12").where

    assert isinstance(where, InfixOperator)
    assert where.operands[1] == Scalar("N", "-12", where.operands[1].place)
    assert str(where.operands[1].place) == "1:34:2"


def test_words_of_the_language_need_quotes() -> None:
    """A keyword is a name only in double quotes, also after a dot."""
    with pytest.raises(StatementError, match="Unexpected keyword"):
        parse_statement("SELECT date FROM t")
    with pytest.raises(StatementError, match="Invalid path dot component"):
        parse_statement("SELECT a.value FROM t")

    columns = parse_statement('SELECT "date", data FROM t').columns
    assert columns is not None
    assert [column.expression.text for column in columns if isinstance(column.expression, Name)] == [
        "date",
        "data",
    ]


def test_returning_and_parameters() -> None:
    """RETURNING is one of four, and parameters are counted in order."""
    statement = parse_statement("UPDATE t SET a = ?, b = ? WHERE c = ? RETURNING modified Old *")

    assert statement.returning == Returning("MODIFIED", "OLD")
    assert statement.parameters == 3


def test_a_statement_is_parsed_once() -> None:
    """The same string is the same statement; a long one is not cached."""
    short, long = "SELECT * FROM t", "SELECT * FROM t" + " " * 2000

    assert parse_statement(short) is parse_statement(short)
    assert parse_statement(long) is not parse_statement(long)
    assert parse_statement(long) == parse_statement(short)


@pytest.mark.parametrize("text", ["(" * 1000, "NOT " * 2000, "SELECT * FROM t WHERE a = " + "[" * 4000])
def test_depth_is_bounded(text: str) -> None:
    """A deeply nested string is refused."""
    with pytest.raises(StatementError, match="nested deeper than 64 levels"):
        parse_statement(text)


def test_rows_are_flat() -> None:
    """A long row of AND is not a deep tree."""
    statement = parse_statement("SELECT * FROM t WHERE a = 1" + " AND a = 1" * 800)

    assert isinstance(statement, Statement)
    assert isinstance(statement.where, InfixOperator)
    assert len(statement.where.operands) == 801
