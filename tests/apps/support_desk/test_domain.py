"""The rules of the desk, without a table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isclose

import pytest

from tavola import design_of
from tavola.apps.support_desk.domain import (
    CLOSED_STATUSES,
    STATUS_LABELS,
    SUBJECT_CHARACTERS_MAX,
    TRANSITIONS,
    RunningAverage,
    TicketStatus,
    TimeRange,
    is_allowed,
    make_subject,
)
from tavola.apps.support_desk.errors import TicketTransitionRefused
from tavola.apps.support_desk.metrics import build_dashboard
from tavola.apps.support_desk.model import TABLES
from tavola.apps.support_desk.similar import DIMENSIONS, embed


def test_every_status_can_be_left_and_none_follows_itself() -> None:
    """A ticket is never stuck, and a status is no change to itself."""
    assert TRANSITIONS.keys() == set(TicketStatus)
    for status in TicketStatus:
        assert TRANSITIONS[status]
        assert not is_allowed(status, status)
    assert TicketStatus.READY in CLOSED_STATUSES


def test_every_status_has_a_label_for_the_pages() -> None:
    """The stored names are those of the original design; pages show a support desk's words."""
    assert [STATUS_LABELS[status] for status in TicketStatus] == [
        "New",
        "In progress",
        "Resolved",
        "Unresolved",
        "Escalated",
    ]


def test_a_refused_status_says_which_are_allowed() -> None:
    """The sentence names what can be done."""
    refused = TicketTransitionRefused("tkt_1", TicketStatus.READY, TicketStatus.FAILED)

    assert str(refused).endswith("allowed: PROCESSING")


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("One line", "One line"),
        ("\n  First.\nSecond.", "First."),
        ("x" * 500, "x" * (SUBJECT_CHARACTERS_MAX - 1) + "…"),
        (" \n ", ""),
    ],
)
def test_a_subject_is_the_first_line(text: str, subject: str) -> None:
    """Lists show a line, however long the text."""
    assert make_subject(text) == subject


def test_a_stretch_that_ends_before_it_starts_is_empty() -> None:
    """Such a question has an answer: nothing."""
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    assert TimeRange(last, first).empty
    assert not TimeRange(first, last).empty
    assert not TimeRange(last).empty


def test_a_dashboard_of_nothing_is_all_zero() -> None:
    """Every status, rating and day is there, and an average of nothing is none."""
    board = build_dashboard({}, [date(2026, 1, 1)])

    assert board.tickets == 0
    assert set(board.by_status) == set(TicketStatus)
    assert board.resolution_s.mean is None
    assert RunningAverage(2, Decimal(9)).mean == Decimal("4.5")
    assert [day.opened for day in board.days] == [0]


def test_an_embedding_is_one_long_and_always_the_same() -> None:
    """Texts with words in common lie nearer than others; case makes no difference."""
    printer, other, router = (
        embed("The printer jams"),
        embed("printer JAMS again"),
        embed("Il router è lento"),
    )

    def along(one: tuple[float, ...], two: tuple[float, ...]) -> float:
        return sum(a * b for a, b in zip(one, two, strict=True))

    assert len(printer) == DIMENSIONS
    assert isclose(along(printer, printer), 1, abs_tol=0.01)
    assert along(printer, other) > along(printer, router)
    assert embed("") == embed("!?")
    assert any(embed(""))


def test_the_design_has_a_title_and_a_rate_for_each_question() -> None:
    """Every query and collection says what it is for, how often it is asked and of how much, for the tools."""
    design = design_of(*TABLES)

    assert design is not None
    for table in TABLES:
        for entity in table.entities.values():
            for name, pattern in vars(entity).items():
                compiled = getattr(pattern, "__get_pattern__", None)
                if compiled is None or name == "Key":
                    continue
                access = compiled().access
                assert access is not None, (entity, name)
                assert access.title
                assert access.per_second
                assert access.item_bytes
