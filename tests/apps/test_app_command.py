"""`tavola app`, as a process of its own: one application at the root of its port, wherever its tables are."""

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
from tavola.cli.exits import Exit
from tavola.server.listener import running
from tests.apps.processes import WAIT_S, asked, command, environment, failed, started

pytestmark = pytest.mark.slow  # a process a test: `make applications` runs it

TICKET = {"caller_id": "poc-user-001", "issue_description": "My laptop won't turn on"}


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.name)
def test_each_application_is_served_at_the_root(application: Application) -> None:
    """Its pages, its API and its health answer, and Ctrl-C ends it with exit code 0."""
    with started("app", application.name, "--port", "0") as it:
        url = it.told["url"]
        answers = [asked(url + path)[0] for path in ("/", "/ui/", "/ui/api", "/openapi.json", "/healthz")]
        ended = it.stop()

    assert it.told["schema"] == "tavola.app/1"
    assert it.told["application"] == application.name
    assert answers == [200] * 5
    assert ended == (0, "")


def test_a_file_keeps_the_records(tmp_path: Path) -> None:
    """A second start on the file has what the first was given; what lies beside is in one folder."""
    file = tmp_path / "desk.db"
    with started("app", "service-desk", "--port", "0", "--store", str(file)) as first:
        status, made = asked(f"{first.told['url']}/tickets", TICKET)
        first.stop(signal.SIGTERM)
    with started("app", "service-desk", "--port", "0", "--store", f"file:{file}") as second:
        found = asked(f"{second.told['url']}/tickets/{json.loads(made)['ticket_id']}")

    assert status == 201
    assert found[0] == 200
    assert json.loads(found[1])["issue_description"] == TICKET["issue_description"]
    assert second.told["file"] == str(file)
    assert (tmp_path / "desk.db.apps" / "secret").stat().st_mode & 0o777 == 0o600


def test_an_endpoint_has_the_tables(tmp_path: Path) -> None:
    """On a server that others use too, tables have the prefix that was asked for, and the secret is kept here."""
    with Engine.open() as engine, running(engine) as endpoint:
        with started(
            *("app", "service-desk", "--port", "0", "--store", endpoint.url, "--table-prefix", "trial-"),
            cwd=tmp_path,
        ) as it:
            status, _ = asked(f"{it.told['url']}/tickets", TICKET)
            kept = Path(it.told["state"])
            ended = it.stop()
        with connect(endpoint.url) as connection:
            tables = connection.call("ListTables")["TableNames"]

    assert (status, ended[0]) == (201, 0)
    assert tables == ["trial-poc-itsm-tickets"]
    assert kept.parent == tmp_path / ".tavola"
    assert (kept / "secret").exists()


def test_a_port_that_is_taken_is_a_conflict() -> None:
    """Who cannot listen says so, and how another port is chosen."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, told = failed("app", "gallery", "--port", str(taken.getsockname()[1]))

    assert code == Exit.CONFLICT
    assert "--port" in told


def test_a_file_that_is_open_elsewhere_is_a_conflict(tmp_path: Path) -> None:
    """One process owns a file."""
    with Engine.open(tmp_path / "desk.db"):
        code, told = failed("app", "gallery", "--port", "0", "--store", str(tmp_path / "desk.db"))

    assert code == Exit.CONFLICT
    assert "Stop the other process" in told


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["--store", "http://127.0.0.1:9", "--state", "state"],
            Exit.UNREACHABLE,
            "name another with --store",
        ),
        (["--store", "nowhere/desk.db"], Exit.NOT_FOUND, "The folder nowhere is not there"),
        (["--store", "htp://localhost:8000"], Exit.USAGE, "'htp://localhost:8000' is no target"),
        (["--store", "http://localhost:8000/path"], Exit.USAGE, "give scheme, host and port alone"),
        (["--secret-file", "nothing"], Exit.FAILED, "The secret in nothing cannot be read"),
        (["--host", "192.0.2.1"], Exit.UNREACHABLE, "--host"),
        (["--port", "70000"], Exit.USAGE, "is not in the range 0<=x<=65535"),
    ],
)
def test_what_cannot_be_served_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: Exit, sentence: str
) -> None:
    """What, why and what to do, with the exit code of its kind."""
    monkeypatch.chdir(tmp_path)
    found, told = failed("app", SERVICE_DESK.name, "--port", "0", *arguments)

    assert found == code, told
    assert sentence in " ".join(told.split())


def test_aws_is_only_written_to_if_it_is_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --live nothing is made on AWS, and the account is told; with it, the account is told too."""
    import click

    from tavola.cli import app_storage

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
    with pytest.raises(click.exceptions.Exit) as ended:
        app_storage.check_live("aws:eu-west-1", live=False)
    refused = capsys.readouterr().err
    app_storage.check_live("https://dynamodb.eu-west-1.amazonaws.com", live=True)
    warned = capsys.readouterr().err

    assert ended.value.exit_code == Exit.USAGE
    assert "account 123456789012" in refused
    assert "--live" in refused
    assert "account 123456789012" in warned
    assert set(asked_for) == {"ListTables", "DescribeTable"}


@pytest.mark.parametrize("target", ["http://localhost:8000", "https://dynamodb.example.org", "memory:"])
def test_other_endpoints_are_not_aws(target: str) -> None:
    """Only AWS asks for --live."""
    from tavola.cli.app_storage import is_live

    assert not is_live(target)


def test_a_missing_web_stack_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who installed Tavola without the applications is told what to install."""
    import importlib

    import click

    from tavola.cli import applications

    def missing(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi.routing")

    monkeypatch.setattr(applications, "import_module", missing)
    with pytest.raises(click.exceptions.Exit) as ended, applications.reporting_app_errors("Cannot."):
        applications.create(SERVICE_DESK, None)

    assert ended.value.exit_code == Exit.FAILED
    assert "pip install 'tavola[apps]'" in capsys.readouterr().err
    monkeypatch.setattr(applications, "import_module", lambda _: importlib.import_module("nothing_of_ours"))
    with pytest.raises(ModuleNotFoundError):
        applications.create(SERVICE_DESK, None)


def test_a_start_that_takes_too_long_is_stopped_by_the_first_signal(tmp_path: Path) -> None:
    """Who serves nobody yet has nothing to finish: one Ctrl-C ends it, and it says that it never served."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            command("app", "service-desk", "--port", "0", "--store", place),
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        silent.settimeout(WAIT_S)
        connection, _ = silent.accept()  # it asks for its tables, and nobody answers
        with connection:
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=WAIT_S)

    assert process.returncode == Exit.FAILED
    assert "Stopped before it served" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("option", ["--state", "--blobs"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, option: str) -> None:
    """By the option, before anything is served."""
    (tmp_path / "f").touch()
    (tmp_path / "s").write_bytes(b"0" * 32)
    secret = ("--secret-file", str(tmp_path / "s"))
    code, told = failed("app", "support-desk", "--port", "0", option, str(tmp_path / "f"), *secret)

    assert code == Exit.USAGE
    assert option.removeprefix("--") in told


def test_background_work_that_fails_is_told_seldom(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its kind and place, without what it says, and later each time."""
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
    assert longest[-1] == server_loop.TEND_LATEST_S
    assert "ValueError at" in caplog.text
    assert "what somebody stored" not in caplog.text


def test_the_support_desk_lets_end_what_it_is_told_to(tmp_path: Path) -> None:
    """`--keep-tickets` and `--keep-events` give closed tickets and events an end; without them everything stays."""
    store = str(tmp_path / "desk.db")
    told = {"customer_id": "cust-001", "symptom_text": "No paper"}
    kept = ("--keep-tickets", "7", "--keep-events", "30")
    with started("app", "support-desk", "--store", store, "--port", "0", *kept) as desk:
        ticket = json.loads(asked(f"{desk.told['url']}/tickets", told)[1])["ticket_id"]
        desk.stop()
    with connect(f"file:{store}") as db:
        key = Event.OfTicket(ticket_id=ticket)
        (event,) = db.query(key)

    assert event.ttl is not None
    assert abs(event.at + timedelta(days=30) - event.ttl) <= timedelta(seconds=1)
