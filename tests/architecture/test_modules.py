"""The rules that hold for every module of the package, and proof that each detector can see."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture import detectors
from tests.architecture.source_tree import Finding, Module, modules, nodes, read_module

Detector = Callable[[Module], Iterator[Finding]]

DETECTORS: dict[str, Detector] = {
    "private names": detectors.imports_private_names,
    "libraries": detectors.imports_restricted_library,
    "clock": detectors.reads_clock,
    "randomness": detectors.reads_randomness,
    "environment": detectors.reads_environment,
    "print": detectors.prints,
    "length": detectors.is_too_long,
    "docstrings": detectors.lacks_a_docstring,
    "cycles": detectors.hides_a_cycle,
}

# detector, the file the fault is planted in, the fault
PLANTED = [
    ("private names", "engine/reads.py", "from tavola.keys import _secret"),
    ("private names", "engine/reads.py", "from tavola.protocol.faults import _secret"),
    ("private names", "engine/reads.py", "def f():\n    from tavola.keys._bounds import Bounds"),
    ("private names", "engine/reads.py", "import tavola.keys._bounds"),
    ("libraries", "engine/reads.py", "import apsw"),
    ("libraries", "engine/storage/table_store.py", "import sqlite3"),
    ("libraries", "client/table.py", "from botocore.session import Session"),
    ("libraries", "engine/storage_extra.py", "import apsw"),
    ("clock", "engine/reads.py", "import time\nnow = time.time()"),
    ("clock", "engine/reads.py", "import time as t\nnow = t.monotonic()"),
    ("clock", "engine/reads.py", "from time import time_ns"),
    ("clock", "engine/reads.py", "from datetime import UTC, datetime\nnow = datetime.now(UTC)"),
    ("clock", "engine/reads.py", "import datetime\nnow = datetime.datetime.now(datetime.UTC)"),
    ("clock", "client/retries.py", "import time\ntime.sleep(1)"),
    ("randomness", "engine/reads.py", "import random"),
    ("randomness", "engine/reads.py", "from random import choice"),
    ("randomness", "engine/reads.py", "import secrets"),
    ("randomness", "engine/reads.py", "import os\nkey = os.urandom(8)"),
    ("randomness", "engine/reads.py", "from os import urandom"),
    ("randomness", "engine/reads.py", "import uuid\nkey = uuid.uuid4()"),
    ("environment", "engine/reads.py", "import os\nhome = os.environ['HOME']"),
    ("environment", "engine/reads.py", "import os\nhome = os.getenv('HOME')"),
    ("environment", "engine/reads.py", "from os import environ as e"),
    ("print", "cli/main.py", "print('hello')"),
    ("print", "engine/reads.py", "import sys\nsys.stderr.write('hello')"),
    ("length", "engine/reads.py", "x = 1\n" * 601),
    ("docstrings", "engine/reads.py", ""),
    ("docstrings", "engine/reads.py", "x = 1"),
    (
        "cycles",
        "engine/reads.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tavola.keys import K",
    ),
]

# detector, file, what it must accept
ALLOWED = [
    ("private names", "engine/reads.py", "from tavola.keys.bounds import Bounds"),
    ("private names", "engine/reads.py", "from tavola.engine.writes import _put"),
    ("libraries", "engine/storage/table_store.py", "import apsw"),
    ("libraries", "server/listener.py", "import uvloop"),
    ("clock", "clock.py", "import time\nnow = time.time()"),
    ("clock", "engine/reads.py", "from datetime import UTC, datetime\nthen = datetime.fromtimestamp(0, UTC)"),
    ("randomness", "entropy.py", "import os\nkey = os.urandom(8)"),
    ("randomness", "engine/reads.py", "import uuid\nkey = uuid.UUID(int=1)"),
    ("environment", "cli/main.py", "import os\nhome = os.environ['HOME']"),
    ("print", "cli/output.py", "print('hello')"),
    (
        "length",
        "engine/reads.py",
        "# Long because a table of AWS's words has one row a word.\n" + "x = 1\n" * 601,
    ),
    ("docstrings", "engine/reads.py", '"""Reads: Bounds to page."""'),
]


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[str, str], Module]:
    """An empty package to plant one file in."""
    package = tmp_path / "tavola"

    def planted(file: str, text: str) -> Module:
        path = package / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return read_module(path, package)

    return planted


def detect(rule: str, module: Module) -> list[Finding]:
    """Run one detector over a module of the package or of a planted one."""
    return list(DETECTORS[rule](module))


@pytest.mark.parametrize("rule", DETECTORS)
def test_every_module_follows_the_rules(rule: str) -> None:
    """No module breaks a rule."""
    findings = [str(finding) for module in modules() for finding in DETECTORS[rule](module)]

    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(("rule", "file", "fault"), PLANTED)
def test_a_planted_fault_is_found(
    plant: Callable[[str, str], Module], rule: str, file: str, fault: str
) -> None:
    """Each detector finds its planted fault; otherwise an empty result would prove nothing."""
    assert detect(rule, plant(file, fault))


@pytest.mark.parametrize(("rule", "file", "text"), ALLOWED)
def test_what_is_allowed_is_left_alone(
    plant: Callable[[str, str], Module], rule: str, file: str, text: str
) -> None:
    """A detector accepts a line that the rules allow."""
    assert not detect(rule, plant(file, text))


def test_every_detector_has_a_planted_fault() -> None:
    """A new detector comes with its fault."""
    assert {rule for rule, _, _ in PLANTED} == set(DETECTORS)


def test_equal_literals_have_one_order() -> None:
    """Two `Literal`s of the same members are written in the same order.

    typing caches `Literal[…] | None` by equality, which ignores order, so whichever was imported first would decide the order that
    error messages list the members in.
    """
    orders: defaultdict[frozenset[str], set[tuple[str, ...]]] = defaultdict(set)
    for module in modules():
        for node in nodes(module):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
                members = tuple(ast.unparse(node.slice).strip("()").split(", "))
                orders[frozenset(members)].add(members)

    assert [found for found in orders.values() if len(found) > 1] == []
