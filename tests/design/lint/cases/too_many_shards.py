"""Sixty-four shards for twenty writes."""

from tavola.model.document import Shards
from tests.design.builders import design, entity, gsi, key, moment, put, query, table, text

_RECENT = gsi("recent", "GSI1PK", "GSI1SK")


def _tickets(shards, *, writes=20, reads=100):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), moment("at"), pk="T#{ticket_id}",
                keys=[key(_RECENT, "TICKETS", "{at}", shards=shards)],
                patterns=[query("Recent", _RECENT, (), "at", per_second=reads, items=20, item_bytes=300)],
                writes=[put(per_second=writes, item_bytes=500)],
            ),
            indexes=[_RECENT],
        )
    )  # fmt: skip


FOUND = _tickets(64)
PLACES = ["Ticket.Recent"]
CLEAN = _tickets(4)
ALSO = {"read with more than it is written with": _tickets(Shards(1, reading=8))}
ALSO_CLEAN = {
    "as many as are needed": _tickets(64, writes=30_000),
    "seldom asked": _tickets(64, reads=0.1),
    "nobody says how often it is written": _tickets(64, writes=None),
    "nobody says how often it is asked": _tickets(64, reads=None),
}
