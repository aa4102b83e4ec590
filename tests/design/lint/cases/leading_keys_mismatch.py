"""Conditions on keys that no item has."""

from tests.design.builders import design, entity, gsi, key, table, text
from tests.design.policies import allow, deny, leading, policy

_BY_CUSTOMER = gsi("by_customer", "GSI1PK", "GSI1SK")


def _with(*statements, pk="TICKET#{ticket_id}"):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), text("customer_id", tenant=True), pk=pk,
                keys=[key(_BY_CUSTOMER, "CUSTOMER#{customer_id}", "{ticket_id}")],
            ),
            indexes=[_BY_CUSTOMER],
        ),
        policies=[policy(*statements)],
    )  # fmt: skip


FOUND = _with(allow("GetItem Query", "shop", when=leading("${aws:userid}", operator="StringEquals")))
PLACES = ["app"]
CLEAN = _with(allow("Query", "shop/index/by_customer", when=leading("CUSTOMER#${aws:username}")))
ALSO = {
    "another prefix": _with(allow("GetItem", "shop", when=leading("CUSTOMER#${aws:username}"))),
    "a name for another field": _with(
        allow("GetItem", "shop", when=leading("TICKET#${cognito-identity.amazonaws.com:sub}"))
    ),
}
ALSO_CLEAN = {
    "kinds of keys": _with(allow("PutItem", "shop", when=leading("TICKET#*", "SESSION#*"))),
    "a part of a prefix": _with(allow("PutItem", "shop", when=leading("TICK*"))),
    "any key": _with(allow("PutItem", "shop", when=leading("*"))),
    "a key without a prefix": _with(
        allow("GetItem", "shop", when=leading("${aws:username}")), pk="customer_id"
    ),
    "a denial": _with(deny("GetItem", "shop", when=leading("SECRET#*"))),
    "another table": _with(allow("GetItem", "other", when=leading("X#*"))),
}
