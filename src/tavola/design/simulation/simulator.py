"""Simulate a workload over partitions, second by second, in aggregate.

Problem. A day of 50,000 requests per second is 4 billion requests; simulating each one would take hours. DynamoDB throttles by
token buckets, so it is enough to know how many units each bucket is asked for in each second.

Idea. Every partition has a bucket for reads and one for writes, and every table or global index ("station") has a pair for its
provisioned units or its account quota. Time advances in windows of ten seconds:

    rates (10 s × flows) ──► units asked of each bucket
                                  │
            could any bucket run dry if nothing were refused?
                 │ no (most windows)              │ yes
                 ▼                                ▼
          drain all buckets          solve the dry buckets second by second (`solving`)
                 └───────────────┬────────────────┘
                                 ▼
       split hot partitions · grow on-demand stations · scale provisioned ones
                                 ▼
                if anything changed: lay the keys out again (`layout`)

The first test is one matrix product and a cumulative sum over all buckets, so a calm window costs microseconds.

Adaptive capacity. A partition that was hot for `split_after_s` is split where its heat divides best (`partitions`); on demand, the
peak of half an hour ago is served twice over.

Cost: a day of a million requests per second takes about twenty seconds. Given up: the order of requests within a second, and retries, which `waits` derives afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.keyspace import Floats
from tavola.design.simulation.layout import FlowUnits, PartitionLayout
from tavola.design.simulation.partitions import PEAK_WINDOW_S, WINDOW_S, Partitions, partitions_for
from tavola.design.simulation.rates import DailyRates
from tavola.design.simulation.recorder import Contention, Recorder
from tavola.design.simulation.scaling import Scaler
from tavola.design.simulation.solving import AdmissionSolver, BucketSupply
from tavola.design.simulation.workload import KeyPopularities, Workload
from tavola.limits import BURST_S

_BLOCK_S = 3600
_TOLD_S = 60  # between two progress reports; the listener may end the run by raising
Progress = Callable[[int, int], None]  # seconds done, of how many


@dataclass(frozen=True, slots=True)
class ServiceBehaviour:
    """How the simulated service behaves; tests switch parts off to show that their absence is noticed."""

    split_after_s: float = 300.0
    burst_s: float = BURST_S
    warm: bool = False  # partitions and saved units as after days of this load
    settled: bool = False  # partitions as after a day of it


class Simulator:
    """One simulation run: its buckets, partitions and recorder."""

    def __init__(
        self, workload: Workload, physics: ServiceBehaviour, seed: int, columns_max: int = 240
    ) -> None:
        self.workload = workload
        self.physics = physics
        self.crowd = KeyPopularities(workload, seed)
        self.plan = FlowUnits.of(workload)
        self.parts = [Partitions(station.allowance.partitions) for station in workload.stations]
        allowances = [station.allowance for station in workload.stations]
        self.whole_rate = np.array([rate for each in allowances for rate in (each.reads, each.writes)])
        self.kept_s = np.array(
            [1.0 if each.on_demand else physics.burst_s for each in allowances for _ in (0, 1)]
        )
        filled_s = self.kept_s if physics.warm else np.minimum(1.0, self.kept_s)
        self.whole = self.whole_rate * filled_s
        self.scaler = Scaler(workload)
        if physics.warm or physics.settled:
            self._settle()
        self.layout = self._lay_out(0.0)
        self.levels = self.layout.levels()
        self.recorder = Recorder(workload, self.crowd, columns_max)
        self.recorder.show(self.layout)
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
                if progress is not None and offset % _TOLD_S == 0:
                    progress(start + offset, seconds)
        if progress is not None:
            progress(seconds, seconds)
        self.recorder.settle()
        return True

    def _run_window(self, start: int, rates: Floats) -> None:
        if any(start // period != (start - WINDOW_S) // period for period in self._periods) and start:
            self._change(float(start))
        layout = self.layout
        size = layout.buckets
        asked = rates @ layout.full
        rate = np.concatenate((layout.rate, self.whole_rate))
        most = np.concatenate((layout.rate, self.whole_rate * self.kept_s))
        level = np.concatenate((self.levels, self.whole))
        left = np.cumsum(rate - asked, axis=0)
        # Units left after each second if nothing were refused; a full bucket discards what it cannot keep.
        ceiling = np.minimum(level, np.minimum.accumulate(most - left, axis=0))
        after = left + ceiling
        # Within a second the new units arrive before they are used.
        dry = (after < -1e-9).any(axis=0)
        end = start + len(rates)
        if not dry.any():
            self.levels, self.whole = after[-1, :size], after[-1, size:]
            self.recorder.quiet(start, rates, asked[:, size:])
            used, heat = asked.sum(axis=0), asked[:, :size].sum(axis=0)
            refused = None
        else:
            active = np.flatnonzero(dry[:size])
            used, heat, refused = self._contended(start, rates, asked, active, after[-1, :size])
        self._minute += used[size:]
        self._end(end, rates, heat, refused)

    def _contended(
        self, start: int, rates: Floats, asked: Floats, active: NDArray[np.intp], calm: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Simulate some seconds one by one, with only the buckets that may run dry."""
        layout, size = self.layout, self.layout.buckets
        solver = self._solver(active)
        meters = layout.meter_of[active]
        rate = layout.rate[active]
        kept = self.whole_rate * self.kept_s
        found = solver.solve_window(
            rates,
            BucketSupply(self.levels[active], rate, rate),
            BucketSupply(self.whole, self.whole_rate, kept),
        )
        used_active, used_whole = found.used.sum(axis=0), found.used_whole.sum(axis=0)
        asked_active = asked[:, active]
        refused_active = (asked_active * found.whole[:, meters] * (1.0 - found.shares)).sum(axis=0)
        refused_whole = (asked[:, size:] * (1.0 - found.whole)).sum(axis=0)
        passed = found.passed
        self.levels = calm.copy()
        self.levels[active] = found.level
        self.whole = found.level_whole
        accepted = (rates * passed).sum(axis=0) @ layout.demand
        accepted[active] = used_active
        throttled = np.zeros(size, dtype=bool)
        throttled[active] = refused_active > 1e-6 * asked_active.sum(axis=0)
        heat = accepted.copy()
        heat[active] += refused_active
        self.recorder.contended(
            Contention(
                start,
                rates,
                passed,
                found.drawn,
                found.let,
                solver,
                active,
                refused_active,
                refused_whole,
                used_whole,
                self.whole_rate,
            ),
            asked[:, size:],
        )
        return np.concatenate((accepted, used_whole)), heat, throttled

    def _solver(self, active: NDArray[np.intp]) -> AdmissionSolver:
        place = active.tobytes()
        found = self._solvers.get(place)
        if found is None:
            made = AdmissionSolver(self.plan, self.layout.cells(active), self.layout.meter_of[active])
            found = self._solvers[place] = (active, made)
        return found[1]

    def _end(self, now: int, rates: Floats, heat: Floats, throttled: NDArray[np.bool_] | None) -> None:
        layout = self.layout
        mean = rates.mean(axis=0)
        layout.keep(self.levels)
        changed = False
        for station, parts in enumerate(self.parts):
            reads, writes = layout.slices[2 * station], layout.slices[2 * station + 1]
            felt = np.stack((heat[reads], heat[writes]))
            refused = np.zeros(len(parts), dtype=bool)
            if throttled is not None:
                refused = throttled[reads] | throttled[writes]
            sources = partial(layout.sources, station, mean)
            changed |= parts.judge(felt, refused, float(now), self.physics.split_after_s, sources)
        if now % PEAK_WINDOW_S == 0:
            for station, parts in enumerate(self.parts):
                used = self._minute[2 * station : 2 * station + 2]
                if self.workload.stations[station].allowance.on_demand:
                    changed |= parts.measure(used, float(now))
            self.whole_rate, wanted = self.scaler.minute(self._minute, self.whole_rate, now)
            for parts, count in zip(self.parts, wanted, strict=True):
                changed |= parts.grow(count, float(now))
            self.whole = np.minimum(self.whole, self.whole_rate * self.kept_s)
            self._minute[:] = 0.0
        if changed:
            self._change(float(now))

    def _change(self, now_s: float) -> None:
        """Lay the workload out again after partitions or keys changed."""
        self.recorder.settle()
        self.layout = self._lay_out(now_s)
        self.recorder.show(self.layout)
        self.levels = self.layout.levels()
        self._solvers.clear()

    def _lay_out(self, at_s: float) -> PartitionLayout:
        return PartitionLayout(self.workload, self.plan, self.crowd, self.parts, at_s)

    def _settle(self) -> None:
        """Grow and split partitions as days of the busiest minute would have; bursts alone are too short to cause splits."""
        rates = self.workload.rates
        peaks = rates.peaks()
        units = peaks @ self.plan.whole_units
        for number, parts in enumerate(self.parts):
            allowance = self.workload.stations[number].allowance
            reads = min(float(units[2 * number]), allowance.reads)
            writes = min(float(units[2 * number + 1]), allowance.writes)
            if allowance.on_demand:
                parts.grow(partitions_for(2 * reads, 2 * writes), 0.0)
        if not self.physics.warm and isinstance(rates, DailyRates):
            peaks = replace(rates, bursts=()).peaks()
        layout = self._lay_out(0.0)
        for number, parts in enumerate(self.parts):
            parts.settle(layout.sources(number, peaks))
