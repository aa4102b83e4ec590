"""A key that no item carries."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, moment, query, table, text

_GSI1 = gsi("GSI1", "GSI1PK", "GSI1SK")

_KEYS = (key(_GSI1, "STACK#{stack}", "{created_at}"),)


def _reviews(*needs, keys=_KEYS, patterns=()):
    return design(
        table(
            entity(
                "Review", text("review_id"), text("stack"), text("run"), moment("created_at"),
                pk="REVIEW#{review_id}", keys=keys, patterns=patterns,
            ),
            indexes=[_GSI1],
            foreign=True,
        ),
        needs=needs,
    )  # fmt: skip


_BY_KEY = Route("query", "GSI1", (Given("GSI1PK"),))

FOUND = _reviews(Need("review of a run", "Review", "run", "created_at", route=_BY_KEY))
PLACES = ["review of a run"]
CLEAN = _reviews(
    Need("reviews of a stack", "Review", "stack", "created_at", route=_BY_KEY),
    Need(
        "of one", "Review", "stack", route=Route("query", "GSI1", (Given("GSI1PK", "=", {"S": "STACK#one"}),))
    ),
    Need("all", "Review", (), route=Route("scan")),
)
ALSO = {
    "a constant that is never written": _reviews(
        Need("runs", "Review", (), route=Route("query", "GSI1", (Given("GSI1PK", "=", {"S": "RUNS"}),)))
    ),
    "no key there": _reviews(Need("by stack", "Review", "stack", route=_BY_KEY), keys=()),
    "no such index": _reviews(
        Need("by stack", "Review", "stack", route=Route("query", "GSI9", (Given("GSI9PK"),)))
    ),
    "half a key": _reviews(
        keys=[key(_GSI1, "STACK#{stack}")], patterns=[query("OfStack", _GSI1, "stack", "created_at")]
    ),
}
