"""Rates: how often each flow is asked in each second of a run, made from a mean, a peak and a seed.

A day rises and falls once: a share of the traffic is always there, the rest stands in a bell around the busiest
hour, as narrow as the peak is high. Bursts multiply it for a while, at times that the seed decides. What is left is
chance: the requests of a second are as many as Poisson's law gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lgamma, log

import numpy as np

from tavola.design.simulation.errors import SimulationRefused
from tavola.design.simulation.keyspace import Floats

DAY_S = 86_400
_ALWAYS = 0.2  # of the mean, at any hour
_SMOOTH = 1e4  # requests in a second past which a normal deviate is as good


@dataclass(frozen=True, slots=True)
class Burst:
    """So many times the traffic, for so long, so often an hour on average."""

    factor: float
    seconds: float
    per_hour: float = 1.0

    def __post_init__(self) -> None:
        if not (1 <= self.factor <= 1e6 and 1 <= self.seconds <= DAY_S and 0 < self.per_hour <= 3600):
            raise SimulationRefused(
                f"a burst of {self.factor:g} times for {self.seconds:g} s, {self.per_hour:g} an hour, cannot be; give "
                "a factor from 1 on, 1 to 86400 seconds, and up to 3600 an hour"
            )


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A flow's mean and peak, in requests a second."""

    mean: float
    peak: float


@dataclass(frozen=True)
class DailyRates:
    """The rates of a workload that was made from access patterns."""

    rhythms: tuple[Rhythm, ...]
    seconds: int
    seed: int
    begins_at_s: float = 0.0  # of the day
    peak_at_s: float = 15 * 3600.0
    bursts: tuple[Burst, ...] = ()
    noise: bool = True
    _bells: tuple[float, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        bells = tuple(_bell(each.peak / each.mean if each.mean else 1.0) for each in self.rhythms)
        object.__setattr__(self, "_bells", bells)

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        times = np.arange(start, start + count, dtype=np.float64)
        expected = self._curve(times) * self._bursting(times)[:, None]
        if not self.noise:
            return expected
        chance = np.random.default_rng([self.seed, 7, start])
        few = expected < _SMOOTH
        found = np.maximum(0.0, expected + np.sqrt(expected) * chance.standard_normal(expected.shape))
        return np.where(few, chance.poisson(np.where(few, expected, 0.0)), found)

    def means(self) -> Floats:
        """Return each flow's mean over the time of the run."""
        times = np.arange(0, self.seconds, max(1.0, self.seconds / 2000))
        found: Floats = self._curve(times).mean(axis=0)
        return found

    def peaks(self) -> Floats:
        """Return each flow's rate at the busiest time of the run, bursts included."""
        times = np.arange(0, self.seconds, max(1.0, self.seconds / 2000))
        most = max((each.factor for each in self.bursts), default=1.0)
        found: Floats = self._curve(times).max(axis=0) * most
        return found

    def busiest(self, seconds: int) -> DailyRates:
        """Return the stretch around the busiest hour of the day."""
        if self.seconds <= seconds:
            return self
        return replace(self, seconds=seconds, begins_at_s=self.peak_at_s - seconds / 2)

    def scaled(self, factors: tuple[float, ...]) -> DailyRates:
        """Return the same with each flow so many times as often."""
        told = zip(self.rhythms, factors, strict=True)
        return replace(self, rhythms=tuple(Rhythm(each.mean * by, each.peak * by) for each, by in told))

    def _curve(self, times: Floats) -> Floats:
        angle = (times + self.begins_at_s - self.peak_at_s) * (2 * np.pi / DAY_S)
        hill = (1 + np.cos(angle)) / 2
        columns = [np.full(times.size, each.mean) for each in self.rhythms]
        for at, (rhythm, bell) in enumerate(zip(self.rhythms, self._bells, strict=True)):
            if bell > 0:
                shape = hill**bell * np.exp(_log_height(bell))
                columns[at] = rhythm.mean * (_ALWAYS + (1 - _ALWAYS) * shape)
        return np.stack(columns, axis=1)

    def _bursting(self, times: Floats) -> Floats:
        factor = np.ones(times.size)
        for number, burst in enumerate(self.bursts):
            chance = np.random.default_rng([self.seed, 11, number])
            hours = self.seconds / 3600
            count = max(1, round(burst.per_hour * hours))
            begins = np.sort(chance.random(count)) * max(0.0, self.seconds - burst.seconds)
            after = times[:, None] - np.floor(begins)[None, :]
            within = ((after >= 0) & (after < burst.seconds)).any(axis=1)
            factor = np.where(within, factor * burst.factor, factor)
        return factor


def _log_height(bell: float) -> float:
    """Return the logarithm of how far the top of ((1 + cos) / 2)^bell stands above its mean."""
    return 2 * lgamma(bell + 1) - lgamma(2 * bell + 1) + 2 * bell * log(2)


def _bell(ratio: float) -> float:
    """Return the power of the bell whose top is so many times the mean, the steady share counted."""
    wanted = (ratio - _ALWAYS) / (1 - _ALWAYS)
    if wanted <= 1 + 1e-9:
        return 0.0
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(_log_height(middle)) < wanted else (low, middle)
    return (low + high) / 2
