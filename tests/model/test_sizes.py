"""Sizes of items and of index entries, from what a design declares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.limits import STORAGE_OVERHEAD_BYTES
from tavola.model.document import FieldDesign, TableDesign
from tavola.model.sizes import (
    entry_bytes,
    item_bytes,
    item_size,
    projected_names,
    stored_entry_bytes,
    stored_item_bytes,
    value_bytes,
)
from tests.design.builders import choice, entity, gsi, key, listed, moment, number, put, query, table, text

THIN = gsi("thin", "g1pk", "g1sk", projection=("status",))
WHOLE = gsi("whole", "g2pk", "g2sk")
KEYS = gsi("keys", "g3pk", "g3sk", projection="KEYS_ONLY")


def shop(item: int | None = None, on_index: int | None = None, **body: int) -> TableDesign:
    """A table of tickets in three indexes."""
    return table(
        entity(
            "Ticket",
            text("ticket_id"),
            choice("status", "NEW", "DONE"),
            text("body", **body),
            pk="TICKET#{ticket_id}",
            keys=[key(index, "STATUS#{status}", "{ticket_id}") for index in (THIN, WHOLE, KEYS)],
            patterns=[query("Thin", THIN, "status", item_bytes=on_index)],
            writes=[put(item_bytes=item)],
        ),
        indexes=[THIN, WHOLE, KEYS],
    )


@pytest.mark.parametrize(
    ("field", "size"),
    [
        (text("name", typical_bytes=77), 77),
        (choice("status", "NEW", "DONE!"), 4),
        (moment("at"), 27),
        (number("count"), 3),
        (text("code", length_max=5), 5),
        (listed("tags", length_max=0), 3),
    ],
)
def test_a_value_is_as_large_as_it_is_declared(field: FieldDesign, size: int) -> None:
    """What is declared of a field counts, else what its type and its bounds say."""
    assert value_bytes(field) == size


def test_a_declared_item_is_believed() -> None:
    """The size that a write declares is the item's, and its attributes add up to it."""
    found = shop(item=1_500)

    size = item_size(found, found.entities[0])

    assert size.declared
    assert size.total == 1_500
    assert sum(size.attributes.values()) == pytest.approx(1_500)


def test_an_undeclared_item_is_guessed_from_its_fields() -> None:
    """Names, values, keys and the tag count, each index's key too."""
    found = shop(typical_bytes=1_000)

    size = item_size(found, found.entities[0])

    assert not size.declared
    assert size.attributes["body"] == len("body") + 1_000
    assert {"pk", "sk", "g1pk", "g2pk", "g3pk", "_entity"} <= set(size.attributes)
    assert size.total == sum(size.attributes.values())


def test_what_is_large_is_in_no_key() -> None:
    """Of an item of which only the whole is declared, the text that no key is made of is the large one."""
    found = shop(item=10_000)

    size = item_size(found, found.entities[0])

    assert size.attributes["body"] > 9_000
    assert entry_bytes(found, found.entities[0], THIN) < 300


def test_an_entry_has_its_keys_and_what_is_projected() -> None:
    """KEYS_ONLY has the two keys, INCLUDE the named attributes besides, ALL the whole item."""
    found = shop(item=2_000)
    ticket = found.entities[0]
    names = tuple(item_size(found, ticket).attributes)

    assert set(projected_names(found, KEYS, names)) == {"pk", "sk", "g3pk", "g3sk"}
    assert set(projected_names(found, THIN, names)) == {"pk", "sk", "g1pk", "g1sk", "status"}
    assert entry_bytes(found, ticket, KEYS) < entry_bytes(found, ticket, THIN) < 2_000
    assert entry_bytes(found, ticket, WHOLE) == item_bytes(found, ticket) == 2_000


def test_a_pattern_says_how_large_its_entries_are() -> None:
    """Where a pattern on an index declares a size, that is its entry's."""
    found = shop(item=2_000, on_index=444)

    assert entry_bytes(found, found.entities[0], THIN) == 444


def test_storage_adds_a_hundred_bytes_to_each() -> None:
    """An item and each of its entries are stored with what DynamoDB adds; a global table's item with more."""
    found = shop(item=2_000)
    ticket = found.entities[0]

    assert stored_item_bytes(found, ticket) == 2_000 + STORAGE_OVERHEAD_BYTES
    assert stored_entry_bytes(found, ticket, WHOLE) == 2_000 + STORAGE_OVERHEAD_BYTES
    copied = table(ticket, indexes=[THIN, WHOLE, KEYS], replicas=("eu-west-1",))
    assert stored_item_bytes(copied, ticket) == 2_000 + STORAGE_OVERHEAD_BYTES + 48


@st.composite
def fields(draw: st.DrawFn) -> list[FieldDesign]:
    """Fields of every sort: measured, bounded, of any size, of one size."""
    kinds = draw(
        st.lists(st.sampled_from(["measured", "bounded", "free", "listed", "number"]), min_size=1, max_size=6)
    )
    told = []
    for place, kind in enumerate(kinds):
        name = f"{kind}{place}"
        match kind:
            case "measured":
                told.append(text(name, typical_bytes=draw(st.integers(0, 3_000))))
            case "bounded":
                told.append(text(name, length_max=draw(st.integers(0, 600))))
            case "free":
                told.append(text(name))
            case "listed":
                told.append(listed(name, length_max=draw(st.sampled_from([None, 0, 3]))))
            case _:
                told.append(number(name))
    return told


@given(fields(), st.integers(1, 9_000), st.integers(0, 3_000))
def test_no_part_of_a_larger_item_is_smaller(found: list[FieldDesign], size: int, more: int) -> None:
    """Whatever is known of the fields, each attribute grows with the item, and they add up to it; so does every entry."""

    def made(item: int) -> TableDesign:
        keys = [key(index, "STATUS#{status}", "{ticket_id}") for index in (some, KEYS)]
        fields_ = (text("ticket_id"), choice("status", "NEW", "DONE"), *found)
        return table(
            entity("Ticket", *fields_, pk="{ticket_id}", keys=keys, writes=[put(item_bytes=item)]),
            indexes=[some, KEYS],
        )

    some = gsi("some", "g1pk", "g1sk", projection=tuple(field.attribute for field in found[::2]))
    small, large = made(size), made(size + more)
    parts, larger = (item_size(each, each.entities[0]).attributes for each in (small, large))

    assert sum(parts.values()) == pytest.approx(size)
    assert all(larger[name] >= part - 1e-6 for name, part in parts.items())
    for index in (some, KEYS):
        assert entry_bytes(small, small.entities[0], index) <= entry_bytes(large, large.entities[0], index)


def test_what_passes_the_measured_parts_does_not_shrink_the_others() -> None:
    """Where an item becomes larger than its measured parts, the rest of it does not fall to a byte each."""
    lists = tuple(f"l{number_}" for number_ in range(30))
    thin = gsi("thin", "g1pk", "g1sk", projection=lists)

    def entry(size: int) -> int:
        found = table(
            entity(
                "Ticket", text("ticket_id"), text("fixed", typical_bytes=2_000), *map(listed, lists), pk="{ticket_id}",
                keys=[key(thin, "x", "{ticket_id}")], writes=[put(item_bytes=size)],
            ),
            indexes=[thin],
        )  # fmt: skip
        return entry_bytes(found, found.entities[0], thin)

    sizes = [entry(size) for size in range(500, 6_000, 5)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 3_000


@given(st.integers(1, 400_000), st.integers(1, 10_000))
def test_a_larger_item_has_no_smaller_entry(size: int, more: int) -> None:
    """Entries grow with the items that they are of."""
    small, large = shop(item=size), shop(item=min(409_600, size + more))

    for index in (THIN, WHOLE, KEYS):
        assert entry_bytes(small, small.entities[0], index) <= entry_bytes(large, large.entities[0], index)
