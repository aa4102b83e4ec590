"""The rules that hold for every module of the package, and proof that each detector can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture import detectors
from tests.architecture.house import Finding, Module, modules, read_module

Detector = Callable[[Module], Iterator[Finding]]

DETECTORS: dict[str, Detector] = {
    "doors": detectors.entered_by_the_wall,
    "strangers": detectors.met_a_stranger,
    "time": detectors.read_the_time,
    "chance": detectors.read_chance,
    "environment": detectors.read_the_environment,
    "print": detectors.printed,
    "length": detectors.grew_too_long,
    "docstrings": detectors.lacks_a_docstring,
    "cycles": detectors.hides_a_cycle,
}

# detector, the file the fault is planted in, the fault
PLANTED = [
    ("doors", "engine/reads.py", "from tavola.keys.bounds import Bounds"),
    ("doors", "engine/reads.py", "import tavola.keys.bounds"),
    ("doors", "engine/reads.py", "from tavola.keys import bounds"),
    ("doors", "engine/reads.py", "def f():\n    from tavola.keys.bounds import Bounds"),
    ("doors", "engine/reads.py", "from tavola.keys import _secret"),
    ("doors", "engine/reads.py", "from tavola.protocol.faults import _secret"),
    ("strangers", "engine/reads.py", "import apsw"),
    ("strangers", "engine/storage/sqlite_table.py", "import sqlite3"),
    ("strangers", "client/table.py", "from botocore.session import Session"),
    ("strangers", "engine/storage_extra.py", "import apsw"),
    ("time", "engine/reads.py", "import time\nnow = time.time()"),
    ("time", "engine/reads.py", "import time as t\nnow = t.monotonic()"),
    ("time", "engine/reads.py", "from time import time_ns"),
    ("time", "engine/reads.py", "from datetime import UTC, datetime\nnow = datetime.now(UTC)"),
    ("time", "engine/reads.py", "import datetime\nnow = datetime.datetime.now(datetime.UTC)"),
    ("time", "client/retries.py", "import time\ntime.sleep(1)"),
    ("chance", "engine/reads.py", "import random"),
    ("chance", "engine/reads.py", "from random import choice"),
    ("chance", "engine/reads.py", "import secrets"),
    ("chance", "engine/reads.py", "import os\nkey = os.urandom(8)"),
    ("chance", "engine/reads.py", "from os import urandom"),
    ("chance", "engine/reads.py", "import uuid\nkey = uuid.uuid4()"),
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

# detector, file, what it must let pass
LEFT_ALONE = [
    ("doors", "engine/reads.py", "from tavola.keys import Bounds"),
    ("doors", "engine/reads.py", "from tavola.protocol.faults import ValidationFault"),
    ("doors", "engine/reads.py", "from tavola.expressions.partiql.nodes import Statement"),
    ("doors", "engine/reads.py", "from tavola.engine.writes import put"),
    ("doors", "connections.py", "from tavola.backends.aws import AwsBackend"),
    ("doors", "connections.py", "from tavola.backends import aws"),
    ("doors", "engine/reads.py", "from tavola.clock import Clock"),
    ("strangers", "engine/storage/sqlite_table.py", "import apsw"),
    ("strangers", "server/listener.py", "import uvloop"),
    ("time", "clock.py", "import time\nnow = time.time()"),
    ("time", "engine/reads.py", "from datetime import UTC, datetime\nthen = datetime.fromtimestamp(0, UTC)"),
    ("chance", "entropy.py", "import os\nkey = os.urandom(8)"),
    ("chance", "engine/reads.py", "import uuid\nkey = uuid.UUID(int=1)"),
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
    """A package of its own, with a room `keys` whose door offers `Bounds`, to plant one file in."""
    package = tmp_path / "tavola"
    keys = package / "keys"
    keys.mkdir(parents=True)
    (keys / "__init__.py").write_text('__all__ = ["Bounds"]\n')
    (keys / "bounds.py").write_text("")

    def planted(file: str, text: str) -> Module:
        path = package / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return read_module(path, package)

    return planted


def detect(rule: str, module: Module) -> list[Finding]:
    """Run one detector over a module of the house or of a planted package."""
    if rule == "doors":
        package = next(folder for folder in module.path.parents if folder.name == "tavola")
        return list(detectors.entered_by_the_wall(module, package))
    return list(DETECTORS[rule](module))


@pytest.mark.parametrize("rule", DETECTORS)
def test_the_house_keeps_its_rules(rule: str) -> None:
    """No module of the package breaks a rule of the house."""
    findings = [str(finding) for module in modules() for finding in DETECTORS[rule](module)]

    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(("rule", "file", "fault"), PLANTED)
def test_a_planted_fault_is_found(
    plant: Callable[[str, str], Module], rule: str, file: str, fault: str
) -> None:
    """A detector that finds nothing proves nothing until it has found what was planted."""
    assert detect(rule, plant(file, fault))


@pytest.mark.parametrize(("rule", "file", "text"), LEFT_ALONE)
def test_what_is_allowed_is_left_alone(
    plant: Callable[[str, str], Module], rule: str, file: str, text: str
) -> None:
    """A detector keeps silent where the house allows the line."""
    assert not detect(rule, plant(file, text))


def test_every_detector_has_a_planted_fault() -> None:
    """A new detector comes with its fault."""
    assert {rule for rule, _, _ in PLANTED} == set(DETECTORS)
