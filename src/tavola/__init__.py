"""Tavola: DynamoDB in your own process.

The public names of the library, and nothing else of it. They are fetched when first asked for, because
pytest loads this package at start-up through the plugin's entry point, and a test run that never touches
DynamoDB should pay nothing. Type checkers read the imports below; a test holds the two lists together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tavola.client import (
        AsyncPage,
        ConditionFailed,
        CursorRefused,
        Explanation,
        ItemExists,
        ItemMissing,
        LockLost,
        Page,
        Patience,
        Spent,
        UniqueTaken,
        UpdateNeedsMore,
    )
    from tavola.clock import Clock, ManualClock
    from tavola.connections import AsyncConnection, Connection, connect, connect_async, mock
    from tavola.engine import Engine, StoreError
    from tavola.entropy import Entropy, SeededEntropy
    from tavola.errors import TavolaError
    from tavola.model import (
        AccessPattern,
        Attr,
        Change,
        Collection,
        Condition,
        Entity,
        EpochMilliseconds,
        EpochSeconds,
        Exact,
        Gsi,
        Lsi,
        ModelError,
        PrimaryKey,
        Query,
        QueryRefused,
        Rest,
        Selection,
        Shards,
        Sort,
        Step,
        Table,
        WritePattern,
        attr,
        found,
        sort,
        upgrade,
    )
    from tavola.model.document import Design, design_document, design_of, read_document
    from tavola.protocol import Fault, Scope

__version__ = "0.1.0"

__all__ = [
    "AccessPattern",
    "AsyncConnection",
    "AsyncPage",
    "Attr",
    "Change",
    "Clock",
    "Collection",
    "Condition",
    "ConditionFailed",
    "Connection",
    "CursorRefused",
    "Design",
    "Engine",
    "Entity",
    "Entropy",
    "EpochMilliseconds",
    "EpochSeconds",
    "Exact",
    "Explanation",
    "Fault",
    "Gsi",
    "ItemExists",
    "ItemMissing",
    "LockLost",
    "Lsi",
    "ManualClock",
    "ModelError",
    "Page",
    "Patience",
    "PrimaryKey",
    "Query",
    "QueryRefused",
    "Rest",
    "Scope",
    "SeededEntropy",
    "Selection",
    "Shards",
    "Sort",
    "Spent",
    "Step",
    "StoreError",
    "Table",
    "TavolaError",
    "UniqueTaken",
    "UpdateNeedsMore",
    "WritePattern",
    "__version__",
    "attr",
    "connect",
    "connect_async",
    "design_document",
    "design_of",
    "found",
    "mock",
    "read_document",
    "sort",
    "upgrade",
]

_HOMES = {
    "AccessPattern": "tavola.model",
    "AsyncConnection": "tavola.connections",
    "AsyncPage": "tavola.client",
    "Attr": "tavola.model",
    "Change": "tavola.model",
    "Clock": "tavola.clock",
    "Collection": "tavola.model",
    "Condition": "tavola.model",
    "ConditionFailed": "tavola.client",
    "Connection": "tavola.connections",
    "CursorRefused": "tavola.client",
    "Design": "tavola.model.document",
    "Engine": "tavola.engine",
    "Entity": "tavola.model",
    "Entropy": "tavola.entropy",
    "EpochMilliseconds": "tavola.model",
    "EpochSeconds": "tavola.model",
    "Exact": "tavola.model",
    "Explanation": "tavola.client",
    "Fault": "tavola.protocol",
    "Gsi": "tavola.model",
    "ItemExists": "tavola.client",
    "ItemMissing": "tavola.client",
    "LockLost": "tavola.client",
    "Lsi": "tavola.model",
    "ManualClock": "tavola.clock",
    "ModelError": "tavola.model",
    "Page": "tavola.client",
    "Patience": "tavola.client",
    "PrimaryKey": "tavola.model",
    "Query": "tavola.model",
    "QueryRefused": "tavola.model",
    "Rest": "tavola.model",
    "Scope": "tavola.protocol",
    "SeededEntropy": "tavola.entropy",
    "Selection": "tavola.model",
    "Shards": "tavola.model",
    "Sort": "tavola.model",
    "Step": "tavola.model",
    "Spent": "tavola.client",
    "StoreError": "tavola.engine",
    "Table": "tavola.model",
    "TavolaError": "tavola.errors",
    "UniqueTaken": "tavola.client",
    "UpdateNeedsMore": "tavola.client",
    "WritePattern": "tavola.model",
    "attr": "tavola.model",
    "connect": "tavola.connections",
    "connect_async": "tavola.connections",
    "design_document": "tavola.model.document",
    "design_of": "tavola.model.document",
    "found": "tavola.model",
    "mock": "tavola.connections",
    "read_document": "tavola.model.document",
    "sort": "tavola.model",
    "upgrade": "tavola.model",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tavola' has no attribute {name!r}")
    found: object = getattr(import_module(home), name)
    globals()[name] = found  # the second time costs nothing
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
