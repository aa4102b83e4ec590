"""A table in production without point-in-time recovery."""

from tests.design.builders import design, entity, table, text


def _orders(label="Orders", **more):
    return design(
        table(entity("Order", text("order_id"), pk="ORDER#{order_id}", items=10**9), label=label, **more)
    )


FOUND = _orders(tags={"Environment": "production"}, recovery=False)
PLACES = ["Orders"]
CLEAN = _orders(tags={"Environment": "production"})
ALSO = {
    "by its name": _orders(name="prod-orders", recovery=False),
    "by another tag": _orders(tags={"stage": "prod"}, recovery=False),
}
ALSO_CLEAN = {
    "the deployment knows": _orders(name="prod-orders", recovery=False, unknown=("recovery",)),
    "a test": _orders(tags={"Environment": "test"}, name="prod-orders", recovery=False),
    "products are no production": _orders(name="products", recovery=False),
    "nobody says where it is": _orders(recovery=False),
}
