"""Run the command line in this process and return what it printed."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from tavola.cli.main import app


@dataclass(frozen=True, slots=True)
class Invoked:
    """The exit code and output of a command."""

    exit_code: int
    stdout: str
    stderr: str


def invoked(*words: str) -> Invoked:
    """Run a command and return its exit code and output."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app.main(list(words), prog_name="tavola")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return Invoked(code, out.getvalue(), err.getvalue())


def printed_json(*words: str) -> Any:
    """Return what a command that succeeds prints with --json."""
    result = invoked(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
