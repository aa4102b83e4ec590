"""The service desk as its document has it: one table, one index, comments in a list of the ticket."""

from __future__ import annotations

from tests.design.builders import (
    choice,
    design,
    entity,
    gsi,
    key,
    listed,
    moment,
    put,
    query,
    table,
    text,
    update,
)
from tests.design.seeds.defects import Defect

CALLER = gsi("CallerIdIndex", "caller_id", "created_at")
TICKET = entity(
    "Ticket",
    text("ticket_id"),
    text("caller_id"),
    text("issue_description"),
    choice("status", "open", "closed"),
    moment("created_at"),
    moment("updated_at"),
    listed("comments"),
    pk="ticket_id",
    sk=None,
    keys=[key(CALLER, "caller_id", "created_at")],
    patterns=[
        query(
            "ByCaller",
            CALLER,
            "caller_id",
            "created_at",
            per_second=1,
            items=10,
            item_bytes=800,
            descending=True,
        )
    ],
    writes=[
        put("create a ticket", per_second=1, item_bytes=400),
        update(
            "comments",
            "updated_at",
            title="add a comment",
            per_second=2,
            item_bytes=800,
            adds=("comments",),
            creates=True,
        ),
    ],
    items=10_000,
    primary={"per_second": 5, "items": 1, "item_bytes": 800},
)
DESIGN = design(
    table(
        TICKET,
        label="Tickets",
        name="poc-itsm-tickets",
        pk="ticket_id",
        sk=None,
        indexes=[CALLER],
        tag=None,
        foreign=True,
    )
)

DEFECTS = (
    Defect("unbounded-list", "Ticket.comments", 16),
    Defect("accidental-upsert", "Ticket: add a comment", 16),
)
