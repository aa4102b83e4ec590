"""What conditions say of items."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import evaluate, prepare_values
from tavola.expressions.plans import compile_condition

ITEM: dict[str, Any] = {
    "s": {"S": "hello"},
    "n": {"N": "5"},
    "b": {"B": "aGVsbG8="},
    "yes": {"BOOL": True},
    "nil": {"NULL": True},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2.5"]},
    "bs": {"BS": ["AA==", "AQ=="]},
    "l": {"L": [{"S": "x"}, {"NS": ["2", "1"]}, {"M": {"k": {"N": "7"}}}]},
    "m": {"M": {"k": {"S": "v"}, "deep": {"L": [{"N": "1"}, {"N": "2"}]}}},
    "clef": {"S": "\U0001d11e\u00e9"},
    "a.b": {"S": "dotted"},
    "nul": {"S": ""},
}
VALUES: dict[str, Any] = {
    ":hello": {"S": "hello"},
    ":hell": {"S": "hell"},
    ":ell": {"S": "ell"},
    ":zz": {"S": "zz"},
    ":a": {"S": "a"},
    ":empty": {"S": ""},
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":three": {"N": "3"},
    ":five": {"N": "5"},
    ":six": {"N": "6"},
    ":ten": {"N": "10"},
    ":s5": {"S": "5"},
    ":bin": {"B": "aGVsbG8="},
    ":bhe": {"B": "aGU="},
    ":bll": {"B": "bGw="},
    ":b0": {"B": "AA=="},
    ":yes": {"BOOL": True},
    ":no": {"BOOL": False},
    ":nil": {"NULL": True},
    ":ba": {"SS": ["b", "a"]},
    ":n12": {"NS": ["1", "2"]},
    ":m": {"M": {"deep": {"L": [{"N": "1"}, {"N": "2"}]}, "k": {"S": "v"}}},
    ":S": {"S": "S"},
    ":L": {"S": "L"},
    ":NULL": {"S": "NULL"},
}
NAMES = {"#dotted": "a.b", "#s": "s"}

CASES = [
    # equality: deep, sets unordered, types apart
    ("s = :hello", True),
    ("s = :zz", False),
    (":hello = s", True),
    ("#s = :hello", True),
    ("#dotted = :hello", False),
    ("attribute_exists(#dotted)", True),
    ("n = :five", True),
    ("n = :s5", False),
    ("n <> :s5", True),
    ("yes = :yes", True),
    ("yes = :no", False),
    ("nil = :nil", True),
    ("b = :bin", True),
    ("ss = :ba", True),
    ("ss <> :ba", False),
    ("l[1] = :n12", True),
    ("m = :m", True),
    ("m.k = :zz", False),
    (":one = :one", True),
    # a missing attribute satisfies <> alone
    ("nope = :one", False),
    ("nope <> :one", True),
    ("nope < :one", False),
    (":one > nope", False),
    ("nope = gone", False),
    ("nope <> gone", True),
    ("NOT nope = :one", True),
    ("nope BETWEEN :one AND :two", False),
    ("n BETWEEN nope AND :ten", False),
    ("nope IN (:one)", False),
    ("NOT nope IN (:one)", True),
    ("m.nope.deeper = :one", False),
    ("s.k = :one", False),
    ("l[9] <> :one", True),
    ("s[0] = :hello", False),
    # order, within S, N and B only
    ("n < :ten", True),
    ("n > :ten", False),
    ("n <= :five", True),
    ("n >= :six", False),
    ("s < :zz", True),
    ("b > :b0", True),
    ("n < :zz", False),
    ("yes < :one", False),
    ("m.deep[0] < m.deep[1]", True),
    ("n BETWEEN :five AND :ten", True),
    ("n BETWEEN :six AND :ten", False),
    ("s BETWEEN :one AND :two", False),
    (":five BETWEEN :one AND n", True),
    ("n BETWEEN :ten AND m.deep[0]", False),
    ("n IN (:one, :five)", True),
    ("n IN (:s5)", False),
    ("ss IN (:a, :ba)", True),
    # long lists, which a filter looks up in a set
    ("n IN (:one, :two, :three, :s5)", False),
    ("n IN (:one, :two, :three, :five)", True),
    ("b IN (:hello, :bhe, :b0, :bin)", True),
    ("yes IN (:one, :nil, :no, :yes)", True),
    ("yes IN (:one, :nil, :no, :s5)", False),
    ("ss IN (:a, :one, :two, :three, :ba)", True),
    ("l[1] IN (:a, :one, :two, :three, :n12)", True),
    ("m IN (:a, :one, :two, :three)", False),
    ("n IN (:a, :one, :two, :three, m.deep[0], n2, l[2].k)", False),
    (":two IN (:a, :one, :ten, :three, m.deep[1])", True),
    ("nope IN (:a, :one, :two, :three)", False),
    ("size(s) IN (:a, :one, :two, :five)", True),
    # functions
    ("attribute_exists(nul)", True),
    ("attribute_exists(m.deep[1])", True),
    ("attribute_exists(m.deep[2])", False),
    ("attribute_not_exists(m.nope)", True),
    ("attribute_not_exists(s)", False),
    ("attribute_type(s, :S)", True),
    ("attribute_type(s, :L)", False),
    ("attribute_type(nil, :NULL)", True),
    ("attribute_type(nope, :S)", False),
    ("attribute_type(:one, :S)", False),
    ("begins_with(s, :hell)", True),
    ("begins_with(s, :ell)", False),
    ("begins_with(s, :empty)", True),
    ("begins_with(b, :bhe)", True),
    ("begins_with(b, :bll)", False),
    ("begins_with(b, :hell)", False),
    ("begins_with(n, :hell)", False),
    ("begins_with(:hello, s)", True),
    ("begins_with(nope, :hell)", False),
    ("contains(s, :ell)", True),
    ("contains(s, :zz)", False),
    ("contains(b, :bll)", True),
    ("contains(ss, :a)", True),
    ("contains(ss, :zz)", False),
    ("contains(ns, :one)", True),
    ("contains(ns, :two)", False),
    ("contains(bs, :b0)", True),
    ("contains(ns, :a)", False),
    ("contains(l, :n12)", True),
    ("contains(l, :one)", False),
    ("contains(n, :five)", False),
    ("contains(m, :hello)", False),
    ("contains(nope, :a)", False),
    # size
    ("size(s) = :five", True),
    ("size(clef) = :three", True),
    ("size(nul) < :one", True),
    ("size(b) = :five", True),
    ("size(ss) = :two", True),
    ("size(ns) = :two", True),
    ("size(bs) = :two", True),
    ("size(l) = :three", True),
    ("size(m) = :two", True),
    ("size(n) = :one", False),
    ("size(yes) >= :one", False),
    ("size(nil) = :one", False),
    ("size(nope) > :one", False),
    ("size(s) = n", True),
    ("size(s) BETWEEN :one AND :ten", True),
    ("size(s) IN (:five)", True),
    ("size(s) = :hello", False),
    ("size(:hello) = :five", True),
    # AND, OR, NOT
    ("s = :zz OR n = :five AND yes = :yes", True),
    ("(s = :zz OR n = :five) AND yes = :no", False),
    ("NOT s = :zz AND n = :five", True),
    ("NOT (s = :hello AND n = :five)", False),
    ("NOT NOT s = :hello", True),
    ("s = :zz OR n = :one OR yes = :yes", True),
    ("s = :hello and n = :five and yes = :no", False),
    ("(s) = (:hello)", True),
    ("(m).k <> (l)[0]", True),
]


@pytest.mark.parametrize(("text", "truth"), CASES)
def test_a_condition_says_what_dynamodb_says(text: str, truth: bool) -> None:
    """One row a rule."""
    condition = compile_condition(text, Bindings(NAMES, VALUES))

    assert evaluate(condition, ITEM, VALUES) is truth
    assert evaluate(condition, ITEM, prepare_values(condition, VALUES)) is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("attribute_not_exists(pk)", True),
        ("attribute_exists(pk)", False),
        ("pk = :one", False),
        ("pk <> :one", True),
    ],
)
def test_no_item_is_an_item_without_attributes(text: str, truth: bool) -> None:
    """A condition on a missing item is decided, not refused."""
    condition = compile_condition(text, Bindings({}, VALUES))

    assert evaluate(condition, None, VALUES) is truth
    assert evaluate(condition, {}, VALUES) is truth


def test_a_condition_reports_its_names() -> None:
    """Top-level attributes, nested ones, and its placeholders."""
    condition = compile_condition(
        "#x.y = :v AND size(tags) > :n AND contains(#x.z, w)",
        Bindings({"#x": "doc", "#unused": "u"}, {":v": {"S": ""}, ":n": {"N": "1"}, ":u": {"N": "2"}}),
    )

    assert condition.attributes == {"doc", "tags", "w"}
    assert condition.nested == {"doc"}
    assert condition.names_used == {"#x"}
    assert condition.values_used == {":v", ":n"}


def test_only_long_lists_of_scalars_are_put_into_sets() -> None:
    """The constants of a long IN are looked up; short lists, attributes and documents are compared."""
    long, short = "n IN (:one, :two, :three, :ten, n2, :m)", "s IN (:a, :zz)"
    condition = compile_condition(f"{long} AND {short}", Bindings({}, VALUES))

    assert [each.placeholders for each in condition.operand_sets] == [(":one", ":two", ":three", ":ten")]
    assert prepare_values(condition, VALUES).keys() - VALUES.keys() == {"IN 0"}
    assert prepare_values(compile_condition(short, Bindings({}, VALUES)), VALUES) is VALUES
