"""The tests keep their own rules: each states its rule, none sleeps, none is skipped in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, Finding, Module, nodes, read_module

TESTS = ROOT / "tests"


def function_name(call: ast.Call) -> str:
    """Return the last name of what a call calls."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


@cache
def modules_with_tests() -> tuple[Module, ...]:
    """Return every file of tests, read once for all rules."""
    return tuple(read_module(path, TESTS) for path in sorted(TESTS.rglob("test_*.py")))


def states_no_rule(module: Module) -> Iterator[Finding]:
    """Give each test function without a docstring."""
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            states = ast.get_docstring(node)
            if node.name.startswith("test_") and not states:
                yield module.find(node, f"{node.name} does not state its rule")


def sleeps(module: Module) -> Iterator[Finding]:
    """Give each sleep: what waits for a time waits too long or not long enough."""
    for node in nodes(module):
        if not (isinstance(node, ast.Call) and function_name(node) == "sleep"):
            continue
        if ast.unparse(node.func) in {"time.sleep", "sleep", "asyncio.sleep"}:
            waits = (
                not node.args or ast.unparse(node.args[0]) != "0"
            )  # asyncio.sleep(0) is a turn of the loop
            if waits:
                yield module.find(node, "a sleep: wait for the thing itself")


def skips_without_reason(module: Module) -> Iterator[Finding]:
    """Give each skip or expected failure that does not say why."""
    for node in nodes(module):
        if isinstance(node, ast.Call) and function_name(node) in {"skip", "skipif", "xfail"}:
            name = ast.unparse(node.func)
            said = [keyword.arg for keyword in node.keywords]
            if (
                name in {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
                and "reason" not in said
            ):
                yield module.find(node, f"{name} without a reason")
        elif isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if ast.unparse(mark) in {"pytest.mark.skip", "pytest.mark.xfail"}:
                    yield module.find(mark, f"{ast.unparse(mark)} without a reason")


DETECTORS = {"rule": states_no_rule, "sleep": sleeps, "skip": skips_without_reason}

PLANTED = [
    ("rule", "def test_it() -> None:\n    assert True"),
    ("sleep", "import time\ntime.sleep(1)"),
    ("sleep", "from asyncio import sleep\nasync def f():\n    await sleep(0.1)"),
    ("skip", "import pytest\n@pytest.mark.skip\ndef test_it(): ..."),
    ("skip", "import pytest\n@pytest.mark.xfail()\ndef test_it(): ..."),
]


@pytest.mark.parametrize("rule", DETECTORS)
def test_the_tests_keep_their_rules(rule: str) -> None:
    """Every test file keeps to how we test."""
    findings = [str(finding) for module in modules_with_tests() for finding in DETECTORS[rule](module)]

    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(("rule", "fault"), PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, rule: str, fault: str) -> None:
    """Each detector sees what it looks for."""
    path = tmp_path / "test_planted.py"
    path.write_text(fault)

    assert list(DETECTORS[rule](read_module(path, tmp_path)))
