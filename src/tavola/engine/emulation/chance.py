"""Chance: what a seed and a place decide, the same whenever it is asked.

One sequence for each switch, so that turning on one hardship does not change what another does.
"""

from __future__ import annotations

from hashlib import blake2b

from tavola.entropy import SeededEntropy

_SPACE = 1 << 64


class SeededChance:
    """A repeatable sequence of shares, from a seed."""

    def __init__(self, seed: str) -> None:
        self._entropy = SeededEntropy(_number(seed.encode()))

    def share(self) -> float:
        """Return the next number from 0 up to but not including 1."""
        return int.from_bytes(self._entropy.bytes(7), "big") / (1 << 56)


def share_of(seed: str, key: bytes) -> float:
    """Return a number from 0 up to but not including 1 that a seed and a key always give."""
    return (_number(key, seed.encode()) >> 11) / (1 << 53)


def _number(data: bytes, key: bytes = b"") -> int:
    return int.from_bytes(blake2b(data, digest_size=8, key=key[:64]).digest(), "big") % _SPACE
