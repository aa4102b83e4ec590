"""Weights: what is assumed about rates is said exactly, weighs both sides alike, and is in no design that comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola.design.solver import solve
from tavola.model.document import AccessPattern, Need, WritePattern
from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.solver.test_questions import kept

BOOK = kept("Book", text("isbn"), text("author"), text("body"))
PUT = WritePattern("add", "put", item_bytes=900)


def needs(rate: float | None) -> list[Need]:
    """A book, and those of an author, so often a second."""
    return [
        Need("book", "Book", "isbn", single=True, access=AccessPattern("book", per_second=rate)),
        Need("of author", "Book", "author", access=AccessPattern("of author", per_second=rate, items=5)),
    ]


@pytest.mark.parametrize(
    ("write", "asked", "words", "not_said"),
    [
        (
            None,
            None,
            [
                "every access pattern is assumed to run once",
                "for Book no write is declared, and one put is assumed",
            ],
            [],
        ),
        (
            PUT,
            None,
            ["every access pattern is assumed to run once", "every write is assumed to run once"],
            ["one put is assumed"],
        ),
        (
            replace(PUT, per_second=500),
            None,
            ["every access pattern is assumed to run once"],
            ["every write"],
        ),
        (PUT, 5.0, ["every write is assumed to run once"], ["every access pattern"]),
        (replace(PUT, per_second=0), 0.0, [], ["is assumed to run once"]),
        (replace(PUT, per_second=1), 5.0, [], ["is assumed to run once", "without a rate"]),
    ],
)
def test_what_is_assumed_is_said_exactly(
    write: WritePattern | None, asked: float | None, words: list[str], not_said: list[str]
) -> None:
    """Questions and writes each for themselves; a rate of nothing is a rate."""
    book = replace(BOOK, writes=() if write is None else (write,))
    found = solve(design(views=[book], needs=needs(asked)))
    told = " ".join(found.notes)

    assert all(word in told for word in words)
    assert not any(word in told for word in not_said)
    (solved,) = found.design.tables[0].entities
    assert solved.writes == book.writes
    assert {p.access.per_second if p.access else None for p in (solved.primary, *solved.patterns) if p} == {
        asked
    }


def test_an_index_is_never_free() -> None:
    """Without any number a put a second is assumed, and the index is paid for."""
    bare = solve(design(views=[BOOK], needs=needs(None)[:1])).month.total
    found = solve(design(views=[BOOK], needs=needs(None)))

    assert found.choices[1].amount is not None
    assert found.choices[1].amount > 1
    assert found.month.total > bare


def test_some_writes_without_a_rate_are_named() -> None:
    """As questions are: what they do to indexes costs nothing, and that is said."""
    shop = kept("Shop", text("shop_id"))
    book = replace(
        BOOK, writes=(replace(PUT, per_second=1), WritePattern("mend", "update", changes=("body",)))
    )
    shops = Need("shop", "Shop", "shop_id", single=True)
    notes = " ".join(solve(design(views=[book, shop], needs=[*needs(5), shops])).notes)

    assert "Writes without a rate" in notes
    assert "Book: mend" in notes
    assert "No writes are declared for Shop" in notes
    assert "Access patterns without a rate, not priced: shop" in notes


def test_a_keyed_design_is_weighed_as_its_solution_is() -> None:
    """Nobody said a rate: what it costs now is no zero beside an assumed price."""
    by_author = gsi("by_author", "GSI1PK")
    told = design(
        table(
            entity(
                "Book", text("isbn"), text("author"), pk="B#{isbn}",
                keys=[key(by_author, "A#{author}")], patterns=[query("ByAuthor", by_author, "author")],
            ),
            indexes=[by_author],
        )
    )  # fmt: skip
    found = solve(told)

    assert found.before is not None
    assert found.before.total >= found.month.total > 0


def test_needs_that_today_s_keys_do_not_serve_are_told_beside_the_former_price() -> None:
    """A price that leaves something out says so."""
    told = design(
        table(
            entity("Book", text("isbn"), text("author"), pk="B#{isbn}", writes=[replace(PUT, per_second=1)])
        ),
        needs=[Need("of author", "Book", "author", access=AccessPattern("of author", per_second=5))],
    )

    assert solve(told).needs_without_route == ("of author",)
