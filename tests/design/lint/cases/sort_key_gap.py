"""A sort attribute behind one that is not given."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, number, table, text

_REGION = gsi("by_region", ["region"], ["round", "bracket"])
_SHOP = table(
    entity("Match", text("match_id"), text("region"), number("round"), text("bracket"), pk="MATCH#{match_id}", keys=[key(_REGION)]),
    indexes=[_REGION],
)  # fmt: skip
_GAP = (Given("region"), Given("bracket"))
_RUN = (Given("region"), Given("round"), Given("bracket", "begins_with"))

FOUND = design(
    _SHOP,
    needs=[
        Need("a bracket", "Match", _GAP, route=Route("query", "by_region", _GAP)),
        Need("a bracket, filtered", "Match", _GAP),
    ],
)
PLACES = ["a bracket", "a bracket, filtered"]
CLEAN = design(
    _SHOP,
    needs=[
        Need("brackets of a round", "Match", _RUN, route=Route("query", "by_region", _RUN)),
        Need("rounds", "Match", ("region", Given("round", ">")), "round"),
    ],
)
