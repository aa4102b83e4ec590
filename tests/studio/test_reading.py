"""An endpoint that is not declared as a write gets a connection that only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.protocol.operations import OPERATIONS
from tavola.studio import Endpoint, RequestRefused, Studio, TablesLocation
from tavola.studio.monitoring.request_shapes import READS, is_read
from tavola.studio.studio import DESCRIBE_OPERATIONS, ReadOnlyBackend
from tests.studio.api_client import ApiClient

TABLE = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
SELECT = {"Statement": "SELECT * FROM Orders"}
DELETE = {"Statement": "DELETE FROM \"Orders\" WHERE pk = 'o#1'"}


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with one table and one item."""
    with closing(Engine.open()) as engine:
        engine.call("CreateTable", TABLE)
        engine.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "o#1"}}})
        yield engine


class Spy:
    """A backend that notes what reaches it."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        self.called.append(operation)
        return {}

    async def close(self) -> None:
        return None


def test_only_what_is_known_to_read_gets_through() -> None:
    """Of all operations of DynamoDB those pass whose name says that they tell or read; of statements, none without a text."""
    spy = Spy()
    backend = ReadOnlyBackend(spy)
    for name in (*OPERATIONS, "NobodyKnowsThis"):
        with suppress(RequestRefused):
            asyncio.run(backend.call(name, {}))

    assert set(spy.called) == (READS | DESCRIBE_OPERATIONS) & set(OPERATIONS)
    begin = ("Describe", "List", "Get", "Query", "Scan", "BatchGet", "TransactGet", "SearchVectors")
    assert [name for name in spy.called if not name.startswith(begin)] == []
    left = set(OPERATIONS) - set(spy.called)
    assert [name for name in left if name.startswith(begin)] == []


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of the planted endpoint."""


async def mislabelled(studio: Studio, asked: Asked) -> dict[str, Any]:
    return await studio.db.call("DeleteItem", {"TableName": "Orders", "Key": {"pk": {"S": "o#1"}}})


@pytest.mark.parametrize("read_only", [False, True])
def test_an_endpoint_that_is_not_declared_as_a_write_cannot_write(engine: Engine, read_only: bool) -> None:
    """An undeclared write is refused, whether or not the studio is read-only, and the item stays."""
    planted = Endpoint("POST", "/mislabelled", mislabelled)

    async def call() -> None:
        async with connect_async(engine) as db:
            where = TablesLocation("memory", "memory:", "us-east-1")
            await planted.call(Studio(db=db, where=where, read_only=read_only), Asked())

    with pytest.raises(RequestRefused, match="not declared as a write"):
        asyncio.run(call())

    assert engine.call("Scan", {"TableName": "Orders"})["Count"] == 1


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("ExecuteStatement", {**DELETE, "Statements": [SELECT]}),
        ("ExecuteStatement", {**DELETE, "TransactStatements": [SELECT]}),
        ("ExecuteTransaction", {"TransactStatements": [DELETE], "Statements": [SELECT]}),
        ("BatchExecuteStatement", {"Statements": [DELETE], "TransactStatements": [SELECT], **SELECT}),
        ("BatchExecuteStatement", {"Statements": [SELECT, DELETE]}),
        ("DeleteItem", {"TableName": "Orders", "Key": {"pk": {"S": "o#1"}}, "Statements": [SELECT]}),
    ],
)
def test_a_write_dressed_as_a_read_is_not_made_again(
    engine: Engine, operation: str, request_: dict[str, Any], read_only: bool
) -> None:
    """A SELECT in a member that the operation does not look at does not let the statement beside it through."""
    with pytest.raises(RequestRefused):
        ApiClient(engine, read_only=read_only).call(
            "POST /operations/replay", {"operation": operation, "request": request_}
        )

    assert engine.call("Scan", {"TableName": "Orders"})["Count"] == 1


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("ExecuteStatement", {"Statement": "  select pk from Orders"}),
        ("BatchExecuteStatement", {"Statements": [SELECT]}),
        ("ExecuteTransaction", {"TransactStatements": [{"Statement": "EXISTS(SELECT * FROM Orders)"}]}),
        ("Query", {}),
    ],
)
def test_reads_are_reads(operation: str, request_: dict[str, Any]) -> None:
    """What only reads is known as that."""
    assert is_read(operation, request_)


def test_what_is_read_is_read(engine: Engine) -> None:
    """Read-only answers as ever: the session, items, the past's window, a statement."""
    api = ApiClient(engine, read_only=True)
    engine.call(
        "UpdateContinuousBackups",
        {
            "TableName": "Orders",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        },
    )
    window = api.call("GET /past", {"table": "Orders"})
    rows = api.call("POST /browse/statement", {"table": "Orders", "statement": "SELECT * FROM Orders"})

    assert api.call("GET /session")["read_only"] is True
    assert window["readable"] is True
    assert len(rows["rows"]) == 1
