"""Reading the past by a connection: embedded, and over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import tavola
from tavola.backends.recording import RecordingBackend
from tavola.client.backend import AsOfUnsupported
from tavola.client.connection import Connection, ConnectionClosed
from tavola.engine import Engine
from tavola.protocol.faults import InvalidRestoreTimeFault, ValidationFault
from tavola.server.listener import running

KEY = {"pk": {"S": "a"}}
DESCRIBED = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(params=["memory", "file", "http"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    """A connection to a table whose past is kept."""
    with ExitStack() as stack:
        match request.param:
            case "memory":
                target = "memory:"
            case "file":
                target = f"file:{tmp_path / 'store.db'}"
            case _:
                engine = stack.enter_context(closing(Engine.open()))
                target = stack.enter_context(running(engine)).url
        opened = stack.enter_context(
            tavola.connect(target, account="000000000000" if "http" in target else None)
        )
        opened.call("CreateTable", DESCRIBED)
        opened.call(
            "UpdateContinuousBackups",
            {
                "TableName": "things",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        yield opened


def put(connection: Connection, value: str) -> datetime:
    """Put the item and return the time after it."""
    connection.call("PutItem", {"TableName": "things", "Item": KEY | {"v": {"S": value}}})
    return datetime.now(UTC)


def got(connection: Connection) -> str | None:
    item = connection.call("GetItem", {"TableName": "things", "Key": KEY}).get("Item")
    return None if item is None else item["v"]["S"]


def test_a_connection_as_of_a_time(connection: Connection) -> None:
    """It reads what was, whichever way the time is written; the first connection reads what is."""
    then = put(connection, "first")
    put(connection, "second")

    for moment in (then, then.timestamp(), then.isoformat()):
        with connection.as_of(moment) as past:
            assert got(past) == "first"
    assert got(connection) == "second"


def test_the_past_is_only_read(connection: Connection) -> None:
    """A write as of a time is refused, and changes nothing."""
    then = put(connection, "first")
    past = connection.as_of(then)

    with pytest.raises(ValidationFault, match="as of a past time cannot write"):
        put(past, "second")

    assert got(connection) == "first"


def test_a_time_that_is_not_kept(connection: Connection) -> None:
    """The refusal tells from when to when there is something to read."""
    with pytest.raises(InvalidRestoreTimeFault, match="Table 'things' can be read as of times from"):
        got(connection.as_of("2020-01-01"))


def test_no_time_at_all(connection: Connection) -> None:
    """It is told in a sentence, as every other time that is none."""
    nothing: Any = None

    with pytest.raises(ValidationFault, match="None is not a time"):
        connection.as_of(nothing)


def test_the_history_of_an_item(connection: Connection) -> None:
    """Every version comes with its time, the earliest first; the last is what stands."""
    times = [put(connection, value) for value in ("first", "second")]
    connection.call("DeleteItem", {"TableName": "things", "Key": KEY})

    versions = list(connection.history("things", KEY))

    assert [None if version.item is None else version.item["v"]["S"] for version in versions] == [
        *(None, "first", "second", None),
    ]
    assert versions[0].since is None
    assert versions[1].since is not None
    assert versions[2].since is not None
    assert versions[1].since <= times[0] <= versions[2].since <= times[1]


def test_a_closed_connection_has_no_past() -> None:
    """It says so, as it does of any other call."""
    connection = tavola.connect("memory:")
    connection.close()

    with pytest.raises(ConnectionClosed):
        connection.as_of(0)
    with pytest.raises(ConnectionClosed):
        connection.history("things", KEY)


def test_aws_has_no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS is not asked what it cannot answer; the sentence names the way there is."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with tavola.connect("aws:eu-west-1") as connection:
        with pytest.raises(AsOfUnsupported, match="RestoreTableToPointInTime"):
            connection.as_of(0)
        with pytest.raises(AsOfUnsupported):
            list(connection.history("things", KEY))


def test_another_server_has_no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that would answer with what is there now is found out before it is asked."""
    from tavola.engine.operations import HANDLERS

    monkeypatch.delitem(HANDLERS, "ListItemVersions")
    with closing(Engine.open()) as engine, running(engine) as endpoint:
        with tavola.connect(endpoint.url, account="000000000000") as connection:
            with pytest.raises(AsOfUnsupported, match=r"127\.0\.0\.1"):
                connection.as_of(0)


def test_a_backend_without_a_past() -> None:
    """A backend of somebody's own need not have one; one that is recorded has the one behind it."""

    class Small:
        def call(self, operation: str, request: Any) -> dict[str, Any]:
            return {}

        def close(self) -> None:
            pass

    with pytest.raises(AsOfUnsupported):
        Connection(Small()).as_of(0)
    with pytest.raises(AsOfUnsupported):
        Connection(RecordingBackend(Small())).as_of(0)
    with tavola.connect("memory:") as inner:
        assert Connection(RecordingBackend(inner.backend)).as_of(0) is not None


@pytest.fixture
def post() -> Iterator[Callable[..., tuple[int, dict[str, Any]]]]:
    """Ask a server by hand."""
    with closing(Engine.open()) as engine, running(engine) as endpoint:
        place = urlsplit(endpoint.url)

        def send(operation: str, request: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
            sent = {
                "Content-Type": "application/x-amz-json-1.0",
                "X-Amz-Target": f"DynamoDB_20120810.{operation}",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            }
            with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)) as asked:
                asked.request("POST", "/", json.dumps(request), sent)
                answer = asked.getresponse()
                return answer.status, json.loads(answer.read())

        yield send


def test_the_header(post: Callable[..., tuple[int, dict[str, Any]]]) -> None:
    """Any client can send it; a time that is none is refused, and a request without it is not touched."""
    post("CreateTable", DESCRIBED)
    specification = {"PointInTimeRecoveryEnabled": True}
    post(
        "UpdateContinuousBackups", {"TableName": "things", "PointInTimeRecoverySpecification": specification}
    )
    post("PutItem", {"TableName": "things", "Item": KEY})
    then = datetime.now(UTC).isoformat()
    post("DeleteItem", {"TableName": "things", "Key": KEY})

    past = post("GetItem", {"TableName": "things", "Key": KEY}, x_tavola_as_of=then)
    present = post("GetItem", {"TableName": "things", "Key": KEY})
    wrong = post("GetItem", {"TableName": "things", "Key": KEY}, x_tavola_as_of="soon")

    assert past == (200, {"Item": KEY})
    assert present == (200, {})
    assert wrong[0] == 400
    assert "'soon' is not a time" in wrong[1]["message"]
