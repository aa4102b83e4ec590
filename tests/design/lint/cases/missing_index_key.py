"""Tickets that are created in two ways, one of which forgets the indexes."""

from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text

_STATUS = gsi("GSI2", "GSI2PK", "GSI2SK")
_KEYS = ("GSI2PK", "GSI2SK")


def _tickets(*writes, asked=True, sparse=False, foreign=True):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "DONE"), moment("created_at"), pk="TICKET#{ticket_id}",
                keys=[key(_STATUS, "STATUS#{status}", "{created_at}", sparse=sparse)],
                patterns=[query("ByStatus", _STATUS, "status", "created_at")] if asked else [],
                writes=writes,
            ),
            indexes=[_STATUS],
            foreign=foreign,
        )
    )  # fmt: skip


_WHOLE = put("store it", rewrites=_KEYS)
_BARE = put("create it with its first event")

FOUND = _tickets(_WHOLE, _BARE)
PLACES = ["Ticket: create it with its first event"]
CLEAN = _tickets(_WHOLE, put("create it with its first event", rewrites=_KEYS))
ALSO = {
    "half of the key": _tickets(_WHOLE, put("create it", rewrites=("GSI2PK",))),
    "nobody asks": _tickets(_WHOLE, _BARE, asked=False),
}
ALSO_CLEAN = {
    "nobody says how keys are written": _tickets(_BARE, put("store it")),
    "Tavola writes them by itself": _tickets(_WHOLE, _BARE, foreign=False),
    "some are not to be in it": _tickets(_WHOLE, _BARE, sparse=True),
}
