"""What only the deployment knows is no text: no function makes anything of how it is spelt."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tavola.iac.formats.hcl import Evaluator, parse_hcl
from tavola.iac.formats.hcl_functions import NAMES
from tavola.iac.formats.source_values import Unresolved, as_text, is_resolved

KNOWN: tuple[Any, ...] = ('"a"', '["a", "b"]', '{ a = "b" }', "1", "true")


def worked_out(expression: str) -> Any:
    """Return what an expression stands for, in a file that knows no reference."""
    block = parse_hcl(f"x = {expression}\n")
    return Evaluator(_nobody_knows).value(block.attributes["x"], block.text)


def _nobody_knows(steps: tuple[str, ...]) -> Any:
    raise KeyError(steps)


@pytest.mark.parametrize("name", NAMES)
def test_no_function_takes_a_reference_apart(name: str) -> None:
    """With an argument that is not known the answer is not known, and it never holds a letter of the reference alone."""
    calls = [f"{name}(var.x)"]
    for one in KNOWN:
        calls += [f"{name}(var.x, {one})", f"{name}({one}, var.x)"]
    for one, other in product(KNOWN, KNOWN):
        calls += [
            f"{name}(var.x, {one}, {other})",
            f"{name}({one}, var.x, {other})",
            f"{name}({one}, {other}, var.x)",
        ]
    for call in calls:
        found = worked_out(call)
        if name == "try" and not call.startswith("try(var.x"):
            continue  # the others are for when the first fails
        if name in ("lookup", "coalesce") and is_resolved(found):
            assert "var.x" in call.partition(",")[2], call  # what was asked for came before
            continue
        assert isinstance(found, Unresolved), call
        assert "var.x" in found.text


@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_lists_carries_a_reference_whole(name: str) -> None:
    """An element that is not known stays one element, as it is spelt."""
    found = worked_out(f"{name}([var.x])") if name != "join" else worked_out('join("-", ["a", var.x])')

    texts = [as_text(each) for each in found] if isinstance(found, list) else [as_text(found) or ""]
    assert name == "length" or all(text is None or "${var.x}" in text or "var.x" in text for text in texts)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('format("t-%03d", 5)', None),
        ('format("%s%%", "a")', "a%"),
        ('format("%q", "a")', None),
        ('format("%[1]s", "a")', None),
        ('format("%d", "a")', None),
        ('format("%s")', None),
        ('format("%s", "a", "b")', None),
        ('format("%s-%s", "a", var.x)', Unresolved("a-${var.x}")),
        ('replace("my_table", "/_/", "-")', None),
        ('replace("my_table", "_", "-")', "my-table"),
        ('"\\u00e9"', "é"),
        ('"\\U0001F600"', "😀"),
        ('join("-", ["a"], ["b"])', "a-b"),
        ('toset(["b", "a", "b"])', ["a", "b"]),
        ('keys(["b", "a"])', None),
        ('length("é")', None),
        ('length(["a", var.x])', 2),
        ('tonumber("07")', None),
        ("tonumber(true)", None),
        ('coalesce(null, "", "b")', "b"),
        ('coalesce(var.x, "b")', None),
        ('try(var.x, "b")', None),
        ('try("a", var.x)', "a"),
        ('lookup({ a = "b" }, var.x, "c")', None),
        ('merge(null, { a = "b" })', {"a": "b"}),
        ('concat("a", "b")', None),
        ('jsonencode({ b = "<", a = [var.x] })', Unresolved('{"a":["${var.x}"],"b":"\\u003c"}')),
        ("max([1, 2]...)", None),
        ("false || true", True),
        ("true && false", False),
        ("1 == true", False),
        ("[var.x] == [var.x]", None),
        ("1.0", 1),
        ('{ "${var.x}" = 1 }', None),
        ('<<EOT\n${upper("a")}-$${b}\nEOT', "A-${b}"),
        ('<<EOT\n${merge({ a = "}" }, {})["a"]}\nEOT', Unresolved('${merge({ a = "}" }, {})["a"]}')),
        ("<<EOT\n%{ if true }a%{ endif }\nEOT", None),
    ],
)
def test_a_function_is_exact_or_is_left_to_the_deployment(expression: str, value: Any) -> None:
    """What is worked out is what Terraform works out; of any other form the call stays as it is spelt (None here)."""
    found = worked_out(expression)

    if value is None:
        assert isinstance(found, Unresolved)
    else:
        assert found == value
