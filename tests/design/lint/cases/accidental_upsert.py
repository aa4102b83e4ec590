"""A comment on a ticket that may not be there."""

from tests.design.builders import design, entity, listed, number, table, text, update

_SUBJECT = (text("subject"),)


def _tickets(*writes, more=_SUBJECT):
    return design(
        table(
            entity("Ticket", text("ticket_id"), *more, listed("comments"), pk="T#{ticket_id}", writes=writes)
        )
    )


FOUND = _tickets(update("comments", title="add a comment", creates=True))
PLACES = ["Ticket: add a comment"]
CLEAN = _tickets(update("comments", title="add a comment"))
ALSO_CLEAN = {
    "a counter begins with its first count": _tickets(
        update(title="count it", adds=("views", "comments"), creates=True), more=(number("views"),)
    ),
    "what else there is has a default": _tickets(
        update("comments", creates=True), more=(text("subject", required=False),)
    ),
}
