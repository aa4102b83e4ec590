"""Find which share of each flow gets through, second by second, where several buckets limit the same requests.

Problem. A write to a table with two indexes passes only if three partition buckets and three station buckets all admit it. Each
bucket that is asked for more than it has admits a share, the same for every request; but what reaches a bucket depends on what the
others let through.

    flow ──► partition bucket (share a) ──► index bucket (share b) ──► station (share c)
             passes a·b·c of the flow; each bucket is charged for what passes all of them

Idea. Iterate to a fixed point: compute what the current shares let through, divide what each bucket has by what it was charged,
move each share towards that quotient. All seconds of a window are solved at once, starting from the shares of the previous window.
Buckets that limit the same requests divide the step among themselves; otherwise each would correct the whole error and the
iteration would oscillate.

Buckets that meet exactly the same requests run dry together, so they are solved as one. All others admit and refuse independently.

Cost: at most 80 rounds of vector operations per window. Given up: correlation between buckets that share only some requests.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.keyspace import Floats
from tavola.design.simulation.layout import Cells, FlowUnits

_ROUNDS_MAX = 80
_NEAR = 1e-3
_TINY = 1e-12
_STEPS_EVERY = 8  # rounds, after which the steps are looked at again
_STEP_MIN = 0.05
_LEAST = 1e-9  # a share that is as good as none
_SAME = 1e-3  # of what is left, within which two buckets are dry at the same time


@dataclass(frozen=True, slots=True)
class BucketSupply:
    """The contents of buckets: units at first, units per second, and how many they keep at most."""

    level: Floats
    rate: Floats
    most: Floats

    def after(self, used: Floats) -> Floats:
        """Return the units left after each second in which so much was used; below 0 it is a debt."""
        change = np.cumsum(self.rate - used, axis=0)
        found: Floats = change + np.minimum(self.level, np.minimum.accumulate(self.most - change, axis=0))
        return found

    def left(self, after: Floats, dry: NDArray[np.bool_]) -> Floats:
        """Return the units available in each second, given those left after each.

        A bucket that is dry after a second starts the next one empty, however far the iteration is from its fixed
        point; an error in one second would otherwise have to be corrected in every later one.
        """
        count = np.arange(len(after))[:, None]
        last = np.maximum.accumulate(np.where(dry, count, -1), axis=0)
        known = np.where(last >= 0, np.take_along_axis(after, np.maximum(last, 0), axis=0), 0.0)
        before = np.concatenate((self.level[None, :], np.minimum(self.most, after - known)[:-1]))
        found: Floats = np.maximum(before + self.rate, 0.0)
        return found


@dataclass(slots=True)
class WindowResult:
    """The outcome of some seconds, one row per second."""

    passed: Floats  # the share of each flow that got through
    drawn: Floats  # the share of each draw that its partitions let in
    let: Floats  # and of each cell
    used: Floats  # units taken from each active bucket
    used_whole: Floats  # and from each station as a whole
    shares: Floats  # that each active bucket let in of what came to it
    whole: Floats  # and each station
    level: Floats  # what is left in the end in each active bucket
    level_whole: Floats  # and each station


@dataclass(frozen=True, slots=True)
class _IdenticalBuckets:
    """Buckets and stations that meet the same requests; the first represents them all."""

    buckets: NDArray[np.intp]
    wholes: NDArray[np.intp]

    @property
    def leads_whole(self) -> bool:
        return self.wholes.size > 0

    def least(self, factor: Floats, factor_whole: Floats) -> Floats:
        """Return, for each second, the smallest quotient of supply and demand among them."""
        found: Floats = np.concatenate((factor[:, self.buckets], factor_whole[:, self.wholes]), axis=1).min(
            axis=1
        )
        return found


class AdmissionSolver:
    """Computes the shares that active buckets admit, and keeps them from one window to the next."""

    def __init__(self, plan: FlowUnits, cells: Cells, meters: NDArray[np.intp]) -> None:
        self.plan = plan
        self.cells = cells
        self._size = meters.size
        self._meters = meters
        self.shares = np.ones(meters.size + 1)  # the last is always open
        self.whole = np.ones(plan.whole_units.shape[1])
        self._weights = plan.whole_units[plan.whole_flow, plan.whole_at]
        self._cell_flow = plan.draw_flow[cells.draw]
        self._identical = self._find_identical()
        # Only the representative of identical buckets is solved; the others copy its share.
        self._asked = cells.slots.copy()
        self._mute_whole = np.zeros(self.whole.size, dtype=bool)
        for same in self._identical:
            mute = same.buckets if same.leads_whole else same.buckets[1:]
            self._asked[np.isin(cells.slots, mute)] = meters.size
            self._mute_whole[same.wholes[1:]] = True
        self._mute = np.ones(meters.size, dtype=bool)
        self._mute[np.unique(self._asked[self._asked < meters.size])] = False

    def solve_window(self, rates: Floats, parts: BucketSupply, whole: BucketSupply) -> WindowResult:
        """Return what gets through some seconds of these rates with so much in the buckets."""
        size = self._size
        seconds = len(rates)
        shares = np.tile(self.shares, (seconds, 1))
        opened = np.tile(self.whole, (seconds, 1))
        asked_whole = rates[:, self.plan.whole_flow] * self._weights
        dry = np.zeros((seconds, size), dtype=bool) | (self.shares[:size] < 1.0)
        dry_whole = np.zeros(opened.shape, dtype=bool) | (self.whole < 1.0)
        for turn in range(_ROUNDS_MAX):
            found = self._evaluate(rates, asked_whole, shares, opened)
            after, after_whole = parts.after(found.used), whole.after(found.used_whole)
            left, left_whole = parts.left(after, dry), whole.left(after_whole, dry_whole)
            factor = (left + _TINY) / (found.used + _TINY)
            factor_whole = (left_whole + _TINY) / (found.used_whole + _TINY)
            raw = (factor.copy(), factor_whole.copy()) if self._identical else (factor, factor_whole)
            for same in self._identical:
                least = same.least(*raw)
                if same.leads_whole:
                    factor_whole[:, same.wholes[0]] = least
                else:
                    factor[:, same.buckets[0]] = least
            now = shares[:, :size]
            wanted = np.minimum(1.0, now * factor)
            wanted[:, self._mute] = 1.0
            wanted_whole = np.minimum(1.0, opened * factor_whole)
            wanted_whole[:, self._mute_whole] = 1.0
            dry, dry_whole = factor * now < 1.0, factor_whole * opened < 1.0
            # Relative to the wanted share: for a small share, a thousandth of all requests would be a large error.
            moved = max(_apart(now, wanted), _apart(opened, wanted_whole))
            if moved < _NEAR or turn == _ROUNDS_MAX - 1:
                break
            if turn % _STEPS_EVERY == 0:
                contested = np.minimum(wanted_whole, opened).min(axis=0) < 1.0
                step, step_whole = self._steps(rates, found, contested)
            shares[:, :size] = now * (wanted / now) ** step
            opened = opened * (wanted_whole / opened) ** step_whole
        self.shares, self.whole = shares[-1], opened[-1]
        found.level, found.level_whole = after[-1], after_whole[-1]
        self._copy_shares(found, *raw)
        return found

    def _evaluate(self, rates: Floats, asked_whole: Floats, shares: Floats, opened: Floats) -> WindowResult:
        """Return what the current shares let through."""
        plan, cells, size = self.plan, self.cells, self._size
        let = shares[:, self._asked[0]]
        for row in self._asked[1:]:
            let = let * shares[:, row]
        mass = cells.mass * let
        drawn = np.add.reduceat(mass, cells.starts, axis=1)
        by_draws = np.multiply.reduceat(drawn, plan.draw_starts, axis=1)
        by_whole = np.multiply.reduceat(opened[:, plan.whole_at], plan.whole_starts, axis=1)
        passed = by_draws * by_whole
        through = (rates * passed)[:, plan.draw_flow] / np.maximum(drawn, _TINY)
        flowing = mass * through[:, cells.draw]
        rows = np.arange(len(rates))[:, None] * (size + 1)
        used = np.zeros(len(rates) * (size + 1))
        for slots, units in zip(cells.slots, cells.units, strict=True):
            used += np.bincount(
                (rows + slots).ravel(), weights=(flowing * units).ravel(), minlength=used.size
            )
        meters = self.whole.size
        used_whole = np.bincount(
            (np.arange(len(rates))[:, None] * meters + plan.whole_at).ravel(),
            weights=(asked_whole * passed[:, plan.whole_flow]).ravel(),
            minlength=len(rates) * meters,
        ).astype(np.float64)
        return WindowResult(
            passed,
            drawn,
            let,
            used.reshape(len(rates), size + 1)[:, :size],
            used_whole.reshape(len(rates), meters),
            shares[:, :size],
            opened,
            self.shares,
            self.whole,
        )

    def _copy_shares(self, found: WindowResult, factor: Floats, factor_whole: Floats) -> None:
        """Copy the share of a representative bucket to the buckets that are identical to it."""
        if not self._identical:
            return
        shares, whole = found.shares.copy(), found.whole.copy()
        for same in self._identical:
            lead = whole[:, same.wholes[:1]] if same.leads_whole else shares[:, same.buckets[:1]]
            near = (same.least(factor, factor_whole) * (1 + _SAME))[:, None]
            whole[:, same.wholes] = np.where(factor_whole[:, same.wholes] <= near, lead, 1.0)
            shares[:, same.buckets] = np.where(factor[:, same.buckets] <= near, lead, 1.0)
            # What the station refuses is not refused a second time by its partition.
            for bucket in same.buckets:
                meter = self._meters[bucket]
                if meter in same.wholes:
                    shares[:, bucket] = np.where(whole[:, meter] < 1.0, 1.0, shares[:, bucket])
        found.shares, found.whole = shares, whole

    def _steps(
        self, rates: Floats, found: WindowResult, contested: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Return how far each bucket moves in a round: those that limit the same requests divide the step."""
        plan, cells, size = self.plan, self.cells, self._size
        mass = (cells.mass * found.let).mean(axis=0)
        drawn = np.maximum(np.add.reduceat(mass, cells.starts), _TINY)
        slots = (self._asked < size).sum(axis=0)
        # How many buckets a passing request has met: per draw, per flow, and of whole stations.
        by_draw = np.add.reduceat(mass * slots, cells.starts) / drawn
        wholes = np.add.reduceat(contested[plan.whole_at].astype(np.float64), plan.whole_starts)
        by_flow = np.add.reduceat(by_draw, plan.draw_starts) + wholes
        passing = (rates * found.passed).mean(axis=0)
        flowing = mass * (passing[plan.draw_flow] / drawn)[cells.draw]
        meets = (by_flow[plan.draw_flow] - by_draw)[cells.draw] + slots
        used, met = np.zeros(size + 1), np.zeros(size + 1)
        for row, units in zip(self._asked, cells.units, strict=True):
            used += np.bincount(row, weights=flowing * units, minlength=size + 1)
            met += np.bincount(row, weights=flowing * units * meets, minlength=size + 1)
        step = used / np.maximum(met, _TINY)
        of_flow = passing[plan.whole_flow] * self._weights
        used_whole = np.bincount(plan.whole_at, weights=of_flow, minlength=self.whole.size)
        met_whole = np.bincount(
            plan.whole_at, weights=of_flow * by_flow[plan.whole_flow], minlength=self.whole.size
        )
        step_whole = used_whole / np.maximum(met_whole, _TINY)
        return np.clip(step[:size], _STEP_MIN, 1.0), np.clip(step_whole, _STEP_MIN, 1.0)

    def _find_identical(self) -> tuple[_IdenticalBuckets, ...]:
        """Find the buckets that exactly the same requests meet, in the same measure.

        Two buckets are compared by a random projection of the cells that they meet.
        """
        plan, cells, size = self.plan, self.cells, self._size
        chance = np.random.default_rng(1)
        of_flow = chance.random(plan.draw_starts.size)
        of_cell = chance.random(cells.mass.size)
        slots, units = cells.slots, cells.units
        met = np.zeros((plan.draw_flow.size, size + 1))
        np.add.at(met, (np.broadcast_to(cells.draw, slots.shape), slots), cells.mass)
        full = met[np.broadcast_to(cells.draw, slots.shape), slots] > 1.0 - 1e-9
        weights = np.where(full, of_flow[self._cell_flow] * cells.mass, of_cell)
        alike: dict[tuple[float, float], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        most = np.full(size + 1, _TINY)
        np.maximum.at(most, slots, units)
        who = np.bincount(slots.ravel(), weights=weights.ravel(), minlength=size + 1)
        much = np.bincount(slots.ravel(), weights=(weights * units).ravel(), minlength=size + 1) / most
        for bucket in range(size):
            alike[round(float(who[bucket]), 9), round(float(much[bucket]), 9)][0].append(bucket)
        met_whole = plan.whole_units > 0
        by = of_flow @ met_whole
        taken = of_flow @ plan.whole_units / np.maximum(plan.whole_units.max(axis=0), _TINY)
        for number in np.flatnonzero(met_whole.any(axis=0)):
            alike[round(float(by[number]), 9), round(float(taken[number]), 9)][1].append(int(number))
        return tuple(
            _IdenticalBuckets(np.array(buckets, dtype=np.intp), np.array(wholes, dtype=np.intp))
            for buckets, wholes in alike.values()
            if len(buckets) + len(wholes) > 1
        )


def _apart(now: Floats, wanted: Floats) -> float:
    return float((np.abs(wanted - now) / np.maximum(wanted, _LEAST)).max(initial=0.0))
