"""Few values and much traffic."""

from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _tickets(*writes, shards=None, field=None, per_second=None):
    field = field or choice("status", "NEW", "OPEN", "DONE", "FAILED")
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), field, moment("created_at"), pk="TICKET#{ticket_id}",
                keys=[key(_BY_STATUS, "STATUS#{status}", "{created_at}", shards=shards)],
                patterns=[query("ByStatus", _BY_STATUS, "status", "created_at", per_second=per_second, items=100, item_bytes=400)],
                writes=writes,
            ),
            indexes=[_BY_STATUS],
        )
    )  # fmt: skip


_BUSY = put(per_second=500, peak_per_second=6_000, item_bytes=400)

FOUND = _tickets(_BUSY)
PLACES = ["Ticket.ByStatus"]
CLEAN = _tickets(put(per_second=500, peak_per_second=2_000, item_bytes=400))
ALSO = {
    "all begin as NEW": _tickets(
        put(per_second=1_200, item_bytes=400), update("status", per_second=1, item_bytes=400)
    ),
    "reads": _tickets(put(per_second=1, item_bytes=400), per_second=4_000),
    "no rates": _tickets(),
    "a stretch of time beside it spreads nothing": design(
        table(
            entity(
                "Reading", choice("kind", "cold", "warm"), moment("at"), pk="KIND#{kind}#{at:day}", sk="{at}",
                writes=[put(per_second=3_000, item_bytes=100)],
            )
        )
    ),
}  # fmt: skip
ALSO_CLEAN = {
    "shards": _tickets(_BUSY, shards=10),
    "nobody knows how many": _tickets(_BUSY, field=text("status")),
    "many": _tickets(_BUSY, field=text("status", distinct=5_000)),
}
