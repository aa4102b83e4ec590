"""Patterns: wildcards, variables, and the time they take."""

from __future__ import annotations

from time import perf_counter

import pytest

from tavola.iam.patterns import (
    compile_action,
    compile_arn_pattern,
    compile_pattern,
    expand,
    fill,
    without_variables,
)
from tavola.protocol.policy_values import Variable, parse_pieces


def _match(pattern: str, text: str) -> bool:
    solid = without_variables(parse_pieces(pattern, wildcards=True, variables=True))
    assert solid is not None
    return compile_pattern(solid)(text)


class Values:
    """A request with these values."""

    def __init__(self, **values: tuple[str, ...]) -> None:
        self._values = values

    def values(self, key: str) -> tuple[str, ...]:
        return self._values.get(key.partition(":")[2], ())


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "A", False),
        ("*", "", True),
        ("*", "anything\nat all", True),
        ("a*", "abc", True),
        ("a*", "ba", False),
        ("*a", "ba", True),
        ("*a", "ab", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a*bc*c", "abcc", True),
        ("a*bc*c", "abc", False),
        ("?", "a", True),
        ("?", "", False),
        ("a?c", "abc", True),
        ("*?b*", "ab", True),
        ("*?b*", "b", False),
        ("**", "x", True),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("${*}", "*", True),
        ("${*}", "x", False),
        ("a${?}", "a?", True),
        ("${$}{x}", "${x}", True),
    ],
)
def test_wildcards(pattern: str, text: str, matches: bool) -> None:
    """A star is any number of signs, a question mark one; all others stand for themselves."""
    assert _match(pattern, text) is matches


def test_a_pattern_takes_time_in_proportion_to_the_text() -> None:
    """No pattern that somebody may put keeps others waiting, however many stars it has."""
    pattern = "*a" * 200 + "b"
    begun = perf_counter()

    assert not _match(pattern, "a" * 20_000)

    assert perf_counter() - begun < 1.0


@pytest.mark.parametrize(
    "written", ["dynamodb:GetItem", "DYNAMODB:GETITEM", "dynamodb:get*", "*", "dynamodb:?etItem"]
)
def test_actions_have_no_case(written: str) -> None:
    """A policy may write an action in any case."""
    assert compile_action(written)("dynamodb:getitem")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("arn:aws:iam::1:user/*", True),
        ("arn:*:*:*:*:*", True),
        ("arn:aws:iam::1:user/a", True),
        ("arn:aws:iam::*user/a", False),
        ("arn:aws:iam:*", False),
        ("*", True),
        ("arn:aws:iam::1:user/b", False),
    ],
)
def test_an_arn_is_matched_part_by_part(pattern: str, matches: bool) -> None:
    """In a condition a star of an ARN does not reach over a colon; a star alone is every ARN."""
    solid = without_variables(parse_pieces(pattern, wildcards=True, variables=False))

    assert solid is not None
    assert compile_arn_pattern(solid)("arn:aws:iam::1:user/a") is matches


def test_what_fills_a_variable_has_no_wildcards() -> None:
    """A user who is called `*` is called so, and is not everybody."""
    pieces = parse_pieces("x-${aws:username}", wildcards=True, variables=True)
    solid = without_variables(expand(pieces, {"aws:username": ("*",)}))

    assert solid is not None
    assert compile_pattern(solid)("x-*")
    assert not compile_pattern(solid)("x-bob")


def test_a_variable_without_a_value_matches_nothing_unless_it_has_a_default() -> None:
    """A text with an unfilled variable is no text; a default stands in, and several values are none."""
    plain = parse_pieces("${aws:a}", wildcards=False, variables=True)
    defaulted = parse_pieces("${aws:a, 'x'}", wildcards=False, variables=True)

    assert plain == (Variable("aws:a"),)
    assert fill(plain, Values()) is None
    assert fill(plain, Values(a=("1", "2"))) is None
    assert fill(plain, Values(a=("1",))) == ("1",)
    assert fill(defaulted, Values()) == ("x",)
