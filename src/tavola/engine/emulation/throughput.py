"""Throughput limits of tables and global indexes, and the throttling of requests that exceed them.

A provisioned table has its units, of which 300 seconds can be saved, and adaptive capacity: one partition may use all that
the table has left, up to the partition's own limit. An on-demand table is limited by its partitions, which grow when
traffic reaches a new peak, by its own maximum if it has one, and by the account's quota. A request is checked against
every limit before it is charged, so a throttled request costs nothing. A write is throttled if one of its indexes is.

A `Charge` is the units that a request takes from a table or global index, and at which key. A local index has no throughput
of its own: its units are charged to the table. A global index whose entry moves is charged at both keys, because they may
be in different partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tavola.clock import Clock
from tavola.engine.capacity import index_write_units
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.emulation.partitions import ThroughputPartitions, TokenBucket
from tavola.engine.reads import ReadPage, ReadRange
from tavola.engine.storage import Entry
from tavola.engine.writes import CurrentItem, ItemWrite, keys_of, sizes_of
from tavola.keys import KeySchema, bounds_around
from tavola.limits import (
    BURST_S,
    ON_DEMAND_WARM_READS_PER_S,
    ON_DEMAND_WARM_WRITES_PER_S,
    PARTITION_READS_PER_S,
    PARTITION_WRITES_PER_S,
    TABLE_CAPACITY_UNITS_MAX,
)
from tavola.protocol.arns import index_arn
from tavola.protocol.faults import (
    CancellationReason,
    Fault,
    ProvisionedThroughputExceededFault,
    RequestLimitExceededFault,
    ThrottlingFault,
)
from tavola.values import decode_item, read_units, write_units

Access = Literal["Read", "Write"]
Reach = Literal["item", "partition", "scan"]  # what the key identifies


class Charge(Struct, frozen=True):
    """Units of one kind, on a table or on a global index of it, at one key."""

    table: StoredTable
    index: StoredIndex | None
    access: Access
    key: bytes  # ordered; for a page, its start
    units: float
    reach: Reach = "item"


def write_charges(write: ItemWrite, factor: float = 1.0) -> list[Charge]:
    """Return the charges of a prepared write: on its table `factor` times the units, on its indexes the units."""
    current = write.current
    table = current.table
    table_units = factor * write_units(current.size, write.size)
    if not table.indexes:
        return [Charge(table, None, "Write", current.key, table_units)]
    old = None if current.item is None else (current.item, current.size, current.entries)
    new = None if write.item is None else (write.item, write.size, write.entries)
    units = index_write_units(table, old, new)
    charges: list[Charge] = []
    if units:
        before, after = _entries(table, old), _entries(table, new)
        for position, index in enumerate(table.indexes):
            cost = units.get(index.name)
            if cost is None:
                continue
            if not index.is_global:
                table_units += cost
                continue
            (old_key, old_size), (new_key, new_size) = before[position], after[position]
            if old_key == new_key and isinstance(old_key, bytes):
                charges.append(Charge(table, index, "Write", old_key, cost))
                continue
            for key, size in ((old_key, old_size), (new_key, new_size)):
                if isinstance(key, bytes):
                    charges.append(Charge(table, index, "Write", key, write_units(size or 0, 0)))
    return [Charge(table, None, "Write", current.key, table_units), *charges]


def check_charges(current: CurrentItem, factor: float = 1.0) -> list[Charge]:
    """Return the charges of a condition without a write: the write units of the current item."""
    units = factor * write_units(current.size, 0)
    return [Charge(current.table, None, "Write", current.key, units)]


def page_charge(span: ReadRange, units: float) -> Charge:
    """Return the charge of a page of a query or scan, at the key where it starts.

    Charging each row at its own key would need every row's key; a page is small compared with a partition.
    """
    index = span.index
    if span.after is not None:
        entry, key = span.after
        key = key if index is None else index.schema.without_tie(entry)
    else:
        key = span.bounds.lower
    owner = index if index is not None and index.is_global else None
    return Charge(span.table, owner, "Read", key, units, "scan" if span.partition is None else "partition")


def _entries(
    table: StoredTable, image: tuple[object, int, tuple[Entry, ...]] | None
) -> list[tuple[Entry, int | None]]:
    if image is None:
        return [(None, None)] * len(table.indexes)
    keys = [
        index.schema.without_tie(key) if isinstance(key, bytes) else None
        for index, key in zip(table.indexes, keys_of(table, image[2]), strict=True)
    ]
    return list(zip(keys, sizes_of(table, image[1], image[2]), strict=True))


_PEAK_WINDOW_S = 60.0  # over which on-demand traffic is measured
_PEAK_AGE_S = 30 * 60.0  # after which a peak counts as previous, and twice as much can be served

KEY_RANGE = "KeyRangeThroughputExceeded"

_TABLE_EXCEEDED = (
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
    "provisioning level with the UpdateTable API."
)
_INDEX_EXCEEDED = "The level of configured provisioned throughput for the index was exceeded"
_INDEXES_EXCEEDED = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table was "
    "exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes "
    "with the UpdateTable API."
)
_SCALING = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your "
    "table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html."
)
_INDEXES_SCALING = (
    "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is "
    "automatically scaling your index so please try again shortly."
)
_OVER_MAXIMUM = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
_ACCOUNT = "Throughput exceeds the current throughput limit for your account."


class Allowance(Struct, frozen=True):
    """The limits of a table or index, by its definition."""

    on_demand: bool
    reads: float  # per second; on demand, the maximum, or the quota of the account
    writes: float
    limited_reads: bool = False  # the maximum was set by its owner
    limited_writes: bool = False
    partitions: int = 1

    def limit(self, access: Access) -> str:
        """Return AWS's name for the limit of a table as a whole."""
        if not self.on_demand:
            return "ProvisionedThroughputExceeded"
        limited = self.limited_reads if access == "Read" else self.limited_writes
        return "MaxOnDemandThroughputExceeded" if limited else "AccountLimitExceeded"


class Throttle(Struct, frozen=True):
    """One limit that a request exceeds."""

    arn: str
    of_index: bool
    on_demand: bool
    access: Access
    limit: str

    @property
    def reason(self) -> dict[str, str]:
        """Return the limit as AWS names it in ThrottlingReasons."""
        kind = "Index" if self.of_index else "Table"
        return {"reason": f"{kind}{self.access}{self.limit}", "resource": self.arn}

    @property
    def message(self) -> str:
        """Return AWS's message, for the first exceeded limit of a request."""
        if self.limit == "AccountLimitExceeded":
            return _ACCOUNT
        if self.limit == "MaxOnDemandThroughputExceeded":
            return _OVER_MAXIMUM
        indexes = self.of_index and self.access == "Write"
        if self.on_demand:
            return _INDEXES_SCALING if indexes else _SCALING
        if not self.of_index:
            return _TABLE_EXCEEDED
        return _INDEXES_EXCEEDED if indexes else _INDEX_EXCEEDED


class MeteredResource:
    """One table or global index with its token buckets and partitions."""

    __slots__ = (
        "_peaks",
        "_window",
        "_window_at_s",
        "allowance",
        "arn",
        "definition",
        "of_index",
        "partitions",
        "reads",
        "writes",
    )

    def __init__(self, table: StoredTable, index: StoredIndex | None, now_s: float) -> None:
        schema: KeySchema = table.schema if index is None else index.schema
        self.definition = table.definition
        self.of_index = index is not None
        self.arn = table.arn if index is None else index_arn(table.scope, table.name, index.name)
        self.allowance = allowance_of(table, index)
        kept_s = 1.0 if self.allowance.on_demand else BURST_S
        self.reads = TokenBucket(self.allowance.reads, kept_s, now_s)
        self.writes = TokenBucket(self.allowance.writes, kept_s, now_s)
        self.partitions = ThroughputPartitions(
            self.allowance.partitions,
            now_s,
            lambda key: bounds_around(schema, key).lower,
            whole_collections=index is None and table.has_local,
        )
        self._window = [0.0, 0.0]
        self._window_at_s = now_s
        self._peaks: list[tuple[float, int]] = []  # the time of a peak, and the partitions it needs

    def renew(self, table: StoredTable, index: StoredIndex | None, now_s: float) -> None:
        """Adopt a table's new definition: other units, perhaps another billing mode; partitions stay."""
        self.definition = table.definition
        changed = allowance_of(table, index)
        if changed.on_demand != self.allowance.on_demand:
            kept_s = 1.0 if changed.on_demand else BURST_S
            self.reads = TokenBucket(changed.reads, kept_s, now_s)
            self.writes = TokenBucket(changed.writes, kept_s, now_s)
        self.reads.set_rate(changed.reads, now_s)
        self.writes.set_rate(changed.writes, now_s)
        self.allowance = changed
        self.partitions.grow(changed.partitions, now_s)

    def throttles(self, access: Access, key: bytes, now_s: float) -> list[Throttle]:
        """Return the limits that throttle an access now."""
        exceeded: list[str] = []
        partition = self.partitions.find(key)
        whole, part = (self.reads, partition.reads) if access == "Read" else (self.writes, partition.writes)
        if not whole.has_tokens(now_s):
            exceeded.append(self.allowance.limit(access))
        if not part.has_tokens(now_s):
            exceeded.append(KEY_RANGE)
        on_demand = self.allowance.on_demand
        return [Throttle(self.arn, self.of_index, on_demand, access, limit) for limit in exceeded]

    def take(self, charge: Charge, now_s: float) -> None:
        """Charge an access that is not throttled."""
        partition = self.partitions.find(charge.key)
        if charge.access == "Read":
            self.reads.take(charge.units)
            partition.reads.take(charge.units)
        else:
            self.writes.take(charge.units)
            partition.writes.take(charge.units)
        if self.allowance.on_demand:
            self._measure(charge, now_s)

    def heat(self, charge: Charge, now_s: float, split_after_s: float, *, throttled: bool) -> None:
        """Count an access in its partition, and split the partition if it has been hot for long enough."""
        partition = self.partitions.find(charge.key)
        reads, writes = (charge.units, 0.0) if charge.access == "Read" else (0.0, charge.units)
        self.partitions.split_if_hot(partition, split_after_s, now_s)
        partition = self.partitions.find(charge.key)
        partition.note(charge.key, reads, writes, now_s, throttled=throttled)

    def _measure(self, charge: Charge, now_s: float) -> None:
        """Measure on-demand traffic; twice the peak of half an hour ago can be served."""
        passed = now_s - self._window_at_s
        if not 0 <= passed < _PEAK_WINDOW_S:
            reads, writes = (units / _PEAK_WINDOW_S for units in self._window)
            needed = partitions_for(2 * reads, 2 * writes)
            highest = max((count for _, count in self._peaks), default=len(self.partitions))
            if needed > max(highest, len(self.partitions)):
                self._peaks.append((now_s, needed))
            while self._peaks and self._peaks[0][0] + _PEAK_AGE_S <= now_s:
                self.partitions.grow(self._peaks.pop(0)[1], now_s)
            self._window = [0.0, 0.0]
            self._window_at_s = now_s
        self._window[charge.access == "Write"] += charge.units


def scan_units(resource: MeteredResource, span: ReadRange, page: ReadPage, *, consistent: bool) -> float:
    """Return the units of a page of a scan, of which every partition that it passes charges its part.

    A partition charges at least the minimum, also if it has no items. So a scan of a new on-demand table, which has four
    partitions, consumes four units for one tiny item.
    """
    schema = span.table.schema if span.index is None else span.index.schema
    keys = [schema.key_of(decode_item(row[0])) for row in page.rows]
    start = page_charge(span, 0.0).key
    end = keys[-1] if page.more and keys else span.bounds.upper
    page_bytes = {
        part.lower: 0
        for part in resource.partitions
        if (part.upper is None or start < part.upper) and (end is None or part.lower < end)
    }
    for key, row in zip(keys, page.rows, strict=True):
        lower = resource.partitions.find(key).lower
        page_bytes[lower] = page_bytes.get(lower, 0) + row[1]
    return sum(read_units(size, consistent=consistent) for size in page_bytes.values())


class ThroughputMeter:
    """The metered tables and indexes: every one accessed since the engine was opened."""

    def __init__(self, clock: Clock, split_after_s: float) -> None:
        self._clock = clock
        self._split_after_s = split_after_s
        self._resources: dict[tuple[int, int], MeteredResource] = {}

    def throttles(self, charges: Sequence[Charge]) -> list[Throttle]:
        """Return every limit that throttles a request, each once; charge nothing."""
        now_s = self._clock.elapsed()
        distinct: dict[Throttle, None] = {}
        for charge in charges:
            resource = self.resource(charge.table, charge.index)
            throttles = resource.throttles(charge.access, charge.key, now_s)
            if throttles:
                # A request throttled by its partition is heat; one throttled by the table as a whole is not.
                hot = any(throttle.limit == KEY_RANGE for throttle in throttles)
                resource.heat(charge, now_s, self._split_after_s, throttled=hot)
                distinct.update(dict.fromkeys(throttles))
        return list(distinct)

    def take(self, charges: Sequence[Charge]) -> None:
        """Charge a request that is not throttled."""
        now_s = self._clock.elapsed()
        for charge in charges:
            resource = self.resource(charge.table, charge.index)
            resource.take(charge, now_s)
            resource.heat(charge, now_s, self._split_after_s, throttled=False)

    def resource(self, table: StoredTable, index: StoredIndex | None) -> MeteredResource:
        """Return the metered table or global index."""
        resource_id = (table.definition.number, 0 if index is None else index.definition.slot)
        resource = self._resources.get(resource_id)
        if resource is None:
            resource = self._resources[resource_id] = MeteredResource(table, index, self._clock.elapsed())
        elif resource.definition is not table.definition:
            resource.renew(table, index, self._clock.elapsed())
        return resource

    def drop(self, table: StoredTable) -> None:
        """Drop the state of a deleted table and its indexes."""
        number = table.definition.number
        for resource_id in [resource for resource in self._resources if resource[0] == number]:
            del self._resources[resource_id]


def fault_of(throttles: Sequence[Throttle]) -> Fault:
    """Return AWS's fault for a throttled request."""
    first = throttles[0]
    reasons = [throttle.reason for throttle in throttles]
    if not first.on_demand:
        return ProvisionedThroughputExceededFault(first.message, reasons)
    if first.limit == "AccountLimitExceeded":
        return RequestLimitExceededFault(first.message, reasons)
    return ThrottlingFault(first.message, reasons)


def reason_of(throttles: Sequence[Throttle]) -> CancellationReason:
    """Return why an action of a transaction was throttled."""
    first = throttles[0]
    code = "ThrottlingError" if first.on_demand else "ProvisionedThroughputExceeded"
    return CancellationReason(code, first.message)


def allowance_of(table: StoredTable, index: StoredIndex | None) -> Allowance:
    """Return the limits of a table or global index."""
    definition = table.definition
    throughput_definition = definition if index is None else index.definition
    warm = throughput_definition.warm or {}
    if definition.billing == "PAY_PER_REQUEST":
        maxima = throughput_definition.on_demand or {}
        reads, writes = maxima.get("MaxReadRequestUnits", -1), maxima.get("MaxWriteRequestUnits", -1)
        return Allowance(
            on_demand=True,
            reads=float(reads if reads > 0 else TABLE_CAPACITY_UNITS_MAX),
            writes=float(writes if writes > 0 else TABLE_CAPACITY_UNITS_MAX),
            limited_reads=reads > 0,
            limited_writes=writes > 0,
            partitions=partitions_for(
                max(warm.get("ReadUnitsPerSecond", 0), ON_DEMAND_WARM_READS_PER_S),
                max(warm.get("WriteUnitsPerSecond", 0), ON_DEMAND_WARM_WRITES_PER_S),
            ),
        )
    units = throughput_definition.throughput or definition.throughput
    return Allowance(
        on_demand=False,
        reads=float(units.reads),
        writes=float(units.writes),
        partitions=partitions_for(
            max(units.reads, warm.get("ReadUnitsPerSecond", 0)),
            max(units.writes, warm.get("WriteUnitsPerSecond", 0)),
        ),
    )


def partitions_for(reads: float, writes: float) -> int:
    """Return the number of partitions needed for this throughput per second, spread evenly."""
    by_reads = -(-reads // PARTITION_READS_PER_S)
    by_writes = -(-writes // PARTITION_WRITES_PER_S)
    return int(max(1, by_reads, by_writes))
