"""Conditions: none of a need is lost; what no key decides is refused in a sentence, or filtered and said with its price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tavola.design.solver import SolverError, solve
from tavola.errors import TavolaError
from tavola.model.document import Design, EntityDesign, FieldDesign, Given, Need
from tests.design.builders import choice, design, moment, number, text
from tests.design.solver.measuring import differences
from tests.design.solver.test_questions import asked, kept, keys_in, put, solved

POST = kept(
    "Post",
    text("post_id"), text("author"), choice("state", "DRAFT", "OUT"), replace(moment("published_at"), nullable=True),
    moment("at"), number("votes"), text("title"),
    writes=[put(2)],
)  # fmt: skip
ONE = asked("post", "Post", "post_id", single=True)
TICKET = kept(
    "Ticket", text("ticket_id"), choice("status", "NEW", "DONE"), moment("created_at"), writes=[put(5)]
)
EVENT = kept("Event", text("ticket_id"), moment("created_at"), text("note"), writes=[put(5)])
TOGETHER = [
    asked("ticket", "Ticket", "ticket_id", single=True),
    asked("event", "Event", ("ticket_id", "created_at"), single=True),
]


def noted(found: Any, *words: str) -> bool:
    """Whether one note has all of some words."""
    return any(all(word in note for word in words) for note in found.notes)


@pytest.mark.parametrize(
    "given",
    [
        Given("at", ">="),
        Given("at", "between"),
        Given("at", "<", {"S": "2026-08-01T20:00:00.000000Z"}),
        Given("title", "begins_with"),
        Given("title", "begins_with", "title#00"),
        Given("published_at", ">"),
    ],
    ids=str,
)
def test_a_range_runs_along_the_key_whether_its_value_is_known_or_not(given: Given) -> None:
    """A constant range was dropped once; and a range leaves out items without the field, as it should."""
    found = solved(POST, needs=[ONE, asked("some", "Post", ("author", given), items=5)])

    assert keys_in(found.design)["Post.some"][-1] == given.field


def test_both_ends_of_a_field_are_one_stretch_and_its_ends_are_told() -> None:
    """One query takes both ends with their values in; whoever wants them out is told."""
    needs = [ONE, asked("between", "Post", ("author", Given("at", ">"), Given("at", "<")))]
    found = solved(POST, needs=needs)

    assert noted(found, "Need between", "which a query includes (BETWEEN)")


def test_an_order_by_a_field_that_may_be_absent_loses_no_items() -> None:
    """An author's posts are all of them: the index does without the order, and says so."""
    found = solved(POST, needs=[ONE, asked("posts", "Post", "author", "published_at", items=9)])

    assert keys_in(found.design)["Post.posts"] == ["author"]
    assert noted(found, "published_at of Post may be missing", 'Given("published_at", "exists")')


def test_whoever_wants_only_items_with_a_field_says_so_and_gets_the_order() -> None:
    """`exists` is a condition of its own, which makes the index sparse, and which the table's own key never serves."""
    comment = kept("Comment", text("post_id"), text("nr"), replace(moment("pinned_at"), nullable=True))
    found = solved(
        comment,
        needs=[
            asked("comment", "Comment", ("post_id", "nr"), single=True),
            asked("all", "Comment", "post_id"),
            asked("pinned", "Comment", ("post_id", Given("pinned_at", "exists"))),
        ],
    )
    published = asked("out", "Post", ("author", Given("published_at", "exists")), "published_at")
    posts = solved(POST, needs=[ONE, published])

    assert keys_in(found.design)["Comment.pinned"] == ["post_id", "pinned_at"]
    assert keys_in(posts.design)["Post.out"] == ["author", "published_at"]
    assert posts.choices[1].pattern == "Sparse Indexes"


def test_of_two_ranges_one_is_filtered_and_its_price_is_said() -> None:
    """What is filtered, that it is paid for, and how much the question costs."""
    some = asked("some", "Post", ("author", Given("at", ">="), Given("votes", ">=")), items=40)
    found = solved(POST, needs=[ONE, some])

    assert noted(found, "Need some", "votes is filtered after reading", "are charged too")
    assert noted(found, "Need some reads 40 items per call", "per month")
    (pattern,) = found.design.tables[0].entities[0].patterns
    assert pattern.access.filters == ("votes",)


def test_a_range_beside_what_tells_one_item_is_looked_at_after_reading() -> None:
    """It is a get, and the condition is not forgotten."""
    told = solved(POST, needs=[ONE, asked("late", "Post", ("post_id", Given("at", ">=")), per_second=3)])
    again = solved(POST, needs=[ONE, asked("late", "Post", ("post_id", Given("at", ">=")), single=True)])

    assert noted(told, "Need late", "at is checked after reading")
    assert noted(again, "Need late", "at is filtered after reading")


def test_one_item_of_those_with_a_value_identifies_nothing() -> None:
    """The one draft of an author: a post is not told from others by its author."""
    draft = asked("the draft", "Post", ("author", Given("state", "=", "DRAFT")), single=True)
    with pytest.raises(SolverError, match="no fields identify one item"):
        solve(design(views=[POST], needs=[draft]))


def test_a_range_over_entities_together_is_filtered_and_said() -> None:
    """No stretch of the partition holds those of all: everything is read, and the price says so."""
    file = asked("file", ("Ticket", "Event"), ("ticket_id", Given("created_at", ">")), items=30)
    found = solved(TICKET, EVENT, needs=[*TOGETHER, file])

    assert noted(found, "Need file", "created_at is filtered after reading", "the whole partition is read")
    assert noted(found, "Need file reads 30 items per call")


def test_a_value_that_all_entities_of_a_question_have_decides_in_an_index() -> None:
    """A constant on all of them is kept; the table's own partition, which holds others too, does not serve it."""
    event = replace(EVENT, fields=(*EVENT.fields, choice("status", "NEW", "DONE")))
    file = asked("file", ("Ticket", "Event"), ("ticket_id", Given("status", "=", "NEW")), items=5)
    found = solved(TICKET, event, needs=[*TOGETHER, file])

    assert all(len(entity.keys) == 1 for entity in found.design.tables[0].entities)


def with_type(entity: EntityDesign, found: FieldDesign) -> EntityDesign:
    """The entity with another field of that name."""
    return replace(entity, fields=tuple(found if f.name == found.name else f for f in entity.fields))


FILE = asked("file", ("Ticket", "Event"), "ticket_id")


@pytest.mark.parametrize(
    ("entities", "needs", "words"),
    [
        ([TICKET, EVENT], [*TOGETHER, asked("file", ("Ticket", "Event"), ("ticket_id", Given("status", "=", "NEW")))],
         "Event has no field 'status'"),
        ([TICKET, EVENT], [*TOGETHER, asked("file", ("Event", "Ticket"), ("ticket_id", Given("note", "exists")))],
         "Ticket has no field 'note'"),
        ([TICKET, with_type(EVENT, number("ticket_id"))], [*TOGETHER, FILE], "which have different key encodings"),
        ([TICKET, EVENT], [*TOGETHER, asked("twice", ("Ticket", "Ticket"), "ticket_id")], "names Ticket twice"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("author", ">")))], "has two conditions on author"),
        ([POST], [ONE, asked("x", "Post", (Given("at", ">"), Given("at", ">=")))], "has two conditions on at"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("votes", "begins_with")))], "begins_with does not apply to numbers"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("state", "=", "OTU")))], "cannot be 'OTU'; it is one of DRAFT, OUT"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("title", "=", 5)))], "stored as S, and cannot be"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("state", "=", {"NULL": True})))], "is always present"),
        ([POST], [ONE, asked("x", "Post", ("author", Given("votes", ">", "many")))], "use a value of its type"),
    ],
)  # fmt: skip
def test_conditions_that_no_item_can_meet_are_refused(
    entities: list[EntityDesign], needs: list[Need], words: str
) -> None:
    """The need, what is wrong and what to do, in one sentence."""
    with pytest.raises(SolverError) as caught:
        solve(design(views=entities, needs=needs))

    assert words in str(caught.value)
    assert str(caught.value).startswith("Need ")
    assert ";" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Given("state", "=", {"X": "OPEN"}),
        lambda: Given("state", "in", "OPEN"),
        lambda: Given("at", "between", [1, 2, 3]),
        lambda: Given("at", "exists", 5),
        lambda: Given("at", "=", object()),
        lambda: Given(5),  # type: ignore[arg-type]
        lambda: Need("x", 5),  # type: ignore[arg-type]
        lambda: Need("x", "Post", [5]),  # type: ignore[list-item]
        lambda: Need("x", "Post", "a", [5]),  # type: ignore[list-item]
    ],
)
def test_needs_and_conditions_are_checked_where_they_are_declared(make: Any) -> None:
    """A sentence at the line that is wrong, and no crash of the tools later."""
    with pytest.raises(TavolaError) as caught:
        make()

    assert ";" in str(caught.value) or ":" in str(caught.value)


def test_values_and_lists_are_taken_as_python_has_them() -> None:
    """The natural spelling is the stored one, and a list is as good as a tuple."""
    assert Given("state", "=", "OPEN") == Given("state", "=", {"S": "OPEN"})
    assert Given("n", "in", [1, 2]) == Given("n", "in", {"L": [{"N": "1"}, {"N": "2"}]})
    assert Need("x", ["Post"], ["author"], ["at"]) == Need("x", "Post", "author", "at")


def test_several_values_are_asked_one_by_one_and_that_is_said() -> None:
    """`in` without a value is a query for each, and the rate counts them."""
    found = solved(POST, needs=[ONE, asked("of some", "Post", Given("author", "in"), "at")])

    assert noted(found, "Need of some", "one query per value", "counts these queries")


def forgetting(*where: Given) -> tuple[Design, Design]:
    """A design, and its solution by a solver that forgets what the need says beside the author."""
    told = design(views=[POST], needs=[ONE, asked("some", "Post", ("author", *where))])
    bare = design(views=[POST], needs=[ONE, asked("some", "Post", "author")])
    return told, solve(bare).design


@pytest.mark.parametrize(
    "where",
    [
        Given("state", "=", "OUT"),
        Given("published_at", "exists"),
        Given("votes", ">"),
        Given("at", "<", "2026"),
    ],
    ids=str,
)
def test_a_forgotten_condition_is_found_on_the_engine(where: Given) -> None:
    """Planted: what is expected comes from the need, so a solver that loses a condition is found out."""
    if where.value == {"S": "2026"}:
        where = Given("at", "<", {"S": "2026-08-01T13:00:00.250000Z"})

    assert differences(*forgetting(where))


def test_a_forgotten_order_is_found_on_the_engine() -> None:
    """Planted: the index has no order at all."""
    told = design(views=[POST], needs=[ONE, asked("some", "Post", (), "votes")])
    bare = design(views=[POST], needs=[ONE, asked("some", "Post", (), "post_id")])

    assert differences(told, solve(bare).design)
