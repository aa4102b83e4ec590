"""Scaler: auto scaling of provisioned units, as Application Auto Scaling tracks its target.

Out after two minutes above the target, to what the last minute would need; in after fifteen below nine tenths of it,
to what the busiest of them would need, and no more often than DynamoDB allows.
"""

from __future__ import annotations

import numpy as np

from tavola.design.simulation.keyspace import Floats
from tavola.design.simulation.partitions import PEAK_WINDOW_S, partitions_for
from tavola.design.simulation.workload import Workload

_OUT_AFTER = 2
_IN_AFTER = 15
_IN_SHARE = 0.9  # of the target, below which there is too much
_DECREASES = 4  # at once; one more every hour
_HOUR_S = 3600


class Scaler:
    """The units of every station that is scaled."""

    def __init__(self, workload: Workload) -> None:
        self._allowances = [station.allowance for station in workload.stations]
        self._least = np.array(
            [least for each in self._allowances for least in (each.reads_min, each.writes_min)]
        )
        most = [most for each in self._allowances for most in (each.reads_max, each.writes_max)]
        self._most = np.array([np.nan if each is None else each for each in most])
        self._targets = np.array([each.target for each in self._allowances for _ in (0, 1)])
        self._above = np.zeros(len(most), dtype=int)
        self._below = np.zeros(len(most), dtype=int)
        self._busiest = np.zeros(len(most))
        self._decreased: list[list[int]] = [[] for _ in most]
        self.scales = not bool(np.isnan(self._most).all()) if most else False

    def minute(self, used: Floats, rates: Floats, now_s: int) -> tuple[Floats, list[int]]:
        """Take the units used in a minute; return what each station has from now on, and partitions for it."""
        if not self.scales:
            return rates, [0] * len(self._allowances)
        mean = used / PEAK_WINDOW_S
        found = rates.copy()
        for at in np.flatnonzero(~np.isnan(self._most)):
            wanted = float(np.ceil(mean[at] / self._targets[at]))
            if mean[at] > rates[at] * self._targets[at]:
                self._above[at], self._below[at], self._busiest[at] = self._above[at] + 1, 0, 0.0
                if self._above[at] >= _OUT_AFTER:
                    # What was refused is not in the mean: at its limit, a station takes as much again as it has.
                    full = mean[at] >= 0.98 * rates[at]
                    found[at] = min(self._most[at], max(rates[at], 2 * rates[at] if full else wanted))
            elif mean[at] < rates[at] * self._targets[at] * _IN_SHARE:
                self._above[at], self._below[at] = 0, self._below[at] + 1
                self._busiest[at] = max(self._busiest[at], wanted)
                if self._below[at] >= _IN_AFTER and self._may_decrease(int(at), now_s):
                    found[at] = max(self._least[at], min(rates[at], self._busiest[at]))
                    if found[at] < rates[at]:
                        self._decreased[at].append(now_s)
                    self._below[at], self._busiest[at] = 0, 0.0
            else:
                self._above[at] = self._below[at] = 0
                self._busiest[at] = 0.0
        pairs = found.reshape(-1, 2)
        return found, [partitions_for(float(reads), float(writes)) for reads, writes in pairs]

    def _may_decrease(self, at: int, now_s: int) -> bool:
        return len(self._decreased[at]) < _DECREASES + now_s // _HOUR_S
