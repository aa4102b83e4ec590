"""Items near 400 KB, and large ones of which a little is changed often."""

from tests.design.builders import design, entity, moment, number, put, table, text, update


def _profiles(*writes, bio=None, **more):
    return design(
        table(
            entity(
                "Profile", text("user_id"), text("bio", typical_bytes=bio), number("views"), moment("seen_at"),
                pk="USER#{user_id}", writes=writes, **more,
            )
        )
    )  # fmt: skip


FOUND = _profiles(put(item_bytes=400_000))
PLACES = ["Profile"]
ALSO = {
    "its fields alone are too much": _profiles(bio=500_000),
    "read as one of 350 KB": _profiles(primary={"item_bytes": 350 * 1024}),
    "a count in a profile of 10 KB": _profiles(
        update(title="count a view", adds=("views",), per_second=300, item_bytes=10_000)
    ),
    "the same in transactions, less often": _profiles(
        update("views", "seen_at", per_second=1, item_bytes=10_000, transactional=True)
    ),
}
CLEAN = _profiles(put(item_bytes=320_000))
ALSO_CLEAN = {
    "changed once an hour": _profiles(
        update(title="count a view", adds=("views",), per_second=1 / 3600, item_bytes=10_000)
    ),
    "what changes is the large part": _profiles(update("bio", per_second=300, item_bytes=10_000)),
    "nobody knows how often": _profiles(update("views", item_bytes=10_000)),
    "small": _profiles(update("views", per_second=300, item_bytes=2_000)),
}
