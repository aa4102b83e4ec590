"""Buckets: tokens that come at a rate and are kept for a while, as DynamoDB meters throughput.

A request is let in while there is anything in the bucket, and is then charged in full, so a large one
may leave a debt that time pays back. Over any length of time no more gets through than the rate and what
was saved allow.
"""

from __future__ import annotations


class TokenBucket:
    """Tokens at a rate, of which so many seconds' worth can be saved."""

    __slots__ = ("_at_s", "_kept_s", "level", "rate")

    def __init__(self, rate: float, kept_s: float, at_s: float, *, filled_s: float = 1.0) -> None:
        self.rate = rate
        self.level = rate * min(filled_s, kept_s)
        self._kept_s = kept_s
        self._at_s = at_s

    def level_at(self, now_s: float) -> float:
        """Return what is there now, below 0 where there is a debt."""
        passed = now_s - self._at_s
        if passed > 0:
            self.level = min(self.level + passed * self.rate, self.rate * self._kept_s)
        # A clock that goes back takes nothing away, and starts to count again from there.
        self._at_s = now_s
        return self.level

    def has_tokens(self, now_s: float) -> bool:
        """Tell whether a request is let in now."""
        return self.level_at(now_s) > 0

    def take(self, units: float) -> None:
        """Charge a request that was let in."""
        self.level -= units

    def set_rate(self, rate: float, now_s: float) -> None:
        """Take another rate from now on; what was saved stays, up to what the new rate may save."""
        if rate != self.rate:
            self.level_at(now_s)
            self.rate = rate
            self.level = min(self.level, rate * self._kept_s)
