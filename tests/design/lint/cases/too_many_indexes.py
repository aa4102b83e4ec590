"""An index for everything."""

from tests.design.builders import design, entity, gsi, key, lsi, put, table, text


def _products(count, *, fed=0, rate=50.0):
    indexes = [gsi(f"by_{at}", f"GSI{at}PK") for at in range(count)]
    return design(
        table(
            entity(
                "Product", text("product_id"), pk="P#{product_id}",
                keys=[key(index, f"K{at}#{{product_id}}") for at, index in enumerate(indexes[:fed])],
                writes=[put(per_second=rate, item_bytes=900)],
            ),
            indexes=indexes,
        )
    )  # fmt: skip


FOUND = _products(21)
PLACES = ["Shop"]
CLEAN = _products(20, fed=7)
ALSO = {
    "six local ones": design(
        table(
            entity("Product", text("product_id"), pk="P#{product_id}"),
            indexes=[lsi(f"by_{at}", f"L{at}") for at in range(6)],
        )
    ),
    "a write that goes to eight": _products(8, fed=8),
}
ALSO_CLEAN = {"a write that goes to eight, seldom": _products(8, fed=8, rate=0.1)}
