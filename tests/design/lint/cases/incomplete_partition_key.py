"""A partition key of which a part is missing."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, number, table, text

_REGION = gsi("by_region", ["tournament", "region"], ["round"])
_SHOP = table(
    entity("Match", text("match_id"), text("tournament"), text("region"), number("round"), pk="MATCH#{match_id}", keys=[key(_REGION)]),
    indexes=[_REGION],
)  # fmt: skip
_HALF = (Given("tournament"),)
_WHOLE = (Given("tournament"), Given("region"))

FOUND = design(
    _SHOP,
    needs=[
        Need("of a tournament", "Match", "tournament", route=Route("query", "by_region", _HALF)),
        Need("of a tournament, by round", "Match", "tournament", "round"),
    ],
)
PLACES = ["of a tournament", "of a tournament, by round"]
CLEAN = design(
    _SHOP,
    needs=[
        Need("of a region", "Match", _WHOLE, "round", route=Route("query", "by_region", _WHOLE)),
        Need("of a region too", "Match", _WHOLE, "round"),
    ],
)
