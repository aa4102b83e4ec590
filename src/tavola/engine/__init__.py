"""Engine: DynamoDB itself, in this process, on local storage.

Holds tables, items, indexes, queries, batches and transactions as AWS defines them, answering requests as
JSON bodies. Knows no entity, no HTTP and no client: it would serve any. Why bodies in and out: an item is
stored as the bytes that are sent, so reading one copies bytes and converts nothing.
"""

from tavola.engine.emulation import SWITCHES, EmulationRefused, HotItem, Hottest
from tavola.engine.engine import Engine
from tavola.engine.pending_calls import PendingCall
from tavola.engine.request_context import AccessGuard, ItemAccess, Observer, ObserverNotifier, RequestContext
from tavola.engine.storage import (
    FileBackupExists,
    FileBackupFailed,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreLocked,
    StoreMismatch,
    StoreReplaced,
    back_up_file,
    change_key,
)
from tavola.engine.transfer import Buckets
from tavola.engine.verification import StoreProblem, VerificationReport, verify

__all__ = [
    "SWITCHES",
    "AccessGuard",
    "Buckets",
    "EmulationRefused",
    "Engine",
    "FileBackupExists",
    "FileBackupFailed",
    "HotItem",
    "Hottest",
    "ItemAccess",
    "Observer",
    "ObserverNotifier",
    "PendingCall",
    "RequestContext",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
    "StoreLocked",
    "StoreMismatch",
    "StoreProblem",
    "StoreReplaced",
    "VerificationReport",
    "back_up_file",
    "change_key",
    "verify",
]
