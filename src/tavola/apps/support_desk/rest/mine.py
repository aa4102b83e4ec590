"""Mine: a customer's own tickets, asked with the customer's own credentials.

Nothing here compares names. The question goes to the store signed by whoever asks, and the policies there say whose tickets a key may
read; a question about another customer is refused by the store.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Security
from fastapi.openapi.models import HTTPBase
from fastapi.responses import Response
from fastapi.security.base import SecurityBase

from tavola.apps.shell import Cursor, Limit, Paged, problems
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import Status
from tavola.apps.support_desk.resources import IDENTIFIER, SummaryTold
from tavola.apps.support_desk.rest.desk import desk_of
from tavola.apps.support_desk.rest.tickets import listed

router = APIRouter(tags=["customers"])


class AccessKey(SecurityBase):
    """Basic with an access key and its secret, as the document says it; who it is, the store finds out."""

    def __init__(self) -> None:
        self.model = HTTPBase(scheme="basic", description="A customer's access key, and its secret.")
        self.scheme_name = "AccessKey"

    async def __call__(self, request: Request) -> str | None:
        """Return the header as it came."""
        return request.headers.get("authorization")


_ACCESS_KEY = AccessKey()


@router.get(
    "/my/tickets",
    operation_id="list_my_tickets",
    summary="A customer's own tickets, newest first",
    description="Asked of the store with the caller's access key: its policies decide. Where the store verifies nobody, nobody is let in.",
    response_model=Paged[SummaryTold],
    responses=problems(401),
)
async def list_my_tickets(
    request: Request,
    authorization: Annotated[str | None, Security(_ACCESS_KEY)],
    customer: Annotated[str, Query(pattern=IDENTIFIER, max_length=128, description="Whose.")],
    status: Annotated[Status | None, Query(description="Only those of this status.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the tickets of a customer, as far as the caller may see them."""
    async with desk_of(request).callers.store(authorization) as store:
        found = await service.customer_tickets(
            store, customer, status=status, limit=limit, cursor=cursor or None
        )
    return listed(request, found)
