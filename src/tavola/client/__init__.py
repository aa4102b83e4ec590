"""Client: entities in, entities out, through one port.

Holds the `Backend` port and what grows on it. Knows no engine and no botocore: it sees an operation's name
and a request go out and a response come back, and cannot tell a file from a region. Why a port this
narrow: whatever meets it can be recorded, replayed and swapped.
"""

from tavola.client.async_shells import AsyncDb, AsyncPage
from tavola.client.backend import (
    AsyncBackend,
    AsyncGathering,
    AsyncRemembering,
    Backend,
    Gathering,
    Remembering,
    RequestMalformed,
    Unanswered,
    encode_request,
)
from tavola.client.batches import BatchUnfinished
from tavola.client.consumption import Units
from tavola.client.context import Context
from tavola.client.errors import (
    ConditionFailed,
    CursorRefused,
    ItemExists,
    ItemMissing,
    LockLost,
    UniqueTaken,
    UpdateContended,
    UpdateNeedsMore,
)
from tavola.client.explain.async_shells import AsyncExplain
from tavola.client.explain.explanation import Explanation, Waste
from tavola.client.explain.shells import Explain
from tavola.client.metering import Spent, TableUnits
from tavola.client.progress import Progress
from tavola.client.provisioning import TableNotReady
from tavola.client.retries import NO_PATIENCE, Patience
from tavola.client.shells import Db, Page
from tavola.client.steps import AsyncDriver, Call, Driver, Steps, Together, Wait
from tavola.client.versions import ItemVersion, async_item_versions, item_versions

__all__ = [
    "NO_PATIENCE",
    "AsyncBackend",
    "AsyncDb",
    "AsyncDriver",
    "AsyncExplain",
    "AsyncGathering",
    "AsyncPage",
    "AsyncRemembering",
    "Backend",
    "BatchUnfinished",
    "Call",
    "ConditionFailed",
    "Context",
    "CursorRefused",
    "Db",
    "Driver",
    "Explain",
    "Explanation",
    "Gathering",
    "ItemExists",
    "ItemMissing",
    "ItemVersion",
    "LockLost",
    "Page",
    "Patience",
    "Progress",
    "Remembering",
    "RequestMalformed",
    "Spent",
    "Steps",
    "TableNotReady",
    "TableUnits",
    "Together",
    "Unanswered",
    "UniqueTaken",
    "Units",
    "UpdateContended",
    "UpdateNeedsMore",
    "Wait",
    "Waste",
    "async_item_versions",
    "encode_request",
    "item_versions",
]
