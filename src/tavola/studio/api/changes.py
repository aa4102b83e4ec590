"""A table's stream: live as server-sent events, or page by page.

An event's id is a position in all shards. A browser sends it back after a lost connection and resumes exactly there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from starlette.responses import Response, StreamingResponse

from tavola.client.streams import StreamMissing
from tavola.clock import monotonic
from tavola.studio.changes import (
    Actors,
    ChangeTeller,
    Follower,
    Gap,
    Manners,
    Message,
    Start,
    StreamChange,
    decode_position,
    wanted_of,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.recognition import recogniser_for
from tavola.studio.studio import Studio
from tavola.web import Problem

_POLLS_S = {
    "memory": 0.1,
    "file": 0.1,
    "http": 0.25,
    "aws": 0.5,
}  # AWS lets a shard be read five times a second
_PAGE_MAX = 1_000
_PAGE_S = 5.0  # for how long a page is looked for; what it has by then is told, and where to go on
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that gathers would make the stream stutter
}
_LINE_ENDS = re.compile(rb"[\r\n]+")

View = Literal["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"]


@dataclass(frozen=True, slots=True)
class AskChanges:
    """Which changes of which table, and from where on."""

    table: str
    position: str = "latest"  # or start, or the id of an event
    last_event_id: str = ""  # what a browser gives when it comes back; it goes before the position
    events: str = ""  # some of INSERT, MODIFY, REMOVE, separated by commas
    entities: str = ""
    prefix: str = ""  # that a key attribute begins with
    after: str = ""  # a sequence number; with position=start, all past it again
    since: str = ""  # a moment, likewise
    limit: int = 200  # of a page; a live stream has none


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes, those of an item in their order, and the position to go on from."""

    changes: tuple[StreamChange, ...]
    gaps: tuple[Gap, ...]
    position: str
    more: bool


@dataclass(frozen=True, slots=True)
class AskStream:
    """Of which table; what else is given is what a stream would be asked, and is refused as it would be.

    A browser does not tell a page why its stream was refused, so it asks here before.
    """

    table: str
    events: str = ""
    after: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class StreamState:
    """Whether a table tells its changes, and how much it tells of each."""

    on: bool
    view: View | None
    arn: str | None
    shards: int  # open ones
    problem: Problem | None = None  # why there is nothing to follow


@dataclass(frozen=True, slots=True)
class SetStream:
    """Turn a table's stream on or off; one that is on in another view cannot be changed, only made anew."""

    table: str
    on: bool = True


async def live(studio: Studio, asked: AskChanges) -> Response:
    """Return the changes of a table as they come, as server-sent events."""
    follower = await _follower(studio, asked, follow=True)
    return StreamingResponse(_events(follower), media_type="text/event-stream", headers=_HEADERS)


async def page(studio: Studio, asked: AskChanges) -> ChangePage:
    """Return the changes that a table's stream has from a position on, and no more than are asked for."""
    follower = await _follower(studio, asked, follow=False)
    changes: list[StreamChange] = []
    gaps: list[Gap] = []
    position = follower.position
    more = False
    end_s = monotonic() + _PAGE_S
    async with aclosing(follower.messages()) as messages:
        async for message in messages:
            position = message.position or position
            if message.event == "changes":
                changes += msgspec.json.decode(message.data, type=_Changes).changes
            elif message.event == "gap":
                gaps.append(msgspec.json.decode(message.data, type=Gap))
            elif message.event == "problem":
                problem = msgspec.json.decode(message.data, type=Problem)
                raise Refused(
                    problem.code, problem.title, problem.detail, problem.remedy, status=problem.status
                )
            more = message.full or (message.event in ("changes", "position") and monotonic() >= end_s)
            if more:
                break
    return ChangePage(tuple(changes), tuple(gaps), position, more)


async def state(studio: Studio, asked: AskStream) -> StreamState:
    """Return whether a table has a stream that can be followed."""
    wanted_of(asked.events, "", "", asked.after, asked.since)
    described = (await studio.db.call("DescribeTable", {"TableName": asked.table}))["Table"]
    setting = described.get("StreamSpecification", {})
    arn = described.get("LatestStreamArn")
    if not setting.get("StreamEnabled"):
        return StreamState(on=False, view=None, arn=arn, shards=0, problem=_without(asked.table).problem)
    stream = (await studio.db.call("DescribeStream", {"StreamArn": arn}))["StreamDescription"]
    shards = [
        shard
        for shard in stream.get("Shards", ())
        if "EndingSequenceNumber" not in shard.get("SequenceNumberRange", {})
    ]
    return StreamState(on=True, view=setting["StreamViewType"], arn=arn, shards=len(shards))


async def switch(studio: Studio, asked: SetStream) -> StreamState:
    """Turn a stream on, with both images of each change, or off."""
    setting: Mapping[str, Any] = {"StreamEnabled": False}
    if asked.on:
        setting = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    await studio.db.call("UpdateTable", {"TableName": asked.table, "StreamSpecification": setting})
    return await state(studio, AskStream(asked.table))


class _Changes(msgspec.Struct):
    changes: list[StreamChange]


async def _follower(studio: Studio, asked: AskChanges, *, follow: bool) -> Follower:
    position = asked.last_event_id or asked.position
    teller = ChangeTeller(
        await recogniser_for(studio, asked.table),
        Actors(studio.table_design(asked.table), studio.where.region),
        wanted_of(asked.events, asked.entities, asked.prefix, asked.after, asked.since),
    )
    try:
        return await Follower.open(
            studio.db,
            asked.table,
            teller,
            start=_start(position),
            manners=_manners(studio, None if follow else asked.limit),
            follow=follow,
        )
    except StreamMissing as missing:
        raise _without(asked.table) from missing


def _manners(studio: Studio, limit: int | None) -> Manners:
    """Return how a live stream is followed, or how so many changes are gathered for a page."""
    poll_s = _POLLS_S[studio.where.kind]
    if limit is None:
        return Manners(poll_s=poll_s)
    return Manners(poll_s=poll_s, gather_s=_PAGE_S, changes_max=min(max(limit, 1), _PAGE_MAX))


def _start(position: str) -> Start:
    match position:
        case "latest" | "start":
            return position
        case _:
            return decode_position(position)


def _without(table: str) -> Refused:
    return Refused(
        "stream-off",
        "This table does not tell its changes",
        f"{table} has no stream, so nobody knows what was written to it.",
        "Turn its stream on: what is written from then on is told, with what the item was before.",
        status=409,
    )


async def _events(follower: Follower) -> AsyncIterator[bytes]:
    async with aclosing(follower.messages()) as messages:
        async for message in messages:
            yield event_of(message)


def event_of(message: Message) -> bytes:
    """Return a message as a server-sent event; a sign of life is a comment, which no page sees."""
    if message.event == "beat":
        return b": beat\n\n"
    place = b"" if message.position is None else b"id: %s\n" % message.position.encode()
    data = _LINE_ENDS.sub(b" ", message.data)  # JSON has none but between its tokens
    return b"event: %s\n%sdata: %s\n\n" % (message.event.encode(), place, data)


ENDPOINTS = (
    Endpoint("GET", "/changes", live, raw=True),
    Endpoint("GET", "/changes/page", page),
    Endpoint("GET", "/changes/stream", state),
    Endpoint("POST", "/changes/stream", switch, changes=True),
)
