"""Versions that follow the last one read."""

from tests.design.builders import design, entity, number, put, table, text, update


def _reviews(*, numbered="last", writes=(), lock=False, foreign=False, name="version", **more):
    return design(
        table(
            entity(
                "Review", text("review_id"), number(name, numbered=numbered, lock=lock), text("body"), pk="REVIEW#{review_id}",
                sk=f"VERSION#{{{name}:06}}", writes=writes, **more,
            ),
            foreign=foreign,
        )
    )  # fmt: skip


FOUND = _reviews(writes=[put()])
PLACES = ["Review.version"]
CLEAN = _reviews(writes=[put()], immutable=True)
ALSO = {
    "other code's, whatever it calls it": _reviews(immutable=True, foreign=True),
    "other code's that puts as it likes": _reviews(writes=[put()], immutable=True, foreign=True),
    "one put of two": _reviews(writes=[put(conditional=True), put("import it")], foreign=True),
    "an update sets it": _reviews(numbered=None, writes=[update("body", "version")]),
    "an update sets the revision": _reviews(
        numbered=None, name="doc_revision", writes=[update("body", "doc_revision")]
    ),
}
ALSO_CLEAN = {
    "other code's, put on a new key": _reviews(writes=[put(conditional=True)], immutable=True, foreign=True),
    "other code's, on the version it read": _reviews(
        numbered=None, writes=[update("body", "version", conditional=True)], foreign=True
    ),
    "a lock": _reviews(lock=True),
    "a lock that an update sets": _reviews(numbered=None, lock=True, writes=[update("body", "version")]),
    "counted up atomically": _reviews(numbered=None, writes=[update("body", adds=("version",))]),
    "nobody updates it": _reviews(numbered=None, writes=[update("body")]),
}
