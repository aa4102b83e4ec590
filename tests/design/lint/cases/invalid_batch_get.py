"""Too many keys at once, and keys that are not whole."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, design, entity, table, text

_SHOP = table(entity("Ticket", text("ticket_id"), pk="TICKET#{ticket_id}"))


def _batch(items, *keys, queries=1):
    told = access("many tickets", items=items)
    route = Route("batch_get", None, tuple(map(Given, keys)), queries=queries)
    return design(_SHOP, needs=[Need("many tickets", "Ticket", "ticket_id", access=told, route=route)])


FOUND = _batch(250, "pk", "sk")
PLACES = ["many tickets"]
CLEAN = _batch(100, "pk", "sk")
ALSO = {"no sort key": _batch(10, "pk")}
ALSO_CLEAN = {"in several requests": _batch(250, "pk", "sk", queries=3), "nobody says how": _batch(None)}
