"""An expiry in milliseconds."""

from tests.design.builders import date, design, entity, moment, number, table, text


def _sessions(field):
    return design(
        table(entity("Login", text("login_id"), field, pk="L#{login_id}"), ttl=field.attribute, foreign=True)
    )


FOUND = _sessions(number("expires", type="epoch-milliseconds"))
PLACES = ["Login.expires"]
CLEAN = _sessions(number("expires", type="epoch-seconds"))
ALSO = {
    "by its name": _sessions(number("expires_ms")),
    "by its name, as JavaScript writes it": _sessions(number("expiresMillis")),
    "written out": _sessions(moment("expires")),
    "a day": _sessions(date("expires")),
    "how many days": _sessions(number("ttl_days")),
    "a duration": _sessions(number("ttl", type="duration")),
}
ALSO_CLEAN = {
    "a datetime, which Tavola stores in seconds": _sessions(moment("expires", tags=("N",))),
    "a number": _sessions(number("ttl")),
}
