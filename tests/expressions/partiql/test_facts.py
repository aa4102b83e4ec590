"""What a statement is about, for anyone who decides about it before it is run."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.expressions.partiql import equalities, is_full_scan, mentioned_attributes, parse_statement

A, B, C = ({"S": letter} for letter in "abc")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("pk = 'a'", {"pk": (A,)}),
        ("'a' = pk", {"pk": (A,)}),
        ("pk IN ['a', 'b']", {"pk": (A, B)}),
        ("pk = 'a' OR (pk = 'b' OR pk = 'c')", {"pk": (A, B, C)}),
        ("(pk = 'a' AND sk = 'b') OR (sk = 'c' AND pk = 'b')", {"pk": (A, B), "sk": (B, C)}),
        ("pk = 'a' AND pk = 'b'", {"pk": (A, B)}),
        ("pk = 'a' OR sk = 'b'", {}),
        ("pk > 'a' OR pk = 'b'", {}),
        ("NOT pk = 'a'", {}),
        ("pk <> 'a'", {}),
        ("(pk = 'a') = false", {}),
        ("pk = sk", {}),
        ("pk.a = 'a'", {}),
        ("begins_with(pk, 'a') AND sk = 'b'", {"sk": (B,)}),
        ("pk = 'a' AND (pk = 'b' OR x = 'c')", {"pk": (A,)}),
    ],
)
def test_values_of_attributes_are_reported(where: str, expected: dict[str, Any]) -> None:
    """An attribute is reported only if every item that is read has one of its values."""
    assert equalities(parse_statement(f"SELECT * FROM t WHERE {where}")) == expected


def test_parameters_as_they_came() -> None:
    """A parameter counts in its canonical form, is left as it is, and may be missing or wrong."""
    statement = parse_statement("UPDATE t SET a = ? WHERE pk = ? AND sk = ?")
    parameters: list[dict[str, Any]] = [{"S": "x"}, {"N": "1.00"}]

    found = equalities(statement, parameters)
    wrong = equalities(statement, [{"S": "x"}, {"N": "one"}, {"S": "b"}])

    assert found == {"pk": ({"N": "1"},)}
    assert parameters[1] == {"N": "1.00"}
    assert wrong == {"pk": ({"N": "one"},), "sk": (B,)}


def test_inserted_attributes_are_reported() -> None:
    """INSERT reports each attribute that it writes."""
    statement = parse_statement("INSERT INTO t VALUE {'pk': ?, 'n': 1.0}")

    assert equalities(statement, [A]) == {"pk": (A,), "n": ({"N": "1"},)}
    assert mentioned_attributes(statement) == {"pk", "n"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a.b, c[0] FROM t WHERE size(d.e) = 1 AND (f = 1) = true ORDER BY g", "a c d f g"),
        ("SELECT * FROM t", ""),
        ("UPDATE t SET a.b = c + 1 SET d = list_append(e, [1]) REMOVE f[0] WHERE g IN [1]", "a c d e f g"),
        ("DELETE FROM t WHERE a = 1 AND b IS MISSING", "a b"),
        ("EXISTS(SELECT * FROM t WHERE a = 1 AND b = c)", "a b c"),
    ],
)
def test_attributes_that_are_mentioned(text: str, names: str) -> None:
    """Every top-level attribute is reported, wherever it is named."""
    assert mentioned_attributes(parse_statement(text)) == frozenset(names.split())


@pytest.mark.parametrize(
    ("text", "scans"),
    [
        ("SELECT * FROM t", True),
        ("SELECT * FROM t WHERE sk = 'a'", True),
        ("SELECT * FROM t WHERE pk = ?", False),
        ("SELECT * FROM t WHERE pk IN [?, 'a']", False),
        ("SELECT * FROM t WHERE pk = 'a' OR sk = 'b'", True),
        ("SELECT * FROM t WHERE pk > 'a'", True),
        ("DELETE FROM t WHERE sk = 'a'", False),
    ],
)
def test_full_scans(text: str, scans: bool) -> None:
    """A SELECT scans unless each way to satisfy it determines the partition key."""
    assert is_full_scan(parse_statement(text), "pk") is scans
