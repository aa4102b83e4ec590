"""Latency: how long calls took, counted in buckets that are each 4 % wider than the last.

A duration read back is the middle of its bucket, so it is within 2 % of what it was, from a microsecond to minutes;
counts of two spans of time add up to the counts of both, which percentiles themselves do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

GROWTH = 1.04
LEAST_S = 1e-6
BUCKETS_MAX = 512  # the last holds whatever took longer than nine minutes
QUANTILES = (0.5, 0.9, 0.99, 0.999)

_PER_LOG = 1 / math.log(GROWTH)
_log = math.log

Counts = dict[int, int]


def bucket_of(took_s: float) -> int:
    """Return the bucket that a duration falls into."""
    if took_s <= LEAST_S:
        return 0
    return min(BUCKETS_MAX, 1 + int(_log(took_s / LEAST_S) * _PER_LOG))


def duration_of(bucket: int) -> float:
    """Return the duration in seconds that a bucket stands for."""
    return LEAST_S if bucket == 0 else LEAST_S * math.pow(GROWTH, bucket - 0.5)


def quantiles(
    counts: Mapping[int, int], slowest_s: float = math.inf, wanted: Iterable[float] = QUANTILES
) -> tuple[float, ...] | None:
    """Return the durations in seconds that such shares of the calls did not exceed; None of no call.

    None is longer than the slowest, which is known exactly and may lie below the middle of its bucket.
    """
    total = sum(counts.values())
    if not total:
        return None
    ordered = sorted(counts.items())
    found = []
    for share in wanted:
        rank, passed = math.ceil(share * total), 0
        for bucket, count in ordered:
            passed += count
            if passed >= rank:
                found.append(min(slowest_s, duration_of(bucket)))
                break
    return tuple(found)
