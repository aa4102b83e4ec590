"""Shards: a stream's shards and the reading of one of them, asked of a function.

What to ask, and parents before children, is the client's; here it is asked without its retries, because a trigger
chooses itself when a shard's turn comes again. What is lost is told to the trigger's log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from tavola import client
from tavola.client import Call as Ask
from tavola.client import Program, Shard, ShardReading, Stream, readable
from tavola.client import Records as Page
from tavola.errors import TavolaError
from tavola.limits import STREAM_RECORDS_MAX
from tavola.triggers.checkpoints import Position
from tavola.triggers.errors import StreamGone, StreamMissing

Call: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]
R = TypeVar("R")

_log = logging.getLogger("tavola.triggers")

__all__ = [
    "Call",
    "Page",
    "Shard",
    "ShardReader",
    "Stream",
    "describe_stream",
    "latest_stream_arn",
    "readable",
]


def latest_stream_arn(call: Call, table: str) -> str:
    """Return the ARN of a table's present stream, or the last it had."""
    try:
        return _answered(call, client.latest_stream_arn(table))
    except client.StreamMissing as error:
        raise StreamMissing(table) from error


def describe_stream(call: Call, arn: str) -> Stream:
    """Return a stream with all of its shards, however many pages they take."""
    try:
        return _answered(call, client.describe_stream(arn))
    except client.StreamGone as error:
        raise StreamGone(arn) from error


class ShardReader:
    """Reads one shard from a position on."""

    def __init__(
        self, call: Call, stream_arn: str, shard_id: str, position: Position, *, latest: bool
    ) -> None:
        self.shard_id = shard_id
        self._call = call
        self._reading = ShardReading(
            stream_arn, shard_id, after=position.after, since_s=position.since_s, latest=latest, tell=_tell
        )

    def open(self) -> None:
        """Find the place to read from now; LATEST means this moment, and not the first reading."""
        _answered(self._call, self._reading.open())

    def read(self, limit: int = STREAM_RECORDS_MAX) -> Page:
        """Return the next records; none where there are none yet. What may pass is raised, to choose when."""
        return _answered(self._call, self._reading.read(limit))


def _answered(call: Call, steps: Program[R]) -> R:
    """Return what steps come to, each ask made once."""
    try:
        ask = next(steps)
        while True:
            assert isinstance(ask, Ask), "shards are read one call at a time"
            try:
                answer = call(ask.operation, ask.request)
            except TavolaError as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is not generic


def _tell(loss: str, shard_id: str, reached: str | None) -> None:
    if loss == "gone":
        _log.warning("%s is no longer in the stream; what was left in it is lost to this trigger", shard_id)
    else:
        _log.warning(
            "%s: records after %s are older than the stream keeps them; those are lost to this trigger, and it "
            "goes on from the oldest that is there (TRIM_HORIZON)",
            shard_id,
            reached or "its beginning",
        )
