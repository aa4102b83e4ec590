"""A relation that can be found from one end."""

from tavola.model.document import Need
from tests.design.builders import design, entity, gsi, key, put, table, text

_GSI1 = gsi("GSI1", "GSI1PK", "GSI1SK")
_TURNED = key(_GSI1, "USER#{followed}", "FOLLOWER#{follower}")


def _follows(name, *keys, **more):
    return entity(
        name,
        text("follower"),
        text("followed"),
        pk="USER#{follower}",
        sk="FOLLOWS#{followed}",
        keys=keys,
        **more,
    )


_FOLLOWERS = Need("followers", "Follow", "followed")

FOUND = design(table(_follows("Follow")), needs=[_FOLLOWERS])
PLACES = ["followers"]
CLEAN = design(
    table(_follows("Follow", _TURNED), indexes=[_GSI1]),
    needs=[_FOLLOWERS, Need("follows", "Follow", "follower")],
)
ALSO = {
    "some carry it": design(table(_follows("Follow"), _follows("Followed", _TURNED), indexes=[_GSI1], foreign=True)),
    "some writes do": design(
        table(
            _follows("Follow", _TURNED, writes=[put("follow", rewrites=("GSI1PK", "GSI1SK")), put("import a follow")]),
            indexes=[_GSI1],
            foreign=True,
        )
    ),
}  # fmt: skip
