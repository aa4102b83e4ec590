"""A table in production that one call deletes."""

from tests.design.builders import design, entity, table, text

PRODUCTION = True


def _orders(**more):
    return design(table(entity("Order", text("order_id"), pk="ORDER#{order_id}"), **more))


FOUND = _orders(deletion_protection=False)
PLACES = ["Shop"]
CLEAN = _orders()
ALSO_CLEAN = {"the deployment knows": _orders(deletion_protection=False, unknown=("deletion_protection",))}
