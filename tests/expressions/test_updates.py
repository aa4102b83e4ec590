"""What updates make of items."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import UpdateRefused
from tavola.expressions.plans import compile_update
from tavola.expressions.updates import apply, written_part

VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":s": {"S": "new"},
    ":t": {"S": "more"},
    ":u": {"S": "most"},
    ":big": {"N": "9" * 38},
    ":tiny": {"N": "0." + "0" * 129 + "1"},
    ":l": {"L": [{"S": "x"}]},
    ":ss": {"SS": ["b", "c"]},
    ":ns": {"NS": ["1"]},
    ":all": {"SS": ["a", "b"]},
    ":m": {"M": {"k": {"S": "v"}}},
}
INVALID_PATH = "The document path provided in the update expression is invalid for update"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
NO_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"


def item() -> dict[str, Any]:
    """Return the item that the cases start from."""
    return {
        "n": {"N": "5"},
        "s": {"S": "old"},
        "ss": {"SS": ["a", "b"]},
        "l": {"L": [{"N": str(n)} for n in range(4)]},
        "m": {"M": {"x": {"N": "1"}, "ss": {"SS": ["a", "b"]}, "in": {"M": {"y": {"S": "z"}}}}},
        "lm": {"L": [{"M": {"k": {"S": "v"}}}, {"SS": ["a", "b"]}]},
        "huge": {"N": "9" * 38 + "0" * 88},
    }


def numbers(*members: int) -> dict[str, Any]:
    """Return a list of numbers."""
    return {"L": [{"N": str(member)} for member in members]}


CHANGES: list[tuple[str, dict[str, Any]]] = [
    # text, and what of the item is then different (None: gone)
    ("SET s = :s", {"s": {"S": "new"}}),
    ("SET fresh = :s, stray = :t", {"fresh": {"S": "new"}, "stray": {"S": "more"}}),
    ("SET a = n, n = :one", {"a": {"N": "5"}, "n": {"N": "1"}}),
    ("SET s = n, n = s", {"s": {"N": "5"}, "n": {"S": "old"}}),
    ("REMOVE s SET t = s", {"s": None, "t": {"S": "old"}}),
    ("SET n = n + :one", {"n": {"N": "6"}}),
    ("SET n = (:one - n)", {"n": {"N": "-4"}}),
    ("SET k = if_not_exists(k, :one) + :one", {"k": {"N": "2"}}),
    ("SET s = if_not_exists(s, nope)", {}),
    ("SET k = if_not_exists(nope, s)", {"k": {"S": "old"}}),
    ("SET k = if_not_exists(a, if_not_exists(m.x, :s))", {"k": {"N": "1"}}),
    ("SET k = list_append(:l, if_not_exists(k, :l))", {"k": {"L": [{"S": "x"}, {"S": "x"}]}}),
    ("SET k = list_append(l, :l)", {"k": {"L": [*numbers(0, 1, 2, 3)["L"], {"S": "x"}]}}),
    ("SET m.x = :s", {"m": {"M": {**item()["m"]["M"], "x": {"S": "new"}}}}),
    ("SET m.fresh = m.x", {"m": {"M": {**item()["m"]["M"], "fresh": {"N": "1"}}}}),
    ("SET m.#in.y = :s", {"m": {"M": {**item()["m"]["M"], "in": {"M": {"y": {"S": "new"}}}}}}),
    ("SET l[1] = :s", {"l": {"L": [{"N": "0"}, {"S": "new"}, {"N": "2"}, {"N": "3"}]}}),
    ("SET l[99] = :s", {"l": {"L": [*numbers(0, 1, 2, 3)["L"], {"S": "new"}]}}),
    (
        "SET l[90] = :s, l[70] = :t, l[80] = :u, l[0] = :one",
        {"l": {"L": [*numbers(1, 1, 2, 3)["L"], {"S": "more"}, {"S": "most"}, {"S": "new"}]}},
    ),
    ("SET lm[0].k = :s", {"lm": {"L": [{"M": {"k": {"S": "new"}}}, {"SS": ["a", "b"]}]}}),
    ("REMOVE s, nope", {"s": None}),
    ("REMOVE m.x, m.nope", {"m": {"M": {k: v for k, v in item()["m"]["M"].items() if k != "x"}}}),
    ("REMOVE l[0], l[2]", {"l": numbers(1, 3)}),
    ("REMOVE l[9]", {}),
    ("REMOVE l[1] SET l[3] = :one", {"l": numbers(0, 2, 1)}),
    ("REMOVE l[1] SET l[7] = :one", {"l": numbers(0, 2, 3, 1)}),
    ("REMOVE l[0], l[1], l[2], l[3]", {"l": {"L": []}}),
    ("REMOVE m.#in.y", {"m": {"M": {**item()["m"]["M"], "in": {"M": {}}}}}),
    ("ADD n :one", {"n": {"N": "6"}}),
    ("ADD k :one", {"k": {"N": "1"}}),
    ("ADD k :ss", {"k": {"SS": ["b", "c"]}}),
    ("ADD ss :ss", {"ss": {"SS": ["a", "b", "c"]}}),
    ("ADD m.x :one, m.k :ns", {"m": {"M": {**item()["m"]["M"], "x": {"N": "2"}, "k": {"NS": ["1"]}}}}),
    ("ADD l[0] :one, l[9] :one", {"l": numbers(1, 1, 2, 3, 1)}),
    ("DELETE ss :ss", {"ss": {"SS": ["a"]}}),
    ("DELETE ss :all", {"ss": None}),
    ("DELETE nope :ss", {}),
    ("DELETE m.ss :all", {"m": {"M": {k: v for k, v in item()["m"]["M"].items() if k != "ss"}}}),
    ("DELETE lm[1] :all", {"lm": {"L": [{"M": {"k": {"S": "v"}}}]}}),
    (
        "set s = :s remove n add k :one delete ss :ss",
        {"s": {"S": "new"}, "n": None, "k": {"N": "1"}, "ss": {"SS": ["a"]}},
    ),
]


@pytest.mark.parametrize(("text", "changes"), CHANGES)
def test_an_update_makes_a_new_item_and_leaves_the_old(text: str, changes: dict[str, Any]) -> None:
    """Every right side and every index sees the item as it was."""
    old = item()
    expected = {name: value for name, value in {**item(), **changes}.items() if value is not None}

    applied = apply(compile_update(text, Bindings({"#in": "in"}, VALUES)), old, VALUES)

    assert applied.item == expected
    assert old == item()


REFUSALS = [
    ("SET a = nope", NO_ATTRIBUTE),
    ("SET x = :s, y = x", NO_ATTRIBUTE),
    ("SET a = nope + :one", NO_ATTRIBUTE),
    ("SET a = m.nope - :one", NO_ATTRIBUTE),
    ("SET a = list_append(nope, :l)", NO_ATTRIBUTE),
    ("SET a = if_not_exists(nope, gone)", NO_ATTRIBUTE),
    ("SET a = s + :one", WRONG_TYPE),
    ("SET a = :one - s", WRONG_TYPE),
    ("SET a = list_append(s, :l)", WRONG_TYPE),
    ("SET a = list_append(:l, l) + :one", WRONG_TYPE),
    ("SET a = list_append(if_not_exists(a, :s), :l)", WRONG_TYPE),
    ("ADD s :one", WRONG_TYPE),
    ("ADD n :ss", WRONG_TYPE),
    ("ADD ss :ns", WRONG_TYPE),
    ("ADD l :ss", WRONG_TYPE),
    ("DELETE s :ss", WRONG_TYPE),
    ("DELETE ss :ns", WRONG_TYPE),
    ("SET s.x = :s", INVALID_PATH),
    ("SET l.x = :s", INVALID_PATH),
    ("SET nope.x = :s", INVALID_PATH),
    ("SET m[0] = :s", INVALID_PATH),
    ("SET nope[0] = :s", INVALID_PATH),
    ("SET l[9].x = :s", INVALID_PATH),
    ("SET m.nope.x = :s", INVALID_PATH),
    ("REMOVE s.x", INVALID_PATH),
    ("REMOVE nope.x", INVALID_PATH),
    ("REMOVE nope[0]", INVALID_PATH),
    ("ADD nope.x :one", INVALID_PATH),
    ("DELETE nope.x :ss", INVALID_PATH),
    ("SET a = huge + huge", OVERFLOW),
    ("ADD huge :one", OVERFLOW),
    ("SET a = :big + :tiny", OVERFLOW),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSALS)
def test_what_an_item_does_not_allow_is_refused(text: str, sentence: str) -> None:
    """The sentence has no field in front: it is about the item."""
    old = item()
    update = compile_update(text, Bindings({}, VALUES))

    with pytest.raises(UpdateRefused) as caught:
        apply(update, old, VALUES)

    assert str(caught.value) == sentence
    assert old == item()


def test_what_is_missing_of_a_missing_item_can_be_removed() -> None:
    """REMOVE passes over a missing parent if there is no item at all; SET does not."""
    bindings = Bindings({}, VALUES)

    assert apply(compile_update("REMOVE x.y, z[0]", bindings), {"pk": {"S": "1"}}, {}, exists=False).item == {
        "pk": {"S": "1"}
    }
    with pytest.raises(UpdateRefused):
        apply(compile_update("SET x.y = :s", bindings), {}, VALUES, exists=False)
    with pytest.raises(UpdateRefused):
        apply(compile_update("SET x.y = :s REMOVE x.z", bindings), {}, VALUES, exists=False)


TOUCHED: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = [
    # text, UPDATED_OLD, UPDATED_NEW
    ("SET s = :s, k = :t", {"s": {"S": "old"}}, {"s": {"S": "new"}, "k": {"S": "more"}}),
    ("SET k = :t", None, {"k": {"S": "more"}}),
    ("REMOVE s", {"s": {"S": "old"}}, None),
    ("SET m.x = :s", {"m": {"M": {"x": {"N": "1"}}}}, {"m": {"M": {"x": {"S": "new"}}}}),
    ("SET l[1] = :s, l[3] = :t", {"l": numbers(1, 3)}, {"l": {"L": [{"S": "new"}, {"S": "more"}]}}),
    ("SET l[99] = :s", None, None),
    ("REMOVE l[1], l[9]", {"l": numbers(1)}, {"l": numbers(2)}),
    (
        "SET m.k = :s, m.x = :t",
        {"m": {"M": {"x": {"N": "1"}}}},
        {"m": {"M": {"k": {"S": "new"}, "x": {"S": "more"}}}},
    ),
    ("ADD n :one", {"n": {"N": "5"}}, {"n": {"N": "6"}}),
    ("DELETE ss :all", {"ss": {"SS": ["a", "b"]}}, None),
]


@pytest.mark.parametrize(("text", "before", "after"), TOUCHED)
def test_the_touched_part_holds_touched_paths_in_their_containers(
    text: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    """Looked up as written in either image, list elements compacted; nothing is None."""
    old = item()

    applied = apply(compile_update(text, Bindings({}, VALUES)), old, VALUES)

    assert written_part(old, applied) == before
    assert written_part(applied.item, applied) == after


def test_untouched_values_are_shared() -> None:
    """An update copies the way to what it changes and nothing else."""
    old = item()

    new = apply(compile_update("SET m.x = :s", Bindings({}, VALUES)), old, VALUES).item

    assert new["l"] is old["l"]
    assert new["m"]["M"]["in"] is old["m"]["M"]["in"]
    assert new["m"] is not old["m"]


def test_an_update_reports_its_names() -> None:
    """Written attributes are distinguished from read ones: a key may be read."""
    update = compile_update("SET a.#b = pk + :one REMOVE c", Bindings({"#b": "b"}, VALUES))

    assert update.attributes == {"a", "pk", "c"}
    assert update.written == {"a", "c"}
    assert update.nested == {"a"}
    assert update.touched == (("a", "b"), ("c",))
    assert update.names_used == {"#b"}
    assert update.values_used == {":one"}


@pytest.mark.parametrize(
    ("text", "only"), [("REMOVE a DELETE b :ss", True), ("REMOVE a ADD b :ss", False), ("SET a = :s", False)]
)
def test_an_update_reports_whether_it_only_removes(text: str, only: bool) -> None:
    """An update that only removes does not create a missing item."""
    assert compile_update(text, Bindings({}, deepcopy(VALUES))).removes_only is only
