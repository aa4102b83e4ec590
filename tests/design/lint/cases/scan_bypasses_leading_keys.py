"""A scan under a condition that it satisfies by naming no key."""

from tests.design.builders import design, entity, table, text
from tests.design.policies import allow, deny, leading, policy

_TABLE = table(
    entity("Ticket", text("customer"), text("ticket_id"), pk="CUSTOMER#{customer}", sk="{ticket_id}")
)


def _with(*statements):
    return design(_TABLE, policies=[policy(*statements)])


_OWN = "CUSTOMER#${aws:username}"

FOUND = _with(allow("Query Scan", "shop", when=leading(_OWN, null=False)))
PLACES = ["app"]
CLEAN = _with(allow("Query Scan", "shop", when=leading(_OWN)))
ALSO = {
    "every action": _with(allow("dynamodb:*", "shop", when=leading(_OWN, null=False))),
    "a statement": _with(allow("PartiQLSelect", "shop", when=leading(_OWN, null=False))),
    "if it exists": _with(
        allow("Scan", "shop", when=leading(_OWN, operator="StringEqualsIfExists", null=False))
    ),
}
ALSO_CLEAN = {
    "denied all the same": _with(
        allow("Query Scan", "shop", when=leading(_OWN, null=False)), deny("Scan PartiQLSelect", "shop")
    ),
    "no scan": _with(allow("Query GetItem", "shop", when=leading(_OWN, null=False))),
    "a key is wanted by itself": _with(
        allow("Query Scan", "shop", when=leading(_OWN, operator="ForAnyValue:StringLike", null=False))
    ),
    "without a condition, which is another matter": _with(allow("Scan", "shop")),
    "a denial": _with(deny("Scan", "shop", when=leading(_OWN, null=False))),
}
