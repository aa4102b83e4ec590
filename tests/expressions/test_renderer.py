"""Trees to text, names and values."""

from __future__ import annotations

from tavola.expressions.nodes import (
    And,
    Comparison,
    FunctionCall,
    InList,
    Literal,
    NameRef,
    Path,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.renderer import Renderer


def test_one_renderer_serves_a_whole_request() -> None:
    """Equal names and equal values share a placeholder; a plain name is written out."""
    renderer = Renderer()
    status, is_open = Path(("status",)), Literal({"S": "open"})
    more_than_ten = Comparison(">", Path(("amount",)), Literal({"N": "10"}))

    condition = renderer.condition(And((Comparison("=", status, is_open), more_than_ten)))
    change = renderer.update(UpdateNode((Remove(Path(("a b",))), Set(status, is_open))))

    assert condition == "#n0 = :v0 AND amount > :v1"
    assert change == "SET #n0 = :v0 REMOVE #n1"
    assert renderer.names == {"#n0": "status", "#n1": "a b"}
    assert renderer.values == {":v0": {"S": "open"}, ":v1": {"N": "10"}}


def test_what_a_bare_name_cannot_spell_gets_a_placeholder() -> None:
    """Reserved words in any case, keywords, odd characters, and names that do not start with a letter."""
    for name in ("Size", "remove", "and", "_a", "1", "a.b", "a[0]", "é", ""):
        renderer = Renderer()

        assert renderer.condition(_exists(name)) == "attribute_exists(#n0)"
        assert renderer.names == {"#n0": name}
    assert Renderer().condition(_exists("plain_1")) == "attribute_exists(plain_1)"


def _exists(name: str) -> FunctionCall:
    return FunctionCall("attribute_exists", (Path((name,)),))


def test_equal_is_the_same_value_and_type() -> None:
    """True is not 1, and text is not a number."""
    renderer = Renderer()

    one = Literal({"N": "1"})
    text = renderer.condition(InList(Path(("a",)), (one, Literal({"BOOL": True}), Literal({"S": "1"}), one)))

    assert text == "a IN (:v0, :v1, :v2, :v0)"


def test_placeholders_of_a_parsed_tree_are_left_alone() -> None:
    """They belong to the bindings that came with it."""
    assert Renderer().condition(Comparison("<", Path((NameRef("#a"), 3)), ValueRef(":v"))) == "#a[3] < :v"
