"""Rates and keys: what a day sums up to, and how a billion keys are told by four thousand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.design.simulation import Burst, SimulationError
from tavola.design.simulation.keyspace import KeySet, popularity
from tavola.design.simulation.rates import DAY_S, DailyRates, Rhythm


@settings(max_examples=10, deadline=None)
@given(mean=st.floats(0.5, 1e6), ratio=st.floats(1, 40))
def test_a_day_has_the_declared_mean_and_reaches_the_declared_peak(mean: float, ratio: float) -> None:
    """Over a day the mean is what was declared, and at the busiest hour the peak is."""
    rates = DailyRates((Rhythm(mean, mean * ratio),), DAY_S, seed=1, noise=False)
    day = rates.block(0, DAY_S)[:, 0]

    assert day.mean() == pytest.approx(mean, rel=1e-3)
    assert day.max() == pytest.approx(mean * ratio, rel=1e-3)
    assert int(day.argmax()) == pytest.approx(15 * 3600, abs=1800) or ratio < 1.01


def test_chance_keeps_the_mean_and_does_not_depend_on_how_it_is_asked() -> None:
    """Seconds scatter as Poisson's law has it, and few requests are whole ones."""
    rates = DailyRates((Rhythm(0.3, 0.3), Rhythm(50, 50), Rhythm(1e6, 1e6)), 3600, seed=3)
    found = rates.block(0, 3600)

    assert found.mean(axis=0) == pytest.approx([0.3, 50, 1e6], rel=0.1)
    assert found[:, 1].std() == pytest.approx(50**0.5, rel=0.1)
    assert set(np.unique(found[:, 0] % 1)) == {0.0}
    assert (found == rates.block(0, 3600)).all()


def test_bursts_multiply_for_as_long_as_they_last() -> None:
    """A burst of five times for a minute makes a minute of five times."""
    rates = DailyRates((Rhythm(10, 10),), 3600, seed=1, bursts=(Burst(5, 60),), noise=False)
    found = rates.block(0, 3600)[:, 0]

    assert (found == 50).sum() == 60
    assert (found == 10).sum() == 3540


def test_a_burst_that_cannot_be_is_refused() -> None:
    """A burst is at least the traffic itself."""
    with pytest.raises(SimulationError, match="burst"):
        Burst(0.5, 60)


@settings(max_examples=15, deadline=None)
@given(count=st.integers(1, 10**9), skew=st.floats(0, 3), shards=st.integers(1, 50), seed=st.integers(0, 9))
def test_all_requests_fall_somewhere(count: int, skew: float, shards: int, seed: int) -> None:
    """Shares of keys sum to one, rise along the range, and are the same however it is cut."""
    crowd = popularity(KeySet("k", count, shards), skew, seed)
    places = np.linspace(0, 1, 257)
    below = crowd.below(places)

    assert crowd.shares.sum() + crowd.rest == pytest.approx(1.0)
    assert below[0] == pytest.approx(0.0)
    assert below[-1] == pytest.approx(1.0)
    assert (np.diff(below) >= -1e-12).all()


def test_zipf_of_many_keys_is_what_the_sum_says() -> None:
    """The first of a million keys has its share of the whole sum, though only four thousand are told."""
    crowd = popularity(KeySet("k", 10**6), 0.9, 0)
    whole = (np.arange(1, 10**6 + 1) ** -0.9).sum()

    assert crowd.shares[0] == pytest.approx(1 / whole, rel=1e-4)
    assert crowd.rest == pytest.approx((np.arange(4097, 10**6 + 1) ** -0.9).sum() / whole, rel=1e-4)
