"""Triggers: run Lambda-shaped handlers on a table's stream, as an event source mapping runs them.

Owns the mapping's settings, filter patterns, batches, retries, checkpoints and dead letters. Reads streams through the
client's `StreamReader`, so the same trigger works on an embedded engine, over HTTP and on AWS. It is not part of `patterns`
because its rules are AWS's, not ours.
"""

from tavola.client.checkpoints import MemoryCheckpoint
from tavola.client.streams import StreamGone, StreamMissing
from tavola.triggers.checkpoints import CheckpointLog, Position, TriggerCheckpoint, WindowPosition
from tavola.triggers.dead_letters import DeadLetterFile, DeadLetters, MemoryDeadLetters
from tavola.triggers.errors import (
    DrainUnfinished,
    FileInUse,
    FilterRefused,
    HandlerBroken,
    HandlerFailing,
    HandlerRefused,
    MappingRefused,
    TriggerError,
    TriggerFileRefused,
)
from tavola.triggers.filters import FilterCriteria, parse_criteria
from tavola.triggers.functions import Handler, LambdaContext
from tavola.triggers.mapping import EventSourceMapping, StartingPosition
from tavola.triggers.outcomes import UNREAD, UNREAD_REMEDY
from tavola.triggers.partition_queues import Backoff
from tavola.triggers.trigger import Statistics, StreamBackend, Trigger

__all__ = [
    "UNREAD",
    "UNREAD_REMEDY",
    "Backoff",
    "CheckpointLog",
    "DeadLetterFile",
    "DeadLetters",
    "DrainUnfinished",
    "EventSourceMapping",
    "FileInUse",
    "FilterCriteria",
    "FilterRefused",
    "Handler",
    "HandlerBroken",
    "HandlerFailing",
    "HandlerRefused",
    "LambdaContext",
    "MappingRefused",
    "MemoryCheckpoint",
    "MemoryDeadLetters",
    "Position",
    "StartingPosition",
    "Statistics",
    "StreamBackend",
    "StreamGone",
    "StreamMissing",
    "Trigger",
    "TriggerCheckpoint",
    "TriggerError",
    "TriggerFileRefused",
    "WindowPosition",
    "parse_criteria",
]
