"""Guarantees: every number of docs/explanation/reliability.md is proven by a test that names it, and no other is named.

A test names the numbers that it proves in its docstring. With the words "over HTTP" it proves them for a server; then its
file, a file of tests that it imports, or its conftest.py starts one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

TESTS = ROOT / "tests"
PAGE = ROOT / "docs/explanation/reliability.md"
_ROW = re.compile(r"^\| (I\d+) \| .+ \| (yes|–) \|$", re.MULTILINE)
_NUMBER = re.compile(r"\bI\d+\b")


def guarantees(page: str) -> dict[str, bool]:
    """Return the numbers of the table, and whether a server makes the guarantee too."""
    return {number: served == "yes" for number, served in _ROW.findall(page)}


def docstrings(text: str) -> dict[str, str]:
    """Return the docstrings of a file's test functions by name; of a file without any number, none."""
    if not _NUMBER.search(text):
        return {}
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@cache
def starts_server(path: Path) -> bool:
    """Return whether a file, or a file of tests that it imports, starts a server."""
    return path.is_file() and any(
        (isinstance(node, ast.ImportFrom) and node.module == "tavola.server.listener")
        or (isinstance(node, ast.Constant) and node.value == "serve")
        or (isinstance(node, ast.ImportFrom) and _is_server(node.module or ""))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def _is_server(module: str) -> bool:
    return module.startswith("tests.") and starts_server(ROOT / f"{module.replace('.', '/')}.py")


def faults(promised: Mapping[str, bool], tests: Iterable[tuple[str, str, bool]]) -> list[str]:
    """Return what is wrong with tests, each given by its name, its docstring, and whether its file starts a server."""
    wrong, proven, served = [], set(), set()
    for name, rule, has_server in tests:
        numbers = set(_NUMBER.findall(rule))
        proven |= numbers
        wrong += [f"{name} names {number}, which the page lacks" for number in numbers - set(promised)]
        if numbers and "over HTTP" in rule:
            served |= numbers
            if not has_server:
                wrong.append(f"{name} starts no server")
    wrong += [f"no test names {number}" for number in promised if number not in proven]
    unserved = [number for number, over_http in promised.items() if over_http and number not in served]
    return wrong + [f"no test names {number} over HTTP" for number in unserved]


def test_every_guarantee_is_proven_by_a_test_that_names_it() -> None:
    """A guarantee without a test is a hope, and a number that the page lacks says nothing to a reader."""
    tests = [
        (
            f"{path.relative_to(ROOT)}::{name}",
            rule,
            starts_server(path) or starts_server(path.with_name("conftest.py")),
        )
        for path in sorted(TESTS.rglob("test_*.py"))
        for name, rule in docstrings(path.read_text(encoding="utf-8")).items()
    ]
    page = PAGE.read_text(encoding="utf-8")

    assert len(guarantees(page)) == len(re.findall(r"^\| I\d", page, re.MULTILINE)) > 20
    assert faults(guarantees(page), tests) == []


@pytest.mark.parametrize(
    ("rule", "has_server", "fault"),
    [
        ("I1: it is there.", True, "no test names I2 over HTTP"),
        ("I1: it is there. I2: whole.", True, "no test names I2 over HTTP"),
        ("I2 over HTTP: whole.", True, "no test names I1"),
        ("I1 I2 over HTTP: both.", False, "a_test starts no server"),
        ("I1 I2 I3 over HTTP: all.", True, "a_test names I3, which the page lacks"),
    ],
)
def test_a_planted_fault_is_found(rule: str, has_server: bool, fault: str) -> None:
    """A number that no test names, one that only tests in process name, and one that is not in the table."""
    promised = guarantees("| I1 | It is there. | – |\n| I2 | It is whole. | yes |\n")

    assert fault in faults(promised, [("a_test", rule, has_server)])
    assert faults(promised, [("a_test", "I1 I2 over HTTP: both.", True)]) == []


def test_a_file_that_starts_no_server_is_known(tmp_path: Path) -> None:
    """Directly and through its helpers a file starts a server or does not."""
    (tmp_path / "test_it.py").write_text("from tests.durability.serial import violations\n")

    assert not starts_server(tmp_path / "test_it.py")
    assert starts_server(TESTS / "durability/test_crashes.py")
    assert starts_server(TESTS / "server/test_http.py")
