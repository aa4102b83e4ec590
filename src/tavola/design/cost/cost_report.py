"""The cost report: everything that `tavola cost` says about a design, as data."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tavola.design.cost.alterations import without_fixed_units
from tavola.design.cost.assumptions import Assumptions
from tavola.design.cost.break_even import BreakEven, break_evens
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.cost.payment_options import PaymentOption, payment_options, recommend_payment
from tavola.design.cost.savings import Saving, savings
from tavola.design.text import format_count, list_first
from tavola.model.document import Design
from tavola.model.sizes import item_size
from tavola.prices import PriceBook, unknown_prices

BOOK_DAYS_MAX = 180  # after which a book is said to be old

_NAMES_MAX = 6  # in one note


@dataclass(frozen=True, slots=True)
class CostReport:
    """The bill of a design, the payment options, and possible savings."""

    tables: tuple[str, ...]
    month: MonthlyBill
    ways: tuple[PaymentOption, ...]
    break_evens: tuple[BreakEven, ...]
    savings: tuple[Saving, ...]
    recommendation: str
    notes: tuple[str, ...]


def report_cost(
    design: Design, assumptions: Assumptions, book: PriceBook, today: datetime.date
) -> CostReport:
    """Return the cost report of a design."""
    month = estimate_month(design, assumptions, book)
    options = payment_options(design, assumptions, book)
    standard = estimate_month(design, replace(assumptions, table_class="STANDARD"), book)
    provisioned = estimate_month(
        without_fixed_units(design), replace(assumptions, mode="provisioned", table_class="STANDARD"), book
    )
    return CostReport(
        tuple(table.name for table in design.tables),
        month,
        options,
        break_evens(book, standard, provisioned) if any(bill.per_second for bill in month.bills) else (),
        savings(design, assumptions, book, month),
        recommend_payment(design, assumptions, book, options, month),
        (*_notes(design, month, assumptions), *book_notes(book, today)),
    )


def book_notes(book: PriceBook, today: datetime.date) -> tuple[str, ...]:
    """Return notes about a price book: that it is old, or copied from a document."""
    notes = []
    days = (today - book.date).days
    if book.label is not None:
        notes.append(
            f"the prices are those that the {book.label} document tells, right or wrong, and not AWS's; leave --prices "
            "out for a dated book"
        )
    elif days > BOOK_DAYS_MAX:
        notes.append(
            f"the price book of {book.title} is {days} days old and may be out of date; give another with --prices "
            "FILE.toml, a file of the same form as those in tavola/prices/books"
        )
    strange = unknown_prices(book)
    if strange:
        notes.append(
            f"nothing is computed with {_list(strange)} of the price book of {book.title}; look at how the books here call it"
        )
    return tuple(notes)


def _notes(design: Design, month: MonthlyBill, assumptions: Assumptions) -> tuple[str, ...]:
    notes = []
    if month.unrated:
        notes.append(
            f"{format_count(len(month.unrated), 'access pattern')} without a rate, counted as nothing: {_list(month.unrated)}; "
            "declare per_second= in its AccessPattern or WritePattern"
        )
    if month.unwritten:
        notes.append(
            f"{format_count(len(month.unwritten), 'entity', 'entities')} without a write pattern, counted as never written: "
            f"{_list(month.unwritten)}; declare writes=(WritePattern(…),)"
        )
    if month.unsized:
        notes.append(
            f"storage is not counted of {format_count(len(month.unsized), 'entity', 'entities')}: {_list(month.unsized)}; declare "
            "items= of the entity, or give the table's size with --storage-gb"
        )
    guessed = _entities_of_guessed_size(design)
    if guessed:
        notes.append(
            f"the size of {format_count(len(guessed), 'entity', 'entities')} is guessed from the types of the fields, every field taken as there: "
            f"{_list(guessed)}; declare item_bytes= of a write or of the key's AccessPattern, or typical_bytes= of the fields"
        )
    if month.unpriced:
        notes.append(
            f"the price book of {month.book} has no price for {_list(month.unpriced)}: that is not in the sum; give "
            "another book with --prices"
        )
    streams = [table.name for table in design.tables if table.settings.stream is not None]
    if streams and not assumptions.stream_polls_per_second:
        notes.append(
            f"the stream of {_list(streams)} is taken to be read by Lambda, which pays nothing for it; of a reader of your "
            "own give its GetRecords calls with --stream-polls"
        )
    if not assumptions.free_tier:
        notes.append("what an account has free each month is not taken off; --free-tier does")
    return (*month.notes, *notes)


def _entities_of_guessed_size(design: Design) -> tuple[str, ...]:
    """Return the entities without a declared item size, with the size that is assumed."""
    return tuple(
        f"{entity.name} {size.total:,} B"
        for table in design.tables
        for entity in table.entities
        if not (size := item_size(table, entity)).declared
        and not all(field.typical_bytes is not None or field.choices for field in entity.fields)
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMES_MAX else list_first(names, _NAMES_MAX - 1)
