"""A function that fails for ever."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, table, text


def _read_by(**more):
    return design(
        table(
            entity("Order", text("order_id"), pk="ORDER#{order_id}"),
            consumers=[Consumer("numbers", **more)],
            stream="NEW_AND_OLD_IMAGES",
        )
    )


FOUND = _read_by()
PLACES = ["numbers"]
CLEAN = _read_by(retries=3, failures="sqs", bisect=True)
ALSO = {
    "an end, and no place for what failed": _read_by(retries=3, bisect=True),
    "an age, and no place for what failed": _read_by(max_age_s=3_600),
    "an age beyond the stream's": _read_by(max_age_s=604_800, failures="sqs"),
    "a batch goes with its bad record": _read_by(retries=3, failures="sqs"),
    "the rest of a batch goes with a reported record": _read_by(
        retries=3, failures="sqs", returns_batch_item_failures=True
    ),
}
ALSO_CLEAN = {
    "one by one": _read_by(retries=0, failures="s3", batch_size=1),
}
