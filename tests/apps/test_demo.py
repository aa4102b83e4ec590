"""`tavola demo`: the endpoint and every application in one process, on a file that is complete or absent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from tavola import Engine
from tavola.apps.shell import AppSettings
from tavola.cli import sample_generation, samples
from tavola.cli.applications import APPLICATIONS, SERVICE_DESK, Application
from tavola.cli.errors import Exit
from tavola.clock import pause
from tavola.protocol.arns import DEFAULT_SCOPE
from tests.apps.processes import (
    WAIT_S,
    Started,
    command,
    environment,
    run_failing_command,
    send_request,
    start_command,
)

pytestmark = pytest.mark.slow  # a process a test: `make applications` runs it

SMALL = ("--tickets", "60", "--reviews", "12", "--port", "0", "--apps-port", "0")
TICKET = {"caller_id": "poc-user-001", "issue_description": "My laptop won't turn on"}


@contextmanager
def demo(file: Path, *more: str) -> Iterator[Started]:
    """Start a small demo."""
    with start_command("demo", str(file), *SMALL, *more) as it:
        yield it


def tables_of(it: Started) -> Any:
    """Return boto3's client for the endpoint."""
    return boto3.client(
        "dynamodb",
        endpoint_url=it.startup["endpoint"],
        region_name=it.startup["region"],
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )


def test_everything_is_served_and_stored(tmp_path: Path) -> None:
    """Pages respond, numbers are complete, boto3 sees the same tables, and a second start has the same data."""
    file = tmp_path / "demo.db"
    with demo(file) as first:
        url = first.startup["url"]
        pages = {
            path: send_request(url + path)[0]
            for path in ("/", "/ui/", *(f"/{a.name}/ui/" for a in APPLICATIONS))
        }
        front = send_request(f"{url}/ui/")[1]
        status, made = send_request(f"{url}/service-desk/tickets", TICKET)
        ticket = json.loads(made)["ticket_id"]
        dynamodb = tables_of(first)
        names = dynamodb.list_tables()["TableNames"]
        item = dynamodb.get_item(TableName="poc-itsm-tickets", Key={"ticket_id": {"S": ticket}})
        counted = dynamodb.describe_table(TableName="prod-tickets-unified")["Table"]["ItemCount"]
        numbers = json.loads(send_request(f"{url}/support-desk/dashboard")[1])
        ended = first.stop()
    with demo(file) as second:
        again = send_request(f"{second.startup['url']}/service-desk/tickets/{ticket}")[0]
        item_count = tables_of(second).describe_table(TableName="prod-tickets-unified")["Table"]["ItemCount"]
        ready = [send_request(f"{url}readyz")[0] for url in second.startup["applications"].values()]
        ended_too = second.stop(signal.SIGTERM)

    assert first.startup["schema"] == "tavola.demo/1"
    assert set(pages.values()) == {200}, pages
    for page in (
        "support-desk/ui/dashboard",
        "service-desk/ui/tickets",
        "terraform-review/ui/risk",
        "gallery/ui/",
    ):
        assert f'href="/{page}"' in front
    assert front.count('href="/service-desk/ui/api"') == 1
    assert status == 201
    assert {"poc-itsm-tickets", "prod-tickets-unified"} <= set(names)
    assert item["Item"]["issue_description"] == {"S": TICKET["issue_description"]}
    assert counted > 60
    assert sum(numbers["by_status"].values()) == 60
    assert (again, item_count) == (200, counted)
    assert ready == [200] * len(APPLICATIONS)
    assert "Filling" in ended[1]
    assert (ended[0], ended_too) == (0, (0, ""))
    assert {path.name for path in tmp_path.iterdir()} == {"demo.db", "demo.db.apps"}


@contextmanager
def filling(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a demo in its own process group, with too much data to generate during the test."""
    process = subprocess.Popen(
        command("demo", str(file), "--tickets", "200000", "--port", "0", "--apps-port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert "Filling" in process.stderr.readline()
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_children(process: subprocess.Popen[str]) -> None:
    """Wait until the generating processes have started; they are still loading their modules."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while (
        process.poll() is None and len(children.read_text().split()) < 4
    ):  # three, and the one that tends to all
        os.sched_yield()


def wait_for_records(process: subprocess.Popen[str], file: Path) -> None:
    """Wait until generated records are being stored."""
    wait_for_children(process)
    before = size_of(file)
    while process.poll() is None and size_of(file) < before + 100_000:
        pause(0.01)


def size_of(file: Path) -> int:
    """Return the size of a file that is being created, with its log."""
    found = 0
    for end in ("", "-wal"):
        with suppress(FileNotFoundError):
            found += file.with_name(f"{file.name}.new{end}").stat().st_size
    return found


def test_a_killed_start_leaves_no_partial_file(tmp_path: Path) -> None:
    """Killed while it generates, it leaves no file under the name; the next start creates it completely."""
    file = tmp_path / "demo.db"
    with filling(file) as process:
        wait_for_records(process, file)
        process.kill()
        process.communicate()
    left = {path.name for path in tmp_path.iterdir()}
    with demo(file) as it:
        counted = tables_of(it).describe_table(TableName="prod-tickets-unified")["Table"]["ItemCount"]
        it.stop()

    assert "demo.db" not in left
    assert "demo.db.new" in left
    assert counted > 60
    assert {path.name for path in tmp_path.iterdir()} == {"demo.db", "demo.db.apps"}


@pytest.mark.parametrize("early", [True, False])
def test_ctrl_c_while_it_generates_leaves_nothing(tmp_path: Path, early: bool) -> None:
    """Ctrl-C leaves an empty folder and prints a sentence; a terminal signals all processes at once."""
    file = tmp_path / "demo.db"
    with filling(file) as process:
        wait_for_children(process) if early else wait_for_records(process, file)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_S)

    assert process.returncode == Exit.INTERRUPTED
    assert "the incomplete data was deleted" in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_reported_before_anything_is_created(tmp_path: Path) -> None:
    """Each port is named by its option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        endpoint = run_failing_command("demo", str(tmp_path / "demo.db"), "--port", port, "--apps-port", "0")
        applications = run_failing_command(
            "demo", str(tmp_path / "demo.db"), "--port", "0", "--apps-port", port
        )
        both = run_failing_command("demo", str(tmp_path / "demo.db"), "--port", "8765", "--apps-port", "8765")

    assert endpoint[0] == applications[0] == Exit.CONFLICT
    assert "with --port;" in endpoint[1]
    assert "with --apps-port;" in applications[1]
    assert both[0] == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


def test_a_running_demo_is_a_conflict(tmp_path: Path) -> None:
    """One process owns a file, also while it is being created; a second signal does not wait for slow clients."""
    with demo(tmp_path / "demo.db", "--no-data") as it:
        open_, errors = run_failing_command("demo", str(tmp_path / "demo.db"), *SMALL)
        fresh, _ = run_failing_command("demo", str(tmp_path / "demo.db"), *SMALL, "--fresh")
        with socket.create_connection(("127.0.0.1", it.startup["apps_port"])) as slow:
            slow.sendall(
                b"POST /service-desk/tickets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                b"Content-Type: application/json\r\n\r\n{"
            )
            send_request(f"{it.startup['url']}/healthz")
            it.process.send_signal(signal.SIGINT)
            assert it.stop()[0] == 0
    with Engine.open(tmp_path / "other.db.new"):
        making, _ = run_failing_command("demo", str(tmp_path / "other.db"), *SMALL)

    assert open_ == fresh == making == Exit.CONFLICT
    assert "Stop the other process" in errors


def test_a_foreign_file_is_neither_filled_nor_replaced(tmp_path: Path) -> None:
    """An existing store is served with its own tables, and --fresh refuses it."""
    file = tmp_path / "shop.db"
    with Engine.open(file) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Orders",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    refused, errors = run_failing_command("demo", str(file), *SMALL, "--fresh")
    with demo(file) as it:
        names = tables_of(it).list_tables()["TableNames"]
        ended = it.stop()

    assert refused == Exit.FAILED
    assert "was not created by a demo" in errors
    assert "Orders" in names
    assert "no sample data is added" in ended[1]


def test_only_fresh_replaces_the_data(tmp_path: Path) -> None:
    """The tables stay in the region they were created in, whatever the environment says, until --fresh removes them."""
    file = tmp_path / "demo.db"
    secret = tmp_path / "demo.db.apps" / "secret"
    with demo(file, "--no-data", "--region", "eu-west-1") as first:
        first.stop()
    before = secret.read_text()
    with demo(file, "--region", "eu-south-1") as second:
        _, errors = second.stop()
    stored_secret = secret.read_text()
    with demo(file, "--no-data", "--fresh", "--region", "eu-south-1") as third:
        third.stop()

    assert (second.startup["region"], third.startup["region"]) == ("eu-west-1", "eu-south-1")
    assert "in eu-west-1" in errors
    assert stored_secret == before
    assert secret.read_text() != before


MARKED = json.dumps(
    {"schema": samples.SCHEMA, "region": "x", "tickets": 1, "reviews": 1, "seed": 1, "made_at": "x"}
)


@pytest.mark.parametrize("name", ["letters.txt", "secret", samples.MARKER])
@pytest.mark.parametrize("more", [(), ("--fresh",)])
def test_a_folder_without_its_file_stays(tmp_path: Path, name: str, more: tuple[str, ...]) -> None:
    """It has the secret and blobs of records that were moved, or are on a disk that is not mounted."""
    folder = tmp_path / "demo.db.apps"
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / "b1").write_text("precious")
    (folder / name).write_text(MARKED)
    code, errors = run_failing_command("demo", str(tmp_path / "demo.db"), *SMALL, "--no-data", *more)

    assert code == Exit.FAILED
    assert "put the file back, or move the folder away" in errors
    assert (folder / "blobs" / "b1").read_text() == "precious"
    assert (folder / name).read_text() == MARKED
    assert {path.name for path in tmp_path.iterdir()} == {"demo.db.apps"}


def test_a_start_aborted_between_two_moves_is_repeated(tmp_path: Path) -> None:
    """The folder is in its final location and the file is not yet: both are ours."""
    (tmp_path / "demo.db.apps").mkdir()
    (tmp_path / "demo.db.apps" / samples.MARKER).write_text(MARKED)
    (tmp_path / "demo.db.new").touch()
    samples.create_file(tmp_path / "demo.db", "eu-west-1", None)

    mark = samples.read_marker(tmp_path / "demo.db")
    assert mark is not None
    assert mark.region == "eu-west-1"
    assert {path.name for path in tmp_path.iterdir()} == {"demo.db", "demo.db.apps"}


def test_a_file_beside_foreign_content_is_not_replaced(tmp_path: Path) -> None:
    """A demo's file stays if its folder contains something that no demo created."""
    samples.create_file(tmp_path / "demo.db", "eu-west-1", None)
    (tmp_path / "demo.db.apps" / "letters.txt").write_text("dear")

    with pytest.raises(samples.NotADemoFile, match=r"letters\.txt"):
        samples.create_file(tmp_path / "demo.db", "eu-south-1", None)
    assert (tmp_path / "demo.db").exists()


def test_the_old_file_stays_until_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, Ctrl-C, or a power cut at either move leaves one of the two complete."""
    file = tmp_path / "demo.db"
    samples.create_file(file, "eu-west-1", None)
    before = (tmp_path / "demo.db.apps" / "secret").read_text()

    async def full(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(samples, "_start_apps", full)
        with pytest.raises(KeyboardInterrupt):
            samples.create_file(file, "eu-south-1", None)
    assert (tmp_path / "demo.db.apps" / "secret").read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == {"demo.db", "demo.db.apps"}

    for moves in range(4):
        left = moves
        rename = Path.rename

        def cut(path: Path, to: Path, rename: Any = rename) -> Path:
            nonlocal left
            left -= 1
            if left < 0:
                raise SystemExit
            return cast(Path, rename(path, to))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", cut)
            with pytest.raises(SystemExit):
                samples.create_file(file, "eu-south-1", None)
        samples.create_file(file, "eu-west-2", None)
        mark = samples.read_marker(file)
        assert mark is not None
        assert mark.region == "eu-west-2"
        assert {path.name for path in tmp_path.iterdir()} == {"demo.db", "demo.db.apps"}, moves


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, the demo says so without reporting a bug."""
    (tmp_path / ".tavola").touch()
    monkeypatch.chdir(tmp_path)
    code, errors = run_failing_command("demo", *SMALL)

    assert code == Exit.FAILED
    assert "cannot be created here" in errors


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema": "tavola.demo/2"}', '{"schema": "tavola.demo/1"}']
)
def test_an_invalid_mark_is_ignored(tmp_path: Path, text: str) -> None:
    """A file without a valid mark was not created by a demo."""
    (tmp_path / "x.db.apps").mkdir()
    (tmp_path / "x.db.apps" / samples.MARKER).write_text(text)

    assert samples.read_marker(tmp_path / "x.db") is None


def test_children_generate_what_this_process_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same records in any process."""
    now = datetime(2026, 3, 2, 9, tzinfo=UTC)
    found: list[Any] = []
    for worth in (0, 1_000):
        monkeypatch.setattr(sample_generation, "CHILDREN_LEAST", worth)
        state = tmp_path / str(worth)
        with Engine.open() as engine:
            settings = AppSettings(target=engine, state=state)
            secret = tmp_path / "secret"
            if secret.exists():
                state.mkdir()
                (state / "secret").write_text(secret.read_text())
            asyncio.run(samples._start_apps(settings))
            secret.write_text((state / "secret").read_text())
            reports: list[Any] = []
            job = sample_generation.GenerationJob(SERVICE_DESK, "Tickets", 40, 7, now, state)
            sample_generation.generate(
                [job], engine, DEFAULT_SCOPE, lambda *each, reports=reports: reports.append(each)
            )
            items = engine.call("Scan", {"TableName": "poc-itsm-tickets"})["Items"]
            found.append(sorted(items, key=lambda item: str(item["ticket_id"])))
            assert reports[-1] == ("Tickets", 40, 40)

    assert len(found[0]) == 40
    assert found[0] == found[1]


def test_a_failing_child_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a child process is reported in this one."""
    monkeypatch.setattr(sample_generation, "CHILDREN_LEAST", 0)
    unknown = Application("unknown", "Unknown", "")
    job = sample_generation.GenerationJob(
        unknown, "Tickets", 1, 7, datetime(2026, 3, 2, tzinfo=UTC), tmp_path
    )

    with (
        Engine.open() as engine,
        pytest.raises(sample_generation.GenerationError, match="Tickets: ValueError"),
    ):
        sample_generation.generate([job], engine, DEFAULT_SCOPE, lambda *_: None)


def test_a_built_documentation_site_is_served(tmp_path: Path) -> None:
    """`--docs` serves a built site at /docs and links it from the start page; a folder without one is refused."""
    site = tmp_path / "site"
    site.mkdir()
    refused = run_failing_command("demo", str(tmp_path / "demo.db"), *SMALL, "--docs", str(site))
    (site / "index.html").write_text("<p>The documentation</p>")
    with demo(tmp_path / "demo.db", "--no-data", "--docs", str(site)) as it:
        page = send_request(f"{it.startup['url']}/docs/")
        front = send_request(f"{it.startup['url']}/ui/")[1]

    assert "has no documentation site" in str(refused)
    assert page[0] == 200
    assert "The documentation" in page[1]
    assert "/docs/" in front
