"""Versions in an index by status."""

from tests.design.builders import choice, design, entity, gsi, key, moment, number, query, table, text

_BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def _reviews(sk="VERSION#{version:06}", immutable=True, **more):
    return design(
        table(
            entity(
                "Review", text("review_id"), number("version"), choice("status", "PENDING", "DONE"), choice("current", "yes", nullable=True),
                moment("created_at"), pk="REVIEW#{review_id}", sk=sk,
                keys=[key(_BY_STATUS, "STATUS#{status}", "{created_at}", **more)],
                patterns=[query("ByStatus", _BY_STATUS, "status", "created_at")],
                immutable=immutable,
            ),
            indexes=[_BY_STATUS],
        )
    )  # fmt: skip


FOUND = _reviews()
PLACES = ["Review.ByStatus"]
CLEAN = _reviews(members={"current": ["yes"]})
ALSO_CLEAN = {"what changes": _reviews(immutable=False), "no versions": _reviews("AT#{created_at}")}
