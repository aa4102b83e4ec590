"""Waits: how long requests take that are refused and retried, with the retry policy of Tavola's client.

A refused request is retried after a random pause of up to a growing bound. A limit that admits a share of all requests admits no
more because of retries: refusals become as frequent as it takes for the same share to be given up in the end. So if u is the
share that cannot be served and a request has K attempts,

    an attempt is refused with probability        u^(1/K)
    a request waits for its k-th retry with       u^(k/K)

and what it waits is the sum of that many pauses. Given up: a burst that is shorter than the pauses is over before some retries
arrive, so of short bursts fewer requests are given up than computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tavola.client.retries import RetryPolicy
from tavola.design.simulation.keyspace import Floats

RETRY_POLICY = RetryPolicy()
# The probabilities of refusal by which requests are counted: 0, and sixteen per power of ten from 0.0001 to 1.
NODES: Floats = np.concatenate(([0.0], np.logspace(-4, 0, 65)))
_QUANTILE = 0.99
_STEP_S = 0.0025
_ATTEMPTS = RETRY_POLICY.attempts_max


def bin_by_node(shares: Floats, weights: Floats, rows: NDArray[np.intp], count: int) -> Floats:
    """Return weights summed by row and node; each is divided between the two nearest nodes, which keeps the mean."""
    at = np.clip(np.searchsorted(NODES, shares, side="right") - 1, 0, NODES.size - 2)
    upper = weights * (shares - NODES[at]) / (NODES[at + 1] - NODES[at])
    place = rows * NODES.size + at
    size = count * NODES.size
    sums: Floats = np.bincount(place, weights=weights - upper, minlength=size).astype(np.float64)
    sums += np.bincount(place + 1, weights=upper, minlength=size)
    return sums.reshape(count, NODES.size)


@dataclass(frozen=True, slots=True)
class Waits:
    """What retries cost the requests of one pattern."""

    p99_s: float  # 99th percentile, including requests that were given up
    given_up: float  # share of requests that failed after all attempts

    @staticmethod
    def of(refusals: Floats, fan: float = 1.0) -> Waits:
        """Return the waits of calls with `fan` parallel requests, counted by probability of refusal."""
        return Waits.of_sequence(((refusals, fan),))

    @staticmethod
    def of_sequence(parts: tuple[tuple[Floats, float], ...]) -> Waits:
        """Return the waits of calls whose parts follow one another, each with its number of parallel requests."""
        served, density = 1.0, None
        for refusals, fan in parts:
            total = float(refusals.sum())
            if total <= 0 or float(refusals[1:].sum()) <= 0:
                continue
            weights = refusals / total
            served *= float(weights @ (1.0 - NODES) ** fan)
            # Parallel requests end with the slowest.
            below = weights @ _wait_distributions() ** fan
            part_density = np.diff(below, prepend=0.0)
            density = part_density if density is None else np.convolve(density, part_density)
        if density is None:
            return Waits(0.0, 0.0)
        cumulative = np.cumsum(density)
        at = int(np.searchsorted(cumulative, _QUANTILE - 1e-12))
        if at == 0:
            return Waits(0.0, 1.0 - served)
        before = float(cumulative[at - 1])
        fraction = (_QUANTILE - before) / max(float(cumulative[at]) - before, 1e-12)
        return Waits((at - 1 + min(1.0, fraction)) * _STEP_S, 1.0 - served)


@cache
def _wait_distributions() -> Floats:
    """Return for each node the share of requests that wait at most a number of steps."""
    pauses = _pause_distributions()
    refusal = NODES ** (1 / _ATTEMPTS)  # probability that one attempt is refused
    shares = np.zeros((NODES.size, pauses.shape[1]))
    for retries in range(_ATTEMPTS):
        share = refusal**retries * (1.0 - refusal if retries < _ATTEMPTS - 1 else 1.0)
        shares += share[:, None] * pauses[retries]
    return shares


@cache
def _pause_distributions() -> Floats:
    """Return the probability that the first 0, 1, 2 … pauses together last at most a number of steps."""
    bounds = [_pause_max_s(retry) for retry in range(1, _ATTEMPTS)]
    steps = round(sum(bounds) / _STEP_S) + 1
    distributions = np.ones((_ATTEMPTS, steps))
    for retry, bound in enumerate(bounds, start=1):
        whole = round(bound / _STEP_S)
        # A pause is uniformly distributed, so the sum with it is a moving average of the sum before.
        last = distributions[retry - 1]
        one_step_before = np.concatenate((np.zeros(1), last[:-1]))
        total = np.concatenate((np.zeros(1), np.cumsum((last + one_step_before) / 2)))
        behind = np.concatenate((np.zeros(whole), total[1:]))[:steps]
        distributions[retry] = (total[1:] - behind) / whole
        distributions[retry] = np.minimum(1.0, distributions[retry])
    return distributions


def _pause_max_s(retry: int) -> float:
    return min(RETRY_POLICY.cap_s, RETRY_POLICY.base_s * (1 << min(retry, 20)))


def describe_retries() -> str:
    """Return the retry policy that waits are computed with, in words."""
    return (
        f"{_ATTEMPTS} attempts with exponential backoff from {_pause_max_s(1) * 1000:.0f} ms to "
        f"{_pause_max_s(_ATTEMPTS - 1):g} s, as in Tavola's client"
    )
