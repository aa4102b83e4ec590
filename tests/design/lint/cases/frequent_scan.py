"""A scan that is asked for all day."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, choice, design, entity, table, text

_SHOP = table(
    entity(
        "Order", text("order_id"), choice("status", "OPEN", "DONE"), pk="ORDER#{order_id}", items=1_000_000
    )
)


def _scanned(per_second):
    told = access("open orders", per_second=per_second)
    route = Route("scan", filters=(Given("status"),))
    return design(_SHOP, needs=[Need("open orders", "Order", "status", access=told, route=route)])


FOUND = _scanned(5)
PLACES = ["open orders"]
CLEAN = _scanned(1 / 86_400)
ALSO = {"nobody says how often": _scanned(None)}
ALSO_CLEAN = {"a key": design(_SHOP, needs=[Need("an order", "Order", "order_id", route=Route("get"))])}
