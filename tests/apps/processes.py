"""`tavola` commands as separate processes."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from click.testing import CliRunner

from tavola.cli.main import app

WAIT_S = 40

_FOREIGN = tuple(name for name in os.environ if name.startswith(("AWS_", "TAVOLA_")))


def command(*arguments: str) -> list[str]:
    """Return the command line of a `tavola` command."""
    return [sys.executable, "-m", "tavola", *arguments]


@dataclass(frozen=True, slots=True)
class Started:
    """A process that serves, and the JSON line that it printed at startup."""

    process: subprocess.Popen[str]
    startup: dict[str, Any]

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Ask the process to stop; return its exit code and standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, errors


@contextmanager
def start_command(*arguments: str, cwd: Any = None) -> Iterator[Started]:
    """Start a command that serves and yield it once it is ready; the block may stop it."""
    process = subprocess.Popen(
        command(*arguments, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield Started(process, json.loads(line))
    finally:
        process.kill()
        process.communicate()


def run_failing_command(*arguments: str, text: str | None = None) -> tuple[int, str]:
    """Return the exit code and standard error of a command that fails before it serves; it runs in this process."""
    logger = logging.getLogger("tavola")
    before = logger.handlers[:], logger.propagate
    try:
        result = CliRunner().invoke(app, list(arguments), input=text, env=dict.fromkeys(_FOREIGN))
    finally:
        logger.handlers[:], logger.propagate = before
    assert result.exit_code != 0, result.stdout
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr


def run_command(*arguments: str, cwd: Any = None, text: str | None = None) -> str:
    """Return the output of a command that succeeds."""
    run = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=cwd,
        input=text,
        env=environment(),
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def environment() -> dict[str, str]:
    """Return the environment without the variables that would point a command elsewhere."""
    return {name: value for name, value in os.environ.items() if name not in _FOREIGN}


def send_request(url: str, body: Any = None, **headers: str) -> tuple[int, str]:
    """Return the status and text of a response; a body is sent as JSON."""
    data = None if body is None else json.dumps(body).encode()
    all_headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    try:
        with urlopen(Request(url, data=data, headers=all_headers), timeout=WAIT_S) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
