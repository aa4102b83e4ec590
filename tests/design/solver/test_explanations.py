"""Explanations: a pattern's name is used for what follows it, and for nothing else; reasons are true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola.design.solver import SolvedDesign, as_text, solve
from tavola.model.document import EntityDesign, FieldDesign, Given, Need
from tests.design.builders import choice, design, moment, number, text
from tests.design.solver.test_questions import asked, kept, put

THING = kept(
    "Thing",
    text("tid"),
    text("cust"),
    text("region"),
    choice("status", "A", "B"),
    moment("at"),
    writes=[put(1)],
)
ONE = asked("thing", "Thing", "tid", single=True)


def told(*entities: EntityDesign, needs: list[Need]) -> SolvedDesign:
    """The solution of some entities."""
    return solve(design(views=entities, needs=needs))


def patterns(*entities: EntityDesign, needs: list[Need]) -> list[str]:
    """The names of the patterns that a solution follows, the table's first."""
    return [choice.pattern for choice in told(*entities, needs=needs).choices]


@pytest.mark.parametrize(
    ("where", "order", "pattern"),
    [
        ("cust", (), "Secondary Index"),
        ("cust", "at", "Secondary Index"),
        ("cust", ("at", "tid"), "Secondary Index"),
        ("cust", "status", "Secondary Index"),
        ("status", "at", "GSI with Status Prefix"),
        (("cust", "status"), "at", "GSI with Status Prefix"),
        (("cust", Given("status", "=", "A")), "at", "Sparse Indexes"),
    ],
)
def test_an_index_of_one_entity_is_called_what_it_is(where: object, order: object, pattern: str) -> None:
    """Nothing is overloaded by one entity; a status is one where it is asked for with equality; levels are fixed ones."""
    assert patterns(THING, needs=[ONE, asked("some", "Thing", where, order)]) == ["Simple Key", pattern]


def test_levels_that_are_fixed_are_a_composite_sort_key() -> None:
    """By customer, by customer and region, and on: one key, asked at each of its levels."""
    needs = [
        ONE,
        asked("of cust", "Thing", "cust", "region"),
        asked("there", "Thing", ("cust", "region"), "at"),
    ]

    assert patterns(THING, needs=needs) == ["Simple Key", "Composite Sort Key"]


def test_a_table_with_a_sort_key_has_no_levels_by_that_alone() -> None:
    """One attribute that sorts is a partition and sort key; its identity in two attributes is no text of both."""
    session = kept("Session", text("user_id"), text("session_id"), writes=[put(1)])
    found = told(session, needs=[asked("session", "Session", ("user_id", "session_id"), single=True)])

    assert [choice.pattern for choice in found.choices] == ["Partition and Sort Key"]
    assert found.design.tables[0].settings.key_names == ("user_id", "session_id")


@pytest.mark.parametrize("order", [(), "since"])
def test_a_relation_is_an_adjacency_list_whatever_its_order(order: object) -> None:
    """Both halves of what tells it apart are asked by themselves; a list by a time or a status is none."""
    follow = kept("Follow", text("a"), text("b"), moment("since"), writes=[put(1)])
    needs = [
        asked("follow", "Follow", ("a", "b"), single=True),
        asked("by a", "Follow", "a", order),
        asked("by b", "Follow", "b", order),
    ]
    line = kept("Line", text("order_id"), moment("at"), writes=[put(1)])
    lines = [
        asked("line", "Line", ("order_id", "at"), single=True),
        asked("of order", "Line", "order_id"),
        asked("of then", "Line", "at"),
    ]

    assert patterns(follow, needs=needs).count("Adjacency List") == 1
    assert "Adjacency List" not in patterns(line, needs=lines)


def test_a_relation_in_a_shared_index_is_said_to_be_one() -> None:
    """The index is overloaded, and its sentence says that one of its entities is asked from both sides."""
    user = kept("User", text("user_id"), text("city"), writes=[put(1)])
    follow = kept("Follow", text("user_id"), text("whom"), text("note"), writes=[put(1)])
    needs = [
        asked("user", "User", "user_id", single=True),
        asked("of city", "User", "city", "user_id"),
        asked("follow", "Follow", ("user_id", "whom"), single=True),
        asked("following", "Follow", "user_id", "whom"),
        asked("followers", "Follow", "whom", "user_id"),
    ]
    found = solve(design(views=[user, follow], needs=needs), style="overloaded")

    assert found.choices[1].pattern == "GSI Overloading"
    assert "Follow is read from both sides" in found.choices[1].sentence


def entities(one: FieldDesign, other: FieldDesign, *more: FieldDesign) -> tuple[EntityDesign, EntityDesign]:
    """An invoice and a sensor, each with its id."""
    return kept("Invoice", one, text("sum")), kept("Sensor", other, text("place"), *more)


def test_an_id_that_both_have_names_nobody() -> None:
    """They stay apart; `invoice_id` does name an invoice, and nothing asked together is no single-table design."""
    needs = [asked("i", "Invoice", "id", single=True), asked("s", "Sensor", "id", single=True)]
    apart = told(*entities(text("id"), text("id")), needs=needs)
    named = told(*entities(text("id"), text("id"), text("invoice_id")), needs=needs)

    assert len(apart.design.tables) == 2
    assert [choice.pattern for choice in named.choices] == ["Shared Table"]
    assert "Sensor refers to Invoice by invoice_id" in named.choices[0].sentence


def test_every_reason_for_one_table_is_told() -> None:
    """Not the last one alone."""
    post = kept("Post", text("post_id"), text("author_id"))
    needs = [
        asked("a", "Author", "author_id", single=True),
        asked("p", "Post", "post_id", single=True),
        asked("c", "Comment", "comment_id", single=True),
    ]
    found = told(
        kept("Author", text("author_id")),
        post,
        kept("Comment", text("comment_id"), text("post_id")),
        needs=needs,
    )

    assert (
        "Post refers to Author by author_id; Comment refers to Post by post_id" in found.choices[0].sentence
    )


def test_the_page_says_which_value_lets_items_in() -> None:
    """And not that the field says so."""
    found = told(THING, needs=[ONE, asked("some", "Thing", ("cust", Given("status", "in", ["A", "B"])))])

    assert "where status is A or B" in as_text(found)


def test_an_index_whose_keys_are_all_there_is_holds_keys_alone() -> None:
    """At the same price it writes less, and no alternative is said to lack what it has."""
    pair = kept("Pair", text("left"), text("right"), writes=[put(1)])
    found = told(pair, needs=[asked("pair", "Pair", "left", single=True), asked("of right", "Pair", "right")])

    assert found.design.tables[0].indexes[0].projection == "KEYS_ONLY"
    assert "cheaper" not in as_text(found)


def test_what_was_not_asked_for_is_no_reason() -> None:
    """`auto` may take native keys: that they were left for their heat is said so."""
    sensor = replace(text("sensor_id"), distinct=10)
    reading = kept("Reading", sensor, moment("at"), writes=[put(20_000)])
    needs = [
        asked("reading", "Reading", ("sensor_id", "at"), single=True),
        asked("some", "Reading", "sensor_id", "at", items=50),
    ]

    assert "--style auto was asked for" not in as_text(told(reading, needs=needs))


def test_a_consistent_order_is_a_local_index_of_the_item_s_own_attribute() -> None:
    """Also where no other question is by the partition; and six of them are refused, since a table has five."""
    letters = [text(letter) for letter in "abcdef"]
    line = kept("Line", text("order_id"), number("line"), *letters, writes=[put(1)])
    one = asked("line", "Line", ("order_id", "line"), single=True)
    by = [asked(f"by {f.name}", "Line", "order_id", f.name, items=9, consistent=True) for f in letters]
    found = told(line, needs=[one, by[0]])
    five = told(line, needs=[one, *by[:5]])

    (index,) = found.design.tables[0].indexes
    assert (index.local, index.hash, index.range) == (True, ("order_id",), ("a",))
    assert [choice.pattern for choice in found.choices] == ["Partition and Sort Key", "Local Index"]
    assert sum(index.local for index in five.design.tables[0].indexes) == 5
    with pytest.raises(Exception, match="6 local indexes, and the limit is 5"):
        told(line, needs=[one, *by])


def test_another_key_of_the_same_fields_is_told_apart() -> None:
    """Both fields in the partition key are not the partition and sort key that was chosen, and do not read like it."""
    review = kept("Review", text("product"), text("review"), moment("at"), writes=[put(4)])
    needs = [
        asked("review", "Review", ("product", "review"), single=True),
        asked("reviews", "Review", "product", "at"),
    ]

    instead = [each.what for each in told(review, needs=needs).alternatives if each.what.startswith("Review")]

    assert all("keyed by product and review" not in what for what in instead)
    assert any("product and review in the partition key, and no sort key" in what for what in instead)
