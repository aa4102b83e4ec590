"""The share of each flow that falls on each partition, as arrays, for the current partitions.

Rebuilt whenever a partition is split. Buckets are numbered consecutively: for each station the read buckets of its partitions, then
the write buckets. A cell is a share of one draw that meets the same buckets; for a draw with a single station, a cell is a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.keyspace import Floats, Spread
from tavola.design.simulation.partitions import HeatSource, Partitions
from tavola.design.simulation.workload import ACCESSES, PARTITION_LIMITS, Arm, KeyPopularities, Workload

Integers = NDArray[np.intp]


@dataclass(frozen=True)
class FlowUnits:
    """The part of a workload that does not depend on partitions: draws, and the units of each flow at each station."""

    draw_flow: Integers
    draw_starts: Integers  # of each flow's draws
    whole_units: Floats  # flow × (station, access)
    whole_flow: Integers  # the entries of `whole_units` that are not 0, by flow
    whole_at: Integers
    whole_starts: Integers  # where each flow's entries begin

    @staticmethod
    def of(workload: Workload) -> FlowUnits:
        """Return the units of a workload's flows."""
        flows, stations = len(workload.flows), len(workload.stations)
        units = np.zeros((flows, 2 * stations))
        draw_flow: list[int] = []
        starts: list[int] = []
        for number, flow in enumerate(workload.flows):
            starts.append(len(draw_flow))
            for draw in flow.draws:
                draw_flow.append(number)
                for arm in draw.arms:
                    units[number, meter(arm)] += arm.units
        whole_flow, whole_at = np.nonzero(units)
        whole_starts = np.searchsorted(whole_flow, np.arange(flows))
        return FlowUnits(np.array(draw_flow), np.array(starts), units, whole_flow, whole_at, whole_starts)


def meter(arm: Arm) -> int:
    """Return the number of the bucket of an arm's whole station."""
    return 2 * arm.station + ACCESSES.index(arm.access)


@dataclass(frozen=True)
class Cells:
    """The cells of some buckets; the rest of each draw is one cell that no bucket limits.

    `slots` has a row of bucket numbers for each arm of a draw, `units` what is used there; the number past the last
    bucket is a bucket that always admits.
    """

    mass: Floats
    draw: Integers
    starts: Integers
    slots: NDArray[np.intp]
    units: Floats


class PartitionLayout:
    """A workload laid out over the current partitions."""

    def __init__(
        self,
        workload: Workload,
        plan: FlowUnits,
        popularities: KeyPopularities,
        parts: Sequence[Partitions],
        at_s: float,
    ) -> None:
        self.plan = plan
        self.parts = parts
        self.bounds = [part.bounds for part in parts]  # a snapshot: partitions may be split later
        counts = [bounds.size for bounds in self.bounds]
        self.firsts = np.concatenate(([0], np.cumsum([2 * count for count in counts])))
        self.buckets = int(self.firsts[-1])
        # By meter
        self.slices = [
            slice(
                int(self.firsts[station]) + access * count, int(self.firsts[station]) + (access + 1) * count
            )
            for station, count in enumerate(counts)
            for access in (0, 1)
        ]
        self.rate = np.empty(self.buckets)
        self.meter_of = np.empty(self.buckets, dtype=np.intp)
        for number, at in enumerate(self.slices):
            self.rate[at] = PARTITION_LIMITS[ACCESSES[number % 2]]
            self.meter_of[at] = number
        self._popularities = popularities
        self._workload = workload
        self.at_s = at_s
        self._compile()

    def _compile(self) -> None:
        masses: list[Floats] = []
        slots: list[list[NDArray[np.intp]]] = []
        units: list[list[float]] = []
        self.demand = np.zeros((len(self._workload.flows), self.buckets))
        width = max((len(draw.arms) for flow in self._workload.flows for draw in flow.draws), default=1)
        for number, flow in enumerate(self._workload.flows):
            for draw in flow.draws:
                popularity = self._popularities.of(draw, self.at_s)
                edges = self._edges([arm.station for arm in draw.arms])
                spread = draw.arms[0].spread if len(draw.arms) == 1 else "any"
                mass = np.diff(popularity.below(edges, spread))
                hit = mass > 0
                lows, mass = edges[:-1][hit], mass[hit]
                bucket_rows: list[NDArray[np.intp]] = []
                for arm in draw.arms:
                    at = self.slices[meter(arm)]
                    partition = np.searchsorted(self.bounds[arm.station], lows, side="right") - 1
                    bucket_rows.append(partition + at.start)
                    np.add.at(self.demand[number], bucket_rows[-1], mass * arm.units)
                masses.append(mass)
                slots.append(bucket_rows)
                units.append([arm.units for arm in draw.arms])
        sizes = [mass.size for mass in masses]
        self._mass = np.concatenate(masses) if masses else np.zeros(0)
        self._draw = np.repeat(np.arange(len(masses)), sizes)
        self._slots = np.full((width, self._mass.size), self.buckets, dtype=np.intp)
        self._units = np.zeros((width, self._mass.size))
        start = 0
        for size, bucket_rows, bucket_units in zip(sizes, slots, units, strict=True):
            for row, (partition, unit) in enumerate(zip(bucket_rows, bucket_units, strict=True)):
                self._slots[row, start : start + size] = partition
                self._units[row, start : start + size] = unit
            start += size

    def _edges(self, stations: list[int]) -> Floats:
        if len(set(stations)) == 1:
            return np.append(self.bounds[stations[0]], 1.0)
        return np.unique(np.concatenate([[1.0], *(self.bounds[station] for station in set(stations))]))

    @cached_property
    def full(self) -> Floats:
        """Demand on every bucket, with those of whole stations after those of partitions."""
        return np.concatenate((self.demand, self.plan.whole_units), axis=1)

    def levels(self) -> Floats:
        """Return the units left in the buckets of partitions."""
        return np.concatenate([part.levels.ravel() for part in self.parts]) if self.parts else np.zeros(0)

    def store_levels(self, levels: Floats) -> None:
        """Store the units left in the partitions."""
        for number, part in enumerate(self.parts):
            at = levels[int(self.firsts[number]) : int(self.firsts[number + 1])]
            part.levels = at.reshape(2, -1).copy()

    def cells(self, active: NDArray[np.intp]) -> Cells:
        """Return the cells that use any of these buckets, numbered by their order, and one cell per draw for the rest."""
        number = np.full(self.buckets + 1, active.size, dtype=np.intp)
        number[active] = np.arange(active.size)
        slots = number[self._slots]
        limited = (slots < active.size).any(axis=0)
        draws = self.plan.draw_flow.size
        rest = np.bincount(self._draw[~limited], weights=self._mass[~limited], minlength=draws)
        mass: Floats = np.concatenate((self._mass[limited], rest.astype(np.float64)))
        draw = np.concatenate((self._draw[limited], np.arange(draws)))
        width = slots.shape[0]
        open_slots = np.full((width, draws), active.size, dtype=np.intp)
        limited_slots = np.concatenate((slots[:, limited], open_slots), axis=1)
        units = np.concatenate((self._units[:, limited], np.zeros((width, draws))), axis=1)
        order = np.argsort(draw, kind="stable")
        draw = draw[order]
        starts = np.searchsorted(draw, np.arange(draws))
        return Cells(mass[order], draw, starts, limited_slots[:, order], units[:, order])

    def sources(self, station: int, rates: Floats) -> list[HeatSource]:
        """Return where a station's heat comes from at these rates."""
        heat_sources: list[HeatSource] = []
        for number, flow in enumerate(self._workload.flows):
            for draw in flow.draws:
                for arm in draw.arms:
                    if arm.station == station and rates[number] > 0:
                        whole = self._workload.stations[station].whole_collections
                        popularity = self._popularities.of(draw, self.at_s)
                        spread: Spread = "point" if whole else arm.spread
                        weight = float(rates[number]) * arm.units / PARTITION_LIMITS[arm.access]
                        heat_sources.append(
                            HeatSource(popularity, spread, weight, ACCESSES.index(arm.access))
                        )
        return heat_sources
