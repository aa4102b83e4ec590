"""Trees to text, names and values."""

from __future__ import annotations

from tavola.expressions.builder import F, update
from tavola.expressions.nodes import Comparison, NameRef, Path, ValueRef
from tavola.expressions.renderer import Renderer


def test_one_renderer_serves_a_whole_request() -> None:
    """Equal names and equal values share a placeholder; a plain name is written out."""
    renderer = Renderer()

    condition = renderer.condition(((F("status") == "open") & (F("amount") > 10)).node)
    change = renderer.update(update(F("status").set("open"), F("a b").remove()))

    assert condition == "#n0 = :v0 AND amount > :v1"
    assert change == "SET #n0 = :v0 REMOVE #n1"
    assert renderer.names == {"#n0": "status", "#n1": "a b"}
    assert renderer.values == {":v0": {"S": "open"}, ":v1": {"N": "10"}}


def test_what_a_bare_name_cannot_spell_gets_a_placeholder() -> None:
    """Reserved words in any case, keywords, odd characters, and names that do not start with a letter."""
    for name in ("Size", "remove", "and", "_a", "1", "a.b", "a[0]", "é", ""):
        renderer = Renderer()

        assert renderer.condition(F(name).exists().node) == "attribute_exists(#n0)"
        assert renderer.names == {"#n0": name}
    assert Renderer().condition(F("plain_1").exists().node) == "attribute_exists(plain_1)"


def test_equal_is_the_same_value_and_type() -> None:
    """True is not 1, and text is not a number."""
    renderer = Renderer()

    text = renderer.condition(F("a").is_in(1, True, "1", 1).node)

    assert text == "a IN (:v0, :v1, :v2, :v0)"


def test_placeholders_of_a_parsed_tree_are_left_alone() -> None:
    """They belong to the bindings that came with it."""
    assert Renderer().condition(Comparison("<", Path((NameRef("#a"), 3)), ValueRef(":v"))) == "#a[3] < :v"
