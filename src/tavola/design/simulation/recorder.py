"""Recorder: what a run leaves behind, summed as it goes, so that a day needs no more room than an hour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.keyspace import KEY_WIDTH, Floats, Spread
from tavola.design.simulation.layout import PartitionLayout, meter
from tavola.design.simulation.partitions import WINDOW_S
from tavola.design.simulation.solving import AdmissionSolver
from tavola.design.simulation.waits import NODES, bin_by_node
from tavola.design.simulation.workload import Draw, KeyPopularities, Workload

ROWS = 64  # stretches of keys on a heat map
KEYS_TOLD = 12  # of the busiest keys of a station
_CANDIDATES = 64
_OFFSET: dict[Spread, float] = {"point": 0.0, "any": 0.5, "rising": 1.0 - 2.0**-8}


@dataclass(frozen=True, slots=True)
class Contention:
    """Some seconds in which buckets ran dry: what was asked, what passed, and what was refused where."""

    start: int
    rates: Floats
    passed: Floats
    drawn: Floats  # second × draw
    let: Floats  # second × cell
    solver: AdmissionSolver
    active: NDArray[np.intp]
    refused: Floats  # units, by active bucket
    refused_whole: Floats  # units, by meter: what the station as a whole refused
    used_whole: Floats
    whole_rate: Floats  # what each station has a second


@dataclass(frozen=True, slots=True)
class WatchedKey:
    """A busy key of a station: its name, its place at first, and what it takes of each flow."""

    meter: int
    label: str
    keys: int
    position: float
    units: Floats  # of one request of each flow, on average
    draw: Draw  # one that meets it
    rank: int  # in what that draw meets
    offset: float  # of where in its collection it is met


class Recorder:
    """Sums over a run: by flow, by meter (a station's reads or writes), by stretch of time and of keys."""

    def __init__(self, workload: Workload, crowd: KeyPopularities, columns_max: int) -> None:
        self._workload = workload
        self._crowd = crowd
        flows, meters = len(workload.flows), 2 * len(workload.stations)
        seconds = workload.rates.seconds
        self.column_s = WINDOW_S * max(1, -(-seconds // (columns_max * WINDOW_S)))
        columns = max(1, -(-seconds // self.column_s))
        self.requests = np.zeros((columns, flows))
        self.refused = np.zeros((columns, flows))
        self.used = np.zeros((columns, meters))
        self.asked = np.zeros((columns, meters))
        self.refused_units = np.zeros((columns, meters))  # by partitions
        self.refused_whole = np.zeros((columns, meters))  # by the station as a whole
        self.peak = np.zeros(meters)  # units asked for in the busiest second
        self.refused_most = np.zeros(meters)  # the most that a station had while it refused
        self.refused_at = np.zeros(meters)  # what a station had while it refused, times what it refused
        self.heat = np.zeros((meters, ROWS, columns))
        self.throttled = np.zeros((meters, ROWS, columns))
        self.refusals = np.zeros((flows, NODES.size))  # requests, by the share of them that was refused
        self._fanned = np.array([flow.fan > 1 for flow in workload.flows], dtype=bool)
        self.row_edges = np.linspace(0.0, 1.0, ROWS + 1)
        self.watched = self._watched()
        self.key_refused = np.zeros(len(self.watched))
        self.key_peak = np.zeros(len(self.watched))  # units asked for in its busiest second
        self._key_units = np.stack([key.units for key in self.watched], axis=1) if self.watched else None
        self.patterns = _patterns(workload)
        self.pattern_peak = np.zeros(self.patterns.shape[1])  # times it was asked in its busiest second
        self._pending = np.zeros(flows)  # requests since the last flush, for heat
        self._pending_refused: Floats | None = None
        self._pending_whole = np.zeros(meters)
        self._column = 0
        self._rows: list[Floats] | None = None
        self._layout: PartitionLayout | None = None

    def quiet(self, start: int, rates: Floats, asked: Floats) -> None:
        """Take a stretch in which nothing was refused."""
        summed = self._take(start, rates, asked)
        self.refusals[:, 0] += summed
        self.used[self._column] += asked.sum(axis=0)

    def contended(self, told: Contention, asked: Floats) -> None:
        """Take a stretch in which buckets ran dry."""
        self._take(told.start, told.rates, asked)
        column = self._column
        self._pending_whole += told.refused_whole
        assert self._layout is not None, "whoever records has shown the layout"
        if self._pending_refused is None:
            self._pending_refused = np.zeros(self._layout.buckets)
        self._pending_refused[told.active] += told.refused
        self.refused[column] += (told.rates * (1.0 - told.passed)).sum(axis=0)
        self.used[column] += told.used_whole
        self.refused_whole[column] += told.refused_whole
        self.refused_at += told.refused_whole * told.whole_rate
        had = np.where(told.refused_whole > 0, told.whole_rate, 0.0)
        np.maximum(self.refused_most, had, out=self.refused_most)
        meters = self._layout.meter_of[told.active]
        self.refused_units[column] += np.bincount(meters, weights=told.refused, minlength=self.peak.size)
        self._spread(told)

    def _take(self, start: int, rates: Floats, asked: Floats) -> Floats:
        """Count what was asked, and the busiest seconds."""
        self._enter(start)
        summed: Floats = rates.sum(axis=0)
        self._pending += summed
        self.requests[self._column] += summed
        self.asked[self._column] += asked.sum(axis=0)
        np.maximum(self.peak, asked.max(axis=0), out=self.peak)
        np.maximum(self.pattern_peak, (rates @ self.patterns).max(axis=0), out=self.pattern_peak)
        if self._key_units is not None:
            np.maximum(self.key_peak, (rates @ self._key_units).max(axis=0), out=self.key_peak)
        return summed

    def _spread(self, told: Contention) -> None:
        """Sort the requests of each second by how likely they were to be refused.

        By the draw of each flow that was held up most in that second, whatever the others did: together the
        shares are what was refused.
        """
        cells, plan = told.solver.cells, told.solver.plan
        flow = plan.draw_flow
        least = np.minimum.reduceat(told.drawn, plan.draw_starts, axis=1)
        first = np.where(told.drawn <= least[:, flow], np.arange(flow.size), flow.size)
        chosen = np.minimum.reduceat(first, plan.draw_starts, axis=1)[:, flow] == np.arange(flow.size)
        others = told.passed[:, flow] / np.maximum(told.drawn, 1e-12)
        shares = np.clip(1.0 - told.let * others[:, cells.draw], 0.0, 1.0)
        # Of questions that ask many keys at once, all are as likely to be refused as the flow is.
        shares = np.where(self._fanned[flow][cells.draw], (1.0 - told.passed)[:, flow][:, cells.draw], shares)
        weights = cells.mass * chosen[:, cells.draw] * told.rates[:, flow][:, cells.draw]
        rows = np.broadcast_to(flow[cells.draw], shares.shape)
        kept = weights > 0
        self.refusals += bin_by_node(shares[kept], weights[kept], rows[kept], len(self.refusals))

    def show(self, layout: PartitionLayout) -> None:
        """Show the layout that the next stretches are over."""
        self._layout = layout
        self._rows = None

    def settle(self) -> None:
        """Settle what was recorded: over a layout that is about to change, or at the end."""
        self._flush()

    def _enter(self, second: int) -> None:
        column = second // self.column_s
        if column != self._column:
            self._flush()
            self._column = column

    def _flush(self) -> None:
        """Put what was asked and refused since the last time where its keys lie."""
        layout = self._layout
        if layout is None or not self._pending.any():
            return
        rows = self._row_shares(layout)
        column = self._column
        for number, shares in enumerate(rows):
            asked = self._pending @ shares
            self.heat[number, :, column] += asked
            whole = self._pending_whole[number]
            if whole > 0:
                self.throttled[number, :, column] += asked * (whole / max(asked.sum(), 1e-12))
        if self._pending_refused is not None:
            for number in np.unique(layout.meter_of[self._pending_refused > 0]):
                self._place_refused(layout, int(number), self._pending_refused)
        for at, key in enumerate(self.watched):
            whole = self._pending_whole[key.meter]
            if whole > 0:
                share = float(self._pending @ key.units) / max(
                    float(self._pending @ rows[key.meter].sum(axis=1)), 1e-12
                )
                self.key_refused[at] += whole * share
        self._pending = np.zeros_like(self._pending)
        self._pending_refused = None
        self._pending_whole = np.zeros_like(self._pending_whole)

    def _place_refused(self, layout: PartitionLayout, number: int, refused: Floats) -> None:
        """Spread what partitions refused over the stretches of keys, and over busy keys, by what was asked there."""
        bounds = layout.bounds[number // 2]
        edges = np.unique(np.concatenate((bounds, self.row_edges)))
        asked = np.zeros(edges.size - 1)
        for flow, draw, units, spread in self._arms(number):
            if self._pending[flow] > 0:
                crowd = self._crowd.of(draw, layout.at_s)
                asked += self._pending[flow] * units * np.diff(crowd.below(edges, spread))
        part = np.searchsorted(bounds, edges[:-1], side="right") - 1
        of_part = np.bincount(part, weights=asked, minlength=bounds.size)
        mine = refused[layout.slices[number]]
        ratio = np.divide(mine, of_part, out=np.zeros_like(mine), where=of_part > 0)
        row = np.searchsorted(self.row_edges, edges[:-1], side="right") - 1
        self.throttled[number, :, self._column] += np.bincount(
            row, weights=asked * ratio[part], minlength=ROWS
        )
        for at, key in enumerate(self.watched):
            if key.meter == number:
                # A key that holds a time is another one later, and lies elsewhere.
                position = float(self._crowd.of(key.draw, layout.at_s).positions[key.rank]) + key.offset
                place = int(np.searchsorted(bounds, position, side="right")) - 1
                self.key_refused[at] += float(self._pending @ key.units) * float(ratio[place])

    def _row_shares(self, layout: PartitionLayout) -> list[Floats]:
        if self._rows is None:
            flows = len(self._workload.flows)
            self._rows = [np.zeros((flows, ROWS)) for _ in range(self.peak.size)]
            for number in range(self.peak.size):
                for flow, draw, units, spread in self._arms(number):
                    crowd = self._crowd.of(draw, layout.at_s)
                    self._rows[number][flow] += units * np.diff(crowd.below(self.row_edges, spread))
        return self._rows

    def _arms(self, number: int) -> list[tuple[int, Draw, float, Spread]]:
        return [
            (flow, draw, arm.units, arm.spread)
            for flow, each in enumerate(self._workload.flows)
            for draw in each.draws
            for arm in draw.arms
            if meter(arm) == number
        ]

    def _watched(self) -> list[WatchedKey]:
        """Find the busiest keys of each station by the means of the rates."""
        means = self._workload.rates.means()
        flows = len(self._workload.flows)
        told: list[WatchedKey] = []
        for number in range(2 * len(self._workload.stations)):
            units: dict[tuple[int, int], Floats] = {}
            places: dict[tuple[int, int], tuple[Draw, int, float]] = {}
            for flow, draw, each, spread in self._arms(number):
                crowd = self._crowd.of(draw, 0.0)
                first = 0 if draw.rank is None else draw.rank * self._workload.keys[draw.keys].shards
                for rank, share in enumerate(crowd.shares[:_CANDIDATES]):
                    key = (draw.keys, first + rank)
                    taken = units.setdefault(key, np.zeros(flows))
                    taken[flow] += share * each
                    places.setdefault(key, (draw, rank, KEY_WIDTH * _OFFSET[spread]))
            busiest = sorted(units, key=lambda key: (-float(means @ units[key]), key))[:KEYS_TOLD]
            for keys, rank in busiest:
                label = self._workload.keys[keys].label(rank)
                draw, at, offset = places[keys, rank]
                position = float(self._crowd.of(draw, 0.0).positions[at]) + offset
                taken = units[keys, rank]
                told.append(WatchedKey(number, label, keys, position, taken, draw, at, offset))
        return told


def _patterns(workload: Workload) -> Floats:
    """Return how often one request of each flow is a question of each pattern, in the order of `pattern_flows`."""
    grouped = workload.pattern_flows()
    found = np.zeros((len(workload.flows), len(grouped)))
    for at, numbers in enumerate(grouped.values()):
        if workload.traced:
            found[numbers, at] = 1.0
        else:
            found[numbers[0], at] = 1.0 / workload.flows[numbers[0]].fan
    return found
