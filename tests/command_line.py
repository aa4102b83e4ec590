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
    """What a command came to."""

    exit_code: int
    stdout: str
    stderr: str


def invoked(*words: str) -> Invoked:
    """Return what a command came to."""
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
    told = invoked(*words, "--json")
    assert told.exit_code == 0, told.stderr
    return json.loads(told.stdout)
