"""Plans are cached, and reused only for the same plan."""

from __future__ import annotations

import pytest

from tavola.expressions import plans
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import evaluate
from tavola.expressions.errors import ExpressionError
from tavola.expressions.plans import (
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)


def test_an_expression_is_compiled_once() -> None:
    """The same names and the same types of values return the same plan, whatever the values."""
    one = compile_condition("#a > :v", Bindings({"#a": "x"}, {":v": {"N": "1"}}))

    again = compile_condition("#a > :v", Bindings({"#a": "x", "#b": "y"}, {":v": {"N": "2"}}))

    assert again is one
    assert evaluate(again, {"x": {"N": "2"}}, {":v": {"N": "2"}}) is False


def test_other_names_or_types_make_another_plan() -> None:
    """A plan depends on its names and on the types of its values."""
    text = "#a = :v"
    plan = compile_condition(text, Bindings({"#a": "x"}, {":v": {"N": "1"}}))

    renamed = compile_condition(text, Bindings({"#a": "y"}, {":v": {"N": "1"}}))
    retyped = compile_condition(text, Bindings({"#a": "x"}, {":v": {"SS": ["1", "2"]}}))

    assert renamed.attributes == {"y"}
    assert evaluate(retyped, {"x": {"SS": ["2", "1"]}}, {":v": {"SS": ["1", "2"]}}) is True
    assert compile_condition(text, Bindings({"#a": "x"}, {":v": {"N": "9"}})) is plan


def test_a_cached_plan_repeats_its_refusals() -> None:
    """Missing placeholders, changed types and values that break a rule are still refused."""
    good = Bindings({"#a": "x"}, {":lo": {"N": "1"}, ":hi": {"N": "2"}, ":t": {"S": "N"}})
    between = "#a BETWEEN :lo AND :hi"
    compile_condition(between, good)
    compile_condition("attribute_type(#a, :t)", good)
    compile_key_condition(between, good)

    for compile_ in (compile_condition, compile_key_condition):
        with pytest.raises(ExpressionError, match="requires upper bound to be greater"):
            compile_(between, Bindings({"#a": "x"}, {":lo": {"N": "3"}, ":hi": {"N": "2"}}))
        with pytest.raises(ExpressionError, match="attribute name: #a"):
            compile_(between, Bindings({}, good.values))
        with pytest.raises(ExpressionError, match="attribute value: :hi"):
            compile_(between, Bindings(good.names, {":lo": {"N": "1"}}))
        with pytest.raises(ExpressionError, match="operand type: BOOL"):
            compile_(between, Bindings(good.names, {":lo": {"BOOL": True}, ":hi": {"N": "2"}}))
    with pytest.raises(ExpressionError, match="Invalid attribute type name found; type: DOG"):
        compile_condition("attribute_type(#a, :t)", Bindings({"#a": "x"}, {":t": {"S": "DOG"}}))


def test_a_condition_and_a_filter_of_one_text_speak_for_themselves() -> None:
    """The field is part of the message, so it is part of the cache key."""
    values = {":lo": {"N": "1"}, ":hi": {"N": "2"}}
    for field in ("ConditionExpression", "FilterExpression"):
        compile_condition("a BETWEEN :lo AND :hi", Bindings({}, values), field=field)

    for field in ("ConditionExpression", "FilterExpression"):
        with pytest.raises(ExpressionError, match=f"Invalid {field}: The BETWEEN"):
            compile_condition("a BETWEEN :hi AND :lo", Bindings({}, values), field=field)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that never repeats an expression takes bounded memory."""
    monkeypatch.setattr(plans, "TEXTS_MAX", 4)
    cache = plans._projections
    cache.kept.clear()

    for number in range(20):
        compile_projection(f"a{number}", Bindings())
        compile_update("SET #a = :v", Bindings({"#a": f"b{number}"}, {":v": {"N": "1"}}))

    assert [text for _, text in cache.kept] == ["a16", "a17", "a18", "a19"]
    assert len(plans._updates.kept["UpdateExpression", "SET #a = :v"]) == plans.VARIANTS_MAX
