"""An expiry that is text."""

from tests.design.builders import design, entity, number, table, text


def _sessions(field, ttl="expires"):
    return design(table(entity("Login", text("login_id"), field, pk="L#{login_id}"), ttl=ttl, foreign=True))


FOUND = _sessions(text("expires"))
PLACES = ["Login.expires"]
CLEAN = _sessions(number("expires"))
ALSO = {"text or number": _sessions(text("expires", tags=("N", "S")))}
ALSO_CLEAN = {
    "another attribute": _sessions(text("expires"), "ttl"),
    "no ttl": _sessions(text("expires"), None),
}
