"""A costing as text, document and rows: what is said beside the sums."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from tavola.design.cost import (
    BOOK_DAYS_MAX,
    Assumptions,
    TableDemand,
    book_notes,
    calculate,
    calculation_document,
    calculation_text,
    render_document,
    render_text,
    report_cost,
)
from tavola.model.document import Design
from tavola.prices import labelled_book, load_book
from tests.design.builders import design, entity, put, query, table, text

BOOK = load_book("us-east-1")
TODAY = datetime.date(2026, 9, 1)


def shop(**more: Any) -> Design:
    """A table of items that are put and read."""
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), pk="{ticket_id}", patterns=[query("All", None, "ticket_id", per_second=1)],
                writes=[put("open", **more)],
            ),
            stream="NEW_IMAGE",
        )
    )  # fmt: skip


def page(told: Design, **assumed: Any) -> str:
    """Return a page with its lines joined."""
    return " ".join(render_text(report_cost(told, Assumptions(**assumed), BOOK, TODAY)).split())


def test_a_page_says_what_it_was_computed_from() -> None:
    """Missing rates, sizes and streams are told with how to declare them."""
    told = page(shop())

    assert (
        "2 access patterns without a rate, not included: Ticket.Key: Key, Ticket: open; declare per_second="
        in told
    )
    assert "Storage of 1 entity is not included: Ticket; declare items=" in told
    assert "read by Lambda, at no charge" in told
    assert "read by Lambda" not in page(shop(), stream_polls_per_second=1)


def test_a_design_without_any_rate_says_so_in_a_sentence() -> None:
    """No amount and no table of zeros: the cost is unknown, and the text says what to declare."""
    silent = design(table(entity("Ticket", text("ticket_id"), pk="{ticket_id}", writes=[put("open")])))

    told = page(silent)

    assert "The cost is unknown, because no rates are declared." in told
    assert 'access=AccessPattern("…", per_second=…)' in told
    assert "$" not in told
    assert "Capacity mode" not in told
    assert "Break-even" not in told
    assert "Possible savings" not in told


def test_a_document_is_plain_data() -> None:
    """Everything in the document is text, numbers, lists and objects; money is exact text without an exponent."""
    told = render_document(report_cost(shop(per_second=0.0001), Assumptions(), BOOK, TODAY))

    assert all("E" not in line["amount"] and "E" not in line["quantity"] for line in told["lines"])
    assert {"lines", "access_patterns", "ways", "break_even", "savings", "recommendation", "notes"} <= set(
        told
    )


@pytest.mark.parametrize(("days", "old"), [(0, False), (BOOK_DAYS_MAX, False), (BOOK_DAYS_MAX + 1, True)])
def test_a_book_grows_old(days: int, old: bool) -> None:
    """A book is said to be out of date after half a year, with how to give another."""
    told = book_notes(BOOK, BOOK.date + datetime.timedelta(days=days))

    assert bool(told) is old
    assert all("--prices" in note for note in told)


def test_a_document_s_prices_are_called_its_own() -> None:
    """A labelled book is said to retell a document, however old it is."""
    told = book_notes(labelled_book("service-desk"), datetime.date(2030, 1, 1))

    assert ["not AWS's" in note for note in told] == [True]


def test_a_calculation_says_its_units() -> None:
    """The calculator's page has the units of a read and a write, and every sum its book."""
    told = calculate(TableDemand(3, 0, 1, consistent=False), BOOK)

    text_ = calculation_text(told, (), ())
    assert "A read consumes 0.5 units and a write 1 unit. Required capacity: 2 RCU and 1 WCU." in " ".join(
        text_.split()
    )
    assert "prices of us-east-1, 2026-08-01" in " ".join(text_.split())
    assert calculation_document(told, (), ())["units"]["read"] == 0.5


def test_no_demand_is_told() -> None:
    """Rates of zero and nothing stored are one clear sentence."""
    text_ = calculation_text(calculate(TableDemand(0, 0, 1), BOOK), (), ())

    assert "There is no traffic and no storage" in text_


def test_an_unknown_way_does_not_widen_the_page() -> None:
    """Why a way of paying has no sum stands below the table, and no line is wider than a page."""
    seoul = load_book("ap-northeast-2")
    told = render_text(report_cost(shop(per_second=1), Assumptions(), seoul, TODAY))

    assert ": unknown, " in told
    assert max(map(len, told.splitlines())) <= 110


def test_a_price_that_nothing_is_computed_with_is_named() -> None:
    """A misspelt price of a book is told with the book."""
    wrong = replace(BOOK, prices={**BOOK.prices, "write_request_units": BOOK.prices["write_request_unit"]})

    assert book_notes(BOOK, BOOK.date) == ()
    [note] = book_notes(wrong, BOOK.date)
    assert "unknown prices, which are ignored: write_request_units" in note


def test_guessed_sizes_are_named_on_the_bill() -> None:
    """A size that only types tell is a guess, and the bill says whose; a declared one is none."""
    told = page(shop(per_second=1))

    assert "Item sizes of 1 entity are estimated from field types, with every field present: Ticket" in told
    assert "guessed" not in page(shop(per_second=1, item_bytes=300))
