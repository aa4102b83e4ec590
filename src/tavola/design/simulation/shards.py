"""Find how many shards the hot partition keys of a station need.

A station is examined alone: with its whole traffic, and without the limits of provisioned units, quotas or other stations. The run
covers the busiest hour, with all possible splits already made, so whatever is still refused stays refused. A number of shards is
enough if fewer than one write in a thousand is refused. A settled hot key has a partition of its own, so a token bucket per key
predicts the number; a few simulations around the prediction find the smallest that is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from tavola.design.simulation.keyspace import Floats, popularity
from tavola.design.simulation.layout import meter as meter_of
from tavola.design.simulation.recorder import Recorder
from tavola.design.simulation.results import SHARDS_MAX, ShardsNeeded
from tavola.design.simulation.simulator import ServiceBehaviour, Simulator
from tavola.design.simulation.workload import Draw, RequestFlow, Workload
from tavola.limits import PARTITION_WRITES_PER_S

ENOUGH = 0.001  # share of refused writes at which a number of shards is enough
_BUSIEST_S = 3600
_OPEN = 1e15  # more units than any workload uses
_NEVER_S = 1e12
_HOT_SHARE = 0.02  # of all refused writes; a key set with more is hot
_LEAST_READ = 0.5  # units of reading an empty shard
_VALUES = 64  # values of a key set that are estimated one by one


@dataclass(frozen=True)
class SteadyRates:
    """Given numbers of requests in each second."""

    counts: Floats  # one row per second, one column per flow

    @property
    def seconds(self) -> int:
        """The length of the run."""
        return len(self.counts)

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        return self.counts[start : start + count]

    def means(self) -> Floats:
        """Return each flow's mean."""
        means_: Floats = self.counts.mean(axis=0)
        return means_

    def peaks(self) -> Floats:
        """Return the rates of the busiest ten seconds, all flows together."""
        return self.busiest(10).means()

    def busiest(self, seconds: int) -> SteadyRates:
        """Return the busiest period of `seconds`, or all of it if it is shorter."""
        if self.seconds <= seconds:
            return self
        total = np.concatenate(([0.0], np.cumsum(self.counts.sum(axis=1))))
        start = int(np.argmax(total[seconds:] - total[:-seconds]))
        return SteadyRates(self.counts[start : start + seconds])

    def scale(self, factors: tuple[float, ...]) -> SteadyRates:
        """Return the same rates with each flow multiplied by its factor."""
        return SteadyRates(self.counts * np.asarray(factors))


def shards_needed(
    workload: Workload,
    meter: int,
    behaviour: ServiceBehaviour,
    seed: int,
    on_progress: Callable[[], None] = lambda: None,
) -> tuple[ShardsNeeded, ...]:
    """Return the fewest shards of each hot key set with which a station refuses next to nothing.

    `on_progress` is called repeatedly; it may end the search by raising.
    """
    settled = replace(behaviour, warm=True, split_after_s=_NEVER_S)
    return _ShardSearch(isolate_station(workload, meter), settled, seed, on_progress).find()


def isolate_station(workload: Workload, meter: int) -> Workload:
    """Return the traffic of one table or index in the busiest hour, limited by its partitions only.

    Reads stay: they heat partitions and influence where those are split.
    """
    rates = workload.rates.busiest(_BUSIEST_S)
    flows: list[RequestFlow] = []
    columns: list[int] = []
    for number, flow in enumerate(workload.flows):
        draws = tuple(
            replace(
                draw, arms=tuple(replace(arm, station=0) for arm in draw.arms if arm.station == meter // 2)
            )
            for draw in flow.draws
            if any(arm.station == meter // 2 for arm in draw.arms)
        )
        if draws:
            flows.append(replace(flow, draws=draws))
            columns.append(number)
    station = workload.stations[meter // 2]
    unlimited = replace(station.capacity, reads=_OPEN, writes=_OPEN, reads_max=None, writes_max=None)
    counts = rates.block(0, rates.seconds)[:, columns]
    return replace(
        workload,
        stations=(replace(station, capacity=unlimited),),
        flows=tuple(flows),
        rates=SteadyRates(counts),
    )


def reshard(workload: Workload, counts: dict[int, int]) -> Workload:
    """Return the same traffic with other shard counts; a reader of a sharded key queries all of its shards."""
    keys = tuple(
        replace(known, shards=counts.get(number, known.shards)) for number, known in enumerate(workload.keys)
    )
    factors: list[float] = []
    flows: list[RequestFlow] = []
    for flow in workload.flows:
        fan_out = max((_fan_out(draw, workload, counts) for draw in flow.draws), default=1.0)
        factors.append(fan_out)
        draws = tuple(_divide_reads(draw, _fan_out(draw, workload, counts)) for draw in flow.draws)
        flows.append(replace(flow, draws=draws, fan=flow.fan * fan_out))
    return replace(workload, keys=keys, flows=tuple(flows), rates=workload.rates.scale(tuple(factors)))


def _fan_out(draw: Draw, workload: Workload, counts: dict[int, int]) -> float:
    """Return by what factor a draw that reads a whole key queries more shards than now."""
    reads_whole_key = any(arm.access == "read" and arm.spread == "point" for arm in draw.arms)
    now = workload.keys[draw.keys].shards
    return counts.get(draw.keys, now) / now if reads_whole_key else 1.0


def _divide_reads(draw: Draw, fan_out: float) -> Draw:
    if fan_out == 1.0:
        return draw
    arms = tuple(
        replace(arm, units=max(min(arm.units, _LEAST_READ), arm.units / fan_out)) for arm in draw.arms
    )
    return replace(draw, arms=arms)


@dataclass
class _ShardSearch:
    workload: Workload
    physics: ServiceBehaviour
    seed: int
    on_progress: Callable[[], None]
    _tried: dict[tuple[tuple[int, int], ...], float] = field(default_factory=dict)

    def find(self) -> tuple[ShardsNeeded, ...]:
        now = {
            draw.keys: self.workload.keys[draw.keys].shards
            for flow in self.workload.flows
            for draw in flow.draws
        }
        hot = self._find_hot(now)
        hopeless = [number for number in hot if self._estimate_refused(number, SHARDS_MAX) >= ENOUGH]
        results = [self._result(number, now[number], None, 1.0) for number in hopeless]
        hot = [number for number in hot if number not in hopeless]
        if hopeless and hot:
            self.workload = drop_key_sets(self.workload, hopeless)
        if not hot:
            return tuple(results)
        counts = {number: self._guess(number, now[number], ENOUGH / len(hot)) for number in hot}
        too_few = {number: now[number] - 1 for number in hot}
        factor = 1.02
        while self._share(counts) >= ENOUGH:
            if all(count >= SHARDS_MAX for count in counts.values()):
                return (
                    *results,
                    *(
                        self._result(key_number, now[key_number], None, self._share(counts))
                        for key_number in hot
                    ),
                )
            if len(hot) == 1:  # with several, any of them may have too few
                too_few = counts
            counts = {
                key_number: min(SHARDS_MAX, ceil(count * factor)) for key_number, count in counts.items()
            }
            factor = factor * factor
        for number in sorted(hot, key=lambda key_number: -counts[key_number]):
            counts[number] = self._fewest_enough(number, too_few[number], counts)
        return (
            *results,
            *(
                self._result(key_number, now[key_number], counts[key_number], self._share(counts))
                for key_number in hot
            ),
        )

    def _report_progress(self, done: int, of: int) -> None:
        self.on_progress()

    def _fewest_enough(self, number: int, too_few: int, counts: dict[int, int]) -> int:
        """Return the fewest shards of a key set that are enough beside the others; `too_few` are known not to be."""
        enough, step = counts[number], 1
        while enough - too_few > 1:
            # Search near the estimate first, then by halves.
            tried = max(enough - step, (too_few + enough) // 2)
            if self._share({**counts, number: tried}) < ENOUGH:
                enough, step = tried, 2 * step
            else:
                too_few = tried
        return enough

    def _find_hot(self, now: dict[int, int]) -> list[int]:
        """Return the key sets that still have refused writes once partitions are split, the hot ones."""
        run = Simulator(reshard(self.workload, now), self.physics, self.seed)
        run.run(self._report_progress, self._exceeds(50 * ENOUGH))
        run.recorder.flush()
        self._tried[tuple(sorted(now.items()))] = self._refused_share(run.recorder)
        refused: dict[int, float] = {}
        for position, key in enumerate(run.recorder.watched):
            if key.meter == 1:
                refused[key.keys] = refused.get(key.keys, 0.0) + float(run.recorder.key_refused[position])
        total = sum(refused.values())
        return [
            number for number, amount in sorted(refused.items()) if total > 0 and amount > _HOT_SHARE * total
        ]

    def _guess(self, number: int, now: int, bound: float) -> int:
        """Return the fewest shards with which token buckets of the keys refuse no more than `bound`."""
        low, high = now - 1, SHARDS_MAX
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._estimate_refused(number, middle) >= bound else (low, middle)
        return high

    def _estimate_refused(self, number: int, shards: int) -> float:
        """Return the share of the station's writes that are refused for a key set if each shard has its own partition."""
        counts = self.workload.rates.block(0, self.workload.rates.seconds)
        values = min(_VALUES, self.workload.keys[number].listed_count)
        units = np.zeros((counts.shape[1], values))
        unsharded = replace(self.workload.keys[number], shards=1)
        for flow, workload_flow in enumerate(self.workload.flows):
            for draw in workload_flow.draws:
                if draw.keys != number:
                    continue
                amount = sum(arm.units for arm in draw.arms if meter_of(arm) == 1)
                if draw.rank is not None:
                    units[flow, min(draw.rank, values - 1)] += amount
                else:
                    units[flow] += amount * popularity(unsharded, draw.skew, self.seed).shares[:values]
        requested = counts @ units / shards
        requested = requested[:, requested.max(axis=0) > PARTITION_WRITES_PER_S]
        level = np.full(requested.shape[1], float(PARTITION_WRITES_PER_S))
        refused = 0.0
        for second in requested:
            left = level + PARTITION_WRITES_PER_S - second
            refused -= float(np.minimum(left, 0.0).sum())
            level = np.clip(left, 0.0, PARTITION_WRITES_PER_S)
        return refused * shards / max(self._writes_requested, 1e-9)

    def _share(self, counts: dict[int, int]) -> float:
        """Return the share of writes that the station refuses with these shards; the run ends early if it is clearly too much."""
        place = tuple(sorted(counts.items()))
        if place not in self._tried:
            run = Simulator(reshard(self.workload, counts), self.physics, self.seed)
            run.run(self._report_progress, self._exceeds(2 * ENOUGH))
            self._tried[place] = self._refused_share(run.recorder)
        return self._tried[place]

    @property
    def _writes_requested(self) -> float:
        units = [
            sum(arm.units for draw in flow.draws for arm in draw.arms if meter_of(arm) == 1)
            for flow in self.workload.flows
        ]
        rates = self.workload.rates
        return float(rates.means() @ np.array(units)) * rates.seconds

    def _refused_share(self, recorder: Recorder) -> float:
        return float(recorder.refused_units[:, 1].sum()) / max(self._writes_requested, 1e-9)

    def _exceeds(self, share: float) -> Callable[[Recorder], bool]:
        limit = share * self._writes_requested
        return lambda recorder: float(recorder.refused_units[:, 1].sum()) > limit

    def _result(self, number: int, now: int, needed: int | None, share: float) -> ShardsNeeded:
        keys = self.workload.keys[number]
        return ShardsNeeded(keys.name, now, needed, share, by_time=keys.by_time)


def drop_key_sets(workload: Workload, keys: list[int]) -> Workload:
    """Return a workload without the requests for some key sets."""
    flows: list[RequestFlow] = []
    columns: list[int] = []
    for number, flow in enumerate(workload.flows):
        draws = tuple(draw for draw in flow.draws if draw.keys not in keys)
        if draws:
            flows.append(replace(flow, draws=draws))
            columns.append(number)
    counts = workload.rates.block(0, workload.rates.seconds)[:, columns]
    return replace(workload, flows=tuple(flows), rates=SteadyRates(counts))
