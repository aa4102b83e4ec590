"""An order that no key has."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import choice, design, entity, gsi, key, moment, table, text

_BY_CUSTOMER = gsi("by_customer", "GSI1PK", "GSI1SK")
_SHOP = table(
    entity(
        "Ticket", text("ticket_id"), text("customer"), choice("status", "NEW", "DONE"), moment("created_at"),
        pk="TICKET#{ticket_id}",
        keys=[key(_BY_CUSTOMER, "CUSTOMER#{customer}", "STATUS#{status}#{created_at}")],
    ),
    indexes=[_BY_CUSTOMER],
)  # fmt: skip
_ASKED = Route("query", "by_customer", (Given("GSI1PK"),))

FOUND = design(
    _SHOP,
    needs=[
        Need("newest first", "Ticket", "customer", "created_at", route=_ASKED),
        Need("oldest first", "Ticket", "customer", "created_at"),
    ],
)
PLACES = ["newest first", "oldest first"]
CLEAN = design(
    _SHOP,
    needs=[
        Need("of a status, newest first", "Ticket", ("customer", "status"), "created_at", route=_ASKED),
        Need("by status", "Ticket", "customer", ("status", "created_at")),
        Need("in any order", "Ticket", "customer", route=_ASKED),
    ],
)
