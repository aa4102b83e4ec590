"""Repeatable random numbers from a seed.

Each switch has its own sequence, so turning one on does not change the effects of another.
"""

from __future__ import annotations

from hashlib import blake2b

from tavola.entropy import SeededEntropy

_SPACE = 1 << 64


class SeededChance:
    """A repeatable sequence of numbers between 0 and 1."""

    def __init__(self, seed: str) -> None:
        self._entropy = SeededEntropy(_number(seed.encode()))

    def share(self) -> float:
        """Return the next number, at least 0 and less than 1."""
        return int.from_bytes(self._entropy.bytes(7), "big") / (1 << 56)


def share_of(seed: str, key: bytes) -> float:
    """Return a number, at least 0 and less than 1, that depends only on a seed and a key."""
    return (_number(key, seed.encode()) >> 11) / (1 << 53)


def _number(data: bytes, key: bytes = b"") -> int:
    return int.from_bytes(blake2b(data, digest_size=8, key=key[:64]).digest(), "big") % _SPACE
