"""Units that nothing moves."""

from tavola.model.document import Scaling
from tests.design.builders import design, entity, put, table, text


def _orders(read_units=100, write_units=100, *, writes=0.0, peak=None, reads=0.0, **more):
    return design(
        table(
            entity(
                "Order", text("order_id"), pk="ORDER#{order_id}", primary={"per_second": reads, "items": 1, "item_bytes": 4_000},
                writes=[put(per_second=writes, peak_per_second=peak, item_bytes=900)],
            ),
            read_units=read_units, write_units=write_units, **more,
        )
    )  # fmt: skip


FOUND = _orders(writes=20, peak=200)
PLACES = ["Shop"]
CLEAN = _orders(writes=20, peak=200, scaling=Scaling(read_max=400, write_max=400))
ALSO = {"used a little": _orders(writes=20, reads=20), "by what nobody knows": _orders()}
ALSO_CLEAN = {
    "on demand": _orders(None, None, writes=20, peak=200),
    "steady": _orders(writes=90, reads=180),
}
