"""Expressions spelled in Python."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tavola.expressions.bindings import Bindings, bind
from tavola.expressions.builder import F, Where, literal, projection, update
from tavola.expressions.nodes import Literal
from tavola.expressions.parser import parse_condition, parse_update
from tavola.expressions.renderer import Renderer

BINDINGS = Bindings(
    {"#s": "status"},
    {
        ":open": {"S": "open"},
        ":ten": {"N": "10"},
        ":one": {"N": "1"},
        ":l": {"L": [{"N": "1"}]},
        ":ss": {"SS": ["a"]},
        ":S": {"S": "S"},
    },
)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (F("status") == "open", "#s = :open"),
        (F("a") != 10, "a <> :ten"),
        ((F("a") > 10) & (F("b") <= 1), "a > :ten AND b <= :one"),
        ((F("a") < 10) | (F("b") >= F("c")), "a < :ten OR b >= c"),
        (
            ~((F("a") > 1) & F("b").exists() & F("c").not_exists()),
            "NOT (a > :one AND attribute_exists(b) AND attribute_not_exists(c))",
        ),
        (((F("a") > 1) | (F("b") > 1)) & (F("c") > 1), "(a > :one OR b > :one) AND c > :one"),
        (F("a", "b")[0] == 1, "a.b[0] = :one"),
        (F("a")["b"].begins_with("open"), "begins_with(a.b, :open)"),
        (F("a").contains(1), "contains(a, :one)"),
        (F("a").has_type("S"), "attribute_type(a, :S)"),
        (F("a").size() > 10, "size(a) > :ten"),
        (F("a").between(1, 10), "a BETWEEN :one AND :ten"),
        (F("a").is_in(1, 10), "a IN (:one, :ten)"),
    ],
)
def test_a_condition_is_built_as_it_would_be_parsed(built: Where, text: str) -> None:
    """The Python spelling and the text make the same tree."""
    assert built.node == bind(parse_condition(text).tree, BINDINGS)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (update(F("n").set(F("n") + 1)), "SET n = n + :one"),
        (update(F("n").set(F("n").if_not_exists(1) - F("m"))), "SET n = if_not_exists(n, :one) - m"),
        (
            update(F("l").set(F("l").append([1])), F("k").set(F("l").prepend([1]))),
            "SET l = list_append(l, :l), k = list_append(:l, l)",
        ),
        (
            update(F("a").delete({"a"}), F("b").add(1), F("c").remove(), F("d").set("open")),
            "SET d = :open REMOVE c ADD b :one DELETE a :ss",
        ),
    ],
)
def test_an_update_is_built_as_it_would_be_parsed(built: Any, text: str) -> None:
    """Actions are put in sections, in the order they are given within each."""
    assert built == bind(parse_update(text).tree, BINDINGS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", {"S": ""}),
        (1, {"N": "1"}),
        (Decimal("1.50"), {"N": "1.5"}),
        (True, {"BOOL": True}),
        (None, {"NULL": True}),
        (b"\x00", {"B": "AA=="}),
        ([1, "a"], {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"k": (False,)}, {"M": {"k": {"L": [{"BOOL": False}]}}}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        ({Decimal("1.0"), 2}, None),
        ({1}, {"NS": ["1"]}),
        (frozenset({b"\x00"}), {"BS": ["AA=="]}),
        (Literal({"S": "ready"}), {"S": "ready"}),
        ([Literal({"S": "ready"})], {"L": [{"S": "ready"}]}),
    ],
)
def test_python_values_become_literals(value: Any, expected: dict[str, Any] | None) -> None:
    """Each of the ten types has a Python spelling; None here is a set of two number types, one set."""
    assert literal(value).value == (expected or {"NS": ["1", "2"]})


@pytest.mark.parametrize("value", [1.5, set(), {1, "a"}, object(), {True}])
def test_what_is_no_attribute_value_is_refused(value: Any) -> None:
    """A float is refused: it is seldom the number that was meant."""
    with pytest.raises(TypeError):
        literal(value)


def test_a_condition_has_no_truth_of_its_own() -> None:
    """`and` between conditions would lose one of them without a word."""
    with pytest.raises(TypeError, match=r"with & \| ~"):
        bool(F("a") == 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(F("a"))


def test_a_projection_is_built_of_paths() -> None:
    """The renderer writes it."""
    assert Renderer().projection(projection(F("a"), F("b", "c")[1])) == "a, b.c[1]"
