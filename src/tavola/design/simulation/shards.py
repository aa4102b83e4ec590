"""Find how many shards the hot partition keys of a station need.

A station is judged alone: with its whole traffic, and without the limits of provisioned units, quotas or other stations. The run covers
the busiest hour, with all possible splits already made, so whatever is still refused is refused for good. A number is enough if fewer
than one write in a thousand is refused, and one shard less would not be. A settled hot key has a partition of its own, so a bucket
per key predicts the number; two or three simulations confirm it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from tavola.design.simulation.keyspace import Floats, popularity
from tavola.design.simulation.layout import meter as meter_of
from tavola.design.simulation.recorder import Recorder
from tavola.design.simulation.results import SHARDS_MOST, ShardsNeeded
from tavola.design.simulation.simulator import ServiceBehaviour, Simulator
from tavola.design.simulation.workload import Draw, RequestFlow, Workload
from tavola.limits import PARTITION_WRITES_PER_S

ENOUGH = 0.001
_BUSIEST_S = 3600
_OPEN = 1e15  # units that nothing exceeds
_NEVER_S = 1e12
_FELT = 0.02  # of what is refused, the least that makes a key set one of the hot ones
_LEAST_READ = 0.5  # units of asking a shard that has nothing
_VALUES = 64  # of a key set, that are reckoned one by one


@dataclass(frozen=True)
class SteadyRates:
    """The requests of each second, as given."""

    counts: Floats  # a row a second, a column a flow

    @property
    def seconds(self) -> int:
        """How long it goes."""
        return len(self.counts)

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        return self.counts[start : start + count]

    def means(self) -> Floats:
        """Return each flow's mean."""
        found: Floats = self.counts.mean(axis=0)
        return found

    def peaks(self) -> Floats:
        """Return the rates of the busiest ten seconds, all flows together."""
        return self.busiest(10).means()

    def busiest(self, seconds: int) -> SteadyRates:
        """Return the busiest stretch of so many seconds, or all of it if it is no longer."""
        if self.seconds <= seconds:
            return self
        total = np.concatenate(([0.0], np.cumsum(self.counts.sum(axis=1))))
        start = int(np.argmax(total[seconds:] - total[:-seconds]))
        return SteadyRates(self.counts[start : start + seconds])

    def scaled(self, factors: tuple[float, ...]) -> SteadyRates:
        """Return the same with each flow so many times as often."""
        return SteadyRates(self.counts * np.asarray(factors))


def shards_needed(
    workload: Workload,
    meter: int,
    physics: ServiceBehaviour,
    seed: int,
    told: Callable[[], None] = lambda: None,
) -> tuple[ShardsNeeded, ...]:
    """Return the fewest shards of its hot key sets with which a station refuses next to nothing.

    `told` is called repeatedly to show progress; it may end the search by raising.
    """
    settled = replace(physics, warm=True, split_after_s=_NEVER_S)
    return _Search(isolate_station(workload, meter), settled, seed, told).found()


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
    free = replace(station.allowance, reads=_OPEN, writes=_OPEN, reads_max=None, writes_max=None)
    counts = rates.block(0, rates.seconds)[:, columns]
    return replace(
        workload,
        stations=(replace(station, allowance=free),),
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
        asks = max((_more(draw, workload, counts) for draw in flow.draws), default=1.0)
        factors.append(asks)
        draws = tuple(_scattered(draw, _more(draw, workload, counts)) for draw in flow.draws)
        flows.append(replace(flow, draws=draws, fan=flow.fan * asks))
    return replace(workload, keys=keys, flows=tuple(flows), rates=workload.rates.scaled(tuple(factors)))


def _more(draw: Draw, workload: Workload, counts: dict[int, int]) -> float:
    """Return how many times as many shards a draw asks that reads all of a key."""
    asks = any(arm.access == "read" and arm.spread == "point" for arm in draw.arms)
    now = workload.keys[draw.keys].shards
    return counts.get(draw.keys, now) / now if asks else 1.0


def _scattered(draw: Draw, more: float) -> Draw:
    if more == 1.0:
        return draw
    arms = tuple(replace(arm, units=max(min(arm.units, _LEAST_READ), arm.units / more)) for arm in draw.arms)
    return replace(draw, arms=arms)


@dataclass
class _Search:
    place: Workload
    physics: ServiceBehaviour
    seed: int
    told: Callable[[], None]
    _tried: dict[tuple[tuple[int, int], ...], float] = field(default_factory=dict)

    def found(self) -> tuple[ShardsNeeded, ...]:
        now = {
            draw.keys: self.place.keys[draw.keys].shards for flow in self.place.flows for draw in flow.draws
        }
        hot = self._hot(now)
        hopeless = [number for number in hot if self._reckoned(number, SHARDS_MOST) >= ENOUGH]
        told = [self._needed(number, now[number], None, 1.0) for number in hopeless]
        hot = [number for number in hot if number not in hopeless]
        if hopeless and hot:
            self.place = drop_key_sets(self.place, hopeless)
        if not hot:
            return tuple(told)
        counts = {number: self._guess(number, now[number], ENOUGH / len(hot)) for number in hot}
        short = {number: now[number] - 1 for number in hot}
        more = 1.02
        while self._share(counts) >= ENOUGH:
            if all(count >= SHARDS_MOST for count in counts.values()):
                return (*told, *(self._needed(each, now[each], None, self._share(counts)) for each in hot))
            if len(hot) == 1:  # of several, any may be the one that is short
                short = counts
            counts = {each: min(SHARDS_MOST, ceil(count * more)) for each, count in counts.items()}
            more = more * more
        for number in sorted(hot, key=lambda each: -counts[each]):
            counts[number] = self._least(number, short[number], counts)
        return (*told, *(self._needed(each, now[each], counts[each], self._share(counts)) for each in hot))

    def _go_on(self, done: int, of: int) -> None:
        self.told()

    def _least(self, number: int, short: int, counts: dict[int, int]) -> int:
        """Return the fewest shards of a key set that are enough beside the others, more than are known to be short."""
        enough, step = counts[number], 1
        while enough - short > 1:
            # Near the number first, since it was reckoned; then half way.
            tried = max(enough - step, (short + enough) // 2)
            if self._share({**counts, number: tried}) < ENOUGH:
                enough, step = tried, 2 * step
            else:
                short = tried
        return enough

    def _hot(self, now: dict[int, int]) -> list[int]:
        """Return the key sets that are refused once partitions have settled, or would be for want of a number."""
        run = Simulator(reshard(self.place, now), self.physics, self.seed)
        run.run(self._go_on, self._too_much(50 * ENOUGH))
        run.recorder.settle()
        self._tried[tuple(sorted(now.items()))] = self._refused(run.recorder)
        refused: dict[int, float] = {}
        for at, key in enumerate(run.recorder.watched):
            if key.meter == 1:
                refused[key.keys] = refused.get(key.keys, 0.0) + float(run.recorder.key_refused[at])
        whole = sum(refused.values())
        return [number for number, each in sorted(refused.items()) if whole > 0 and each > _FELT * whole]

    def _guess(self, number: int, now: int, bound: float) -> int:
        """Return the fewest shards of a key set with which buckets of its keys refuse no more than a bound."""
        low, high = now - 1, SHARDS_MOST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._reckoned(number, middle) >= bound else (low, middle)
        return high

    def _reckoned(self, number: int, shards: int) -> float:
        """Return the share of the place's writes that a key set has refused, each shard with a partition to itself."""
        counts = self.place.rates.block(0, self.place.rates.seconds)
        values = min(_VALUES, self.place.keys[number].told)
        units = np.zeros((counts.shape[1], values))
        one = replace(self.place.keys[number], shards=1)
        for flow, each in enumerate(self.place.flows):
            for draw in each.draws:
                if draw.keys != number:
                    continue
                amount = sum(arm.units for arm in draw.arms if meter_of(arm) == 1)
                if draw.rank is not None:
                    units[flow, min(draw.rank, values - 1)] += amount
                else:
                    units[flow] += amount * popularity(one, draw.skew, self.seed).shares[:values]
        asked = counts @ units / shards
        asked = asked[:, asked.max(axis=0) > PARTITION_WRITES_PER_S]
        level = np.full(asked.shape[1], float(PARTITION_WRITES_PER_S))
        refused = 0.0
        for now in asked:
            left = level + PARTITION_WRITES_PER_S - now
            refused -= float(np.minimum(left, 0.0).sum())
            level = np.clip(left, 0.0, PARTITION_WRITES_PER_S)
        return refused * shards / max(self._asked, 1e-9)

    def _share(self, counts: dict[int, int]) -> float:
        """Return the share that the place refuses with so many shards; seen no further than that it is too much."""
        place = tuple(sorted(counts.items()))
        if place not in self._tried:
            run = Simulator(reshard(self.place, counts), self.physics, self.seed)
            run.run(self._go_on, self._too_much(2 * ENOUGH))
            self._tried[place] = self._refused(run.recorder)
        return self._tried[place]

    @property
    def _asked(self) -> float:
        units = [
            sum(arm.units for draw in flow.draws for arm in draw.arms if meter_of(arm) == 1)
            for flow in self.place.flows
        ]
        rates = self.place.rates
        return float(rates.means() @ np.array(units)) * rates.seconds

    def _refused(self, recorder: Recorder) -> float:
        return float(recorder.refused_units[:, 1].sum()) / max(self._asked, 1e-9)

    def _too_much(self, share: float) -> Callable[[Recorder], bool]:
        most = share * self._asked
        return lambda recorder: float(recorder.refused_units[:, 1].sum()) > most

    def _needed(self, number: int, now: int, needed: int | None, share: float) -> ShardsNeeded:
        keys = self.place.keys[number]
        return ShardsNeeded(keys.name, now, needed, share, by_time=keys.by_time)


def drop_key_sets(workload: Workload, keys: list[int]) -> Workload:
    """Return a workload without what is asked of some key sets."""
    flows: list[RequestFlow] = []
    columns: list[int] = []
    for number, flow in enumerate(workload.flows):
        draws = tuple(draw for draw in flow.draws if draw.keys not in keys)
        if draws:
            flows.append(replace(flow, draws=draws))
            columns.append(number)
    counts = workload.rates.block(0, workload.rates.seconds)[:, columns]
    return replace(workload, flows=tuple(flows), rates=SteadyRates(counts))
