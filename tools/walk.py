"""Trace six requests through the code and count the files a reader has to open to follow them.

    python -m tools.walk              a table of all walks
    python -m tools.walk put-item     one walk, with its files in the order in which they are entered

Each walk runs twice: once to fill caches and finish lazy imports, and once traced. Only functions of `tavola` count, not
module bodies and not libraries. *Files* is how many different modules run; *calls* is how many of their functions are
entered; *switches* is how many of these calls go from one file to another, so it measures jumping back and forth.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import tavola

PACKAGE = str(Path(tavola.__file__).parent) + os.sep

TICKETS = """
from datetime import datetime
from typing import Literal

from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, sort

Status = Literal["open", "pending", "closed"]


class Desk(Table):
    by_status = Gsi(pk="gsi1pk", sk="gsi1sk")


class Ticket(Entity, table=Desk):
    ticket_id: Attr[str]
    subject: Attr[str]
    status: Attr[Status] = attr(default="open")
    created_at: Attr[datetime]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="METADATA"):
        ticket_id: str

    class ByStatus(Query["Ticket"], on=Desk.by_status, pk="STATUS#{status}", sk="{created_at}", shards=8):
        status: Status
        created_at: Sort[datetime] = sort()
"""


@dataclass(slots=True)
class Trace:
    """What one traced walk ran."""

    files: dict[str, int] = field(default_factory=dict)  # module path to number of calls, in order of entry
    calls: int = 0
    switches: int = 0

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Count calls made while the block runs, in this thread and in those that `TRACER` was installed in."""
        TRACER.trace = self
        try:
            yield
        finally:
            TRACER.trace = None


class Tracer:
    """A profile function for every thread; it counts only while a trace is recording."""

    def __init__(self) -> None:
        self.trace: Trace | None = None

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        trace = self.trace
        if trace is None or event != "call":
            return
        path = frame.f_code.co_filename
        if not path.startswith(PACKAGE) or frame.f_code.co_name == "<module>":
            return
        trace.calls += 1
        trace.files[path] = trace.files.get(path, 0) + 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != path:
            trace.switches += 1


TRACER = Tracer()


def trace_twice(run: Callable[[], object]) -> Trace:
    """Run a function twice and return the trace of the second run."""
    run()
    trace = Trace()
    with trace.recording():
        run()
    return trace


def walk_http(operation: str, requests: Callable[[int], dict[str, Any]]) -> Trace:
    """Trace one request to a server on a loopback port."""
    from tavola import Engine
    from tavola.server.listener import running

    keys = [{"AttributeName": "id", "KeyType": "HASH"}]
    types = [{"AttributeName": "id", "AttributeType": "S"}]
    with Engine.open() as engine, running(engine) as address:
        engine.call(
            "CreateTable",
            {
                "TableName": "Walk",
                "KeySchema": keys,
                "AttributeDefinitions": types,
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        connection = http.client.HTTPConnection("127.0.0.1", int(address.url.rpartition(":")[2]))
        numbers = iter(range(10))

        def send() -> None:
            headers = {
                "X-Amz-Target": f"DynamoDB_20120810.{operation}",
                "Content-Type": "application/x-amz-json-1.0",
                "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                "SignedHeaders=host, Signature=0",
            }
            connection.request("POST", "/", json.dumps(requests(next(numbers))), headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer

        trace = trace_twice(send)
        connection.close()
    return trace


def walk_put_item() -> Trace:
    """PutItem over HTTP: from the socket to the store and back."""
    return walk_http("PutItem", lambda n: {"TableName": "Walk", "Item": {"id": {"S": f"a{n}"}}})


def walk_transaction() -> Trace:
    """TransactWriteItems over HTTP, two puts."""
    return walk_http(
        "TransactWriteItems",
        lambda n: {
            "TransactItems": [
                {"Put": {"TableName": "Walk", "Item": {"id": {"S": f"{name}{n}"}}}} for name in ("b", "c")
            ]
        },
    )


def walk_update() -> Trace:
    """`db.update` of the README's ticket, on the embedded engine: its status changes, and its index keys with it."""
    from datetime import UTC, datetime

    from tavola import connect

    module = ModuleType("walk_tickets")
    sys.modules[module.__name__] = module  # annotations are resolved in the module that declares them
    exec(TICKETS, module.__dict__)
    ticket: Any = module.Ticket
    with connect("memory:") as db:
        db.create_tables(module.Desk)
        db.create(ticket(ticket_id="t1", subject="No VPN", created_at=datetime(2026, 3, 2, tzinfo=UTC)))
        statuses = iter(("pending", "closed"))
        return trace_twice(lambda: db.update(ticket.Key(ticket_id="t1"), ticket.status.set(next(statuses))))


def walk_lint() -> Trace:
    """`tavola lint` of the README's example."""
    from tavola.cli.main import app

    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "walk_lint.py"
        module.write_text(TICKETS, encoding="utf-8")

        def lint() -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    app(["lint", str(module)], standalone_mode=False)
                except SystemExit:
                    pass

        return trace_twice(lint)


def walk_studio() -> Trace:
    """The studio's first page of items, as its data page requests it."""
    from tavola import Engine
    from tests.studio.api_client import ApiClient

    with Engine.open() as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Walk",
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        engine.call("PutItem", {"TableName": "Walk", "Item": {"id": {"S": "a"}, "note": {"S": "hello"}}})
        studio = ApiClient(engine)
        return trace_twice(lambda: studio.call("POST /browse/page", {"question": {"table": "Walk"}}))


def walk_metric() -> Trace:
    """A change of a support ticket, from its stream record to the counted metric."""
    from tavola import connect_async
    from tavola.apps.support_desk import service
    from tavola.apps.support_desk.domain import NewTicket
    from tavola.apps.support_desk.model import Tickets
    from tavola.apps.support_desk.store import SupportDeskStore
    from tavola.patterns import FolderBlobs

    async def steps() -> Trace:
        trace = Trace()
        async with connect_async("memory:") as db:
            store = SupportDeskStore(db, FolderBlobs(folder))
            await store.create_tables()
            for recording in (contextlib.nullcontext(), trace.recording()):
                ticket = NewTicket("cust-001", "The printer is out of order")
                await service.open_ticket(store, ticket)
                changes = await db.subscribe(
                    Tickets, from_="start", follow=False, checkpoint=folder / "position"
                )
                with recording:
                    await store.projector.follow(changes)
        return trace

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return asyncio.run(steps())


WALKS: dict[str, Callable[[], Trace]] = {
    "put-item": walk_put_item,
    "transact-write-items": walk_transaction,
    "db-update": walk_update,
    "lint": walk_lint,
    "studio-items": walk_studio,
    "stream-to-metric": walk_metric,
}


def write(line: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table of walks, or the files of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("walk", nargs="?", choices=WALKS)
    chosen = parser.parse_args().walk
    threading.setprofile(TRACER)
    sys.setprofile(TRACER)
    write("| walk | files | calls | switches |\n|---|---|---|---|")
    for name in [chosen] if chosen else WALKS:
        trace = WALKS[name]()
        write(f"| {name} | {len(trace.files)} | {trace.calls:,} | {trace.switches:,} |")
        if chosen:
            for path, calls in trace.files.items():
                write(f"{calls:6}  {path.removeprefix(PACKAGE)}")


if __name__ == "__main__":
    main()
