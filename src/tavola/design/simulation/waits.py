"""Waits: how long requests take that are refused and tried again, by the patience of Tavola's own client.

Who is refused tries again after a pause of anything up to a growing bound. Of a limit that lets a share of all
requests through, trying again gets no more out: with so many attempts each, refusals become as frequent as it takes
for the same share to be given up. So if u is the share that cannot be served, an attempt of K is refused with
u^(1/K), and a request waits for its k-th retry with u^(k/K). What it waits is a sum of that many pauses, each anything
up to its bound. A limit that is met for less long than the pauses last is left behind by some who wait: of short
bursts fewer are given up than this says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tavola.client.retries import RetryPolicy
from tavola.design.simulation.keyspace import Floats

PATIENCE = RetryPolicy()
# The shares of refusal by which requests are counted: 0, and sixteen to each power of ten below 1.
NODES: Floats = np.concatenate(([0.0], np.logspace(-4, 0, 65)))
_QUANTILE = 0.99
_STEP_S = 0.0025
_ATTEMPTS = PATIENCE.attempts_max


def bin_by_node(shares: Floats, weights: Floats, rows: NDArray[np.intp], count: int) -> Floats:
    """Return weights counted by row and node: each share lies between two, so that its mean stays as it is."""
    at = np.clip(np.searchsorted(NODES, shares, side="right") - 1, 0, NODES.size - 2)
    upper = weights * (shares - NODES[at]) / (NODES[at + 1] - NODES[at])
    place = rows * NODES.size + at
    size = count * NODES.size
    found: Floats = np.bincount(place, weights=weights - upper, minlength=size).astype(np.float64)
    found += np.bincount(place + 1, weights=upper, minlength=size)
    return found.reshape(count, NODES.size)


@dataclass(frozen=True, slots=True)
class Waits:
    """What retries cost the requests of one pattern."""

    p99_s: float  # within which 99 of 100 are answered; what was given up has waited that long in vain
    given_up: float  # the share that no retry helped

    @staticmethod
    def of(refusals: Floats, fan: float = 1.0) -> Waits:
        """Return the waits of questions of `fan` requests at once, counted by the share of requests refused."""
        return Waits.after(((refusals, fan),))

    @staticmethod
    def after(parts: tuple[tuple[Floats, float], ...]) -> Waits:
        """Return the waits of questions whose parts follow one another, each of so many requests at once."""
        served, density = 1.0, None
        for refusals, fan in parts:
            total = float(refusals.sum())
            if total <= 0 or float(refusals[1:].sum()) <= 0:
                continue
            weights = refusals / total
            served *= float(weights @ (1.0 - NODES) ** fan)
            # Of requests at once, the slowest is waited for.
            below = weights @ _below() ** fan
            here = np.diff(below, prepend=0.0)
            density = here if density is None else np.convolve(density, here)
        if density is None:
            return Waits(0.0, 0.0)
        rising = np.cumsum(density)
        at = int(np.searchsorted(rising, _QUANTILE - 1e-12))
        if at == 0:
            return Waits(0.0, 1.0 - served)
        before = float(rising[at - 1])
        part = (_QUANTILE - before) / max(float(rising[at]) - before, 1e-12)
        return Waits((at - 1 + min(1.0, part)) * _STEP_S, 1.0 - served)


@cache
def _below() -> Floats:
    """Return for each node the share of requests that have waited at most so many steps."""
    sums = _sums()
    again = NODES ** (1 / _ATTEMPTS)  # how often an attempt is refused
    found = np.zeros((NODES.size, sums.shape[1]))
    for retries in range(_ATTEMPTS):
        share = again**retries * (1.0 - again if retries < _ATTEMPTS - 1 else 1.0)
        found += share[:, None] * sums[retries]
    return found


@cache
def _sums() -> Floats:
    """Return how likely the first 0, 1, 2 … pauses together last at most so many steps."""
    bounds = [_bound(retry) for retry in range(1, _ATTEMPTS)]
    steps = round(sum(bounds) / _STEP_S) + 1
    found = np.ones((_ATTEMPTS, steps))
    for retry, bound in enumerate(bounds, start=1):
        whole = round(bound / _STEP_S)
        # A pause is as likely in each step; the sum with it is a mean over the steps before.
        total = np.concatenate((np.zeros(1), np.cumsum((found[retry - 1] + _earlier(found[retry - 1])) / 2)))
        behind = np.concatenate((np.zeros(whole), total[1:]))[:steps]
        found[retry] = (total[1:] - behind) / whole
        found[retry] = np.minimum(1.0, found[retry])
    return found


def _earlier(values: Floats) -> Floats:
    return np.concatenate((np.zeros(1), values[:-1]))


def _bound(retry: int) -> float:
    return min(PATIENCE.cap_s, PATIENCE.base_s * (1 << min(retry, 20)))


def describe_retries() -> str:
    """Return the retry policy that waits are computed with, in words."""
    return (
        f"{_ATTEMPTS} attempts with pauses of up to {_bound(1) * 1000:.0f} ms, doubling up to "
        f"{_bound(_ATTEMPTS - 1):g} s, as Tavola's client has them"
    )
