"""A number that sorts as text."""

from tests.design.builders import bare_number, decimal, design, entity, gsi, key, number, query, table, text

_BY_SCORE = gsi("by_score", "GSI1PK", "GSI1SK")


def _reviews(version, sk, patterns=(), foreign=True):
    return design(
        table(
            entity("Review", text("review_id"), version, pk="REVIEW#{review_id}", sk=sk, patterns=patterns),
            foreign=foreign,
        )
    )


_LATEST = [query("Versions", None, "review_id", "version")]

FOUND = _reviews(bare_number("version"), "VERSION#{version}", _LATEST)
PLACES = ["Review.Key"]
CLEAN = _reviews(number("version"), "VERSION#{version:06}", _LATEST)
ALSO = {
    "nobody asks in order": _reviews(bare_number("version"), "VERSION#{version}"),
    "a score as text": design(
        table(
            entity(
                "Review", text("review_id"), decimal("score", tags=("S",), key_kind="text"), pk="REVIEW#{review_id}",
                keys=[key(_BY_SCORE, "SCORES", "{score}")],
            ),
            indexes=[_BY_SCORE],
            foreign=True,
        )
    ),
}  # fmt: skip
ALSO_CLEAN = {
    "an epoch": _reviews(bare_number("placed_at"), "AT#{placed_at}"),
    "Tavola pads by itself": _reviews(number("version"), "VERSION#{version}", _LATEST, foreign=False),
}
