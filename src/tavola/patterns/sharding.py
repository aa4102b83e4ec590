"""Write sharding: choose a number of shards, measure how evenly they are used, and change the number while live.

A partition takes 1,000 write units per second. A key declared with `shards=8` is spread over eight partitions: the client
writes to one of them, and a query reads all, merges the results in order and pages with one cursor. This module helps with the decisions.

    shards_for(writes_per_second=5_000, item_bytes=600).count
    ShardBalance(db).of(Ticket.ByStatus(status="open")).ratio
    shard_change(8, 16).steps
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from tavola.client.stored import count_stored
from tavola.limits import PARTITION_WRITES_PER_S, WRITE_UNIT_BYTES
from tavola.model import ModelError, Selection, Shards, request_of
from tavola.patterns.recipe import D_co, PatternProgram, Recipe, RecipeRefused, call_client, recipe_method

# Fraction of a partition's throughput to plan with; the rest is for peaks and uneven shards.
HEADROOM = 0.5


@dataclass(frozen=True, slots=True)
class ShardAdvice:
    """How many shards a key should have, and why."""

    count: int
    write_units_per_second: float  # of all shards together
    per_shard: float  # of each shard, if they are even
    reads_per_query: int  # minimum number of requests per query
    why: str


def shards_for(
    writes_per_second: float,
    item_bytes: int,
    *,
    headroom: float = HEADROOM,
    key_changes: bool = False,
) -> ShardAdvice:
    """Return the number of shards for a peak write rate, with items of this size in the index.

    With `key_changes`, each write moves an item within the index, which costs a delete and a put. The number is as small as
    possible: each shard adds a request to every query.
    """
    if writes_per_second < 0 or item_bytes < 0 or not 0 < headroom <= 1:
        raise RecipeRefused(
            "shards_for", "rates and sizes must be 0 or more, and the headroom above 0 and at most 1"
        )
    units = writes_per_second * max(1, ceil(item_bytes / WRITE_UNIT_BYTES)) * (2 if key_changes else 1)
    count = max(1, ceil(units / (PARTITION_WRITES_PER_S * headroom)))
    why = (
        f"{units:,.0f} write units a second over {count} of {PARTITION_WRITES_PER_S:,} each, of which "
        f"{headroom:.0%} is planned with"
    )
    return ShardAdvice(count, units, units / count, count, why)


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The steps from one number of shards to another."""

    during: Shards  # to declare in every program first
    after: Shards  # to declare in the end
    rewrite: bool  # whether items must be rewritten in between
    steps: tuple[str, ...]


def shard_change(before: int | Shards, after: int | Shards, *, table_key: bool = False) -> ShardPlan:
    """Return how to change the number of shards of an index key while the application runs.

    Meanwhile a query reads as many shards as the larger number, so it finds items written with either. The shard in a table's
    own key (`table_key`) cannot change in place, because items are found by it.
    """
    old = Shards(before) if isinstance(before, int) else before
    new = Shards(after) if isinstance(after, int) else after
    if "time" in (old.by, new.by) and (old.by, old.bucket) != (new.by, new.bucket):
        raise ModelError(
            "shard_change", "shards by time are part of the template; create a new index and backfill it"
        )
    if table_key:
        raise ModelError(
            "shard_change",
            "the shard is part of the table's key, by which an item is found; write new items under a new template "
            "and move the old ones, or shard an index instead",
        )
    final = replace(new, reading=None)
    if old.by == "time":
        return ShardPlan(final, final, False, ("Nothing changes: a stretch of time is its own shard.",))
    if new.count >= old.reads:
        during = replace(old, reading=new.count)
        last_step = (
            f"Declare shards={_shards_text(final)}. Old items stay in the first {old.count} until they are written, and are found "
            "there; a backfill spreads them."
        )
        return ShardPlan(during, final, False, (_everywhere(during), last_step))
    during = replace(new, reading=old.reads)
    return ShardPlan(
        during, final, True,
        (
            _everywhere(during),
            "Run db.backfill of the table, so that every item is in a shard that is written now.",
            f"Declare shards={_shards_text(final)}.",
        ),
    )  # fmt: skip


def _everywhere(shards: Shards) -> str:
    return (
        f"Declare shards={_shards_text(shards)} in every program, which writes to {shards.count} and reads {shards.reads}, and wait "
        "until none of the older ones runs: these would not look where others write."
    )


def _shards_text(shards: Shards) -> str:
    reading = "" if shards.reads == shards.count else f", reading={shards.reads}"
    if shards.by == "hash" and not shards.of and not reading:
        return str(shards.count)
    by_argument = "" if shards.by == "hash" else f", by={shards.by!r}"
    of = f", of={shards.of!r}" if shards.of else ""
    return f"Shards({shards.count}{by_argument}{of}{reading})"


@dataclass(frozen=True, slots=True)
class Balance:
    """The number of items in each shard of a query."""

    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """The items of all shards."""
        return sum(self.counts)

    @property
    def ratio(self) -> float:
        """The fullest shard relative to an even share: 1.0 is even; the number of shards means that one holds everything."""
        return max(self.counts) * len(self.counts) / self.total if self.total else 1.0

    @property
    def largest(self) -> int:
        """The number of the fullest shard."""
        return self.counts.index(max(self.counts))


class ShardBalance(Recipe[D_co]):
    """Counts the items of each shard."""

    @recipe_method
    def of(self, selection: Selection[Any]) -> PatternProgram[Balance]:
        """Return the number of items in each shard of a query; counting is billed like reading, without the transfer."""
        pattern = request_of(selection).pattern
        if pattern.key.shards is None:
            raise RecipeRefused(pattern.place, "it is not sharded; declare it with shards=…")
        explained = yield from call_client(lambda db: db.explain.query(selection))
        counts: tuple[int, ...] = ()
        for request in explained.requests:
            counts += ((yield from self._count(request.body)),)
        return Balance(counts)

    def _count(self, body: Mapping[str, Any]) -> PatternProgram[int]:
        return (yield from call_client(lambda db: db.run(count_stored(dict(body)))))
