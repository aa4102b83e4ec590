"""`tavola api`, `tavola studio` and what they are made of: the command line asks what the pages ask."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore
import pytest
from click.testing import CliRunner, Result

from tavola.cli.applications import APPLICATIONS, designs_of, is_live
from tavola.cli.commands import studio as studio_command
from tavola.cli.designs import DesignLoadError
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.cli.studio_options import (
    StudioOptions,
    access_log_reader,
    allowed_host_names,
    load_declared_designs,
    merge_designs,
    open_studio_target,
)
from tavola.engine import Engine
from tavola.server.access_log import AccessLog
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tavola.studio import ENDPOINTS, LogQuery

SHOP = "tavola.apps.gallery.customer_orders"
ORDERS = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
FAR = "http://127.0.0.1:9"  # a port where nobody listens

runner = CliRunner()


def run(*arguments: str, given: str | None = None) -> Result:
    logger = logging.getLogger("tavola")
    before = logger.handlers[:], logger.propagate
    try:
        return runner.invoke(
            app, list(arguments), input=given, env={"TAVOLA_ENDPOINT": None, "TAVOLA_IAM": None}
        )
    finally:
        logger.handlers[:], logger.propagate = before


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one table and one item."""
    engine = Engine.open(tmp_path / "shop.db")
    engine.call("CreateTable", ORDERS)
    engine.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "o#1"}, "n": {"N": "1" * 38}}})
    engine.close()
    return str(tmp_path / "shop.db")


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """A server with one table, and an access log."""
    engine = Engine.open()
    engine.call("CreateTable", ORDERS)
    log = AccessLog(tmp_path / "access.log")
    with running(engine, safeguards=Safeguards(log=log)) as served:
        yield served.url
    log.close()
    engine.close()


# The questions.


def test_the_questions_are_listed() -> None:
    """Without a question every one is listed, with what it says, what it takes, and whether it changes anything."""
    response = run("api").stdout
    listed = json.loads(run("api", "--json").stdout)

    assert [line for line in response.splitlines() if not line.startswith(" ")] == [
        each.name + ("  (write)" if each.is_write else "") for each in ENDPOINTS
    ]
    assert listed["schema"] == "tavola.api/1"
    assert [f"{each['method']} {each['path']}" for each in listed["endpoints"]] == [
        each.name for each in ENDPOINTS
    ]
    assert all(each["summary"] for each in listed["endpoints"])


def test_a_question_is_answered_from_a_store(store: str) -> None:
    """The answer is the page's own, as one line of JSON."""
    response = json.loads(run("api", "get", "/session", "--store", store, "--design", SHOP).stdout)

    assert [table["name"] for table in response["tables"] if table["status"] == "ACTIVE"] == ["Orders"]
    assert response["designs"] == [SHOP]
    assert response["where"]["kind"] == "file"


def test_in_memory_a_design_has_its_tables() -> None:
    """A design can be tried without anything else: its tables are made in memory, and are empty."""
    response = json.loads(run("api", "GET", "/session", "--store", "memory:", "--design", SHOP).stdout)

    assert [(table["name"], table["status"]) for table in response["tables"]] == [("gallery-shop", "ACTIVE")]
    assert response["where"]["kind"] == "memory"


def test_a_question_is_answered_by_an_endpoint(endpoint: str) -> None:
    """An HTTP endpoint is called in the same way, and its calls are recorded like an engine's."""
    response = json.loads(run("api", "GET", "/session", "--endpoint", endpoint).stdout)

    assert [table["name"] for table in response["tables"]] == ["Orders"]
    assert response["where"]["kind"] == "http"
    assert response["watching"] is False


def test_a_question_is_read_from_standard_input(store: str) -> None:
    """A long question comes through a pipe; a number of 38 digits comes back whole."""
    request = json.dumps({"table": "Orders", "key": {"pk": {"S": "o#1"}}})
    answer = run("api", "POST", "/items/get", "-", "--store", store, given=request)

    assert answer.exit_code == Exit.OK, answer.output
    assert "1" * 38 in answer.stdout


def test_read_only_holds_here_too(store: str) -> None:
    """What changes something is refused where nothing may be changed, as it is over HTTP."""
    request = json.dumps({"table": "Orders", "item": {"pk": {"S": "o#2"}}})
    refused = run("api", "POST", "/items/put", request, "--store", store, "--read-only")
    done = run("api", "POST", "/items/put", request, "--store", store)

    assert refused.exit_code == Exit.FAILED
    assert "read-only" in refused.stderr
    assert done.exit_code == Exit.OK, done.output


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["GET", "/nothing", "--store", "memory:"], Exit.USAGE, "has no endpoint"),
        (["GET"], Exit.USAGE, "The path of the endpoint is missing"),
        (["POST", "/items/get", "{", "--store", "memory:"], Exit.USAGE, "Invalid request"),
        (["POST", "/items/get", "{}", "--store", "memory:"], Exit.USAGE, "table"),
        (["GET", "/session", "--store", "nowhere.db"], Exit.NOT_FOUND, "does not exist"),
        (["GET", "/session", "--store", "memory:", "--endpoint", FAR], Exit.USAGE, "cannot be combined"),
        (["GET", "/session", "--store", "memory:", "--design", "no.such.module"], Exit.USAGE, "no module"),
        (["GET", "/session", "--store", "memory:", "--iam", "nowhere.json"], Exit.NOT_FOUND, "nowhere.json"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], code: Exit, word: str) -> None:
    """An invalid command prints three lines and an exit code, never a traceback."""
    result = run("api", *arguments)

    assert result.exit_code == code, result.output
    assert result.stderr.startswith("Error: ")
    assert any(each in result.stderr for each in word.split("|"))
    assert result.stdout == ""


def test_a_lost_endpoint_is_part_of_the_answer() -> None:
    """The session reports that the endpoint does not respond, and the command also prints a warning."""
    answer = run("api", "GET", "/session", "--endpoint", FAR)
    response = json.loads(answer.stdout)

    assert response["problem"]["code"] == "endpoint-lost"
    assert "does not respond" in answer.stderr


@pytest.mark.parametrize("command", [["api", "GET", "/session"], ["studio", "--port", "0"]])
def test_a_missing_default_endpoint_has_a_remedy(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a store, and with no server at the default endpoint, the error says how to start one."""
    monkeypatch.setattr("tavola.cli.studio_options.DEFAULT_ENDPOINT", FAR)
    result = run(*command)

    assert result.exit_code == Exit.UNREACHABLE
    for remedy in ("tavola serve", "--endpoint", "--store", "tavola demo"):
        assert remedy in result.stderr


# What a studio is made of.


def test_designs_are_shown_together() -> None:
    """Several designs are one to the studio; all of the applications go together."""
    names = designs_of(APPLICATIONS)
    design = merge_designs(load_declared_designs(names))

    assert design is not None
    tables = [table.name for table in design.tables]
    assert len(tables) == len(set(tables))
    assert {"prod-tickets-unified", "poc-itsm-tickets", "gallery-shop"} <= set(tables)
    assert len(names) == 15
    assert merge_designs(()) is None


def test_a_table_in_two_designs_is_refused() -> None:
    """Two designs of one table would contradict each other, so both are named and nothing is shown."""
    with pytest.raises(DesignLoadError, match=f"gallery-shop of {SHOP}:Shop is also in {SHOP}"):
        merge_designs(load_declared_designs((SHOP, f"{SHOP}:Shop")))


class FakeAws:
    """AWS as `connect` returns it: one table, with the account in its ARN."""

    backend = SimpleNamespace(region="eu-central-1")

    def __enter__(self) -> FakeAws:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation == "ListTables":
            return {"TableNames": ["Orders"]}
        return {"Table": {"TableArn": "arn:aws:dynamodb:eu-central-1:123456789012:table/Orders"}}


@pytest.mark.parametrize(
    "endpoint",
    [
        "aws:eu-central-1",
        "https://dynamodb.eu-central-1.amazonaws.com",
        "https://DynamoDB.eu-central-1.AmazonAWS.com.:443/",
        "https://x.api.aws",
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_aws_is_read_only_without_live(
    endpoint: str, live: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real endpoint is changed only with --live; its account and region are shown in any case."""
    monkeypatch.setattr("tavola.connections.connect", lambda *_, **__: FakeAws())
    with open_studio_target(StudioOptions(endpoint=endpoint, live=live), ()) as saved:
        response = capsys.readouterr().err

    assert saved.read_only is not live
    assert (saved.where.kind, saved.where.account, saved.where.region) == (
        "aws",
        "123456789012",
        "eu-central-1",
    )
    assert "account 123456789012 in eu-central-1" in response
    assert ("--live" in response) is not live


def test_aws_is_known_in_every_partition() -> None:
    """Whatever the names of AWS's endpoints end in, they are AWS's; a name that only looks alike is not."""
    folder = Path(botocore.__file__).parent / "data"
    partitions = json.loads((folder / "partitions.json").read_text("utf-8"))["partitions"]
    ends = {each["outputs"][name] for each in partitions for name in ("dnsSuffix", "dualStackDnsSuffix")}

    assert len(ends) > 4
    assert [end for end in ends if not is_live(f"https://dynamodb.some-region-1.{end}")] == []
    assert not is_live("http://127.0.0.1:8000")
    assert not is_live("https://amazonaws.com.example.org")


def test_this_machines_own_names_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The studio accepts the address it listens on, this machine's name and the allowed hosts."""
    monkeypatch.setattr("socket.gethostname", lambda: "desk.example.net")

    assert allowed_host_names("0.0.0.0", ("tables.example.com",)) == (
        "tables.example.com",
        "0.0.0.0",
        "desk.example.net",
        "desk.local",
    )


def test_read_only_wins_over_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both options the studio is read-only."""
    monkeypatch.setattr("tavola.connections.connect", lambda *_, **__: FakeAws())
    with open_studio_target(
        StudioOptions(endpoint="aws:eu-central-1", live=True, read_only=True), ()
    ) as saved:
        assert saved.read_only


@pytest.mark.slow
def test_an_access_log_is_read_from_its_end(tmp_path: Path) -> None:
    """The studio's reader returns the newest matching records first, up to the limit."""
    log = AccessLog(tmp_path / "access.log")
    with Engine.open() as engine, running(engine, safeguards=Safeguards(log=log)) as server:
        results = [run("api", "GET", "/session", "--endpoint", server.url) for _ in range(3)]
    log.close()  # the server writes its log in batches, after it has responded
    read = access_log_reader(tmp_path / "access.log")

    records = list(read(LogQuery(operation="ListTables", limit=2)))

    assert [result.exit_code for result in results] == [0, 0, 0]
    assert [record["eventName"] for record in records] == ["ListTables"] * 2
    assert records[0]["eventTime"] >= records[1]["eventTime"]
    assert not list(read(LogQuery(operation="DeleteTable")))


# `tavola studio` itself.


@pytest.mark.parametrize("path", ["studio", "/a b", "/<x>", "//evil", "/a/../b?", "/é"])
def test_a_base_path_is_plain(path: str) -> None:
    """A base path that no proxy would have is refused before anything is opened."""
    result = run("studio", "--store", "memory:", "--base-path", path)

    assert result.exit_code == Exit.USAGE
    assert "--base-path" in result.stderr


@pytest.mark.parametrize(
    ("given", "path"), [("", ""), ("/", ""), ("/studio", "/studio"), ("/a/b.c/", "/a/b.c")]
)
def test_a_slash_at_its_end_is_no_part_of_a_base_path(given: str, path: str) -> None:
    """Both spellings mean one path."""
    assert studio_command.parse_base_path(given) == path


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the web stack the extra that brings it is named."""

    def missing(*_: Any) -> Any:
        raise ModuleNotFoundError("No module named 'starlette'", name="starlette.routing")

    monkeypatch.setattr(studio_command, "open_studio_target", missing)
    result = run("studio", "--store", "memory:")

    assert result.exit_code == Exit.FAILED
    assert "pip install 'tavola[studio]'" in result.stderr
