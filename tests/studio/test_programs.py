"""The studio as a program of its own, beside an endpoint, in the demo, and from an installed wheel."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from httpx2 import Client

from tavola import connect
from tavola.cli.errors import Exit
from tavola.engine import Engine
from tavola.studio import Assets
from tests.apps.processes import (
    WAIT_S,
    command,
    environment,
    run_failing_command,
    send_request,
    start_command,
)
from tests.architecture.source_tree import ROOT

pytestmark = pytest.mark.slow  # a process a test

ORDERS = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a table."""
    engine = Engine.open(tmp_path / "shop.db")
    engine.call("CreateTable", ORDERS)
    engine.close()
    return tmp_path / "shop.db"


def test_the_studio_is_served(store: Path) -> None:
    """Its page and its API answer below the base path; Ctrl-C ends it with exit code 0."""
    options = ("--store", str(store), "--port", "0", "--base-path", "/tools/studio/", "--read-only")
    with start_command("studio", "tavola.apps.gallery.customer_orders", *options) as it:
        url = it.startup["url"]
        page = send_request(url)
        session = json.loads(send_request(f"{url}api/session")[1])
        ended = it.stop()

    assert it.startup["schema"] == "tavola.studio/1"
    assert url.endswith("/tools/studio/")
    assert page[0] == 200
    assert session["read_only"] is True
    assert "Orders" in [table["name"] for table in session["tables"]]
    assert ended[0] == 0


def test_a_stream_of_events_does_not_hold_it_up(store: Path) -> None:
    """A page that listens to changes does not delay the shutdown."""
    with start_command("studio", "--store", str(store), "--port", "0") as it:
        with socket.create_connection((it.startup["host"], it.startup["port"])) as listening:
            head = "GET /api/changes?table=Orders HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
            listening.sendall(head.encode())
            assert listening.recv(12) == b"HTTP/1.1 200"
            it.process.send_signal(signal.SIGTERM)
            _, errors = it.process.communicate(timeout=5)

    assert it.process.returncode == 0
    assert "ASGI" not in errors


def test_with_an_endpoint_it_sees_other_programs_requests(tmp_path: Path) -> None:
    """`tavola serve --studio` shows the tables of the endpoint and every call that anybody makes."""
    log = str(tmp_path / "access.log")
    with start_command("serve", "--port", "0", "--studio", "--studio-port", "0", "--access-log", log) as it:
        with connect(it.startup["endpoint"], region="us-east-1") as db:
            db.call("CreateTable", ORDERS)
            db.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "o#1"}}})
        session = json.loads(send_request(f"{it.startup['studio']}api/session")[1])
        ended = it.stop()

    assert [table["name"] for table in session["tables"]] == ["Orders"]
    assert session["watching"] is True
    assert session["log"] is True
    assert ended[0] == 0


def test_a_strict_endpoint_has_a_studio_with_sign_in(tmp_path: Path) -> None:
    """Beside a strict endpoint the studio is on this machine alone, its users sign in, and their calls are logged."""
    iam, log = tmp_path / "iam.json", tmp_path / "access.log"
    made = subprocess.run(
        command("iam", "init", str(iam), "--json"), env=environment(), check=True, capture_output=True
    )
    key = json.loads(made.stdout)
    options = (
        *("--port", "0", "--host", "0.0.0.0", "--auth", "strict", "--iam", str(iam)),
        *("--studio", "--studio-port", "0", "--access-log", str(log)),
    )
    with start_command("serve", *options) as it:
        url = it.startup["studio"].rstrip("/")
        port = int(url.rpartition(":")[2])
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))  # nobody else listens there: it is on one address alone
        with Client(base_url=url) as browser:
            before = browser.get("/api/session")
            token = re.findall('tavola-token" content="([0-9a-f]+)"', browser.get("/").text)[0]
            body = {"key_id": key["access_key_id"], "secret": key["secret_access_key"]}
            signed_in = browser.post("/api/sign-in", json=body, headers={"X-Tavola-Token": token})
            session = browser.get("/api/session").json()
        ended = it.stop()

    assert before.status_code == 401
    assert signed_in.json()["name"] == "admin"
    assert session["directory"] is True
    assert ended[0] == 0
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [record["eventName"] for record in records] == ["ConsoleLogin", "ListTables"]
    assert {record["userIdentity"]["userName"] for record in records} == {"admin"}


def test_the_demo_has_it_below_its_path(tmp_path: Path) -> None:
    """`tavola demo` serves the studio with every application's design, and its start page links to it."""
    options = ("--port", "0", "--apps-port", "0", "--tickets", "20", "--reviews", "5")
    with start_command("demo", str(tmp_path / "demo.db"), *options) as it:
        url = it.startup["studio"]
        session = json.loads(send_request(f"{url}api/session")[1])
        page = send_request(url)[1]
        start = send_request(f"{it.startup['url']}/ui/")[1]
        foreign = send_request(f"{url}api/session", Sec_Fetch_Site="cross-site")[0]

    assert url == f"{it.startup['url']}/studio/"
    assert len(session["designs"]) == 15
    assert all(table["designed"] for table in session["tables"])
    assert session["watching"] is True
    assert '<base href="/studio/">' in page
    assert 'href="/studio/"' in start
    assert foreign == 403


def test_a_port_in_use_is_reported() -> None:
    """A port of another program is a conflict, said with the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, response = run_failing_command("studio", "--store", "memory:", "--port", port)
        code_beside, told_beside = run_failing_command(
            "serve", "--port", "0", "--studio", "--studio-port", port
        )

    assert (code, code_beside) == (Exit.CONFLICT, Exit.CONFLICT)
    assert "--port" in response
    assert "--studio-port" in told_beside


def test_it_needs_its_own_extra_alone() -> None:
    """The studio starts with Starlette and uvicorn alone; other extras are loaded on use."""
    others = {"fastapi", "jinja2", "numpy", "matplotlib", "botocore", "boto3", "hcl2", "yaml", "isal"}
    script = f"import sys, tavola.studio\nsys.exit(' '.join(sorted({others!r} & set(sys.modules))) or 0)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_a_wheel_carries_the_pages(tmp_path: Path) -> None:
    """A wheel has the built pages and none of their sources, and the studio serves from it where no checkout is."""
    if not Assets().built:
        pytest.skip("the pages are not built here: `make studio` builds them, where there is Node")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT], check=True)
    (file,) = (tmp_path / "dist").glob("*.whl")
    names = ZipFile(file).namelist()
    pages = [name for name in names if name.startswith("tavola/studio/static/")]

    assert "tavola/studio/static/index.html" in pages
    assert any(re.fullmatch(r"tavola/studio/static/assets/index-[\w-]+\.js", name) for name in pages)
    assert any(re.fullmatch(r"tavola/studio/static/assets/index-[\w-]+\.css", name) for name in pages)
    foreign = re.compile(r"node_modules|studio/web/|\.tsx?$|package|/\.(?!dist)")
    assert not [name for name in names if foreign.search(name)]

    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", site, file], check=True)
    served = subprocess.Popen(
        command("studio", "--store", "memory:", "--port", "0", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": os.fspath(site)},
    )
    try:
        assert served.stdout is not None
        url = json.loads(served.stdout.readline())["url"]
        page = send_request(url)[1]
        script = re.search(r'src="\./(assets/[^"]+\.js)"', page)
        assert script is not None, page
        assert send_request(url + script[1])[0] == 200
        assert json.loads(send_request(f"{url}api/session")[1])["tables"] == []
        assert "make studio" not in page
    finally:
        served.send_signal(signal.SIGINT)
        _, errors = served.communicate(timeout=WAIT_S)
    assert served.returncode == 0
    assert errors == ""
