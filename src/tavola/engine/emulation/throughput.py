"""Throughput: what tables and global indexes may do in a second, and the refusal of more.

Provisioned: the units that were asked for, of which 300 seconds' worth can be saved, and adaptive capacity
that lends one partition all that the table has left, up to the partition's own limit. On demand: what its
partitions can do, which are made more when traffic reaches a new peak; the maximum that was set, if any; the
account's quota. A request is checked against all that it touches before it takes anything, so what is
refused costs nothing; a write whose index has no room is refused for the index's sake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tavola.clock import Clock
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.emulation.buckets import TokenBucket
from tavola.engine.emulation.charges import Access, Charge
from tavola.engine.emulation.partitions import ThroughputPartitions
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

_PEAK_WINDOW_S = 60.0  # over which on-demand traffic is measured
_PEAK_AGE_S = 30 * 60.0  # after which a peak counts as previous, and twice as much is served

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


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a table or index may do: on demand, its maximum where there is one, and what it is warm for."""

    on_demand: bool
    reads: float  # a second; on demand, the maximum, or the quota of the account
    writes: float
    limited_reads: bool = False  # the maximum was set by its owner
    limited_writes: bool = False
    partitions: int = 1

    def limit(self, access: Access) -> str:
        """Return AWS's name of the limit that a table reaches as a whole."""
        if not self.on_demand:
            return "ProvisionedThroughputExceeded"
        limited = self.limited_reads if access == "Read" else self.limited_writes
        return "MaxOnDemandThroughputExceeded" if limited else "AccountLimitExceeded"


@dataclass(frozen=True, slots=True)
class Throttle:
    """One limit that stands in a request's way."""

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
        """Return AWS's sentence for the first limit of a request."""
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
    """One table or global index as it is metered."""

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
        self._peaks: list[tuple[float, int]] = []  # when a peak was seen, and the partitions it asks for

    def renew(self, table: StoredTable, index: StoredIndex | None, now_s: float) -> None:
        """Take on a table's new definition: other units, perhaps another mode; partitions stay."""
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
        """Return the limits that stand in the way of an access now."""
        found: list[str] = []
        partition = self.partitions.find(key)
        whole, part = (self.reads, partition.reads) if access == "Read" else (self.writes, partition.writes)
        if not whole.has_tokens(now_s):
            found.append(self.allowance.limit(access))
        if not part.has_tokens(now_s):
            found.append(KEY_RANGE)
        on_demand = self.allowance.on_demand
        return [Throttle(self.arn, self.of_index, on_demand, access, limit) for limit in found]

    def take(self, charge: Charge, now_s: float) -> None:
        """Charge an access that nothing stands in the way of."""
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
        """Note an access where it fell, and split what has been hot for long enough."""
        partition = self.partitions.find(charge.key)
        reads, writes = (charge.units, 0.0) if charge.access == "Read" else (0.0, charge.units)
        self.partitions.cool(partition, split_after_s, now_s)
        partition = self.partitions.find(charge.key)
        partition.note(charge.key, reads, writes, now_s, throttled=throttled)

    def _measure(self, charge: Charge, now_s: float) -> None:
        """Measure on-demand traffic; what was the peak half an hour ago is served twice over."""
        passed = now_s - self._window_at_s
        if not 0 <= passed < _PEAK_WINDOW_S:
            reads, writes = (units / _PEAK_WINDOW_S for units in self._window)
            wanted = partitions_for(2 * reads, 2 * writes)
            most = max((count for _, count in self._peaks), default=len(self.partitions))
            if wanted > max(most, len(self.partitions)):
                self._peaks.append((now_s, wanted))
            while self._peaks and self._peaks[0][0] + _PEAK_AGE_S <= now_s:
                self.partitions.grow(self._peaks.pop(0)[1], now_s)
            self._window = [0.0, 0.0]
            self._window_at_s = now_s
        self._window[charge.access == "Write"] += charge.units


class ThroughputMeter:
    """Every table and index that was accessed since the engine was opened."""

    def __init__(self, clock: Clock, split_after_s: float) -> None:
        self._clock = clock
        self._split_after_s = split_after_s
        self._resources: dict[tuple[int, int], MeteredResource] = {}

    def throttles(self, charges: Sequence[Charge]) -> list[Throttle]:
        """Return every limit that stands in the way of a request, each once; take nothing."""
        now_s = self._clock.now()
        found: dict[Throttle, None] = {}
        for charge in charges:
            resource = self.resource(charge.table, charge.index)
            throttles = resource.throttles(charge.access, charge.key, now_s)
            if throttles:
                # What a partition refuses is heat too; what the table refuses is not the partition's matter.
                hot = any(throttle.limit == KEY_RANGE for throttle in throttles)
                resource.heat(charge, now_s, self._split_after_s, throttled=hot)
                found.update(dict.fromkeys(throttles))
        return list(found)

    def take(self, charges: Sequence[Charge]) -> None:
        """Charge a request that nothing stands in the way of."""
        now_s = self._clock.now()
        for charge in charges:
            resource = self.resource(charge.table, charge.index)
            resource.take(charge, now_s)
            resource.heat(charge, now_s, self._split_after_s, throttled=False)

    def resource(self, table: StoredTable, index: StoredIndex | None) -> MeteredResource:
        """Return a table or global index as it is metered."""
        place = (table.definition.number, 0 if index is None else index.definition.slot)
        found = self._resources.get(place)
        if found is None:
            found = self._resources[place] = MeteredResource(table, index, self._clock.now())
        elif found.definition is not table.definition:
            found.renew(table, index, self._clock.now())
        return found

    def drop(self, table: StoredTable) -> None:
        """Let go of a table that is deleted, and of its indexes."""
        number = table.definition.number
        for place in [place for place in self._resources if place[0] == number]:
            del self._resources[place]


def fault_of(throttles: Sequence[Throttle]) -> Fault:
    """Return AWS's answer to a request that limits stand in the way of."""
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
    """Return what a table or global index may do, by its definition."""
    definition = table.definition
    own = definition if index is None else index.definition
    warm = own.warm or {}
    if definition.billing == "PAY_PER_REQUEST":
        most = own.on_demand or {}
        reads, writes = most.get("MaxReadRequestUnits", -1), most.get("MaxWriteRequestUnits", -1)
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
    units = own.throughput or definition.throughput
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
    """Return how many partitions it takes to do so much in a second, if it is spread evenly."""
    by_reads = -(-reads // PARTITION_READS_PER_S)
    by_writes = -(-writes // PARTITION_WRITES_PER_S)
    return int(max(1, by_reads, by_writes))
