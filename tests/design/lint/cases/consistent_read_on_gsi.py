"""A consistent read of a global index."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import access, collection, design, entity, gsi, key, lsi, query, table, text

_GLOBAL = gsi("by_email", "GSI1PK", "GSI1SK")
_LOCAL = lsi("local", "LSI1SK")


def _users(index, *needs, **more):
    return design(
        table(
            entity(
                "User", text("user_id"), text("email"), pk="USER#{user_id}",
                keys=[key(index, "USER#{user_id}" if index.local else "EMAIL#{email}", "{email}")],
                patterns=[query("ByEmail", index, "email", consistent=True, **more)],
            ),
            indexes=[index],
            collections=[collection("Whole", "USER#{user_id}", "User", index=index.name, consistent=True)],
        ),
        needs=needs,
    )  # fmt: skip


_NEED = Need(
    "by email now", "User", "email", access=access("by email now", consistent=True),
    route=Route("query", "by_email", (Given("GSI1PK"),)),
)  # fmt: skip

FOUND = _users(_GLOBAL, _NEED)
PLACES = ["User.ByEmail", "Whole", "by email now"]
CLEAN = _users(_LOCAL)
