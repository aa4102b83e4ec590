"""Questions: entities without keys, and needs; what is found for them, and what is refused with a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tavola.design.lint.rule import LintContext
from tavola.design.solver import SolverError, solve
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    Given,
    Need,
    WritePattern,
    check_references,
    needs_of,
)
from tests.design.builders import choice, date, design, moment, number, text, view
from tests.design.solver.measuring import differences


def kept(
    name: str, *fields: FieldDesign, writes: Sequence[WritePattern] = (), items: int = 1_000
) -> EntityDesign:
    """An entity without a key."""
    return replace(view(name, *fields), writes=tuple(writes), items=items)


def asked(
    name: str, entities: Any, where: Any = (), order: Any = (), *, single: bool = False, **access: Any
) -> Need:
    """A need with its rate."""
    return Need(
        name, entities, where, order, AccessPattern(name, **{"per_second": 5, **access}), single=single
    )


def put(rate: float, **more: Any) -> WritePattern:
    """A write of new items."""
    return WritePattern("put", "put", per_second=rate, item_bytes=500, **more)


TICKET = kept(
    "Ticket",
    text("ticket_id"), text("customer_id"), choice("status", "NEW", "DONE"), moment("created_at"), text("subject"),
    writes=[put(5)],
)  # fmt: skip
BY_ID = asked("ticket", "Ticket", "ticket_id", single=True)
OF_CUSTOMER = asked("tickets of a customer", "Ticket", "customer_id", "created_at", items=20)


def solved(*entities: EntityDesign, needs: Sequence[Need]) -> Any:
    """The solution of some entities, checked on the engine."""
    told = design(views=entities, needs=needs)
    found = solve(told)
    check_references(found.design)
    assert differences(told, found.design) == []
    return found


def keys_in(design: Design) -> dict[str, list[str]]:
    """Every key of a design, as its parts are written."""
    return {
        f"{entity.name}.{key.index or 'table'}": [
            source.field or (source.template.source if source.template else "") for source in key.sources
        ]
        for table in design.tables
        for entity in table.entities
        for key in (entity.key, *entity.keys)
        if key is not None
    }


def test_one_entity_is_keyed_by_its_own_attributes() -> None:
    """Alone in its table it needs no template, and another question gives one index of its attributes."""
    found = solved(TICKET, needs=[BY_ID, OF_CUSTOMER])

    assert keys_in(found.design) == {
        "Ticket.table": ["ticket_id"], "Ticket.tickets_of_a_customer": ["customer_id", "created_at"],
    }  # fmt: skip
    assert found.before is None


def test_two_questions_share_an_index_where_one_key_serves_both() -> None:
    """By customer and status, and by customer alone: the second is the first asked at its first level."""
    needs = [
        BY_ID,
        asked("of status", "Ticket", ("customer_id", "status"), "created_at"),
        asked("of customer", "Ticket", "customer_id", "status"),
    ]
    found = solved(TICKET, needs=needs)

    (index,) = found.design.tables[0].indexes
    assert (index.hash, index.range) == (("customer_id",), ("status", "created_at"))


def test_a_range_runs_along_the_sort_key() -> None:
    """A condition that is no equality is the next after those that are."""
    needs = [BY_ID, asked("since", "Ticket", ("customer_id", Given("created_at", ">=")))]
    found = solved(TICKET, needs=needs)

    assert found.design.tables[0].indexes[0].range == ("created_at",)


def test_related_entities_share_a_partition() -> None:
    """What is asked for together is one query over one partition: single-table design."""
    event = kept("Event", text("ticket_id"), moment("at"), text("note"), writes=[put(10)])
    needs = [
        BY_ID,
        asked("event", "Event", ("ticket_id", "at"), single=True),
        asked("timeline", "Event", "ticket_id", "at", items=10),
        asked("ticket with events", ("Ticket", "Event"), "ticket_id", items=11),
    ]
    found = solved(TICKET, event, needs=needs)

    (table,) = found.design.tables
    assert not table.indexes
    assert {entity.key.hash[0].template.source for entity in table.entities} == {"TICKET#{ticket_id}"}
    assert found.choices[0].pattern == "Single-Table Design"


def test_a_relation_asked_from_both_sides_has_an_inverted_index() -> None:
    """Whom somebody follows is the table, and by whom somebody is followed the same turned round."""
    follow = kept("Follow", text("follower"), text("followed"), writes=[put(20)])
    needs = [
        asked("follow", "Follow", ("follower", "followed"), single=True),
        asked("following", "Follow", "follower", "followed", items=50),
        asked("followers", "Follow", "followed", "follower", items=50),
    ]
    found = solved(follow, needs=needs)

    assert keys_in(found.design)["Follow.followers"] == ["followed", "follower"]
    assert found.choices[1].pattern == "Adjacency List"


def test_what_is_written_too_fast_for_a_partition_is_sharded() -> None:
    """3,000 writes a second under three values are more than a partition of 1,000 takes, with some room."""
    point = kept(
        "Point", text("point_id"), choice("metric", "a", "b", "c"), moment("at"), writes=[put(6_000)]
    )
    needs = [
        asked("point", "Point", "point_id", single=True),
        asked("points of a metric", "Point", "metric", "at", items=20),
    ]
    found = solved(point, needs=needs)

    (key,) = found.design.tables[0].entities[0].keys
    assert key.shards is not None
    assert key.shards.count == 3
    assert found.choices[1].pattern == "Composite Key + Sharding"


def test_of_unknown_many_values_heat_is_said_and_not_guessed() -> None:
    """Nobody says how many metrics there are: there is a note, and no shards."""
    point = kept("Point", text("point_id"), text("metric"), moment("at"), writes=[put(6_000)])
    needs = [
        asked("point", "Point", "point_id", single=True),
        asked("points of a metric", "Point", "metric", "at", items=20),
    ]
    found = solved(point, needs=needs)

    assert found.design.tables[0].entities[0].keys[0].shards is None
    assert any("distinct=" in note for note in found.notes)


def test_a_subset_has_a_sparse_index() -> None:
    """Of items that are always asked for by one value, only these are in the index."""
    product = kept("Product", text("product_id"), choice("state", "shown", "featured"), writes=[put(1)])
    needs = [
        asked("product", "Product", "product_id", single=True),
        asked("featured", "Product", Given("state", "=", {"S": "featured"}), "product_id", items=4),
    ]
    found = solved(product, needs=needs)

    (key,) = found.design.tables[0].entities[0].keys
    assert [member.field for member in key.members] == ["state"]
    assert found.choices[1].pattern == "Sparse Indexes"


def test_a_question_that_must_see_every_write_is_on_the_table_or_in_a_local_index() -> None:
    """A global index lags; so the second order of a partition is a local one."""
    line = kept("Line", text("order_id"), number("line"), moment("added_at"), writes=[put(1)])
    needs = [
        asked("line", "Line", ("order_id", "line"), single=True),
        asked("lines", "Line", "order_id", "line", items=10, consistent=True),
        asked("lines by time", "Line", "order_id", "added_at", items=10, consistent=True),
    ]
    found = solved(line, needs=needs)

    (index,) = found.design.tables[0].indexes
    assert index.local


def test_entities_that_share_nothing_have_tables_of_their_own() -> None:
    """A device names no ticket, and nothing is asked of both."""
    device = kept("Device", text("serial"), date("bought_on"))
    found = solved(TICKET, device, needs=[BY_ID, asked("device", "Device", "serial", single=True)])

    assert [table.label for table in found.design.tables] == ["Tickets", "Devices"]


def test_few_fields_read_often_are_projected_and_many_read_seldom_are_fetched() -> None:
    """What an index holds is what its price says: attributes that are read, or keys alone where reads are few."""
    large = replace(TICKET, writes=(WritePattern("put", "put", per_second=50, item_bytes=8_000),))
    often = solved(
        large, needs=[BY_ID, replace_access(OF_CUSTOMER, reads=("ticket_id", "subject"), per_second=500)]
    )
    seldom = solved(large, needs=[BY_ID, replace_access(OF_CUSTOMER, per_second=0.1)])

    assert often.design.tables[0].indexes[0].projection == ("subject",)
    assert seldom.design.tables[0].indexes[0].projection == "KEYS_ONLY"
    assert seldom.design.tables[0].entities[0].patterns[0].hydrate


def replace_access(need: Need, **more: Any) -> Need:
    """Return a need with another access pattern."""
    assert need.access is not None
    return Need(
        need.name, need.entities, need.where, need.order, replace(need.access, **more), single=need.single
    )


def test_without_rates_everything_counts_the_same_and_that_is_said() -> None:
    """Nothing is refused for want of numbers."""
    needs = [Need("ticket", "Ticket", "ticket_id", single=True), Need("of customer", "Ticket", "customer_id")]
    bare = replace(TICKET, writes=(WritePattern("put", "put"),))
    found = solved(bare, needs=needs)

    assert any("is assumed to run once per second" in note for note in found.notes)
    assert found.month.total > 0


@pytest.mark.parametrize(
    ("entities", "needs", "words"),
    [
        ([], [], "the design has no entities"),
        ([TICKET], [], "the design has no access patterns"),
        ([TICKET], [asked("of nobody", "Customer", "customer_id")], "unknown entity 'Customer'"),
        ([TICKET], [BY_ID, asked("by colour", "Ticket", "colour")], "Ticket has no field 'colour'"),
        ([TICKET], [BY_ID, asked("by colour", "Ticket", (), "colour")], "Ticket has no field 'colour'"),
        ([TICKET], [OF_CUSTOMER], "no fields identify one item"),
        ([TICKET], [BY_ID, asked("twice", "Ticket", ("status", "status"))], "has two conditions on status"),
        ([TICKET], [BY_ID, asked("in it", "Ticket", Given("subject", "contains"))], "no key can serve contains on subject"),
        (
            [kept("Shelf", text("shelf_id"), replace(text("books"), type="list[text]", tags=("L",), key_kind=None))],
            [asked("shelf", "Shelf", "shelf_id", single=True), asked("by books", "Shelf", "books")],
            "Shelf.books is list[text], which cannot be a key",
        ),
        (
            [TICKET],
            [BY_ID, asked("now", "Ticket", "customer_id", consistent=True)],
            "strong consistency needs",
        ),
        (
            [TICKET, kept("Note", text("note_id"), text("ticket_id"))],
            [BY_ID, asked("note", "Note", "note_id", single=True),
             asked("both", ("Ticket", "Note"), "ticket_id", consistent=True)],
            "add it to them",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_solved_is_refused_in_a_sentence(
    entities: list[EntityDesign], needs: list[Need], words: str
) -> None:
    """The place, what is wrong with it and what to do; never a traceback."""
    with pytest.raises(SolverError) as caught:
        solve(design(views=entities, needs=needs))

    assert words in str(caught.value)
    assert ";" in str(caught.value)


def test_a_style_that_is_none_is_refused() -> None:
    """The styles are named."""
    with pytest.raises(SolverError, match="native, overloaded, auto"):
        solve(design(views=[TICKET], needs=[BY_ID]), style="fast")  # type: ignore[arg-type]


FIELDS = ("a", "b", "c", "d", "e")


@settings(max_examples=12, deadline=None)
@drawn(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(FIELDS), max_size=3, unique=True),
            st.lists(st.sampled_from(FIELDS), max_size=3, unique=True),
            st.sampled_from((0.5, 20)),
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True),
    st.sampled_from(("auto", "native", "overloaded")),
)
def test_whatever_is_asked_is_served_by_a_key(
    drawn_needs: list[tuple[list[str], list[str], float]], identity: list[str], style: Any
) -> None:
    """Any needs of an entity: each has a key that answers it with one query, in its order, without a filter."""
    thing = kept("Thing", *(text(name) for name in FIELDS), writes=[put(3)])
    needs = [asked("thing", "Thing", tuple(identity), single=True)]
    for number_, (where, order, rate) in enumerate(drawn_needs):
        run = tuple(name for name in order if name not in where)
        needs.append(asked(f"need {number_}", "Thing", tuple(where), run, per_second=rate, items=10))
    told = design(views=[thing], needs=needs)
    found = solve(told, style=style)

    subject = LintContext(found.design)
    for need in needs_of(told):
        one = set(need.equal_fields) >= set(identity)
        assert any(
            each.operation in ("get", "query") and not each.filtered and (each.ordered or one)
            for each in subject.access_paths(need)
        ), need
    assert differences(told, found.design) == []
