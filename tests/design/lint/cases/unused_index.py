"""An index on which nothing is asked."""

from tests.design.builders import design, entity, gsi, key, query, table, text

_BY_EMAIL = gsi("by_email", "GSI1PK")


def _users(patterns, foreign=False):
    return design(
        table(
            entity(
                "User", text("user_id"), text("email"), pk="USER#{user_id}",
                keys=[key(_BY_EMAIL, "EMAIL#{email}")], patterns=patterns,
            ),
            indexes=[_BY_EMAIL],
            foreign=foreign,
        )
    )  # fmt: skip


FOUND = _users([])
PLACES = ["Shop.by_email"]
CLEAN = _users([query("ByEmail", _BY_EMAIL, "email")])
ALSO_CLEAN = {"a file that says nothing of questions": _users([], foreign=True)}
