"""Store in SQLite, in memory or in one file, through apsw; the only SQL in the project.

One table of rows for a rack: the ordered key beside the item, and a column for each index key with a
partial index over it. An index entry refers to its row and never copies the item, so a write touches an
index only when its key changes. Every page of a file carries a checksum (SQLite's checksum VFS), so a
damaged page is an error and never an answer; and since a page's checksum does not know the page's place,
every row of a file carries one of its item too. The pages of an encrypted file carry a code instead that
knows their place.
"""

from tavola.engine.storage.sqlite.files import change_key
from tavola.engine.storage.sqlite.pages import form_of
from tavola.engine.storage.sqlite.rack import SqliteRack
from tavola.engine.storage.sqlite.store import SqliteStore

__all__ = ["SqliteRack", "SqliteStore", "change_key", "form_of"]
