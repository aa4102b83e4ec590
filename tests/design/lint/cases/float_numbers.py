"""Prices as floats, in other code's table."""

from tests.design.builders import decimal, design, entity, listed, number, table, text


def _orders(field, *, foreign=True):
    return design(table(entity("Order", text("order_id"), field, pk="ORDER#{order_id}"), foreign=foreign))


FOUND = _orders(number("total", type="float"))
PLACES = ["Order.total"]
CLEAN = _orders(decimal("total"))
ALSO = {
    "a list of them": _orders(listed("scores", type="list[float]")),
    "as others call it": _orders(number("total", type="Double")),
}
ALSO_CLEAN = {"Tavola's are exact": _orders(number("total", type="float"), foreign=False)}
