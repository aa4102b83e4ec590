"""Users and orders in tables of their own."""

from tavola.model.document import Need
from tests.design.builders import access, collection, design, entity, table, text

_USER = entity("User", text("user_id"), pk="USER#{user_id}")
_ORDER = entity("Order", text("user_id"), text("order_id"), pk="USER#{user_id}", sk="ORDER#{order_id}")
_BOTH = Need("a user with the orders", ("User", "Order"), "user_id", (), access("both", per_second=20))
_TABLES = (table(_USER, label="Users"), table(_ORDER, label="Orders"))

FOUND = design(*_TABLES, needs=[_BOTH])
PLACES = ["a user with the orders"]
CLEAN = design(table(_USER, _ORDER), needs=[_BOTH])
ALSO_CLEAN = {
    "nobody asks for both": design(*_TABLES, needs=[Need("a user", "User", "user_id", single=True)]),
    "a collection": design(
        table(_USER, _ORDER, collections=[collection("Both", "USER#{user_id}", "User", "Order")])
    ),
}
