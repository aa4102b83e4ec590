"""Months: the costing that a question asks for, at the prices that it names.

The last few are kept by the design's identity: the declared one stands while sliders move.
"""

from __future__ import annotations

import datetime
from dataclasses import replace

import msgspec

from tavola.design.cost import Assumptions, Costing, CostRefused, Sliders, cost_of, turned
from tavola.model.document import Design, TableDesign
from tavola.prices import PriceBook, books, labelled_book, load_book
from tavola.studio.costing.questions import AskCalculation, AskCost, CostAssumptions
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio

DEFAULT_REGION = "us-east-1"

_KNOWN_MAX = 24  # costings that are kept

_known: dict[tuple[int, bytes], tuple[Design, Costing]] = {}
_parts: dict[tuple[int, tuple[str, ...]], tuple[Design, Design]] = {}


def costing_of(studio: Studio, asked: AskCost, sliders: Sliders) -> Costing:
    """Return the month of a design; the last few are kept, for the declared one stands while sliders move."""
    design = design_for(studio, asked)
    book, today = book_of(studio, asked.assumptions)
    key = (id(design), msgspec.json.encode((asked.assumptions, sliders, book.title, today.isoformat())))
    known = _known.get(key)
    if known is None or known[0] is not design:
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        assumptions = assumptions_of(asked.assumptions, design, sliders)
        known = _known[key] = (design, cost_of(turned(design, sliders), assumptions, book, today))
    return known[1]


def design_for(studio: Studio, asked: AskCost) -> Design:
    """Return the design, or the part of it that is asked about; the same object each time, which others go by."""
    whole, tables = studio.needed_design(), asked.tables
    if asked.design:
        told = next((each for each in studio.declared if each.name == asked.design), None)
        if told is None:
            raise Refused(
                "design-unknown",
                "There is no such design",
                f"The studio was not started with {asked.design}.",
                "Choose one that it knows.",
                status=404,
            )
        whole = told.design
    if not tables:
        return whole
    known = _parts.get((id(whole), tables))
    if known is not None and known[0] is whole:
        return known[1]
    found = tuple(table for table in whole.tables if table.name in tables)
    missing = set(tables) - {table.name for table in found}
    if missing:
        raise Refused(
            "table-unknown",
            "The design has no such table",
            f"There is no {', '.join(sorted(missing))} in the design.",
            "Choose a table that it declares.",
            status=404,
        )
    names = {entity.name for table in found for entity in table.entities}
    part = replace(
        whole,
        tables=tuple(_apart(table, names) for table in found),
        needs=tuple(need for need in whole.needs if names.issuperset(need.entities)),
    )
    if len(_parts) >= _KNOWN_MAX:
        _parts.clear()
    _parts[id(whole), tables] = (whole, part)
    return part


def _apart(table: TableDesign, names: set[str]) -> TableDesign:
    """Return a table whose consumers write what is here: a document may not name an entity of a table that is left out."""
    told = tuple(
        replace(each, writes=tuple(name for name in each.writes if name in names)) for each in table.consumers
    )
    return table if told == table.consumers else replace(table, consumers=told)


def sliders_of(asked: AskCost) -> Sliders:
    """Return the sliders of a question."""
    told = asked.sliders
    return Sliders(
        reads=told.reads,
        writes=told.writes,
        item_bytes=told.item_bytes,
        items=told.items,
        indexes=told.indexes,
        peak=told.peak,
        consistency=told.consistency,
        transactions=told.transactions,
        rates=dict(told.rates),
    )


def assumptions_of(told: CostAssumptions, design: Design, sliders: Sliders) -> Assumptions:
    """Return the assumptions of a question; what tables hold is turned with the number of items."""
    known = {table.name for table in design.tables}
    for name in told.storage_gb:
        if name not in known:
            raise CostRefused(
                f"storage of {name} names no table of the design; there are {', '.join(sorted(known))}"
            )
    return Assumptions(
        mode=told.mode,
        table_class=told.table_class,
        target=told.target,
        hours_per_day=told.hours_per_day,
        free_tier=told.free_tier,
        backups=told.backups,
        stream_polls_per_second=told.stream_polls,
        sparse_share=told.sparse_share,
        storage_gb={name: size * sliders.items for name, size in told.storage_gb.items()},
    )


def region_of(studio: Studio) -> str:
    """Return the tables' region where there is a book for it, else the one that every command begins with."""
    known = {book.region for book in books() if book.label is None}
    return studio.where.region if studio.where.region in known else DEFAULT_REGION


def book_of(studio: Studio, told: CostAssumptions | AskCalculation) -> tuple[PriceBook, datetime.date]:
    """Return the prices that are asked for, and the day from which a book is said to be old."""
    now = datetime.datetime.fromtimestamp(studio.clock.now(), tz=datetime.UTC).date()
    if told.prices:
        if told.region or told.date:
            raise CostRefused(
                "a labelled book and a region or date cannot both be followed; give one of them"
            )
        return labelled_book(told.prices), now
    region = told.region or region_of(studio)
    if not told.date:
        return (studio.book(region) if told.region is None else load_book(region)), now
    try:
        day = datetime.date.fromisoformat(told.date)
    except ValueError as error:
        raise CostRefused(f"{told.date!r} is no date; give one such as 2026-08-01") from error
    book = load_book(region, day)
    return book, book.date  # prices of a day that was asked for are not old
