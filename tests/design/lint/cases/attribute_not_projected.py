"""Fields that an index does not hold."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, design, entity, gsi, key, lsi, query, table, text, view

_LINE = view("Line", text("ticket_id"), text("subject"))


def _tickets(index, *needs, **more):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), text("customer"), text("subject"), text("body"), pk="TICKET#{ticket_id}",
                keys=[key(index, "TICKET#{ticket_id}" if index.local else "CUSTOMER#{customer}", "{ticket_id}")],
                patterns=[query("ByCustomer", index, "customer", "ticket_id", **more)],
            ),
            indexes=[index],
        ),
        needs=needs,
        views=[_LINE],
    )  # fmt: skip


_LEAN = gsi("by_customer", "GSI1PK", "GSI1SK", projection=("subject",))
_ROUTE = Route("query", "by_customer", (Given("GSI1PK"),))

FOUND = _tickets(
    _LEAN,
    Need("bodies", "Ticket", "customer", access=access("bodies", reads=("body",)), route=_ROUTE),
    result="Ticket",
)
PLACES = ["Ticket.ByCustomer", "bodies"]
CLEAN = _tickets(
    _LEAN,
    Need("subjects", "Ticket", "customer", access=access("subjects", reads=("subject",)), route=_ROUTE),
    result="Line",
)
ALSO = {
    "a local index fetches": _tickets(lsi("local", "LSI1SK", projection="KEYS_ONLY"), reads=("body",)),
}
ALSO_CLEAN = {
    "fetched by their keys": _tickets(_LEAN, result="Ticket", hydrate=True),
    "only some are read": _tickets(_LEAN, reads=("subject", "ticket_id")),
    "it holds all": _tickets(gsi("by_customer", "GSI1PK", "GSI1SK")),
}
