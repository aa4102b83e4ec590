"""`tavola serve`, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tavola import __version__
from tavola.cli.errors import Exit
from tavola.host_names import is_loopback
from tavola.server.endpoint import ServerEndpoint
from tests.server.raw import Raw, request, send_request

pytestmark = pytest.mark.slow  # a program a test: `make slow` runs it

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY = {"TableName": "Orders", "Key": {"pk": {"S": "kept"}}}
ITEM = {"TableName": "Orders", "Item": {"pk": {"S": "kept"}}}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tavola", "serve", *arguments]


@contextmanager
def _serving(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], ServerEndpoint]]:
    """Give a process and where it listens; the block is free to end it."""
    process = subprocess.Popen(
        _command("--port", "0", "--json", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        told = json.loads(line)
        yield process, ServerEndpoint(told["host"], told["port"])
    finally:
        process.kill()
        process.communicate()


def _ask(endpoint: ServerEndpoint, operation: str, members: dict[str, Any]) -> dict[str, Any]:
    answer = send_request(endpoint, request(operation, json.dumps(members).encode()))
    assert answer.status == 200, answer
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _until_closed(endpoint: ServerEndpoint) -> None:
    """Wait until nobody listens any more: the process has heard the signal."""
    while True:
        try:
            Raw(endpoint).socket.close()
        except OSError:
            return


def _failed(*arguments: str) -> tuple[int, list[str]]:
    """Return exit code and lines of a command that fails."""
    run = subprocess.run(_command(*arguments), capture_output=True, text=True, timeout=20, check=False)
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    return run.returncode, run.stderr.splitlines()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """Asked to end, it answers what is under way, closes the file and exits with 0."""
    file = tmp_path / "shop.db"
    with _serving(str(file)) as (process, endpoint), Raw(endpoint) as client:
        _ask(endpoint, "CreateTable", TABLE)
        _ask(endpoint, "PutItem", ITEM)
        client.send(request("GetItem", json.dumps(KEY).encode()) + request("GetItem", b"{}")[:-1])
        assert client.answer().status == 200
        process.send_signal(number)
        _until_closed(endpoint)
        client.send(b"}")
        assert client.answer().headers["connection"] == "close"
        _, told = process.communicate(timeout=10)

        assert process.returncode == Exit.OK, told
        assert "Traceback" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.db"]


def test_a_second_signal_does_not_wait() -> None:
    """Who asks twice means it: a request that never ends is not waited for."""
    with _serving() as (process, endpoint), Raw(endpoint) as client:
        client.send(request() + request()[:-1])
        client.answer()
        process.send_signal(signal.SIGINT)
        _until_closed(endpoint)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=2.5)

        assert process.returncode == Exit.OK


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    """Killed without warning, the next process serves every write that was answered."""
    file = str(tmp_path / "shop.db")
    with _serving(file) as (process, endpoint):
        _ask(endpoint, "CreateTable", TABLE)
        _ask(endpoint, "PutItem", ITEM)
        process.kill()
        process.wait()
    with _serving(file) as (_, endpoint):
        assert _ask(endpoint, "GetItem", KEY) == {"Item": ITEM["Item"]}


def test_a_person_is_told_where_and_how() -> None:
    """It prints the endpoint, where the data is, how credentials are taken, and how to use it."""
    with subprocess.Popen(_command("--port", "0"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGTERM)

    assert lines[0].startswith(f"Tavola {__version__} serves DynamoDB at http://127.0.0.1:")
    port = lines[0].strip().rpartition(":")[2]
    assert "in memory" in lines[1]
    assert "not verified" in lines[2]
    assert f'eval "$({sys.executable} -m tavola env --port {port})"' in lines[3]
    assert process.returncode == Exit.OK


def test_settings_come_from_the_environment_too() -> None:
    """A variable sets what an option would; where both are given, the option wins."""
    environment = {"TAVOLA_HOST": "127.0.0.2", "TAVOLA_PORT": "1"}
    with _serving(**environment) as (_, endpoint):
        assert endpoint.host == "127.0.0.2"
        assert endpoint.port != 1
        assert send_request(endpoint, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n").status == 200


def test_a_host_that_others_reach_is_warned_of() -> None:
    """Listening beyond this machine, it warns that nobody is authenticated."""
    with _serving("--host", "0.0.0.0") as (process, _):
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=10)

    assert told.startswith("Warning: other machines can reach 0.0.0.0")
    assert "not verified" in told


def test_a_taken_port_is_a_conflict() -> None:
    """A port that is taken ends in three lines and code 4."""
    with _serving() as (_, endpoint):
        code, lines = _failed("--port", str(endpoint.port))

    assert code == Exit.CONFLICT
    assert lines[0] == f"Error: Cannot start the server on port {endpoint.port}."
    assert f"Port {endpoint.port} on 127.0.0.1 is in use" in lines[1]
    assert "--port" in lines[2]


def test_a_foreign_address_is_unreachable() -> None:
    """An address of another machine ends with code 5."""
    code, lines = _failed("--host", "203.0.113.7", "--port", "0")

    assert code == Exit.UNREACHABLE
    assert len(lines) == 3


def test_a_file_has_one_server(tmp_path: Path) -> None:
    """A file that another process serves is a conflict."""
    file = str(tmp_path / "shop.db")
    with _serving(file) as (_, _endpoint):
        code, lines = _failed(file, "--port", "0")

    assert code == Exit.CONFLICT
    assert "already open, here or in another process" in lines[1]


def test_a_damaged_file_is_not_served(tmp_path: Path) -> None:
    """A file that is no store is a failed check."""
    file = tmp_path / "shop.db"
    file.write_bytes(b"this is a letter to my aunt" * 1000)
    code, lines = _failed(str(file), "--port", "0")

    assert code == Exit.FAILED
    assert str(file) in lines[0]
    assert len(lines) == 3


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """A file in a folder that does not exist ends with code 3."""
    code, lines = _failed(str(tmp_path / "nowhere" / "shop.db"))

    assert code == Exit.NOT_FOUND
    assert "nowhere" in lines[1]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in place of a file is refused in a sentence."""
    code, lines = _failed(str(tmp_path), "--port", "0")

    assert code == Exit.FAILED
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("shop.localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.7", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine_alone(host: str, loopback: bool) -> None:
    """An address is loopback if no other machine can reach it."""
    assert is_loopback(host) is loopback
