"""The server is killed in the middle of creates, and started again: nothing is there by halves, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tavola import connect_async
from tavola.apps.support_desk.model import Event, RequestOutcome, Ticket
from tests.apps.processes import Started, send_request, start_command

pytestmark = pytest.mark.slow  # a process a test: `make applications` runs it

KILLED_AFTER = (1, 6, 15)  # answers
REQUESTS = 40
AT_ONCE = 8


def body_of(key: str) -> dict[str, str]:
    """Return the request that is sent under a key."""
    return {"customer_id": f"cust-{key[-1]}", "symptom_text": f"Nothing prints, says {key}"}


def test_s08_a_server_killed_in_creates_leaves_each_whole_or_absent(tmp_path: Path) -> None:
    """Killed at several points under concurrent creates, each ticket has its event and its answer, or nothing is there; sent again, each is one."""
    store = tmp_path / "desk.db"
    answered: dict[str, str] = {}
    partly = 0
    keys: list[str] = []
    for round_, after in enumerate(KILLED_AFTER):
        fresh = [f"r{round_}-{number}" for number in range(REQUESTS)]
        keys += fresh
        with start_command("app", "support-desk", "--store", str(store), "--port", "0") as server:
            answered |= _create_until_killed(server, fresh, after)
        found = asyncio.run(_found(store))
        assert found["tickets"] == found["events"] == found["outcomes"].keys()
        assert {found["outcomes"][ticket] for ticket in found["tickets"]} >= answered.keys()
        assert len(found["tickets"]) <= len(keys)
        partly += len([key for key in fresh if key not in found["outcomes"].values()])
    assert 0 < len(answered) < len(keys)
    assert partly > 0  # some requests were under way or waiting, so the kill came in their middle

    with start_command("app", "support-desk", "--store", str(store), "--port", "0") as server:
        opened = {key: _opened(server, key) for key in keys}
    in_the_end = asyncio.run(_found(store))

    assert {key: opened[key] for key in answered} == answered
    assert set(opened.values()) == in_the_end["tickets"] == in_the_end["events"]
    assert len(in_the_end["tickets"]) == len(keys)


def _opened(server: Started, key: str) -> str:
    status, text = send_request(f"{server.startup['url']}/tickets", body_of(key), Idempotency_Key=key)
    assert status == 201, text
    ticket_id: str = json.loads(text)["ticket_id"]
    return ticket_id


def _create_until_killed(server: Started, keys: list[str], after: int) -> dict[str, str]:
    """Send creates, several at once and one of them half, kill the server after so many answers; return what was answered."""
    answered: dict[str, str] = {}
    enough = threading.Event()

    def send(key: str) -> None:
        try:
            answered[key] = _opened(server, key)
        except (OSError, HTTPException):
            return  # killed meanwhile, perhaps in the middle of an answer
        if len(answered) >= after:
            enough.set()

    with socket.create_connection((server.startup["host"], server.startup["port"])) as half:
        half.sendall(_half_a_request())
        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = [pool.submit(send, key) for key in keys]
            assert enough.wait(20)
            server.process.kill()
            for each in done:
                each.result()
    server.process.wait()
    return answered


def _half_a_request() -> bytes:
    content = json.dumps(body_of("half")).encode()
    head = (
        "POST /tickets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: half\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content[: len(content) // 2]


async def _found(path: Path) -> dict[str, Any]:
    """Return what a file holds: tickets, tickets with an event, and the request of each ticket that has an answer."""
    async with connect_async(f"file:{path}") as db:
        tickets = {each.ticket_id async for each in await db.scan(Ticket)}
        events = [each.ticket_id async for each in await db.scan(Event)]
        outcomes = [each async for each in await db.scan(RequestOutcome)]
    assert len(events) == len(set(events))
    answers = {json.loads(each.answer or "{}")["ticket_id"]: each.request for each in outcomes}
    return {"tickets": tickets, "events": set(events), "outcomes": answers}
