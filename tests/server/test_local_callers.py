"""Callers of this process: what a signed-in key may do in the engine, and what the access log says of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tavola.backends.embedded import AsyncEmbeddedBackend
from tavola.clock import ManualClock
from tavola.engine import Engine, StoreError
from tavola.iam import DirectoryFile
from tavola.protocol.arns import Scope
from tavola.protocol.faults import AccessDeniedFault, Fault, InternalServerFault, UnrecognizedClientFault
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.local_callers import LocalCaller, LocalCallers
from tests.server.directories import ACCOUNT, READER, WRITER, write_directory

ORDERS: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEM = {"TableName": "Orders", "Item": {"pk": {"S": "o#1"}}}
KEY = {"TableName": "Orders", "Key": {"pk": {"S": "o#1"}}}


@dataclass(frozen=True, slots=True)
class Desk:
    """An engine with people who sign in, and the log of their calls."""

    engine: Engine
    clock: ManualClock
    folder: Path
    log: AccessLog
    callers: StrictCallers
    local: LocalCallers

    def sign_in(self, key: tuple[str, ...]) -> LocalCaller:
        """Return the caller with a key."""
        return self.local.sign_in(key[0], key[1], None, "127.0.0.1", "a browser")

    def backend(self, key: tuple[str, ...]) -> AsyncEmbeddedBackend:
        """Return a backend that acts with the rights of a key."""
        return AsyncEmbeddedBackend(self.sign_in(key), owned=False)

    def records(self) -> list[dict[str, Any]]:
        """Close the log, and return its records without those of sign-ins."""
        self.log.close()
        lines = (self.folder / "access.log").read_text().splitlines()
        return [record for line in lines if (record := json.loads(line))["eventName"] != "ConsoleLogin"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A durable engine, so that writes wait for their commit."""
    clock = ManualClock(1_790_000_000.0)
    callers = StrictCallers(DirectoryFile(write_directory(tmp_path / "iam.json"), clock), clock)
    log = AccessLog(tmp_path / "access.log", clock=clock)
    with closing(Engine.open(tmp_path / "orders.db", clock=clock)) as engine:
        engine.call("CreateTable", ORDERS, Scope(ACCOUNT, "us-east-1"))
        local = LocalCallers(callers, engine, region="us-east-1", source="desk", log=log, clock=clock)
        yield Desk(engine, clock, tmp_path, log, callers, local)


def _call(backend: AsyncEmbeddedBackend, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(backend.call(operation, request))


def test_each_call_is_checked_and_logged(desk: Desk) -> None:
    """Allowed and denied calls are records of the caller, with the decision and the program that made them."""
    _call(desk.backend(WRITER), "PutItem", ITEM)
    assert _call(desk.backend(READER), "GetItem", KEY)["Item"] == ITEM["Item"]
    with pytest.raises(AccessDeniedFault, match="user/reader is not authorized to perform: dynamodb:PutItem"):
        _call(desk.backend(READER), "PutItem", ITEM)

    records = desk.records()
    assert [
        (record["userIdentity"]["userName"], record["eventName"], record.get("errorCode"))
        for record in records
    ] == [
        ("writer", "PutItem", None),
        ("reader", "GetItem", None),
        ("reader", "PutItem", "AccessDeniedException"),
    ]
    assert [record["additionalEventData"]["decision"] for record in records] == [
        "allowed",
        "allowed",
        "denied",
    ]
    assert {record["additionalEventData"]["source"] for record in records} == {"desk"}
    assert {record["userAgent"] for record in records} == {"a browser"}
    assert len({record["requestID"] for record in records}) == 3


def test_the_account_is_the_callers_own(desk: Desk) -> None:
    """A backend of another account does not reach its tables."""
    backend = AsyncEmbeddedBackend(desk.sign_in(WRITER), Scope("444455556666", "us-east-1"), owned=False)

    assert _call(backend, "ListTables", {})["TableNames"] == ["Orders"]


def test_several_calls_share_a_commit_and_each_is_logged(desk: Desk) -> None:
    """Writes of several people in one commit group are each a record of their own."""

    async def write() -> None:
        first, second = desk.backend(WRITER), desk.backend(WRITER)
        await asyncio.gather(
            *(
                backend.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": f"{name}{number}"}}})
                for name, backend in (("a", first), ("b", second))
                for number in range(20)
            )
        )

    asyncio.run(write())

    assert [record["eventName"] for record in desk.records()] == ["PutItem"] * 40


def test_a_write_whose_commit_fails_is_logged_as_failed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a write is written when its outcome is known."""

    def fail(participant: object = None) -> None:
        raise StoreError("the disk is full")

    backend = desk.backend(WRITER)
    monkeypatch.setattr(desk.engine, "commit", fail)
    with pytest.raises(InternalServerFault):
        _call(backend, "PutItem", ITEM)
    monkeypatch.undo()

    assert [record.get("errorCode") for record in desk.records()] == ["InternalServerError"]


def test_reads_of_the_past_are_checked_and_logged(desk: Desk) -> None:
    """A read as of a moment needs the same permission, and is a record."""
    setting = {
        "TableName": "Orders",
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }
    _call(desk.backend(WRITER), "UpdateContinuousBackups", setting)
    _call(desk.backend(WRITER), "PutItem", ITEM)
    desk.clock.advance(10)

    async def read(key: tuple[str, ...], operation: str, request: dict[str, Any]) -> dict[str, Any]:
        past = await desk.backend(key).as_of(int((desk.clock.now() - 5) * 1e6))
        return await past.call(operation, request)

    assert asyncio.run(read(READER, "GetItem", KEY))["Item"] == ITEM["Item"]
    with pytest.raises(AccessDeniedFault):
        asyncio.run(read(READER, "Scan", {"TableName": "Orders"}))
    assert [record["eventName"] for record in desk.records()][2:] == ["GetItem", "Scan"]


def test_denied_statements_of_a_batch_are_counted(desk: Desk) -> None:
    """A batch of statements of which some are denied is logged as denied, as over HTTP."""
    _call(desk.backend(WRITER), "PutItem", ITEM)
    request = {"Statements": [{"Statement": "SELECT * FROM Orders WHERE pk = 'o#1'"}]}
    response = _call(desk.backend(READER), "BatchExecuteStatement", request)

    assert response["Responses"][0]["Error"]["Code"] == "AccessDenied"
    details = desk.records()[-1]["additionalEventData"]
    assert (details["decision"], details["deniedStatements"]) == ("denied", 1)


def test_a_call_with_a_key_that_was_removed_is_refused(desk: Desk) -> None:
    """A caller does not outlive its key: the next call is refused, whoever holds the caller."""
    caller = desk.sign_in(WRITER)
    desk.clock.advance(2)
    write_directory(desk.folder / "iam.json", writer={})
    desk.callers.refresh()

    assert not caller.is_in_force()
    with pytest.raises(UnrecognizedClientFault):
        caller.execute("ListTables", b"{}")


def test_a_permission_of_another_service_is_decided_and_logged(desk: Desk) -> None:
    """`require` decides like a call: the denial names the action, and both outcomes are records."""
    with pytest.raises(AccessDeniedFault, match="cloudtrail:LookupEvents on resource: \\*"):
        desk.sign_in(WRITER).require("cloudtrail:LookupEvents")
    (record,) = desk.records()

    assert (record["eventName"], record["eventSource"]) == ("LookupEvents", "cloudtrail.amazonaws.com")
    assert record["errorCode"] == "AccessDeniedException"
    assert "cloudtrail:LookupEvents" in record["errorMessage"]


def test_an_unexpected_error_is_logged_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that fails for a reason of our own is a record with an internal error."""

    def fail(*_: Any, **__: Any) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(desk.engine, "execute", fail)
    with pytest.raises(ZeroDivisionError):
        desk.sign_in(WRITER).execute("ListTables", b"{}")
    monkeypatch.undo()

    assert [record["errorCode"] for record in desk.records()] == ["InternalServerError"]


def test_without_a_log_callers_are_checked_all_the_same(desk: Desk) -> None:
    """The log is an option; the guard is not."""
    local = LocalCallers(desk.callers, desk.engine, region="us-east-1", source="desk", clock=desk.clock)
    caller = local.sign_in(*READER, None, "127.0.0.1", "")

    with pytest.raises(AccessDeniedFault):
        caller.execute("PutItem", json.dumps(ITEM).encode())
    with pytest.raises(Fault):
        local.sign_in(READER[0], "wrong", None, "127.0.0.1", "")
    assert desk.records() == []
