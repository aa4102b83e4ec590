"""Rates: how often each flow is requested in each second of a run, made from a mean, a peak and a seed.

A day rises and falls once. A fifth of the mean is always there; the rest follows a bell curve around the busiest hour, the narrower
the higher the peak. Bursts multiply it at random times. The requests of a second then follow a Poisson distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lgamma, log

import numpy as np

from tavola.design.errors import SimulationError
from tavola.design.simulation.keyspace import Floats

DAY_S = 86_400
_BASE_SHARE = 0.2  # of the mean, at any hour
_SMOOTH = 1e4  # requests per second above which Poisson is replaced by a normal distribution


@dataclass(frozen=True, slots=True)
class Burst:
    """A multiple of the traffic for some seconds, `per_hour` times an hour on average."""

    factor: float
    seconds: float
    per_hour: float = 1.0

    def __post_init__(self) -> None:
        if not (1 <= self.factor <= 1e6 and 1 <= self.seconds <= DAY_S and 0 < self.per_hour <= 3600):
            raise SimulationError(
                f"invalid burst of {self.factor:g} times for {self.seconds:g} s, {self.per_hour:g} per hour; use a factor of 1 or "
                "more, 1 to 86400 seconds, and up to 3600 per hour"
            )


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A flow's mean and peak, in requests per second."""

    mean: float
    peak: float


@dataclass(frozen=True)
class DailyRates:
    """The rates of a workload made from access patterns."""

    rhythms: tuple[Rhythm, ...]
    seconds: int
    seed: int
    begins_at_s: float = 0.0  # of the day
    peak_at_s: float = 15 * 3600.0
    bursts: tuple[Burst, ...] = ()
    noise: bool = True
    _bells: tuple[float, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        bells = tuple(_bell(rhythm.peak / rhythm.mean if rhythm.mean else 1.0) for rhythm in self.rhythms)
        object.__setattr__(self, "_bells", bells)

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        times = np.arange(start, start + count, dtype=np.float64)
        expected = self._curve(times) * self._burst_factors(times)[:, None]
        if not self.noise:
            return expected
        random = np.random.default_rng([self.seed, 7, start])
        is_small = expected < _SMOOTH
        normal = np.maximum(0.0, expected + np.sqrt(expected) * random.standard_normal(expected.shape))
        return np.where(is_small, random.poisson(np.where(is_small, expected, 0.0)), normal)

    def means(self) -> Floats:
        """Return each flow's mean over the run."""
        times = np.arange(0, self.seconds, max(1.0, self.seconds / 2000))
        rates: Floats = self._curve(times).mean(axis=0)
        return rates

    def peaks(self) -> Floats:
        """Return each flow's rate at the busiest time of the run, bursts included."""
        times = np.arange(0, self.seconds, max(1.0, self.seconds / 2000))
        most = max((burst.factor for burst in self.bursts), default=1.0)
        rates: Floats = self._curve(times).max(axis=0) * most
        return rates

    def busiest(self, seconds: int) -> DailyRates:
        """Return the period around the busiest hour of the day."""
        if self.seconds <= seconds:
            return self
        return replace(self, seconds=seconds, begins_at_s=self.peak_at_s - seconds / 2)

    def scale(self, factors: tuple[float, ...]) -> DailyRates:
        """Return the same rates with each flow multiplied by its factor."""
        pairs = zip(self.rhythms, factors, strict=True)
        return replace(
            self,
            rhythms=tuple(Rhythm(rhythm.mean * factor, rhythm.peak * factor) for rhythm, factor in pairs),
        )

    def _curve(self, times: Floats) -> Floats:
        angle = (times + self.begins_at_s - self.peak_at_s) * (2 * np.pi / DAY_S)
        hill = (1 + np.cos(angle)) / 2
        columns = [np.full(times.size, rhythm.mean) for rhythm in self.rhythms]
        for position, (rhythm, bell) in enumerate(zip(self.rhythms, self._bells, strict=True)):
            if bell > 0:
                shape = hill**bell * np.exp(_log_height(bell))
                columns[position] = rhythm.mean * (_BASE_SHARE + (1 - _BASE_SHARE) * shape)
        return np.stack(columns, axis=1)

    def _burst_factors(self, times: Floats) -> Floats:
        factor = np.ones(times.size)
        for number, burst in enumerate(self.bursts):
            random = np.random.default_rng([self.seed, 11, number])
            hours = self.seconds / 3600
            count = max(1, round(burst.per_hour * hours))
            begins = np.sort(random.random(count)) * max(0.0, self.seconds - burst.seconds)
            after = times[:, None] - np.floor(begins)[None, :]
            within = ((after >= 0) & (after < burst.seconds)).any(axis=1)
            factor = np.where(within, factor * burst.factor, factor)
        return factor


def _log_height(bell: float) -> float:
    """Return the logarithm of the ratio between the top of ((1 + cos) / 2)^bell and its mean."""
    return 2 * lgamma(bell + 1) - lgamma(2 * bell + 1) + 2 * bell * log(2)


def _bell(ratio: float) -> float:
    """Return the power of the bell curve whose top, with the base share, is `ratio` times the mean."""
    height = (ratio - _BASE_SHARE) / (1 - _BASE_SHARE)
    if height <= 1 + 1e-9:
        return 0.0
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(_log_height(middle)) < height else (low, middle)
    return (low + high) / 2
