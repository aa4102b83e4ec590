"""A table's stream: live as server-sent events, or page by page.

An event's id is a position in all shards. A browser sends it back after a lost connection and resumes exactly there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from tavola.client.streams import StreamMissing
from tavola.clock import monotonic
from tavola.model.tables import StreamView
from tavola.studio.changes import (
    Actors,
    ChangeRenderer,
    FollowOptions,
    StartPosition,
    StreamChange,
    StreamFollower,
    StreamGap,
    StreamMessage,
    decode_position,
    parse_filter,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import load_recogniser
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage
from tavola.web import Problem

# AWS allows five reads per shard and second
_POLLS_S = {
    "memory": 0.1,
    "file": 0.1,
    "http": 0.25,
    "aws": 0.5,
}
_PAGE_MAX = 1_000
_PAGE_S = 5.0  # the longest time to collect changes for one page
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a buffering proxy would delay events
}
_LINE_ENDS = re.compile(rb"[\r\n]+")


class ChangesRequest(ApiMessage):
    """Which changes of which table, and from which position."""

    table: str
    position: str = "latest"  # or "start", or the id of an event
    last_event_id: str = ""  # sent by a browser that reconnects; overrides `position`
    events: str = ""  # some of INSERT, MODIFY, REMOVE, separated by commas
    entities: str = ""
    prefix: str = ""  # of a key attribute
    after: str = ""  # a sequence number: only later changes
    since: str = ""  # a time: only later changes
    limit: int = 200  # of a page; ignored by a live stream


class ChangePage(ApiMessage):
    """A page of changes, those of each item in order, and the position of the next page."""

    changes: tuple[StreamChange, ...]
    gaps: tuple[StreamGap, ...]
    position: str
    more: bool


class StreamRequest(ApiMessage):
    """The table and the filter that a stream would be requested with, validated in the same way.

    A browser does not tell a page why its event stream was refused, so the page asks here first.
    """

    table: str
    events: str = ""
    after: str = ""
    since: str = ""


class StreamState(ApiMessage):
    """Whether a table has a stream, and which images its records contain."""

    on: bool
    view: StreamView | None
    arn: str | None
    shards: int  # open shards
    problem: Problem | None = None  # why the stream cannot be read


class SetStreamRequest(ApiMessage):
    """Turn a table's stream on or off. To change its view, turn it off and on again."""

    table: str
    on: bool = True


async def stream_changes(studio: Studio, params: ChangesRequest) -> Response:
    """Return a table's changes live, as server-sent events."""
    follower = await _open_follower(studio, params, follow=True)
    return StreamingResponse(_events(follower), media_type="text/event-stream", headers=_HEADERS)


async def read_changes(studio: Studio, params: ChangesRequest) -> ChangePage:
    """Return at most `limit` changes after a position in a table's stream."""
    follower = await _open_follower(studio, params, follow=False)
    changes: list[StreamChange] = []
    gaps: list[StreamGap] = []
    position = follower.position
    has_more = False
    end_s = monotonic() + _PAGE_S
    async with aclosing(follower.messages()) as messages:
        async for message in messages:
            position = message.position or position
            if message.event == "changes":
                changes += msgspec.json.decode(message.data, type=_ChangesData).changes
            elif message.event == "gap":
                gaps.append(msgspec.json.decode(message.data, type=StreamGap))
            elif message.event == "problem":
                problem = msgspec.json.decode(message.data, type=Problem)
                raise RequestRefused(
                    problem.code, problem.title, problem.detail, problem.remedy, status=problem.status
                )
            has_more = message.full or (message.event in ("changes", "position") and monotonic() >= end_s)
            if has_more:
                break
    return ChangePage(tuple(changes), tuple(gaps), position, has_more)


async def stream_state(studio: Studio, params: StreamRequest) -> StreamState:
    """Return the state of a table's stream."""
    parse_filter(params.events, "", "", params.after, params.since)
    described = (await studio.db.call("DescribeTable", {"TableName": params.table}))["Table"]
    setting = described.get("StreamSpecification", {})
    arn = described.get("LatestStreamArn")
    if not setting.get("StreamEnabled"):
        return StreamState(on=False, view=None, arn=arn, shards=0, problem=_stream_off(params.table).problem)
    stream = (await studio.db.call("DescribeStream", {"StreamArn": arn}))["StreamDescription"]
    shards = [
        shard
        for shard in stream.get("Shards", ())
        if "EndingSequenceNumber" not in shard.get("SequenceNumberRange", {})
    ]
    return StreamState(on=True, view=setting["StreamViewType"], arn=arn, shards=len(shards))


async def set_stream(studio: Studio, params: SetStreamRequest) -> StreamState:
    """Turn a stream off, or on with old and new images."""
    setting: Mapping[str, Any] = {"StreamEnabled": False}
    if params.on:
        setting = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    await studio.db.call("UpdateTable", {"TableName": params.table, "StreamSpecification": setting})
    return await stream_state(studio, StreamRequest(params.table))


class _ChangesData(msgspec.Struct):
    changes: list[StreamChange]


async def _open_follower(studio: Studio, params: ChangesRequest, *, follow: bool) -> StreamFollower:
    position = params.last_event_id or params.position
    renderer = ChangeRenderer(
        await load_recogniser(studio, params.table),
        Actors(studio.table_design(params.table), studio.where.region),
        parse_filter(params.events, params.entities, params.prefix, params.after, params.since),
    )
    try:
        return await StreamFollower.open(
            studio.db,
            params.table,
            renderer,
            start=_parse_start(position),
            options=_follow_options(studio, None if follow else params.limit),
            follow=follow,
        )
    except StreamMissing as missing:
        raise _stream_off(params.table) from missing


def _follow_options(studio: Studio, limit: int | None) -> FollowOptions:
    """Return the options for a live stream, or for a page of `limit` changes."""
    poll_s = _POLLS_S[studio.where.kind]
    if limit is None:
        return FollowOptions(poll_s=poll_s)
    return FollowOptions(poll_s=poll_s, gather_s=_PAGE_S, changes_max=min(max(limit, 1), _PAGE_MAX))


def _parse_start(position: str) -> StartPosition:
    match position:
        case "latest" | "start":
            return position
        case _:
            return decode_position(position)


def _stream_off(table: str) -> RequestRefused:
    return RequestRefused(
        "stream-off",
        "Streams are off for this table",
        f"{table} has no stream, so its changes are not recorded.",
        "Turn the stream on to see changes from then on, with old and new images.",
        status=409,
    )


async def _events(follower: StreamFollower) -> AsyncIterator[bytes]:
    async with aclosing(follower.messages()) as messages:
        async for message in messages:
            yield encode_event(message)


def encode_event(message: StreamMessage) -> bytes:
    """Return a message as a server-sent event; a heartbeat is a comment, which pages never see."""
    if message.event == "beat":
        return b": beat\n\n"
    event_id = b"" if message.position is None else b"id: %s\n" % message.position.encode()
    data = _LINE_ENDS.sub(b" ", message.data)  # safe: JSON has line ends only between tokens
    return b"event: %s\n%sdata: %s\n\n" % (message.event.encode(), event_id, data)


ENDPOINTS = (
    Endpoint("GET", "/changes", stream_changes, raw=True),
    Endpoint("GET", "/changes/page", read_changes),
    Endpoint("GET", "/changes/stream", stream_state),
    Endpoint("POST", "/changes/stream", set_stream, is_write=True),
)
