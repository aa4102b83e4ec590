"""Keys that two entities can have."""

from tavola.model.document import Given, Need, Route
from tests.design.builders import design, entity, gsi, key, moment, query, table, text

_HISTORY = gsi("GSI1", "GSI1PK", "GSI1SK")


def _shop(sk, patterns=(), foreign=True):
    return design(
        table(
            entity(
                "Order",
                text("order_id"),
                text("line"),
                pk="ORDER#{order_id}",
                sk="LINE#{line}",
                patterns=patterns,
            ),
            entity("Detail", text("order_id"), text("name"), pk="ORDER#{order_id}", sk=sk),
            foreign=foreign,
        )
    )


FOUND = _shop("LINE#{name}")
PLACES = ["Detail"]
CLEAN = _shop("DETAIL#{name}", [query("Lines", None, "order_id", "line")])


def _history(begins, *, filters=(), route=False, **asked):
    """Reviews and findings of a stack in one index, both by their time."""
    need = Need(
        "history", "Review", "stack_id", "created_at",
        route=Route("query", "GSI1", (Given("GSI1PK"), *asked.get("keys", ())), filters),
    )  # fmt: skip
    return design(
        table(
            entity(
                "Review", text("review_id"), text("stack_id"), moment("created_at"), pk="REVIEW#{review_id}",
                keys=[key(_HISTORY, "STACK#{stack_id}", "CREATED#{created_at}")],
                patterns=() if route else [query("OfStack", _HISTORY, "stack_id", "created_at")],
            ),
            entity(
                "Finding", text("finding_id"), text("stack_id"), moment("created_at"), pk="FINDING#{finding_id}",
                keys=[key(_HISTORY, "STACK#{stack_id}", begins + "{created_at}")],
            ),
            indexes=[_HISTORY],
            tag="EntityType",
            foreign=True,
        ),
        needs=[need] if route else (),
    )  # fmt: skip


ALSO = {
    "a query catches another's": _shop("LINE#DETAIL#{name}#", [query("Lines", None, "order_id", "line")]),
    "keyed alike in an index": _history("CREATED#"),
    "keyed alike, and asked by other code": _history("CREATED#", route=True),
}
ALSO_CLEAN = {
    "other partitions": design(table(
        entity("Order", text("order_id"), pk="ORDER#{order_id}"), entity("User", text("user_id"), pk="USER#{user_id}"), foreign=True
    )),
    "other beginnings in an index": _history("FINDING#"),
    "it filters by what they are": _history("CREATED#", filters=(Given("EntityType"),), route=True),
    "it asks for one": _history("CREATED#", keys=(Given("GSI1SK"),), route=True),
}  # fmt: skip
