"""Entropy: the only reader of chance.

Ids and jitter come from an `Entropy`, so that a seeded one makes a run repeatable.
"""

from __future__ import annotations

import os
import random
import uuid
from typing import Protocol


class Entropy(Protocol):
    """Gives random bytes and what is made of them."""

    def bytes(self, count: int) -> bytes:
        """Return so many random bytes."""
        ...

    def uuid(self) -> str:
        """Return a version 4 UUID as text."""
        ...


class SystemEntropy:
    """The operating system's randomness."""

    def bytes(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        return os.urandom(count)

    def uuid(self) -> str:
        """Return a version 4 UUID as text."""
        return str(uuid.uuid4())


class SeededEntropy:
    """Repeatable randomness, for tests; never for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the seed's sequence."""
        return self._random.randbytes(count)

    def uuid(self) -> str:
        """Return the next version 4 UUID of the seed's sequence."""
        return str(uuid.UUID(bytes=self._random.randbytes(16), version=4))


SYSTEM_ENTROPY = SystemEntropy()
