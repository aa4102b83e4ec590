"""A stretch that is not last."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, number, table, text

_REGION = gsi("by_region", ["region"], ["round", "bracket"])
_SHOP = table(
    entity("Match", text("match_id"), text("region"), number("round"), text("bracket"), pk="MATCH#{match_id}", keys=[key(_REGION)]),
    indexes=[_REGION],
)  # fmt: skip
_EARLY = (Given("region"), Given("round", ">="), Given("bracket"))
_LAST = (Given("region"), Given("round"), Given("bracket", ">="))

FOUND = design(
    _SHOP,
    needs=[
        Need("late rounds", "Match", _EARLY, route=Route("query", "by_region", _EARLY)),
        Need("late rounds, filtered", "Match", _EARLY),
    ],
)
PLACES = ["late rounds", "late rounds, filtered"]
CLEAN = design(
    _SHOP,
    needs=[
        Need("late brackets", "Match", _LAST, route=Route("query", "by_region", _LAST)),
        Need("late brackets too", "Match", _LAST),
    ],
)
