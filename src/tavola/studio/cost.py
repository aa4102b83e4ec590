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

from tavola.design.cost import Assumptions, CostError, CostReport, Sliders, apply_sliders, report_cost
from tavola.model.document import Design, DocumentRefused, TableDesign, check_references
from tavola.prices import PriceBook, books, labelled_book, load_book
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio

PayMode = Literal["on-demand", "provisioned"]
StorageClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]


@dataclass(frozen=True, slots=True)
class CostAssumptions:
    """The assumptions of an estimate besides the design, as the options of `tavola cost`."""

    region: str | None = None  # None: the tables' region, if there is a price book for it
    date: str | None = None
    prices: str | None = None  # the label of a price book that quotes a document
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
class CostRequest:
    """The design or tables to estimate (by default all), and the assumptions."""

    design: str | None = None  # the name of one of the studio's designs
    tables: tuple[str, ...] = ()
    assumptions: CostAssumptions = CostAssumptions()
    sliders: Sliders = field(default_factory=Sliders)


@dataclass(frozen=True, slots=True)
class CalculationRequest:
    """Request rates to price without a design."""

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

_CACHED_MAX = 24

_reports: dict[tuple[int, bytes], tuple[Design, CostReport]] = {}
_parts: dict[tuple[int, tuple[str, ...]], tuple[Design, Design]] = {}


def compute_cost(studio: Studio, request: CostRequest, sliders: Sliders) -> CostReport:
    """Return the monthly cost of a design; the last few results are cached."""
    design = select_design(studio, request)
    book, today = find_prices(studio, request.assumptions)
    key = (id(design), msgspec.json.encode((request.assumptions, sliders, book.title, today.isoformat())))
    cached = _reports.get(key)
    if cached is None or cached[0] is not design:
        if len(_reports) >= _CACHED_MAX:
            _reports.clear()
        assumptions = to_assumptions(request.assumptions, design, sliders)
        report = report_cost(apply_sliders(design, sliders), assumptions, book, today)
        cached = _reports[key] = (design, report)
    return cached[1]


def select_design(studio: Studio, request: CostRequest) -> Design:
    """Return the requested design or the part with the requested tables; always the same object, as a cache key."""
    whole, tables = studio.require_design(), request.tables
    if request.design:
        declared = next(
            (
                declared_design
                for declared_design in studio.declared
                if declared_design.name == request.design
            ),
            None,
        )
        if declared is None:
            raise RequestRefused(
                "design-unknown",
                "Design not found",
                f"The studio was not started with {request.design}.",
                "Choose one of its designs.",
                status=404,
            )
        whole = declared.design
    if not tables:
        return whole
    cached = _parts.get((id(whole), tables))
    if cached is not None and cached[0] is whole:
        return cached[1]
    selected = tuple(table for table in whole.tables if table.name in tables)
    missing = set(tables) - {table.name for table in selected}
    if missing:
        raise RequestRefused(
            "table-unknown",
            "Table not in the design",
            f"The design does not declare {', '.join(sorted(missing))}.",
            "Choose one of its tables.",
            status=404,
        )
    names = {entity.name for table in selected for entity in table.entities}
    part = replace(
        whole,
        tables=tuple(_without_foreign_writes(table, names) for table in selected),
        needs=tuple(need for need in whole.needs if names.issuperset(need.entities)),
    )
    if len(_parts) >= _CACHED_MAX:
        _parts.clear()
    _parts[id(whole), tables] = (whole, part)
    return part


def _without_foreign_writes(table: TableDesign, names: set[str]) -> TableDesign:
    """Return a table whose consumers write only these entities; a document must not refer to other tables."""
    consumers = tuple(
        replace(consumer, writes=tuple(name for name in consumer.writes if name in names))
        for consumer in table.consumers
    )
    return table if consumers == table.consumers else replace(table, consumers=consumers)


def to_assumptions(options: CostAssumptions, design: Design, sliders: Sliders) -> Assumptions:
    """Return the assumptions of a request; stored sizes scale with the number of items."""
    known = {table.name for table in design.tables}
    for name in options.storage_gb:
        if name not in known:
            raise CostError(
                f"storage_gb names {name}, but the tables of the design are {', '.join(sorted(known))}"
            )
    return Assumptions(
        mode=options.mode,
        table_class=options.table_class,
        target=options.target,
        hours_per_day=options.hours_per_day,
        free_tier=options.free_tier,
        backups=options.backups,
        stream_polls_per_second=options.stream_polls,
        sparse_share=options.sparse_share,
        storage_gb={name: size * sliders.items for name, size in options.storage_gb.items()},
    )


def default_region(studio: Studio) -> str:
    """Return the tables' region if there is a price book for it, else the default of the command line."""
    known = {book.region for book in books() if book.label is None}
    return studio.where.region if studio.where.region in known else DEFAULT_REGION


def find_prices(
    studio: Studio, options: CostAssumptions | CalculationRequest
) -> tuple[PriceBook, datetime.date]:
    """Return the requested prices, and the date by which their age is judged."""
    now = datetime.datetime.fromtimestamp(studio.clock.now(), tz=datetime.UTC).date()
    if options.prices:
        if options.region or options.date:
            raise CostError(
                "a price list chosen by name can't be combined with a region or a date; choose one or the other"
            )
        return labelled_book(options.prices), now
    region = options.region or default_region(studio)
    if not options.date:
        return (studio.book(region) if options.region is None else load_book(region)), now
    try:
        day = datetime.date.fromisoformat(options.date)
    except ValueError as error:
        raise CostError(f"{options.date!r} is not a date; write it as 2026-08-01") from error
    book = load_book(region, day)
    return book, book.date  # prices of a requested date are never outdated


_CLASSES = {"STANDARD": "standard", "STANDARD_INFREQUENT_ACCESS": "standard-ia"}


def cost_command(
    studio: Studio, request: CostRequest, design: Design, *, is_unchanged: bool
) -> tuple[str, bool]:
    """Return the command that prints the altered month, and whether its design document must be saved first.

    Empty if several designs have entities of the same name, because one document cannot hold them.
    """
    options = request.assumptions
    subject = request.design if request.design and not request.tables else _design_argument(studio, design)
    subject = subject if is_unchanged else None
    saved = subject is None
    if saved and not is_writable(design):
        return "", False
    words = ["tavola cost", shlex.quote(subject or "modified.json")]
    words += [] if options.mode is None else [f"--mode {options.mode}"]
    words += [f"--stream-polls {format_number(options.stream_polls)}"] if options.stream_polls else []
    words += [] if options.sparse_share == 0.1 else [f"--sparse-share {format_number(options.sparse_share)}"]
    scale = request.sliders.items
    words += [
        f"--storage-gb {shlex.quote(f'{name}={format_number(size * scale)}')}"
        for name, size in sorted(options.storage_gb.items())
    ]
    words += shared_options(options, default_region(studio))
    return " ".join(words), saved


def is_writable(design: Design) -> bool:
    """Return whether a design can be written as one document and read again."""
    try:
        check_references(design)
    except DocumentRefused:
        return False
    return True


def format_number(value: float) -> str:
    """Return a number with all its digits, as the command line accepts it."""
    return f"{Decimal(repr(float(value))).normalize():f}"


def shared_options(options: CostAssumptions | CalculationRequest, default: str) -> list[str]:
    """Return the command-line options shared by estimates and calculations, without defaults."""
    words = []
    if options.prices:
        words.append(f"--prices {shlex.quote(options.prices)}")
    else:
        region = options.region or default
        words += [] if region == DEFAULT_REGION else [f"--region {region}"]
        words += [f"--date {options.date}"] if options.date else []
    words += [] if options.table_class is None else [f"--table-class {_CLASSES[options.table_class]}"]
    words += [] if options.target == 70 else [f"--target-utilization {options.target}"]
    words += [] if options.hours_per_day == 24 else [f"--hours-per-day {options.hours_per_day}"]
    words += ["--free-tier"] if options.free_tier else []
    words += [f"--backups {options.backups}"] if options.backups else []
    return words


def _design_argument(studio: Studio, design: Design) -> str | None:
    """Return the argument that names a design on the command line; None if there is none."""
    whole = studio.require_design()
    if design is whole and len(studio.designs) == 1:
        return studio.designs[0]
    module = _module_argument(studio, design.tables)
    if module is None and len(design.tables) == 1:
        return _table_argument(studio, design.tables[0])
    return module


def _table_argument(studio: Studio, table: TableDesign) -> str | None:
    for name in studio.designs:
        module = name.partition(":")[0]
        declared = getattr(sys.modules.get(module), table.label, None)
        if getattr(getattr(declared, "settings", None), "name", None) == table.name:
            return f"{module}:{table.label}"
    return None


def _module_argument(studio: Studio, tables: tuple[TableDesign, ...]) -> str | None:
    """Return the module that declares exactly these tables, if the studio was started with it."""
    labels = {table.label: table.name for table in tables}
    for name in studio.designs:
        members = vars(sys.modules[name]) if name in sys.modules else {}
        declared = {
            label: member.settings.name
            for label, member in members.items()
            if isinstance(member, type)
            and getattr(member, "__module__", "") == name
            and hasattr(member, "settings")
        }
        if declared == labels:
            return name
    return None
