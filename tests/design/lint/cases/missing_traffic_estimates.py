"""Patterns without a rate."""

from typing import Any

from tests.design.builders import collection, design, entity, gsi, key, moment, put, query, table, text

_TOLD: Any = {"per_second": 5, "item_bytes": 300}


def _orders(*patterns, writes=(), **more):
    return design(
        table(
            entity("Order", text("user_id"), text("order_id"), pk="USER#{user_id}", sk="ORDER#{order_id}", patterns=patterns,
                   writes=writes, primary=_TOLD),
            **more,
        )
    )  # fmt: skip


_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _status(per_second, field, **more):
    return design(
        table(
            entity(
                "Order", text("order_id"), field, moment("placed_at"), pk="ORDER#{order_id}",
                keys=[key(_BY_STATUS, f"K#{{{field.name}}}", "{placed_at}", **more)],
                patterns=[query("By", _BY_STATUS, field.name, "placed_at", **_TOLD)],
                writes=[put(per_second=per_second, item_bytes=500)], primary=_TOLD,
            ),
            indexes=[_BY_STATUS],
        )
    )  # fmt: skip


FOUND = _orders(
    query("OfUser", None, "user_id", "order_id"), query("Again", None, "user_id", "order_id", per_second=1)
)
PLACES = ["Shop"]
CLEAN = _orders(query("OfUser", None, "user_id", "order_id", **_TOLD), writes=[put(**_TOLD)])
ALSO = {
    "a busy status of nobody knows how many": _status(8_000, text("order_status")),
    "a write": _orders(writes=[put(item_bytes=300)]),
    "a size that nobody says": design(
        table(entity("Order", text("order_id"), pk="ORDER#{order_id}", primary={"per_second": 5}))
    ),
    "a collection": _orders(collections=[collection("All", "USER#{user_id}", "Order")]),
}
ALSO_CLEAN = {
    "an empty table": design(table()),
    "a status of five": _status(8_000, text("order_status", distinct=5)),
    "a status at leisure": _status(80, text("order_status")),
    "a status in shards": _status(8_000, text("order_status"), shards=16),
    "a size that another says": _orders(writes=[put(per_second=5)]),
    "somebody's name": _status(8_000, text("customer_id")),
}
