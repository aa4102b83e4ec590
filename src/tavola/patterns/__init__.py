"""Patterns: single-table recipes on the public client, one file each.

Holds what users would otherwise write themselves: sharded writes, versions, idempotency, sessions,
counters. Knows the client and nothing beneath it, so each file is also an example. A pattern is one class for both
clients: given a `Connection` its methods are called, given an `AsyncConnection` they are awaited.
"""

from tavola.patterns.adjacency import Bonds, CycleFound, Edges, Reached, WalkTooLong
from tavola.patterns.blobs import (
    Blob,
    BlobDamaged,
    BlobMissing,
    Blobs,
    BlobStore,
    FolderBlobs,
    ItemTooLarge,
    S3Blobs,
    StoredBlob,
    Swept,
)
from tavola.patterns.cache import Cache, CacheEntry, CacheValueTooLarge
from tavola.patterns.counters import Counter, Counters, Tally, WindowCounter, WindowCounters
from tavola.patterns.recipe import Recipe, RecipeRefused, Slice, Steps, ask, every, together, verb, wait, work
from tavola.patterns.sequences import Sequence, Sequences
from tavola.patterns.sessions import Session, Sessions

__all__ = [
    "Blob",
    "BlobDamaged",
    "BlobMissing",
    "BlobStore",
    "Blobs",
    "Bonds",
    "Cache",
    "CacheEntry",
    "CacheValueTooLarge",
    "Counter",
    "Counters",
    "CycleFound",
    "Edges",
    "FolderBlobs",
    "ItemTooLarge",
    "Reached",
    "Recipe",
    "RecipeRefused",
    "S3Blobs",
    "Sequence",
    "Sequences",
    "Session",
    "Sessions",
    "Slice",
    "Steps",
    "StoredBlob",
    "Swept",
    "Tally",
    "WalkTooLong",
    "WindowCounter",
    "WindowCounters",
    "ask",
    "every",
    "together",
    "verb",
    "wait",
    "work",
]
