"""Texts and the trees they make."""

from __future__ import annotations

import pytest

from tavola.expressions.nodes import (
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
    Or,
    Path,
    Remove,
    Set,
    ValueRef,
)
from tavola.expressions.parser import parse_condition, parse_projection, parse_update

A, B, C = Path(("a",)), Path(("b",)), Path(("c",))
V = ValueRef(":v")
IS_A, IS_B, IS_C = Comparison("=", A, V), Comparison("=", B, V), Comparison("=", C, V)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = :v", IS_A),
        ("a=:v", IS_A),
        ("(a = :v)", IS_A),
        ("(a) = (:v)", IS_A),
        ("a = :v AND b = :v and c = :v", And((IS_A, IS_B, IS_C))),
        ("a = :v OR b = :v AND c = :v", Or((IS_A, And((IS_B, IS_C))))),
        ("(a = :v OR b = :v) AND c = :v", And((Or((IS_A, IS_B)), IS_C))),
        ("(a = :v AND b = :v) AND c = :v", And((And((IS_A, IS_B)), IS_C))),
        ("NOT a = :v AND b = :v", And((Not(IS_A), IS_B))),
        ("NOT (a = :v AND b = :v)", Not(And((IS_A, IS_B)))),
        ("not NOT a = :v", Not(Not(IS_A))),
        ("a BETWEEN :v AND b AND c = :v", And((Between(A, V, B), IS_C))),
        ("a in (:v, b)", InList(A, (V, B))),
        ("a IN ((:v))", InList(A, (V,))),
        ("size (a) > :v", Comparison(">", FunctionCall("size", (A,)), V)),
        ("contains(a, size((b)))", FunctionCall("contains", (A, FunctionCall("size", (B,))))),
        ("a.#b[1] . c = :v", Comparison("=", Path(("a", NameRef("#b"), 1, "c")), V)),
        ("(a).b = (a[0]).c", Comparison("=", Path(("a", "b")), Path(("a", 0, "c")))),
        ("a[007] = :v", Comparison("=", Path(("a", 7)), V)),
    ],
)
def test_a_condition_parses(text: str, tree: ConditionNode) -> None:
    """NOT binds closer than AND, AND closer than OR; rows are flat, parentheses keep theirs."""
    parsed = parse_condition(text)

    assert parsed.tree == tree
    assert not parsed.redundant


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a = :v", 1),
        ("a BETWEEN :v AND b", 1),
        ("NOT a IN (:v, b, c)", 2),
        ("size(a) > :v AND contains(b, :v) OR c <> :v", 6),
    ],
)
def test_operators_and_functions_are_counted(text: str, count: int) -> None:
    """The AND of BETWEEN is part of it."""
    assert parse_condition(text).operators == count


def test_an_update_parses() -> None:
    """Sections in any order; the = of SET is no operator."""
    parsed = parse_update("add a :v REMOVE b[1] Set c = (a + :v), d = if_not_exists(c, :v) DELETE e :v")

    assert parsed.tree.actions == (
        Add(A, V),
        Remove(Path(("b", 1))),
        Set(C, Arithmetic("+", A, V)),
        Set(Path(("d",)), FunctionCall("if_not_exists", (C, V))),
        DeleteElements(Path(("e",)), V),
    )
    assert (parsed.operators, parsed.repeated) == (2, None)
    assert parse_update("SET a = :v REMOVE b SET c = :v REMOVE d").repeated == "SET"


def test_a_projection_parses() -> None:
    """Keywords of other expressions are names here, until the checker finds them reserved."""
    assert parse_projection("a, set.b ,#c[0]").tree.paths == (A, Path(("set", "b")), Path((NameRef("#c"), 0)))
