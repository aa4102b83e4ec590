"""From a target to something that answers."""

from __future__ import annotations

import asyncio
import builtins
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tavola
from tavola.backends.embedded import EmbeddedBackend
from tavola.backends.errors import EndpointUnreachable, ExtraMissing
from tavola.backends.recording import RecordingBackend
from tavola.client.connection import ConnectionClosed
from tavola.clock import ManualClock
from tavola.connections import FORMS, Credentials, InvalidConnectionTarget, connect, connect_async
from tavola.engine import Engine, StoreError, StoreInUse
from tavola.protocol.faults import ResourceNotFoundFault
from tavola.server.listener import running
from tests.backends.endpoints import deserted

TABLE = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def arn(connection: tavola.Connection) -> str:
    """Make the table and return its ARN."""
    made: str = connection.call("CreateTable", TABLE)["TableDescription"]["TableArn"]
    return made


def test_memory() -> None:
    """Each connection to memory has an engine of its own, in the default account and region."""
    with connect("memory:") as one, connect("memory:") as other:
        assert arn(one) == "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
        assert other.call("ListTables") == {"TableNames": []}
        assert isinstance(one.backend, EmbeddedBackend)


def test_region_and_account() -> None:
    """They say whose tables are meant."""
    with connect("memory:", region="eu-west-1", account="123456789012") as connection:
        assert arn(connection) == "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is relative, absolute, under home or in a URL, and what was written is there the next time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with connect("file:shop.db") as connection:
        connection.call("CreateTable", TABLE)

    for target in (
        f"file:{tmp_path}/shop.db",
        "file:~/shop.db",
        "file:./shop.db",
        f"file://{tmp_path}/shop.db",
    ):
        with connect(target) as connection:
            assert connection.call("ListTables") == {"TableNames": ["Orders"]}, target
    assert [path.name for path in tmp_path.glob("*.db")] == ["shop.db"]


def test_a_file_opened_twice_is_refused(tmp_path: Path) -> None:
    """A file has one owner; the second, in this process or another, is told which file and what to do."""
    target = f"file:{tmp_path}/shop.db"
    script = (
        "import sys, tavola\n"
        "try:\n    tavola.connect(sys.argv[1])\n"
        "except tavola.StoreError as error:\n    sys.exit(f'refused: {error}')\n"
    )
    with connect(target):
        with pytest.raises(StoreInUse, match=r"shop\.db is already open"):
            connect(target)
        other = subprocess.run(
            [sys.executable, "-c", script, target],
            env={"PYTHONPATH": str(Path(tavola.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    assert "refused: " in other.stderr
    assert "shop.db is already open, here or in another process" in other.stderr
    connect(target).close()


def test_a_url() -> None:
    """A server's URL, with or without the slash that browsers add."""
    with Engine.open() as engine, running(engine) as endpoint:
        with connect(endpoint.url, region="eu-west-1", account="123456789012") as connection:
            assert arn(connection) == "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
        with connect(f"{endpoint.url}/", region="eu-west-1", account="123456789012") as connection:
            assert connection.call("ListTables") == {"TableNames": ["Orders"]}
            with pytest.raises(ResourceNotFoundFault):
                connection.call("DescribeTable", {"TableName": "Nothing"})


def test_credentials_are_who_asks() -> None:
    """Credentials that are given sign in place of those that are configured, and their repr tells no secret."""
    given = Credentials("210987654321", "a-secret", "a-token")

    async def asked(url: str) -> str:
        async with connect_async(url, region="eu-west-1", credentials=given) as connection:
            told: str = (await connection.call("DescribeTable", {"TableName": "Orders"}))["Table"]["TableArn"]
            return told

    with Engine.open() as engine, running(engine) as endpoint:
        with connect(endpoint.url, region="eu-west-1", credentials=given) as connection:
            assert arn(connection) == "arn:aws:dynamodb:eu-west-1:210987654321:table/Orders"
        assert asyncio.run(asked(endpoint.url)) == "arn:aws:dynamodb:eu-west-1:210987654321:table/Orders"
    assert repr(given) == "Credentials(access_key_id='210987654321')"


def test_nobody_at_the_url() -> None:
    """Connecting asks nothing; the first call says that nobody answers."""
    with deserted() as url, connect(url, account="123456789012") as connection:
        with pytest.raises(EndpointUnreachable, match="does not respond"):
            connection.call("ListTables")


@pytest.mark.parametrize(
    "target",
    ["", "memory", "memory:x", "sqlite:shop.db", "aws:Eu West", "http:x", ":"],
)
def test_an_unknown_target_is_told_the_forms(target: str) -> None:
    """What is not a valid target is answered with all that are."""
    with pytest.raises(InvalidConnectionTarget) as caught:
        connect(target)

    assert str(caught.value) == f"{target!r} is not a valid target; use {FORMS}"


@pytest.mark.parametrize(
    ("target", "meant"), [("shop.db", "file:shop.db"), ("localhost:8000", "http://localhost:8000")]
)
def test_a_target_without_its_prefix_is_recognized(target: str, meant: str) -> None:
    """A file name and a host with its port are answered with the target that was probably meant."""
    with pytest.raises(InvalidConnectionTarget) as caught:
        connect(target)

    assert str(caught.value).endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize("target", ["file:", "file://", "file://server/share/shop.db"])
def test_a_file_must_be_named(target: str) -> None:
    """A file target without a file of this machine is refused."""
    with pytest.raises(InvalidConnectionTarget, match=r'use "file:shop\.db"'):
        connect(target)


@pytest.mark.parametrize(
    "target",
    [
        "http://",
        "http://:8000",
        "http://h:0",
        "http://h:99999",
        "http://h/x",
        "http://h?x=1",
        "http://u@h",
        "http://[x",
    ],
)
def test_a_url_must_be_an_endpoint(target: str) -> None:
    """A URL is scheme, host and port alone."""
    with pytest.raises(InvalidConnectionTarget, match="is not an endpoint"):
        connect(target)


@pytest.mark.parametrize(
    ("target", "settings", "sentence"),
    [
        (
            "memory:",
            {"timeout_s": 5},
            "timeout_s does not apply to memory:; valid settings: region, account, buckets, cache_mb",
        ),
        ("file:x.db", {"profile": "p"}, "profile does not apply to file:x.db"),
        (
            "http://h:1",
            {"sync": "off"},
            "sync does not apply to http://h:1; valid settings: region, account, credentials",
        ),
        (
            "aws:",
            {"region": "eu-west-1"},
            'region does not apply to aws:; put it in the target: "aws:eu-west-1"',
        ),
        (
            "aws:eu-west-1",
            {"account": "123456789012"},
            "account does not apply to aws:eu-west-1; the credentials",
        ),
        (
            "memory:",
            {"colour": "red"},
            "colour is not a setting; valid settings: region, account, buckets, cache_mb",
        ),
        ("memory:", {"credentials": Credentials("k", "s")}, "credentials does not apply to memory:"),
        (
            "http://h:1",
            {"credentials": Credentials("k", "s"), "account": "123456789012"},
            "credentials and account both identify the caller of http://h:1",
        ),
        (
            "http://h:1",
            {"credentials": Credentials("k", "s"), "profile": "p"},
            "credentials and profile both identify the caller of http://h:1",
        ),
        ("memory:", {"region": "Mars"}, "'Mars' is not a region"),
        ("memory:", {"account": "12"}, "'12' is not an account; use twelve digits"),
    ],
)
def test_settings_that_do_not_apply_are_refused(target: str, settings: dict[str, Any], sentence: str) -> None:
    """A setting is never ignored: what does not apply is named, with what does."""
    with pytest.raises(InvalidConnectionTarget) as caught:
        connect(target, **settings)

    assert str(caught.value).startswith(sentence)


def test_settings_reach_the_engine(tmp_path: Path) -> None:
    """The clock is the engine's own, and a wrong value is the engine's to refuse."""
    with connect("memory:", clock=ManualClock(1_000_000_000.0)) as connection:
        made = connection.call("CreateTable", TABLE)["TableDescription"]
        assert made["CreationDateTime"] == 1_000_000_000.0

    with pytest.raises(StoreError, match="sync must be one of"):
        connect(f"file:{tmp_path}/shop.db", sync="sometimes")


def test_a_closed_connection_says_so() -> None:
    """After `close`, which may come twice, a call is refused by name."""
    connection = connect("memory:")
    assert repr(connection) == "<Connection to memory:>"
    connection.close()
    connection.close()

    assert repr(connection) == "<Connection to memory:, closed>"
    with pytest.raises(ConnectionClosed, match="The connection to memory: is closed; connect again"):
        connection.call("ListTables")


def test_any_backend_makes_a_connection() -> None:
    """The handle stands on the port alone."""
    recorded = RecordingBackend(EmbeddedBackend(Engine.open()))
    with tavola.Connection(recorded) as connection:
        connection.call("ListTables")

    assert [call.operation for call in recorded.calls] == ["ListTables"]


@pytest.mark.parametrize("used", ['connect("http://h:1")', "mock()"])
def test_without_botocore_the_extra_is_named(used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs botocore says how to get it; memory and files never miss it."""
    imported = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "botocore":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *rest, **named)

    for name in [name for name in sys.modules if name.startswith(("botocore", "tavola.backends."))]:
        if name in {"tavola.backends.aws", "tavola.backends.mocking"} or name.startswith("botocore"):
            monkeypatch.delitem(sys.modules, name)
    for name in ("aws", "mocking"):
        monkeypatch.delattr(f"tavola.backends.{name}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    uses: Mapping[str, Any] = {
        'connect("http://h:1")': lambda: connect("http://h:1"),
        "mock()": lambda: tavola.mock().__enter__(),
    }

    with pytest.raises(ExtraMissing) as caught:
        uses[used]()

    assert str(caught.value) == f"{used} needs botocore, which is not installed: pip install 'tavola[aws]'"
    connect("memory:").close()
