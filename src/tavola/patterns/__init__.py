"""Patterns: solutions to recurring single-table problems, on the public client.

Versions, idempotency, sessions, counters, projections and others that users would otherwise write themselves. Patterns
use only public client methods, so each module is also an example of how to write one. A pattern is one class for both
clients: created with a `Connection` its methods are called, with an `AsyncConnection` they are awaited.
"""

from tavola.patterns.adjacency import Bonds, CycleFound, Edges, Reached, WalkTooLong
from tavola.patterns.audit import (
    AuditEntry,
    Difference,
    DigestReader,
    HistoryProblem,
    StoredDigest,
    Verification,
    stored_digest,
)
from tavola.patterns.blob_stores import BlobStore, FolderBlobs, S3Blobs, StoredBlob
from tavola.patterns.blobs import Blob, BlobDamaged, BlobMissing, Blobs, ItemTooLarge, Swept, inline_blob
from tavola.patterns.cache import Cache, CacheEntry, CacheValueTooLarge
from tavola.patterns.checkpoints import MarkCheckpoint
from tavola.patterns.counters import Counter, Counters, Tally, WindowCounter, WindowCounters
from tavola.patterns.digests import NotDigestible, digest_of
from tavola.patterns.hierarchy import (
    Moved,
    MoveRefused,
    Node,
    NodeExists,
    NodeMissing,
    Tree,
    TreeBusy,
    TreeWork,
)
from tavola.patterns.idempotency import Idempotency
from tavola.patterns.leases import (
    Answer,
    AnswerTooLarge,
    IdempotencyMismatch,
    InProgress,
    Lease,
    LeaseLost,
    Outcome,
    StoredFailure,
)
from tavola.patterns.metrics import (
    FailedRecord,
    Metric,
    Projected,
    ProjectionFailed,
    ProjectionMark,
    Rebuilt,
    Share,
    Sum,
)
from tavola.patterns.outbox import (
    Message,
    Outbox,
    OutboxEvent,
    OutgoingEvents,
    PublishedEvent,
    Relayed,
    RelayLease,
    StoredMessage,
    Unpublished,
)
from tavola.patterns.projection import Projector
from tavola.patterns.reading import OwnWrites, WriteReceipt
from tavola.patterns.recipe import (
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Slice,
    call_client,
    query_all,
    recipe_method,
    run_blocking,
    sleep,
    write_together,
)
from tavola.patterns.records import Versioned
from tavola.patterns.sequences import Sequence, Sequences
from tavola.patterns.sessions import Session, Sessions
from tavola.patterns.sharding import Balance, ShardAdvice, ShardBalance, ShardPlan, shard_change, shards_for
from tavola.patterns.versioning import HistoryAhead, Staged, VersionConflict, Versions
from tavola.patterns.vertical import Saving, Split, saving

__all__ = [
    "Answer",
    "AnswerTooLarge",
    "AuditEntry",
    "Balance",
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
    "Difference",
    "DigestReader",
    "Edges",
    "FailedRecord",
    "FolderBlobs",
    "HistoryAhead",
    "HistoryProblem",
    "Idempotency",
    "IdempotencyMismatch",
    "InProgress",
    "ItemTooLarge",
    "Lease",
    "LeaseLost",
    "MarkCheckpoint",
    "Message",
    "Metric",
    "MoveRefused",
    "Moved",
    "Node",
    "NodeExists",
    "NodeMissing",
    "NotDigestible",
    "Outbox",
    "OutboxEvent",
    "Outcome",
    "OutgoingEvents",
    "OwnWrites",
    "PatternError",
    "PatternProgram",
    "Projected",
    "ProjectionFailed",
    "ProjectionMark",
    "Projector",
    "PublishedEvent",
    "Reached",
    "Rebuilt",
    "Recipe",
    "RecipeRefused",
    "RelayLease",
    "Relayed",
    "S3Blobs",
    "Saving",
    "Sequence",
    "Sequences",
    "Session",
    "Sessions",
    "ShardAdvice",
    "ShardBalance",
    "ShardPlan",
    "Share",
    "Slice",
    "Split",
    "Staged",
    "StoredBlob",
    "StoredDigest",
    "StoredFailure",
    "StoredMessage",
    "Sum",
    "Swept",
    "Tally",
    "Tree",
    "TreeBusy",
    "TreeWork",
    "Unpublished",
    "Verification",
    "VersionConflict",
    "Versioned",
    "Versions",
    "WalkTooLong",
    "WindowCounter",
    "WindowCounters",
    "WriteReceipt",
    "call_client",
    "digest_of",
    "inline_blob",
    "query_all",
    "recipe_method",
    "run_blocking",
    "saving",
    "shard_change",
    "shards_for",
    "sleep",
    "stored_digest",
    "write_together",
]
