"""A function that adds to numbers, and gets a batch twice."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, number, put, table, text, update


def _counted(*writes, **more):
    return design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"),
            consumers=[Consumer("numbers", writes=("Number",), **more)],
            stream="NEW_AND_OLD_IMAGES",
        ),
        table(
            entity("Number", text("name"), number("count"), pk="N#{name}", writes=writes),
            label="Metrics",
        ),
    )


_ADDING = update(adds=("count",))

FOUND = _counted(_ADDING)
PLACES = ["numbers"]
CLEAN = _counted(_ADDING, idempotent=True)
ALSO_CLEAN = {
    "it sets what it derived": _counted(update("count")),
    "it puts copies": _counted(put()),
    "somebody else's entity": design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"),
            consumers=[Consumer("mail", writes=("Gone",))],
        )
    ),
}
