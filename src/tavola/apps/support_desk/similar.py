"""SimilarIndex: the vector index over tickets' embeddings, where the target has such indexes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tavola import AccessDeniedFault, AsyncConnection, Fault, ResourceInUseFault
from tavola.apps.support_desk.errors import EmbeddingRefused, SimilarUnavailable
from tavola.apps.support_desk.model import Tickets

INDEX = "similar-tickets"
WAITS_MAX, WAIT_S = (
    12,
    0.02,
)  # a second and a half in all; filling an index of much takes longer, and is not waited for
_FILLING = "the vector index is being filled"
_HIT_FIELDS = ["ticket_id", "customer_id"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A ticket near the one that was asked with; 0 is the same direction, 2 the opposite."""

    ticket_id: str
    distance: float


class SimilarIndex:
    """The search for similar tickets; `reason` says why there is none, where there is none."""

    def __init__(self, db: AsyncConnection, dimensions: int) -> None:
        self.db = db
        self.dimensions = dimensions
        self.reason: str | None = "the vector index was not opened"

    @property
    def available(self) -> bool:
        """Whether it can be searched."""
        return self.reason is None

    async def open(self) -> None:
        """Make the index if it is missing, and wait a moment for it; a target that has no such indexes is no error."""
        try:
            if await self._state() is None and not await self._make():
                return
        except AccessDeniedFault:
            self.reason = "there is no vector index, or none that may be looked at, and none may be made"
            return
        for attempt in range(WAITS_MAX):
            if await self._state() == "ACTIVE":
                self.reason = None
                return
            await asyncio.sleep(WAIT_S * (attempt + 1))
        self.reason = _FILLING

    async def _state(self) -> str | None:
        """Return how the index stands, None where there is none."""
        name = self.db.context.name_of(Tickets)
        table = (await self.db.call("DescribeTable", {"TableName": name}))["Table"]
        for index in table.get("VectorIndexes", ()):
            if index["IndexName"] == INDEX:
                filling = index.get("Backfilling", False)
                return "CREATING" if filling else str(index.get("IndexStatus", "ACTIVE"))
        return None

    async def _make(self) -> bool:
        """Ask for the index; return whether there will be one."""
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
            return True  # another process makes it right now
        except AccessDeniedFault:
            raise
        except Fault as fault:
            self.reason = f"the target has no vector indexes ({fault.code})"
            return False
        return True

    def check(self, embedding: tuple[float, ...]) -> None:
        """Refuse an embedding that the index cannot hold; a write of one would fail as a whole."""
        if len(embedding) != self.dimensions:
            raise EmbeddingRefused(f"it has {len(embedding)} numbers, and the index wants {self.dimensions}")
        if not all(-3e38 < number < 3e38 for number in embedding):
            raise EmbeddingRefused("it has a number that 32 bits do not hold")
        if not any(embedding):
            raise EmbeddingRefused("it is all zeros, and so has no direction")

    async def nearest(self, embedding: tuple[float, ...], count: int) -> list[Hit]:
        """Return the tickets nearest to an embedding, nearest first."""
        self.check(embedding)
        if self.reason is _FILLING and await self._state() == "ACTIVE":
            self.reason = None
        if self.reason is not None:
            raise SimilarUnavailable(self.reason)
        answer = await self.db.call(
            "SearchVectors",
            {
                "TableName": self.db.context.name_of(Tickets),
                "IndexName": INDEX,
                "SearchVector": [{"N": repr(float(number))} for number in embedding],
                "TopK": count,
            },
        )
        return [Hit(hit["Item"]["ticket_id"]["S"], float(hit["Score"])) for hit in answer["SearchResults"]]
