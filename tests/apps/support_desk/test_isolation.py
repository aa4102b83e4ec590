"""Tenants are kept apart by policies: the engine denies, the application does not look."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tavola import AccessDeniedFault, AsyncConnection, Credentials, Engine, Fault, connect_async
from tavola.apps.shell import AppSettings, ensure_tables
from tavola.apps.support_desk import policies, service
from tavola.apps.support_desk.blob_sweeper import sweep_blobs
from tavola.apps.support_desk.domain import NewFeedback, NewTicket, TicketStatus, UserRole
from tavola.apps.support_desk.metrics import create_projector
from tavola.apps.support_desk.model import TABLES, Ticket, Tickets
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.apps.support_desk.web import create
from tavola.clock import SYSTEM_CLOCK
from tavola.iam import DirectoryFile
from tavola.patterns import FolderBlobs
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.apps.conftest import Run
from tests.apps.support_desk.desks import SECRET, DeskClient, Served
from tests.server.directories import ACCOUNT, allowing, user

TABLE = Tickets.settings.name
OTHER = {"S": "CUSTOMER#cust-002"}
_TABLE = f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/{TABLE}"
_STREAM = f"{_TABLE}/stream/2026-11-16T00:00:00.000"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A server that lets policies decide, and what it keeps."""

    url: str
    folder: Path
    own: str  # a ticket of cust-001
    other: str  # a ticket of cust-002

    def connect(self, name: str) -> AsyncConnection:
        """Return a connection of a user."""
        credentials = Credentials(f"AKID{name.upper()}", f"{name}/secret")
        return connect_async(self.url, region="eu-west-1", credentials=credentials)

    def store(self, name: str) -> SupportDeskStore:
        """Return the desk as a user has it."""
        return SupportDeskStore(self.connect(name), FolderBlobs(self.folder / "blobs"))


@contextmanager
def serve_guarded(folder: Path, run: Run[Any], customer: dict[str, Any]) -> Iterator[Guarded]:
    """Serve a desk with a ticket of each of two customers, whose policy is given."""
    documents = {
        "root": allowing("*"),
        "cust-001": customer,
        "cust-002": customer,
        "agent-1": policies.agent(account=ACCOUNT),
        "desk": policies.service(account=ACCOUNT),
        "numbers": policies.projector(account=ACCOUNT),
    }
    users = {
        name: user((f"AKID{name.upper()}", f"{name}/secret"), document)
        for name, document in documents.items()
    }
    directory = folder / "iam.json"
    directory.write_text(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: {"users": users}}}))
    callers = StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK)
    with Engine.open() as engine, running(engine, safeguards=Safeguards(callers=callers)) as endpoint:
        guarded = Guarded(endpoint.url, folder, "", "")

        async def fill() -> Guarded:
            store = guarded.store("root")
            async with store.db:
                await store.create_tables()
                own, other = [
                    (await service.open_ticket(store, NewTicket(customer_id, "No paper"))).value.ticket_id
                    for customer_id in ("cust-001", "cust-002")
                ]
            return Guarded(endpoint.url, folder, own, other)

        yield run(fill())


@pytest.fixture
def guarded(tmp_path: Path, run: Run[Any]) -> Iterator[Guarded]:
    """A desk under the application's own policies."""
    with serve_guarded(tmp_path, run, policies.customer(account=ACCOUNT)) as found:
        yield found


def _key(ticket_id: str) -> dict[str, Any]:
    return {"PK": {"S": f"TICKET#{ticket_id}"}, "SK": {"S": "METADATA"}}


def _paths(ticket_id: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every way to get at a ticket of the other customer, by name."""
    key = _key(ticket_id)
    by_customer = {
        "TableName": TABLE,
        "KeyConditionExpression": "GSI1PK = :c",
        "ExpressionAttributeValues": {":c": OTHER},
    }
    by_status = {
        "TableName": TABLE,
        "IndexName": "GSI2-status-index",
        "KeyConditionExpression": "GSI2PK = :s",
        "ExpressionAttributeValues": {":s": {"S": "STATUS#NEW#0"}},
    }
    select = f"SELECT * FROM \"{TABLE}\" WHERE PK = 'TICKET#{ticket_id}'"
    by_index = f'SELECT * FROM "{TABLE}"."GSI1-customer-index" WHERE GSI1PK = \'CUSTOMER#cust-002\''
    return {
        "query": ("Query", {**by_customer, "IndexName": "GSI1-customer-index"}),
        "query of one status": ("Query", {**by_customer, "IndexName": "GSI4-customer-status-index"}),
        "query of another index": ("Query", by_status),
        "query of the table": (
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "PK = :p",
                "ExpressionAttributeValues": {":p": key["PK"]},
            },
        ),
        "get": ("GetItem", {"TableName": TABLE, "Key": key}),
        "batch get": ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key]}}}),
        "transact get": ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": TABLE, "Key": key}}]}),
        "transact write": (
            "TransactWriteItems",
            {"TransactItems": [{"Delete": {"TableName": TABLE, "Key": key}}]},
        ),
        "condition check": (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {
                        "ConditionCheck": {
                            "TableName": TABLE,
                            "Key": key,
                            "ConditionExpression": "attribute_exists(PK)",
                        }
                    }
                ]
            },
        ),
        "put": ("PutItem", {"TableName": TABLE, "Item": {**key, "GSI1PK": OTHER}}),
        "update": ("UpdateItem", {"TableName": TABLE, "Key": key}),
        "delete": ("DeleteItem", {"TableName": TABLE, "Key": key}),
        "batch write": ("BatchWriteItem", {"RequestItems": {TABLE: [{"DeleteRequest": {"Key": key}}]}}),
        "scan": ("Scan", {"TableName": TABLE}),
        "scan of the index": ("Scan", {"TableName": TABLE, "IndexName": "GSI1-customer-index"}),
        "statement": ("ExecuteStatement", {"Statement": select}),
        "statement on the index": ("ExecuteStatement", {"Statement": by_index}),
        "statement without a key": ("ExecuteStatement", {"Statement": f'SELECT * FROM "{TABLE}"'}),
        "transaction of statements": (
            "ExecuteTransaction",
            {"TransactStatements": [{"Statement": select + " AND SK = 'METADATA'"}]},
        ),
        "search": (
            "SearchVectors",
            {
                "TableName": TABLE,
                "IndexName": "similar-tickets",
                "SearchVector": [{"N": "1"}] * 64,
                "TopK": 3,
            },
        ),
        "description": ("DescribeTable", {"TableName": TABLE}),
        "query of old": (
            "Query",
            {
                "TableName": TABLE,
                "IndexName": "GSI1-customer-index",
                "KeyConditions": {"GSI1PK": {"ComparisonOperator": "EQ", "AttributeValueList": [OTHER]}},
            },
        ),
        "count": ("Query", {**by_customer, "IndexName": "GSI1-customer-index", "Select": "COUNT"}),
        "streams": ("ListStreams", {}),
        "stream": ("DescribeStream", {"StreamArn": _STREAM}),
        "place in a stream": (
            "GetShardIterator",
            {"StreamArn": _STREAM, "ShardId": "shardId-" + "0" * 20, "ShardIteratorType": "TRIM_HORIZON"},
        ),
        "backup": ("CreateBackup", {"TableName": TABLE, "BackupName": "mine"}),
        "export": ("ExportTableToPointInTime", {"TableArn": _TABLE, "S3Bucket": "mine-mine"}),
        "restore": (
            "RestoreTableToPointInTime",
            {"SourceTableName": TABLE, "TargetTableName": "mine", "UseLatestRestorableTime": True},
        ),
    }


def _denied(run: Run[Any], db: AsyncConnection, operation: str, request: dict[str, Any]) -> bool:
    """Tell whether an operation is denied; whatever else comes of it is not a denial."""
    try:
        run(db.call(operation, request))
    except AccessDeniedFault:
        return True
    except Fault:
        return False
    return False


def test_s10_a_customer_reads_their_own_tickets_alone(guarded: Guarded, run: Run[Any]) -> None:
    """With a customer's credentials the application's own code gives that customer's tickets; others' are denied."""
    store = guarded.store("cust-001")

    own = run(service.list_customer_tickets(store, "cust-001"))
    new = run(service.list_customer_tickets(store, "cust-001", status=TicketStatus.NEW))

    assert [each.ticket_id for each in own] == [each.ticket_id for each in new] == [guarded.own]
    with pytest.raises(AccessDeniedFault):
        run(service.list_customer_tickets(store, "cust-002"))
    with pytest.raises(AccessDeniedFault):
        run(service.list_customer_tickets(store, "cust-002", status=TicketStatus.NEW))
    denied: list[Callable[[], Any]] = [
        lambda: service.get_ticket(store, guarded.other),
        lambda: service.get_tickets(store, [guarded.other]),
        lambda: service.get_full_ticket(store, guarded.other),
        lambda: service.list_recent_tickets(store),
        lambda: service.list_tickets_by_status(store, TicketStatus.NEW),
        lambda: service.list_escalations(store),
        lambda: service.read_dashboard(store),
        lambda: service.change_ticket(store, guarded.other, TicketStatus.PROCESSING),
        lambda: service.open_ticket(store, NewTicket("cust-002", "forged")),
        lambda: service.start_session(store, "cust-002", UserRole.CUSTOMER),
    ]
    for attempt in denied:
        with pytest.raises(AccessDeniedFault):
            run(attempt())
    run(
        ensure_tables(store.db, *TABLES)
    )  # which may neither be made nor looked at, and are taken to be there
    run(store.db.close())


@pytest.mark.parametrize("path", sorted(_paths("x")))
def test_s10_no_path_leads_to_another_customers_ticket(guarded: Guarded, run: Run[Any], path: str) -> None:
    """Each operation that could touch another's ticket is denied by the engine."""
    db = guarded.connect("cust-001")

    operation, request = _paths(guarded.other)[path]

    assert _denied(run, db, operation, request)
    run(db.close())


def test_s10_a_batch_of_statements_tells_each_denial(guarded: Guarded, run: Run[Any]) -> None:
    """Of a batch of statements each is denied by itself, and nothing is told of the ticket."""
    db = guarded.connect("cust-001")
    select = f"SELECT * FROM \"{TABLE}\" WHERE PK = 'TICKET#{guarded.other}' AND SK = 'METADATA'"

    answer = run(db.call("BatchExecuteStatement", {"Statements": [{"Statement": select}]}))

    assert answer["Responses"][0]["Error"]["Code"] == "AccessDenied"
    assert "Item" not in answer["Responses"][0]
    run(db.close())


def test_s10_without_its_condition_the_policy_would_not_hold(tmp_path: Path, run: Run[Any]) -> None:
    """A planted fault: the same policy without LeadingKeys lets the other customer's tickets through."""
    careless = copy.deepcopy(policies.customer(account=ACCOUNT))
    del careless["Statement"][0]["Condition"]
    with serve_guarded(tmp_path, run, careless) as found:
        db = found.connect("cust-001")

        assert not _denied(run, db, *_paths(found.other)["query"])
        run(db.close())


def test_s10_a_forged_place_in_a_list_leads_to_nobody_else(guarded: Guarded, run: Run[Any]) -> None:
    """A start key of another customer's list, under one's own question, gives nothing of the other's."""
    db = guarded.connect("cust-001")
    forged = {
        "TableName": TABLE,
        "IndexName": "GSI1-customer-index",
        "KeyConditionExpression": "GSI1PK = :c",
        "ExpressionAttributeValues": {":c": {"S": "CUSTOMER#cust-001"}},
        "ExclusiveStartKey": {**_key(guarded.other), "GSI1PK": OTHER, "GSI1SK": {"S": "2026"}},
    }

    try:
        items = run(db.call("Query", forged))["Items"]
    except Fault:
        items = []

    assert not [item for item in items if item["customer_id"] != {"S": "cust-001"}]
    run(db.close())


def test_s10_the_application_runs_under_its_own_policies(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run[Any]
) -> None:
    """`founder` makes the tables, `service` and `projector` are all that the process wants then; without tables it says what is missing."""
    documents = {
        "founder": [policies.founder(account=ACCOUNT)],
        "process": [policies.service(account=ACCOUNT), policies.projector(account=ACCOUNT)],
    }
    users = {
        name: user((f"AKID{name.upper()}", f"{name}/secret"), *details) for name, details in documents.items()
    }
    directory = tmp_path / "iam.json"
    directory.write_text(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: {"users": users}}}))
    callers = StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK)

    def settings(url: str, name: str) -> AppSettings:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"AKID{name.upper()}")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{name}/secret")
        return AppSettings(target=url, region="eu-west-1", secret=SECRET, poll_s=0.02)

    with Engine.open() as engine, running(engine, safeguards=Safeguards(callers=callers)) as endpoint:
        with pytest.raises(AccessDeniedFault) as missing:
            served(create(settings(endpoint.url, "process")))
        assert "prod-tickets-unified is missing" in missing.value.__notes__[0]

        async def found() -> None:
            founded = Guarded(endpoint.url, tmp_path, "", "").store("founder")
            async with founded.db:
                await founded.create_tables()
                with pytest.raises(AccessDeniedFault):
                    await service.open_ticket(founded, NewTicket("cust-001", "x"))

        run(found())
        desk = DeskClient(served(create(settings(endpoint.url, "process"))))
        ticket_id = desk.open(embedding=[1.0] + [0.0] * 63)
        desk.change(ticket_id, status="PROCESSING")
        desk.http.post(f"/tickets/{ticket_id}/feedback", json={"operator_id": "op-1", "rating": 4})
        desk.http.put(f"/tickets/{ticket_id}/attachments/a", content=b"x")
        assert desk.http.delete(f"/tickets/{ticket_id}/attachments/a").status_code == 204
        desk.page(f"/ui/tickets/{ticket_id}")
        begun = desk.http.post("/sessions", json={"user_id": "op-1", "role": "agent"}).headers["location"]
        assert desk.http.delete(begun).status_code == 204
        application: Any = desk.http.app
        assert desk.http.portal is not None
        desk.http.portal.call(application.state.desk.follower.catch_up)
        desk.http.portal.call(sweep_blobs, application.state.desk.store)
        assert desk.get("/readyz")["followers"] == {"support-desk": "following"}
        assert desk.get("/dashboard")["by_status"]["PROCESSING"] == 1
        assert desk.http.post("/tickets/similar", json={"text": "x"}).status_code == 200
        desk.http.__exit__()  # before the server that it asks


def test_s10_agent_service_and_projector_have_what_they_need_and_no_more(
    guarded: Guarded, run: Run[Any]
) -> None:
    """Each role's work goes through with its own policy; what is not its work is denied."""

    async def steps() -> None:
        agent, desk = guarded.store("agent-1"), guarded.store("desk")
        numbers = create_projector(guarded.connect("numbers"))
        async with agent.db, desk.db, numbers.db:
            await service.change_ticket(agent, guarded.own, TicketStatus.PROCESSING, actor="agent-1")
            await service.give_feedback(agent, guarded.own, NewFeedback("op-01", 4), idempotency_key="f-1")
            await service.escalate(agent, guarded.own, engineer="eng-01", reason="?")
            assert [each.ticket_id for each in await service.list_escalations(agent)] == [guarded.own]
            assert len(await service.list_recent_tickets(agent)) == 2
            with pytest.raises(AccessDeniedFault):
                await agent.db.delete(Ticket.Key(ticket_id=guarded.own))
            with pytest.raises(AccessDeniedFault):
                await service.start_session(agent, "somebody", UserRole.AGENT)

            await service.open_ticket(desk, NewTicket("cust-003", "No ink"), idempotency_key="r-1")
            login = await service.start_session(desk, "agent-1", UserRole.AGENT)
            assert await service.use_session(desk, login.session_id) is not None
            assert await service.end_session(desk, login.session_id)
            await service.attach(desk, guarded.own, name="a.txt", content_type="text/plain", data=b"a")
            await service.detach(desk, guarded.own, "a.txt")
            with pytest.raises(AccessDeniedFault):
                await desk.db.call("Scan", {"TableName": TABLE})
            with pytest.raises(AccessDeniedFault):
                await desk.db.call("DeleteTable", {"TableName": TABLE})

            await numbers.rebuild()
            await numbers.follow(await numbers.db.subscribe(Tickets, from_="start", follow=False))
            assert (
                (await service.read_dashboard(agent)).tickets
                == (await service.read_dashboard(desk)).tickets
                == 3
            )
            with pytest.raises(AccessDeniedFault):
                await service.open_ticket(
                    SupportDeskStore(numbers.db, FolderBlobs(guarded.folder)), NewTicket("c", "x")
                )

    run(steps())
