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
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope, table_arn
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

PLACES_MAX = 256
ENTRIES_MAX = (
    800_000  # keys in slots, of all places together; some twenty bytes each, and the keys themselves
)
_OPEN_MAX = 8_192  # whole keys of one second before they are put into their slot
_KNOWN_MAX = 65_536
_THINNED_AT_ONCE = 4_000  # entries: more than come in a second, and not so many that a call has to wait
_OPERATIONS_MAX = 255
_SET_BACK_S = (
    60  # a call so long before the last one: the clock was set back, and what was counted is of another time
)


@dataclass(frozen=True, slots=True)
class Tier:
    """How far back slots of one length go."""

    span_s: int
    reach_s: int


TIERS = (Tier(1, 600), Tier(10, 3_600), Tier(60, 8 * 3_600))

assert all(tier.reach_s % after.span_s == 0 for tier, after in pairwise(TIERS)), "tiers meet"


@dataclass(frozen=True, slots=True)
class TimedSlot:
    """A slot and how long it is."""

    slot: HeatSlot
    span_s: int


@dataclass(frozen=True, slots=True)
class HeatWindow:
    """All that is known of a place in a time, oldest first; it does not change any more."""

    table: str  # the ARN
    index: str | None
    from_s: int
    to_s: int
    slots: tuple[TimedSlot, ...]
    operations: tuple[str, ...]  # by their numbers
    note: str = ""  # what is to be said of it

    @property
    def sums(self) -> HeatSums:
        """What was asked in all."""
        return sum((timed.slot.sums for timed in self.slots), HeatSums())


def window_part(window: HeatWindow, from_s: int, to_s: int) -> HeatWindow:
    """Return what a window has from a second up to another."""
    slots = [
        each for each in window.slots if each.slot.start < to_s and each.slot.start + each.span_s > from_s
    ]
    return replace(window, from_s=from_s, to_s=to_s, slots=tuple(slots))


class _TargetHeat:
    """One table or index."""

    __slots__ = ("known", "open", "open_keys", "parts", "since_s", "tiers", "touched_s", "until_s")

    def __init__(self, parts: int | None) -> None:
        self.parts = parts  # values in the hash of its keys; None: not seen yet, 0: keys are hashes already
        self.open: dict[str, dict[bytes | None, HeatCounts]] = {}
        self.open_keys = 0
        self.until_s = 0.0  # the end of the second that is open
        self.since_s = 0.0  # a call before this is of a clock that was set back
        self.touched_s = 0.0
        self.tiers: tuple[deque[HeatSlot], ...] = tuple(deque() for _ in TIERS)
        self.known: dict[bytes | None, bytes | None] = {}  # keys that slots name, each once

    @property
    def entries(self) -> int:
        return sum(len(slot) + len(slot.items) for slot in chain(*self.tiers))

    def gathered(self, numbers: dict[str, int]) -> HeatSlot:
        """Return the open second as a slot."""
        cells: SlotCells = {}
        items: list[dict[bytes | None, HeatCounts]] = []
        for operation, by_key in self.open.items():
            mine: dict[bytes | None, HeatCounts] = {}
            whole: dict[bytes | None, HeatCounts] = {}
            for key, cell in by_key.items():
                partition = None if key is None else self._partition(key)
                if key is None or partition is None or len(partition) == len(key):
                    existing = mine.setdefault(key, cell)
                else:
                    whole[key] = cell
                    existing = mine.setdefault(partition, [0.0, 0.0, 0.0, 0.0])
                if existing is not cell:
                    existing[0] += cell[0]
                    existing[1] += cell[1]
                    existing[2] += cell[2]
                    existing[3] += cell[3]
            cells[numbers[operation]] = mine
            items.append(whole)
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
        """Put what is open into its slot."""
        if not self.open_keys:
            return
        slot = self.gathered(numbers)
        seconds = self.tiers[0]
        if seconds and seconds[-1].start == slot.start:
            slot = merge_slots(slot.start, (seconds.pop(), slot), KEYS_KEPT)
        seconds.append(slot)
        self.open = {}
        self.open_keys = 0

    def clear(self) -> None:
        """Forget all that was counted."""
        self.open = {}
        self.open_keys = 0
        self.until_s = self.since_s = 0.0
        for slots in self.tiers:
            slots.clear()

    def age(self, now_s: int) -> None:
        """Make longer slots of what is long ago, and forget what is too long ago.

        One slot of each length at a time, since calls wait meanwhile: what is left of a busy hour is made longer while
        others come, and until then it is only finer than it need be.
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
        """Let the names of the oldest keys go, so many at least; what they had stays in the sums. Tell how many went."""
        gone = 0
        for slots in reversed(self.tiers):
            for at, slot in enumerate(slots):
                if gone >= entries:
                    return gone
                bare = without_names(slot)
                if len(bare) < len(slot) or slot.items:
                    gone += len(slot) + len(slot.items) - len(bare)
                    slots[at] = bare
        return max(gone, 1)


class HeatRecorder:
    """Counts what is asked of each key; whoever notes or reads holds the watch's lock."""

    def __init__(self, clock: Clock, *, hashed: bool = False, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._hashed = hashed  # keys come as hashes, and are their own partitions
        self._entries_max = entries_max
        self._places: dict[tuple[str, str | None], _TargetHeat] = {}
        self._operations: list[str] = []
        self._numbers: dict[str, int] = {}
        self._closed = 0  # slots, since entries were last counted
        self._over = 0  # entries, by which there are too many

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
                by_key = place.open.setdefault(self._numbered(operation), {})
            if index is not None and (entry is not None or writes):
                key = entry  # of a write, the table's key says nothing of the index
            cell = by_key.get(key)
            if cell is None:
                cell = by_key[key] = [0.0, 0.0, 0.0, 0.0]
                place.open_keys += 1
            if reads or writes:
                cell[0] += 1.0
                cell[1] += reads
                cell[2] += writes
            elif key is not None or fault is not None:
                cell[3] += 1.0  # what is served takes units
            else:
                cell[0] += 1.0

    def places(self) -> list[tuple[str, str | None, float]]:
        """Return the tables and indexes that were asked for something, and when last."""
        return [(table, index, place.touched_s) for (table, index), place in self._places.items()]

    def window(self, table: str, index: str | None, from_s: int, to_s: int) -> HeatWindow:
        """Return what is known of a place from a second up to another; what overlaps them is there whole."""
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
        """Return when the oldest that is known of a place began."""
        place = self._places.get((table, index))
        if place is None:
            return None
        starts = [slots[0].start for slots in place.tiers if slots]
        return min(starts) if starts else (int(place.until_s) - 1 if place.open_keys else None)

    def entries(self) -> int:
        """Return how many keys are held by name, the same key once for each slot."""
        return sum(place.entries for place in self._places.values())

    def _place(self, table: str, index: str | None) -> _TargetHeat:
        if len(self._places) >= PLACES_MAX:
            oldest = min(self._places, key=lambda at: (self._places[at].touched_s, at[0], at[1] or ""))
            del self._places[oldest]
        target = self._places[table, index] = _TargetHeat(0 if self._hashed else None)
        return target

    def _turn(self, place: _TargetHeat, now_s: float) -> None:
        if now_s < place.since_s:
            place.clear()
        second = max(int(now_s), int(place.until_s) - 1)  # a call that came late counts where the clock is
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
            fullest = max(self._places.values(), key=lambda each: each.entries)
            self._over -= fullest.thin(min(self._over, _THINNED_AT_ONCE))

    def _numbered(self, operation: str) -> str:
        if operation not in self._numbers:
            if len(self._operations) >= _OPERATIONS_MAX:  # only a log that somebody else wrote has so many
                return self._operations[-1]
            self._numbers[operation] = len(self._operations)
            self._operations.append(operation)
        return operation

    def _note_unplaced(self, operation: str, scope: Scope, began_s: float, body: bytes) -> None:
        """Count a throttled call of which nobody has told the key: an endpoint's answer says the table alone."""
        named = _named(body)
        places: list[tuple[str, str | None]] = [(name, None) for name in named.RequestItems]
        if named.TableName is not None:
            places.append((named.TableName, named.IndexName))
        for name, index in places:
            table = _arn(scope, name)
            place = self._places.get((table, index)) or self._place(table, index)
            if not place.since_s <= began_s < place.until_s:
                self._turn(place, began_s)
            by_key = place.open.setdefault(self._numbered(operation), {})
            place.open_keys += None not in by_key
            by_key.setdefault(None, [0.0, 0.0, 0.0, 0.0])[3] += 1.0

    def _forget(self, operation: str, scope: Scope, body: bytes) -> None:
        """Forget a table or an index that was deleted: another of its name may have other keys."""
        named = _named(body)
        if named.TableName is None:
            return
        table = _arn(scope, named.TableName)
        gone = {
            each.Delete.IndexName for each in named.GlobalSecondaryIndexUpdates if each.Delete is not None
        }
        for place in [place for place in self._places if place[0] == table]:
            if operation == "DeleteTable" or place[1] in gone:
                del self._places[place]


class _Deleted(msgspec.Struct):
    """An index that a request deletes."""

    IndexName: str | None = None


class _IndexUpdate(msgspec.Struct):
    """What a request does to an index."""

    Delete: _Deleted | None = None


class _Named(msgspec.Struct):
    """What a request says of where it goes."""

    TableName: str | None = None
    IndexName: str | None = None
    RequestItems: dict[str, msgspec.Raw] = {}
    GlobalSecondaryIndexUpdates: list[_IndexUpdate] = []


def _named(body: bytes) -> _Named:
    """Return what a request says; nothing of one that nobody can read."""
    try:
        return msgspec.json.decode(body, type=_Named)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Named()


def _arn(scope: Scope, name: str) -> str:
    return name if name.startswith("arn:") else table_arn(scope, name)


def record_log(records: Iterable[Mapping[str, Any]]) -> tuple[HeatRecorder, int | None]:
    """Return what records say, the oldest first, and the last second that they tell of; places by table name.

    A record that is not as the server writes it is passed over.
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
    """A table or index that a record names, and the hashes of keys."""

    table_name: str = ""
    index_name: str | None = None
    keys: list[str] | None = None
    tables: list[_LogTarget] | None = None  # of a call of several, each by itself


class _LogUnits(msgspec.Struct):
    """What was consumed at one place."""

    table: str
    index: str | None = None
    reads: float | None = None
    writes: float | None = None


class _LogDetails(msgspec.Struct):
    """What a record says beside the request."""

    consumed: list[_LogUnits] | None = None


def _log_accesses(record: Mapping[str, Any], *, refused: bool) -> list[ItemAccess]:
    try:
        target = msgspec.convert(record.get("requestParameters") or {}, _LogTarget)
        more = msgspec.convert(record.get("additionalEventData") or {}, _LogDetails)
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
    for each in more.consumed or ():
        keys = named.get((each.table, each.index), [])
        accesses += _divide_units(each.table, each.index, keys, each.reads or 0.0, each.writes or 0.0)
    return accesses


def _divide_units(
    table: str, index: str | None, keys: list[bytes], reads: float, writes: float
) -> list[ItemAccess]:
    if not keys:
        return [ItemAccess(table, index, None, reads, writes)]
    accesses: list[ItemAccess] = []
    for at, key in enumerate(keys):
        parts = [_part(units, at, len(keys)) for units in (reads, writes)]
        # Of an index that is written the log has the table's keys, which say nothing of its own.
        entry = key if index is not None else None
        if any(parts):
            accesses.append(ItemAccess(table, index, key, parts[0], parts[1], entry))
    return accesses


def _part(units: float, at: int, count: int) -> float:
    halves = round(units * 2)
    return (halves // count + (at < halves % count)) / 2


def _second(value: object) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
