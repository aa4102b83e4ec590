"""An absent value in a key that is always made."""

from tests.design.builders import bare_number, design, entity, gsi, key, query, table, text

_BY_RISK = gsi("by_risk", "GSI1PK", "GSI1SK")


def _reviews(nullable=True, foreign=True, **more):
    return design(
        table(
            entity(
                "Review", text("review_id"), text("day"), bare_number("score", nullable=nullable), pk="REVIEW#{review_id}",
                keys=[key(_BY_RISK, "RISK#{day}", "{score}", **more)],
                patterns=[query("OfDay", _BY_RISK, "day", "score")],
            ),
            indexes=[_BY_RISK],
            foreign=foreign,
        )
    )  # fmt: skip


FOUND = _reviews()
PLACES = ["Review.OfDay"]
CLEAN = _reviews(sparse=True)
ALSO_CLEAN = {"always there": _reviews(nullable=False), "Tavola leaves it out": _reviews(foreign=False)}
