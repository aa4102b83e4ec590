"""Readings of devices in a table with a local index."""

from tests.design.builders import design, entity, gsi, key, lsi, moment, number, put, table, text

_LOCAL = lsi("by_value", "value")
_GLOBAL = gsi("by_value", "GSI1PK", "value")


def _readings(items, devices=200, *, index=_LOCAL, **more):
    keys = [key(index, "DEVICE#{device}", "value")]
    return design(
        table(
            entity(
                "Reading", text("device", distinct=devices), moment("at"), number("value"), pk="DEVICE#{device}", sk="{at}",
                keys=keys, writes=[put(item_bytes=300)], items=items, **more,
            ),
            indexes=[index],
        )
    )  # fmt: skip


FOUND = _readings(5_000_000_000)
PLACES = ["Reading"]
CLEAN = _readings(1_000_000_000)
ALSO = {"half full": _readings(2_000_000_000)}
ALSO_CLEAN = {
    "a global index": _readings(5_000_000_000, index=_GLOBAL),
    "nobody says how many": _readings(None),
    "nobody says of how many devices": _readings(5_000_000_000, None),
    "spread over shards": _readings(5_000_000_000, shards=10),
}
