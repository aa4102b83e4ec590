"""Similar tickets: embeddings of texts, and the vector index over them if the target supports one.

The built-in embedding needs no model: it hashes the words of a text to positions of a vector and normalises it, so that texts with
common words are near each other. A caller with a real model passes its own vectors of the same length.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import sqrt

from tavola import AccessDeniedFault, AsyncConnection, Fault, ResourceInUseFault
from tavola.apps.support_desk.errors import EmbeddingRefused, SimilarUnavailable
from tavola.apps.support_desk.model import Tickets

DIMENSIONS = 64
_WORDS = re.compile(r"[^\W_]{2,}")
_DIGITS = 4  # after the point; items store numbers as text
INDEX = "similar-tickets"
# 1.5 seconds in total; a large index takes longer to fill, and is not waited for
POLLS_MAX, POLL_S = (
    12,
    0.02,
)
_FILLING = "the vector index is being filled"
_HIT_FIELDS = ["ticket_id", "customer_id"]


@dataclass(frozen=True, slots=True)
class SimilarHit:
    """A hit of a vector search; a distance of 0 is the same direction, 2 the opposite."""

    ticket_id: str
    distance: float


class SimilarIndex:
    """The vector index of tickets; `reason` says why it is unavailable, None if it is available."""

    def __init__(self, db: AsyncConnection, dimensions: int) -> None:
        self.db = db
        self.dimensions = dimensions
        self.reason: str | None = "the vector index was not opened"

    @property
    def available(self) -> bool:
        """Whether it can be searched."""
        return self.reason is None

    async def open(self) -> None:
        """Create the index if it is missing, and wait briefly for it; a target without vector indexes is not an error."""
        try:
            if await self._state() is None and not await self._create():
                return
        except AccessDeniedFault:
            self.reason = "the credentials do not allow a vector index to be described or created"
            return
        for attempt in range(POLLS_MAX):
            if await self._state() == "ACTIVE":
                self.reason = None
                return
            await asyncio.sleep(POLL_S * (attempt + 1))
        self.reason = _FILLING

    async def _state(self) -> str | None:
        """Return the status of the index; None if there is none."""
        name = self.db.context.name_of(Tickets)
        table = (await self.db.call("DescribeTable", {"TableName": name}))["Table"]
        for index in table.get("VectorIndexes", ()):
            if index["IndexName"] == INDEX:
                filling = index.get("Backfilling", False)
                return "CREATING" if filling else str(index.get("IndexStatus", "ACTIVE"))
        return None

    async def _create(self) -> bool:
        """Request the index; return whether there will be one."""
        index = {
            "IndexName": INDEX,
            "VectorAttribute": {"AttributeName": "embedding"},
            "Dimensions": self.dimensions,
            "DistanceFunction": "COSINE",
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": _HIT_FIELDS},
        }
        request = {"TableName": self.db.context.name_of(Tickets), "VectorIndexUpdates": [{"Create": index}]}
        try:
            await self.db.call("UpdateTable", request)
        except ResourceInUseFault:
            return True  # another process is creating it
        except AccessDeniedFault:
            raise
        except Fault as fault:
            self.reason = f"the target has no vector indexes ({fault.code})"
            return False
        return True

    def check(self, embedding: tuple[float, ...]) -> None:
        """Raise `EmbeddingRefused` for an embedding that the index cannot hold; its write would fail."""
        if len(embedding) != self.dimensions:
            raise EmbeddingRefused(
                f"it has {len(embedding)} numbers, but the index requires {self.dimensions}"
            )
        if not all(-3e38 < number < 3e38 for number in embedding):
            raise EmbeddingRefused("a number does not fit into a 32-bit float")
        if not any(embedding):
            raise EmbeddingRefused("all its numbers are zero")

    async def nearest(self, embedding: tuple[float, ...], count: int) -> list[SimilarHit]:
        """Return the tickets nearest to an embedding, nearest first."""
        self.check(embedding)
        if self.reason is _FILLING and await self._state() == "ACTIVE":
            self.reason = None
        if self.reason is not None:
            raise SimilarUnavailable(self.reason)
        response = await self.db.call(
            "SearchVectors",
            {
                "TableName": self.db.context.name_of(Tickets),
                "IndexName": INDEX,
                "SearchVector": [{"N": repr(float(number))} for number in embedding],
                "TopK": count,
            },
        )
        return [
            SimilarHit(hit["Item"]["ticket_id"]["S"], float(hit["Score"]))
            for hit in response["SearchResults"]
        ]


def embed(text: str, dimensions: int = DIMENSIONS) -> tuple[float, ...]:
    """Return the embedding of a text; deterministic. Texts without words all have the same one."""
    sums = [0.0] * dimensions
    for word in _WORDS.findall(text.casefold()):
        for position, sign in _word_positions(word, dimensions):
            sums[position] += sign
    length = sqrt(sum(number * number for number in sums))
    if not length:
        return tuple([round(1 / sqrt(dimensions), _DIGITS)] * dimensions)
    return tuple(round(number / length, _DIGITS) for number in sums)


@lru_cache(maxsize=10_000)
def _word_positions(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    """Return two positions and signs of a word: two words that collide at one rarely do at both."""
    digest = blake2b(word.encode(), digest_size=8).digest()
    first, second = int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")
    return (
        (first % dimensions, 1.0 if first >> 31 else -1.0),
        (second % dimensions, 1.0 if second >> 31 else -1.0),
    )
