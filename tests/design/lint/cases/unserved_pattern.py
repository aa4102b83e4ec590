"""A question that gives no key."""

from tavola.model.document import Given, Need
from tests.design.builders import choice, design, entity, gsi, key, moment, query, table, text, view

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")
_SHOP = table(
    entity(
        "Ticket", text("ticket_id"), text("product"), choice("status", "NEW", "DONE"), moment("created_at"),
        pk="TICKET#{ticket_id}",
        keys=[key(_BY_STATUS, "STATUS#{status}", "{created_at}")],
        patterns=[query("ByStatus", _BY_STATUS, "status", "created_at")],
    ),
    indexes=[_BY_STATUS],
)  # fmt: skip

FOUND = design(_SHOP, needs=[Need("tickets of a product", "Ticket", "product", "created_at")])
PLACES = ["tickets of a product"]
CLEAN = design(
    _SHOP,
    needs=[
        Need("tickets of a status", "Ticket", ("status", Given("created_at", "between")), "created_at"),
        Need("a ticket", "Ticket", "ticket_id", single=True),
        Need("done ones", "Ticket", Given("status", "=", {"S": "DONE"}), "created_at"),
    ],
)
ALSO = {
    "everything": design(_SHOP, needs=[Need("all tickets", "Ticket", (), "created_at")]),
    "of what has no keys yet": design(
        views=[view("Order", text("order_id"))], needs=[Need("an order", "Order", "order_id", single=True)]
    ),
}
ALSO_CLEAN = {"a join is another rule's": design(_SHOP, needs=[Need("what is nowhere", "Nobody", "x")])}
