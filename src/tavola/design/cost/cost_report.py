"""The cost report: everything that `tavola cost` says about a design, as data."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tavola.design.cost.alterations import without_fixed_units
from tavola.design.cost.assumptions import Assumptions
from tavola.design.cost.cost_savings import CostSaving, savings
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.cost.payments import (
    BreakEven,
    PaymentOption,
    break_evens,
    payment_options,
    recommend_payment,
)
from tavola.design.text import format_count, list_first
from tavola.model.document import Design
from tavola.model.sizes import item_size
from tavola.prices import PriceBook, unknown_prices

BOOK_DAYS_MAX = 180  # age from which on a note says that a book is old

_NAMES_MAX = 6  # in one note


@dataclass(frozen=True, slots=True)
class CostReport:
    """The bill of a design, the payment options, and possible savings."""

    tables: tuple[str, ...]
    month: MonthlyBill
    ways: tuple[PaymentOption, ...]
    break_evens: tuple[BreakEven, ...]
    savings: tuple[CostSaving, ...]
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
            f"Prices are those of the {book.label} document, not AWS's; omit --prices to use a dated price book"
        )
    elif days > BOOK_DAYS_MAX:
        notes.append(
            f"The price book of {book.title} is {days} days old and may be out of date; use another with --prices "
            "FILE.toml, in the format of the files in tavola/prices/books"
        )
    unknown = unknown_prices(book)
    if unknown:
        notes.append(
            f"The price book of {book.title} has unknown prices, which are ignored: {_list(unknown)}; see the names in tavola/prices/books"
        )
    return tuple(notes)


def _notes(design: Design, month: MonthlyBill, assumptions: Assumptions) -> tuple[str, ...]:
    notes = []
    if month.unrated:
        notes.append(
            f"{format_count(len(month.unrated), 'access pattern')} without a rate, not included: {_list(month.unrated)}; "
            "declare per_second= in the AccessPattern or WritePattern"
        )
    if month.unwritten:
        notes.append(
            f"{format_count(len(month.unwritten), 'entity', 'entities')} without a write pattern, so without writes: "
            f"{_list(month.unwritten)}; declare writes=(WritePattern(…),)"
        )
    if month.unsized:
        notes.append(
            f"Storage of {format_count(len(month.unsized), 'entity', 'entities')} is not included: {_list(month.unsized)}; declare "
            "items= of the entity, or set the table's size with --storage-gb"
        )
    estimated = _entities_of_estimated_size(design)
    if estimated:
        notes.append(
            f"Item sizes of {format_count(len(estimated), 'entity', 'entities')} are estimated from field types, with every field present: "
            f"{_list(estimated)}; declare item_bytes= of a write or of the key's AccessPattern, or typical_bytes= of fields"
        )
    if month.unpriced:
        notes.append(
            f"The price book of {month.book} has no price for {_list(month.unpriced)}, which is not included; use "
            "another book with --prices"
        )
    streams = [table.name for table in design.tables if table.settings.stream is not None]
    if streams and not assumptions.stream_polls_per_second:
        notes.append(
            f"The stream of {_list(streams)} is assumed to be read by Lambda, at no charge; for other consumers set their "
            "GetRecords calls with --stream-polls"
        )
    if not assumptions.free_tier:
        notes.append("The free tier is not subtracted; use --free-tier")
    return (*month.notes, *notes)


def _entities_of_estimated_size(design: Design) -> tuple[str, ...]:
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
