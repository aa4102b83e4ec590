"""Storage: rows of bytes under ordered keys, in SQLite, through apsw; the only SQL in the project.

`Store` is one database, in memory or in a file, with one connection and one writer. A `TableStore` holds the rows of
one DynamoDB table: the ordered key, the item as bytes, its size, and one column for each index key with a partial index
over it. An index entry refers to its row and never copies the item, so a write touches an index only if its key
changes. A `ChangeLog` holds the changes of one table in order. A record is anything small that must be committed
together with the rows: a table's definition, a token.

Storage knows bytes, order and durability, and nothing of DynamoDB; only a step that upgrades an older file (`file_format`)
reads definitions. Every page of a file carries a checksum (SQLite's
checksum VFS), so a damaged page is an error and never a wrong answer. A page's checksum does not know the page's
position, so each row of a file carries a checksum of its item as well. An encrypted file needs neither: its pages are
authenticated together with their positions.
"""

from tavola.engine.storage.change_log import ChangeLog, ChangeLogRow
from tavola.engine.storage.errors import (
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreForeign,
    StoreFull,
    StoreInUse,
    StoreLocked,
    StoreMismatch,
    StoreReplaced,
)
from tavola.engine.storage.file_backups import FileBackupExists, FileBackupFailed, back_up_file
from tavola.engine.storage.files import change_key, form_of
from tavola.engine.storage.store import SqliteTableStore, Store
from tavola.engine.storage.table_store import (
    Entry,
    ItemPage,
    ItemRow,
    KeyedRow,
    StoredRow,
    TableStore,
)

__all__ = [
    "ChangeLog",
    "ChangeLogRow",
    "Entry",
    "FileBackupExists",
    "FileBackupFailed",
    "ItemPage",
    "ItemRow",
    "KeyedRow",
    "SqliteTableStore",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreForeign",
    "StoreFull",
    "StoreInUse",
    "StoreLocked",
    "StoreMismatch",
    "StoreReplaced",
    "StoredRow",
    "TableStore",
    "back_up_file",
    "change_key",
    "form_of",
]
