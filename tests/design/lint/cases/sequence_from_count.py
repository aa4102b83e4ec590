"""Events that are numbered by a count."""

from tests.design.builders import design, entity, number, table, text


def _events(numbered):
    return design(
        table(
            entity(
                "Event", text("ticket_id"), number("sequence", numbered=numbered), pk="TICKET#{ticket_id}",
                sk="EVENT#{sequence:06}",
            )
        )
    )  # fmt: skip


FOUND = _events("count")
PLACES = ["Event.sequence"]
CLEAN = _events("counter")
ALSO_CLEAN = {"nobody says how": _events(None), "after the last, which is another matter": _events("last")}
