"""A query a day for ten years."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, date, design, entity, table, text


def _trend(queries):
    need = Need(
        "trend", "Risk", Given("day", "between"), access=access("trend", per_second=0.5),
        route=Route("query", None, (Given("pk"),), queries=queries),
    )  # fmt: skip
    return design(
        table(entity("Risk", date("day"), text("review"), pk="RISK#{day}", sk="{review}")), needs=[need]
    )


FOUND = _trend(3_650)
PLACES = ["trend"]
CLEAN = _trend(30)
