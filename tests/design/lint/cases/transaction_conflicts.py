"""Totals that every order's transaction writes."""

from tests.design.builders import design, entity, number, put, table, text, update


def _totals(rate, *, pk="TOTALS", transactional=True, **more):
    write = update(
        title="add it up", adds=("sum",), per_second=rate, item_bytes=100, transactional=transactional
    )
    return design(table(entity("Totals", text("shop"), number("sum"), pk=pk, writes=[write], **more)))


FOUND = _totals(50)
PLACES = ["Totals: add it up"]
CLEAN = _totals(5)
ALSO = {
    "just where one in ten is cancelled": _totals(5.3),
    "together with others": design(
        table(
            entity(
                "Totals", number("sum"), pk="TOTALS",
                writes=[update(adds=("sum",), per_second=50, item_bytes=100, together="order")],
            )
        )
    ),
}  # fmt: skip
ALSO_CLEAN = {
    "no transaction": _totals(50, transactional=False),
    "one for each of many shops": _totals(50, pk="SHOP#{shop}", items=10_000),
    "nobody says how many shops": _totals(50, pk="SHOP#{shop}"),
    "items that are created once": design(
        table(
            entity(
                "Note", number("n"), pk="NOTES", sk="{n:09}", items=1, immutable=True,
                writes=[put(per_second=50, item_bytes=100, transactional=True)],
            )
        )
    ),
}  # fmt: skip
