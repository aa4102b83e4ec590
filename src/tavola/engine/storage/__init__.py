"""Storage: rows of bytes under ordered keys; knows no item.

Holds the `Store` port and its one implementation, SQLite in memory or in a file. Knows bytes, order and
durability, and nothing of DynamoDB. Why behind a port: everything above is told in rows and ranges, and
SQL stays in one file.
"""

from tavola.engine.storage.sqlite import SqliteStore, change_key, form_of
from tavola.engine.storage.store import (
    Entry,
    Found,
    Line,
    Lines,
    Log,
    LogRow,
    Rack,
    Row,
    Store,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreLocked,
)

__all__ = [
    "Entry",
    "Found",
    "Line",
    "Lines",
    "Log",
    "LogRow",
    "Rack",
    "Row",
    "SqliteStore",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
    "StoreLocked",
    "change_key",
    "form_of",
]
