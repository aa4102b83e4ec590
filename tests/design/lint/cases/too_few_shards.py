"""States that are sharded, and not enough."""

from tavola.model.document import Shards
from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _tickets(
    rate,
    shards=4,
    *,
    asked=10,
    status=("NEW", "OPEN", "DONE", "FAILED", "GONE"),
    pk="STATUS#{status}",
    **more,
):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", *status), text("topic"), moment("at"), pk="T#{ticket_id}",
                keys=[key(_BY_STATUS, pk, "{at}", shards=shards)],
                patterns=[query("ByStatus", _BY_STATUS, "status", "at", per_second=asked, items=20, item_bytes=300)],
                writes=[put(per_second=rate, item_bytes=500), *more.get("writes", ())],
            ),
            indexes=[_BY_STATUS],
        )
    )  # fmt: skip


FOUND = _tickets(40_000)
PLACES = ["Ticket.ByStatus"]
CLEAN = _tickets(20_000)
ALSO = {
    "all in one": _tickets(5_000, pk="TICKETS"),
    "a change moves it, which is two writes": _tickets(
        4_000, pk="{status}", writes=[update("status", per_second=9_000, item_bytes=500)]
    ),
    "all begin as NEW": _tickets(5_000, 2, writes=[update("status", per_second=10, item_bytes=500)]),
    "reads ask every shard": _tickets(1, 5, pk="TICKETS", asked=10_000),
}
ALSO_CLEAN = {
    "who asks knows the shard": _tickets(1, Shards(5, of=("status",)), pk="TICKETS", asked=10_000),
    "all in one, within bounds": _tickets(4_000, pk="TICKETS"),
    "nobody says how many topics": _tickets(40_000, pk="TOPIC#{topic}"),
    "by time": _tickets(40_000, Shards.by_time("at", "hour"), pk="TICKETS"),
    "nobody says how often": _tickets(None, pk="TICKETS"),
}
