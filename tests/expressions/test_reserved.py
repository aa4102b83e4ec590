"""Reserved words."""

from __future__ import annotations

from tavola.expressions.renderer import RESERVED_WORDS, is_reserved


def test_the_words_are_those_of_the_developer_guide() -> None:
    """573 of them, matched in any case."""
    assert len(RESERVED_WORDS) == 573
    assert is_reserved("Status")
    assert is_reserved("size")
    assert not is_reserved("remove")
    assert not is_reserved("total_1")
