"""Backups: stored rows that outlive their table, with the definition that the table had.

An on-demand backup is a copy of the rows. The backup that is made when a table with recovery is deleted consists of the
table's own rows, which are simply kept. The definition is needed to describe a backup and to restore it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tavola.engine.catalog import KEPT_LOG, Catalog, StoredTable, TableCounts, TableDefinition
from tavola.engine.snapshots import index_log_if_needed, table_at_position
from tavola.engine.storage import Store
from tavola.protocol.arns import Scope, backup_arn

_KIND = "backup"

BackupType = Literal["USER", "SYSTEM"]
BackupStatus = Literal["CREATING", "AVAILABLE", "DELETED"]


class Backup(msgspec.Struct, frozen=True):
    """The stored state of a backup."""

    id: str
    name: str
    type: BackupType
    number: int  # of its rows in the store
    definition: TableDefinition  # as its table had it, with the table's own number
    created_at_s: float
    status: BackupStatus
    items: int
    bytes: int
    expires_at_s: float | None = None  # as it is shown
    drop_at_s: float | None = None  # in store time; None in a backup of an earlier version
    restoring: bool = False  # a table is being restored from it

    @property
    def scope(self) -> Scope:
        """Return the account and region of the backup."""
        return self.definition.scope

    @property
    def arn(self) -> str:
        """Return the backup's ARN."""
        return backup_arn(self.scope, self.definition.name, self.id)

    def has_expired(self, store_s: float) -> bool:
        """Return whether it has expired at a store time."""
        drop_at_s = self.expires_at_s if self.drop_at_s is None else self.drop_at_s
        return drop_at_s is not None and drop_at_s <= store_s


class Backups:
    """The backups of one store."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[Backup]:
        for _, data in self._store.records(_KIND):
            yield msgspec.json.decode(data, type=Backup)

    def find(self, scope: Scope, table: str, id_: str) -> Backup | None:
        """Return a table's backup by its id."""
        data = self._store.get_record(_KIND, _name(scope, table, id_))
        return None if data is None else msgspec.json.decode(data, type=Backup)

    def save(self, backup: Backup) -> Backup:
        """Store a backup, replacing its earlier state."""
        name = _name(backup.scope, backup.definition.name, backup.id)
        self._store.put_record(_KIND, name, msgspec.json.encode(backup), due_s=backup.drop_at_s)
        return backup

    def create_table(self, backup: Backup) -> None:
        """Create the rows that a backup is copied to; its columns are never queried, so they have no indexes."""
        self._store.create_table(backup.number)
        for column in self.table(backup).columns:
            self._store.add_column(backup.number, column, ordered=False)

    def table(self, backup: Backup) -> StoredTable:
        """Return a backup's rows as a table."""
        definition = msgspec.structs.replace(
            backup.definition, number=backup.number, ttl=None, stream=None, recovery=None, pins=0
        )
        return StoredTable(definition, self._store, TableCounts(backup.items, backup.bytes))

    def drop(self, backup: Backup) -> None:
        """Remove a backup and its rows."""
        self._store.drop_table(backup.number)
        self._store.delete_record(_KIND, _name(backup.scope, backup.definition.name, backup.id))

    def drop_expired(self, store_s: float) -> int:
        """Remove expired backups and return their number."""
        expired = self._find_expired(store_s)
        for backup in expired:
            self.drop(backup)
        return len(expired)

    def any_expired(self, store_s: float) -> bool:
        """Return whether any backup has expired."""
        return bool(self._find_expired(store_s))

    def _find_expired(self, store_s: float) -> list[Backup]:
        return [backup for backup in self if backup.has_expired(store_s) and not backup.restoring]


def pin(catalog: Catalog, table: StoredTable) -> tuple[StoredTable, int]:
    """Keep a table's past from now on; return the table and the current position of its log."""
    definition = table.definition
    pinned = catalog.change(table, msgspec.structs.replace(definition, pins=definition.pins + 1))
    assert pinned.journal is not None, "a pinned table has a journal"
    return pinned, pinned.journal.position


def unpin(catalog: Catalog, store: Store, number: int) -> None:
    """Stop keeping a table's past; if the table was deleted meanwhile, remove its rows and log."""
    table = catalog.of_number(number)
    if table is not None:
        definition = table.definition
        catalog.change(table, msgspec.structs.replace(definition, pins=definition.pins - 1))
        return
    pinned = _kept_definition(store, number)
    assert pinned is not None, "a pinned table exists, or its definition is kept"
    if pinned.pins > 1:
        keep_table(store, msgspec.structs.replace(pinned, pins=pinned.pins - 1))
        return
    store.delete_record(KEPT_LOG, str(number))
    catalog.has_changed = True
    if not any(backup.number == number for backup in Backups(store)):
        store.drop_table(number)


def keep_table(store: Store, definition: TableDefinition) -> None:
    """Keep the definition of a table that is being deleted while its past is still read."""
    store.put_record(KEPT_LOG, str(definition.number), msgspec.json.encode(definition))


def pinned_table(catalog: Catalog, store: Store, number: int, position: int) -> StoredTable:
    """Return a pinned table as of a position in its log, even if it was deleted meanwhile.

    For a step of a job, whose transaction is open.
    """
    table = catalog.of_number(number)
    if table is None:
        definition = _kept_definition(store, number)
        assert definition is not None, "a pinned table exists, or its definition is kept"
        table = StoredTable(definition, store, TableCounts())
    log = store.log(number)
    index_log_if_needed(log, position, _do_nothing)
    return table_at_position(table, log, position)


def kept_tables(store: Store) -> list[StoredTable]:
    """Return the deleted tables that are kept because they are still being copied."""
    definitions = (msgspec.json.decode(data, type=TableDefinition) for _, data in store.records(KEPT_LOG))
    return [StoredTable(definition, store, TableCounts()) for definition in definitions]


def _do_nothing() -> None:
    """Do nothing: the step of a job has an open transaction."""


def _kept_definition(store: Store, number: int) -> TableDefinition | None:
    data = store.get_record(KEPT_LOG, str(number))
    return None if data is None else msgspec.json.decode(data, type=TableDefinition)


def _name(scope: Scope, table: str, id_: str) -> str:
    return f"{scope.account}/{scope.region}/{table}/{id_}"
