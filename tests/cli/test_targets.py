"""Targets: whose tables a command means, and what it tells of where it looked."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from tavola.cli.errors import CommandError, Exit
from tavola.cli.main import app
from tavola.cli.targets import TargetOptions
from tavola.connections import connect

TABLE = {
    "TableName": "Tickets",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a table in eu-west-1."""
    path = str(tmp_path / "shop.db")
    with connect(f"file:{path}", region="eu-west-1") as connection:
        connection.call("CreateTable", TABLE)
    return path


@pytest.mark.parametrize("variable", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_a_store_is_asked_in_the_region_of_the_environment(store: str, variable: str) -> None:
    """As a server is; the option goes before."""
    run = CliRunner().invoke
    unset = {"AWS_DEFAULT_REGION": None, "AWS_REGION": None}

    there = run(app, ["read", "Tickets", "--store", store], env={**unset, variable: "eu-west-1"})
    elsewhere = run(
        app,
        ["read", "Tickets", "--store", store, "--region", "us-east-1"],
        env={**unset, variable: "eu-west-1"},
    )

    assert there.exit_code == Exit.OK, there.stderr
    assert elsewhere.exit_code == Exit.NOT_FOUND
    assert "searched region us-east-1 of account 000000000000, which has no tables" in elsewhere.stderr


def test_a_missing_table_is_told_with_those_there_are(store: str) -> None:
    """A mistyped name is seen beside the right one."""
    run = CliRunner().invoke(app, ["read", "Tikets", "--store", store, "--region", "eu-west-1"])

    assert run.exit_code == Exit.NOT_FOUND
    assert "has the tables Tickets" in run.stderr


def test_a_missing_part_of_a_key_is_named(tmp_path: Path) -> None:
    """A table with a sort key needs both parts; the message names the one to add."""
    path = str(tmp_path / "orders.db")
    names = {"customer": "HASH", "placed_at": "RANGE"}
    table = {
        "TableName": "Orders",
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in names.items()],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "BillingMode": "PAY_PER_REQUEST",
    }
    with connect(f"file:{path}", region="eu-west-1") as connection:
        connection.call("CreateTable", table)

    at = ["--store", path, "--region", "eu-west-1"]
    run = CliRunner().invoke(app, ["read", "Orders", "--key", "customer=anna", *at])

    assert run.exit_code == Exit.USAGE
    assert "The key of Orders is customer and placed_at." in run.stderr
    assert "Add --key placed_at=…" in run.stderr


def test_an_endpoint_without_its_scheme_is_recognized() -> None:
    """The likely address is suggested; what is no endpoint is not offered."""
    run = CliRunner().invoke(app, ["read", "Orders", "--endpoint", "localhost:8123"])

    assert run.exit_code == Exit.USAGE
    assert "did you mean http://localhost:8123?" in run.stderr
    assert "memory:" not in run.stderr


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """And is not said to be missing."""
    with pytest.raises(CommandError, match="is a folder"), TargetOptions(store=tmp_path).open():
        pass


def test_the_endpoint_of_aws_names_its_region_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region from the environment stands in where it names none, and is no contradiction where it does."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    for endpoint, region, wanted in (
        ("aws:eu-west-1", "us-east-2", "eu-west-1"),
        ("aws:", "us-east-2", "us-east-2"),
    ):
        with TargetOptions(endpoint=endpoint, region=region).open() as target:
            assert getattr(target.connection.backend, "region", None) == wanted


class _EmptyResponses(BaseHTTPRequestHandler):
    """Responds to every request with an empty JSON object."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def other_server() -> Iterator[str]:
    """A server that speaks HTTP and JSON, and is not DynamoDB."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _EmptyResponses)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("command", [["read", "Tickets"], ["probe"], ["backup", "list"]])
def test_a_server_that_is_not_dynamodb_is_named(other_server: str, command: list[str]) -> None:
    """A response without DynamoDB's members is the server's fault, not an internal error."""
    run = CliRunner().invoke(app, [*command, "--endpoint", other_server])

    assert run.exit_code == Exit.UNREACHABLE
    assert f"{other_server} responded with status 200, and not as DynamoDB does" in run.stderr


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--endpoint", "http://x"], "--store and --endpoint cannot be combined."),
        (["--account", "12"], "--account 12 is not valid."),
        (["--key", '{"pk": 1}'], "pk in --key is 1, which has no DynamoDB type."),
        (
            ["--query", "pk = :p", "--values", '{":p": "a"}'],
            ':p in --values is "a", which has no DynamoDB type.',
        ),
        (["--values", "nope", "--filter", "a = :p"], "--values is not valid JSON (line 1, column 1: "),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(store: str, options: list[str], cause: str) -> None:
    """The message names the option and what it was given."""
    run = CliRunner().invoke(app, ["read", "Tickets", "--store", store, "--region", "eu-west-1", *options])

    assert run.exit_code == Exit.USAGE
    assert f"Cause: {cause}" in run.stderr


def test_the_endpoint_of_the_environment_does_not_exclude_a_file(store: str) -> None:
    """`tavola env` sets TAVOLA_ENDPOINT, which is only the default."""
    run = CliRunner().invoke(
        app,
        ["read", "Tickets", "--store", store, "--region", "eu-west-1"],
        env={"TAVOLA_ENDPOINT": "http://x"},
    )

    assert run.exit_code == Exit.OK, run.stderr


@pytest.mark.parametrize(
    ("command", "code", "cause"),
    [
        (["backfill", "main.tf"], Exit.USAGE, "main.tf is a file or folder without Python classes"),
        (
            ["backfill", "tests.client.desk:Desk", "--checkpoint", "no/c"],
            Exit.FAILED,
            "there is no folder no.",
        ),
        (["backup", "describe", "first"], Exit.USAGE, "'first' is not the ARN of a backup."),
        (["log", "."], Exit.USAGE, ". is a folder."),
        (["api", "GET"], Exit.USAGE, "The path of the endpoint is missing."),
        (["iam", "init", "no/iam.json"], Exit.NOT_FOUND, "The folder no does not exist."),
    ],
)
def test_a_wrong_path_or_name_is_not_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, command: list[str], code: Exit, cause: str
) -> None:
    """Each of these ended in a traceback's words or in a message about something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.tf").write_text("")
    takes_store = command[0] in ("backfill", "backup")
    run = CliRunner().invoke(app, [*command, *(["--store", store] if takes_store else [])])

    assert run.exit_code == code
    assert cause in run.stderr
