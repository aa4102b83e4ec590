"""A table and entities that mean different attributes by their expiry."""

from tests.design.builders import design, entity, moment, number, table, text


def _tickets(*fields, ttl=None):
    return design(table(entity("Ticket", text("ticket_id"), *fields, pk="T#{ticket_id}"), ttl=ttl))


FOUND = _tickets(number("expires_at"), ttl="ttl")
PLACES = ["Shop", "Ticket.expires_at"]
CLEAN = _tickets(number("expires_at", attribute="ttl"), ttl="ttl")
ALSO = {
    "what is of use for a time": design(
        table(entity("CacheEntry", text("entry"), moment("expiresAt"), pk="CACHE#{entry}"))
    ),
    "another attribute than the table's": _tickets(moment("expires_at"), ttl="ttl"),
    "no entity has it": _tickets(ttl="expires_at"),
    "ttl without a ttl": _tickets(number("ttl")),
    "one of two entities misses it": design(
        table(
            entity("Login", text("login_id"), number("ttl"), pk="L#{login_id}"),
            entity("Code", text("code"), number("expiry"), pk="C#{code}"),
            ttl="ttl",
        )
    ),
}
ALSO_CLEAN = {
    "until when a coupon is good": design(
        table(entity("Coupon", text("code"), moment("expires_at"), pk="COUPON#{code}"))
    ),
    "a card's own end, as text": design(
        table(
            entity("Card", text("card_id"), text("expiry_date"), pk="CARD#{card_id}"),
            entity("Login", text("login_id"), number("ttl"), pk="L#{login_id}"),
            ttl="ttl",
        )
    ),
    "both a time to show and the ttl": _tickets(moment("expires_at"), number("ttl"), ttl="ttl"),
    "until when a lease holds": _tickets(moment("leased_until")),
    "a warranty's end": _tickets(moment("warranty_expires")),
    "an empty table": design(table(ttl="ttl")),
    "whether it expires": _tickets(text("expires", tags=("BOOL",))),
}
