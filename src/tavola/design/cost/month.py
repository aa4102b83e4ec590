"""The monthly bill of a design, by line and by access pattern.

`estimate_month` is a pure function of a design, assumptions and a price book. Each charge is rounded to 1e-10 before
anything is summed, so sums are exact: the lines add up to the total, and the bills of the access patterns to the request
lines.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from tavola.design.cost.assumptions import Assumptions, CostError
from tavola.design.cost.load import LoadPart, TableLoad, What, compute_load, entities_without_count
from tavola.design.cost.traffic import HOURS, AccessKind, PlaceTraffic, RatedAccess, hourly_units
from tavola.model.document import Design, TableDesign
from tavola.prices import Price, PriceBook

REQUESTS: tuple[What, ...] = ("reads", "writes", "transactions", "key changes", "replicated writes")
IDLE = "idle capacity"

_STEP = Decimal("1e-10")
_AMOUNT_MAX = Decimal("1e14")  # largest charge: beyond it, sums would not be exact
_HOUR_S = 3600
_WRITE: AccessKind = "write"
_BLOCK = 100  # units in a block of reserved capacity


@dataclass(frozen=True, slots=True)
class BillLine:
    """One kind of charge at one table or index."""

    table: str
    index: str | None
    what: What
    quantity: Decimal
    unit: str
    price: str  # name of the price in the book
    amount: Decimal


@dataclass(frozen=True, slots=True)
class AccessBill:
    """What the requests of one access pattern cost, at all tables and indexes."""

    kind: AccessKind
    place: str
    title: str
    per_second: float | None
    units: float  # of one request, at all tables and indexes
    amount: Decimal
    parts: tuple[tuple[What, Decimal], ...] = ()  # the amount by kind of charge


@dataclass(frozen=True, slots=True)
class ProvisionedCapacity:
    """Provisioned units of one kind at one table or index, for each hour of a day.

    The replicas of a global table have write capacity of their own, in a separate entry.
    """

    table: str
    index: str | None
    kind: AccessKind
    hourly: tuple[int, ...]
    mean: float  # units per second in demand
    peak: float
    standard: bool
    price: str  # name of the price of a unit-hour
    regions: int = 1  # with the same capacity
    reservable: bool = True  # neither replicated units nor Standard-IA

    @property
    def units(self) -> int:
        """The units of all hours of a day, in all regions."""
        return sum(self.hourly) * self.regions

    @property
    def used_units(self) -> float:
        """How many of these units are used."""
        return self.mean * HOURS * self.regions


@dataclass(frozen=True, slots=True)
class MonthlyBill:
    """A bill, and what it was computed from."""

    book: str
    region: str
    date: datetime.date
    currency: str
    hours: int
    lines: tuple[BillLine, ...]
    bills: tuple[AccessBill, ...]
    capacities: tuple[ProvisionedCapacity, ...]
    unrated: tuple[str, ...]  # access patterns without a rate, not counted
    unwritten: tuple[str, ...]  # entities without a write pattern
    unsized: tuple[str, ...]  # entities without a number of items
    unpriced: tuple[str, ...]  # prices missing from the book, not counted
    notes: tuple[str, ...]

    @property
    def total(self) -> Decimal:
        """The sum of all lines."""
        return sum((line.amount for line in self.lines), Decimal(0))

    def of(self, *whats: What) -> Decimal:
        """Return the sum of some kinds of charges."""
        return sum((line.amount for line in self.lines if line.what in whats), Decimal(0))

    @property
    def requests(self) -> Decimal:
        """What reads and writes cost, under any payment option."""
        return self.of(*REQUESTS)


@dataclass(frozen=True, slots=True)
class _Charge:
    access: int | None
    line: tuple[str, str | None, What, str]
    quantity: Decimal
    amount: Decimal


class _Ledger:
    """Collects charges, priced from one book, and the names of missing prices."""

    def __init__(self, book: PriceBook, assumptions: Assumptions) -> None:
        self.book = book
        self.assumptions = assumptions
        first_price = next(iter(book.prices.values()), None)
        self.currency = "USD" if first_price is None else first_price.currency
        self.charges: list[_Charge] = []
        self.capacities: list[ProvisionedCapacity] = []
        self.unpriced: dict[str, None] = {}
        self.notes: list[str] = []

    def price(self, name: str) -> Price | None:
        found = self.book.prices.get(name)
        return None if found is None or found.currency != self.currency else found

    def add(
        self,
        table: str,
        index: str | None,
        what: What,
        price: str,
        quantity: Decimal,
        access: int | None = None,
    ) -> None:
        if not quantity:
            return
        found = self.price(price)
        if found is None:
            self.unpriced[price] = None
            return
        amount = found.of(quantity)
        if amount > _AMOUNT_MAX:
            place = table if index is None else f"{table}/{index}"
            raise CostError(
                f"{place} would use {quantity:.3g} {found.unit}s per month, which is too much to compute; check its rates, item sizes "
                "and item counts"
            )
        amount = amount.quantize(_STEP)
        self.charges.append(_Charge(access, (table, index, what, price), quantity, amount))

    def is_provisioned(self, table: TableDesign) -> bool:
        mode = self.assumptions.mode
        return table.settings.read_units is not None if mode is None else mode == "provisioned"

    def is_standard_class(self, table: TableDesign) -> bool:
        return (self.assumptions.table_class or table.settings.table_class) == "STANDARD"

    def count_replicas(self, table: TableDesign) -> int:
        return len([region for region in table.settings.replicas if region != self.book.region])

    def credit(self, what: What, price: str, units: Decimal, amount: Decimal) -> None:
        self.charges.append(_Charge(None, ("", None, what, price), units, -amount.quantize(_STEP)))


def estimate_month(
    design: Design, assumptions: Assumptions, book: PriceBook, *, times: float = 1.0
) -> MonthlyBill:
    """Return the monthly bill of a design, with all rates multiplied by `times`.

    Patterns without a rate cost nothing and are listed in `unrated`.
    """
    if not design.tables:
        raise CostError("the design has no table; declare one, or run `tavola solve` first")
    load = compute_load(design, assumptions, times)
    accesses = load.accesses
    ledger = _Ledger(book, assumptions)
    for each in load.tables:
        _charge_requests(ledger, each)
        _charge_storage(ledger, each)
    if assumptions.reserved is not None:
        _credit_reserved(ledger)
    if assumptions.free_tier:
        _credit_free_tier(ledger)
    return MonthlyBill(
        book.title,
        book.region,
        book.date,
        ledger.currency,
        assumptions.hours_per_month,
        _lines(ledger),
        _bills(ledger, accesses),
        tuple(ledger.capacities),
        tuple(f"{each.place}: {each.title}" for each in accesses if each.per_second is None),
        tuple(entity.name for table in design.tables for entity in table.entities if not entity.writes),
        tuple(
            name
            for table in design.tables
            if table.name not in assumptions.storage_gb
            for name in entities_without_count(table)
        ),
        tuple(ledger.unpriced),
        tuple(ledger.notes),
    )


def _charge_requests(ledger: _Ledger, load: TableLoad) -> None:
    table = load.table
    kinds: tuple[AccessKind, ...] = ("read", "write")
    provisioned = ledger.is_provisioned(table)
    for index in (None, *(index.name for index in table.indexes if not index.local)):
        for kind in kinds:
            place = (index, kind)
            parts = load.parts.get(place, ())
            if not provisioned:
                _charge_on_demand(ledger, table, kind, parts)
                continue
            capacity = _capacity(ledger, table, index, kind, load.flows.get(place, ()))
            ledger.capacities.append(capacity)
            _note_throttling(ledger, capacity)
            _charge_capacity_hours(ledger, table, capacity, parts)
            if kind == "write" and ledger.count_replicas(table):
                _charge_replicas(ledger, load, index)


def _charge_on_demand(
    ledger: _Ledger, table: TableDesign, kind: AccessKind, parts: Sequence[LoadPart]
) -> None:
    active_s = (
        _HOUR_S * ledger.assumptions.hours_per_month * Decimal(ledger.assumptions.hours_per_day) / HOURS
    )
    replicas = ledger.count_replicas(table) if kind == "write" else 0
    for part in parts:
        name = _price_name(ledger, table, part.index, kind, "request_unit")
        quantity = part.per_second * active_s
        ledger.add(table.name, part.index, part.what, name, quantity, part.access)
        if part.copied:
            ledger.add(table.name, part.index, "replicated writes", name, quantity * replicas, part.access)


def _charge_capacity_hours(
    ledger: _Ledger, table: TableDesign, capacity: ProvisionedCapacity, parts: Sequence[LoadPart]
) -> None:
    """Distribute the hours of provisioned units among the accesses that use them."""
    hours = Decimal(capacity.units) * ledger.assumptions.hours_per_month / HOURS
    demand = sum((part.per_second for part in parts), Decimal(0))
    if not demand:
        what: What = "reads" if capacity.kind == "read" else "writes"
        parts = [LoadPart(None, capacity.index, what, Decimal(1), copied=True)]
        demand = Decimal(1)
    for part in parts:
        name = _price_name(ledger, table, part.index, capacity.kind, "capacity_unit_hour")
        ledger.add(table.name, part.index, part.what, name, hours * part.per_second / demand, part.access)


def _charge_replicas(ledger: _Ledger, load: TableLoad, index: str | None) -> None:
    """Charge the write capacity of each replica: whole units, and at least one."""
    table, place = load.table, (index, _WRITE)
    copied = [
        replace(part, what="replicated writes") for part in load.parts.get(place, ()) if part.copied
    ] or [LoadPart(None, index, "replicated writes", Decimal(1), copied=True)]
    own = _capacity(ledger, table, index, "write", load.copied.get(place, ()))
    capacity = replace(own, regions=ledger.count_replicas(table), reservable=False)
    ledger.capacities.append(capacity)
    _charge_capacity_hours(ledger, table, capacity, copied)


def _price_name(ledger: _Ledger, table: TableDesign, index: str | None, kind: AccessKind, unit: str) -> str:
    """Return the price name of a unit; writes to a global table have their own, if the book has it."""
    standard = ledger.is_standard_class(table)
    plain = f"{'' if standard else 'ia_'}{kind}_{unit}"
    if kind == "write" and index is None and standard and ledger.count_replicas(table):
        own = f"replicated_{plain}"
        if ledger.price(own) is not None or ledger.price(plain) is None:
            return own
    return plain


def _capacity(
    ledger: _Ledger, table: TableDesign, index: str | None, kind: AccessKind, flows: Sequence[PlaceTraffic]
) -> ProvisionedCapacity:
    """Return the units of a table or index for each hour: fixed, or as auto scaling sets them."""
    settings = table.settings
    mean, peak = sum(flow.mean for flow in flows), sum(flow.peak for flow in flows)
    hours = ledger.assumptions.hours_per_day
    fixed = settings.read_units if kind == "read" else settings.write_units
    scaling = settings.scaling
    if fixed is not None and scaling is None:
        hourly: tuple[int, ...] = (fixed,) * HOURS
    elif scaling is None:
        hourly = hourly_units(mean, peak, hours, ledger.assumptions.target)
    elif kind == "read":
        hourly = hourly_units(mean, peak, hours, scaling.target, scaling.read_min, scaling.read_max)
    else:
        hourly = hourly_units(mean, peak, hours, scaling.target, scaling.write_min, scaling.write_max)
    standard = ledger.is_standard_class(table)
    name = _price_name(ledger, table, index, kind, "capacity_unit_hour")
    copied = kind == "write" and index is None and bool(ledger.count_replicas(table))
    used = mean * hours / HOURS
    return ProvisionedCapacity(
        table.name, index, kind, hourly, used, peak, standard, name, reservable=standard and not copied
    )


def _note_throttling(ledger: _Ledger, capacity: ProvisionedCapacity) -> None:
    most = max(capacity.hourly)
    if most < capacity.peak:
        where = capacity.table if capacity.index is None else f"{capacity.table}/{capacity.index}"
        ledger.notes.append(
            f"{where} has at most {most:,} {capacity.kind} units, but needs {capacity.peak:,.0f} per second at peak: requests above "
            f"are throttled and not included; raise its {capacity.kind}_units or the maximum of its auto scaling"
        )


def _charge_storage(ledger: _Ledger, load: TableLoad) -> None:
    """Charge what is independent of requests: storage, recovery, backups, streams."""
    table, stored = load.table, load.stored
    name, settings = table.name, table.settings
    standard = ledger.is_standard_class(table)
    copies = 1 + ledger.count_replicas(table)
    for each in stored:
        price = "storage_gb_month" if standard else "ia_storage_gb_month"
        ledger.add(name, each.index, "storage", price, each.gb * copies)
    backed_up = sum((each.gb for each in stored if each.index is None or each.local), Decimal(0))
    if settings.recovery:
        ledger.add(name, None, "recovery", "pitr_gb_month", backed_up * copies)
    ledger.add(name, None, "backups", "backup_gb_month", backed_up * ledger.assumptions.backups)
    if settings.stream is not None:
        polls = (
            Decimal(str(ledger.assumptions.stream_polls_per_second))
            * _HOUR_S
            * ledger.assumptions.hours_per_month
        )
        ledger.add(name, None, "streams", "stream_read_request", polls)
    guessed = load.sparse
    if guessed:
        ledger.notes.append(
            f"Sparse indexes of {name} ({', '.join(guessed)}) are assumed to contain {ledger.assumptions.sparse_share:.0%} of the items "
            "(--sparse-share)"
        )
    if copies > 1:
        ledger.notes.append(
            f"{name} has {copies - 1} replica region{'s' if copies > 2 else ''} ({', '.join(settings.replicas)}) at the prices of "
            f"{ledger.book.region}; data transfer between regions is not included, and on-demand backups are of one region"
        )


def _credit_reserved(ledger: _Ledger) -> None:
    """Credit the savings of reserved capacity: as many blocks as are used enough to pay off."""
    discount = ledger.book.discounts.get(f"reserved_{ledger.assumptions.reserved}")
    if discount is None:
        raise CostError(
            f"the price book of {ledger.book.title} has no discount for reserved capacity; use another with --prices"
        )
    paid = 1 - discount.percent_max / 100
    kinds: tuple[AccessKind, ...] = ("read", "write")
    for kind in kinds:
        name = f"{kind}_capacity_unit_hour"
        price = ledger.price(name)
        own = [each for each in ledger.capacities if each.kind == kind and each.reservable]
        if price is None or not own:
            continue
        hourly = [sum(each.hourly[hour] for each in own) for hour in range(HOURS)]
        # Each further block is used less, so binary search finds the last one that pays off.
        low, high = 0, max(hourly) // _BLOCK + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (middle + 1, high)
                if _reserved_share(hourly, middle + 1) - _reserved_share(hourly, middle) > paid * _BLOCK
                else (low, middle)
            )
        if low:
            saved = price.of(
                (_reserved_share(hourly, low) - low * _BLOCK * paid) * ledger.assumptions.hours_per_month
            )
            ledger.credit("reserved", name, Decimal(low * _BLOCK), saved)


def _reserved_share(hourly: list[int], blocks: int) -> Decimal:
    """Return the units in use within this number of blocks, as a mean over the day."""
    return Decimal(sum(min(units, blocks * _BLOCK) for units in hourly)) / HOURS


def _credit_free_tier(ledger: _Ledger) -> None:
    """Credit the free tier of an account."""
    quantities: dict[str, Decimal] = {}
    amounts: dict[str, Decimal] = {}
    for charge in ledger.charges:
        name = charge.line[3]
        if charge.amount > 0:
            quantities[name] = quantities.get(name, Decimal(0)) + charge.quantity
        amounts[name] = amounts.get(name, Decimal(0)) + charge.amount
    for name, quantity in quantities.items():
        price = ledger.price(name)
        if price is not None and price.free is not None:
            free = min(quantity, price.free)
            ledger.credit("free tier", name, free, min(price.of(free), amounts[name]))


def _lines(ledger: _Ledger) -> tuple[BillLine, ...]:
    quantities: dict[tuple[str, str | None, What, str], Decimal] = {}
    amounts: dict[tuple[str, str | None, What, str], Decimal] = {}
    for charge in ledger.charges:
        quantities[charge.line] = quantities.get(charge.line, Decimal(0)) + charge.quantity
        amounts[charge.line] = amounts.get(charge.line, Decimal(0)) + charge.amount
    return tuple(
        BillLine(*line[:3], quantity, ledger.book.prices[line[3]].unit, line[3], amounts[line])
        for line, quantity in quantities.items()
    )


def _bills(ledger: _Ledger, accesses: tuple[RatedAccess, ...]) -> tuple[AccessBill, ...]:
    parts: dict[int | None, dict[What, Decimal]] = {}
    for charge in ledger.charges:
        what = charge.line[2]
        if what in REQUESTS:
            own = parts.setdefault(charge.access, {})
            own[what] = own.get(what, Decimal(0)) + charge.amount

    def bill(number: int | None, access: RatedAccess) -> AccessBill:
        own = parts.get(number, {})
        units = sum((units.read + units.write for units in access.units), 0.0)
        amount = sum(own.values(), Decimal(0))
        return AccessBill(
            access.kind, access.place, access.title, access.per_second, units, amount, tuple(own.items())
        )

    bills = [bill(number, access) for number, access in enumerate(accesses)]
    return (*bills, bill(None, RatedAccess("read", "", IDLE, (), None))) if None in parts else tuple(bills)
