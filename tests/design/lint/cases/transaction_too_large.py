"""Transactions beyond 100 items or 4 MB."""

from tests.design.builders import design, entity, put, query, table, text


def _orders(lines, size=500, *, head=500, **more):
    return design(
        table(
            entity(
                "Order", text("order_id"), pk="ORDER#{order_id}",
                writes=[put("place it", transactional=True, together="place", item_bytes=head)],
            ),
            entity(
                "Line", text("order_id"), text("line"), pk="ORDER#{order_id}", sk="LINE#{line}",
                writes=[put("a line", transactional=True, together="place", item_bytes=size, items=lines)], **more,
            ),
        )
    )  # fmt: skip


FOUND = _orders(100)
PLACES = ["Order: place it"]
CLEAN = _orders(99)
ALSO = {
    "4 MB": _orders(80, 60_000),
    "a transactional read": _orders(
        1, patterns=[query("All", None, "order_id", "line", transactional=True, items=101, item_bytes=100)]
    ),
    "one write alone": design(
        table(
            entity("Item", text("item_id"), pk="I#{item_id}", writes=[put(transactional=True, items=101, item_bytes=10)])
        )
    ),
}  # fmt: skip
ALSO_CLEAN = {
    "just below 4 MB": _orders(99, 42_000),
    "no transaction": design(
        table(entity("Item", text("item_id"), pk="I#{item_id}", writes=[put(items=5_000, item_bytes=400)]))
    ),
    "a query is read in pages": _orders(
        1, patterns=[query("All", None, "order_id", "line", items=5_000, item_bytes=100)]
    ),
}
