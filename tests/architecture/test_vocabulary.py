"""Plain words: no retired vocabulary, no function named with a bare participle, no two classes of one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.source_tree import Finding, Module, modules, packages, read_module
from tests.architecture.vocabulary import participle_functions, repeated_classes, retired_words

# Findings that are left in a package. A number here may only fall; a package without one has none.
RETIRED_LEFT: dict[str, int] = {
    "apps": 91,
    "backends": 32,
    "cli": 2,
    "client": 229,
    "design": 56,
    "engine": 75,
    "expressions": 2,
    "iac": 55,
    "iam": 3,
    "keys": 2,
    "model": 39,
    "patterns": 1,
    "prices": 4,
    "server": 33,
    "studio": 168,
    "values": 3,
    "web": 6,
}
PARTICIPLES_LEFT: dict[str, int] = {
    "apps": 25,
    "backends": 18,
    "cli": 2,
    "client": 75,
    "design": 16,
    "engine": 24,
    "expressions": 25,
    "iac": 10,
    "iam": 5,
    "keys": 2,
    "model": 5,
    "protocol": 9,
    "server": 1,
    "studio": 24,
    "web": 7,
}
REPEATED_CLASSES_LEFT = 156


def _check(findings: Iterable[Finding], allowed: int) -> None:
    listed = [str(finding) for finding in findings]
    assert len(listed) <= allowed, f"{len(listed)} findings, {allowed} allowed:\n" + "\n".join(listed)


def _of(package: str) -> list[Module]:
    return [module for module in modules() if module.package == package]


@pytest.mark.parametrize("package", packages())
def test_no_retired_word_is_used(package: str) -> None:
    """Names, docstrings and comments use the trade's words."""
    findings = [finding for module in _of(package) for finding in retired_words(module)]

    _check(findings, RETIRED_LEFT.get(package, 0))


@pytest.mark.parametrize("package", packages())
def test_functions_are_named_with_a_verb(package: str) -> None:
    """A function is named with a verb and its object, not with a participle."""
    findings = [finding for module in _of(package) for finding in participle_functions(module)]

    _check(findings, PARTICIPLES_LEFT.get(package, 0))


def test_a_class_name_means_one_thing() -> None:
    """No two classes share a name."""
    _check(repeated_classes(modules()), REPEATED_CLASSES_LEFT)


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
