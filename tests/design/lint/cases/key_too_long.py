"""Paths in sort keys."""

from tests.design.builders import choice, design, entity, gsi, key, query, table, text

_BY_PATH = gsi("by_path", "GSI1PK", "GSI1SK")
_BY_BOTH = gsi("by_both", ["host", "path"], ["kind"])


def _files(length, **more):
    return design(
        table(
            entity(
                "File", text("owner"), text("path", length_max=length), choice("kind", "a", "b"), pk="OWNER#{owner}",
                **{"sk": "FILE#{path}", **more},
            ),
            indexes=[_BY_PATH],
        )
    )  # fmt: skip


def _both(length):
    return design(
        table(
            entity(
                "Page", text("host", length_max=1_000), text("path", length_max=length), text("kind"), pk="PAGE#{kind}",
                keys=[key(_BY_BOTH)], patterns=[query("ByBoth", _BY_BOTH, ("host", "path"), "kind")],
            ),
            indexes=[_BY_BOTH],
        )
    )  # fmt: skip


FOUND = _files(1_020)
PLACES = ["File.Key"]
CLEAN = _files(1_019)
ALSO = {
    "two attributes together": _both(1_500),
    "in an index": _files(
        2_048,
        sk="FILE#{owner}",
        keys=[key(_BY_PATH, "PATH#{path}", "{kind}")],
        patterns=[query("ByPath", _BY_PATH, "path", "kind")],
    ),
}
ALSO_CLEAN = {
    "two attributes that fit together": _both(1_048),
    "no one says how long": _files(None),
    "a partition key may be longer": _files(2_000, sk="FILE#{owner}", keys=[key(_BY_PATH, "PATH#{path}")]),
}
