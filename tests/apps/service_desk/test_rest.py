"""The four operations over HTTP, on every target: valid requests, and every kind of invalid one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response

from tavola.apps.service_desk.model import ServiceTicket
from tavola.apps.service_desk.store import ServiceDeskStore
from tests.apps.service_desk.conftest import Desk

NUMBER = "+39 06 0000 0000"


def problem(answer: Response, status: int, slug: str) -> dict[str, Any]:
    """Return a problem document after checking its status and code."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
        answer.text
    )
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"urn:tavola:problem:{slug}"
    assert document["status"] == status
    assert document["detail"]
    return document


def test_d02_report_read_comment_and_list(desk: Desk) -> None:
    """The four operations return exactly the JSON of the document."""
    made = desk.report()

    assert made.status_code == 201
    ticket = made.json()
    assert ticket == {
        "ticket_id": ticket["ticket_id"],
        "caller_id": "poc-user-001",
        "issue_description": "My laptop won't turn on",
        "status": "open",
        "created_at": "2026-02-09T12:20:26.343883Z",
        "updated_at": "2026-02-09T12:20:26.343883Z",
        "comments": [],
    }
    assert list(ticket) == [
        "ticket_id", "caller_id", "issue_description", "status", "created_at", "updated_at", "comments",
    ]  # fmt: skip
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", ticket["ticket_id"])
    assert made.headers["location"] == f"/tickets/{ticket['ticket_id']}"

    read = desk.client.get(made.headers["location"])
    assert (read.status_code, read.json()) == (200, ticket)

    commented = desk.comment(ticket["ticket_id"])
    after = {
        **ticket,
        "updated_at": "2026-02-09T12:20:27.343883Z",
        "comments": [{"comment_text": "Tried restarting", "added_at": "2026-02-09T12:20:27.343883Z"}],
    }
    assert (commented.status_code, commented.json()) == (201, after)
    assert commented.headers["location"] == made.headers["location"]

    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"})
    assert (listed.status_code, listed.json()) == (200, {"items": [after], "next": None})
    assert "link" not in listed.headers


def test_d01_the_item_has_exactly_the_documents_attributes(desk: Desk) -> None:
    """No tag, version or request key is stored."""
    ticket_id = desk.report(Idempotency_Key="k-1").json()["ticket_id"]
    desk.comment(ticket_id)

    (item,) = desk.items()

    added = {"S": "2026-02-09T12:20:27.343883Z"}
    assert item == {
        "ticket_id": {"S": ticket_id},
        "caller_id": {"S": "poc-user-001"},
        "issue_description": {"S": "My laptop won't turn on"},
        "status": {"S": "open"},
        "created_at": {"S": "2026-02-09T12:20:26.343883Z"},
        "updated_at": added,
        "comments": {"L": [{"M": {"comment_text": {"S": "Tried restarting"}, "added_at": added}}]},
    }


def test_wrong_10_times_have_a_zone_and_six_digits(desk: Desk) -> None:
    """Pitfall 10: a time on the full second is also written with microseconds and Z, so that text sorts as time."""
    desk.clock.set(1_770_639_699.0)

    made = desk.report().json()

    assert made["created_at"] == "2026-02-09T12:21:40.000000Z"


def test_wrong_16_a_comment_on_no_ticket_makes_no_ghost(desk: Desk) -> None:
    """Pitfall 16: a comment on an unknown ticket is a 404, and nothing is stored."""
    refusal = problem(desk.comment("33567ee8-f182-4f8a-b03e-2f1515915471"), 404, "not-found")

    assert refusal["instance"] == "/tickets/33567ee8-f182-4f8a-b03e-2f1515915471/comments"
    assert desk.items() == []


def test_wrong_16_an_existing_ghost_is_not_a_ticket(desk: Desk) -> None:
    """Pitfall 16: a ghost that another program created is a 404 for reading and commenting, and stays unchanged."""
    ghost = {"ticket_id": {"S": "ghost"}, "comments": {"L": []}, "updated_at": {"S": "2026-02-09T12:30:00Z"}}
    desk.put(ghost)

    problem(desk.client.get("/tickets/ghost"), 404, "not-found")
    problem(desk.comment("ghost"), 404, "not-found")

    assert desk.items() == [ghost]


def test_wrong_17_the_eleventh_ticket_has_a_cursor(desk: Desk) -> None:
    """Pitfall 17: a page has ten tickets, newest first, and cursors lead to every ticket of the caller once, and to no other."""
    made = [desk.report(issue=f"issue {n}").json() for n in range(23)]
    desk.report(caller="poc-user-002")

    pages = [desk.client.get("/tickets", params={"caller": "poc-user-001"})]
    while (cursor := pages[-1].json()["next"]) is not None:
        link = re.fullmatch(r'<(\?[^>]+)>; rel="next"', pages[-1].headers["link"])
        assert link is not None
        pages.append(desk.client.get("/tickets" + link[1]))
        direct = desk.client.get("/tickets", params={"caller": "poc-user-001", "cursor": cursor})
        assert direct.json() == pages[-1].json()

    assert [len(page.json()["items"]) for page in pages] == [10, 10, 3]
    assert [ticket for page in pages for ticket in page.json()["items"]] == made[::-1]


def test_ten_tickets_are_one_page(desk: Desk) -> None:
    """Exactly ten tickets have no cursor to an empty second page."""
    for n in range(10):
        desk.report(issue=f"issue {n}")

    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()

    assert len(listed["items"]) == 10
    assert listed["next"] is None


def test_a_number_is_one_caller_however_it_is_written(desk: Desk) -> None:
    """A list can be requested by the number, in any spelling, escaped or not, and by the stored caller ID."""
    hashed = desk.report(caller=NUMBER).json()["caller_id"]
    assert re.fullmatch(r"tel:[0-9a-f]{64}", hashed)
    desk.report(caller="0039-06-0000-0000")

    for query in (
        quote("+39 06 0000 0000"),
        "+390600000000",  # a plus in a query is a space, and is meant as a plus
        "+39%2006%200000%200000",
        "00390600000000",
        "%2B39(06)00000000",
        quote(hashed),
    ):
        listed = desk.client.get(f"/tickets?caller={query}")
        assert listed.status_code == 200, (query, listed.text)
        assert [ticket["caller_id"] for ticket in listed.json()["items"]] == [hashed, hashed], query


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ({"caller_id": "poc-user-001"}, 422, "invalid"),
        ({"issue_description": "x"}, 422, "invalid"),
        ({"caller_id": "", "issue_description": "x"}, 422, "invalid"),
        ({"caller_id": "poc-user-001", "issue_description": ""}, 422, "invalid"),
        ({"caller_id": "poc-user-001", "issue_description": " \n\t"}, 422, "invalid"),
        ({"caller_id": "poc-user-001", "issue_description": 7}, 422, "invalid"),
        ({"caller_id": 390600000000, "issue_description": "x"}, 422, "invalid"),
        ({"caller_id": "poc-user-001", "issue_description": "x", "status": "closed"}, 422, "invalid"),
        ({"caller_id": "06 0000 0000", "issue_description": "x"}, 422, "caller-refused"),
        ({"caller_id": "first last", "issue_description": "x"}, 422, "caller-refused"),
        ({"caller_id": "x" * 129, "issue_description": "x"}, 422, "invalid"),
        ([], 422, "invalid"),
        (None, 422, "invalid"),
    ],
)
def test_an_invalid_ticket_is_refused(desk: Desk, body: Any, status: int, slug: str) -> None:
    """Each mistake has its own 4xx that names its location; nothing is stored."""
    problem(desk.client.post("/tickets", json=body), status, slug)

    assert desk.items() == []


@pytest.mark.parametrize(
    "body", [{}, {"comment_text": ""}, {"comment_text": " "}, {"comment_text": None}, {"text": "x"}, "x"]
)
def test_an_invalid_comment_is_refused(desk: Desk, body: Any) -> None:
    """A comment has only a text; the ticket stays unchanged."""
    made = desk.report()

    problem(desk.client.post(f"{made.headers['location']}/comments", json=body), 422, "invalid")

    assert desk.client.get(made.headers["location"]).json() == made.json()


def test_bodies_that_are_not_json_are_refused(desk: Desk) -> None:
    """Malformed JSON and truncated characters are a 400, another content type is a 415."""
    headers = {"Content-Type": "application/json"}
    broken = desk.client.post("/tickets", content=b'{"caller_id": ', headers=headers)
    half = desk.client.post(
        "/tickets", content=rb'{"caller_id": "c", "issue_description": "\ud800"}', headers=headers
    )
    form = desk.client.post("/tickets", data={"caller_id": "c", "issue_description": "x"})

    problem(broken, 400, "malformed")
    problem(half, 400, "malformed")
    problem(form, 415, "media-type")


@pytest.mark.parametrize(
    ("query", "status", "slug"),
    [
        ("", 422, "caller-refused"),
        ("?caller=", 422, "caller-refused"),
        ("?caller=a&caller=b", 422, "caller-refused"),
        ("?caller=06%200000%200000", 422, "caller-refused"),
        ("?caller=%20", 422, "caller-refused"),
        ("?caller=poc-user-001&cursor=nonsense", 400, "cursor-refused"),
        (f"?caller={'x' * 129}", 422, "caller-refused"),
        (f"?caller=a&cursor={'x' * 9_000}", 422, "invalid"),
    ],
)
def test_an_invalid_list_request_is_refused(desk: Desk, query: str, status: int, slug: str) -> None:
    """A list names one caller and continues at a cursor of ours."""
    problem(desk.client.get(f"/tickets{query}"), status, slug)


def test_a_cursor_belongs_to_its_caller(desk: Desk) -> None:
    """A cursor of another caller's list, or a changed one, is refused."""
    for n in range(11):
        desk.report(issue=f"issue {n}")
    cursor = desk.client.get("/tickets", params={"caller": "poc-user-001"}).json()["next"]

    other = desk.client.get("/tickets", params={"caller": "poc-user-002", "cursor": cursor})
    changed = desk.client.get("/tickets", params={"caller": "poc-user-001", "cursor": cursor[:-4] + "AAAA"})

    problem(other, 400, "cursor-refused")
    problem(changed, 400, "cursor-refused")


@pytest.mark.parametrize("ticket_id", ["unknown", "%20", "a%2Fb", "x" * 3_000, "%C3%A8" * 1_100])
def test_an_unknown_id_is_not_found(desk: Desk, ticket_id: str) -> None:
    """Any unknown ID is a 404."""
    assert desk.client.get(f"/tickets/{ticket_id}").status_code == 404
    assert desk.comment(ticket_id).status_code == 404
    assert desk.items() == []


def test_other_methods_are_refused(desk: Desk) -> None:
    """There are only four operations: nothing updates or deletes a ticket."""
    where = desk.report().headers["location"]

    for method in ("PUT", "PATCH", "DELETE"):
        answer = desk.client.request(method, where, json={})
        problem(answer, 405, "method-not-allowed")
        assert "GET" in answer.headers["allow"]


class TestETags:
    """A ticket has no version number; its ETag is a digest of its JSON."""

    def test_an_unchanged_ticket_is_not_sent_again(self, desk: Desk) -> None:
        """304 while nothing changed, 200 with another ETag after a comment."""
        made = desk.report()
        where = made.headers["location"]
        first = desk.client.get(where)
        etag = first.headers["etag"]
        assert made.headers["etag"] == etag

        again = desk.client.get(where, headers={"If-None-Match": etag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)

        commented = desk.comment(made.json()["ticket_id"])
        after = desk.client.get(where, headers={"If-None-Match": etag})
        assert after.status_code == 200
        assert after.headers["etag"] == commented.headers["etag"] != etag

    def test_a_comment_repeated_with_if_match_is_stored_once(self, desk: Desk) -> None:
        """A client that got no response repeats the comment with the same ETag, and gets a 412."""
        made = desk.report()
        ticket_id, etag = made.json()["ticket_id"], made.headers["etag"]
        assert desk.comment(ticket_id, If_Match=etag).status_code == 201

        problem(desk.comment(ticket_id, If_Match=etag), 412, "precondition-failed")

        (comment,) = desk.client.get(f"/tickets/{ticket_id}").json()["comments"]
        assert comment["comment_text"] == "Tried restarting"
        assert desk.comment(ticket_id, "another", If_Match="*").status_code == 201
        problem(desk.comment(ticket_id, If_Match="no etag"), 400, "malformed")
        problem(desk.comment("unknown", If_Match="*"), 404, "not-found")


class TestIdempotency:
    """A key makes one ticket and is not stored."""

    def test_a_replay_returns_the_first_response(self, desk: Desk) -> None:
        """The same key and payload return the first response, even after the ticket has changed."""
        first = desk.report(Idempotency_Key="k-1")
        desk.comment(first.json()["ticket_id"])

        again = desk.report(Idempotency_Key="k-1")

        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["location"] == first.headers["location"]
        assert again.headers["idempotency-replayed"] == "true"
        assert "idempotency-replayed" not in first.headers
        assert len(desk.items()) == 1

    def test_another_payload_is_refused(self, desk: Desk) -> None:
        """A key is for one request of one caller; the same key of another caller is independent."""
        first = desk.report(Idempotency_Key="k-1")

        problem(desk.report(issue="Something else", Idempotency_Key="k-1"), 422, "idempotency-mismatch")
        other = desk.report(caller="poc-user-002", Idempotency_Key="k-1")

        assert other.status_code == 201
        assert other.json()["ticket_id"] != first.json()["ticket_id"]
        assert len(desk.items()) == 2

    def test_a_number_in_another_spelling_is_the_same_request(self, desk: Desk) -> None:
        """A key is bound to the caller, not to the spelling of the number."""
        first = desk.report(caller="+39 06 0000 0000", Idempotency_Key="k-1")

        again = desk.report(caller="0039-06-00000000", Idempotency_Key="k-1")

        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"

    @pytest.mark.parametrize("key", ["", " ", "x" * 256, "k\u00e9y"])
    def test_an_invalid_key_is_refused(self, desk: Desk, key: str) -> None:
        """A key has 1 to 255 printable characters."""
        answer = desk.client.post(
            "/tickets",
            json={"caller_id": "c", "issue_description": "x"},
            headers=[(b"Idempotency-Key", key.encode("latin-1"))],
        )

        problem(answer, 422, "invalid")
        assert desk.items() == []

    def test_a_comment_takes_no_key(self, desk: Desk) -> None:
        """The item cannot store a key for a comment: 400, with advice on how to repeat a comment safely."""
        ticket_id = desk.report().json()["ticket_id"]

        refusal = problem(desk.comment(ticket_id, Idempotency_Key="k-1"), 400, "idempotency-not-kept")

        assert "If-Match" in refusal["detail"]
        assert desk.client.get(f"/tickets/{ticket_id}").json()["comments"] == []


def _stored(ticket_id: str, **more: Any) -> dict[str, Any]:
    """Return a ticket as another program stores it, without the fields that are None."""
    at = {"S": "2026-02-09T12:20:25.343883Z"}
    item = {
        "ticket_id": {"S": ticket_id}, "caller_id": {"S": "poc-user-001"}, "issue_description": {"S": "No sound"},
        "status": {"S": "open"}, "created_at": at, "updated_at": at, "comments": {"L": []}, **more,
    }  # fmt: skip
    return {name: value for name, value in item.items() if value is not None}


@pytest.mark.parametrize(
    "more", [{"updated_at": {"S": "2026-02-09T12:30:00Z"}}, {"comments": None}, {"status": None}]
)
def test_a_ticket_that_another_program_wrote_can_be_commented_on(desk: Desk, more: dict[str, Any]) -> None:
    """From the page and with If-Match, with or without fractions in its times, comments and a status."""
    desk.put(_stored("t1", **more))
    seen = desk.client.get("/tickets/t1")

    first = desk.comment("t1", "One", If_Match=seen.headers["etag"])
    late = desk.comment("t1", "Two", If_Match=seen.headers["etag"])
    paged = desk.client.post(
        "/ui/tickets/t1/comments", data={"comment": "Three", "known": "1"}, follow_redirects=False
    )

    assert (first.status_code, late.status_code, paged.status_code) == (201, 412, 303)
    (item,) = desk.items()
    assert [each["M"]["comment_text"]["S"] for each in item["comments"]["L"]] == ["One", "Three"]


def test_a_concurrent_status_change_fails_if_match(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """If-Match fails if another program changes the status and leaves the time unchanged."""
    desk.put(_stored("t1"))
    etag = desk.client.get("/tickets/t1").headers["etag"]
    plain = ServiceDeskStore.append

    async def overtaken(store: ServiceDeskStore, ticket_id: str, *arguments: Any) -> ServiceTicket:
        name = desk.target.prefix + "poc-itsm-tickets"
        await store.db.call("PutItem", {"TableName": name, "Item": _stored("t1", status={"S": "closed"})})
        return await plain(store, ticket_id, *arguments)

    monkeypatch.setattr(ServiceDeskStore, "append", overtaken)

    assert desk.comment("t1", "One", If_Match=etag).status_code == 412


@pytest.mark.parametrize(
    "more",
    [
        {"issue_description": None},
        {"status": {"N": "1"}},
        {"created_at": {"S": "yesterday"}},
        {"updated_at": {"S": "never"}},
        {"comments": {"NULL": True}},
        {"comments": {"L": [{"M": {"comment_text": {"S": "a private word"}}}]}},
    ],
)
def test_an_item_that_is_not_a_ticket_is_skipped(
    desk: Desk, more: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """An unreadable item of another program is left out of lists, takes no comment, and is logged."""
    strange = _stored("strange", **more)
    desk.put(strange)
    desk.put(_stored("good"))

    listed = desk.client.get("/tickets", params={"caller": "poc-user-001"})
    page = desk.client.get("/ui/tickets", params={"caller": "poc-user-001"})

    assert [each["ticket_id"] for each in listed.json()["items"]] == ["good"]
    assert page.status_code == 200
    assert desk.client.get("/tickets/strange").status_code == 404
    assert desk.comment("strange").status_code == 404
    assert desk.comment("strange", If_Match="*").status_code == 404
    assert strange in desk.items()
    assert "ticket_id='strange'" in caplog.text
    assert "private word" not in caplog.text
