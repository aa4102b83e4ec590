"""Client: entities in, entities out, through one port.

Holds the `Backend` port and what grows on it. Knows no engine and no botocore: it sees an operation's name
and a request go out and a response come back, and cannot tell a file from a region. Why a port this
narrow: whatever meets it can be recorded, replayed and swapped.
"""

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
from tavola.client.cancellations import Failures, Reason, TransactionCancelled, TransactionExists
from tavola.client.checkpoints import CheckpointFile, CheckpointRefused, Checkpoints
from tavola.client.consumption import Units
from tavola.client.context import Context
from tavola.client.db import AsyncDb, AsyncPage, AsyncTransaction, Db, Page, Transaction
from tavola.client.effects import (
    AsyncDriver,
    Call,
    CallGroup,
    Driver,
    Effect,
    Program,
    RunBlocking,
    Sleep,
    run_program,
    run_program_async,
)
from tavola.client.errors import (
    ConditionFailed,
    CursorRefused,
    ItemExists,
    ItemImmutable,
    ItemMissing,
    ItemSizeExceeded,
    LockLost,
    TableMissing,
    TransactionRefused,
    UniqueTaken,
    UpdateContended,
    UpdateNeedsMore,
)
from tavola.client.explain.explain import AsyncExplain, Explain
from tavola.client.explain.explanation import Explanation, Waste
from tavola.client.intents import Intent, Intents
from tavola.client.metering import Spent, TableUnits
from tavola.client.progress import Progress
from tavola.client.provisioning import TableMismatch, TableNotReady
from tavola.client.raw_items import from_item, to_item
from tavola.client.reading import scan_kinds
from tavola.client.reports import BackfillReport, GuardFault, KeyFault, KeyReport, MigrationPlan, TableChanges
from tavola.client.retries import NO_RETRIES, RetryPolicy
from tavola.client.routers import ChangeUnrouted, Router, failures
from tavola.client.stored import (
    StoredPage,
    as_stored,
    count_stored,
    get_stored,
    misplaced,
    place_of,
    query_stored,
    read_stored,
    scan_stored,
)
from tavola.client.stream_changes import (
    AnyChange,
    ChangeKind,
    EntityChange,
    ImageMissing,
    Origin,
    RawChange,
    RecordMalformed,
    changes_of,
    key_of,
    records_in,
)
from tavola.client.stream_shards import (
    Records,
    Shard,
    ShardReading,
    Stream,
    StreamError,
    StreamGone,
    StreamMissing,
    describe_stream,
    latest_stream_arn,
    readable,
    sequence_of,
)
from tavola.client.subscriptions import AsyncSubscription, ChangeBatch, RecordsLost, Subscription
from tavola.client.transactions import commit
from tavola.client.uniques import needs_transaction
from tavola.client.versions import ItemVersion, async_item_versions, item_versions
from tavola.protocol.faults import Fault

__all__ = [
    "NO_RETRIES",
    "AnyChange",
    "AsyncBackend",
    "AsyncDb",
    "AsyncDriver",
    "AsyncExplain",
    "AsyncGathering",
    "AsyncPage",
    "AsyncRemembering",
    "AsyncSubscription",
    "AsyncTransaction",
    "Backend",
    "BackfillReport",
    "BatchUnfinished",
    "Call",
    "CallGroup",
    "ChangeBatch",
    "ChangeKind",
    "ChangeUnrouted",
    "CheckpointFile",
    "CheckpointRefused",
    "Checkpoints",
    "ConditionFailed",
    "Context",
    "CursorRefused",
    "Db",
    "Driver",
    "Effect",
    "EntityChange",
    "Explain",
    "Explanation",
    "Failures",
    "Fault",
    "Gathering",
    "GuardFault",
    "ImageMissing",
    "Intent",
    "Intents",
    "ItemExists",
    "ItemImmutable",
    "ItemMissing",
    "ItemSizeExceeded",
    "ItemVersion",
    "KeyFault",
    "KeyReport",
    "LockLost",
    "MigrationPlan",
    "Origin",
    "Page",
    "Program",
    "Progress",
    "RawChange",
    "Reason",
    "RecordMalformed",
    "Records",
    "RecordsLost",
    "Remembering",
    "RequestMalformed",
    "RetryPolicy",
    "Router",
    "RunBlocking",
    "Shard",
    "ShardReading",
    "Sleep",
    "Spent",
    "StoredPage",
    "Stream",
    "StreamError",
    "StreamGone",
    "StreamMissing",
    "Subscription",
    "TableChanges",
    "TableMismatch",
    "TableMissing",
    "TableNotReady",
    "TableUnits",
    "Transaction",
    "TransactionCancelled",
    "TransactionExists",
    "TransactionRefused",
    "Unanswered",
    "UniqueTaken",
    "Units",
    "UpdateContended",
    "UpdateNeedsMore",
    "Waste",
    "as_stored",
    "async_item_versions",
    "changes_of",
    "commit",
    "count_stored",
    "describe_stream",
    "encode_request",
    "failures",
    "from_item",
    "get_stored",
    "item_versions",
    "key_of",
    "latest_stream_arn",
    "misplaced",
    "needs_transaction",
    "place_of",
    "query_stored",
    "read_stored",
    "readable",
    "records_in",
    "run_program",
    "run_program_async",
    "scan_kinds",
    "scan_stored",
    "sequence_of",
    "to_item",
]
