"""The table and its items are those of the design document, for any program that reads or writes them."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

import tavola
from tavola import Engine, SeededEntropy, connect, connect_async, design_of
from tavola.apps.service_desk import model, seed, service
from tavola.apps.service_desk.errors import ServiceTicketMissing
from tavola.apps.service_desk.model import ServiceTicket, ServiceTickets
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.server.listener import running
from tests.apps.service_desk.seed_code import COMMAND, Program, parse_command

ATTRIBUTES = {
    "ticket_id", "caller_id", "issue_description", "status", "created_at", "updated_at", "comments",
}  # fmt: skip
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
SECRET = b"secret of a test"


@contextmanager
def in_process(engine: Engine) -> Iterator[tuple[Any, Any]]:
    """Yield boto3's client and table on an engine in this process."""
    with tavola.mock(engine=engine, region="us-east-1"):
        yield boto3.client("dynamodb"), boto3.resource("dynamodb").Table("poc-itsm-tickets")


@contextmanager
def over_http(engine: Engine) -> Iterator[tuple[Any, Any]]:
    """Yield boto3's client and table on our endpoint."""
    with running(engine) as endpoint:
        description = {
            "endpoint_url": endpoint.url,
            "region_name": "us-east-1",
            "aws_access_key_id": "000000000000",
            "aws_secret_access_key": "x",
        }
        client, resource = boto3.client("dynamodb", **description), boto3.resource("dynamodb", **description)
        yield client, resource.Table("poc-itsm-tickets")
        client.close()
        resource.meta.client.close()


WAYS = pytest.mark.parametrize("way", [in_process, over_http])
Way = Callable[[Engine], Any]


async def _with_store(engine: Engine, work: Callable[[ServiceDeskStore], Any]) -> Any:
    async with connect_async(engine) as db:
        store = ServiceDeskStore(db, SECRET)
        await db.create_tables(ServiceTickets)
        return await work(store)


def _described(client: Any) -> dict[str, Any]:
    """Return DescribeTable and the tags, without what differs each time a table is created."""
    table = client.describe_table(TableName="poc-itsm-tickets")["Table"]
    tags = client.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    for passing in ("CreationDateTime", "TableId"):
        del table[passing]
    del table["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    table.setdefault("TableClassSummary", {"TableClass": "STANDARD"})  # only returned if it was set
    table["AttributeDefinitions"].sort(key=lambda found: found["AttributeName"])
    return {**table, "Tags": sorted(tags, key=lambda found: found["Key"])}


@WAYS
def test_d03_the_documents_command_creates_the_table(way: Way) -> None:
    """The document's AWS CLI command creates the model's table on our endpoint, and the desk runs on it."""
    with Engine.open() as by_command, way(by_command) as (client, _):
        client.create_table(**parse_command(COMMAND))
        made = _described(client)
        asyncio.run(
            _with_store(by_command, lambda store: service.report_issue(store, "poc-user-001", "No sound"))
        )
    with Engine.open() as by_model, way(by_model) as (client, _):
        with connect(by_model) as db:
            db.create_tables(ServiceTickets)
        declared = _described(client)

    assert made == declared
    assert made["KeySchema"] == [{"AttributeName": "ticket_id", "KeyType": "HASH"}]
    assert made["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    (index,) = made["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("CallerIdIndex", {"ProjectionType": "ALL"})
    assert [part["AttributeName"] for part in index["KeySchema"]] == ["caller_id", "created_at"]
    assert made["Tags"] == [
        {"Key": "Environment", "Value": "PoC"},
        {"Key": "Project", "Value": "AI-L1-Support"},
    ]
    assert made["TableArn"].startswith("arn:aws:dynamodb:us-east-1:")


@pytest.mark.skipif(shutil.which("aws") is None, reason="the AWS CLI is not installed")
def test_d03_the_aws_cli_runs_the_documents_command(tmp_path: Path) -> None:
    """The AWS CLI itself runs the document's command against our endpoint, and creates the model's table."""
    with Engine.open() as engine, running(engine) as endpoint:
        words = [*shlex.split(COMMAND.replace("\\\n", " ")), "--endpoint-url", endpoint.url]
        mine = {
            "AWS_ACCESS_KEY_ID": "000000000000",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_PAGER": "",
        }
        done = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, **mine}, timeout=50, check=False
        )

        assert done.returncode == 0, done.stderr
        with in_process(engine) as (client, _):
            made = _described(client)
    with Engine.open() as by_model, in_process(by_model) as (client, _):
        with connect(by_model) as db:
            db.create_tables(ServiceTickets)
        assert made == _described(client)


@WAYS
def test_d01_what_the_desk_writes_the_documents_program_reads(way: Way) -> None:
    """An item has exactly the document's attributes and formats, and nothing from the library."""
    with Engine.open() as engine, way(engine) as (client, table):

        async def work(store: ServiceDeskStore) -> str:
            made = await service.report_issue(store, "poc-user-001", "My laptop won't turn on")
            await service.add_comment(store, made.ticket.ticket_id, "Tried restarting")
            return made.ticket.ticket_id

        ticket_id = asyncio.run(_with_store(engine, work))
        program = Program(table)
        item = program.get(ticket_id)
        raw = client.get_item(TableName="poc-itsm-tickets", Key={"ticket_id": {"S": ticket_id}})["Item"]

        assert item is not None
        assert program.recent("poc-user-001") == [item]
    assert set(item) == ATTRIBUTES
    assert {name: set(value) for name, value in raw.items()} == {
        name: {"L"} if name == "comments" else {"S"} for name in ATTRIBUTES
    }
    (comment,) = item["comments"]
    assert set(comment) == {"comment_text", "added_at"}
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", ticket_id)
    for moment in (item["created_at"], item["updated_at"], comment["added_at"]):
        assert MOMENT.fullmatch(moment)
    assert (item["status"], item["updated_at"]) == ("open", comment["added_at"])


@WAYS
def test_d01_what_the_documents_program_writes_the_desk_reads(way: Way) -> None:
    """The desk reads tickets and comments written by boto3, including times without a fraction."""
    with Engine.open() as engine, way(engine) as (client, table):
        client.create_table(**parse_command(COMMAND))
        program = Program(table)
        item = program.create()
        program.comment(item["ticket_id"], "Tried restarting", "2026-02-09T12:30:00Z")
        later = program.create(ticket_id="t-2", created_at="2026-02-09T12:20:25.343884Z", status="resolved")
        bare = program.create(ticket_id="t-3", created_at="2026-02-09T12:20:25.343885Z")
        table.update_item(Key={"ticket_id": "t-3"}, UpdateExpression="REMOVE comments")

        async def work(store: ServiceDeskStore) -> Any:
            await service.add_comment(store, item["ticket_id"], "Second")
            return (
                await service.ticket_status(store, item["ticket_id"]),
                await service.ticket_status(store, bare["ticket_id"]),
                await service.recent_tickets(store, "poc-user-001"),
            )

        ticket, without, recent = asyncio.run(_with_store(engine, work))
        again = program.get(item["ticket_id"])

    assert [comment.comment_text for comment in ticket.comments] == ["Tried restarting", "Second"]
    assert ticket.comments[0].added_at == datetime(2026, 2, 9, 12, 30, tzinfo=UTC)
    assert without.comments == []
    assert [found.ticket_id for found in recent.tickets] == ["t-3", "t-2", item["ticket_id"]]
    assert recent.tickets[1].status == later["status"]
    assert again is not None
    assert again["comments"][0] == {"comment_text": "Tried restarting", "added_at": "2026-02-09T12:30:00Z"}


def test_wrong_16_a_ghost_of_another_program_is_not_a_ticket(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 16: an item left by an unconditional update is not a ticket and takes no comment."""
    with Engine.open() as engine, in_process(engine) as (client, table):
        client.create_table(**parse_command(COMMAND))
        Program(table).comment("ghost", "a private word", "2026-02-09T12:30:00Z")

        async def work(store: ServiceDeskStore) -> None:
            with pytest.raises(ServiceTicketMissing):
                await service.ticket_status(store, "ghost")
            with pytest.raises(ServiceTicketMissing):
                await service.add_comment(store, "ghost", "Boo")

        asyncio.run(_with_store(engine, work))
        ghost = Program(table).get("ghost")

    assert ghost is not None
    assert len(ghost["comments"]) == 1
    assert "is not a complete ticket" in caplog.text
    assert "private word" not in caplog.text


def test_every_access_pattern_declares_rate_and_size() -> None:
    """Every access pattern is one of the four operations and declares its rate and size."""
    explained = [pattern.__get_pattern__().access for pattern in (ServiceTicket.Key, ServiceTicket.ByCaller)]

    assert [found.name for found in design_of(model).tables] == ["poc-itsm-tickets"]
    for access in explained:
        assert access is not None
        assert access.per_second
        assert access.item_bytes


def test_the_seed_is_reproducible() -> None:
    """One seed gives one month: tickets of many callers, none in the future, no number in clear."""
    now = datetime(2026, 3, 1, 9, tzinfo=UTC)

    async def work(store: ServiceDeskStore) -> Any:
        counts: list[int] = []
        count = await seed.load(
            store, entropy=SeededEntropy(7), now=now, progress=lambda progress: counts.append(progress.done)
        )
        again = list(seed.month(store, entropy=SeededEntropy(7), now=now))
        found = [ticket async for ticket in await store.db.scan(ServiceTicket)]
        return count, counts[-1], again, found

    with Engine.open() as engine:
        count, counts, again, found = asyncio.run(_with_store(engine, work))

    assert count == counts == len(found) == seed.TICKETS
    assert sorted(again, key=lambda t: t.ticket_id) == sorted(found, key=lambda t: t.ticket_id)
    callers = {ticket.caller_id for ticket in found}
    assert 35 <= len(callers) <= 40
    assert not [caller for caller in callers if "555" in caller and not caller.startswith("tel:")]
    assert all(ticket.created_at <= ticket.updated_at <= now for ticket in found)
    assert max(sum(t.caller_id == caller for t in found) for caller in callers) > 10, (
        "somebody has a second page"
    )
