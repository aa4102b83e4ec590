"""Simulate a workload over partitions, second by second, in aggregate.

Problem. A day of 50,000 requests per second is 4 billion requests; simulating each one would take hours. DynamoDB throttles by
token buckets, so it is enough to know how many units are requested of each bucket in each second.

Idea. Every partition has a bucket for reads and one for writes, and every table or global index ("station") has a pair for its
provisioned units or its account quota. Time advances in windows of ten seconds:

    rates (10 s × flows) ──► units requested of each bucket
                                  │
            could any bucket run dry if nothing were refused?
                 │ no (most windows)              │ yes
                 ▼                                ▼
          drain all buckets          solve the dry buckets second by second (`admission`)
                 └───────────────┬────────────────┘
                                 ▼
       split hot partitions · grow on-demand stations · scale provisioned ones
                                 ▼
                if anything changed: lay the keys out again (`layout`)

The first test is one matrix product and a cumulative sum over all buckets, so a calm window costs microseconds.

Adaptive capacity. A partition that was hot for `split_after_s` is split where its heat divides best (`partitions`); on demand, the
peak of half an hour ago is served twice over.

Cost: a day of a million requests per second takes about twenty seconds, most of it for the search for shards. Given up: the order
of requests within a second, and retries, whose waiting times `waits` derives afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.admission import AdmissionSolver, BucketSupply
from tavola.design.simulation.keyspace import Floats
from tavola.design.simulation.layout import FlowUnits, PartitionLayout
from tavola.design.simulation.partitions import PEAK_WINDOW_S, WINDOW_S, Partitions, partitions_for
from tavola.design.simulation.rates import DailyRates
from tavola.design.simulation.recorder import Contention, Recorder
from tavola.design.simulation.workload import KeyPopularities, Workload
from tavola.limits import BURST_S

_OUT_AFTER = 2  # minutes above the target before capacity is raised
_IN_AFTER = 15  # minutes below it before capacity is lowered
_IN_SHARE = 0.9  # share of the target below which there is too much capacity
_DECREASES = 4  # allowed at once, and one more every hour
_HOUR_S = 3600


class Scaler:
    """Auto scaling of provisioned units, as Application Auto Scaling tracks its target.

    Capacity is raised after two minutes above the target, to what the last minute needs. It is lowered after fifteen minutes below
    nine tenths of the target, to what the busiest of them needs, and no more often than DynamoDB allows.
    """

    def __init__(self, workload: Workload) -> None:
        self._allowances = [station.capacity for station in workload.stations]
        self._least = np.array(
            [least for allowance in self._allowances for least in (allowance.reads_min, allowance.writes_min)]
        )
        most = [
            most for allowance in self._allowances for most in (allowance.reads_max, allowance.writes_max)
        ]
        self._most = np.array([np.nan if limit is None else limit for limit in most])
        self._targets = np.array([allowance.target for allowance in self._allowances for _ in (0, 1)])
        self._above = np.zeros(len(most), dtype=int)
        self._below = np.zeros(len(most), dtype=int)
        self._busiest = np.zeros(len(most))
        self._decreased: list[list[int]] = [[] for _ in most]
        self.scales = not bool(np.isnan(self._most).all()) if most else False

    def rescale(self, used: Floats, rates: Floats, now_s: int) -> tuple[Floats, list[int]]:
        """Take the units used in a minute; return the new capacity of each station and the partitions that it needs."""
        if not self.scales:
            return rates, [0] * len(self._allowances)
        mean = used / PEAK_WINDOW_S
        capacity = rates.copy()
        for position in np.flatnonzero(~np.isnan(self._most)):
            needed = float(np.ceil(mean[position] / self._targets[position]))
            if mean[position] > rates[position] * self._targets[position]:
                self._above[position], self._below[position], self._busiest[position] = (
                    self._above[position] + 1,
                    0,
                    0.0,
                )
                if self._above[position] >= _OUT_AFTER:
                    # Refused requests are not in the mean, so at its limit a station doubles its capacity.
                    full = mean[position] >= 0.98 * rates[position]
                    capacity[position] = min(
                        self._most[position], max(rates[position], 2 * rates[position] if full else needed)
                    )
            elif mean[position] < rates[position] * self._targets[position] * _IN_SHARE:
                self._above[position], self._below[position] = 0, self._below[position] + 1
                self._busiest[position] = max(self._busiest[position], needed)
                may_decrease = len(self._decreased[position]) < _DECREASES + now_s // _HOUR_S
                if self._below[position] >= _IN_AFTER and may_decrease:
                    capacity[position] = max(
                        self._least[position], min(rates[position], self._busiest[position])
                    )
                    if capacity[position] < rates[position]:
                        self._decreased[position].append(now_s)
                    self._below[position], self._busiest[position] = 0, 0.0
            else:
                self._above[position] = self._below[position] = 0
                self._busiest[position] = 0.0
        pairs = capacity.reshape(-1, 2)
        return capacity, [partitions_for(float(reads), float(writes)) for reads, writes in pairs]


_BLOCK_S = 3600
_PROGRESS_S = 60  # between two progress reports; the listener may end the run by raising
Progress = Callable[[int, int], None]  # seconds simulated, seconds in all


@dataclass(frozen=True, slots=True)
class ServiceBehaviour:
    """How the simulated service behaves; tests switch parts off to show that their absence is noticed."""

    split_after_s: float = 300.0
    burst_s: float = BURST_S
    warm: bool = False  # partitions and saved burst as after days of this load
    settled: bool = False  # partitions as after one day of it


class Simulator:
    """One simulation run: its buckets, partitions and recorder."""

    def __init__(
        self, workload: Workload, behaviour: ServiceBehaviour, seed: int, columns_max: int = 240
    ) -> None:
        self.workload = workload
        self.behaviour = behaviour
        self.popularities = KeyPopularities(workload, seed)
        self.plan = FlowUnits.of(workload)
        self.parts = [Partitions(station.capacity.partitions) for station in workload.stations]
        allowances = [station.capacity for station in workload.stations]
        self.whole_rate = np.array(
            [rate for allowance in allowances for rate in (allowance.reads, allowance.writes)]
        )
        self.burst_s = np.array(
            [1.0 if allowance.on_demand else behaviour.burst_s for allowance in allowances for _ in (0, 1)]
        )
        filled_s = self.burst_s if behaviour.warm else np.minimum(1.0, self.burst_s)
        self.whole = self.whole_rate * filled_s
        self.scaler = Scaler(workload)
        if behaviour.warm or behaviour.settled:
            self._settle()
        self.layout = self._lay_out(0.0)
        self.levels = self.layout.levels()
        self.recorder = Recorder(workload, self.popularities, columns_max)
        self.recorder.set_layout(self.layout)
        self._solvers: dict[bytes, tuple[NDArray[np.intp], AdmissionSolver]] = {}
        self._minute = np.zeros(self.whole.size)
        self._periods = sorted({keys.period_s for keys in workload.keys if keys.period_s is not None})

    def run(self, progress: Progress | None = None, stop: Callable[[Recorder], bool] | None = None) -> bool:
        """Run the whole time; `stop` may end it early. Returns whether it reached the end."""
        rates = self.workload.rates
        seconds = rates.seconds
        for start in range(0, seconds, _BLOCK_S):
            block = rates.block(start, min(_BLOCK_S, seconds - start))
            for offset in range(0, len(block), WINDOW_S):
                self._run_window(start + offset, block[offset : offset + WINDOW_S])
                if stop is not None and stop(self.recorder):
                    return False
                if progress is not None and offset % _PROGRESS_S == 0:
                    progress(start + offset, seconds)
        if progress is not None:
            progress(seconds, seconds)
        self.recorder.flush()
        return True

    def _run_window(self, start: int, rates: Floats) -> None:
        if any(start // period != (start - WINDOW_S) // period for period in self._periods) and start:
            self._rebuild_layout(float(start))
        layout = self.layout
        size = layout.buckets
        requested = rates @ layout.full
        rate = np.concatenate((layout.rate, self.whole_rate))
        capacity = np.concatenate((layout.rate, self.whole_rate * self.burst_s))
        level = np.concatenate((self.levels, self.whole))
        balance = np.cumsum(rate - requested, axis=0)
        # Units left after each second if nothing were refused; a full bucket discards what it cannot keep.
        ceiling = np.minimum(level, np.minimum.accumulate(capacity - balance, axis=0))
        after = balance + ceiling
        # Within a second the new units arrive before they are used.
        dry = (after < -1e-9).any(axis=0)
        end = start + len(rates)
        if not dry.any():
            self.levels, self.whole = after[-1, :size], after[-1, size:]
            self.recorder.record_calm(start, rates, requested[:, size:])
            used, heat = requested.sum(axis=0), requested[:, :size].sum(axis=0)
            refused = None
        else:
            active = np.flatnonzero(dry[:size])
            used, heat, refused = self._run_contended_window(
                start, rates, requested, active, after[-1, :size]
            )
        self._minute += used[size:]
        self._adjust_capacity(end, rates, heat, refused)

    def _run_contended_window(
        self, start: int, rates: Floats, requested: Floats, active: NDArray[np.intp], calm_levels: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Simulate some seconds one by one, with only the buckets that may run dry."""
        layout, size = self.layout, self.layout.buckets
        solver = self._solver(active)
        meters = layout.meter_of[active]
        rate = layout.rate[active]
        capacity = self.whole_rate * self.burst_s
        result = solver.solve_window(
            rates,
            BucketSupply(self.levels[active], rate, rate),
            BucketSupply(self.whole, self.whole_rate, capacity),
        )
        used_active, used_whole = result.used.sum(axis=0), result.used_of_stations.sum(axis=0)
        requested_active = requested[:, active]
        refused_active = (
            requested_active * result.station_shares[:, meters] * (1.0 - result.bucket_shares)
        ).sum(axis=0)
        refused_whole = (requested[:, size:] * (1.0 - result.station_shares)).sum(axis=0)
        passed = result.flow_shares
        self.levels = calm_levels.copy()
        self.levels[active] = result.level
        self.whole = result.station_level
        accepted = (rates * passed).sum(axis=0) @ layout.demand
        accepted[active] = used_active
        throttled = np.zeros(size, dtype=bool)
        throttled[active] = refused_active > 1e-6 * requested_active.sum(axis=0)
        heat = accepted.copy()
        heat[active] += refused_active
        self.recorder.record_contention(
            Contention(
                start,
                rates,
                passed,
                result.draw_shares,
                result.cell_shares,
                solver,
                active,
                refused_active,
                refused_whole,
                used_whole,
                self.whole_rate,
            ),
            requested[:, size:],
        )
        return np.concatenate((accepted, used_whole)), heat, throttled

    def _solver(self, active: NDArray[np.intp]) -> AdmissionSolver:
        place = active.tobytes()
        entry = self._solvers.get(place)
        if entry is None:
            solver = AdmissionSolver(self.plan, self.layout.cells(active), self.layout.meter_of[active])
            entry = self._solvers[place] = (active, solver)
        return entry[1]

    def _adjust_capacity(
        self, now: int, rates: Floats, heat: Floats, throttled: NDArray[np.bool_] | None
    ) -> None:
        """Split hot partitions after a window, and after each minute grow on-demand stations and scale provisioned ones."""
        layout = self.layout
        mean = rates.mean(axis=0)
        layout.store_levels(self.levels)
        changed = False
        for station, parts in enumerate(self.parts):
            reads, writes = layout.slices[2 * station], layout.slices[2 * station + 1]
            station_heat = np.stack((heat[reads], heat[writes]))
            refused = np.zeros(len(parts), dtype=bool)
            if throttled is not None:
                refused = throttled[reads] | throttled[writes]
            sources = partial(layout.sources, station, mean)
            changed |= parts.split_hot(
                station_heat, refused, float(now), self.behaviour.split_after_s, sources
            )
        if now % PEAK_WINDOW_S == 0:
            for station, parts in enumerate(self.parts):
                used = self._minute[2 * station : 2 * station + 2]
                if self.workload.stations[station].capacity.on_demand:
                    changed |= parts.grow_for_peak(used, float(now))
            self.whole_rate, counts = self.scaler.rescale(self._minute, self.whole_rate, now)
            for parts, count in zip(self.parts, counts, strict=True):
                changed |= parts.grow(count, float(now))
            self.whole = np.minimum(self.whole, self.whole_rate * self.burst_s)
            self._minute[:] = 0.0
        if changed:
            self._rebuild_layout(float(now))

    def _rebuild_layout(self, now_s: float) -> None:
        """Lay the workload out again after partitions or keys changed."""
        self.recorder.flush()
        self.layout = self._lay_out(now_s)
        self.recorder.set_layout(self.layout)
        self.levels = self.layout.levels()
        self._solvers.clear()

    def _lay_out(self, at_s: float) -> PartitionLayout:
        return PartitionLayout(self.workload, self.plan, self.popularities, self.parts, at_s)

    def _settle(self) -> None:
        """Grow and split partitions as days of the busiest minute would; with `settled`, bursts are left out, as they are too short."""
        rates = self.workload.rates
        peaks = rates.peaks()
        units = peaks @ self.plan.whole_units
        for number, parts in enumerate(self.parts):
            allowance = self.workload.stations[number].capacity
            reads = min(float(units[2 * number]), allowance.reads)
            writes = min(float(units[2 * number + 1]), allowance.writes)
            if allowance.on_demand:
                parts.grow(partitions_for(2 * reads, 2 * writes), 0.0)
        if not self.behaviour.warm and isinstance(rates, DailyRates):
            peaks = replace(rates, bursts=()).peaks()
        layout = self._lay_out(0.0)
        for number, parts in enumerate(self.parts):
            parts.split_for_load(layout.sources(number, peaks))
