"""Triggers: a Lambda-shaped handler on a stream, run as an event source mapping would run it.

Holds the mapping's settings, filter patterns, batches, retries, checkpoints and dead letters. Knows the
client's port and no engine: the same trigger reads a stream in this process, over HTTP and on AWS. Why not
in `patterns`: it is Lambda's side of a stream, with rules of its own that AWS wrote, and no recipe of ours.
"""

from tavola.triggers.checkpoints import (
    Checkpoints,
    FileCheckpoints,
    MemoryCheckpoints,
    Position,
    WindowPosition,
)
from tavola.triggers.dead_letters import DeadLetterFile, DeadLetters, MemoryDeadLetters
from tavola.triggers.errors import (
    DrainUnfinished,
    FileInUse,
    FileRefused,
    FilterRefused,
    HandlerBroken,
    HandlerFailing,
    HandlerRefused,
    MappingRefused,
    StreamGone,
    StreamMissing,
    TriggerError,
)
from tavola.triggers.filters import FilterCriteria, parse_criteria
from tavola.triggers.functions import Handler, LambdaContext
from tavola.triggers.lanes import Backoff
from tavola.triggers.mapping import REPORT_FAILURES, Mapping, StartingPosition
from tavola.triggers.runner import Answering, Statistics, Trigger

__all__ = [
    "REPORT_FAILURES",
    "Answering",
    "Backoff",
    "Checkpoints",
    "DeadLetterFile",
    "DeadLetters",
    "DrainUnfinished",
    "FileCheckpoints",
    "FileInUse",
    "FileRefused",
    "FilterCriteria",
    "FilterRefused",
    "Handler",
    "HandlerBroken",
    "HandlerFailing",
    "HandlerRefused",
    "LambdaContext",
    "Mapping",
    "MappingRefused",
    "MemoryCheckpoints",
    "MemoryDeadLetters",
    "Position",
    "StartingPosition",
    "Statistics",
    "StreamGone",
    "StreamMissing",
    "Trigger",
    "TriggerError",
    "WindowPosition",
    "parse_criteria",
]
