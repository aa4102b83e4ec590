"""Events that are keyed in two ways."""

from tests.design.builders import date, design, entity, moment, number, table, text


def _tickets(sk):
    return design(
        table(
            entity("Event", text("ticket"), date("day"), number("sequence"), pk="TICKET#{ticket}", sk="EVENT#{day}#{sequence:03}"),
            entity("Change", text("ticket"), date("day"), moment("at"), text("kind"), pk="TICKET#{ticket}", sk=sk),
        )
    )  # fmt: skip


FOUND = _tickets("EVENT#{at}#{kind}")
PLACES = ["Event"]
CLEAN = _tickets("CHANGE#{at}#{kind}")
ALSO_CLEAN = {"one order": _tickets("EVENT#{day}#CHANGE#{kind}")}
