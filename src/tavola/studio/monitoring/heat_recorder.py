"""Count which keys are accessed, when and how much, in bounded memory.

Each table and index has a sequence of time slots that get coarser with age:

    now ◄── 600 slots of 1 s ──◄── 1 h of 10 s slots ──◄── 8 h of 60 s slots

A slot names its heaviest partition keys and sums up the rest, so totals are exact however many keys there are. Recording a
call updates one dictionary entry. Slots are built once per second while calls wait, so only one slot per length is merged at
a time. What it gives up: the identity of light keys, and of old ones when memory runs short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any

import msgspec

from tavola.clock import Clock, ManualClock
from tavola.engine import ItemAccess
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import THROTTLING_CODES, Fault, ThrottlingFault
from tavola.studio.monitoring.heat_slots import (
    KEYS_KEPT,
    HeatCounts,
    HeatSlot,
    HeatSums,
    SlotCells,
    build_slot,
    heaviest_items,
    merge_slots,
    without_names,
)
from tavola.studio.monitoring.key_order import hash_count, partition_of
from tavola.studio.monitoring.request_shapes import qualified_arn

PLACES_MAX = 256
ENTRIES_MAX = 800_000  # keys in all slots, about twenty bytes each besides the keys themselves
_OPEN_MAX = 8_192  # full keys collected before they are put into a slot
_KNOWN_MAX = 65_536
_THINNED_AT_ONCE = 4_000  # entries: more than arrive per second, few enough not to delay a call
_OPERATIONS_MAX = 255
_SET_BACK_S = 60  # a call this long before the last one means that the clock was set back


@dataclass(frozen=True, slots=True)
class Tier:
    """How far back slots of one length go."""

    span_s: int
    reach_s: int


TIERS = (Tier(1, 600), Tier(10, 3_600), Tier(60, 8 * 3_600))

assert all(tier.reach_s % after.span_s == 0 for tier, after in pairwise(TIERS)), "tiers meet"


@dataclass(frozen=True, slots=True)
class TimedSlot:
    """A slot and its duration."""

    slot: HeatSlot
    span_s: int


@dataclass(frozen=True, slots=True)
class HeatWindow:
    """The recorded accesses of a table or index in a time range, oldest first; immutable."""

    table: str  # the ARN
    index: str | None
    from_s: int
    to_s: int
    slots: tuple[TimedSlot, ...]
    operations: tuple[str, ...]  # by number
    note: str = ""

    @property
    def sums(self) -> HeatSums:
        """Totals over all slots."""
        return sum((timed.slot.sums for timed in self.slots), HeatSums())


def window_part(window: HeatWindow, from_s: int, to_s: int) -> HeatWindow:
    """Return the part of a window in a time range."""
    slots = [
        slot for slot in window.slots if slot.slot.start < to_s and slot.slot.start + slot.span_s > from_s
    ]
    return replace(window, from_s=from_s, to_s=to_s, slots=tuple(slots))


class _TargetHeat:
    """The accesses of one table or index."""

    __slots__ = ("known", "open", "open_keys", "parts", "since_s", "tiers", "touched_s", "until_s")

    def __init__(self, parts: int | None) -> None:
        self.parts = parts  # values in the hash of its keys; None: unknown yet, 0: keys are hashes
        self.open: dict[str, dict[bytes | None, HeatCounts]] = {}
        self.open_keys = 0
        self.until_s = 0.0  # the end of the open second
        self.since_s = 0.0  # an earlier call means that the clock was set back
        self.touched_s = 0.0
        self.tiers: tuple[deque[HeatSlot], ...] = tuple(deque() for _ in TIERS)
        self.known: dict[bytes | None, bytes | None] = {}  # interned keys

    @property
    def entries(self) -> int:
        return sum(len(slot) + len(slot.items) for slot in chain(*self.tiers))

    def build_open_slot(self, numbers: dict[str, int]) -> HeatSlot:
        """Return the open second as a slot."""
        cells: SlotCells = {}
        items: list[dict[bytes | None, HeatCounts]] = []
        for operation, by_key in self.open.items():
            mine: dict[bytes | None, HeatCounts] = {}
            counts_by_key: dict[bytes | None, HeatCounts] = {}
            for key, cell in by_key.items():
                partition = None if key is None else self._partition(key)
                if key is None or partition is None or len(partition) == len(key):
                    existing = mine.setdefault(key, cell)
                else:
                    counts_by_key[key] = cell
                    existing = mine.setdefault(partition, [0.0, 0.0, 0.0, 0.0])
                if existing is not cell:
                    existing[0] += cell[0]
                    existing[1] += cell[1]
                    existing[2] += cell[2]
                    existing[3] += cell[3]
            cells[numbers[operation]] = mine
            items.append(counts_by_key)
        slot = build_slot(int(self.until_s) - 1, cells, *heaviest_items(items))
        known = self.known if len(self.known) < _KNOWN_MAX else {}
        slot.keys = tuple(map(known.setdefault, slot.keys, slot.keys))
        self.known = known
        return slot

    def _partition(self, key: bytes) -> bytes:
        if not self.parts:
            if self.parts == 0:
                return key
            self.parts = hash_count(key)
            if self.parts is None:
                return key
        return partition_of(key, self.parts)

    def close(self, numbers: dict[str, int]) -> None:
        """Put the open counts into a slot."""
        if not self.open_keys:
            return
        slot = self.build_open_slot(numbers)
        seconds = self.tiers[0]
        if seconds and seconds[-1].start == slot.start:
            slot = merge_slots(slot.start, (seconds.pop(), slot), KEYS_KEPT)
        seconds.append(slot)
        self.open = {}
        self.open_keys = 0

    def clear(self) -> None:
        """Discard all counts."""
        self.open = {}
        self.open_keys = 0
        self.until_s = self.since_s = 0.0
        for slots in self.tiers:
            slots.clear()

    def age(self, now_s: int) -> None:
        """Merge old slots into longer ones, and drop the oldest.

        Only one slot of each length is merged at a time, because calls wait meanwhile. Slots that are not merged yet are
        merely finer than necessary.
        """
        for number, (tier, after) in enumerate(pairwise(TIERS)):
            horizon = (now_s - tier.reach_s) // after.span_s * after.span_s
            slots = self.tiers[number]
            if slots and slots[0].start < horizon:
                start = slots[0].start // after.span_s * after.span_s
                group: list[HeatSlot] = []
                while slots and slots[0].start < start + after.span_s:
                    group.append(slots.popleft())
                self.tiers[number + 1].append(merge_slots(start, group))
        for tier, slots in zip(TIERS, self.tiers, strict=True):
            while slots and slots[0].start + tier.span_s <= now_s - TIERS[-1].reach_s:
                slots.popleft()

    def thin(self, entries: int) -> int:
        """Remove the names of at least `entries` of the oldest keys, keeping their totals; return how many."""
        gone = 0
        for slots in reversed(self.tiers):
            for position, slot in enumerate(slots):
                if gone >= entries:
                    return gone
                bare = without_names(slot)
                if len(bare) < len(slot) or slot.items:
                    gone += len(slot) + len(slot.items) - len(bare)
                    slots[position] = bare
        return max(gone, 1)


class HeatRecorder:
    """Counts the accesses of each key. Not thread-safe: callers hold the monitor's lock."""

    def __init__(self, clock: Clock, *, hashed: bool = False, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._hashed = hashed  # keys are hashes of partition keys
        self._entries_max = entries_max
        self._places: dict[tuple[str, str | None], _TargetHeat] = {}
        self._operations: list[str] = []
        self._numbers: dict[str, int] = {}
        self._closed = 0  # slots, since entries were last counted
        self._over = 0  # number of entries above the maximum

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Count a call."""
        if not accesses:
            if fault is None:
                if operation in ("DeleteTable", "UpdateTable"):
                    self._forget(operation, scope, body)
            elif fault.code in THROTTLING_CODES:
                self._note_unplaced(operation, scope, began_s, body)
            return
        places = self._places
        for table, index, key, reads, writes, entry in accesses:
            place = places.get((table, index))
            if place is None:
                place = self._place(table, index)
            if not place.since_s <= began_s < place.until_s or place.open_keys > _OPEN_MAX:
                self._turn(place, began_s)
            by_key = place.open.get(operation)
            if by_key is None:
                by_key = place.open.setdefault(self._register(operation), {})
            if index is not None and (entry is not None or writes):
                key = entry  # a write's own key is the table's, not the index's
            cell = by_key.get(key)
            if cell is None:
                cell = by_key[key] = [0.0, 0.0, 0.0, 0.0]
                place.open_keys += 1
            if reads or writes:
                cell[0] += 1.0
                cell[1] += reads
                cell[2] += writes
            elif key is not None or fault is not None:
                cell[3] += 1.0  # throttled: a successful access consumes units
            else:
                cell[0] += 1.0

    def places(self) -> list[tuple[str, str | None, float]]:
        """Return the accessed tables and indexes, and the time of the last access."""
        return [(table, index, place.touched_s) for (table, index), place in self._places.items()]

    def window(self, table: str, index: str | None, from_s: int, to_s: int) -> HeatWindow:
        """Return the accesses of a table or index in a time range, extended to whole slots."""
        place = self._places.get((table, index))
        timed_slots: list[TimedSlot] = []
        if place is not None:
            place.close(self._numbers)
            place.age(int(self._clock.now()))
            for tier, slots in reversed(tuple(zip(TIERS, place.tiers, strict=True))):
                timed_slots += [
                    TimedSlot(slot, tier.span_s)
                    for slot in slots
                    if slot.start < to_s and slot.start + tier.span_s > from_s
                ]
        return HeatWindow(table, index, from_s, to_s, tuple(timed_slots), tuple(self._operations))

    def earliest_s(self, table: str, index: str | None) -> int | None:
        """Return the time of the oldest recorded access of a table or index."""
        place = self._places.get((table, index))
        if place is None:
            return None
        starts = [slots[0].start for slots in place.tiers if slots]
        return min(starts) if starts else (int(place.until_s) - 1 if place.open_keys else None)

    def entries(self) -> int:
        """Return the number of named keys, counted once per slot."""
        return sum(place.entries for place in self._places.values())

    def _place(self, table: str, index: str | None) -> _TargetHeat:
        if len(self._places) >= PLACES_MAX:
            oldest = min(
                self._places, key=lambda place: (self._places[place].touched_s, place[0], place[1] or "")
            )
            del self._places[oldest]
        target = self._places[table, index] = _TargetHeat(0 if self._hashed else None)
        return target

    def _turn(self, place: _TargetHeat, now_s: float) -> None:
        if now_s < place.since_s:
            place.clear()
        second = max(int(now_s), int(place.until_s) - 1)  # late calls count in the current second
        place.close(self._numbers)
        place.age(second)
        place.until_s = second + 1.0
        place.since_s = second - _SET_BACK_S
        place.touched_s = now_s
        self._closed += 1
        if self._closed >= 60:
            self._closed = 0
            self._over = self.entries() - self._entries_max
        if self._over > 0:
            fullest = max(self._places.values(), key=lambda place: place.entries)
            self._over -= fullest.thin(min(self._over, _THINNED_AT_ONCE))

    def _register(self, operation: str) -> str:
        if operation not in self._numbers:
            if len(self._operations) >= _OPERATIONS_MAX:  # possible only with a foreign log
                return self._operations[-1]
            self._numbers[operation] = len(self._operations)
            self._operations.append(operation)
        return operation

    def _note_unplaced(self, operation: str, scope: Scope, began_s: float, body: bytes) -> None:
        """Count a throttled call whose keys are unknown: only its tables can be read from the request."""
        named = _parse_names(body)
        places: list[tuple[str, str | None]] = [(name, None) for name in named.RequestItems]
        if named.TableName is not None:
            places.append((named.TableName, named.IndexName))
        for name, index in places:
            table = qualified_arn(scope, name)
            place = self._places.get((table, index)) or self._place(table, index)
            if not place.since_s <= began_s < place.until_s:
                self._turn(place, began_s)
            by_key = place.open.setdefault(self._register(operation), {})
            place.open_keys += None not in by_key
            by_key.setdefault(None, [0.0, 0.0, 0.0, 0.0])[3] += 1.0

    def _forget(self, operation: str, scope: Scope, body: bytes) -> None:
        """Discard a deleted table or index: a new one of the same name may have other keys."""
        named = _parse_names(body)
        if named.TableName is None:
            return
        table = qualified_arn(scope, named.TableName)
        gone = {
            update.Delete.IndexName
            for update in named.GlobalSecondaryIndexUpdates
            if update.Delete is not None
        }
        for place in [place for place in self._places if place[0] == table]:
            if operation == "DeleteTable" or place[1] in gone:
                del self._places[place]


class _Deleted(msgspec.Struct):
    """An index that a request deletes."""

    IndexName: str | None = None


class _IndexUpdate(msgspec.Struct):
    """A request's change of an index."""

    Delete: _Deleted | None = None


class _Named(msgspec.Struct):
    """The tables and indexes that a request names."""

    TableName: str | None = None
    IndexName: str | None = None
    RequestItems: dict[str, msgspec.Raw] = {}
    GlobalSecondaryIndexUpdates: list[_IndexUpdate] = []


def _parse_names(body: bytes) -> _Named:
    """Return the tables and indexes that a request names; none if it cannot be parsed."""
    try:
        return msgspec.json.decode(body, type=_Named)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Named()


def record_log(records: Iterable[Mapping[str, Any]]) -> tuple[HeatRecorder, int | None]:
    """Return a recorder filled from log records, oldest first, and the time of the last one.

    Tables are recorded by name instead of ARN. Records in another format than the server's are skipped.
    """
    clock = ManualClock(0.0)
    recorder = HeatRecorder(clock, hashed=True)
    last: int | None = None
    for record in records:
        at_s = _second(record.get("eventTime"))
        operation = record.get("eventName")
        if at_s is None or not isinstance(operation, str):
            continue
        refused = record.get("errorCode") in THROTTLING_CODES
        if record.get("errorCode") is not None and not refused:
            continue
        accesses = _log_accesses(record, refused=refused)
        if accesses:
            fault: Fault | None = ThrottlingFault("Throughput was exceeded.", []) if refused else None
            recorder.note(operation, DEFAULT_SCOPE, at_s, 0.0, accesses, fault, b"")
            last = at_s if last is None else max(last, at_s)
            clock.set(float(last))
    return recorder, last


class _LogTarget(msgspec.Struct, rename="camel"):
    """A table or index in a record, with hashes of keys."""

    table_name: str = ""
    index_name: str | None = None
    keys: list[str] | None = None
    tables: list[_LogTarget] | None = None  # of a call to several tables


class _LogUnits(msgspec.Struct):
    """The capacity consumed in one table or index."""

    table: str
    index: str | None = None
    reads: float | None = None
    writes: float | None = None


class _LogDetails(msgspec.Struct):
    """The further data of a record."""

    consumed: list[_LogUnits] | None = None


def _log_accesses(record: Mapping[str, Any], *, refused: bool) -> list[ItemAccess]:
    try:
        target = msgspec.convert(record.get("requestParameters") or {}, _LogTarget)
        details = msgspec.convert(record.get("additionalEventData") or {}, _LogDetails)
    except msgspec.ValidationError:
        return []
    named: dict[tuple[str, str | None], list[bytes]] = {
        (place.table_name, place.index_name): [key.encode() for key in place.keys or ()]
        for place in target.tables or (target,)
        if place.table_name
    }
    if refused:
        return [
            ItemAccess(table, index, key, 0.0, 0.0)
            for (table, index), keys in named.items()
            for key in keys or (None,)
        ]
    accesses: list[ItemAccess] = []
    for consumed in details.consumed or ():
        keys = named.get((consumed.table, consumed.index), [])
        accesses += _divide_units(
            consumed.table, consumed.index, keys, consumed.reads or 0.0, consumed.writes or 0.0
        )
    return accesses


def _divide_units(
    table: str, index: str | None, keys: list[bytes], reads: float, writes: float
) -> list[ItemAccess]:
    if not keys:
        return [ItemAccess(table, index, None, reads, writes)]
    accesses: list[ItemAccess] = []
    for position, key in enumerate(keys):
        parts = [_part(units, position, len(keys)) for units in (reads, writes)]
        # For index writes the log has only the table's keys, so the index entry is counted under them.
        entry = key if index is not None else None
        if any(parts):
            accesses.append(ItemAccess(table, index, key, parts[0], parts[1], entry))
    return accesses


def _part(units: float, position: int, count: int) -> float:
    halves = round(units * 2)
    return (halves // count + (position < halves % count)) / 2


def _second(value: object) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
