"""Query on the table, and on no index of it."""

from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.policies import allow, leading, policy

_BY_EMAIL = gsi("by_email", "GSI1PK")
_BY_NAME = gsi("by_name", "GSI2PK")


def _with(*statements, patterns=("ByEmail", "ByName"), tables=()):
    asked = [query("ByEmail", _BY_EMAIL, "email"), query("ByName", _BY_NAME, "full_name")]
    return design(
        table(
            entity(
                "User", text("user_id"), text("email"), text("full_name"), pk="USER#{user_id}",
                keys=[key(_BY_EMAIL, "EMAIL#{email}"), key(_BY_NAME, "NAME#{full_name}")],
                patterns=[found for found in asked if found.name in patterns],
            ),
            indexes=[_BY_EMAIL, _BY_NAME],
        ),
        policies=[policy(*statements, tables=tables)],
    )  # fmt: skip


FOUND = _with(allow("GetItem Query", "shop"))
PLACES = ["app"]
CLEAN = _with(allow("GetItem Query", "shop", "shop/index/*"))
ALSO = {
    "an index that nobody asks": _with(allow("Query", "shop", "shop/index/by_name"), patterns=("ByEmail",)),
    "by another name of the only table": _with(allow("Query", "users"), tables=("shop",)),
}
ALSO_CLEAN = {
    "one of them, which may be meant so": _with(allow("Query", "shop", "shop/index/by_email")),
    "nobody asks an index": _with(allow("GetItem Query", "shop"), patterns=()),
    "bound to some keys of the table": _with(allow("Query", "shop", when=leading("USER#*"))),
    "no Query at all": _with(allow("GetItem", "shop")),
    "everything below the table": _with(allow("Query", "shop", "shop/*")),
    "by another name, with its indexes": _with(allow("Query", "users", "users/index/*"), tables=("shop",)),
}
