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

# Routers for the table of these tests: the function fails for "b" the first time, and for "poison" each time.
ROUTERS = """
import os, pathlib
from tavola import Attr, Entity, PrimaryKey, Router, Table

class Desk(Table, name=os.environ["TABLE"], pk="pk", stream="NEW_IMAGE"):
    pass

class Ticket(Entity, table=Desk):
    pk: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="{pk}"):
        pk: str

def handle(change):
    name = change.new["pk"]["S"]
    if name == "b" and not pathlib.Path("failed").exists():
        pathlib.Path("failed").touch()
        raise TimeoutError("b fails once")
    if name == "poison":
        raise ValueError("poison fails always")
    with open("handled", "a") as file:
        file.write(name + "\\n")

raising, reporting = Router(Desk), Router(Desk, report_batch_item_failures=True)
raising.raw(handle)
reporting.raw(handle)

def swallowing(event, context):
    try:
        raising.handler(event, context)
    except Exception:
        pass
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
    (tmp_path / "routers.py").write_text(ROUTERS)
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


def _run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*arguments),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=folder,
        env={**_environment(), **variables},
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


def _route(
    folder: Path, endpoint: str, table: str, handler: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any], set[str]]:
    """Run a handler on what is in a table's stream; return the process, its summary and the keys that were handled."""
    (folder / "handled").unlink(missing_ok=True)
    run = _run(
        folder,
        f"routers:{handler}",
        *("--table-name", table, "--endpoint", endpoint, "--once", "--json"),
        *("--checkpoints", "checkpoints", *options),
        TABLE=table,
    )
    handled = (folder / "handled").read_text().split() if (folder / "handled").exists() else []
    return run, json.loads(run.stdout), set(handled)


BOUNDED = ("--maximum-retry-attempts", "1", "--bisect-batch-on-function-error")
READING = "--report-batch-item-failures"


@pytest.mark.parametrize(
    ("handler", "options"),
    [("raising.handler", ()), ("raising.handler", (READING,)), ("reporting.handler", (READING,))],
    ids=["raises", "raises and would be read", "reports and is read"],
)
def test_a_router_loses_no_record(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path, handler: str, options: tuple[str, ...]
) -> None:
    """A record that fails once comes again and is counted; one that fails always is written down, alone."""
    _, name = table
    letters = ("--dead-letters", "dead.jsonl", "--dead-letter-payload")
    run, told, handled = _route(tmp_path, endpoint, name, handler, *BOUNDED, *letters, *options)

    assert handled == {"a", "b"}
    assert (told["discarded"], told["unread_failures"]) == (1, 0)
    assert told["failures"] >= 3  # b once, and poison as often as it may be tried
    (letter,) = (tmp_path / "dead.jsonl").read_text().splitlines()
    (record,) = json.loads(letter)["payload"]["Records"]
    assert record["dynamodb"]["Keys"] == {"pk": {"S": "poison"}}
    assert "b fails once" in run.stderr
    assert run.returncode == Exit.FAILED


def test_a_router_without_options_loses_no_record(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path
) -> None:
    """With nothing but defaults a failure is a failure: what is left waits for the next run, and the code says so."""
    connection, name = table
    connection.call("DeleteItem", {"TableName": name, "Key": {"pk": {"S": "poison"}}})
    (tmp_path / "routers.py").write_text(ROUTERS.replace('== "poison"', '== "nobody"').replace(
        'name = change.new["pk"]["S"]', 'name = change.keys["pk"]["S"]'
    ))  # fmt: skip
    first, told, handled = _route(tmp_path, endpoint, name, "raising.handler")
    second, rest, more = _route(tmp_path, endpoint, name, "raising.handler")

    assert handled | more == {"a", "b", "poison"}
    assert (told["failures"], rest["failures"], told["discarded"] + rest["discarded"]) == (1, 0, 0)
    assert told["handled"] + rest["handled"] == 4
    assert (first.returncode, second.returncode) == (Exit.FAILED, Exit.OK)


def test_a_report_that_is_not_read_is_an_error(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path
) -> None:
    """What AWS would drop is kept here, counted, and answered with the option that is missing and the code of a failure."""
    _, name = table
    letters = ("--dead-letters", "dead.jsonl", "--dead-letter-payload")
    run, told, handled = _route(tmp_path, endpoint, name, "reporting.handler", *BOUNDED, *letters)

    assert handled == {"a", "b"}
    assert told["unread_failures"] == told["failures"] >= 3
    assert run.returncode == Exit.FAILED
    for words in (
        "Records would be lost on AWS",
        READING,
        "FunctionResponseTypes",
        "ReportBatchItemFailures",
    ):
        assert words in run.stderr


def test_a_planted_handler_that_swallows_loses_records(
    endpoint: str, table: tuple[Connection, str], tmp_path: Path
) -> None:
    """No mapping can know of a failure that the handler hides: the checks above would see it."""
    _, name = table
    _, told, handled = _route(tmp_path, endpoint, name, "swallowing", *BOUNDED)

    assert handled < {"a", "b"}
    assert told["failures"] == 0


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
