"""Views that are counted on one item."""

from tests.design.builders import design, entity, number, table, text, update


def _counts(rate, *, pk="STATS", items=None, distinct=None, **more):
    return design(
        table(
            entity(
                "Stats", text("page", distinct=distinct), number("views"), pk=pk, items=items,
                writes=[update(title="count a view", adds=("views",), per_second=rate, item_bytes=100, **more)],
            )
        )
    )  # fmt: skip


FOUND = _counts(700)
PLACES = ["Stats: count a view"]
CLEAN = _counts(699)
ALSO = {
    "in transactions, which take twice": _counts(350, transactional=True),
    "at its peak": _counts(100, peak_per_second=900),
    "of many pages, one is asked by most": _counts(3_000, pk="PAGE#{page}", items=1_000_000, skew=1.5),
    "of three pages": _counts(3_000, pk="PAGE#{page}", distinct=3),
}
ALSO_CLEAN = {
    "of many pages": _counts(3_000, pk="PAGE#{page}", items=1_000_000),
    "nobody says of how many": _counts(3_000, pk="PAGE#{page}"),
    "nobody says how often": _counts(None),
    "spread over shards": design(
        table(
            entity(
                "Stats", text("shard", distinct=8), number("views"), pk="STATS#{shard}",
                writes=[update(adds=("views",), per_second=4_000, item_bytes=100)],
            )
        )
    ),
}  # fmt: skip
