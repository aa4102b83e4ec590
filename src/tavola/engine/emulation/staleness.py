"""Stale reads: reads that return a slightly older state.

An eventually consistent read goes to one of three replicas: the leader, which is current, or one of two others, which lag
by a random time. A global index is updated after the write and has an additional lag, also for the writer itself.
Consistent reads are never stale. The older state is read from the table's change log.
"""

from __future__ import annotations

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.emulation.chance import SeededChance
from tavola.engine.snapshots import AsOfTableStore, table_at_position
from tavola.engine.store_time import StoreTime

_REPLICAS = 3


class Staleness:
    """Chooses the state that each read returns."""

    def __init__(
        self,
        time: StoreTime,
        *,
        stale_s: float | None,
        lag_s: float | None,
        reads: SeededChance,
        lags: SeededChance,
    ) -> None:
        self._time = time
        self._stale_s = stale_s
        self._lag_s = lag_s
        self._reads = reads
        self._lags = lags

    def table_view(self, table: StoredTable, index: StoredIndex | None, *, consistent: bool) -> StoredTable:
        """Return the current state of a table, or a slightly older one."""
        if consistent or isinstance(table.rows, AsOfTableStore):
            return table
        behind_s = self._behind_s()
        if index is not None and index.is_global and self._lag_s is not None:
            behind_s += self._lag_s * self._lags.share()
        journal = table.journal
        if not behind_s or journal is None or not journal.history:
            return table
        position = journal.log.id_at(self._time.log_us_ago(behind_s))
        return table if position >= journal.position else table_at_position(table, journal.log, position)

    def _behind_s(self) -> float:
        if self._stale_s is None:
            return 0.0
        # One random number chooses both: its integer part the replica (0 is the leader), its fraction the lag.
        replica, share = divmod(self._reads.share() * _REPLICAS, 1)
        return self._stale_s * share if replica else 0.0
