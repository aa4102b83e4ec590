"""Three functions on one stream."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, table, text


def _read_by(*consumers, **more):
    told = {"stream": "NEW_AND_OLD_IMAGES", **more}
    return design(
        table(entity("Order", text("order_id"), pk="ORDER#{order_id}"), consumers=consumers, **told)
    )


FOUND = _read_by(Consumer("search"), Consumer("mail"), Consumer("audit"))
PLACES = ["Shop"]
CLEAN = _read_by(Consumer("search"), Consumer("mail"))
ALSO = {
    "two of a global table": _read_by(Consumer("search"), Consumer("mail"), replicas=("eu-west-1",)),
    "a batch too large": _read_by(Consumer("search", batch_size=10_001)),
    "a window too long": _read_by(Consumer("search", window_s=301)),
    "too many at once": _read_by(Consumer("search", parallelization=11)),
    "too young an age": _read_by(Consumer("search", max_age_s=59)),
    "too long a run": _read_by(Consumer("search", timeout_s=901)),
    "six filters": _read_by(Consumer("search", filters=tuple({"eventName": ["INSERT"]} for _ in range(6)))),
    "a filter too long": _read_by(Consumer("search", filters=({"eventName": ["x" * 4_096]},))),
}
ALSO_CLEAN = {
    "one of a global table": _read_by(Consumer("search"), replicas=("eu-west-1",)),
    "all at their bounds": _read_by(
        Consumer("search", batch_size=10_000, window_s=300, parallelization=10, max_age_s=60, retries=10_000)
    ),
}
