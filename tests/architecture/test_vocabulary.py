"""Plain words: no retired vocabulary, no function named with a bare participle, no two classes of one name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.source_tree import Module, modules, packages, read_module
from tests.architecture.vocabulary import participle_functions, repeated_classes, retired_words

# Pairs that share a name on purpose: a declaration for type checkers and its implementation, and a member of
# AWS's model whose class name appears in AWS's messages.
SHARED_CLASSES = {"Attr", "Condition", "Sort", "Step"}


def _of(package: str) -> list[Module]:
    return [module for module in modules() if module.package == package]


@pytest.mark.parametrize("package", packages())
def test_no_retired_word_is_used(package: str) -> None:
    """Names, docstrings and comments use the trade's words."""
    findings = [str(finding) for module in _of(package) for finding in retired_words(module)]

    assert findings == []


@pytest.mark.parametrize("package", packages())
def test_functions_are_named_with_a_verb(package: str) -> None:
    """A function is named with a verb and its object, not with a participle."""
    findings = [str(finding) for module in _of(package) for finding in participle_functions(module)]

    assert findings == []


def test_a_class_name_means_one_thing() -> None:
    """No two classes share a name."""
    findings = [str(finding) for finding in repeated_classes(modules())]

    assert [each for each in findings if each.split("class ")[1].split()[0] not in SHARED_CLASSES] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""What the caller is told."""', 1),
        ("x = 1  # nobody reads this", 1),
        ("def f(told): ...", 1),
        ("chores_left = 1", 1),
        ("class Rack: ...", 1),
        ('"""Return a key that is none."""', 1),
        ('x = "told"', 0),
        ('"""Return the mandatory broom."""', 0),
    ],
)
def test_a_planted_word_is_found(tmp_path: Path, text: str, count: int) -> None:
    """The detector reads docstrings, comments and names, and leaves strings and longer words alone."""
    (tmp_path / "tavola").mkdir()
    path = tmp_path / "tavola" / "planted.py"
    path.write_text(text + "\n")

    assert len(list(retired_words(read_module(path, tmp_path / "tavola")))) == count


def test_a_planted_participle_and_a_planted_namesake_are_found(tmp_path: Path) -> None:
    """The detectors see a participle and a repeated class, and accept a property and a key class."""
    text = """
class Place: ...
class Key: ...
class Other:
    class Place: ...
    class Key: ...
    @property
    def closed(self): ...
    def joined(self): ...
def kept(): ...
def seed(): ...
"""
    (tmp_path / "tavola").mkdir()
    path = tmp_path / "tavola" / "planted.py"
    path.write_text(text)
    module = read_module(path, tmp_path / "tavola")

    assert Counter(finding.message.partition(":")[0] for finding in participle_functions(module)) == {
        "joined": 1,
        "kept": 1,
    }
    assert len(list(repeated_classes([module]))) == 2
