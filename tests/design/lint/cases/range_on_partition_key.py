"""A stretch of a partition key."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, moment, table, text

_ESCALATED = gsi("escalated", ["escalated_at"], ["ticket_id"])
_BY_DAY = gsi("by_day", "GSI1PK", "GSI1SK")
_SHOP = table(
    entity(
        "Ticket", text("ticket_id"), moment("created_at"), moment("escalated_at", nullable=True),
        pk="TICKET#{ticket_id}",
        keys=[key(_ESCALATED, sparse=True), key(_BY_DAY, "DAY#{created_at:day}", "{created_at}")],
    ),
    indexes=[_ESCALATED, _BY_DAY],
)  # fmt: skip
_SINCE = Given("escalated_at", ">=")

FOUND = design(
    _SHOP,
    needs=[
        Need(
            "escalated since", "Ticket", _SINCE, "escalated_at", route=Route("query", "escalated", (_SINCE,))
        ),
        Need("escalated", "Ticket", _SINCE, "escalated_at"),
    ],
)
PLACES = ["escalated", "escalated since"]
CLEAN = design(
    _SHOP,
    needs=[
        Need(
            "escalated at",
            "Ticket",
            "escalated_at",
            route=Route("query", "escalated", (Given("escalated_at"),)),
        ),
        Need("of some days", "Ticket", Given("created_at", "between"), "created_at"),
    ],
)
