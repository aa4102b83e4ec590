"""`tavola serve` with callers that are verified, TLS and an access log, and `tavola log` behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.server.endpoint import ServerEndpoint
from tests.server.attended import attended
from tests.server.certificates import make_certificates
from tests.server.directories import WRITER, write_directory
from tests.server.raw import request, send_request
from tests.server.test_access_log import KEY, ORDERS

pytestmark = pytest.mark.slow  # a program a test: `make slow` runs it

runner = CliRunner()


def _failed(*arguments: str) -> tuple[int, list[str]]:
    result = runner.invoke(app, ["serve", "--port", "0", *arguments])
    return result.exit_code, result.stderr.splitlines()


def test_everything_together(tmp_path: Path) -> None:
    """Strict, over TLS, with a log: the greeting says so, boto3 is served, and after a stop the log is whole."""
    files = make_certificates(tmp_path, "127.0.0.1")
    log = tmp_path / "access.log"
    arguments = [
        *("--port", "0", "--auth", "strict", "--iam", str(write_directory(tmp_path / "iam.json"))),
        *("--tls-cert", str(files.certificate), "--tls-key", str(files.key), "--access-log", str(log)),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "tavola", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        url = lines[0].split()[-1]
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id=WRITER[0],
            aws_secret_access_key=WRITER[1],
            verify=str(files.authority),
            config=Config(retries={"total_max_attempts": 1}),
        )
        for _ in range(20):
            client.list_tables()
        client.close()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=10)

    assert url.startswith("https://127.0.0.1:")
    assert "verified, with the policies in" in lines[2]
    assert str(log) in lines[3]
    assert f"tavola env --port {url.rpartition(':')[2]} --tls" in lines[4]
    assert told == ""
    assert process.returncode == Exit.OK
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [record["userIdentity"]["userName"] for record in records] == ["writer"] * 20


def test_strict_needs_to_know_who_there_is(tmp_path: Path) -> None:
    """Without a file of users the way to make one is told; a file that is not there or wrong is told too."""
    code, lines = _failed("--auth", "strict")
    assert code == Exit.USAGE
    assert "tavola iam init" in lines[2]

    code, lines = _failed("--auth", "strict", "--iam", str(tmp_path / "missing.json"))
    assert code == Exit.NOT_FOUND
    assert "missing.json" in lines[1]

    (tmp_path / "iam.json").write_text('{"tavola_iam": 1, "accounts": {"12": {}}}')
    code, lines = _failed("--auth", "strict", "--iam", str(tmp_path / "iam.json"))
    assert code == Exit.FAILED
    assert "accounts.12" in lines[1]


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    """One without the other, and one with another's, are told."""
    (tmp_path / "other").mkdir()
    files = make_certificates(tmp_path, "localhost")
    other = make_certificates(tmp_path / "other", "localhost", seed=2)

    code, lines = _failed("--tls-cert", str(files.certificate))
    assert (code, lines[1]) == (Exit.USAGE, "  Cause: --tls-cert needs --tls-key.")
    code, lines = _failed("--tls-cert", str(files.certificate), "--tls-key", str(other.key))
    assert code == Exit.FAILED
    assert "the key does not belong to the certificate" in lines[1]


def test_a_log_needs_a_folder(tmp_path: Path) -> None:
    """A log that cannot be written is told before anything is served."""
    code, lines = _failed("--access-log", str(tmp_path / "nowhere" / "access.log"))

    assert code == Exit.FAILED
    assert "cannot be written" in lines[1]


@pytest.mark.parametrize(
    "arguments", [["--auth", "strict", "--host", "0.0.0.0"], ["--host", "0.0.0.0"], ["--iam"]]
)
def test_open_doors_are_warned_of(tmp_path: Path, arguments: list[str]) -> None:
    """Beyond this machine, only a server that believes everybody is warned of; so is a file that nobody reads."""
    iam = str(write_directory(tmp_path / "iam.json"))
    strict = "strict" in arguments
    named = [*arguments, iam] if arguments == ["--iam"] else [*arguments, *(("--iam", iam) if strict else ())]
    command = [sys.executable, "-m", "tavola", "serve", "--port", "0", "--json", *named]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        _, warned = process.communicate(timeout=10)

    assert told["auth"] == ("strict" if strict else "open")
    assert warned.startswith("Warning: ") is not strict


@pytest.mark.parametrize(
    ("origin", "cause", "remedy"),
    [
        ("*", "--cors '*' needs --auth strict", "http://localhost:3000"),
        ("http://localhost:3000/", "--cors http://localhost:3000/ is not the origin", "without a path"),
        ("http://localhost:80", "is not the origin", "without a default port"),
        ("localhost:3000", "is not the origin", "scheme, host and port"),
        ("null", "is not the origin", "scheme, host and port"),
    ],
)
def test_an_origin_must_be_one(origin: str, cause: str, remedy: str) -> None:
    """What no browser sends as the origin of one site is refused, and so is every site without signatures."""
    code, lines = _failed("--cors", origin)

    assert code == Exit.USAGE
    assert cause in lines[1]
    assert remedy in lines[2]


@pytest.mark.parametrize("by_variable", [False, True])
def test_admitted_origins_and_memory_are_settings(by_variable: bool) -> None:
    """--cors is repeatable and --buffer-mb a number; both may come from the environment."""
    origins = ("http://localhost:3000", "https://shop.example")
    options = ["--cors", origins[0], "--cors", origins[1], "--buffer-mb", "64"]
    variables = {"TAVOLA_CORS": " ".join(origins), "TAVOLA_BUFFER_MB": "64"}
    command = [
        sys.executable,
        "-m",
        "tavola",
        "serve",
        "--port",
        "0",
        "--json",
        *([] if by_variable else options),
    ]
    environment = {**os.environ, **(variables if by_variable else {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        endpoint = ServerEndpoint(told["host"], told["port"], False)
        answers = [
            send_request(endpoint, request("ListTables", b"{}", Origin=origin))
            for origin in (*origins, "http://localhost:3001")
        ]
        process.send_signal(signal.SIGTERM)

    assert [answer.status for answer in answers] == [200, 200, 403]
    assert [answer.headers.get("access-control-allow-origin") for answer in answers] == [*origins, None]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of four calls."""
    with attended(tmp_path) as server:
        server.send_request("CreateTable", ORDERS)
        server.send_request("PutItem", {"TableName": "Orders", "Item": {**KEY, "status": {"S": "open"}}})
        server.send_request("GetItem", {"TableName": "Orders", "Key": KEY})
        server.send_request("GetItem", {"TableName": "Nowhere", "Key": KEY})
        server.records()
    return tmp_path / "access.log"


def _logged(log: Path, *arguments: str) -> list[str]:
    result = runner.invoke(app, ["log", str(log), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_log_is_read_by_people(log: Path) -> None:
    """A line a call: when, who, what, where, how it went, what it took."""
    header, *rows = _logged(log)

    assert header.split() == [
        "TIME",
        "CALLER",
        "OPERATION",
        "TABLE",
        "RESULT",
        "DECISION",
        "MS",
        "READ",
        "WRITE",
    ]
    assert [row.split()[2:5] for row in rows] == [
        ["CreateTable", "Orders", "ok"],
        ["PutItem", "Orders", "ok"],
        ["GetItem", "Orders", "ok"],
        ["GetItem", "Nowhere", "ResourceNotFoundException"],
    ]
    assert rows[1].split()[-1] == "2"


def test_a_log_is_read_by_programs(log: Path) -> None:
    """As JSON, records are as they were written; the last so many are had alone."""
    lines = log.read_text().splitlines()

    assert _logged(log, "--json") == lines
    assert _logged(log, "--json", "--tail", "1") == lines[-1:]
    assert _logged(log, "--json", "--operation", "GetItem", "--error", "none") == lines[2:3]
    assert _logged(log, "--json", "--item", json.dumps(KEY)) == lines[1:3]
    assert _logged(log, "--json", "--since", "2026-11-01T09:31:00Z") == []
    assert _logged(log, "--since", "2026-11-01T09:31:00Z") == []


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["--since", "soon"], Exit.USAGE, "'soon'"),
        (["--item", "{}"], Exit.USAGE, "is not a key"),
        (["--item", "{"], Exit.USAGE, "is not a key"),
        (["--item", "[]"], Exit.USAGE, "is not a key"),
    ],
)
def test_what_cannot_be_asked_is_told(log: Path, arguments: list[str], code: Exit, why: str) -> None:
    """A time or a key that is none ends in three lines."""
    result = runner.invoke(app, ["log", str(log), *arguments])

    assert result.exit_code == code
    assert why in result.stderr.splitlines()[1]


def test_an_item_is_found_with_the_secret_alone(log: Path) -> None:
    """Without the log's secret nobody can ask for an item; a file that is not there is told."""
    log.with_name("access.log.secret").unlink()
    result = runner.invoke(app, ["log", str(log), "--item", json.dumps(KEY)])
    assert result.exit_code == Exit.NOT_FOUND

    assert runner.invoke(app, ["log", str(log.with_name("other.log"))]).exit_code == Exit.NOT_FOUND


def test_env_speaks_of_https() -> None:
    """SDKs are pointed at HTTPS if the server speaks it."""
    assert "https://127.0.0.1:8000" in runner.invoke(app, ["env", "--tls"]).stdout
