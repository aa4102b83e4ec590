"""Many at once, over real sockets: duplicates make one ticket, and changes that race leave one history."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import FastAPI

from tavola.apps.shell import running_server
from tavola.apps.support_desk.web import create
from tests.apps.conftest import Run, Target
from tests.apps.support_desk.desks import SECRET

DUPLICATES = 200


async def send_request(
    address: tuple[str, int], method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], Any]:
    """Send one request on a connection of its own and return status, headers and JSON."""
    content = b"" if body is None else json.dumps(body).encode()
    all_headers = {
        "Host": "127.0.0.1",
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *others = head.decode("latin-1").split("\r\n")
    found = {name.lower(): value for name, _, value in (line.partition(": ") for line in others)}
    return int(first.split()[1]), found, json.loads(rest) if rest else None


def application(target: Target) -> FastAPI:
    """Return a desk on a target."""
    return create(target.settings(secret=SECRET))


def test_s08_two_hundred_duplicates_make_one_ticket(target: Target, run: Run[Any]) -> None:
    """Of two hundred requests under one key, at the same time, one opens the ticket and all are told of it."""

    async def steps() -> tuple[list[Any], Any]:
        async with running_server(application(target), port=0) as served:
            address = (served.address.host, served.address.port)
            body = {"customer_id": "cust-001", "symptom_text": "Nothing prints."}
            requests = [
                send_request(address, "POST", "/tickets", body, Idempotency_Key="7f3a")
                for _ in range(DUPLICATES)
            ]
            answers = await asyncio.gather(*requests)
            return answers, await send_request(address, "GET", "/tickets?customer=cust-001")

    answers, listed = run(steps())

    assert {status for status, _, _ in answers} == {201}
    assert len({body["ticket_id"] for _, _, body in answers}) == 1
    assert sum("idempotency-replayed" not in headers for _, headers, _ in answers) == 1
    assert len(listed[2]["items"]) == 1


def test_who_means_whatever_version_is_not_told_of_another(target: Target, run: Run[Any]) -> None:
    """`If-Match: *`, and no If-Match where it is optional, are tried again on what others left: never a 412 for a version nobody named."""

    async def steps() -> tuple[list[int], list[int], Any]:
        async with running_server(application(target), port=0) as served:
            address = (served.address.host, served.address.port)
            body = {"customer_id": "cust-001", "symptom_text": "Nothing prints."}
            _, _, opened = await send_request(address, "POST", "/tickets", body)
            path = f"/tickets/{opened['ticket_id']}"
            changes = [
                send_request(address, "PATCH", path, {"subject": f"subject {n}"}, If_Match="*")
                for n in range(12)
            ]
            handed = [
                send_request(address, "POST", f"{path}/escalation", {"engineer": f"eng-{n}", "reason": "r"})
                for n in range(6)
            ]
            answers = await asyncio.gather(*changes, *handed)
            statuses = [status for status, _, _ in answers]
            return (
                statuses[:12],
                statuses[12:],
                await send_request(address, "GET", f"{path}/events?limit=100"),
            )

    changed, handed, events = run(steps())

    assert set(changed) | set(handed) <= {200, 409}
    assert changed.count(200) > 6  # 409 is for who was overtaken eight times
    numbers = [each["sequence"] for each in events[2]["items"]]
    assert numbers == list(range(1, 2 + changed.count(200) + handed.count(200)))


def test_changes_that_race_leave_one_history(target: Target, run: Run[Any]) -> None:
    """Of changes meant for one version, one is done and the others are told; the events say what happened, in order."""

    async def steps() -> tuple[list[int], Any, Any]:
        async with running_server(application(target), port=0) as served:
            address = (served.address.host, served.address.port)
            body = {"customer_id": "cust-001", "symptom_text": "Nothing prints."}
            _, _, opened = await send_request(address, "POST", "/tickets", body)
            path = f"/tickets/{opened['ticket_id']}"
            changes = [
                send_request(address, "PATCH", path, {"status": status}, If_Match='"1"')
                for status in ("PROCESSING", "FAILED") * 10
            ]
            statuses = [status for status, _, _ in await asyncio.gather(*changes)]
            return (
                statuses,
                await send_request(address, "GET", path),
                await send_request(address, "GET", f"{path}/events"),
            )

    statuses, ticket, events = run(steps())

    assert sorted(statuses) == [200] + [412] * 19
    assert ticket[2]["version"] == 2
    assert [each["sequence"] for each in events[2]["items"]] == [1, 2]
    assert events[2]["items"][1]["new_status"] == ticket[2]["status"]
