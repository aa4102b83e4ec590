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
_TOLERANCE = 1e-3  # relative change of a share at which the iteration ends
_TINY = 1e-12
_STEPS_EVERY = 8  # rounds between two computations of the steps
_STEP_MIN = 0.05
_SHARE_MIN = 1e-9  # smaller shares are treated as this one
_SAME = 1e-3  # relative difference within which two buckets run dry at the same time


@dataclass(frozen=True, slots=True)
class BucketSupply:
    """The contents of buckets: initial units, units per second, and the maximum that they save."""

    level: Floats
    rate: Floats
    maximum: Floats

    def levels_after(self, used: Floats) -> Floats:
        """Return the units left after each second for the units used; negative if more was used than available."""
        change = np.cumsum(self.rate - used, axis=0)
        levels: Floats = change + np.minimum(self.level, np.minimum.accumulate(self.maximum - change, axis=0))
        return levels

    def available(self, after: Floats, dry: NDArray[np.bool_]) -> Floats:
        """Return the units available in each second, given those left after each.

        A bucket that is dry after a second starts the next one empty, however far the iteration is from its fixed
        point; an error in one second would otherwise have to be corrected in every later one.
        """
        count = np.arange(len(after))[:, None]
        last = np.maximum.accumulate(np.where(dry, count, -1), axis=0)
        known = np.where(last >= 0, np.take_along_axis(after, np.maximum(last, 0), axis=0), 0.0)
        before = np.concatenate((self.level[None, :], np.minimum(self.maximum, after - known)[:-1]))
        units: Floats = np.maximum(before + self.rate, 0.0)
        return units


@dataclass(slots=True)
class WindowResult:
    """The outcome of some seconds, one row per second."""

    flow_shares: Floats  # share of each flow that gets through
    draw_shares: Floats  # share of each draw that its partitions admit
    cell_shares: Floats  # share of each cell that its partitions admit
    used: Floats  # units used of each active bucket
    used_of_stations: Floats  # units used of each station's own buckets
    bucket_shares: Floats  # share of its requests that each active bucket admits
    station_shares: Floats  # the same for each station
    level: Floats  # units left at the end in each active bucket
    station_level: Floats  # the same for each station


@dataclass(frozen=True, slots=True)
class _IdenticalBuckets:
    """Buckets and stations that serve the same requests; the first represents them all."""

    buckets: NDArray[np.intp]
    wholes: NDArray[np.intp]

    @property
    def leads_whole(self) -> bool:
        return self.wholes.size > 0

    def least(self, factor: Floats, factor_whole: Floats) -> Floats:
        """Return, for each second, the smallest quotient of supply and demand among them."""
        smallest: Floats = np.concatenate(
            (factor[:, self.buckets], factor_whole[:, self.wholes]), axis=1
        ).min(axis=1)
        return smallest


class AdmissionSolver:
    """Computes the shares that active buckets admit, and keeps them from one window to the next."""

    def __init__(self, plan: FlowUnits, cells: Cells, meters: NDArray[np.intp]) -> None:
        self.plan = plan
        self.cells = cells
        self._size = meters.size
        self._meters = meters
        self.shares = np.ones(meters.size + 1)  # the last is a bucket that always admits
        self.whole = np.ones(plan.whole_units.shape[1])
        self._weights = plan.whole_units[plan.whole_flow, plan.whole_at]
        self._cell_flow = plan.draw_flow[cells.draw]
        self._identical = self._find_identical()
        # Only the representative of identical buckets is solved; the others copy its share.
        self._slots = cells.slots.copy()
        self._copied_whole = np.zeros(self.whole.size, dtype=bool)
        for same in self._identical:
            mute = same.buckets if same.leads_whole else same.buckets[1:]
            self._slots[np.isin(cells.slots, mute)] = meters.size
            self._copied_whole[same.wholes[1:]] = True
        self._copied = np.ones(meters.size, dtype=bool)
        self._copied[np.unique(self._slots[self._slots < meters.size])] = False

    def solve_window(self, rates: Floats, parts: BucketSupply, whole: BucketSupply) -> WindowResult:
        """Return what gets through some seconds of these rates, with these units in the buckets."""
        size = self._size
        seconds = len(rates)
        shares = np.tile(self.shares, (seconds, 1))
        station_shares = np.tile(self.whole, (seconds, 1))
        requested_whole = rates[:, self.plan.whole_flow] * self._weights
        dry = np.zeros((seconds, size), dtype=bool) | (self.shares[:size] < 1.0)
        dry_whole = np.zeros(station_shares.shape, dtype=bool) | (self.whole < 1.0)
        for round_ in range(_ROUNDS_MAX):
            result = self._evaluate(rates, requested_whole, shares, station_shares)
            after, after_whole = parts.levels_after(result.used), whole.levels_after(result.used_of_stations)
            available, available_whole = parts.available(after, dry), whole.available(after_whole, dry_whole)
            factor = (available + _TINY) / (result.used + _TINY)
            factor_whole = (available_whole + _TINY) / (result.used_of_stations + _TINY)
            raw = (factor.copy(), factor_whole.copy()) if self._identical else (factor, factor_whole)
            for same in self._identical:
                least = same.least(*raw)
                if same.leads_whole:
                    factor_whole[:, same.wholes[0]] = least
                else:
                    factor[:, same.buckets[0]] = least
            current = shares[:, :size]
            target = np.minimum(1.0, current * factor)
            target[:, self._copied] = 1.0
            target_whole = np.minimum(1.0, station_shares * factor_whole)
            target_whole[:, self._copied_whole] = 1.0
            dry, dry_whole = factor * current < 1.0, factor_whole * station_shares < 1.0
            # Relative to the target: for a small share, a thousandth of all requests would be a large error.
            change = max(_distance(current, target), _distance(station_shares, target_whole))
            if change < _TOLERANCE or round_ == _ROUNDS_MAX - 1:
                break
            if round_ % _STEPS_EVERY == 0:
                contested = np.minimum(target_whole, station_shares).min(axis=0) < 1.0
                step, step_whole = self._steps(rates, result, contested)
            shares[:, :size] = current * (target / current) ** step
            station_shares = station_shares * (target_whole / station_shares) ** step_whole
        self.shares, self.whole = shares[-1], station_shares[-1]
        result.level, result.station_level = after[-1], after_whole[-1]
        self._copy_shares(result, *raw)
        return result

    def _evaluate(
        self, rates: Floats, requested_whole: Floats, shares: Floats, station_shares: Floats
    ) -> WindowResult:
        """Return what gets through at the current shares."""
        plan, cells, size = self.plan, self.cells, self._size
        cell_shares = shares[:, self._slots[0]]
        for row in self._slots[1:]:
            cell_shares = cell_shares * shares[:, row]
        mass = cells.mass * cell_shares
        draw_shares = np.add.reduceat(mass, cells.starts, axis=1)
        by_draws = np.multiply.reduceat(draw_shares, plan.draw_starts, axis=1)
        by_whole = np.multiply.reduceat(station_shares[:, plan.whole_at], plan.whole_starts, axis=1)
        flow_shares = by_draws * by_whole
        through = (rates * flow_shares)[:, plan.draw_flow] / np.maximum(draw_shares, _TINY)
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
            weights=(requested_whole * flow_shares[:, plan.whole_flow]).ravel(),
            minlength=len(rates) * meters,
        ).astype(np.float64)
        return WindowResult(
            flow_shares,
            draw_shares,
            cell_shares,
            used.reshape(len(rates), size + 1)[:, :size],
            used_whole.reshape(len(rates), meters),
            shares[:, :size],
            station_shares,
            self.shares,
            self.whole,
        )

    def _copy_shares(self, result: WindowResult, factor: Floats, factor_whole: Floats) -> None:
        """Copy the share of a representative bucket to the buckets that are identical to it."""
        if not self._identical:
            return
        shares, whole = result.bucket_shares.copy(), result.station_shares.copy()
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
        result.bucket_shares, result.station_shares = shares, whole

    def _steps(
        self, rates: Floats, result: WindowResult, contested: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Return how far each bucket moves in one round: buckets that limit the same requests divide the step."""
        plan, cells, size = self.plan, self.cells, self._size
        mass = (cells.mass * result.cell_shares).mean(axis=0)
        drawn = np.maximum(np.add.reduceat(mass, cells.starts), _TINY)
        slots = (self._slots < size).sum(axis=0)
        # How many buckets limit a request that gets through: per draw, per flow, and of whole stations.
        by_draw = np.add.reduceat(mass * slots, cells.starts) / drawn
        wholes = np.add.reduceat(contested[plan.whole_at].astype(np.float64), plan.whole_starts)
        by_flow = np.add.reduceat(by_draw, plan.draw_starts) + wholes
        passing = (rates * result.flow_shares).mean(axis=0)
        flowing = mass * (passing[plan.draw_flow] / drawn)[cells.draw]
        bucket_counts = (by_flow[plan.draw_flow] - by_draw)[cells.draw] + slots
        used, weighted = np.zeros(size + 1), np.zeros(size + 1)
        for row, units in zip(self._slots, cells.units, strict=True):
            used += np.bincount(row, weights=flowing * units, minlength=size + 1)
            weighted += np.bincount(row, weights=flowing * units * bucket_counts, minlength=size + 1)
        step = used / np.maximum(weighted, _TINY)
        of_flow = passing[plan.whole_flow] * self._weights
        used_whole = np.bincount(plan.whole_at, weights=of_flow, minlength=self.whole.size)
        weighted_whole = np.bincount(
            plan.whole_at, weights=of_flow * by_flow[plan.whole_flow], minlength=self.whole.size
        )
        step_whole = used_whole / np.maximum(weighted_whole, _TINY)
        return np.clip(step[:size], _STEP_MIN, 1.0), np.clip(step_whole, _STEP_MIN, 1.0)

    def _find_identical(self) -> tuple[_IdenticalBuckets, ...]:
        """Find the buckets that serve exactly the same requests with proportional units.

        Two buckets are compared by a random projection of the cells that use them.
        """
        plan, cells, size = self.plan, self.cells, self._size
        random = np.random.default_rng(1)
        of_flow = random.random(plan.draw_starts.size)
        of_cell = random.random(cells.mass.size)
        slots, units = cells.slots, cells.units
        mass_by_bucket = np.zeros((plan.draw_flow.size, size + 1))
        np.add.at(mass_by_bucket, (np.broadcast_to(cells.draw, slots.shape), slots), cells.mass)
        full = mass_by_bucket[np.broadcast_to(cells.draw, slots.shape), slots] > 1.0 - 1e-9
        weights = np.where(full, of_flow[self._cell_flow] * cells.mass, of_cell)
        groups: dict[tuple[float, float], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        maximum = np.full(size + 1, _TINY)
        np.maximum.at(maximum, slots, units)
        membership = np.bincount(slots.ravel(), weights=weights.ravel(), minlength=size + 1)
        proportion = (
            np.bincount(slots.ravel(), weights=(weights * units).ravel(), minlength=size + 1) / maximum
        )
        for bucket in range(size):
            groups[round(float(membership[bucket]), 9), round(float(proportion[bucket]), 9)][0].append(bucket)
        uses_station = plan.whole_units > 0
        station_membership = of_flow @ uses_station
        station_proportion = of_flow @ plan.whole_units / np.maximum(plan.whole_units.max(axis=0), _TINY)
        for number in np.flatnonzero(uses_station.any(axis=0)):
            groups[round(float(station_membership[number]), 9), round(float(station_proportion[number]), 9)][
                1
            ].append(int(number))
        return tuple(
            _IdenticalBuckets(np.array(buckets, dtype=np.intp), np.array(wholes, dtype=np.intp))
            for buckets, wholes in groups.values()
            if len(buckets) + len(wholes) > 1
        )


def _distance(current: Floats, target: Floats) -> float:
    return float((np.abs(target - current) / np.maximum(target, _SHARE_MIN)).max(initial=0.0))
