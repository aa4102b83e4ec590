"""Writes of one turn commit together, and only then are they answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.server.responses import CONTINUE, Response, ResponseEncoder, ResponseQueue
from tests.server.standin import StandIn


class Turns:
    """A loop whose turns the test ends."""

    def __init__(self) -> None:
        self.due: list[Callable[[], Any]] = []

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.due.append(callback)

    def end(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class Client:
    def __init__(self) -> None:
        self.got: list[tuple[Response, bool]] = []

    def send(self, response: Response, close: bool) -> None:
        self.got.append((response, close))


@pytest.fixture
def engine() -> StandIn:
    return StandIn()


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def commits(engine: StandIn, turns: Turns) -> ResponseQueue:
    loop = cast(asyncio.AbstractEventLoop, turns)
    return ResponseQueue(engine, ResponseEncoder(ManualClock(), SeededEntropy(1)), loop)


def _write(commits: ResponseQueue, engine: StandIn, client: Client, answer: bytes) -> None:
    commits.open_group()
    engine.execute("PutItem", b'{"key":"k"}', DEFAULT_SCOPE)
    commits.deliver(client, answer, False)


def test_a_read_without_writes_is_answered_at_once(commits: ResponseQueue) -> None:
    """If nothing was written, no response waits."""
    client = Client()
    commits.open_group()
    commits.deliver(client, b"read", False)

    assert client.got == [(b"read", False)]


def test_a_write_waits_for_the_commit(commits: ResponseQueue, engine: StandIn, turns: Turns) -> None:
    """The answer of a write is sent when the write is durable, not before."""
    client = Client()
    _write(commits, engine, client, b"written")

    assert client.got == []
    turns.end()
    assert engine.rows
    assert client.got == [(b"written", False)]


def test_a_read_after_a_write_waits_too(commits: ResponseQueue, engine: StandIn, turns: Turns) -> None:
    """A read in the turn of a write may reveal it, so it waits with it; order is preserved."""
    writer, reader = Client(), Client()
    _write(commits, engine, writer, b"written")
    commits.deliver(reader, b"read", False)
    commits.deliver(writer, b"second", True)

    assert reader.got == []
    turns.end()
    assert reader.got == [(b"read", False)]
    assert writer.got == [(b"written", False), (b"second", True)]


def test_many_writes_share_one_commit(commits: ResponseQueue, engine: StandIn, turns: Turns) -> None:
    """All writes of a turn cost one commit, and the next turn has its own."""
    client = Client()
    for _ in range(5):
        _write(commits, engine, client, b"written")
    turns.end()
    assert engine.commits == 1

    _write(commits, engine, client, b"written")
    turns.end()
    assert engine.commits == 2


def test_a_failed_commit_fails_every_answer(
    commits: ResponseQueue, engine: StandIn, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    """If the commit fails, every response that waited for it is an internal error; none reveals the write."""
    engine.commit_error = OSError("no space")
    clients = [Client() for _ in range(3)]
    for client in clients:
        _write(commits, engine, client, b"written")
    commits.deliver(clients[0], CONTINUE, False)
    commits.deliver(clients[1], b"", True)
    turns.end()

    assert not engine.rows
    for client in clients:
        payload, _ = client.got[0]
        assert isinstance(payload, bytes)
        assert payload.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert b"InternalServerError" in payload
        assert b"no space" not in payload
    assert clients[0].got[1:] == [(CONTINUE, False)]  # it reveals nothing of the engine
    assert clients[1].got[1:] == [(b"", True)]
    assert "no space" in caplog.text


def test_after_a_failed_commit_the_next_group_is_a_new_one(
    commits: ResponseQueue, engine: StandIn, turns: Turns
) -> None:
    """A failure affects only the responses that waited for it."""
    client = Client()
    engine.commit_error = OSError("once")
    _write(commits, engine, client, b"lost")
    turns.end()
    engine.commit_error = None
    _write(commits, engine, client, b"kept")
    turns.end()

    assert client.got[1] == (b"kept", False)


def test_a_write_outside_a_request_is_committed(
    commits: ResponseQueue, engine: StandIn, turns: Turns
) -> None:
    """A response never waits for a commit that does not happen."""
    client = Client()
    engine.collect_writes()
    engine.execute("PutItem", b'{"key":"k"}', DEFAULT_SCOPE)
    commits.deliver(client, b"read", False)
    turns.end()

    assert client.got == [(b"read", False)]


def test_finish_without_a_group_does_nothing(commits: ResponseQueue, engine: StandIn) -> None:
    """Stopping without pending requests commits nothing."""
    commits.commit_and_send()

    assert engine.commits == 0
