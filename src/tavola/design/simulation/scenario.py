"""Scenario: length, traffic and capacity of a simulation, and assumptions for values that a design does not declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.design.errors import SimulationError
from tavola.design.simulation.rates import DAY_S, Burst
from tavola.limits import TABLE_CAPACITY_UNITS_MAX

Mode = Literal["declared", "on-demand", "provisioned"]

_HOURS_MAX = 24 * 31


@dataclass(frozen=True, slots=True)
class Scenario:
    """A period of time, its traffic, and the capacity for it."""

    hours: float = 24.0
    seed: int = 0
    rate_factor: float = 1.0  # multiplies every declared rate
    skew: float = 0.8  # Zipf exponent of patterns that declare no skew
    peak: float = 2.0  # times the mean, for patterns that declare no peak
    bursts: tuple[Burst, ...] = ()
    mode: Mode = "declared"
    read_units: float | None = (
        None  # provisioned, for every table and index; None: sized for 70 % utilization at the peak
    )
    write_units: float | None = None
    quota: float = TABLE_CAPACITY_UNITS_MAX  # the account's on-demand limit per table
    warm: bool = False  # start with partitions split as after days of this load, and with full burst capacity
    settled: bool = (
        False  # start with partitions split as after one day of this load, and without burst capacity
    )
    split_after_s: float = 300.0
    peak_hour: float = 15.0  # of the day
    keys_unknown: int = 1_000  # assumed values of a partition key with an unknown number
    items_unknown: int = 100_000  # assumed values of a partition key that identifies an item
    shards: bool = True  # whether to find how many shards hot keys need

    def __post_init__(self) -> None:
        for name, value, low, high in (
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
                raise SimulationError(
                    f"{name} must be between {_format_bound(low)} and {_format_bound(high)}, not {value:g}"
                )

    @property
    def seconds(self) -> int:
        """The length, in whole windows of ten seconds."""
        return max(10, round(self.hours * 360) * 10)

    @property
    def begins_at_s(self) -> float:
        """The start as seconds of the day: midnight, or for less than a day, so that the peak hour is in the middle."""
        if self.seconds >= DAY_S:
            return 0.0
        return (self.peak_hour * 3600 - self.seconds / 2) % DAY_S


def _format_bound(value: float) -> str:
    return f"{value:,.6g}" if value < 1e6 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
