"""Emulation: effects of production that an engine can reproduce on purpose.

Operations consult it before they write and after they read: is the request throttled, does it conflict, which state of the
table does it see, is it left unprocessed? Each effect is a class of its own and is None unless its switch is on. Hot keys
are counted here too, because every access passes here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tavola.clock import Clock
from tavola.engine.catalog import Catalog, StoredIndex, StoredTable
from tavola.engine.emulation.chance import SeededChance, share_of
from tavola.engine.emulation.conflicts import ONGOING, Conflicts
from tavola.engine.emulation.hot_keys import HotKeyCounters, KeyCounters
from tavola.engine.emulation.interleaving import read_interleaved, window_start_us
from tavola.engine.emulation.staleness import Staleness
from tavola.engine.emulation.switches import Switches
from tavola.engine.emulation.throughput import (
    Charge,
    Throttle,
    ThroughputMeter,
    check_charges,
    fault_of,
    page_charge,
    reason_of,
    scan_units,
    write_charges,
)
from tavola.engine.reads import ReadPage, ReadRange
from tavola.engine.request_context import ItemAccess
from tavola.engine.storage import ChangeLog, ChangeLogRow
from tavola.engine.streams import StreamShard
from tavola.engine.writes import CurrentItem, ItemWrite
from tavola.keys import bounds_around, values_of
from tavola.limits import TRANSACTION_UNITS_FACTOR
from tavola.protocol.arns import Scope
from tavola.protocol.faults import (
    CancellationReason,
    TransactionCanceledFault,
    TransactionConflictFault,
    TransactionInProgressFault,
)
from tavola.values import Item

_PASSED = CancellationReason("None")
_REFUSED_MAX = 400  # refused charges of one call: a hundred actions with a few indexes each


class UnprocessedMembers:
    """Chooses the members of batches that come back unprocessed although nothing is wrong with them.

    A batch on AWS is not atomic: any of its members may come back unprocessed, and code that does not retry loses them. At
    least one member is always processed, so retrying ends.
    """

    def __init__(self, share: float, chance: SeededChance) -> None:
        self._share = share
        self._chance = chance

    def choose_unprocessed(self, members: int) -> frozenset[int]:
        """Return the positions of the unprocessed members of a batch with `members` members."""
        shares = [self._chance.share() for _ in range(members)]
        processed = max(range(members), key=lambda position: shares[position], default=0)
        return frozenset(
            position for position, share in enumerate(shares) if share < self._share and position != processed
        )


@dataclass(frozen=True, slots=True)
class HotItem:
    """A hot key: its attributes, its count, and by how much the count may be too high."""

    key: Item
    count: float
    error: float


@dataclass(frozen=True, slots=True)
class Hottest:
    """The hottest keys of a table or global index, the hottest first."""

    accessed: tuple[HotItem, ...] = ()  # partition keys, by the units they took
    accessed_items: tuple[HotItem, ...] = ()  # whole keys; the same where there is no sort key
    throttled: tuple[HotItem, ...] = ()  # partition keys, by the requests that were refused
    throttled_items: tuple[HotItem, ...] = ()


class Emulation:
    """The effects that are emulated in one engine, and their state, which is not stored."""

    def __init__(self, switches: Switches, clock: Clock, catalog: Catalog) -> None:
        self.switches = switches
        self.active = False  # whether calls have to consult it
        self._clock = clock
        self._time = catalog.time
        self.throughput: ThroughputMeter | None = None
        self.staleness: Staleness | None = None
        self.conflicts: Conflicts | None = None
        self.unprocessed: UnprocessedMembers | None = None
        self._counters: dict[tuple[int, int], HotKeyCounters] = {}
        self._refused: deque[ItemAccess] = deque(maxlen=_REFUSED_MAX)  # since the last `take_refused`
        if switches.throughput:
            self.throughput = ThroughputMeter(clock, switches.split_after_s)
        if switches.needs_history:
            self.staleness = Staleness(
                catalog.time,
                stale_s=switches.stale_reads_s,
                lag_s=switches.gsi_lag_s,
                reads=self._chance("stale-reads"),
                lags=self._chance("gsi-lag"),
            )
        if switches.conflicts_s is not None:
            self.conflicts = Conflicts(clock, switches.conflicts_s, self._chance("conflicts"))
        if switches.unprocessed is not None:
            self.unprocessed = UnprocessedMembers(switches.unprocessed, self._chance("unprocessed"))
        self.update_active(catalog)

    def update_active(self, catalog: Catalog) -> None:
        """Set `active`: whether any switch, or Contributor Insights of any table or index, is on."""
        self.active = self.switches.any or _has_insights(catalog)
        if not self.active:
            self._counters.clear()

    def _chance(self, switch: str) -> SeededChance:
        return SeededChance(self.switches.seed_of(switch))

    # Reads.

    def table_view(
        self, table: StoredTable, index: StoredIndex | None, consistent: bool | None
    ) -> StoredTable:
        """Return the state of a table that a read sees."""
        if self.staleness is None:
            return table
        return self.staleness.table_view(table, index, consistent=bool(consistent))

    def charge_item_read(self, table: StoredTable, key: bytes, units: float) -> None:
        """Charge a read of one item, or throttle it."""
        if self._meters(table):
            self._charge_or_throttle([Charge(table, None, "Read", key, units)])

    def scan_units(self, span: ReadRange, page: ReadPage, *, consistent: bool) -> float | None:
        """Return the units of a page of a scan while throughput is emulated; otherwise, and for a query, None."""
        if self.throughput is None or span.partition is not None:
            return None
        owner = span.index if span.index is not None and span.index.is_global else None
        resource = self.throughput.resource(span.table, owner)
        return scan_units(resource, span, page, consistent=consistent)

    def charge_page(self, span: ReadRange, units: float) -> None:
        """Charge a page of a query or scan, or throttle it."""
        if self._meters(span.table):
            self._charge_or_throttle([page_charge(span, units)])

    def charge_transaction_reads(self, reads: Sequence[tuple[StoredTable, bytes, float]]) -> None:
        """Charge a transactional read, or cancel it with a reason for each item."""
        if self.conflicts is not None:
            conflicts = [self.conflicts.blocks_read(_address(table, key)) for table, key, _ in reads]
            _cancel([ONGOING if conflict else _PASSED for conflict in conflicts])
        self._charge_all_or_throttle(
            [[Charge(table, None, "Read", key, units)] for table, key, units in reads]
        )

    # Writes.

    def check_conflict(self, table: StoredTable, key: bytes) -> None:
        """Refuse a single write whose item is in a running transaction."""
        if self.conflicts is not None and self.conflicts.blocks_write(_address(table, key)):
            raise TransactionConflictFault()

    def charge_write(self, write: ItemWrite) -> None:
        """Charge a single write, or throttle it."""
        if self._meters(write.table):
            self._charge_or_throttle(write_charges(write))
        self._hold_written_item(write.current)

    def charge_failed_condition(self, current: CurrentItem) -> None:
        """Charge a write whose condition was not met, or throttle it instead."""
        self._charge_or_throttle(check_charges(current))

    def check_token(self, scope: Scope, token: str) -> None:
        """Refuse a transaction whose token belongs to one that is still running."""
        if self.conflicts is not None and self.conflicts.in_progress(scope, token):
            raise TransactionInProgressFault()

    def check_transaction_conflicts(self, items: Sequence[tuple[StoredTable, bytes] | None]) -> None:
        """Cancel a write transaction if one of its items is in another one."""
        if self.conflicts is not None:
            _cancel(
                [
                    ONGOING if item is not None and self.conflicts.blocks_write(_address(*item)) else _PASSED
                    for item in items
                ]
            )

    def charge_transaction(
        self, prepared: Sequence[tuple[CurrentItem, ItemWrite | None]], scope: Scope, token: str | None
    ) -> None:
        """Charge a write transaction and hold its items, or cancel it with a reason for each action."""
        self._charge_all_or_throttle([_action_charges(*action) for action in prepared])
        if self.conflicts is not None:
            addresses = [_address(current.table, current.key) for current, _ in prepared]
            self.conflicts.hold_transaction(addresses, scope, token)

    def charge_cancelled_transaction(self, items: Sequence[CurrentItem]) -> None:
        """Charge a cancelled transaction as much as it would have consumed."""
        charges = [charge for current in items for charge in check_charges(current, TRANSACTION_UNITS_FACTOR)]
        if self.throughput is not None:
            self.throughput.take(charges)
        self._note(charges, throttled=False)

    # Batches.

    def choose_unwritten(self, writes: Sequence[ItemWrite]) -> frozenset[int]:
        """Return the positions of the writes that a batch leaves unprocessed; throttle it if none would be processed."""
        left = set() if self.unprocessed is None else set(self.unprocessed.choose_unprocessed(len(writes)))
        refused: list[Throttle] = []
        for position, write in enumerate(writes):
            if position in left:
                continue
            current = write.current
            conflict = self.conflicts is not None and self.conflicts.blocks_write(
                _address(current.table, current.key)
            )
            throttles = [] if conflict else self._throttles(write_charges(write))
            refused.extend(throttles)
            if conflict or throttles:
                left.add(position)
            else:
                self._hold_written_item(current)
        if refused and len(left) == len(writes):
            raise fault_of(list(dict.fromkeys(refused)))
        return frozenset(left)

    def choose_unread(self, reads: Sequence[tuple[StoredTable, bytes, float]]) -> frozenset[int]:
        """Return the positions of the reads that a batch leaves unprocessed; throttle it if none would be processed."""
        left = set() if self.unprocessed is None else set(self.unprocessed.choose_unprocessed(len(reads)))
        refused: list[Throttle] = []
        for position, (table, key, units) in enumerate(reads):
            if position not in left:
                throttles = self._throttles([Charge(table, None, "Read", key, units)])
                if throttles:
                    refused.extend(throttles)
                    left.add(position)
        if refused and len(left) == len(reads):
            raise fault_of(list(dict.fromkeys(refused)))
        return frozenset(left)

    # Streams and expiry.

    @property
    def interleaves(self) -> bool:
        """Whether stream records of different items are reordered."""
        return self.switches.interleave_s is not None

    def read_shard(
        self, log: ChangeLog, shard: StreamShard, after: int, limit: int
    ) -> tuple[list[ChangeLogRow], int]:
        """Return changes of a shard after an id, reordered across items, and the id to continue after."""
        window_s = self.switches.interleave_s
        assert window_s is not None, "interleaving is on"
        self._time.tick()  # a window that is over here is over for the changes that follow
        return read_interleaved(
            log, shard, after, limit, self._time.now_us, window_s, self.switches.seed_of("interleave")
        )

    def before_window(self, log: ChangeLog, at_us: int) -> int:
        """Return the id of the last change before the window of a time, so that a reader from there misses nothing.

        Within a window, changes are reordered, so a reader must start at its beginning.
        """
        window_s = self.switches.interleave_s
        assert window_s is not None, "interleaving is on"
        return log.id_at(window_start_us(at_us, window_s) - 1)

    @property
    def ttl_delay_s(self) -> float:
        """How long expired items stay now; it changes after each period of the longest delay."""
        longest_s = self.switches.ttl_delay_s
        if longest_s is None:
            return 0.0
        period = int(self._clock.now() // longest_s)
        return longest_s * share_of(self.switches.seed_of("ttl-delay"), f"{period}".encode())

    # Hot keys.

    def hottest(self, table: StoredTable, index: StoredIndex | None, count: int) -> Hottest:
        """Return the hottest keys of a table or global index since counting began."""
        counters = self._counters.get(_counter_key(table, index)) or HotKeyCounters()
        schema = table.schema if index is None else index.schema
        hash_only = not schema.range  # every partition key is a whole key

        def top(keys: KeyCounters) -> tuple[HotItem, ...]:
            return tuple(HotItem(values_of(schema, hot.key), hot.count, hot.error) for hot in keys.top(count))

        return Hottest(
            accessed=top(counters.accessed),
            accessed_items=top(counters.accessed if hash_only else counters.accessed_items),
            throttled=top(counters.throttled),
            throttled_items=top(counters.throttled if hash_only else counters.throttled_items),
        )

    def take_refused(self) -> tuple[ItemAccess, ...]:
        """Return the accesses that were throttled since the last call, without units."""
        if not self._refused:
            return ()
        refused = tuple(self._refused)
        self._refused.clear()
        return refused

    def forget(self, table: StoredTable, index: StoredIndex | None) -> None:
        """Reset the counters of a table or index."""
        self._counters.pop(_counter_key(table, index), None)

    def drop(self, table: StoredTable) -> None:
        """Drop the state of a deleted table."""
        number = table.definition.number
        for counter_key in [counter for counter in self._counters if counter[0] == number]:
            del self._counters[counter_key]
        if self.throughput is not None:
            self.throughput.drop(table)

    def _meters(self, table: StoredTable) -> bool:
        """Return whether accesses of a table are charged or counted."""
        return self.throughput is not None or bool(table.definition.insights)

    def _charge_or_throttle(self, charges: list[Charge]) -> None:
        throttles = self._throttles(charges)
        if throttles:
            raise fault_of(throttles)

    def _charge_all_or_throttle(self, actions: list[list[Charge]]) -> None:
        """Charge all actions of a transaction, or cancel it with a reason for each."""
        everything = [charge for charges in actions for charge in charges]
        if self.throughput is None:
            self._note(everything, throttled=False)
            return
        throttles_by_action = [self.throughput.throttles(charges) for charges in actions]
        if any(throttles_by_action):
            for charges, throttles in zip(actions, throttles_by_action, strict=True):
                if throttles:
                    self._note_throttled(charges, throttles)
            _cancel([reason_of(throttles) if throttles else _PASSED for throttles in throttles_by_action])
        self.throughput.take(everything)
        self._note(everything, throttled=False)

    def _throttles(self, charges: list[Charge]) -> list[Throttle]:
        """Return the limits that throttle a request; charge it if there are none."""
        if self.throughput is not None:
            throttles = self.throughput.throttles(charges)
            if throttles:
                self._note_throttled(charges, throttles)
                return throttles
            self.throughput.take(charges)
        self._note(charges, throttled=False)
        return []

    def _note_throttled(self, charges: list[Charge], throttles: list[Throttle]) -> None:
        """Count a throttled request at the table or index that throttled it."""
        assert self.throughput is not None, "only throughput throttles"
        refusing = {throttle.arn for throttle in throttles}
        own = [
            charge
            for charge in charges
            if self.throughput.resource(charge.table, charge.index).arn in refusing
        ]
        self._note(own, throttled=True)
        self._refused.extend(_refusal(charge) for charge in own)

    def _note(self, charges: Sequence[Charge], *, throttled: bool) -> None:
        for charge in charges:
            mode = insights_mode(charge.table, charge.index)
            if mode is None and self.throughput is None:
                continue
            if not throttled and mode == "THROTTLED_KEYS":
                continue
            if charge.reach == "scan":
                continue  # a scan has no key
            schema = charge.table.schema if charge.index is None else charge.index.schema
            counters = self._counters.setdefault(_counter_key(charge.table, charge.index), HotKeyCounters())
            partition = bounds_around(schema, charge.key).lower
            item = charge.key if charge.reach == "item" and schema.range else None
            if throttled:
                counters.note_throttled(partition, item)
            else:
                counters.note_accessed(partition, item, charge.units)

    def _hold_written_item(self, current: CurrentItem) -> None:
        if self.conflicts is not None:
            self.conflicts.hold_write(_address(current.table, current.key))


def insights_mode(table: StoredTable, index: StoredIndex | None) -> str | None:
    """Return the mode of Contributor Insights for a table or global index; None if it is off."""
    insights = table.definition.insights
    if not insights:
        return None
    setting = insights.get(0 if index is None else index.definition.slot)
    return setting.mode if setting is not None and setting.enabled else None


def _has_insights(catalog: Catalog) -> bool:
    return any(
        setting.enabled for table in catalog.tables() for setting in table.definition.insights.values()
    )


def _refusal(charge: Charge) -> ItemAccess:
    key = None if charge.reach == "scan" else charge.key
    if charge.index is None:
        return ItemAccess(charge.table.arn, None, key, 0.0, 0.0)
    return ItemAccess(charge.table.arn, charge.index.name, None, 0.0, 0.0, key)


def _address(table: StoredTable, key: bytes) -> tuple[int, bytes]:
    return table.definition.number, key


def _counter_key(table: StoredTable, index: StoredIndex | None) -> tuple[int, int]:
    return table.definition.number, 0 if index is None else index.definition.slot


def _action_charges(current: CurrentItem, write: ItemWrite | None) -> list[Charge]:
    return (
        check_charges(current, TRANSACTION_UNITS_FACTOR)
        if write is None
        else write_charges(write, TRANSACTION_UNITS_FACTOR)
    )


def _cancel(reasons: list[CancellationReason]) -> None:
    """Raise TransactionCanceledFault if any action has a reason."""
    if any(reason is not _PASSED for reason in reasons):
        raise TransactionCanceledFault(reasons)
