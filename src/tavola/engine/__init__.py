"""Engine: DynamoDB itself, in this process, on local storage.

Holds tables, items, indexes, queries, batches and transactions as AWS defines them, answering requests as
JSON bodies. Knows no entity, no HTTP and no client: it would serve any. Why bodies in and out: an item is
stored as the bytes that are sent, so reading one copies bytes and converts nothing.
"""

from tavola.engine.engine import Engine
from tavola.engine.storage import StoreDamaged, StoreError, StoreFailed, StoreFull, StoreInUse

__all__ = [
    "Engine",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
]
