"""Engine: DynamoDB itself, in this process, on local storage.

Holds tables, items, indexes, queries, batches and transactions as AWS defines them, answering requests as
JSON bodies. Knows no entity, no HTTP and no client: it would serve any. Why bodies in and out: an item is
stored as the bytes that are sent, so reading one copies bytes and converts nothing.
"""

from tavola.engine.emulation import SWITCHES, EmulationRefused, HotItem, Hottest
from tavola.engine.engine import Engine
from tavola.engine.observing import Observer, Observing
from tavola.engine.storage import (
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreLocked,
    change_key,
)
from tavola.engine.transfer import Buckets
from tavola.engine.verification import Problem, Report, verify
from tavola.engine.visits import Guard, Resources, Touch, Visit

__all__ = [
    "SWITCHES",
    "Buckets",
    "EmulationRefused",
    "Engine",
    "Guard",
    "HotItem",
    "Hottest",
    "Observer",
    "Observing",
    "Problem",
    "Report",
    "Resources",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
    "StoreLocked",
    "Touch",
    "Visit",
    "change_key",
    "verify",
]
