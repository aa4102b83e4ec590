"""What projections find in items."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.plans import compile_projection
from tavola.expressions.projections import project

ITEM: dict[str, Any] = {
    "a": {"S": "x"},
    "l": {
        "L": [
            {"N": "0"},
            {"N": "1"},
            {"M": {"k": {"S": "v"}, "j": {"S": "w"}}},
            {"L": [{"N": "30"}, {"N": "31"}]},
        ]
    },
    "m": {"M": {"b": {"S": "y"}, "c": {"M": {"d": {"S": "z"}, "e": {"N": "1"}}}}},
    "x.y": {"S": "dotted"},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", {"a": ITEM["a"]}),
        ("a, nope", {"a": ITEM["a"]}),
        ("nope", {}),
        ("#xy", {"x.y": {"S": "dotted"}}),
        ("m.b", {"m": {"M": {"b": {"S": "y"}}}}),
        ("m.c.d, m.b", {"m": {"M": {"b": {"S": "y"}, "c": {"M": {"d": {"S": "z"}}}}}}),
        ("m.nope, a", {"a": ITEM["a"]}),
        ("m.c.nope", {}),
        ("m[0]", {}),
        ("a.b", {}),
        ("a[0]", {}),
        ("l[1]", {"l": {"L": [{"N": "1"}]}}),
        ("l[1], l[0]", {"l": {"L": [{"N": "0"}, {"N": "1"}]}}),
        ("l[9]", {}),
        ("l[9], l[0]", {"l": {"L": [{"N": "0"}]}}),
        ("l[2].k", {"l": {"L": [{"M": {"k": {"S": "v"}}}]}}),
        ("l[3][1], l[2].j, l[0]", {"l": {"L": [{"N": "0"}, {"M": {"j": {"S": "w"}}}, {"L": [{"N": "31"}]}]}}),
        ("l.k", {}),
    ],
)
def test_a_projection_preserves_containers(text: str, found: dict[str, Any]) -> None:
    """List elements are compacted in ascending order, containers merged, unmatched paths left out."""
    assert project(compile_projection(text, Bindings({"#xy": "x.y"})), ITEM) == found


def test_a_projection_reports_its_names() -> None:
    """Top-level attributes, and nested ones."""
    projection = compile_projection("a, m.b, #x[0]", Bindings({"#x": "y"}))

    assert projection.attributes == {"a", "m", "y"}
    assert projection.nested == {"m", "y"}
    assert projection.names_used == {"#x"}
