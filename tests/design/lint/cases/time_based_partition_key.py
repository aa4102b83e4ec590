"""A partition for each day."""

from tavola.model.document import Shards
from tests.design.builders import design, entity, moment, put, table, text


def _readings(pk, *writes, shards=None):
    return design(
        table(
            entity(
                "Reading",
                text("sensor"),
                moment("at"),
                pk=pk,
                sk="{at}#{sensor}",
                writes=writes,
                shards=shards,
            )
        )
    )


_BUSY = put(peak_per_second=3_000, item_bytes=100)

FOUND = _readings("DAY#{at:day}", _BUSY)
PLACES = ["Reading.Key"]
CLEAN = _readings("DAY#{at:day}", put(peak_per_second=300, item_bytes=100))
ALSO = {
    "by time alone": _readings("READINGS", _BUSY, shards=Shards.by_time("at", "hour")),
    "no rate": _readings("DAY#{at:day}"),
}
ALSO_CLEAN = {
    "by sensor": _readings("SENSOR#{sensor}#{at:day}", _BUSY),
    "shards of a day": _readings("DAY#{at:day}", _BUSY, shards=8),
}
