"""Demo data: reproducible random choices, and a fast writer for an empty table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import log
from typing import TypeVar

from tavola import AsyncConnection, Entity, Entropy, Table, to_item
from tavola.apps.errors import ApplicationError
from tavola.errors import ErrorKind

BATCH_ITEMS = 25  # the limit of BatchWriteItem
ATTEMPTS_MAX = 8

T = TypeVar("T")


@dataclass(eq=False)
class SeedUnfinished(ApplicationError):
    """The table did not accept some items, even after retries."""

    kind = ErrorKind.THROTTLED
    message = "{left} demo items were not written because the table is throttled; try again later"

    left: int


class RandomChoices:
    """Random choices drawn from an `Entropy`: the same entropy gives the same choices."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._pool = b""
        self._position = 0

    def bytes(self, count: int) -> bytes:
        """Return random bytes."""
        if self._position + count > len(self._pool):
            self._pool, self._position = self._entropy.bytes(8_192), 0
        self._position += count
        return self._pool[self._position - count : self._position]

    def fraction(self) -> float:
        """Return a number from 0 up to but not including 1."""
        return int.from_bytes(self.bytes(6), "big") / 2**48

    def below(self, bound: int) -> int:
        """Return a number from 0 up to but not including `bound`."""
        return int.from_bytes(self.bytes(6), "big") * bound >> 48

    def chance(self, percent: int) -> bool:
        """Return True with a probability of `percent`."""
        return self.below(100) < percent

    def choose(self, options: Sequence[T]) -> T:
        """Return a random option."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> tuple[T, ...]:
        """Return up to `count` different options, in their original order."""
        left = list(range(len(options)))
        positions = sorted(left.pop(self.below(len(left))) for _ in range(min(count, len(left))))
        return tuple(options[position] for position in positions)

    def duration(self, mean: timedelta) -> timedelta:
        """Return an exponentially distributed duration: mostly shorter than `mean`, sometimes much longer."""
        return mean * -log(1 - self.fraction())


async def write_entities(db: AsyncConnection, table: type[Table], entities: Iterable[Entity]) -> None:
    """Write entities into an empty table in concurrent batches; retry what a batch leaves unprocessed.

    Batches have no conditions, so locks and immutability are not checked: the table must not contain these keys yet.
    """
    name = db.context.name_of(table)
    requests = [{"PutRequest": {"Item": to_item(entity)}} for entity in entities]
    for attempt in range(1, ATTEMPTS_MAX + 1):
        responses = await asyncio.gather(
            *(
                db.call("BatchWriteItem", {"RequestItems": {name: requests[start : start + BATCH_ITEMS]}})
                for start in range(0, len(requests), BATCH_ITEMS)
            )
        )
        requests = [
            request
            for response in responses
            for request in response.get("UnprocessedItems", {}).get(name, ())
        ]
        if not requests:
            return
        await asyncio.sleep(db.context.retry_policy.pause_s(attempt))
    raise SeedUnfinished(len(requests))
