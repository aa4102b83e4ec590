"""Very many small items with long names."""

from tests.design.builders import design, entity, moment, number, put, table, text


def _readings(name, items, size=120):
    return design(
        table(
            entity(
                "Reading", text("device"), moment("at", attribute="at"), number("value", attribute=name), pk="D#{device}",
                sk="{at}", writes=[put(item_bytes=size)], items=items,
            )
        )
    )  # fmt: skip


_LONG = "measurement_temperature_in_degrees_celsius"

FOUND = _readings(_LONG, 5_000_000_000)
PLACES = ["Reading"]
CLEAN = _readings("t", 5_000_000_000)
ALSO_CLEAN = {
    "too few to matter": _readings(_LONG, 1_000_000),
    "nobody says how many": _readings(_LONG, None),
    "a small part of the item": _readings(_LONG, 5_000_000_000, 2_000),
}
