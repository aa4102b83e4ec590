"""Operands: what they say in an expression, and what they refuse to say."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from tavola import Attr, Change, Condition, Entity, ModelError, QueryRefused, attr
from tavola.expressions.renderer import Renderer


class Colour(Enum):
    """An enum."""

    RED = "red"


class Thing(Entity):
    """An entity with a field of each kind."""

    word: Attr[str] = attr(name="w")
    count: Attr[int]
    price: Attr[Decimal | None]
    colour: Attr[Colour]
    tags: Attr[set[str]]
    lines: Attr[list[str]]
    seen: Attr[dict[str, int]]


def told(condition: Condition[Any]) -> tuple[str, list[Any]]:
    """Return a condition as text with names for placeholders, and its values."""
    renderer = Renderer()
    text = renderer.condition(condition.node)
    for placeholder, name in sorted(renderer.names.items(), reverse=True):
        text = text.replace(placeholder, name)
    return text, list(renderer.values.values())


def test_conditions_name_the_attribute_and_encode_the_value() -> None:
    """A condition is on the attribute that the field is stored as, with a value as it is stored."""
    assert told(Thing.word == "x") == ("w = :v0", [{"S": "x"}])
    assert told(Thing.colour.eq(Colour.RED)) == ("colour = :v0", [{"S": "red"}])
    assert told(Thing.price.between(Decimal(1), Decimal("2.50")))[1] == [{"N": "1"}, {"N": "2.5"}]
    assert told(Thing.count.is_in(1, 2))[0] == "count IN (:v0, :v1)"


def test_none_asks_for_absence() -> None:
    """None is stored as absence, so equality with it asks whether the attribute is there."""
    assert told(Thing.price == None) == ("attribute_not_exists(price)", [])  # noqa: E711
    assert told(Thing.price.ne(None)) == ("attribute_exists(price)", [])


def test_fields_are_compared_with_fields() -> None:
    """Another field of the same item may stand where a value does."""
    assert told(Thing.count <= Thing.count) == ("count <= count", [])
    assert told(Thing.tags.size() > 2) == ("size(tags) > :v0", [{"N": "2"}])


def test_conditions_combine_in_rows() -> None:
    """Several terms in a row make one row, not a nest."""
    one, two, three = Thing.count > 1, Thing.count > 2, Thing.count > 3

    assert told(one & two & three)[0] == "count > :v0 AND count > :v1 AND count > :v2"
    assert told(~one | (two & three))[0].startswith("NOT count > :v0 OR ")


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (lambda: Thing.price.lt(None), "price: None is stored as a missing attribute and has no order; use exists() or not_exists()"),
        (Thing.count.is_in, "count: is_in() has 0 values; use 1 to 100"),
        (lambda: Thing.count.is_in(*range(101)), "count: is_in() has 101 values; use 1 to 100"),
    ],
)  # fmt: skip
def test_what_no_expression_says_is_refused(wrong: Any, refusal: str) -> None:
    """An order with None and a choice of nothing are refused where they are made."""
    with pytest.raises(QueryRefused) as refused:
        wrong()

    assert str(refused.value) == refusal


def test_the_size_of_a_field_is_only_compared() -> None:
    """What is no attribute cannot be changed."""
    with pytest.raises(TypeError, match=r"size\(\) can only be compared; it cannot be set or indexed"):
        Thing.tags.size().set(3)


def test_changes_know_their_field() -> None:
    """A change tells which field it is of, and whether it is of the whole field."""
    changes: list[Change[Thing]] = [
        Thing.count.set(Thing.count + 1),
        Thing.word.set("x"),
        Thing.seen["a"].set(1),
        Thing.price.remove(),
        Thing.lines.append("x"),
        Thing.tags.discard({"x"}),
    ]

    assert [change.field for change in changes] == ["count", "word", "seen", "price", "lines", "tags"]
    assert [change.whole for change in changes] == [True, True, False, True, True, True]


def test_operands_are_in_no_set() -> None:
    """Equality makes a condition, so there is no hash."""
    operand: Any = Thing.word

    with pytest.raises(TypeError, match="unhashable"):
        hash(operand)
    assert repr(operand) == "<Operand word>"


def test_an_option_that_pydantic_has_goes_into_the_type() -> None:
    """A constraint among the options would be seen by no checker, and an alias would rename the argument."""
    options: Any = {"max_length": 3}

    with pytest.raises(
        ModelError, match=r"attr\(\) has no argument max_length=; name= sets the attribute name in DynamoDB,"
    ):
        attr(**options)
