"""An index of whole items for three fields."""

from tests.design.builders import collection, design, entity, gsi, key, put, query, table, text

_BY_CUSTOMER = gsi("by_customer", "GSI1PK")


def _tickets(*, collections=(), size=3_072, **more):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), text("customer"), text("subject", typical_bytes=60), text("body", typical_bytes=2_500),
                pk="TICKET#{ticket_id}", keys=[key(_BY_CUSTOMER, "CUSTOMER#{customer}")],
                patterns=[query("ByCustomer", _BY_CUSTOMER, "customer", **more)],
                writes=[put(per_second=20, item_bytes=size)] if size else [],
            ),
            indexes=[_BY_CUSTOMER],
            collections=collections,
        )
    )  # fmt: skip


FOUND = _tickets(reads=("ticket_id", "subject"))
PLACES = ["Shop.by_customer"]
CLEAN = _tickets(reads=("ticket_id", "subject", "body"))
ALSO_CLEAN = {
    "all is read": _tickets(),
    "nobody says how large": _tickets(reads=("subject",), size=None),
    "a collection reads whole items": _tickets(
        reads=("subject",),
        collections=[collection("Of", "CUSTOMER#{customer}", "Ticket", index="by_customer")],
    ),
}
