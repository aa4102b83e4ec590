"""The edge of 400 KB, and many at once: nothing is lost, nothing is half done."""

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


def _room(desk: Desk) -> int:
    """Return how many bytes the only item may still grow."""
    (item,) = desk.items()
    return ITEM_BYTES_MAX - item_size(item)


def _fits(desk: Desk, caller: str, sign: str) -> str:
    """Return the longest description of a sign that a ticket of a caller can have."""
    probe = desk.report(caller=caller, issue="x").json()
    (item,) = [each for each in desk.items() if each["ticket_id"]["S"] == probe["ticket_id"]]
    return sign * ((ITEM_BYTES_MAX - item_size(item) + 1) // len(sign.encode()))


@pytest.mark.parametrize("sign", ["x", "è", "\u0001", "🙂"])
def test_a_ticket_of_exactly_400_kb_is_kept_and_one_more_byte_is_not(desk: Desk, sign: str) -> None:
    """The edge is DynamoDB's own: bytes of UTF-8, however long the request that carries them."""
    longest = _fits(desk, "edge", sign)

    kept = desk.report(caller="edge", issue=longest)
    told = problem(desk.report(caller="edge", issue=longest + sign), 413, "item-too-large")

    assert kept.status_code == 201
    assert desk.client.get(kept.headers["location"]).json()["issue_description"] == longest
    assert "400 KB" in told["detail"]
    assert "Shorten" in told["detail"]
    assert len(desk.items()) == 2


def test_wrong_16_a_comment_that_would_pass_400_kb_is_told(desk: Desk) -> None:
    """Pitfall 16: the last byte is used, the next is a 413 that says what to do, and the ticket stays as it was."""
    ticket_id = desk.report().json()["ticket_id"]
    desk.comment(ticket_id, "x")
    before = _room(desk)
    desk.comment(ticket_id, "x")
    each = before - _room(desk) - 1  # what a comment takes besides its text

    fills = "y" * (_room(desk) - each)
    told = problem(desk.comment(ticket_id, fills + "y"), 413, "item-too-large")
    assert desk.comment(ticket_id, fills).status_code == 201

    assert _room(desk) == 0
    assert "an item of its own" in told["detail"]
    assert "another ticket" in told["detail"]
    standing = desk.client.get(f"/tickets/{ticket_id}").json()
    problem(desk.comment(ticket_id, "z"), 413, "item-too-large")
    assert desk.client.get(f"/tickets/{ticket_id}").json() == standing
    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()
    assert listed["items"] == [standing]


def test_a_body_that_no_ticket_could_hold_is_not_read(desk: Desk) -> None:
    """More than 400 KB in its longest spelling is refused before it is parsed."""
    told = problem(desk.report(issue="x" * 2_600_000), 413, "too-large")

    assert "bytes" in told["detail"]
    assert desk.items() == []


def test_wrong_17_large_tickets_are_listed_past_one_megabyte(desk: Desk) -> None:
    """Pitfall 17: a page is ten tickets and not one answer of DynamoDB, which ends at 1 MB."""
    made = [desk.report(issue=str(n) * 390_000).json()["ticket_id"] for n in range(4)]

    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()

    assert [ticket["ticket_id"] for ticket in listed["items"]] == made[::-1]
    assert listed["next"] is None


@asynccontextmanager
async def at_once(target: Target) -> AsyncIterator[tuple[AsyncClient, Any]]:
    """Give a client that sends many requests at the same time, and the desk's store."""
    application = create(target.settings(secret=SECRET))
    async with application.router.lifespan_context(application):
        transport = ASGITransport(application)
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client, application.state.desk


def test_two_hundred_duplicates_make_one_ticket(target: Target, run: Run[Any]) -> None:
    """However many send the same create under one key at the same time, there is one ticket and one answer."""
    body = {"caller_id": "poc-user-001", "issue_description": "No network"}

    async def work() -> tuple[list[Any], int]:
        async with at_once(target) as (client, store):
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


def test_comments_at_the_same_time_are_all_kept(target: Target, run: Run[Any]) -> None:
    """Fifty comments that come together are fifty comments, each once; none overwrites another."""

    async def work() -> tuple[list[Any], dict[str, Any]]:
        async with at_once(target) as (client, _):
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


def test_of_comments_with_one_etag_one_is_kept(target: Target, run: Run[Any]) -> None:
    """If-Match is decided where the item is: of ten that were written for one version, one is added."""

    async def work() -> tuple[list[int], int]:
        async with at_once(target) as (client, _):
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
