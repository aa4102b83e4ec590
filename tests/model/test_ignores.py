"""Ignores: which declaration a comment speaks of."""

from __future__ import annotations

import pytest

from tavola.model.document import Design, Ignore, ignores_in, with_ignores

SOURCE = '''
class Desk(Table):  # tavola: ignore[no-point-in-time-recovery] a sample
    # tavola: ignore[unused-index] a job asks it
    by_day = Gsi(pk="GSI1PK")
    by_mail = Gsi(  # tavola: ignore[unused-index, excessive-projection] kept for the move
        pk="GSI2PK",
    )


# tavola: ignore[hot-partition] read once a night,
# by one job
class Ticket(
    Entity,
    table=Desk,
    writes=(
        # tavola: ignore[transaction-conflicts] a test's
        WritePattern("open", "put"),
        WritePattern("close", "update"),  # tavola: ignore[stale-index-key]
    ),
):
    """A ticket."""

    ticket_id: Attr[str]  # tavola: ignore[reserved-words] no expression names it

    class Key(
        PrimaryKey["Ticket"],
        pk="{ticket_id}",  # tavola: ignore[key-too-long] ids are short
    ):
        ticket_id: str


# tavola: ignore[unserved-pattern] next month
BY_DAY = Need("by day", Ticket)
'''


def test_a_comment_is_about_what_is_declared_there() -> None:
    """On the line of a declaration, or on the lines above it, a comment names rules and says why."""
    assert ignores_in(SOURCE) == (
        Ignore("no-point-in-time-recovery", "Desk", "a sample"),
        Ignore("unused-index", "Desk.by_day", "a job asks it"),
        Ignore("unused-index", "Desk.by_mail", "kept for the move"),
        Ignore("excessive-projection", "Desk.by_mail", "kept for the move"),
        Ignore("hot-partition", "Ticket", "read once a night, by one job"),
        Ignore("transaction-conflicts", "Ticket: open", "a test's"),
        Ignore("stale-index-key", "Ticket: close", ""),
        Ignore("reserved-words", "Ticket.ticket_id", "no expression names it"),
        Ignore("key-too-long", "Ticket.Key", "ids are short"),
        Ignore("unserved-pattern", "by day", "next month"),
    )


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("# tavola: ignore[unused-index] why\nx = 1\n", (Ignore("unused-index", "model.py:1", "why"),)),
        ("class Desk(Table):  # tavola: ignore why\n    pass\n", (Ignore("", "Desk", "why"),)),
        ("text = '# tavola: ignore[unused-index] no comment'\n", ()),
        ("class (\n# tavola: ignore[x] broken\n", (Ignore("x", "model.py:2", "broken"),)),
        ("# a comment\nclass Desk(Table):\n    pass\n", ()),
    ],
)
def test_what_is_no_ignore_of_anything(source: str, told: tuple[Ignore, ...]) -> None:
    """A comment by no declaration is told by its line, and one without a rule keeps its reason; a text is no comment."""
    assert ignores_in(source, "model.py") == told


def test_a_design_takes_the_ignores_of_its_sources() -> None:
    """What documents say and what comments say stand side by side."""
    own = Design(ignores=(Ignore("unused-index", "Desk", "said before"),))

    assert [each.place for each in with_ignores(own, [("model.py", SOURCE)]).ignores][:2] == ["Desk", "Desk"]
    assert with_ignores(own, []) is own
