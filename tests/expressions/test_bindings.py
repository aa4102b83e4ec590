"""Placeholders: what may be one, and that each is used."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.plans import (
    check_placeholder_keys,
    check_placeholders,
    compile_condition,
    compile_update,
)


@pytest.mark.parametrize(
    ("names", "values", "sentence"),
    [
        ({}, None, "ExpressionAttributeNames must not be empty"),
        (None, {}, "ExpressionAttributeValues must not be empty"),
        ({}, {}, "ExpressionAttributeNames must not be empty"),
        ({"n": "a"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "n"'),
        ({"#": "a"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
        ({"#a-b": "a"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"'),
        ({"#a\n": "a"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a\n"'),
        ({"": "a"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: ""'),
        (
            {"#a": ""},
            None,
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
        ),
        (None, {"#a": {}}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "#a"'),
        (None, {":a b": {}}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":a b"'),
        ({"#a": "a"}, {"v": {}}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"'),
        (
            {"#" + "a" * 255: "a"},
            None,
            (
                "ExpressionAttributeNames contains invalid key: The expression attribute map contains a key that is "
                "too long; size of key: 256"
            ),
        ),
    ],
)
def test_what_is_no_placeholder_is_refused(
    names: dict[str, str] | None, values: dict[str, Any] | None, sentence: str
) -> None:
    """Names come before values."""
    with pytest.raises(ExpressionError) as caught:
        check_placeholder_keys(names, values)

    assert str(caught.value) == sentence


def test_placeholders_may_begin_with_any_of_their_characters() -> None:
    """A digit or an underscore may come first, and 255 bytes are allowed."""
    check_placeholder_keys({"#1": "a", "#_": "b", "#" + "a" * 254: "c"}, {":1a": {}, ":_": {}})
    check_placeholder_keys(None, None)


def test_a_placeholder_that_nothing_uses_is_refused() -> None:
    """Used by any one expression of the request is enough; names come before values, each as sent."""
    bindings = Bindings(
        {"#a": "a", "#b": "b", "#c": "c"}, {":v": {"N": "1"}, ":w": {"N": "2"}, ":x": {"N": "3"}}
    )
    condition = compile_condition("#b = :w", bindings)
    update = compile_update("SET #a = :v REMOVE #c", bindings)

    with pytest.raises(ExpressionError) as both:
        check_placeholders(bindings, [condition])
    with pytest.raises(ExpressionError) as values:
        check_placeholders(bindings, [condition, update])
    check_placeholders(Bindings({"#a": "a"}, {":v": {}, ":w": {}}), (plan for plan in (condition, update)))
    check_placeholders(Bindings(), ())

    assert (
        str(both.value) == "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #c}"
    )
    assert (
        str(values.value) == "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}"
    )


def test_a_placeholder_without_any_expression_is_unused() -> None:
    """No plan uses nothing."""
    with pytest.raises(ExpressionError, match=r"unused in expressions: keys: \{:v\}"):
        check_placeholders(Bindings({}, {":v": {"N": "1"}}), [])
