"""A key that changes."""

from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _tickets(*writes, sparse=False):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "DONE", nullable=sparse), moment("created_at"), text("subject"),
                pk="TICKET#{ticket_id}",
                keys=[key(_BY_STATUS, "STATUS#{status}", "{created_at}", sparse=sparse)],
                patterns=[query("ByStatus", _BY_STATUS, "status", "created_at")],
                writes=writes,
            ),
            indexes=[_BY_STATUS],
        )
    )  # fmt: skip


FOUND = _tickets(put(item_bytes=900), update("status", per_second=10, item_bytes=900))
PLACES = ["Ticket.ByStatus"]
CLEAN = _tickets(put(item_bytes=900), update("subject", per_second=10, item_bytes=900))
ALSO_CLEAN = {"items come and go": _tickets(update("status", item_bytes=900), sparse=True)}
