"""Staleness: reads that show what was there a moment ago.

An eventually consistent read goes to one of three replicas, of which one is the leader and has everything; the
others are behind by as much as chance says. A global index is filled after the write, and is behind by its
own lag, also for whoever wrote. Consistent reads are never stale. The past is read from the table's journal.
"""

from __future__ import annotations

from tavola.clock import Clock
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.emulation.chance import SeededChance
from tavola.engine.snapshots import AsOfTableStore, table_at_position

_REPLICAS = 3


class Staleness:
    """Chooses for each read the moment that it shows."""

    def __init__(
        self,
        clock: Clock,
        *,
        stale_s: float | None,
        lag_s: float | None,
        reads: SeededChance,
        lags: SeededChance,
    ) -> None:
        self._clock = clock
        self._stale_s = stale_s
        self._lag_s = lag_s
        self._reads = reads
        self._lags = lags

    def table_view(self, table: StoredTable, index: StoredIndex | None, *, consistent: bool) -> StoredTable:
        """Return a table as a read sees it: as it stands, or as it stood a moment ago."""
        if consistent or isinstance(table.rows, AsOfTableStore):
            return table
        behind_s = self._behind_s()
        if index is not None and index.is_global and self._lag_s is not None:
            behind_s += self._lag_s * self._lags.share()
        journal = table.journal
        if not behind_s or journal is None or not journal.history:
            return table
        position = journal.log.id_at(int((self._clock.now() - behind_s) * 1_000_000))
        return table if position >= journal.position else table_at_position(table, journal.log, position)

    def _behind_s(self) -> float:
        if self._stale_s is None:
            return 0.0
        replica, share = divmod(self._reads.share() * _REPLICAS, 1)
        return self._stale_s * share if replica else 0.0
