"""Comments that are appended to their ticket."""

from tests.design.builders import design, entity, listed, moment, put, table, text, update


def _tickets(*fields, writes):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), moment("updated_at"), *fields, pk="T#{ticket_id}", writes=writes
            )
        )
    )


_ADDING = [put(item_bytes=1_000), update("comments", "updated_at", title="add a comment", item_bytes=1_500)]

FOUND = _tickets(listed("comments"), writes=_ADDING)
PLACES = ["Ticket.comments"]
CLEAN = _tickets(listed("comments", length_max=20), writes=_ADDING)
ALSO = {
    "a map as schema.json calls it": _tickets(
        listed("reactions", type="object", tags=("M",)), writes=[update("reactions")]
    ),
    "a set that is added to": _tickets(
        listed("tags", type="set[text]", tags=("SS",)), writes=[update(title="tag it", adds=("tags",))]
    ),
    "a map that gets more keys": _tickets(
        listed("votes", type="map[int]", tags=("M",)), writes=[update("votes")]
    ),
}
ALSO_CLEAN = {
    "it is only ever put whole": _tickets(listed("comments"), writes=[put()]),
    "another field is changed": _tickets(listed("comments"), writes=[update("updated_at")]),
    "a record has the fields that it has": _tickets(
        listed("place", type="Place", tags=("M",)), writes=[update("place")]
    ),
    "a tuple has the length that it has": _tickets(
        listed("corner", type="tuple[int, int]"), writes=[update("corner")]
    ),
}
