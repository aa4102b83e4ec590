"""A policy that may rewrite history."""

from tests.design.builders import design, entity, number, table, text
from tests.design.policies import allow, deny, leading, policy

_VERSION = entity(
    "Version", text("doc"), number("version"), pk="HISTORY#{doc}", sk="{version:06}", immutable=True
)
_CURRENT = entity("Document", text("doc"), pk="DOC#{doc}")


def _with(*statements, entities=(_VERSION, _CURRENT)):
    return design(table(*entities), policies=[policy(*statements)])


_HISTORY = leading("HISTORY#*", operator="ForAnyValue:StringLike", null=False)

FOUND = _with(allow("PutItem UpdateItem DeleteItem", "shop"))
PLACES = ["app"]
CLEAN = _with(allow("PutItem GetItem", "shop"))
ALSO = {
    "every action": _with(allow("dynamodb:*", "shop")),
    "by any key": _with(allow("DeleteItem", "shop", when=leading("*"))),
    "by its key": _with(allow("BatchWriteItem", "shop", when=leading("HISTORY#*"))),
    "a denial of something else": _with(
        allow("UpdateItem", "shop"), deny("DeleteItem", "shop", when=_HISTORY)
    ),
}
ALSO_CLEAN = {
    "other keys alone": _with(allow("UpdateItem DeleteItem", "shop", when=leading("DOC#*"))),
    "denied": _with(allow("UpdateItem", "shop"), deny("UpdateItem DeleteItem", "shop", when=_HISTORY)),
    "another table": _with(allow("UpdateItem", "shop-restored-1")),
    "no policy can tell them apart": _with(
        allow("UpdateItem", "shop"),
        entities=(
            entity("Event", text("doc"), text("at"), pk="DOC#{doc}", sk="EVENT#{at}", immutable=True),
            _CURRENT,
        ),
    ),
}
