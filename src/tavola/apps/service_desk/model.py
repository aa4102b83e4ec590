"""The table of the service desk: key `ticket_id` alone, one index by caller, and items without attributes of Tavola."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from tavola import AccessPattern, Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, WritePattern, attr, sort
from tavola.apps.service_desk.domain import OPEN, RECENT_MAX


class ServiceTickets(
    Table,
    name="poc-itsm-tickets",
    pk="ticket_id",
    sk=None,
    tag=None,  # other programs write items without a tag
    tags={"Environment": "PoC", "Project": "AI-L1-Support"},
):
    """Tickets, each with its comments."""

    by_caller = Gsi(pk="caller_id", sk="created_at", name="CallerIdIndex")


class Comment(BaseModel):
    """A comment on a ticket."""

    model_config = ConfigDict(frozen=True)

    comment_text: str
    added_at: datetime


class ServiceTicket(
    Entity,
    table=ServiceTickets,
    writes=(
        WritePattern("create a ticket", "put", per_second=5, item_bytes=1_000),
        WritePattern(
            "add a comment", "update", changes=("comments", "updated_at"), per_second=10, item_bytes=1_500
        ),
    ),
):
    """An issue that a caller reported."""

    ticket_id: Attr[str]
    caller_id: Attr[str] = attr(repr=False)
    issue_description: Attr[str] = attr(repr=False)
    status: Attr[str] = attr(default=OPEN)
    created_at: Attr[datetime]
    updated_at: Attr[datetime]
    # tavola: ignore[unbounded-list] the original design stores comments in the ticket; a full ticket is reported to the user
    comments: Attr[list[Comment]] = attr(default_factory=list, repr=False)

    class Key(
        PrimaryKey["ServiceTicket"],
        access=AccessPattern("a ticket by its ID", per_second=25, items=1, item_bytes=1_500, consistent=True),
    ):
        """The ticket's id, a UUID as text."""

        ticket_id: str

    class ByCaller(
        Query["ServiceTicket"],
        on=ServiceTickets.by_caller,
        access=AccessPattern("a caller's recent tickets", per_second=5, items=RECENT_MAX, item_bytes=1_500),
    ):
        """A caller's tickets by time."""

        caller_id: str
        created_at: Sort[datetime] = sort()
