"""`tavola app` as a separate process: one application at the root of its port, with its tables on any target."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tavola import Engine, connect
from tavola.apps.support_desk.model import Event
from tavola.cli import server_loop
from tavola.cli.applications import APPLICATIONS, SERVICE_DESK, Application
from tavola.cli.errors import Exit
from tavola.server.listener import running
from tests.apps.processes import (
    WAIT_S,
    command,
    environment,
    run_failing_command,
    send_request,
    start_command,
)

pytestmark = pytest.mark.slow  # a process a test: `make applications` runs it

TICKET = {"caller_id": "poc-user-001", "issue_description": "My laptop won't turn on"}


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.name)
def test_each_application_is_served_at_the_root(application: Application) -> None:
    """Pages, API and health respond, and Ctrl-C ends it with exit code 0."""
    with start_command("app", application.name, "--port", "0") as it:
        url = it.startup["url"]
        answers = [
            send_request(url + path)[0] for path in ("/", "/ui/", "/ui/api", "/openapi.json", "/healthz")
        ]
        ended = it.stop()

    assert it.startup["schema"] == "tavola.app/1"
    assert it.startup["application"] == application.name
    assert answers == [200] * 5
    assert ended == (0, "")


def test_a_file_keeps_the_records(tmp_path: Path) -> None:
    """A second start on the file has the records of the first; further state is in one folder."""
    file = tmp_path / "desk.db"
    with start_command("app", "service-desk", "--port", "0", "--store", str(file)) as first:
        status, made = send_request(f"{first.startup['url']}/tickets", TICKET)
        first.stop(signal.SIGTERM)
    with start_command("app", "service-desk", "--port", "0", "--store", f"file:{file}") as second:
        found = send_request(f"{second.startup['url']}/tickets/{json.loads(made)['ticket_id']}")

    assert status == 201
    assert found[0] == 200
    assert json.loads(found[1])["issue_description"] == TICKET["issue_description"]
    assert second.startup["file"] == str(file)
    assert (tmp_path / "desk.db.apps" / "secret").stat().st_mode & 0o777 == 0o600


def test_an_endpoint_has_the_tables(tmp_path: Path) -> None:
    """On a shared server, tables have the configured prefix, and the secret stays local."""
    with Engine.open() as engine, running(engine) as endpoint:
        with start_command(
            *("app", "service-desk", "--port", "0", "--store", endpoint.url, "--table-prefix", "trial-"),
            cwd=tmp_path,
        ) as it:
            status, _ = send_request(f"{it.startup['url']}/tickets", TICKET)
            state_folder = Path(it.startup["state"])
            ended = it.stop()
        with connect(endpoint.url) as connection:
            tables = connection.call("ListTables")["TableNames"]

    assert (status, ended[0]) == (201, 0)
    assert tables == ["trial-poc-itsm-tickets"]
    assert state_folder.parent == tmp_path / ".tavola"
    assert (state_folder / "secret").exists()


def test_a_taken_port_is_a_conflict() -> None:
    """The error says how to choose another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, errors = run_failing_command("app", "gallery", "--port", str(taken.getsockname()[1]))

    assert code == Exit.CONFLICT
    assert "--port" in errors


def test_a_file_that_is_open_elsewhere_is_a_conflict(tmp_path: Path) -> None:
    """One process owns a file."""
    with Engine.open(tmp_path / "desk.db"):
        code, errors = run_failing_command(
            "app", "gallery", "--port", "0", "--store", str(tmp_path / "desk.db")
        )

    assert code == Exit.CONFLICT
    assert "Stop the other process" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["--store", "http://127.0.0.1:9", "--state", "state"],
            Exit.UNREACHABLE,
            "name another with --store",
        ),
        (["--store", "nowhere/desk.db"], Exit.NOT_FOUND, "The folder nowhere does not exist"),
        (["--store", "htp://localhost:8000"], Exit.USAGE, "'htp://localhost:8000' is not a location"),
        (["--store", "http://localhost:8000/path"], Exit.USAGE, "use only scheme, host and port"),
        (["--secret-file", "nothing"], Exit.NOT_FOUND, "The secret file nothing cannot be read"),
        (["--host", "192.0.2.1"], Exit.UNREACHABLE, "--host"),
        (["--port", "70000"], Exit.USAGE, "must be a whole number from 0 to 65535"),
    ],
)
def test_an_invalid_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: Exit, sentence: str
) -> None:
    """What failed, why and what to do, with the exit code of its kind."""
    monkeypatch.chdir(tmp_path)
    found, errors = run_failing_command("app", SERVICE_DESK.name, "--port", "0", *arguments)

    assert found == code, errors
    assert sentence in " ".join(errors.split())


def test_aws_requires_live(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --live nothing is created on AWS; the account is shown in both cases."""
    from tavola.cli import applications
    from tavola.cli.errors import CommandError

    asked_for: list[str] = []

    class Connection:
        backend = None

        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def call(self, operation: str, request: Any = None) -> dict[str, Any]:
            asked_for.append(operation)
            if operation == "ListTables":
                return {"TableNames": ["orders"]}
            return {"Table": {"TableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"}}

    monkeypatch.setattr("tavola.connections.connect", lambda *_, **__: Connection())
    with pytest.raises(CommandError) as raised:
        applications.check_live("aws:eu-west-1", live=False)
    applications.check_live("https://dynamodb.eu-west-1.amazonaws.com", live=True)
    warned = capsys.readouterr().err

    assert "account 123456789012" in str(raised.value)
    assert "--live" in str(raised.value.remedy)
    assert "account 123456789012" in warned
    assert set(asked_for) == {"ListTables", "DescribeTable"}


@pytest.mark.parametrize("target", ["http://localhost:8000", "https://dynamodb.example.org", "memory:"])
def test_other_endpoints_are_not_aws(target: str) -> None:
    """Only AWS requires --live."""
    from tavola.cli.applications import is_live

    assert not is_live(target)


def test_a_missing_web_stack_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the applications' dependencies, the error says what to install."""
    import click

    from tavola.cli import applications

    with pytest.raises(click.exceptions.Exit) as ended, applications.reporting_app_errors("Cannot."):
        raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi.routing")

    assert ended.value.exit_code == Exit.FAILED
    assert "pip install 'tavola[apps]'" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError), applications.reporting_app_errors("Cannot."):
        raise ModuleNotFoundError("No module named 'unrelated'", name="unrelated")


def test_a_slow_start_is_stopped_by_the_first_signal(tmp_path: Path) -> None:
    """Before it serves, one Ctrl-C ends it, and it says that it never served."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            command("app", "service-desk", "--port", "0", "--store", url),
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        silent.settimeout(WAIT_S)
        connection, _ = silent.accept()  # it asks for its tables, and nobody answers
        with connection:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAIT_S)

    assert process.returncode == Exit.FAILED
    assert "Stopped while starting" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("option", ["--state", "--blobs"])
def test_an_unwritable_folder_is_reported(tmp_path: Path, option: str) -> None:
    """The error names the option, before anything is served."""
    (tmp_path / "f").touch()
    (tmp_path / "s").write_bytes(b"0" * 32)
    secret = ("--secret-file", str(tmp_path / "s"))
    code, errors = run_failing_command(
        "app", "support-desk", "--port", "0", option, str(tmp_path / "f"), *secret
    )

    assert code == Exit.USAGE
    assert option.removeprefix("--") in errors


def test_failing_background_work_is_logged_rarely(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By type and location, without its message, at growing intervals."""
    waits: list[float] = []

    class Broken:
        def run_background_work(self, _: float) -> bool:
            raise ValueError("what somebody stored")

    async def serve() -> None:
        sleep = asyncio.sleep

        async def slept(seconds: float) -> None:
            waits.append(seconds)
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", slept)
        async with server_loop.running_background_work(cast("Engine", Broken())):
            while len(waits) < 30:
                await sleep(0)

    asyncio.run(serve())

    longest = waits[::2]
    assert longest == sorted(longest)
    assert longest[-1] == server_loop._PAUSE_FAILED_S_MAX
    assert "ValueError at" in caplog.text
    assert "what somebody stored" not in caplog.text


def test_the_support_desk_sets_the_configured_expiry(tmp_path: Path) -> None:
    """`--keep-tickets` and `--keep-events` set an expiry for closed tickets and events; without them everything stays."""
    store = str(tmp_path / "desk.db")
    ticket_body = {"customer_id": "cust-001", "symptom_text": "No paper"}
    retention_options = ("--keep-tickets", "7", "--keep-events", "30")
    with start_command("app", "support-desk", "--store", store, "--port", "0", *retention_options) as desk:
        ticket = json.loads(send_request(f"{desk.startup['url']}/tickets", ticket_body)[1])["ticket_id"]
        desk.stop()
    with connect(f"file:{store}") as db:
        key = Event.ByTicket(ticket_id=ticket)
        (event,) = db.query(key)

    assert event.ttl is not None
    assert abs(event.at + timedelta(days=30) - event.ttl) <= timedelta(seconds=1)
