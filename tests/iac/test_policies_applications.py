"""The applications themselves, not only their declared patterns, work under the policies that their designs give."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tavola import AsyncConnection, Credentials, Engine, connect_async
from tavola.apps.support_desk import model, service
from tavola.apps.support_desk.domain import NewFeedback, NewTicket, TicketStatus, UserRole
from tavola.apps.support_desk.metrics import create_projector
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.clock import SYSTEM_CLOCK
from tavola.iac import derive_policies, render_policy
from tavola.iam import DirectoryFile
from tavola.model.document import design_of
from tavola.patterns import FolderBlobs
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.server.directories import ACCOUNT, allowing, user

ROLES = {"desk": "service", "numbers": "consumer-numbers"}


def test_the_support_desk_works_under_its_generated_policies(tmp_path: Path) -> None:
    """Tickets, feedback, lists, sessions and the numbers from the stream: all is done by two roles that may do nothing else."""
    documents = {
        policy.role: render_policy(policy, account=ACCOUNT)
        for policy in derive_policies(design_of(model), tls=False)
    }
    users = {"root": user(("AKIDROOT", "root"), allowing("*"))}
    users |= {name: user((f"AKID{name}", name), documents[role]) for name, role in ROLES.items()}
    directory = tmp_path / "iam.json"
    directory.write_text(json.dumps({"tavola_iam": 1, "accounts": {ACCOUNT: {"users": users}}}))
    guarded = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK))
    with Engine.open() as engine, running(engine, safeguards=guarded) as endpoint:

        def store(key: str, secret: str) -> SupportDeskStore:
            return SupportDeskStore(db(key, secret), FolderBlobs(tmp_path / "blobs"))

        def db(key: str, secret: str) -> AsyncConnection:
            return connect_async(endpoint.url, region="us-east-1", credentials=Credentials(key, secret))

        async def work() -> int:
            root, desk = store("AKIDROOT", "root"), store("AKIDdesk", "desk")
            async with root.db, desk.db, db("AKIDnumbers", "numbers") as numbers:
                await root.create_tables()
                opened = await service.open_ticket(
                    desk, NewTicket("cust-001", "No paper"), idempotency_key="once"
                )
                again = await service.open_ticket(
                    desk, NewTicket("cust-001", "No paper"), idempotency_key="once"
                )
                assert again.replayed
                ticket_id = opened.value.ticket_id
                await service.give_feedback(desk, ticket_id, NewFeedback("op-1", 5), idempotency_key="twice")
                await service.change_ticket(desk, ticket_id, TicketStatus.PROCESSING)
                assert (await service.list_customer_tickets(desk, "cust-001")).items
                assert (await service.list_tickets_by_status(desk, TicketStatus.PROCESSING)).items
                assert (await service.get_full_ticket(desk, ticket_id)) is not None
                await service.list_recent_tickets(desk)
                await service.list_escalations(desk)
                await service.start_session(desk, "agent-1", UserRole.AGENT)
                await service.read_dashboard(desk)
                async with await numbers.subscribe(model.Tickets, from_="start", follow=False) as changes:
                    return await create_projector(numbers).follow(changes)

        assert asyncio.run(work()) > 0
