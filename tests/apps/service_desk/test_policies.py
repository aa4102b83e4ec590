"""The application's identity needs each of four actions on one table and its index, and is allowed nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tavola import AccessDeniedFault, AsyncConnection, Credentials, Engine, connect, connect_async
from tavola.apps.service_desk import service
from tavola.apps.service_desk.model import ServiceTickets
from tavola.apps.service_desk.policies import least_privilege
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.apps.service_desk.web import create
from tavola.apps.shell import AppSettings, ensure_tables
from tavola.clock import SYSTEM_CLOCK
from tavola.iam import DirectoryFile
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.server.directories import ACCOUNT, WRITER, user, write_directory

DESK = ("AKIDDESK", "desk/secret")
POLICY = least_privilege("us-east-1", ACCOUNT)
NEEDED = ["PutItem", "GetItem", "UpdateItem", "Query"]


class StrictServer:
    """A strict server with the desk's table, whose identity file can be rewritten."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def run(self, policy: dict[str, Any], work: Any) -> Any:
        """Return the result of work that gets the desk's connection under a policy."""
        directory = write_directory(self._folder / "iam.json", desk=user(DESK, policy))
        safeguards = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK))
        with running(self._engine, safeguards=safeguards) as endpoint:
            with connect(endpoint.url, region="us-east-1", credentials=Credentials(*WRITER)) as db:
                db.create_tables(ServiceTickets)

            async def whole() -> Any:
                credentials = Credentials(*DESK)
                async with connect_async(endpoint.url, region="us-east-1", credentials=credentials) as db:
                    return await work(db)

            return asyncio.run(whole())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StrictServer]:
    with Engine.open() as engine:
        yield StrictServer(engine, tmp_path)


async def _four_operations(db: AsyncConnection) -> int:
    store = ServiceDeskStore(db, b"secret")
    await ensure_tables(db, ServiceTickets)  # it may not look, and goes on
    made = await service.report_issue(store, "poc-user-001", "No network", "key-1")
    again = await service.report_issue(store, "poc-user-001", "No network", "key-1")
    await service.ticket_status(store, made.ticket.ticket_id)
    await service.add_comment(store, made.ticket.ticket_id, "Still none")
    assert again.replayed
    return len((await service.recent_tickets(store, "poc-user-001")).tickets)


def _without(action: str) -> dict[str, Any]:
    policy = deepcopy(POLICY)
    for statement in policy["Statement"]:
        statement["Action"] = [name for name in statement["Action"] if name != f"dynamodb:{action}"]
    policy["Statement"] = [statement for statement in policy["Statement"] if statement["Action"]]
    return policy


def test_d03_the_policy_is_scoped_to_the_table_and_its_index() -> None:
    """Four named actions on the table, Query on the index, and no wildcard."""
    table, index = POLICY["Statement"]

    assert table["Action"] == [f"dynamodb:{action}" for action in NEEDED]
    assert table["Resource"] == f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/poc-itsm-tickets"
    assert (index["Action"], index["Resource"]) == (
        ["dynamodb:Query"],
        f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/poc-itsm-tickets/index/CallerIdIndex",
    )
    assert "*" not in str(POLICY)


def test_d03_the_desk_works_with_exactly_its_policy(
    server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    """An identity with only this policy can do all four operations; another identity creates the table."""
    assert server.run(POLICY, _four_operations) == 1
    assert "No permission to create or describe the table" in caplog.text


@pytest.mark.parametrize("action", NEEDED)
def test_d03_each_action_is_needed(server: StrictServer, action: str) -> None:
    """Without one of the actions, the engine denies the desk that action."""
    with pytest.raises(AccessDeniedFault, match=f"dynamodb:{action}"):
        server.run(_without(action), _four_operations)


def test_d03_the_index_is_a_separate_resource(server: StrictServer) -> None:
    """Query on the table alone does not allow the index."""
    policy = {**POLICY, "Statement": POLICY["Statement"][:1]}

    with pytest.raises(AccessDeniedFault, match="index/CallerIdIndex"):
        server.run(policy, _four_operations)


TABLE = {"TableName": "poc-itsm-tickets"}
KEY = {"ticket_id": {"S": "t-1"}}


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("Scan", TABLE),
        ("Scan", {**TABLE, "IndexName": "CallerIdIndex"}),
        ("DeleteItem", {**TABLE, "Key": KEY}),
        ("BatchGetItem", {"RequestItems": {"poc-itsm-tickets": {"Keys": [KEY]}}}),
        ("BatchWriteItem", {"RequestItems": {"poc-itsm-tickets": [{"DeleteRequest": {"Key": KEY}}]}}),
        ("TransactWriteItems", {"TransactItems": [{"Delete": {**TABLE, "Key": KEY}}]}),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "poc-itsm-tickets"'}),
        ("DescribeTable", TABLE),
        ("DeleteTable", TABLE),
        ("ListTables", {}),
        ("GetItem", {"TableName": "poc-itsm-tickets-2", "Key": KEY}),
        ("PutItem", {"TableName": "another", "Item": KEY}),
    ],
)
def test_d03_everything_else_is_denied(
    server: StrictServer, operation: str, request_: dict[str, Any]
) -> None:
    """Scans, deletes, batches, statements, table operations and other tables are denied."""

    async def call(db: AsyncConnection) -> Any:
        return await db.call(operation, request_)

    with pytest.raises(AccessDeniedFault):
        server.run(POLICY, call)


def test_the_application_beside_a_strict_server_is_one_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key in its environment the application acts under that key's policy, and each of its calls is logged as its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", DESK[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", DESK[1])
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    users = write_directory(tmp_path / "iam.json", desk=user(DESK, POLICY))
    with closing(Engine.open()) as engine, closing(AccessLog(tmp_path / "access.log")) as log:
        safeguards = Safeguards(callers=StrictCallers(DirectoryFile(users), SYSTEM_CLOCK), log=log)
        with running(engine, safeguards=safeguards) as endpoint:
            with connect(endpoint.url, region="us-east-1", credentials=Credentials(*WRITER)) as db:
                db.create_tables(ServiceTickets)
            settings = AppSettings(target=endpoint.url, region="us-east-1", state=tmp_path / "state")
            with TestClient(create(settings), base_url="http://localhost") as client:
                body = {"caller_id": "poc-user-001", "issue_description": "No network"}
                reported = client.post("/tickets", json=body)

    records = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    own = [record for record in records if record["userIdentity"].get("userName") == "desk"]
    assert reported.status_code == 201
    assert "PutItem" in {record["eventName"] for record in own}
    assert {record["userIdentity"]["userName"] for record in records} == {"desk", "writer"}
