"""The limit of 400 KB, and concurrent requests: nothing is lost, nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from tavola.apps.service_desk.web import create
from tavola.limits import ITEM_BYTES_MAX
from tavola.values import item_size
from tests.apps.conftest import Run, Target
from tests.apps.service_desk.conftest import SECRET, Desk
from tests.apps.service_desk.test_rest import problem


def _bytes_left(desk: Desk) -> int:
    """Return by how many bytes the only item may still grow."""
    (item,) = desk.items()
    return ITEM_BYTES_MAX - item_size(item)


def _longest_description(desk: Desk, caller: str, sign: str) -> str:
    """Return the longest description of repeated characters that fits into a caller's ticket."""
    probe = desk.report(caller=caller, issue="x").json()
    (item,) = [each for each in desk.items() if each["ticket_id"]["S"] == probe["ticket_id"]]
    return sign * ((ITEM_BYTES_MAX - item_size(item) + 1) // len(sign.encode()))


@pytest.mark.parametrize("sign", ["x", "è", "\u0001", "🙂"])
def test_a_ticket_of_400_kb_is_stored_and_one_more_byte_is_not(desk: Desk, sign: str) -> None:
    """The limit is DynamoDB's own: bytes of UTF-8, however long the request is."""
    longest = _longest_description(desk, "edge", sign)

    created = desk.report(caller="edge", issue=longest)
    refusal = problem(desk.report(caller="edge", issue=longest + sign), 413, "item-too-large")

    assert created.status_code == 201
    assert desk.client.get(created.headers["location"]).json()["issue_description"] == longest
    assert "400 KB" in refusal["detail"]
    assert "Shorten" in refusal["detail"]
    assert len(desk.items()) == 2


def test_wrong_16_a_comment_beyond_400_kb_is_refused(desk: Desk) -> None:
    """Pitfall 16: the last byte can be used, the next gets a 413 with advice, and the ticket stays unchanged."""
    ticket_id = desk.report().json()["ticket_id"]
    desk.comment(ticket_id, "x")
    before = _bytes_left(desk)
    desk.comment(ticket_id, "x")
    each = before - _bytes_left(desk) - 1  # what a comment takes besides its text

    fills = "y" * (_bytes_left(desk) - each)
    refusal = problem(desk.comment(ticket_id, fills + "y"), 413, "item-too-large")
    assert desk.comment(ticket_id, fills).status_code == 201

    assert _bytes_left(desk) == 0
    assert "its own item" in refusal["detail"]
    assert "another ticket" in refusal["detail"]
    standing = desk.client.get(f"/tickets/{ticket_id}").json()
    problem(desk.comment(ticket_id, "z"), 413, "item-too-large")
    assert desk.client.get(f"/tickets/{ticket_id}").json() == standing
    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()
    assert listed["items"] == [standing]


def test_a_body_that_no_ticket_could_hold_is_not_read(desk: Desk) -> None:
    """A body that is larger than 400 KB even in its longest encoding is refused before it is parsed."""
    refusal = problem(desk.report(issue="x" * 2_600_000), 413, "too-large")

    assert "bytes" in refusal["detail"]
    assert desk.items() == []


def test_wrong_17_large_tickets_are_listed_past_one_megabyte(desk: Desk) -> None:
    """Pitfall 17: a page has ten tickets, although one response of DynamoDB ends at 1 MB."""
    made = [desk.report(issue=str(n) * 390_000).json()["ticket_id"] for n in range(4)]

    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()

    assert [ticket["ticket_id"] for ticket in listed["items"]] == made[::-1]
    assert listed["next"] is None


@asynccontextmanager
async def concurrent_client(target: Target) -> AsyncIterator[tuple[AsyncClient, Any]]:
    """Yield a client that sends many requests at the same time, and the desk's store."""
    application = create(target.settings(secret=SECRET))
    async with application.router.lifespan_context(application):
        transport = ASGITransport(application)
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client, application.state.desk


def test_two_hundred_duplicates_make_one_ticket(target: Target, run: Run[Any]) -> None:
    """Concurrent creates with one key make one ticket and get the same response."""
    body = {"caller_id": "poc-user-001", "issue_description": "No network"}

    async def work() -> tuple[list[Any], int]:
        async with concurrent_client(target) as (client, store):
            answers = await asyncio.gather(
                *(client.post("/tickets", json=body, headers={"Idempotency-Key": "k-1"}) for _ in range(200))
            )
            table = {"TableName": target.prefix + "poc-itsm-tickets", "Select": "COUNT"}
            return answers, (await store.db.call("Scan", table))["Count"]

    answers, count = run(work())

    assert count == 1
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1


def test_concurrent_comments_are_all_stored(target: Target, run: Run[Any]) -> None:
    """Fifty concurrent comments are stored, each once; none overwrites another."""

    async def work() -> tuple[list[Any], dict[str, Any]]:
        async with concurrent_client(target) as (client, _):
            made = await client.post("/tickets", json={"caller_id": "c", "issue_description": "x"})
            where = made.headers["location"]
            answers = await asyncio.gather(
                *(client.post(f"{where}/comments", json={"comment_text": f"comment {n}"}) for n in range(50))
            )
            return answers, (await client.get(where)).json()

    answers, ticket = run(work())

    assert {answer.status_code for answer in answers} == {201}
    assert sorted(comment["comment_text"] for comment in ticket["comments"]) == sorted(
        f"comment {n}" for n in range(50)
    )
    assert {len(answer.json()["comments"]) for answer in answers} == set(range(1, 51)), "each saw itself last"


def test_of_comments_with_the_same_etag_one_is_stored(target: Target, run: Run[Any]) -> None:
    """If-Match is checked where the item is: of ten comments for one version, one is added."""

    async def work() -> tuple[list[int], int]:
        async with concurrent_client(target) as (client, _):
            made = await client.post("/tickets", json={"caller_id": "c", "issue_description": "x"})
            where, etag = made.headers["location"], made.headers["etag"]
            answers = await asyncio.gather(
                *(
                    client.post(f"{where}/comments", json={"comment_text": "x"}, headers={"If-Match": etag})
                    for _ in range(10)
                )
            )
            ticket = (await client.get(where)).json()
            return sorted(answer.status_code for answer in answers), len(ticket["comments"])

    assert run(work()) == ([201] + [412] * 9, 1)
