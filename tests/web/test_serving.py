"""A stream of events ends when serving ends; what has an end of its own is let come to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tavola.web import ListenAddress, RunningServer, running_server


class Streams:
    """An application with an endless stream and a slow answer, each of which waits for an event."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.go_on = asyncio.Event()
        self.application = Starlette(routes=[Route("/events", self.events), Route("/slow", self.slow)])

    async def events(self, request: Request) -> StreamingResponse:
        async def told() -> AsyncIterator[str]:
            yield "data: first\n\n"
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()

        return StreamingResponse(told(), media_type="text/event-stream")

    async def slow(self, request: Request) -> StreamingResponse:
        async def told() -> AsyncIterator[str]:
            yield "first "
            await self.go_on.wait()
            yield "last"

        return StreamingResponse(told(), media_type="text/plain")


async def begun(address: ListenAddress, path: str, accept: str) -> tuple[asyncio.StreamReader, Any]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
    await reader.readuntil(b"first")
    return reader, writer


async def ended_with_a_stream_open(accept: str) -> bool:
    streams = Streams()
    async with running_server(streams.application) as served:
        _, writer = await begun(served.address, "/events", accept)
    writer.close()
    return streams.cancelled.is_set()


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*"])
def test_a_stream_of_events_ends_with_the_server(caplog: pytest.LogCaptureFixture, accept: str) -> None:
    """Serving ends at once, although a browser or curl still listens; the stream is told, and nobody takes it for a mistake."""
    assert asyncio.run(asyncio.wait_for(ended_with_a_stream_open(accept), 5))
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def ended_with_an_answer_under_way(accept: str) -> bytes:
    streams = Streams()
    reading: asyncio.Task[bytes] | None = None
    async with running_server(streams.application) as served:
        assert isinstance(served, RunningServer)
        reader, writer = await begun(served.address, "/slow", accept)
        reading = asyncio.ensure_future(reader.readuntil(b"0\r\n\r\n"))
        asyncio.get_running_loop().call_later(0.05, streams.go_on.set)
    answer = await reading
    writer.close()
    return answer


@pytest.mark.parametrize("accept", ["text/plain", "text/event-stream, */*"])
def test_an_answer_under_way_is_finished(accept: str) -> None:
    """What is not endless comes to its end before serving does, whatever its reader would take."""
    assert b"last" in asyncio.run(asyncio.wait_for(ended_with_an_answer_under_way(accept), 5))


async def left_by_its_reader() -> bool:
    streams = Streams()
    async with running_server(streams.application) as served:
        _, writer = await begun(served.address, "/events", "text/event-stream")
        writer.close()
        await asyncio.wait_for(streams.cancelled.wait(), 5)
        return True


def test_a_stream_whose_reader_left_ends() -> None:
    """A browser that goes away ends its stream, and nobody writes to it for ever."""
    assert asyncio.run(left_by_its_reader())
