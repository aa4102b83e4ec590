"""Buckets: what gets through over time is the rate and what was saved, and no more."""

from __future__ import annotations

import random

from tavola.engine.emulation.partitions import TokenBucket


def test_unused_capacity_is_kept_for_300_seconds_and_no_longer() -> None:
    """After a long rest a bucket holds 300 seconds' worth; after a short one what came in it."""
    bucket = TokenBucket(10.0, 300.0, 0.0, filled_s=0.0)

    assert bucket.level_at(5.0) == 50.0
    assert bucket.level_at(10_000.0) == 3000.0


def test_a_large_request_leaves_a_debt_that_time_pays_back() -> None:
    """A request is let in while anything is left, charged in full, and the next waits until it is paid."""
    bucket = TokenBucket(10.0, 300.0, 0.0)
    assert bucket.has_tokens(0.0)
    bucket.take(110.0)

    assert not bucket.has_tokens(9.9)
    assert bucket.has_tokens(10.1)


def test_no_more_gets_through_than_rate_and_savings() -> None:
    """Whatever is asked and when, what was taken up to any moment is at most rate x time + start + one request."""
    chance = random.Random(5)
    for _ in range(50):
        rate, now, taken = chance.uniform(1, 100), 0.0, 0.0
        bucket = TokenBucket(rate, 300.0, now)
        for _ in range(300):
            now += chance.expovariate(20)
            units = chance.uniform(0.5, 50)
            if bucket.has_tokens(now):
                bucket.take(units)
                taken += units
            assert taken <= rate * now + rate + 50


def test_a_clock_that_goes_back_neither_gives_nor_takes() -> None:
    """A step back of the clock changes nothing, and tokens come again from there on."""
    bucket = TokenBucket(10.0, 300.0, 100.0, filled_s=0.0)
    before = bucket.level_at(101.0)

    assert bucket.level_at(50.0) == before
    assert bucket.level_at(51.0) == before + 10.0


def test_another_rate_counts_from_now_on() -> None:
    """What was saved stays when the rate changes, up to what the new rate may save."""
    bucket = TokenBucket(10.0, 300.0, 0.0)
    bucket.set_rate(100.0, 10.0)

    assert bucket.level_at(10.0) == 110.0
    assert bucket.level_at(11.0) == 210.0
    bucket.set_rate(0.1, 11.0)
    assert bucket.level_at(11.0) == 30.0
