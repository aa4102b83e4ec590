"""Dashboards: the desk's numbers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tavola.apps.shell import not_modified, parameters
from tavola.apps.support_desk.resources import DashboardTold
from tavola.apps.support_desk.rest.boards import DAYS, DAYS_MAX
from tavola.apps.support_desk.rest.desk import JSON, Direct, desk_of, invalid

direct = APIRouter(tags=["dashboard"], route_class=Direct)

_DAYS = {
    "name": "days",
    "in": "query",
    "description": f"How many days back, today included; {DAYS} unless said.",
    "schema": {"type": "integer", "minimum": 1, "maximum": DAYS_MAX, "default": DAYS},
}
_ETAG = {"ETag": {"description": "Of the numbers, for If-None-Match.", "schema": {"type": "string"}}}


@direct.get(
    "/dashboard",
    operation_id="get_dashboard",
    summary="The desk's numbers",
    description="Tickets by status and priority, times to resolution, satisfaction; in all and by day. Kept by the stream, read by one query.",
    response_model=DashboardTold,
    responses={
        200: {"headers": _ETAG},
        304: {"description": "They are still what you have", "headers": _ETAG},
    },
    openapi_extra=parameters("if-none-match", more=(_DAYS,)),
)
async def get_dashboard(request: Request) -> Response:
    """Return the numbers, made once for all who ask at a time."""
    shown = await desk_of(request).board.show(days_of(request))
    if "if-none-match" in request.headers and (same := not_modified(request, shown.etag)) is not None:
        return same
    return Response(shown.content, 200, {"ETag": shown.etag}, JSON)


def days_of(request: Request) -> int:
    """Return how many days are asked for."""
    if not request.scope["query_string"]:
        return DAYS
    told = request.query_params.get("days")
    if told is None:
        return DAYS
    if not (told.isascii() and told.isdigit() and len(told) <= 4 and 1 <= int(told) <= DAYS_MAX):
        raise invalid("days", f"Give a whole number from 1 to {DAYS_MAX}.")
    return int(told)
