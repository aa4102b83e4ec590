"""Scenario: under which circumstances a design is simulated, and what is assumed where it says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.design.simulation.errors import SimulationRefused
from tavola.design.simulation.rates import DAY_S, Burst
from tavola.limits import TABLE_CAPACITY_UNITS_MAX

Mode = Literal["declared", "on-demand", "provisioned"]

_HOURS_MAX = 24 * 31


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stretch of time, its traffic, and the capacity to bear it."""

    hours: float = 24.0
    seed: int = 0
    rate_factor: float = 1.0  # of every declared rate
    skew: float = 0.8  # Zipf's exponent, of patterns that say none
    peak: float = 2.0  # times the mean, of patterns that say no peak
    bursts: tuple[Burst, ...] = ()
    mode: Mode = "declared"
    read_units: float | None = None  # provisioned, for every table and index; None: for the peak, at 70 %
    write_units: float | None = None
    quota: float = TABLE_CAPACITY_UNITS_MAX  # units that the account lets a table have on demand
    warm: bool = False  # partitions as they are after days of this load, and burst saved
    settled: bool = False  # partitions as the day before has left them, and no burst saved
    split_after_s: float = 300.0
    peak_hour: float = 15.0  # of the day
    keys_unknown: int = 1_000  # values of a partition key that nobody counted
    items_unknown: int = 100_000  # and of one that names a single item
    shards: bool = True  # whether to find how many shards hot keys need

    def __post_init__(self) -> None:
        for word, value, low, high in (
            ("hours", self.hours, 0.003, _HOURS_MAX),
            ("rate factor", self.rate_factor, 1e-9, 1e9),
            ("skew", self.skew, 0.0, 10.0),
            ("peak", self.peak, 1.0, 1e4),
            ("quota", self.quota, 1.0, 1e12),
            ("read units", self.read_units, 1.0, 1e12),
            ("write units", self.write_units, 1.0, 1e12),
            ("seconds before a split", self.split_after_s, 10.0, DAY_S),
            ("peak hour", self.peak_hour, 0.0, 24.0),
            ("keys unknown", self.keys_unknown, 1, 10**12),
            ("items unknown", self.items_unknown, 1, 10**12),
            ("seed", self.seed, 0, 2**63),
        ):
            if value is not None and not low <= value <= high:
                raise SimulationRefused(f"{word} is {value:g}; give {_told(low)} to {_told(high)}")

    @property
    def seconds(self) -> int:
        """How long it goes, in whole stretches of ten seconds."""
        return max(10, round(self.hours * 360) * 10)

    @property
    def begins_at_s(self) -> float:
        """The time of day it begins at: midnight, or of less than a day so that the busiest hour is in the middle."""
        if self.seconds >= DAY_S:
            return 0.0
        return (self.peak_hour * 3600 - self.seconds / 2) % DAY_S


def _told(value: float) -> str:
    return f"{value:,.6g}" if value < 1e6 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
