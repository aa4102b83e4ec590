"""StoreTime: the time by which a store decides, which only moves forward.

The problem. A wall clock is set: by a person, by a time service, by a virtual machine that wakes up. If "is this table past
CREATING?", "has this token expired?" and "is this change old enough to be removed?" compare stored dates with it, then a
table vanishes when the clock is set back, a token takes effect twice when it is set forward and back, and changes that
are minutes old are removed when it is set ahead by a year.

The idea. Three times, each for one purpose:

    wall time    the clock's date                  is shown, and compared with dates in items (expiry of items)
    store time   seconds measured, never set       decides: statuses, tokens, iterators, retention, shards, backups
    log time     wall time that never goes back    is written to the change logs, and found again by reads as of a time

Store time is a number like epoch seconds. A new store begins at the wall time; while the process runs, the number grows
by the seconds that `Clock.elapsed` measures, whatever happens to the wall clock. Between two processes only the wall clock
has gone on, so a store that is opened again adds the difference between the wall time now and the saved one, but never a
negative difference, and less if the wall clock is back where it was some settings ago:

    wall    100 ── 110 ┐               ┌ 9110 ── 9120      a jump ahead while the process runs: no time passes
    store   100 ── 110 └───────────────┘ 110 ──── 120
    wall                9120 ─ closed ─ 50                 opened with the clock set back: no time passed
    store                120            120

To be able to continue, the pair of store time and wall time is saved. A transaction that stores a store time calls `stamp`,
which saves the pair along with it, at most once a second. So a store that is opened again is at most a second before any
time that it holds. When the wall clock is set, the pair is saved within a minute by `background`, and when the engine is
closed: otherwise the jump would count as time between two processes.

Log time is the wall time, unless that was set back: then log time goes on from its latest value, at half the pace, until
the wall time has caught up. It must not wait, because changes with one time could not be distinguished, neither by a read as
of a time nor by their age. Half the pace reaches the wall time after twice the correction.

    log time   ──────●  set back by an hour
                     │╲
                     │ ●─ ─ ─ ─ ─ half the pace ─ ─ ─ ─ ●────── wall time again
    wall time        ●──────────────────────────────────●──────

Retention asks: which log time was it, so many seconds of store time ago? Where the wall clock ran evenly, log time is store
time plus a constant, so it is enough to keep the points at which the constant changed, as `ClockStep`s. Most stores have
one. They are saved with the pair and dropped when nothing in the log can be older.

Cost: a write to a table with a log reads two clocks instead of one. Limits: a clock that was set ahead while the store was
closed, to where it never was before, cannot be distinguished from time that passed. Corrections below a second are not
noticed, so ages in the log are right to the second.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec

from tavola.clock import Clock
from tavola.engine.storage import Store, StoreDamaged

_KIND, _NAME = "time", "store"
_SAVE_S = 1.0  # how much of store time a crash may lose, if the clock was set back too
_STEP_S = 1.0  # a smaller difference is reading two clocks one after the other, not a correction
_STEPS_AGE_S = 36 * 86_400.0  # longer than any retention of changes
_STEPS_MAX = 200
_OFFSETS_OTHER_MAX = 7
_SECOND_US = 1_000_000


class CurrentTime(NamedTuple):
    """The present: the wall time, which is shown, and the store time, which decides."""

    wall_s: float
    store_s: float


class ClockStep(NamedTuple):
    """From a store time on, by how much the wall time differs from store time; and the latest log time until then."""

    store_s: float
    offset_s: float
    log_us: int

    def slow_log_us(self, store_s: float) -> int:
        """Return the log time at a store time after this step, as far as it does not follow the wall time."""
        return self.log_us + int((store_s - self.store_s) * _SECOND_US / 2)


_NO_STEP = ClockStep(0.0, inf, -(10**18))  # before the first change


class SavedTime(msgspec.Struct, frozen=True):
    """A store time and the wall time that it was saved at, from which a store that is opened again continues."""

    store_s: float
    wall_s: float
    steps: tuple[ClockStep, ...]
    offsets_s: tuple[
        float, ...
    ] = ()  # the latest differences of wall time and store time, the last of them at the end

    def continue_at(self, wall_s: float) -> float:
        """Return the store time of a store that is opened at a wall time: the least that fits a known difference.

        So a clock that was wrong for a while, such as one that starts in 1970 until the network is there, does not let
        years pass when it is right again.
        """
        if wall_s <= self.wall_s:
            return self.store_s
        fitting_s = [wall_s - offset_s for offset_s in (*self.offsets_s, self.wall_s - self.store_s)]
        return min(store_s for store_s in fitting_s if store_s >= self.store_s)


class StoreTime:
    """The store time and the log time of one store."""

    __slots__ = (
        "_clock",
        "_is_even",
        "_offset_s",
        "_saved",
        "_start_s",
        "_steps",
        "_store",
        "_unsaved",
        "now_us",
    )

    def __init__(self, store: Store, clock: Clock) -> None:
        """Continue from the time that was saved in the store; one without a saved time begins at the wall time."""
        self._store = store
        self._clock = clock
        self.now_us = 0  # the log time of the changes of the current call
        wall_s = clock.now()
        saved = _load(store)
        if saved is None:
            saved = SavedTime(wall_s, wall_s, ())
            self._unsaved = True
        else:
            self._unsaved = False
        self._saved = saved
        self._start_s = saved.continue_at(wall_s) - clock.elapsed()
        self._steps = list(saved.steps)
        self._offset_s = self._last_step.offset_s
        self._is_even = False  # log time is the wall time, and the last step is saved

    def elapsed_s(self) -> float:
        """Return the store time: a number of seconds that never decreases."""
        return self._start_s + self._clock.elapsed()

    def now(self) -> CurrentTime:
        """Return the present, to describe something that has dates and a status."""
        return CurrentTime(self._clock.now(), self.elapsed_s())

    def stamp(self) -> CurrentTime:
        """Return the present for values that the open transaction stores, and save the store time with them."""
        now = self.now()
        if self._unsaved or now.store_s - self._saved.store_s >= _SAVE_S or self._has_jumped(now):
            self._save(now)
        return now

    @property
    def was_clock_set(self) -> bool:
        """Whether the wall clock was set since the time was saved, so that it should be saved again."""
        return self._has_jumped(self.now())

    def mark_unsaved(self) -> None:
        """Save the time again with the next stamp, because the transaction that saved it was rolled back."""
        self._unsaved = True
        self._is_even = False

    def tick(self) -> None:
        """Advance the log time to the present, before the first change of a call.

        All changes of a call have the same time, in all tables. Therefore a transaction is visible as of a time either
        completely or not at all, whatever the clock does.
        """
        wall_s = self._clock.now()
        drift_s = wall_s - self._start_s - self._clock.elapsed() - self._offset_s
        if self._is_even and -_STEP_S < drift_s < _STEP_S:  # nearly always
            self.now_us = max(self.now_us, int(wall_s * _SECOND_US))
            return
        now = self.now()
        log_us = max(int(wall_s * _SECOND_US), self._last_step.slow_log_us(now.store_s))
        is_step = not -_STEP_S < drift_s < _STEP_S or self.now_us > log_us + _SECOND_US
        has_changes, self.now_us = self.now_us > 0, max(self.now_us, log_us)
        if is_step:
            self._add_step(now)
            if has_changes:
                self.now_us += 1  # so that changes after the step are later than those before
        if self._unsaved and self._store.open_transaction:
            self._save(now)
        self._is_even = not self._unsaved and self.now_us <= int(wall_s * _SECOND_US)

    def reach(self, at_us: int) -> None:
        """Advance the log time at least to a time that was already shown to a reader."""
        if at_us > self.now_us:
            self.now_us = at_us
            self._is_even = False

    def log_us(self) -> int:
        """Return the latest log time that the past can be read at; later changes get later times."""
        wall_s, store_s = self.now()
        return max(int(wall_s * _SECOND_US), self._last_step.slow_log_us(store_s), self.now_us - 1)

    def log_us_ago(self, seconds: float) -> int:
        """Return the log time of so many seconds of store time ago."""
        if not self._steps:
            self.tick()
        store_s = self.elapsed_s() - seconds
        next_us: int | None = None  # changes before the next step have log times up to this
        for step in reversed(self._steps):
            if step.store_s <= store_s:
                break
            next_us = step.log_us
        log_us = max(int((store_s + step.offset_s) * _SECOND_US), step.slow_log_us(store_s))
        return log_us if next_us is None else min(log_us, next_us)

    @property
    def _last_step(self) -> ClockStep:
        return self._steps[-1] if self._steps else _NO_STEP

    def _add_step(self, now: CurrentTime) -> None:
        """Note that the wall clock was set; forget steps before any change that is kept."""
        self._offset_s = now.wall_s - now.store_s
        self._steps.append(ClockStep(now.store_s, self._offset_s, self.now_us))
        while len(self._steps) > 1 and self._steps[1].store_s < now.store_s - _STEPS_AGE_S:
            del self._steps[0]
        if len(self._steps) > _STEPS_MAX:
            # Of two steps, the earlier with the lower offset: changes are taken for younger, and kept for longer.
            first, second = self._steps[:2]
            self._steps[:2] = [first._replace(offset_s=min(first.offset_s, second.offset_s))]
        self._unsaved = True

    def _has_jumped(self, now: CurrentTime) -> bool:
        saved = self._saved
        return abs((now.wall_s - now.store_s) - (saved.wall_s - saved.store_s)) >= _STEP_S

    def _save(self, now: CurrentTime) -> None:
        assert self._store.open_transaction, "a store time is saved with the values that depend on it"
        offset_s = now.wall_s - now.store_s
        others_s = [other_s for other_s in self._saved.offsets_s if abs(other_s - offset_s) >= _STEP_S]
        offsets_s = (*others_s[-_OFFSETS_OTHER_MAX:], offset_s)
        saved = SavedTime(now.store_s, now.wall_s, tuple(self._steps), offsets_s)
        self._store.put_record(_KIND, _NAME, msgspec.json.encode(saved))
        self._saved, self._unsaved = saved, False


def _load(store: Store) -> SavedTime | None:
    data = store.get_record(_KIND, _NAME)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=SavedTime)
    except msgspec.DecodeError as error:
        raise StoreDamaged(
            f"the store is damaged (its saved time cannot be read: {error}); restore it from a backup"
        ) from error
