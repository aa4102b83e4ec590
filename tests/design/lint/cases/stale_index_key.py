"""A key of the old value."""

from tests.design.builders import choice, design, entity, gsi, key, moment, table, text, update

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _tickets(write, foreign=True):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "DONE"), moment("created_at"), pk="TICKET#{ticket_id}",
                keys=[key(_BY_STATUS, "STATUS#{status}", "{created_at}")], writes=[write],
            ),
            indexes=[_BY_STATUS],
            foreign=foreign,
        )
    )  # fmt: skip


FOUND = _tickets(update("status"))
PLACES = ["Ticket: change it"]
CLEAN = _tickets(update("status", rewrites=("GSI1PK",)))
ALSO_CLEAN = {"Tavola keeps it": _tickets(update("status"), foreign=False)}
