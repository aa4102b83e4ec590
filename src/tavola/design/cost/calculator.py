"""The calculator: capacity and cost from rates alone, without a design.

It builds a design of one table with one read and one write, and computes its bill as for any design. The support desk's
document contains a similar calculator; `compare_with_document` explains step by step why its figures differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil

from tavola.design.cost.assumptions import Assumptions, CostRefused
from tavola.design.cost.capacity import pattern_units, write_pattern_units
from tavola.design.cost.month import MonthlyBill, estimate_month
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

DOCUMENT = "support-desk"  # whose calculator is retold

_KB = 1024
_RATE_MAX = 1e9  # a second
_TABLE = "table"
_DOCUMENT_DAYS = 30  # of a month of requests, where the document counts 730 hours of units


@dataclass(frozen=True, slots=True)
class TableDemand:
    """The traffic of a table while there is any, the item size, and the storage."""

    reads_per_second: float
    writes_per_second: float
    item_kb: float
    storage_gb: float = 0.0
    hours_per_day: int = 24
    consistent: bool = True
    indexes: int = 0  # that hold whole items, and are written with each

    def __post_init__(self) -> None:
        for word, told in (("reads", self.reads_per_second), ("writes", self.writes_per_second)):
            if not 0 <= told < float("inf"):
                raise CostRefused(f"{told} {word} a second are no rate; give 0 or more")
            if told > _RATE_MAX:
                raise CostRefused(f"{told:g} {word} a second cannot be; give {_RATE_MAX:g} at most")
        if not 0 < self.item_kb <= ITEM_BYTES_MAX / _KB:
            raise CostRefused(f"an item of {self.item_kb} KB cannot be; give up to {ITEM_BYTES_MAX // _KB}")
        if not 0 <= self.indexes <= GLOBAL_INDEXES_MAX:
            raise CostRefused(f"{self.indexes} indexes cannot be; give 0 to {GLOBAL_INDEXES_MAX}")

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
    other: Decimal = Decimal(0)  # backups, and what is free
    unpriced: tuple[str, ...] = ()  # prices that the book lacks: the sum is not known

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
    read_capacity: int  # units a second that serve the demand
    write_capacity: int
    on_demand: CostBreakdown
    fixed: CostBreakdown
    scaled: CostBreakdown
    month: MonthlyBill  # the one on demand: it has the book, the notes and the lines

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The prices that the book lacks."""
        each = (self.on_demand, self.fixed, self.scaled)
        return tuple(dict.fromkeys(name for sums in each for name in sums.unpriced))

    @property
    def recommended(self) -> str | None:
        """The cheaper of on-demand and provisioned; None if a price is missing."""
        if self.unpriced:
            return None
        return "on demand" if self.on_demand.total <= self.provisioned.total else "provisioned"

    @property
    def provisioned(self) -> CostBreakdown:
        """The cheaper kind of provisioned capacity."""
        return min(self.fixed, self.scaled, key=lambda sums: sums.total)

    @property
    def saving(self) -> Decimal:
        """How much the recommended option saves."""
        return abs(self.on_demand.total - self.provisioned.total)


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
    assert entity.primary is not None, "it was made with one"
    read = pattern_units(table, entity, entity.primary)[0].read
    write = write_pattern_units(table, entity, entity.writes[0])[0].write
    reads = max(1, ceil(round(demand.reads_per_second * read, 9)))
    writes = max(1, ceil(round(demand.writes_per_second * write, 9)))
    fixed = replace(
        design,
        tables=tuple(
            replace(
                each,
                settings=replace(each.settings, read_units=reads if each is table else 1, write_units=writes),
            )
            for each in design.tables
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
            f"as the {DOCUMENT} document counts, at its prices: requests {on_demand.reads:.2f} + {on_demand.writes:.2f}, units "
            f"{provisioned.reads:.2f} + {provisioned.writes:.2f}, storage {on_demand.storage:.2f}; the difference is "
            f"{abs(on_demand.total - provisioned.total):.2f}",
            on_demand.total,
            provisioned.total,
        ),
        ComparisonStep(
            "a month of 730 hours for requests too, where the document takes 30 days of them",
            longer,
            provisioned.total,
        ),
        ComparisonStep(
            f"units and not requests: of {demand.item_kb:g} KB a write takes {right.write_units:g} and a read "
            f"{right.read_units:g}, rounded up",
            right.on_demand.total,
            right.fixed.total,
        ),
        ComparisonStep(
            f"at the prices of {book.title}: {_price_changes(document, book)}",
            today.on_demand.total,
            today.fixed.total,
        ),
    ]
    return tuple(comparison)


def _price_changes(document: PriceBook, book: PriceBook) -> str:
    words = {
        "read_request_unit": "a million reads",
        "write_request_unit": "a million writes",
        "read_capacity_unit_hour": "an hour of a read unit",
        "write_capacity_unit_hour": "an hour of a write unit",
    }
    changes = []
    for name, word in words.items():
        before, after = document.prices.get(name), book.prices.get(name)
        if (
            before is not None
            and after is not None
            and before.of(before.per) / before.per != after.of(after.per) / after.per
        ):
            changes.append(f"{word} {after.amount} instead of {before.amount}")
    return ", ".join(changes) or "the same"


def _sums(month: MonthlyBill) -> CostBreakdown:
    reads, writes, storage = month.of("reads"), month.of("writes"), month.of("storage")
    return CostBreakdown(reads, writes, storage, month.total - reads - writes - storage, month.unpriced)
