"""Each pitfall that the documents tell of has a test that names it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def told(page: str) -> set[int]:
    """Return the numbers of the pitfalls on a page."""
    return {int(number) for number in re.findall(r"^(\d+)\. \*\*", page, re.MULTILINE)}


def named_by(texts: Iterable[str]) -> set[int]:
    """Return the numbers of the pitfalls that tests name in their docstrings."""
    return {int(n) for text in texts for n in re.findall(r'"""Pitfall (\d+)\b', text)}


def test_each_pitfall_has_a_test() -> None:
    """docs/explanation/pitfalls.md and the tests name the same pitfalls."""
    pages = told((ROOT / "docs" / "explanation" / "pitfalls.md").read_text())

    assert pages == named_by(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_a_pitfall_without_a_test_is_found() -> None:
    """The comparison is not empty: a page's pitfall that no test names shows."""
    assert told("1. **One.** x\n2. **Two.** y\n") - named_by(['"""Pitfall 1: it holds."""']) == {2}
