"""Waits: what retries cost, against a Monte Carlo of the same client, and against what was refused."""

from __future__ import annotations

import numpy as np
import pytest

from tavola.design.simulation.keyspace import Floats, KeySet
from tavola.design.simulation.rates import DailyRates, Rhythm
from tavola.design.simulation.waits import NODES, RETRY_POLICY, Waits, bin_by_node
from tavola.design.simulation.workload import Draw
from tests.design.simulation.load import ON_DEMAND, named, provisioned, share_of, simulated, write


def _counted(share: float) -> Floats:
    found: Floats = bin_by_node(np.array([share]), np.array([1.0]), np.array([0]), 1)[0]
    return found


def _drawn(share: float, fan: int, chance: np.random.Generator, count: int = 300_000) -> Floats:
    """Return the waits of questions whose requests are each refused so often that this share is given up."""
    attempts = RETRY_POLICY.attempts_max
    bounds = np.array(
        [min(RETRY_POLICY.cap_s, RETRY_POLICY.base_s * (1 << each)) for each in range(1, attempts)]
    )
    slowest = np.zeros(count)
    for _ in range(fan):
        refused = np.cumprod(chance.random((count, attempts - 1)) < share ** (1 / attempts), axis=1)
        slowest = np.maximum(slowest, (refused * chance.random(refused.shape) * bounds).sum(axis=1))
    return slowest


@pytest.mark.parametrize("share", [0.0005, 0.05, 0.48])
@pytest.mark.parametrize("fan", [1, 4])
def test_p99_is_the_99th_percentile_of_the_waits_that_it_models(share: float, fan: int) -> None:
    """Of many clients with that patience, 99 of 100 have waited no longer, of several requests for the slowest."""
    waits = Waits.of(_counted(share), fan)
    truth = float(np.quantile(_drawn(share, fan, np.random.default_rng(3)), 0.99))

    assert waits.p99_s == pytest.approx(truth, rel=0.03)
    assert waits.given_up == pytest.approx(1 - (1 - share) ** fan, rel=0.01)


def test_parts_that_follow_one_another_wait_for_one_another() -> None:
    """A question of two parts waits for the first and then for the second."""
    chance = np.random.default_rng(5)
    truth = float(np.quantile(_drawn(0.2, 1, chance) + _drawn(0.05, 3, chance), 0.99))
    waits = Waits.of_sequence(((_counted(0.2), 1.0), (_counted(0.05), 3.0)))

    assert waits.p99_s == pytest.approx(truth, rel=0.03)


def test_what_is_never_refused_never_waits() -> None:
    """Without a refusal there is no wait and nothing given up."""
    assert Waits.of(_counted(0.0)) == Waits(0.0, 0.0)


class Bursts:
    """Three seconds of twice what a partition can do, and seventeen of half of it."""

    seconds = 120

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of some seconds."""
        return np.array([[2_000.0 if at % 20 < 3 else 500.0] for at in range(start, start + count)])

    def means(self) -> Floats:
        """Return the mean."""
        found: Floats = self.block(0, self.seconds).mean(axis=0)
        return found

    def peaks(self) -> Floats:
        """Return the peak."""
        return np.array([2_000.0])


def test_bursts_shorter_than_a_stretch_are_waited_for() -> None:
    """Whatever the last second of ten does, what was refused in the others is refused and waits."""
    run = simulated(
        120, 0, (named("k", ["one"]),), (Draw(0, 0.0, (write(0, 1),)),), (ON_DEMAND,), rates=Bursts()
    )
    waits = Waits.of(run.recorder.refusals.sum(axis=0))

    assert share_of(run) > 0.05
    assert waits.given_up == pytest.approx(share_of(run), rel=1e-6)
    assert waits.p99_s > 3


@pytest.mark.parametrize("over", [1.002, 1.005, 1.02, 1.5])
def test_refusals_by_share_add_up_to_what_was_refused(over: float) -> None:
    """Counted by how likely each was to be refused, requests give the share that was, however small it is."""
    rates = DailyRates((Rhythm(1_000 * over, 1_000 * over),), 600, seed=1, noise=False)
    draws = (Draw(0, 0.0, (write(0, 1),)),)
    run = simulated(
        600, 0, (KeySet("k", 10**7),), draws, (provisioned(1_000, 1_000),), rates=rates, burst_s=1.0
    )
    refusals = run.recorder.refusals

    assert refusals.sum() == pytest.approx(run.recorder.requests.sum())
    assert refusals @ NODES == pytest.approx(run.recorder.refused.sum(axis=0), rel=1e-6, abs=1e-6)
