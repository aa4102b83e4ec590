"""EmulatedCall: a call whose access to items passes through the engine's emulation.

The engine makes one in place of a plain `OperationCall` while emulation is active. Each method adds to the plain one
what production would do: it charges and throttles, reports conflicts, shows an older state, leaves members of batches
unprocessed, or reorders stream records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tavola.engine.capacity import CapacityUsage
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.isolation import TransactionReceipt
from tavola.engine.operations.call import BatchKey, BatchWrite, OperationCall, PreparedT, row_units
from tavola.engine.reads import ReadPage, ReadRange
from tavola.engine.storage import ChangeLog, ChangeLogRow, ItemRow
from tavola.engine.streams import StreamShard
from tavola.engine.writes import CurrentItem, ItemWrite, find_current
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition
from tavola.protocol.batches import BatchGetItemRequest
from tavola.protocol.faults import ConditionalCheckFailedFault, TransactionCanceledFault
from tavola.values import Item, Steps, transact_read_units


class EmulatedCall(OperationCall):
    """A call with the effects of production."""

    __slots__ = ()

    def read_item(
        self,
        table: StoredTable,
        key: bytes,
        *,
        consistent: bool | None,
    ) -> ItemRow | None:
        """Return the row of an item, perhaps of an older version of it; charge the read, or throttle it."""
        emulation = self.services.emulation
        table = emulation.table_view(table, None, consistent)
        emulation.charge_item_read(table, key, row_units(table.rows.get(key), consistent))
        return super().read_item(table, key, consistent=consistent)

    def table_view(
        self, table: StoredTable, index: StoredIndex | None, consistent: bool | None
    ) -> StoredTable:
        """Return the state of a table that a read sees, which may be an older one."""
        return self.services.emulation.table_view(table, index, consistent)

    def read_rows(self, addresses: Sequence[tuple[StoredTable, bytes]]) -> list[ItemRow | None]:
        """Return the rows that a transaction reads; charge them, or cancel it."""
        rows = super().read_rows(addresses)
        self.services.emulation.charge_transaction_reads(
            [
                (table, key, transact_read_units(0 if row is None else row[1]))
                for (table, key), row in zip(addresses, rows, strict=True)
            ]
        )
        return rows

    def read_current(self, table: StoredTable, key: bytes) -> CurrentItem:
        """Return the item that a single write replaces; refuse it if a running transaction holds it."""
        self.services.emulation.check_conflict(table, key)
        return super().read_current(table, key)

    def check_condition(
        self, current: CurrentItem, condition: CompiledCondition | None, bindings: Bindings, show: str | None
    ) -> None:
        """Check a condition; a failed one is charged, or throttled instead."""
        try:
            super().check_condition(current, condition, bindings, show)
        except ConditionalCheckFailedFault:
            self.services.emulation.charge_failed_condition(current)
            raise

    def commit_write(self, write: ItemWrite) -> None:
        """Charge a single write and carry it out, or throttle it."""
        self.services.emulation.charge_write(write)
        super().commit_write(write)

    def prepare_transaction(
        self,
        addresses: Sequence[tuple[StoredTable, bytes] | None],
        prepare: Callable[[], Steps[list[PreparedT]]],
        token: str | None,
    ) -> Steps[list[PreparedT]]:
        """Prepare a transaction between the check for conflicts and the charge; a cancelled one is charged too."""
        emulation = self.services.emulation
        emulation.check_transaction_conflicts(addresses)
        try:
            prepared = yield from prepare()
        except TransactionCanceledFault:
            emulation.charge_cancelled_transaction(
                [find_current(*address) for address in addresses if address is not None]
            )
            raise
        emulation.charge_transaction(
            [(action.current, action.write) for action in prepared], self.scope, token
        )
        return prepared

    def find_receipt(self, token: str, digest: str) -> TransactionReceipt | None:
        """Return the receipt of an earlier transaction; refuse the token of one that is still running."""
        receipt = super().find_receipt(token, digest)
        self.services.emulation.check_token(self.scope, token)
        return receipt

    def take_unprocessed_keys(
        self, request: BatchGetItemRequest, tables: dict[str, StoredTable], keys: dict[str, list[BatchKey]]
    ) -> dict[str, list[Item]]:
        """Remove the keys that are left unprocessed, and return them by table.

        Also replaces each table in `tables` with the state that its reads see.
        """
        emulation = self.services.emulation
        reads: list[tuple[StoredTable, bytes, float]] = []
        positions: list[tuple[str, int]] = []
        for name, keys_and_attributes in request.request_items.items():
            consistent = bool(keys_and_attributes.consistent_read)
            tables[name] = table = emulation.table_view(tables[name], None, consistent)
            for position, (_, key) in enumerate(keys[name]):
                row = table.rows.get(key)
                reads.append((table, key, row_units(row, consistent)))
                positions.append((name, position))
        unprocessed: dict[str, list[Item]] = {}
        for at in sorted(emulation.choose_unread(reads), reverse=True):
            name, position = positions[at]
            requested, _ = keys[name].pop(position)
            unprocessed.setdefault(name, []).insert(0, requested)
        return unprocessed

    def take_unprocessed_writes(self, writes: list[BatchWrite]) -> list[BatchWrite]:
        """Remove the writes that are left unprocessed, and return them."""
        chosen = self.services.emulation.choose_unwritten([write for _, write, _ in writes])
        return [writes.pop(position) for position in sorted(chosen, reverse=True)][::-1]

    def read_shard(
        self, log: ChangeLog, shard: StreamShard, after: int, limit: int
    ) -> tuple[list[ChangeLogRow], int]:
        """Return changes of a shard, reordered across items if that is emulated."""
        if not self.services.emulation.interleaves:
            return super().read_shard(log, shard, after, limit)
        return self.services.emulation.read_shard(log, shard, after, limit)

    def position_before(self, log: ChangeLog, at_us: int) -> int:
        """Return the start position for a time: the beginning of its window if records are reordered."""
        if not self.services.emulation.interleaves:
            return super().position_before(log, at_us)
        return self.services.emulation.before_window(log, at_us)

    def latest_position(self, log: ChangeLog) -> int:
        """Return the start position for now: the beginning of the window if records are reordered."""
        if not self.services.emulation.interleaves:
            return super().latest_position(log)
        time = self.services.time
        time.tick()
        return self.services.emulation.before_window(log, time.now_us)

    @property
    def records_accesses(self) -> bool:
        """Always True: pages are charged."""
        return True

    def page_units(self, span: ReadRange, page: ReadPage, *, consistent: bool) -> float:
        """Return the units of a page; a scan pays in each partition."""
        units = self.services.emulation.scan_units(span, page, consistent=consistent)
        return super().page_units(span, page, consistent=consistent) if units is None else units

    def record_page(self, span: ReadRange, usage: CapacityUsage) -> None:
        """Charge a page, or throttle it; record what it consumed."""
        self.services.emulation.charge_page(span, usage.reads + sum(usage.index_reads.values()))
        super().record_page(span, usage)
