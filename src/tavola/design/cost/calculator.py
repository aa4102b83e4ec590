"""The calculator: capacity and cost from rates alone, without a design.

It builds a design of one table with one read and one write, and computes its bill as for any design. The support desk's
document contains a similar calculator; `compare_with_document` explains step by step why its figures differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil

from tavola.design.cost.assumptions import Assumptions, CostError
from tavola.design.cost.capacity import pattern_units, write_pattern_units
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.text import format_price
from tavola.limits import GLOBAL_INDEXES_MAX, ITEM_BYTES_MAX
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    KeyDesign,
    PatternDesign,
    SourceDesign,
    TableDesign,
    TableSettings,
    WritePattern,
)
from tavola.prices import PriceBook

DOCUMENT = "support-desk"  # its calculator is compared with this one

_KB = 1024
_RATE_MAX = 1e9  # per second
_TABLE = "table"
_DOCUMENT_DAYS = 30  # days of requests per month in the document, which counts 730 hours of capacity


@dataclass(frozen=True, slots=True)
class TableDemand:
    """The traffic of a table while there is any, the item size, and the storage."""

    reads_per_second: float
    writes_per_second: float
    item_kb: float
    storage_gb: float = 0.0
    hours_per_day: int = 24
    consistent: bool = True
    indexes: int = 0  # that project all attributes, and are written with every item

    def __post_init__(self) -> None:
        for word, rate in (("reads", self.reads_per_second), ("writes", self.writes_per_second)):
            if not 0 <= rate < float("inf"):
                raise CostError(f"{word} per second must be 0 or more, not {rate}")
            if rate > _RATE_MAX:
                raise CostError(f"{word} per second must be at most {_RATE_MAX:g}, not {rate:g}")
        if not 0 < self.item_kb <= ITEM_BYTES_MAX / _KB:
            raise CostError(
                f"the item size must be above 0 and at most {ITEM_BYTES_MAX // _KB} KB, not {self.item_kb}"
            )
        if not 0 <= self.indexes <= GLOBAL_INDEXES_MAX:
            raise CostError(f"the number of indexes must be 0 to {GLOBAL_INDEXES_MAX}, not {self.indexes}")

    @property
    def item_bytes(self) -> int:
        """The item size in bytes."""
        return ceil(round(self.item_kb * _KB, 6))


EXAMPLE = TableDemand(100, 20, 3, 50, 12)  # the document's own


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """The monthly cost of reads, writes, storage and the rest."""

    reads: Decimal
    writes: Decimal
    storage: Decimal
    other: Decimal = Decimal(0)  # backups and free tier
    unpriced: tuple[str, ...] = ()  # prices missing from the book: the total is unknown

    @property
    def total(self) -> Decimal:
        """The sum of everything that the book has a price for."""
        return self.reads + self.writes + self.storage + self.other


@dataclass(frozen=True, slots=True)
class Calculation:
    """The capacity for a demand, and its cost on demand, with fixed units, and with auto scaling."""

    demand: TableDemand
    read_units: float  # of one read
    write_units: float
    read_capacity: int  # units per second that serve the demand
    write_capacity: int
    on_demand: CostBreakdown
    fixed: CostBreakdown
    scaled: CostBreakdown
    month: MonthlyBill  # the on-demand bill, with the book and the notes

    @property
    def missing_prices(self) -> tuple[str, ...]:
        """The prices that the book lacks."""
        alternatives = (self.on_demand, self.fixed, self.scaled)
        return tuple(dict.fromkeys(name for sums in alternatives for name in sums.unpriced))

    @property
    def recommended_mode(self) -> str | None:
        """The cheaper of on-demand and provisioned; None if a price is missing."""
        if self.missing_prices:
            return None
        return "on-demand" if self.on_demand.total <= self.cheapest_provisioned.total else "provisioned"

    @property
    def cheapest_provisioned(self) -> CostBreakdown:
        """The cheaper kind of provisioned capacity."""
        return min(self.fixed, self.scaled, key=lambda sums: sums.total)

    @property
    def saving(self) -> Decimal:
        """How much the recommended option saves."""
        return abs(self.on_demand.total - self.cheapest_provisioned.total)


@dataclass(frozen=True, slots=True)
class ComparisonStep:
    """One reason why two calculations differ, and both totals after it."""

    sentence: str
    on_demand: Decimal
    provisioned: Decimal


def calculate(demand: TableDemand, book: PriceBook, assumptions: Assumptions | None = None) -> Calculation:
    """Return the capacity for a demand and its cost; provisioned units are fixed at the demand, or follow it."""
    assumed = replace(
        assumptions or Assumptions(),
        hours_per_day=demand.hours_per_day,
        storage_gb=dict.fromkeys((_TABLE, *_copies(demand)), demand.storage_gb),
    )
    design = design_for_demand(demand)
    table = design.tables[0]
    entity = table.entities[0]
    assert entity.primary is not None, "design_for_demand declares one"
    read = pattern_units(table, entity, entity.primary)[0].read
    write = write_pattern_units(table, entity, entity.writes[0])[0].write
    reads = max(1, ceil(round(demand.reads_per_second * read, 9)))
    writes = max(1, ceil(round(demand.writes_per_second * write, 9)))
    fixed = replace(
        design,
        tables=tuple(
            replace(
                candidate,
                settings=replace(
                    candidate.settings, read_units=reads if candidate is table else 1, write_units=writes
                ),
            )
            for candidate in design.tables
        ),
    )
    month = estimate_month(design, replace(assumed, mode="on-demand"), book)
    by_units = replace(assumed, mode="provisioned")
    return Calculation(
        demand,
        read,
        write,
        reads,
        writes,
        _sums(month),
        _sums(estimate_month(fixed, by_units, book)),
        _sums(estimate_month(design, by_units, book)),
        month,
    )


def design_for_demand(demand: TableDemand) -> Design:
    """Return a design for a demand: one table of one entity, read by key and put.

    An index is modelled as another table that is written and never read, so that each can have fixed units.
    """
    field = FieldDesign("id", "pk", "text", ("S",), key_kind="text")
    key = KeyDesign(None, (SourceDesign("pk", "S", field="id"),))
    size = demand.item_bytes
    read = AccessPattern(
        "reads", demand.reads_per_second, item_bytes=size, items=1, consistent=demand.consistent
    )
    write = WritePattern("writes", "put", per_second=demand.writes_per_second, item_bytes=size)
    entity = EntityDesign(
        "Item",
        "item",
        (field,),
        key,
        primary=PatternDesign("Key", None, ("id",), access=read),
        writes=(write,),
    )
    settings = TableSettings(
        _TABLE, "pk", None, None, None, "#", None, recovery=False, recovery_days=35, encryption=None,
        table_class="STANDARD", deletion_protection=False, read_units=None, write_units=None,
    )  # fmt: skip
    table = TableDesign("Items", settings, {"pk": "S"}, (), (entity,))
    entry = replace(entity, primary=None)
    copies = (
        replace(table, settings=replace(settings, name=name), entities=(entry,)) for name in _copies(demand)
    )
    return Design((table, *copies))


def _copies(demand: TableDemand) -> tuple[str, ...]:
    return tuple(f"index {number}" for number in range(1, demand.indexes + 1))


def document_figures(demand: TableDemand, book: PriceBook) -> tuple[CostBreakdown, CostBreakdown]:
    """Return the figures as the support desk's document computes them, on demand and provisioned.

    It prices requests instead of units, counts 30 days of requests but 730 hours of units, and rounds 4.5 KB down to one read
    unit. Use it for comparison only.
    """
    reads, writes = demand.reads_per_second, demand.writes_per_second
    blocks = max(1, int((demand.item_kb + 3) / 4))
    read_units = int(reads * blocks if demand.consistent else reads * blocks / 2)
    write_units = int(writes * max(1, int(demand.item_kb)))
    active_s = 3600 * demand.hours_per_day * _DOCUMENT_DAYS
    storage = book.price("storage_gb_month").of(Decimal(str(demand.storage_gb)))
    on_demand = CostBreakdown(
        book.price("read_request_unit").of(Decimal(str(reads)) * active_s),
        book.price("write_request_unit").of(Decimal(str(writes)) * active_s),
        storage,
    )
    provisioned = CostBreakdown(
        book.price("read_capacity_unit_hour").of(read_units * Assumptions().hours_per_month),
        book.price("write_capacity_unit_hour").of(write_units * Assumptions().hours_per_month),
        storage,
    )
    return on_demand, provisioned


def compare_with_document(
    demand: TableDemand, document: PriceBook, book: PriceBook
) -> tuple[ComparisonStep, ...]:
    """Return the steps from the document's figures to correct ones, with both totals after each."""
    on_demand, provisioned = document_figures(demand, document)
    right = calculate(demand, document)
    today = calculate(demand, book)
    month = Decimal(Assumptions().hours_per_month) / 24 / _DOCUMENT_DAYS
    longer = (on_demand.reads + on_demand.writes) * month + on_demand.storage
    comparison = [
        ComparisonStep(
            f"as in the {DOCUMENT} document, at its prices: requests {on_demand.reads:.2f} + {on_demand.writes:.2f}, capacity "
            f"{provisioned.reads:.2f} + {provisioned.writes:.2f}, storage {on_demand.storage:.2f}; the difference is "
            f"{abs(on_demand.total - provisioned.total):.2f}",
            on_demand.total,
            provisioned.total,
        ),
        ComparisonStep("730 hours per month for requests too, instead of 30 days", longer, provisioned.total),
        ComparisonStep(
            f"units instead of requests: for {demand.item_kb:g} KB a write consumes {right.write_units:g} units and a read "
            f"{right.read_units:g}, rounded up",
            right.on_demand.total,
            right.fixed.total,
        ),
        ComparisonStep(
            f"prices of {book.title}: {_price_changes(document, book)}",
            today.on_demand.total,
            today.fixed.total,
        ),
    ]
    return tuple(comparison)


def _price_changes(document: PriceBook, book: PriceBook) -> str:
    units = {
        "read_request_unit": ("million read request units", 1_000_000),
        "write_request_unit": ("million write request units", 1_000_000),
        "read_capacity_unit_hour": ("1,000 RCU-hours", 1_000),
        "write_capacity_unit_hour": ("1,000 WCU-hours", 1_000),
    }
    changes = []
    for name, (unit, count) in units.items():
        before, after = document.prices.get(name), book.prices.get(name)
        if before is not None and after is not None and before.of(count) != after.of(count):
            changes.append(
                f"{format_price(after.of(count))} per {unit} instead of {format_price(before.of(count))}"
            )
    return ", ".join(changes) or "unchanged"


def _sums(month: MonthlyBill) -> CostBreakdown:
    reads, writes, storage = month.of("reads"), month.of("writes"), month.of("storage")
    return CostBreakdown(reads, writes, storage, month.total - reads - writes - storage, month.unpriced)
