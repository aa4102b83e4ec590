"""Embeddings: what a text is about, as a few numbers, without a model.

Words are hashed to places of a vector, and the vector is made one long. Texts that share words lie near each other, and that is all it
knows: a caller with a model of their own gives their own vectors of the same length.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from math import sqrt

DIMENSIONS = 64
_WORDS = re.compile(r"[^\W_]{2,}")
_DIGITS = 4  # of a number; an item holds them as text


def embed(text: str, dimensions: int = DIMENSIONS) -> tuple[float, ...]:
    """Return the embedding of a text, the same wherever and whenever; one without a word is all alike."""
    sums = [0.0] * dimensions
    for word in _WORDS.findall(text.casefold()):
        for place, sign in _places(word, dimensions):
            sums[place] += sign
    length = sqrt(sum(number * number for number in sums))
    if not length:
        return tuple([round(1 / sqrt(dimensions), _DIGITS)] * dimensions)
    return tuple(round(number / length, _DIGITS) for number in sums)


@lru_cache(maxsize=10_000)
def _places(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    """Return where a word stands, twice: two words that meet at one place seldom do at both."""
    digest = blake2b(word.encode(), digest_size=8).digest()
    first, second = int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")
    return (
        (first % dimensions, 1.0 if first >> 31 else -1.0),
        (second % dimensions, 1.0 if second >> 31 else -1.0),
    )
