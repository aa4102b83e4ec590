"""`tavola trigger`, as a process of its own beside a server."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola import Connection, connect
from tavola.cli.commands.trigger import load_handler
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.triggers import HandlerRefused
from tests.architecture.server import serving
from tests.architecture.source_tree import PACKAGE

pytestmark = pytest.mark.slow  # a program a test: `make slow` runs it

HANDLERS = """
import sys

def handler(event, context):
    for record in event["Records"]:
        key = record["dynamodb"]["Keys"]["pk"]["S"]
        if key == "poison":
            raise ValueError("cannot handle poison")
        print("handled", key, flush=True)

nothing = 7
"""


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """What the command turns in the loggers is turned back, for the tests that come after."""
    logger, own = logging.getLogger("tavola"), logging.getLogger("tavola.triggers")
    handlers, propagate, level = list(logger.handlers), logger.propagate, own.level
    yield
    logger.handlers[:], logger.propagate = handlers, propagate
    own.setLevel(level)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server for the whole module."""
    with serving() as url:
        yield url


@pytest.fixture
def table(endpoint: str, tmp_path: Path) -> Iterator[tuple[Connection, str]]:
    """A table with a stream and three items, and a module of handlers where the command runs."""
    (tmp_path / "projector.py").write_text(HANDLERS)
    (tmp_path / "broken.py").write_text("def handler(event, context)\n")
    with connect(endpoint, region="us-east-1", account="0" * 12) as connection:
        name = f"t-{os.urandom(8).hex()}"
        connection.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            },
        )
        for key in ("a", "b", "poison"):
            put(connection, name, key)
        yield connection, name


def put(connection: Connection, table: str, key: str) -> None:
    connection.call("PutItem", {"TableName": table, "Item": {"pk": {"S": key}}})


def _command(*arguments: str) -> list[str]:
    account = ("--region", "us-east-1", "--account", "0" * 12)
    return [sys.executable, "-m", "tavola", "trigger", *arguments, *account]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*arguments),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=folder,
        env=_environment(),
    )


@contextmanager
def _running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        _command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=_environment(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_once_handles_what_is_there(endpoint: str, table: tuple[Connection, str], tmp_path: Path) -> None:
    """With bounded retries poison goes to the dead-letter file, and a second run finds nothing new."""
    _, name = table
    options = (
        "--table-name",
        name,
        "--endpoint",
        endpoint,
        "--once",
        "--json",
        "--maximum-retry-attempts",
        "0",
        "--bisect-batch-on-function-error",
    )
    files = ("--checkpoints", "checkpoints", "--dead-letters", "dead.jsonl", "--dead-letter-payload")
    first = _run(tmp_path, "projector:handler", *options, *files)
    second = _run(tmp_path, "projector:handler", *options, *files)

    told: dict[str, Any] = json.loads(first.stdout)
    assert {"handled a", "handled b"} <= set(first.stderr.splitlines())
    assert (told["schema"], told["handled"], told["discarded"]) == ("tavola.trigger/1", 2, 1)
    assert told["stream"].endswith(told["stream"].rpartition("/")[2])
    (letter,) = (tmp_path / "dead.jsonl").read_text().splitlines()
    assert json.loads(letter)["payload"]["Records"][0]["dynamodb"]["Keys"] == {"pk": {"S": "poison"}}
    assert "ValueError: cannot handle poison" in first.stderr
    assert json.loads(second.stdout)["read"] == 0
    assert (first.returncode, second.returncode) == (Exit.FAILED, Exit.OK)
    assert "Discarded 1 record" in first.stderr
    assert "See dead.jsonl" in first.stderr


def test_once_ends_though_the_handler_fails(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path
) -> None:
    """Retries without an end are left to the next start; what is left is told, and the code says so."""
    _, name = table
    run = _run(
        tmp_path, "projector:handler", "--table-name", name, "--endpoint", endpoint, "--once", "--json"
    )

    told: dict[str, Any] = json.loads(run.stdout)
    assert run.returncode == Exit.FAILED
    assert told["failures"] == 1
    assert f"at least {3 - told['handled']} records are left" in run.stderr
    assert "--maximum-retry-attempts" in run.stderr


def test_a_signal_ends_it_after_the_batch(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path
) -> None:
    """It runs until Ctrl-C, ends well, and says what it did; records that come meanwhile are handled."""
    connection, name = table
    pattern = json.dumps({"dynamodb": {"Keys": {"pk": {"S": [{"anything-but": "poison"}]}}}})
    options = ("--table-name", name, "--endpoint", endpoint, "--filter", pattern)
    with _running(tmp_path, "projector.handler", *options) as process:
        assert process.stdout is not None
        assert {process.stdout.readline(), process.stdout.readline()} == {"handled a\n", "handled b\n"}
        put(connection, name, "c")
        assert process.stdout.readline() == "handled c\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

    assert process.returncode == 0
    assert out.startswith("Processed 3 records in ")
    assert out.endswith("filtered 1, discarded 0.\n")
    assert "Stopping after the current batch" in err
    assert "Without --checkpoints" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nowhere:handler", "--table-name", "Orders"), Exit.USAGE, "no module nowhere"),
        (("projector:gone", "--table-name", "Orders"), Exit.USAGE, "no function gone"),
        (("projector:nothing", "--table-name", "Orders"), Exit.USAGE, "no function nothing"),
        (
            ("projector:handler", "--table-name", "Orders", "--batch-size", "0"),
            Exit.USAGE,
            "--batch-size is 0",
        ),
        (
            ("projector:handler", "--table-name", "Orders", "--maximum-batching-window-in-seconds", "9999"),
            Exit.USAGE,
            "--maximum-batching-window-in-seconds is 9999; use a whole number",
        ),
        (
            ("projector:handler", "--table-name", "Orders", "--timeout", "0"),
            Exit.USAGE,
            "--timeout is 0",
        ),
        (("projector:handler", "--table-name", "Orders", "--filter", "{"), Exit.USAGE, "not valid JSON"),
        (("projector:handler",), Exit.USAGE, "--table-name NAME"),
        (("projector:handler", "--table-name", "x", "--stream-arn", "y"), Exit.USAGE, "--stream-arn ARN"),
        (("broken:handler", "--table-name", "Orders"), Exit.FAILED, "Fix the module broken"),
        (("projector:handler", "--table-name", "Gone", "--once"), Exit.NOT_FOUND, "Gone not found"),
        (("projector:handler", "--table-name", "Gone", "--once"), Exit.NOT_FOUND, "searched region"),
    ],
)
def test_what_cannot_be_run_is_told(
    endpoint: str,
    table: tuple[Connection, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: Exit,
    words: str,
) -> None:
    """A wrong handler, option or table is three lines and a code, and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "projector", raising=False)
    run = CliRunner().invoke(app, ["trigger", *arguments, "--endpoint", endpoint])

    assert run.exit_code == code, run.stderr
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_a_handler_is_named_in_two_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python names things, and as Lambda does."""
    (tmp_path / "two_ways.py").write_text("class Shop:\n    @staticmethod\n    def handler(e, c): return 1\n")
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    (tmp_path / "needy_module.py").write_text("import not_there_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    assert load_handler("two_ways:Shop.handler")({}, None) == 1
    for text, words in [
        ("handler", "is not a handler"),
        ("broken_module:handler", "ZeroDivisionError"),
        ("needy_module:handler", "not_there_at_all"),
    ]:
        with pytest.raises(HandlerRefused, match=words):
            load_handler(text)
