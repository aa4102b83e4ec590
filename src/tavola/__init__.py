"""Tavola: DynamoDB in your own process.

The public names of the library, and nothing else of it. They are fetched when first asked for, because
pytest loads this package at start-up through the plugin's entry point, and a test run that never touches
DynamoDB should pay nothing. Type checkers read the imports below; a test holds the two lists together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tavola.clock import Clock, ManualClock
    from tavola.connections import Connection, connect, mock
    from tavola.engine import Engine, StoreError
    from tavola.entropy import Entropy, SeededEntropy
    from tavola.errors import TavolaError
    from tavola.protocol import Fault, Scope

__version__ = "0.1.0"

__all__ = [
    "Clock",
    "Connection",
    "Engine",
    "Entropy",
    "Fault",
    "ManualClock",
    "Scope",
    "SeededEntropy",
    "StoreError",
    "TavolaError",
    "__version__",
    "connect",
    "mock",
]

_HOMES = {
    "Clock": "tavola.clock",
    "Connection": "tavola.connections",
    "Engine": "tavola.engine",
    "Entropy": "tavola.entropy",
    "Fault": "tavola.protocol",
    "ManualClock": "tavola.clock",
    "Scope": "tavola.protocol",
    "SeededEntropy": "tavola.entropy",
    "StoreError": "tavola.engine",
    "TavolaError": "tavola.errors",
    "connect": "tavola.connections",
    "mock": "tavola.connections",
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
