"""A handler that returns what failed, and a mapping that does not read it."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, table, text


def _read_by(**settings):
    return design(
        table(
            entity("Order", text("order_id"), pk="ORDER#{order_id}"),
            consumers=[Consumer("numbers", **settings)],
            stream="NEW_AND_OLD_IMAGES",
        )
    )


FOUND = _read_by(returns_batch_item_failures=True, report_batch_item_failures=False)
PLACES = ["numbers"]
CLEAN = _read_by(returns_batch_item_failures=True)
ALSO = {"a mapping that would not read any": _read_by(report_batch_item_failures=False)}
ALSO_CLEAN = {"the default reads what any handler returns": _read_by()}
