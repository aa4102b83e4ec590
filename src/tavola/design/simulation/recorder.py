"""Recorder: sums over a run, added up window by window, so that a day needs no more memory than an hour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.admission import AdmissionSolver
from tavola.design.simulation.keyspace import KEY_WIDTH, Floats, Spread
from tavola.design.simulation.layout import PartitionLayout, meter
from tavola.design.simulation.partitions import WINDOW_S
from tavola.design.simulation.waits import NODES, bin_by_node
from tavola.design.simulation.workload import Draw, KeyPopularities, Workload

ROWS = 64  # key ranges on a heat map
BUSIEST_KEYS_MAX = 12  # per station
_CANDIDATES = 64
_OFFSET: dict[Spread, float] = {"point": 0.0, "any": 0.5, "rising": 1.0 - 2.0**-8}


@dataclass(frozen=True, slots=True)
class Contention:
    """Seconds in which buckets ran dry: the rates, the shares that got through, and the units refused."""

    start: int
    rates: Floats
    flow_shares: Floats
    draw_shares: Floats  # second × draw
    cell_shares: Floats  # second × cell
    solver: AdmissionSolver
    active: NDArray[np.intp]
    refused: Floats  # units, by active bucket
    refused_whole: Floats  # units, by meter: what the station as a whole refused
    used_whole: Floats
    whole_rate: Floats  # units per second of each station


@dataclass(frozen=True, slots=True)
class WatchedKey:
    """A busy key of a station: its name, its initial position, and the units that each flow uses there."""

    meter: int
    label: str
    keys: int
    position: float
    units: Floats  # per request of each flow, on average
    draw: Draw  # a draw that can choose it
    rank: int  # its rank in that draw
    offset: float  # position within its item collection


class Recorder:
    """Sums of a run: by flow, by meter (a station's reads or writes), by time and key range."""

    def __init__(self, workload: Workload, popularities: KeyPopularities, columns_max: int) -> None:
        self._workload = workload
        self._popularities = popularities
        flows, meters = len(workload.flows), 2 * len(workload.stations)
        seconds = workload.rates.seconds
        self.column_s = WINDOW_S * max(1, -(-seconds // (columns_max * WINDOW_S)))
        columns = max(1, -(-seconds // self.column_s))
        self.requests = np.zeros((columns, flows))
        self.refused = np.zeros((columns, flows))
        self.used = np.zeros((columns, meters))
        self.requested = np.zeros((columns, meters))
        self.refused_units = np.zeros((columns, meters))  # by partitions
        self.refused_whole = np.zeros((columns, meters))  # by the station as a whole
        self.peak = np.zeros(meters)  # units requested in the busiest second
        self.refused_most = np.zeros(meters)  # highest capacity of a station while it refused
        self.refused_at = np.zeros(meters)  # capacity of a station while it refused, times the units refused
        self.heat = np.zeros((meters, ROWS, columns))
        self.throttled = np.zeros((meters, ROWS, columns))
        self.refusals = np.zeros((flows, NODES.size))  # requests by their probability of refusal
        self._fanned = np.array([flow.fan > 1 for flow in workload.flows], dtype=bool)
        self.row_edges = np.linspace(0.0, 1.0, ROWS + 1)
        self.watched = self._find_busiest_keys()
        self.key_refused = np.zeros(len(self.watched))
        self.key_peak = np.zeros(len(self.watched))  # units requested in its busiest second
        self._key_units = np.stack([key.units for key in self.watched], axis=1) if self.watched else None
        self.patterns = _requests_per_pattern(workload)
        self.pattern_peak = np.zeros(self.patterns.shape[1])  # requests in its busiest second
        self._pending = np.zeros(flows)  # requests since the last flush, for heat
        self._pending_refused: Floats | None = None
        self._pending_whole = np.zeros(meters)
        self._column = 0
        self._rows: list[Floats] | None = None
        self._layout: PartitionLayout | None = None

    def record_calm(self, start: int, rates: Floats, requested: Floats) -> None:
        """Record a window in which nothing was refused."""
        summed = self._count_requests(start, rates, requested)
        self.refusals[:, 0] += summed
        self.used[self._column] += requested.sum(axis=0)

    def record_contention(self, contention: Contention, requested: Floats) -> None:
        """Record a window in which buckets ran dry."""
        self._count_requests(contention.start, contention.rates, requested)
        column = self._column
        self._pending_whole += contention.refused_whole
        assert self._layout is not None, "set_layout comes first"
        if self._pending_refused is None:
            self._pending_refused = np.zeros(self._layout.buckets)
        self._pending_refused[contention.active] += contention.refused
        self.refused[column] += (contention.rates * (1.0 - contention.flow_shares)).sum(axis=0)
        self.used[column] += contention.used_whole
        self.refused_whole[column] += contention.refused_whole
        self.refused_at += contention.refused_whole * contention.whole_rate
        capacity = np.where(contention.refused_whole > 0, contention.whole_rate, 0.0)
        np.maximum(self.refused_most, capacity, out=self.refused_most)
        meters = self._layout.meter_of[contention.active]
        self.refused_units[column] += np.bincount(
            meters, weights=contention.refused, minlength=self.peak.size
        )
        self._count_refusals(contention)

    def _count_requests(self, start: int, rates: Floats, requested: Floats) -> Floats:
        """Add up the requests of a window and update the peaks."""
        self._start_column(start)
        summed: Floats = rates.sum(axis=0)
        self._pending += summed
        self.requests[self._column] += summed
        self.requested[self._column] += requested.sum(axis=0)
        np.maximum(self.peak, requested.max(axis=0), out=self.peak)
        np.maximum(self.pattern_peak, (rates @ self.patterns).max(axis=0), out=self.pattern_peak)
        if self._key_units is not None:
            np.maximum(self.key_peak, (rates @ self._key_units).max(axis=0), out=self.key_peak)
        return summed

    def _count_refusals(self, contention: Contention) -> None:
        """Count the requests of each second by their probability of refusal.

        Each flow is represented by the draw that was refused most in that second, scaled so that the shares add up to what was refused.
        """
        cells, plan = contention.solver.cells, contention.solver.plan
        flow = plan.draw_flow
        least = np.minimum.reduceat(contention.draw_shares, plan.draw_starts, axis=1)
        first = np.where(contention.draw_shares <= least[:, flow], np.arange(flow.size), flow.size)
        chosen = np.minimum.reduceat(first, plan.draw_starts, axis=1)[:, flow] == np.arange(flow.size)
        others = contention.flow_shares[:, flow] / np.maximum(contention.draw_shares, 1e-12)
        shares = np.clip(1.0 - contention.cell_shares * others[:, cells.draw], 0.0, 1.0)
        # A flow of several requests per call is refused as a whole, with the share of the flow.
        shares = np.where(
            self._fanned[flow][cells.draw], (1.0 - contention.flow_shares)[:, flow][:, cells.draw], shares
        )
        weights = cells.mass * chosen[:, cells.draw] * contention.rates[:, flow][:, cells.draw]
        rows = np.broadcast_to(flow[cells.draw], shares.shape)
        counted = weights > 0
        self.refusals += bin_by_node(shares[counted], weights[counted], rows[counted], len(self.refusals))

    def set_layout(self, layout: PartitionLayout) -> None:
        """Set the layout of the following windows."""
        self._layout = layout
        self._rows = None

    def _start_column(self, second: int) -> None:
        column = second // self.column_s
        if column != self._column:
            self.flush()
            self._column = column

    def flush(self) -> None:
        """Distribute pending sums over key ranges. Call it before the layout changes, and at the end."""
        layout = self._layout
        if layout is None or not self._pending.any():
            return
        rows = self._row_shares(layout)
        column = self._column
        for number, shares in enumerate(rows):
            requested = self._pending @ shares
            self.heat[number, :, column] += requested
            refused_whole = self._pending_whole[number]
            if refused_whole > 0:
                self.throttled[number, :, column] += requested * (refused_whole / max(requested.sum(), 1e-12))
        if self._pending_refused is not None:
            for number in np.unique(layout.meter_of[self._pending_refused > 0]):
                self._distribute_refused(layout, int(number), self._pending_refused)
        for position, key in enumerate(self.watched):
            refused_whole = self._pending_whole[key.meter]
            if refused_whole > 0:
                share = float(self._pending @ key.units) / max(
                    float(self._pending @ rows[key.meter].sum(axis=1)), 1e-12
                )
                self.key_refused[position] += refused_whole * share
        self._pending = np.zeros_like(self._pending)
        self._pending_refused = None
        self._pending_whole = np.zeros_like(self._pending_whole)

    def _distribute_refused(self, layout: PartitionLayout, number: int, refused: Floats) -> None:
        """Distribute the units that partitions refused over key ranges and busy keys, by what was requested there."""
        bounds = layout.bounds[number // 2]
        edges = np.unique(np.concatenate((bounds, self.row_edges)))
        requested = np.zeros(edges.size - 1)
        for flow, draw, units, spread in self._arms(number):
            if self._pending[flow] > 0:
                popularity = self._popularities.of(draw, layout.at_s)
                requested += self._pending[flow] * units * np.diff(popularity.below(edges, spread))
        part = np.searchsorted(bounds, edges[:-1], side="right") - 1
        of_part = np.bincount(part, weights=requested, minlength=bounds.size)
        meter_refused = refused[layout.slices[number]]
        ratio = np.divide(meter_refused, of_part, out=np.zeros_like(meter_refused), where=of_part > 0)
        row = np.searchsorted(self.row_edges, edges[:-1], side="right") - 1
        self.throttled[number, :, self._column] += np.bincount(
            row, weights=requested * ratio[part], minlength=ROWS
        )
        for row_number, key in enumerate(self.watched):
            if key.meter == number:
                # A key with a time in it changes, and so does its position.
                position = (
                    float(self._popularities.of(key.draw, layout.at_s).positions[key.rank]) + key.offset
                )
                place = int(np.searchsorted(bounds, position, side="right")) - 1
                self.key_refused[row_number] += float(self._pending @ key.units) * float(ratio[place])

    def _row_shares(self, layout: PartitionLayout) -> list[Floats]:
        if self._rows is None:
            flows = len(self._workload.flows)
            self._rows = [np.zeros((flows, ROWS)) for _ in range(self.peak.size)]
            for number in range(self.peak.size):
                for flow, draw, units, spread in self._arms(number):
                    popularity = self._popularities.of(draw, layout.at_s)
                    self._rows[number][flow] += units * np.diff(popularity.below(self.row_edges, spread))
        return self._rows

    def _arms(self, number: int) -> list[tuple[int, Draw, float, Spread]]:
        return [
            (flow, draw, arm.units, arm.spread)
            for flow, workload_flow in enumerate(self._workload.flows)
            for draw in workload_flow.draws
            for arm in draw.arms
            if meter(arm) == number
        ]

    def _find_busiest_keys(self) -> list[WatchedKey]:
        """Return the busiest keys of each station by mean rates."""
        means = self._workload.rates.means()
        flows = len(self._workload.flows)
        watched: list[WatchedKey] = []
        for number in range(2 * len(self._workload.stations)):
            units: dict[tuple[int, int], Floats] = {}
            places: dict[tuple[int, int], tuple[Draw, int, float]] = {}
            for flow, draw, arm_units, spread in self._arms(number):
                popularity = self._popularities.of(draw, 0.0)
                first = 0 if draw.rank is None else draw.rank * self._workload.keys[draw.keys].shards
                for rank, share in enumerate(popularity.shares[:_CANDIDATES]):
                    key = (draw.keys, first + rank)
                    key_units = units.setdefault(key, np.zeros(flows))
                    key_units[flow] += share * arm_units
                    places.setdefault(key, (draw, rank, KEY_WIDTH * _OFFSET[spread]))
            busiest = sorted(units, key=lambda key: (-float(means @ units[key]), key))[:BUSIEST_KEYS_MAX]
            for keys, rank in busiest:
                label = self._workload.keys[keys].label(rank)
                draw, at, offset = places[keys, rank]
                position = float(self._popularities.of(draw, 0.0).positions[at]) + offset
                key_units = units[keys, rank]
                watched.append(WatchedKey(number, label, keys, position, key_units, draw, at, offset))
        return watched


def _requests_per_pattern(workload: Workload) -> Floats:
    """Return how many calls of each pattern one request of each flow is, in the order of `pattern_flows`."""
    grouped = workload.pattern_flows()
    matrix = np.zeros((len(workload.flows), len(grouped)))
    for position, numbers in enumerate(grouped.values()):
        if workload.traced:
            matrix[numbers, position] = 1.0
        else:
            matrix[numbers[0], position] = 1.0 / workload.flows[numbers[0]].fan
    return matrix
