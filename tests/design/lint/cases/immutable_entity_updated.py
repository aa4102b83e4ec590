"""Statistics that are called immutable and counted up."""

from tests.design.builders import delete, design, entity, number, put, table, text, update


def _statistics(*writes, immutable=True):
    return design(
        table(
            entity(
                "Statistics",
                text("stack_id"),
                number("reviews"),
                pk="STACK#{stack_id}",
                sk="STATS",
                writes=writes,
                immutable=immutable,
            ),
            foreign=True,
        )
    )


_COUNT = update(title="count a review", adds=("reviews",))

FOUND = _statistics(put("begin"), _COUNT)
PLACES = ["Statistics: count a review"]
CLEAN = _statistics(put("begin"), _COUNT, immutable=False)
ALSO = {"put again": _statistics(put("store the sums", changes=("reviews",)))}
ALSO_CLEAN = {"put once, and deleted when it is old": _statistics(put("store it"), delete("clean up"))}
