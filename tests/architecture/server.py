"""A `tavola serve` of its own for the examples of a page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.architecture.source_tree import PACKAGE, ROOT


@contextmanager
def serving() -> Iterator[str]:
    """Give the endpoint of a server in memory on a free port, and stop it afterwards."""
    command = [sys.executable, "-m", "tavola", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(PACKAGE.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        yield str(json.loads(first)["endpoint"])
    finally:
        process.terminate()
        process.communicate(timeout=10)
