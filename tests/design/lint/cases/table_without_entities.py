"""A table of which nothing is said."""

from tavola.model.document import Need
from tests.design.builders import design, entity, table, text, view

FOUND = design(table(label="Orders"))
PLACES = ["Orders"]
CLEAN = design(table(entity("Order", text("order_id"), pk="ORDER#{order_id}")))
ALSO = {"nothing at all": design(), "entities alone": design(views=[view("Order", text("order_id"))])}
ALSO_CLEAN = {
    "still to be solved": design(
        views=[view("Order", text("order_id"))], needs=[Need("an order", "Order", "order_id", single=True)]
    )
}
