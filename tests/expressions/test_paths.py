"""Document paths together."""

from __future__ import annotations

import pytest

from tavola.expressions.errors import ExpressionError
from tavola.expressions.paths import Steps, check_disjoint, path_text, tree_of


def test_a_path_is_printed_as_dynamodb_prints_it() -> None:
    """Each index is in brackets."""
    assert path_text(("a", "b.c", 1)) == "[a, b.c, [1]]"


def test_paths_make_a_tree_in_index_order() -> None:
    """Names keep their order, indexes are put in theirs."""
    tree = tree_of([(("z", 2), "z2"), (("z", 0), "z0"), (("b",), "b"), (("a", "c"), "ac")])

    assert tree == {"b": "b", "a": {"c": "ac"}, "z": {0: "z0", 2: "z2"}}
    assert list(tree["z"]) == [0, 2]


@pytest.mark.parametrize(
    ("paths", "verb"),
    [
        ([("a",), ("a",)], "overlap"),
        ([("a", "b"), ("c",), ("a",)], "overlap"),
        ([("a",), ("a", 0, "c")], "overlap"),
        ([("a", 0), ("a", "b")], "conflict"),
        ([("a", 0), ("a", "b"), ("a", 0, 1)], "overlap"),
    ],
)
def test_paths_that_meet_are_refused(paths: list[Steps], verb: str) -> None:
    """An overlap anywhere is reported before a conflict."""
    with pytest.raises(ExpressionError, match=f"paths {verb} with each other"):
        check_disjoint(paths, "ProjectionExpression")


def test_paths_apart_are_not() -> None:
    """Two indexes of a list, two names of a map."""
    check_disjoint([("a", 0), ("a", 1), ("b", "x"), ("b", "y"), ("c",)], "UpdateExpression")
