"""The route of the desk's numbers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tavola.apps.shell import JSON, invalid_parameter, not_modified, parameters
from tavola.apps.support_desk.rest.desk import DAYS, DAYS_MAX, DirectRoute, desk_of
from tavola.apps.support_desk.schemas import DashboardResponse

direct = APIRouter(tags=["dashboard"], route_class=DirectRoute)

_DAYS = {
    "name": "days",
    "in": "query",
    "description": f"Number of days including today; {DAYS} by default.",
    "schema": {"type": "integer", "minimum": 1, "maximum": DAYS_MAX, "default": DAYS},
}
_ETAG = {"ETag": {"description": "ETag of the statistics, for If-None-Match.", "schema": {"type": "string"}}}


@direct.get(
    "/dashboard",
    operation_id="get_dashboard",
    summary="Get the dashboard",
    description="Tickets by status and priority, resolution times and satisfaction, in total and by day. Updated from the table's stream and read with one query.",
    response_model=DashboardResponse,
    responses={
        200: {"headers": _ETAG},
        304: {"description": "Your copy is current", "headers": _ETAG},
    },
    openapi_extra=parameters("if-none-match", more=(_DAYS,)),
)
async def get_dashboard(request: Request) -> Response:
    """Return the numbers."""
    cached = await desk_of(request).dashboard.get(days_of(request))
    if "if-none-match" in request.headers and (same := not_modified(request, cached.etag)) is not None:
        return same
    return Response(cached.content, 200, {"ETag": cached.etag}, JSON)


def days_of(request: Request) -> int:
    """Return how many days the request asks for."""
    if not request.scope["query_string"]:
        return DAYS
    text = request.query_params.get("days")
    if text is None:
        return DAYS
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= DAYS_MAX):
        raise invalid_parameter("days", f"Use a whole number from 1 to {DAYS_MAX}.")
    return int(text)
