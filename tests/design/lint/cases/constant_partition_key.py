"""One partition for everything."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import (
    access,
    collection,
    design,
    entity,
    gsi,
    key,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
)

_RECENT = gsi("recent", "GSI1PK", "GSI1SK")


def _tickets(peak, shards=None):
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), moment("created_at"), pk="TICKET#{ticket_id}",
                keys=[key(_RECENT, "TICKETS", "{created_at}", shards=shards)],
                patterns=[query("Recent", _RECENT, (), "created_at")],
                writes=[put(peak_per_second=peak, item_bytes=400)],
            ),
            indexes=[_RECENT],
        )
    )  # fmt: skip


def _settings(*, needs=(), collections=()):
    return design(
        table(
            entity("Setting", text("name"), pk="CONFIG", sk="SETTING#{name}", writes=[put(per_second=0.01, item_bytes=200)]),
            collections=collections,
            foreign=True,
        ),
        needs=needs,
    )  # fmt: skip


def _all_settings(rate, **more):
    told = access("all settings", per_second=rate, items=50, item_bytes=200)
    return Need("all settings", "Setting", (), (), told, route=Route("query", None, (Given("pk"),), **more))


def _events(*rates, pk="EVENTS"):
    return design(
        table(
            *(
                entity(f"Kind{number}", text("id"), pk=pk, sk=f"K{number}#{{id}}", writes=[put(per_second=rate, item_bytes=200)])
                for number, rate in enumerate(rates)
            )
        )
    )  # fmt: skip


FOUND = _tickets(1_500)
PLACES = ["Ticket.Recent"]
CLEAN = _tickets(400)
ALSO = {
    "a collection of it": _settings(
        collections=[collection("All", "CONFIG", "Setting", per_second=10_000, items=50, item_bytes=200)]
    ),
    "a need of it, as other code asks": _settings(needs=[_all_settings(10_000)]),
    "several entities in one": _events(400, 800, 400),
}
ALSO_CLEAN = {
    "shards": _tickets(1_500, shards=4),
    "nobody says how often": _tickets(None),
    "one item that is counted on, of which another rule speaks": design(
        table(
            entity(
                "Stats", number("views"), pk="STATS",
                writes=[update(adds=("views",), per_second=5_000, item_bytes=100)],
            )
        )
    ),
    "a collection that is asked less": _settings(
        collections=[collection("All", "CONFIG", "Setting", per_second=1_000, items=50, item_bytes=200)]
    ),
    "a need that is asked less": _settings(needs=[_all_settings(1_000)]),
    "several entities, and not too much": _events(300, 300, 300),
}  # fmt: skip
