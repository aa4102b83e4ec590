"""A policy of tables that there are not."""

from tests.design.builders import design, entity, gsi, table, text
from tests.design.policies import allow, deny, policy

_TABLE = table(
    entity("Order", text("order_id"), pk="ORDER#{order_id}"),
    name="prod-shop",
    indexes=[gsi("by_day", "GSI1PK")],
)


def _with(*statements, tables=()):
    return design(_TABLE, policies=[policy(*statements, tables=tables)])


FOUND = _with(allow("GetItem Query", "shop"))
PLACES = ["app"]
CLEAN = _with(allow("GetItem Query", "prod-shop", "prod-shop/index/by_day"))
ALSO = {
    "an index that is not there": _with(allow("Query", "prod-shop", "prod-shop/index/by-day")),
    "an index of a table that is meant": _with(allow("Query", "shop/index/by-day"), tables=("prod-shop",)),
}
ALSO_CLEAN = {
    "one of its tables is ours": _with(allow("GetItem", "prod-shop", "other")),
    "every table": _with(allow("GetItem", "*")),
    "tables that begin alike": _with(allow("GetItem", "prod-*")),
    "any index": _with(allow("Query", "prod-shop", "prod-shop/index/*")),
    "its stream": _with(allow("GetRecords", "prod-shop/stream/*")),
    "another service's": _with(allow("s3:GetObject", "arn:aws:s3:::bucket/*")),
    "a vector index": _with(allow("SearchVectors", "prod-shop/index/similar"), allow("GetItem", "prod-shop")),
    "a denial": _with(deny("GetItem", "other")),
    "what a template leaves open": _with(allow("GetItem", "arn:aws:dynamodb:*:*:table/${var.name}")),
}
