"""The monthly cost behind the cost page: its inputs, the computation, and the equivalent command line.

Every sum comes from the functions of `tavola cost`. The last few results are cached by the design's identity, because the
declared month stays the same while sliders move.
"""

from __future__ import annotations

import datetime
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

import msgspec

from tavola.design.cost import (
    Assumptions,
    Consistency,
    CostRefused,
    CostReport,
    Sliders,
    Transactions,
    apply_sliders,
    report_cost,
)
from tavola.model.document import Design, DocumentRefused, TableDesign, check_references
from tavola.prices import PriceBook, books, labelled_book, load_book
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio

PayMode = Literal["on-demand", "provisioned"]
StorageClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]


@dataclass(frozen=True, slots=True)
class CostAssumptions:
    """What a month is computed with beside the design; as the options of `tavola cost`."""

    region: str | None = None  # None: that of the tables, where there is a book for it
    date: str | None = None
    prices: str | None = None  # the label of a book that retells a document
    mode: PayMode | None = None
    table_class: StorageClass | None = None
    target: int = 70
    hours_per_day: int = 24
    free_tier: bool = False
    backups: int = 0
    stream_polls: float = 0.0
    sparse_share: float = 0.1
    storage_gb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CostSliders:
    """How far the design's own numbers are turned; 1 is as they are declared."""

    reads: float = 1.0
    writes: float = 1.0
    item_bytes: float = 1.0
    items: float = 1.0
    indexes: int = 0  # more of them on each table, of whole items
    peak: float | None = None
    consistency: Consistency = "declared"
    transactions: Transactions = "declared"
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CostRequest:
    """Whose month, and under which numbers; no design and no table named: all that the studio knows."""

    design: str | None = None  # one of those that the studio was started with, by its name
    tables: tuple[str, ...] = ()
    assumptions: CostAssumptions = CostAssumptions()
    sliders: CostSliders = CostSliders()


@dataclass(frozen=True, slots=True)
class CalculationRequest:
    """Rates alone, without a design."""

    reads: float = 0.0
    writes: float = 0.0
    item_kb: float = 1.0
    storage_gb: float = 0.0
    hours_per_day: int = 24
    indexes: int = 0
    eventual: bool = False
    region: str | None = None
    date: str | None = None
    prices: str | None = None
    table_class: StorageClass | None = None
    target: int = 70
    free_tier: bool = False
    backups: int = 0


DEFAULT_REGION = "us-east-1"

_KNOWN_MAX = 24  # costings that are kept

_known: dict[tuple[int, bytes], tuple[Design, CostReport]] = {}
_parts: dict[tuple[int, tuple[str, ...]], tuple[Design, Design]] = {}


def compute_cost(studio: Studio, asked: CostRequest, sliders: Sliders) -> CostReport:
    """Return the month of a design; the last few are kept, for the declared one stands while sliders move."""
    design = select_design(studio, asked)
    book, today = find_prices(studio, asked.assumptions)
    key = (id(design), msgspec.json.encode((asked.assumptions, sliders, book.title, today.isoformat())))
    known = _known.get(key)
    if known is None or known[0] is not design:
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        assumptions = to_assumptions(asked.assumptions, design, sliders)
        known = _known[key] = (design, report_cost(apply_sliders(design, sliders), assumptions, book, today))
    return known[1]


def select_design(studio: Studio, asked: CostRequest) -> Design:
    """Return the design, or the part of it that is asked about; the same object each time, which others go by."""
    whole, tables = studio.require_design(), asked.tables
    if asked.design:
        told = next((each for each in studio.declared if each.name == asked.design), None)
        if told is None:
            raise RequestRefused(
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
        raise RequestRefused(
            "table-unknown",
            "The design has no such table",
            f"There is no {', '.join(sorted(missing))} in the design.",
            "Choose a table that it declares.",
            status=404,
        )
    names = {entity.name for table in found for entity in table.entities}
    part = replace(
        whole,
        tables=tuple(_without_foreign_writes(table, names) for table in found),
        needs=tuple(need for need in whole.needs if names.issuperset(need.entities)),
    )
    if len(_parts) >= _KNOWN_MAX:
        _parts.clear()
    _parts[id(whole), tables] = (whole, part)
    return part


def _without_foreign_writes(table: TableDesign, names: set[str]) -> TableDesign:
    """Return a table whose consumers write what is here: a document may not name an entity of a table that is left out."""
    told = tuple(
        replace(each, writes=tuple(name for name in each.writes if name in names)) for each in table.consumers
    )
    return table if told == table.consumers else replace(table, consumers=told)


def to_sliders(asked: CostRequest) -> Sliders:
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


def to_assumptions(told: CostAssumptions, design: Design, sliders: Sliders) -> Assumptions:
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


def default_region(studio: Studio) -> str:
    """Return the tables' region where there is a book for it, else the one that every command begins with."""
    known = {book.region for book in books() if book.label is None}
    return studio.where.region if studio.where.region in known else DEFAULT_REGION


def find_prices(
    studio: Studio, told: CostAssumptions | CalculationRequest
) -> tuple[PriceBook, datetime.date]:
    """Return the prices that are asked for, and the day from which a book is said to be old."""
    now = datetime.datetime.fromtimestamp(studio.clock.now(), tz=datetime.UTC).date()
    if told.prices:
        if told.region or told.date:
            raise CostRefused(
                "a labelled book and a region or date cannot both be followed; give one of them"
            )
        return labelled_book(told.prices), now
    region = told.region or default_region(studio)
    if not told.date:
        return (studio.book(region) if told.region is None else load_book(region)), now
    try:
        day = datetime.date.fromisoformat(told.date)
    except ValueError as error:
        raise CostRefused(f"{told.date!r} is no date; give one such as 2026-08-01") from error
    book = load_book(region, day)
    return book, book.date  # prices of a day that was asked for are not old


_CLASSES = {"STANDARD": "standard", "STANDARD_INFREQUENT_ACCESS": "standard-ia"}


def cost_command(studio: Studio, asked: CostRequest, design: Design, *, rests: bool) -> tuple[str, bool]:
    """Return the command that prints the altered month, and whether it is about a document that must be saved first.

    "" where there is none: designs side by side may call entities alike, and a document may not.
    """
    told = asked.assumptions
    subject = asked.design if asked.design and not asked.tables else _design_argument(studio, design)
    subject = subject if rests else None
    saved = subject is None
    if saved and not is_writable(design):
        return "", False
    words = ["tavola cost", shlex.quote(subject or "altered.json")]
    words += [] if told.mode is None else [f"--mode {told.mode}"]
    words += [f"--stream-polls {format_number(told.stream_polls)}"] if told.stream_polls else []
    words += [] if told.sparse_share == 0.1 else [f"--sparse-share {format_number(told.sparse_share)}"]
    scale = asked.sliders.items
    words += [
        f"--storage-gb {shlex.quote(f'{name}={format_number(size * scale)}')}"
        for name, size in sorted(told.storage_gb.items())
    ]
    words += shared_options(told, default_region(studio))
    return " ".join(words), saved


def is_writable(design: Design) -> bool:
    """Tell whether a design can be written as one document that is read again."""
    try:
        check_references(design)
    except DocumentRefused:
        return False
    return True


def format_number(value: float) -> str:
    """Return a number with all its digits, as the command line takes it."""
    return f"{Decimal(repr(float(value))).normalize():f}"


def shared_options(told: CostAssumptions | CalculationRequest, default: str) -> list[str]:
    """Return the options that a design and a calculation have in common, those alone that are not as by default."""
    words = []
    if told.prices:
        words.append(f"--prices {shlex.quote(told.prices)}")
    else:
        region = told.region or default
        words += [] if region == DEFAULT_REGION else [f"--region {region}"]
        words += [f"--date {told.date}"] if told.date else []
    words += [] if told.table_class is None else [f"--class {_CLASSES[told.table_class]}"]
    words += [] if told.target == 70 else [f"--target-utilisation {told.target}"]
    words += [] if told.hours_per_day == 24 else [f"--hours-per-day {told.hours_per_day}"]
    words += ["--free-tier"] if told.free_tier else []
    words += [f"--backups {told.backups}"] if told.backups else []
    return words


def _design_argument(studio: Studio, design: Design) -> str | None:
    """Return how the command line names a design: as it was named here, or the module of its one table; None: it has no name."""
    whole = studio.require_design()
    if design is whole and len(studio.designs) == 1:
        return studio.designs[0]
    if len(design.tables) != 1:
        return _module_argument(studio, design.tables)
    module = _module_argument(studio, design.tables)
    return module if module is not None else _table_argument(studio, design.tables[0])


def _table_argument(studio: Studio, table: TableDesign) -> str | None:
    for name in studio.designs:
        module = name.partition(":")[0]
        found = getattr(sys.modules.get(module), table.label, None)
        if getattr(getattr(found, "settings", None), "name", None) == table.name:
            return f"{module}:{table.label}"
    return None


def _module_argument(studio: Studio, tables: tuple[TableDesign, ...]) -> str | None:
    """Return the module that declares just these tables, where it is one of those the studio was started with."""
    labels = {table.label: table.name for table in tables}
    for name in studio.designs:
        held = vars(sys.modules[name]) if name in sys.modules else {}
        declared = {
            label: found.settings.name
            for label, found in held.items()
            if isinstance(found, type)
            and getattr(found, "__module__", "") == name
            and hasattr(found, "settings")
        }
        if declared == labels:
            return name
    return None
