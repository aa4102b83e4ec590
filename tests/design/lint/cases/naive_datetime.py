"""Times without a zone, in other code's table."""

from tests.design.builders import design, entity, moment, table, text


def _tickets(field):
    return design(table(entity("Ticket", text("ticket_id"), field, pk="T#{ticket_id}"), foreign=True))


FOUND = _tickets(moment("created_at", type="naive datetime"))
PLACES = ["Ticket.created_at"]
CLEAN = _tickets(moment("created_at"))
ALSO = {
    "local time": _tickets(moment("created_at", type="local datetime")),
    "as its description says": _tickets(
        moment("created_at", description="datetime.utcnow() when it was opened")
    ),
}
ALSO_CLEAN = {"a local matter": _tickets(text("local_office"))}
