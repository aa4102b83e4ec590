"""A policy that reads every tenant's tickets."""

from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.policies import allow, deny, leading, policy

_BY_CUSTOMER = gsi("by_customer", "GSI1PK", "GSI1SK")


def _with(*statements, tenant=True, name="app"):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), text("customer_id", tenant=tenant), pk="T#{ticket_id}",
                keys=[key(_BY_CUSTOMER, "CUSTOMER#{customer_id}", "{ticket_id}")],
                patterns=[query("OfCustomer", _BY_CUSTOMER, "customer_id", "ticket_id")],
            ),
            indexes=[_BY_CUSTOMER],
        ),
        policies=[policy(*statements, name=name)],
    )  # fmt: skip


_OWN = leading("CUSTOMER#${aws:PrincipalTag/customer}")
_BY_INDEX = allow("Query", "shop/index/by_customer", when=_OWN)

FOUND = _with(allow("GetItem Query", "shop"))
PLACES = ["app"]
CLEAN = _with(_BY_INDEX)
ALSO = {
    "an index": _with(allow("Query", "shop/index/*")),
    "a hole beside the wall": _with(_BY_INDEX, allow("GetItem", "shop")),
    "a scan besides": _with(allow("GetItem Query Scan", "shop")),
    "a scan alone": _with(allow("Scan", "shop")),
    "every action": _with(allow("dynamodb:*", "shop")),
    "writes alone": _with(allow("PutItem UpdateItem DeleteItem", "shop")),
    "a condition that all satisfy": _with(
        allow("Query", "shop/index/by_customer", when=leading("CUSTOMER#*"))
    ),
    "a denial of something else": _with(allow("GetItem", "shop"), deny("GetItem", "other")),
    "a denial on another matter": _with(
        allow("GetItem", "shop"),
        deny("*", "*", when={"Bool": {"aws:SecureTransport": "false"}}),
    ),
}
ALSO_CLEAN = {
    "no tenants": _with(allow("GetItem Query", "shop"), tenant=False),
    "who keeps numbers reads all": _with(allow("GetItem Scan", "shop"), allow("GetRecords", "shop/stream/*")),
    "who follows the stream": _with(allow("GetItem", "shop"), allow("GetRecords", "shop/stream/*")),
    "the application itself, by its name": _with(
        allow("GetItem Query", "shop", "shop/index/*"),
        allow("PutItem", "shop", when=leading("T#*")),
        name="shop-service",
    ),
    "all that is another's is denied": _with(
        allow("Query", "shop/index/by_customer"),
        deny(
            "dynamodb:*",
            "shop/index/by_customer",
            when=leading(
                "CUSTOMER#${aws:PrincipalTag/customer}", operator="ForAnyValue:StringNotEquals", null=False
            ),
        ),
        deny("dynamodb:*", "*", when={"Null": {"dynamodb:LeadingKeys": "true"}}),
    ),
    "a scan that is denied": _with(_BY_INDEX, allow("Scan", "shop"), deny("Scan", "*")),
    "another table": _with(allow("GetItem Query", "other")),
}
