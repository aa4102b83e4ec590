"""What only a filter finds, and filters that drop most of what is read."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, choice, collection, design, entity, gsi, key, query, table, text

_BY_CUSTOMER = gsi("by_customer", "GSI1PK")


def _shop(**more):
    return table(
        entity(
            "Order", text("order_id"), text("customer"), choice("status", "OPEN", "DONE"),
            pk="ORDER#{order_id}", keys=[key(_BY_CUSTOMER, "CUSTOMER#{customer}")],
            patterns=[query("ByCustomer", _BY_CUSTOMER, "customer", **more)],
        ),
        indexes=[_BY_CUSTOMER],
        collections=[collection("Whole", "ORDER#{order_id}", "Order", **more)],
    )  # fmt: skip


_OPEN = ("customer", Given("status"))
_MUCH = {"items": 1_000, "returned": 20, "item_bytes": 400}

FOUND = design(
    _shop(filters=("status",), **_MUCH),
    needs=[
        Need("open orders", "Order", _OPEN, access=access("open orders", **_MUCH)),
        Need(
            "orders by customer", "Order", "customer",
            route=Route("query", "by_customer", (Given("GSI1PK"),), (Given("status"),)),
        ),
    ],
)  # fmt: skip
PLACES = ["Order.ByCustomer", "Whole", "open orders", "orders by customer"]
CLEAN = design(
    _shop(filters=("status",), items=1_000, returned=600),
    needs=[
        Need("orders", "Order", "customer"),
        Need("most orders", "Order", _OPEN, access=access("most orders", items=10, returned=8)),
    ],
)
ALSO_CLEAN = {"what a filter leaves is not known": design(_shop(filters=("status",), items=1_000))}
