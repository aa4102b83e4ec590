"""The command line in this process. Its tree is built once: that takes a hundred times as long as most commands."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

from typer.main import get_command

from tavola.cli.main import app


@dataclass(frozen=True, slots=True)
class Invoked:
    """What a command came to."""

    exit_code: int
    stdout: str
    stderr: str


@cache
def _tree() -> Any:
    return get_command(app)


def invoked(*words: str) -> Invoked:
    """Return what a command came to."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            _tree().main(list(words), prog_name="tavola")
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return Invoked(code, out.getvalue(), err.getvalue())


def printed_json(*words: str) -> Any:
    """Return what a command that succeeds prints with --json."""
    told = invoked(*words, "--json")
    assert told.exit_code == 0, told.stderr
    return json.loads(told.stdout)
