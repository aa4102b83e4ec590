"""The support desk as JSON over HTTP: every route, asked well and badly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tavola import ManualClock
from tavola.apps.shell import AppSettings
from tavola.apps.support_desk import attachments
from tavola.apps.support_desk.web import create
from tests.apps.conftest import Target
from tests.apps.support_desk.desks import TEXT, DeskClient, Served, started

NOON = datetime(2099, 11, 18, 12, tzinfo=UTC)


@pytest.fixture
def desk(served: Served, target: Target) -> DeskClient:
    """A desk on one of the targets."""
    return started(served, target)


@pytest.fixture(scope="module")
def refusing() -> Iterator[DeskClient]:
    """A desk in memory for what is refused before the store is asked, whichever it is."""
    application = create(AppSettings(target="memory:"))
    with TestClient(application, base_url="http://127.0.0.1", raise_server_exceptions=False) as http:
        yield DeskClient(http)


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at noon, ahead of every server's own."""
    return ManualClock(NOON.timestamp())


def problem(answer: Any, status: int, slug: str) -> Any:
    """Return the problem that an answer is, once it is known to be this one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["type"] == f"urn:tavola:problem:{slug}"
    assert found["status"] == status
    return found


# Tickets


def test_a_ticket_is_opened_and_read(desk: DeskClient) -> None:
    """POST gives 201 with the place and the version of the ticket; GET gives all of it."""
    answer = desk.http.post(
        "/tickets",
        json={"customer_id": "cust-001", "symptom_text": TEXT, "priority": "HIGH", "product": "printers"},
    )
    assert answer.status_code == 201
    ticket_id = answer.json()["ticket_id"]
    assert answer.headers["location"] == f"/tickets/{ticket_id}"
    assert answer.headers["etag"] == '"1"'
    assert "idempotency-replayed" not in answer.headers

    found = desk.http.get(answer.headers["location"])
    assert found.headers["etag"] == '"1"'
    ticket = found.json()
    moment = ticket["created_at"]
    assert moment.endswith("Z")
    assert ticket == {
        "ticket_id": ticket_id,
        "customer_id": "cust-001",
        "status": "NEW",
        "priority": "HIGH",
        "subject": "The printer prints grey stripes.",
        "symptom_text": TEXT,
        "text_continues": False,
        "product": "printers",
        "created_at": moment,
        "updated_at": moment,
        "completed_at": None,
        "assigned_to": None,
        "escalated_at": None,
        "escalation_reason": None,
        "version": 1,
        "next_statuses": ["PROCESSING", "FAILED", "ESCALATED"],
    }


def test_who_has_a_ticket_already_is_told_so(desk: DeskClient) -> None:
    """If-None-Match with the present version is a 304 without a body; with another it is the ticket."""
    ticket_id = desk.open()

    same = desk.http.get(f"/tickets/{ticket_id}", headers={"If-None-Match": '"7", "1"'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", '"1"')
    assert desk.http.get(f"/tickets/{ticket_id}", headers={"If-None-Match": '"2"'}).status_code == 200


def test_the_same_request_is_done_once(desk: DeskClient) -> None:
    """An Idempotency-Key gives the same ticket again, says so, and is refused for another request."""
    body = {"customer_id": "cust-001", "symptom_text": TEXT}
    key = {"Idempotency-Key": "7f3a"}
    first = desk.http.post("/tickets", json=body, headers=key)
    again = desk.http.post("/tickets", json=body, headers=key)

    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert len(desk.get("/tickets?customer=cust-001")["items"]) == 1
    other = desk.http.post("/tickets", json={**body, "priority": "LOW"}, headers=key)
    problem(other, 422, "idempotency-mismatch")
    problem(desk.http.post("/tickets", json=body, headers={"Idempotency-Key": "x" * 256}), 422, "invalid")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"symptom_text": "x"}, "#/customer_id"),
        ({"customer_id": "cust-001"}, "#/symptom_text"),
        ({"customer_id": "cust 1", "symptom_text": "x"}, "#/customer_id"),
        ({"customer_id": "c" * 129, "symptom_text": "x"}, "#/customer_id"),
        ({"customer_id": "a/b", "symptom_text": "x"}, "#/customer_id"),
        ({"customer_id": "cust-001", "symptom_text": "  \n "}, "#/symptom_text"),
        ({"customer_id": "cust-001", "symptom_text": "x", "priority": "URGENT"}, "#/priority"),
        ({"customer_id": "cust-001", "symptom_text": "x", "subject": "s" * 121}, "#/subject"),
        ({"customer_id": "cust-001", "symptom_text": "x", "colour": "red"}, "#/colour"),
        ({"customer_id": "cust-001", "symptom_text": "x", "embedding": [1.0, 2.0]}, "#/embedding"),
        ({"customer_id": "cust-001", "symptom_text": "x", "embedding": [0.0] * 64}, "#/embedding"),
        ([], "#"),
    ],
)
def test_a_ticket_that_cannot_be_opened(refusing: DeskClient, body: Any, pointer: str) -> None:
    """A field that is missing, wrong or unknown is named, and nothing is opened."""
    found = problem(refusing.http.post("/tickets", json=body), 422, "invalid")

    assert [each["pointer"] for each in found["errors"]] == [pointer]
    assert refusing.get("/tickets?customer=cust-001")["items"] == []


def test_bodies_that_are_none(desk: DeskClient) -> None:
    """What is no JSON is a 400, another type a 415, more than is taken a 413."""
    problem(
        desk.http.post("/tickets", content=b"{", headers={"content-type": "application/json"}),
        400,
        "malformed",
    )
    problem(
        desk.http.post("/tickets", content=b"x", headers={"content-type": "text/plain"}), 415, "media-type"
    )
    long = json.dumps({"customer_id": "cust-001", "symptom_text": "x" * 5_300_000})
    problem(
        desk.http.post("/tickets", content=long, headers={"content-type": "application/json"}),
        413,
        "too-large",
    )


def test_what_is_not_there(desk: DeskClient) -> None:
    """A ticket that nobody opened is a 404 wherever it is asked for, and a note on it makes none."""
    nobody = "/tickets/tkt_none"
    for path in ("", "/whole", "/text", "/events", "/feedback", "/similar", "/attachments/x.txt"):
        problem(desk.http.get(nobody + path), 404, "not-found")
    problem(desk.http.patch(nobody, json={"status": "READY"}, headers={"If-Match": "*"}), 404, "not-found")
    problem(desk.http.post(f"{nobody}/events", json={"note": "x"}), 404, "not-found")
    problem(
        desk.http.post(f"{nobody}/escalation", json={"engineer": "eng-1", "reason": "x"}), 404, "not-found"
    )
    problem(desk.http.post(f"{nobody}/feedback", json={"operator_id": "op-1", "rating": 3}), 404, "not-found")
    problem(desk.http.put(f"{nobody}/attachments/x.txt", content=b"x"), 404, "not-found")
    problem(desk.http.delete(f"{nobody}/attachments/x.txt"), 404, "not-found")
    assert desk.get("/tickets")["items"] == []
    problem(desk.http.get("/nothing"), 404, "not-found")
    refused = desk.http.delete("/tickets")
    problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "GET, HEAD, POST"


def test_a_long_text_is_kept_whole(desk: DeskClient) -> None:
    """A text that no item holds is cut in the ticket and whole at its own address."""
    text = "Line with é and 漢.\n" * 40_000
    ticket_id = desk.open(text=text.strip())

    ticket = desk.get(f"/tickets/{ticket_id}")
    assert ticket["text_continues"]
    assert text.startswith(ticket["symptom_text"])
    whole = desk.http.get(f"/tickets/{ticket_id}/text")
    assert whole.text == text.strip()
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_change_says_which_version_it_is_meant_for(desk: DeskClient) -> None:
    """Without If-Match a change is a 428, for another version a 412; the right one changes status and priority in one event."""
    ticket_id = desk.open()
    path, body = (
        f"/tickets/{ticket_id}",
        {"status": "PROCESSING", "priority": "CRITICAL", "note": "mine", "actor": "op-1"},
    )

    problem(desk.http.patch(path, json=body), 428, "if-match-missing")
    stale = desk.http.patch(path, json=body, headers={"If-Match": '"9"'})
    problem(stale, 412, "precondition-failed")
    assert stale.headers["etag"] == '"1"'
    problem(desk.http.patch(path, json=body, headers={"If-Match": "1"}), 400, "malformed")
    done = desk.http.patch(path, json=body, headers={"If-Match": '"1"'})
    assert (done.status_code, done.headers["etag"]) == (200, '"2"')
    assert (done.json()["status"], done.json()["priority"]) == ("PROCESSING", "CRITICAL")
    events = desk.get(f"{path}/events")["items"]
    assert [(each["sequence"], each["kind"], each["note"], each["actor"]) for each in events] == [
        (1, "ticket_created", None, "cust-001"),
        (2, "status_changed", "mine", "op-1"),
    ]
    assert (events[1]["old_status"], events[1]["new_status"]) == ("NEW", "PROCESSING")
    problem(desk.http.patch(path, json=body, headers={"If-Match": '"1"'}), 412, "precondition-failed")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"actor": "op-1"},
        {"note": "x"},
        {"priority": "LOW", "note": "x"},
        {"status": "ESCALATED"},
        {"status": "NEW"},
        {"status": None},
        {"priority": None, "status": "READY"},
        {"subject": " "},
        {"version": 3, "status": "READY"},
    ],
)
def test_a_change_that_says_nothing_or_too_much(refusing: DeskClient, body: Any) -> None:
    """A change of nothing, to a status that is not reached so, or to null is refused."""
    ticket_id = refusing.open("cust-009")

    problem(
        refusing.http.patch(f"/tickets/{ticket_id}", json=body, headers={"If-Match": "*"}), 422, "invalid"
    )


def test_a_product_is_taken_away_by_null(desk: DeskClient) -> None:
    """Null takes the product away, leaving it out leaves it; the event tells of it."""
    ticket_id = desk.open(product="printers")

    assert desk.change(ticket_id, priority="LOW")["product"] == "printers"
    assert desk.change(ticket_id, product=None)["product"] is None
    assert desk.get(f"/tickets/{ticket_id}/events?latest=1")["items"][0]["details"] == {"product": ""}
    assert desk.change(ticket_id, product=None)["version"] == 3


def test_several_versions_may_be_meant(desk: DeskClient) -> None:
    """Of several ETags one has to be the ticket's; what is none, or weak, is no match."""
    path = f"/tickets/{desk.open()}"

    def change(match: str) -> Any:
        return desk.http.patch(path, json={"priority": "LOW"}, headers={"If-Match": match})

    for match in ('"7", "8"', '"one"', 'W/"1"'):
        problem(change(match), 412, "precondition-failed")
    assert change('"7", "1"').json()["version"] == 2


def test_an_id_that_is_too_long_for_a_key(desk: DeskClient) -> None:
    """Nothing has such an id, so it is not found; on the page as well."""
    problem(desk.http.get("/tickets/" + "a" * 3_000), 404, "not-found")
    assert desk.http.get("/ui/tickets/" + "a" * 3_000).status_code == 404


def test_a_text_that_begins_far_down(desk: DeskClient) -> None:
    """The first line with words stands for a ticket, also where the ticket itself does not hold it."""
    ticket_id = desk.open(text=" " * 5_000 + "here it begins")

    assert desk.get(f"/tickets/{ticket_id}")["subject"] == "here it begins"


def test_a_status_that_may_not_follow(desk: DeskClient) -> None:
    """A transition that the desk does not have is a 409 that names those it has."""
    ticket_id = desk.open()

    found = desk.change(ticket_id, 409, status="READY")
    assert found["type"].endswith(":transition-refused")
    assert (found["present"], found["allowed"]) == ("NEW", ["PROCESSING", "FAILED", "ESCALATED"])


def test_an_escalation_begins_and_ends(desk: DeskClient) -> None:
    """An escalated ticket is in the lists of all and of its engineer, can be handed on, and leaves when it ends."""
    one, other = desk.open(), desk.open("cust-002")
    for ticket_id, engineer in ((one, "eng-01"), (other, "eng-02")):
        answer = desk.http.post(
            f"/tickets/{ticket_id}/escalation",
            json={"engineer": engineer, "reason": "third visit", "actor": "op-1"},
        )
        assert (answer.status_code, answer.json()["status"]) == (200, "ESCALATED")
        assert answer.json()["escalation_reason"] == "third visit"

    assert [each["ticket_id"] for each in desk.get("/escalations")["items"]] == [other, one]
    assert [each["ticket_id"] for each in desk.get("/escalations?engineer=eng-01")["items"]] == [one]
    path = f"/tickets/{one}/escalation"
    handed = desk.http.post(
        path, json={"engineer": "eng-02", "reason": "holiday"}, headers={"If-Match": '"2"'}
    )
    assert handed.headers["etag"] == '"3"'
    assert desk.get("/escalations?engineer=eng-01")["items"] == []
    problem(desk.http.delete(path, headers={"If-Match": '"1"'}), 412, "precondition-failed")
    ended = desk.http.delete(path)
    assert (ended.status_code, ended.json()["status"], ended.json()["assigned_to"]) == (
        200,
        "PROCESSING",
        None,
    )
    assert [each["ticket_id"] for each in desk.get("/escalations")["items"]] == [other]
    problem(desk.http.delete(path), 409, "not-escalated")
    problem(desk.http.post(path, json={"engineer": "eng 1", "reason": "x"}), 422, "invalid")
    problem(desk.http.post(path, json={"engineer": "eng-1"}), 422, "invalid")


# Lists


def test_lists_by_customer_status_and_date(served: Served, target: Target, clock: ManualClock) -> None:
    """Each question finds its own, newest first over all statuses, and pages lead on by cursor and Link."""
    desk = started(served, target, clock=clock)
    made = []
    for n in range(7):
        made.append(desk.open(f"cust-00{n % 2}", f"Ticket {n}"))
        clock.advance(3_600)
    desk.change(made[0], status="PROCESSING")
    desk.change(made[2], status="PROCESSING")

    def subjects(query: str) -> list[str]:
        return [each["subject"].removeprefix("Ticket ") for each in desk.get(f"/tickets?{query}")["items"]]

    assert subjects("") == ["6", "5", "4", "3", "2", "1", "0"]
    assert subjects("customer=cust-000") == ["6", "4", "2", "0"]
    assert subjects("customer=cust-000&status=PROCESSING") == ["2", "0"]
    assert subjects("customer=cust-001&status=PROCESSING") == []
    assert subjects("status=PROCESSING") == ["2", "0"]
    assert subjects("status=NEW&from=2099-11-18T13:00:00Z&to=2099-11-18T16:00:00Z") == ["4", "3", "1"]
    assert subjects("from=2099-11-18T14:30:00%2B01:00&to=2099-11-18T15:00:00Z") == ["3", "2"]
    assert subjects("from=2099-11-18&to=2099-11-18") == ["6", "5", "4", "3", "2", "1", "0"]
    assert subjects("from=2099-11-19") == []
    assert subjects("from=2099-11-19&to=2099-11-18") == []
    page = desk.http.get("/tickets?customer=cust-000&limit=3")
    assert [each["subject"][-1] for each in page.json()["items"]] == ["6", "4", "2"]
    link = page.headers["link"]
    assert link.endswith('; rel="next"')
    rest = desk.http.get("/tickets" + link[1 : link.index(">")])
    assert ([each["subject"][-1] for each in rest.json()["items"]], rest.json()["next"]) == (["0"], None)
    assert "link" not in rest.headers
    other = desk.http.get("/tickets", params={"customer": "cust-001", "cursor": page.json()["next"]})
    problem(other, 400, "cursor-refused")


@pytest.mark.parametrize(
    ("query", "status", "slug"),
    [
        ("status=OPEN", 422, "invalid"),
        ("customer=a%20b", 422, "invalid"),
        ("customer=", 422, "invalid"),
        ("from=yesterday", 422, "invalid"),
        ("from=2099-11-18T10:00:00", 422, "invalid"),
        ("to=2099-13-01", 422, "invalid"),
        ("limit=0", 422, "invalid"),
        ("limit=101", 422, "invalid"),
        ("limit=ten", 422, "invalid"),
        ("cursor=forged", 400, "cursor-refused"),
        ("customer=cust-001&from=2099-11-18", 400, "contradiction"),
    ],
)
def test_a_list_that_cannot_be_asked_for(refusing: DeskClient, query: str, status: int, slug: str) -> None:
    """A parameter that is wrong, or that does not go with another, is told."""
    problem(refusing.http.get(f"/tickets?{query}"), status, slug)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "2099-11-18t10:00:00z"]
)
def test_the_ends_of_the_calendar(desk: DeskClient, moment: str) -> None:
    """A moment whose zone leads out of the calendar is its first or last, and no error."""
    assert desk.get(f"/tickets?from={moment}")["items"] == []
    assert desk.get(f"/tickets?to={moment}")["items"] == []


def test_many_tickets_at_once(desk: DeskClient) -> None:
    """A batch gives up to 100 tickets in the order of their ids, null where there is none."""
    made = [desk.open() for _ in range(3)]

    found = desk.http.post("/tickets/batch-get", json={"ticket_ids": [made[2], "tkt_none", made[0], made[2]]})
    assert [each and each["ticket_id"] for each in found.json()["items"]] == [made[2], None, made[0], made[2]]
    problem(desk.http.post("/tickets/batch-get", json={"ticket_ids": []}), 422, "invalid")
    problem(desk.http.post("/tickets/batch-get", json={"ticket_ids": ["t"] * 101}), 422, "invalid")


# What hangs on a ticket


def test_the_timeline(served: Served, target: Target, clock: ManualClock) -> None:
    """Events come in order, of a stretch, of a day, or the latest first; two of these questions at once are refused."""
    desk = started(served, target, clock=clock)
    ticket_id = desk.open()
    path = f"/tickets/{ticket_id}/events"
    for n in range(4):
        clock.advance(8 * 3_600)
        added = desk.http.post(path, json={"note": f"note {n}", "actor": "op-1"})
        assert (added.status_code, added.headers["location"]) == (201, path)
        assert added.json()["sequence"] == n + 2

    def notes(query: str) -> list[Any]:
        return [each["note"] for each in desk.get(f"{path}?{query}")["items"]]

    assert notes("") == [None, "note 0", "note 1", "note 2", "note 3"]
    assert notes("latest=2") == ["note 3", "note 2"]
    assert notes("day=2099-11-19") == ["note 1", "note 2", "note 3"]
    assert notes("from=2099-11-18T20:00:00Z&to=2099-11-19T04:00:00Z") == ["note 0", "note 1"]
    assert notes("day=2099-12-24") == []
    first = desk.get(f"{path}?limit=3")
    rest = desk.get(path, params={"limit": 3, "cursor": first["next"]})
    assert [each["sequence"] for each in first["items"] + rest["items"]] == [1, 2, 3, 4, 5]
    day = desk.get(f"{path}?day=2099-11-19&limit=2")
    rest = desk.get(path, params={"day": "2099-11-19", "limit": 2, "cursor": day["next"]})
    assert [each["sequence"] for each in day["items"] + rest["items"]] == [3, 4, 5]
    assert rest["next"] is None
    problem(desk.http.get(f"{path}?latest=2&day=2099-11-19"), 400, "contradiction")
    problem(desk.http.get(f"{path}?latest=2&limit=1"), 400, "contradiction")
    problem(desk.http.get(f"{path}?latest=2&cursor=x"), 400, "contradiction")
    for query in ("latest=0", "day=monday", "from=monday"):
        problem(desk.http.get(f"{path}?{query}"), 422, "invalid")
    problem(desk.http.post(path, json={"note": ""}), 422, "invalid")
    problem(desk.http.post(path, json={"note": "x" * 4_001}), 422, "invalid")


def test_a_note_under_a_key_is_added_once(desk: DeskClient) -> None:
    """The same note sent again under its key is the same event, another under it is refused; a session takes no key."""
    ticket_id = desk.open()
    path, key = f"/tickets/{ticket_id}/events", {"Idempotency-Key": "n1"}
    first = desk.http.post(path, json={"note": "called", "actor": "op-1"}, headers=key)
    desk.http.post(path, json={"note": "another"})
    again = desk.http.post(path, json={"note": "called", "actor": "op-1"}, headers=key)

    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    assert first.json() == desk.get(path)["items"][1]
    assert [each["note"] for each in desk.get(path)["items"]] == [None, "called", "another"]
    problem(desk.http.post(path, json={"note": "other"}, headers=key), 422, "idempotency-mismatch")
    begun = desk.http.post("/sessions", json={"user_id": "op-1", "role": "agent"}, headers=key)
    problem(begun, 400, "idempotency-unsupported")


def test_feedback_of_a_ticket_and_of_an_operator(desk: DeskClient) -> None:
    """Feedback is given once under a key, told with the ticket and in its operator's list, newest first."""
    one, other = desk.open(), desk.open()
    body = {"operator_id": "op-01", "rating": 4, "was_helpful": True, "comment": "quick"}
    key = {"Idempotency-Key": "f1"}
    first = desk.http.post(f"/tickets/{one}/feedback", json=body, headers=key)
    again = desk.http.post(f"/tickets/{one}/feedback", json=body, headers=key)
    assert (first.status_code, again.status_code, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert first.json() == again.json()
    assert first.json()["comment"] == "quick"
    desk.http.post(f"/tickets/{other}/feedback", json={"operator_id": "op-01", "rating": 1})

    assert desk.get(f"/tickets/{one}/feedback")["items"] == [first.json()]
    found = desk.get("/operators/op-01/feedback")["items"]
    assert [(each["ticket_id"], each["rating"], each["was_helpful"]) for each in found] == [
        (other, 1, None),
        (one, 4, True),
    ]
    assert desk.get("/operators/op-99/feedback") == {"items": [], "next": None}
    page = desk.get("/operators/op-01/feedback?limit=1")
    assert (
        desk.get("/operators/op-01/feedback", params={"cursor": page["next"]})["items"][0]["ticket_id"] == one
    )


@pytest.mark.parametrize(
    "body",
    [
        {"operator_id": "op-01", "rating": 0},
        {"operator_id": "op-01", "rating": 6},
        {"operator_id": "op-01", "rating": 4.5},
        {"operator_id": "op-01", "rating": "4"},
        {"operator_id": "op-01"},
        {"rating": 3},
        {"operator_id": "op-01", "rating": 3, "comment": "x" * 4_001},
    ],
)
def test_feedback_that_is_none(refusing: DeskClient, body: Any) -> None:
    """A rating is a whole number from 1 to 5, of somebody."""
    ticket_id = refusing.open("cust-009")

    problem(refusing.http.post(f"/tickets/{ticket_id}/feedback", json=body), 422, "invalid")


def test_everything_of_a_ticket_in_one_answer(desk: DeskClient) -> None:
    """The whole of a ticket is the ticket, its events, feedback and attachments."""
    ticket_id = desk.open()
    desk.http.post(f"/tickets/{ticket_id}/events", json={"note": "seen"})
    desk.http.post(f"/tickets/{ticket_id}/feedback", json={"operator_id": "op-1", "rating": 5})
    desk.http.put(
        f"/tickets/{ticket_id}/attachments/a.txt", content=b"hello", headers={"content-type": "text/plain"}
    )

    whole = desk.get(f"/tickets/{ticket_id}/whole")
    assert whole["ticket"] == desk.get(f"/tickets/{ticket_id}")
    assert [each["kind"] for each in whole["events"]] == ["ticket_created", "note_added", "file_attached"]
    assert [each["rating"] for each in whole["feedback"]] == [5]
    assert [(each["name"], each["size_bytes"]) for each in whole["attachments"]] == [("a.txt", 5)]


@pytest.mark.parametrize(
    ("name", "kind", "data"),
    [
        ("log.txt", "text/plain; charset=utf-8", b"line\n" * 3),
        ("page.html", "text/html", b"<script>alert(1)</script>"),
        ("config.json", "application/json", b'{"not": NaN}'),
        ("größe 漢.bin", "application/octet-stream", bytes(range(256)) * 4_000),
        ("nothing", "application/x-empty", b""),
    ],
)
def test_a_file_comes_back_as_it_went(
    desk: DeskClient, target: Target, name: str, kind: str, data: bytes
) -> None:
    """Whatever its size and type, a file is given back to be saved and never to be shown."""
    if target.kind == "local" and not data:
        pytest.skip("DynamoDB Local refuses an empty binary, which AWS takes")
    ticket_id = desk.open()
    path = f"/tickets/{ticket_id}/attachments/{name}"
    put = desk.http.put(path, content=data, headers={"content-type": kind})
    assert (put.status_code, put.json()["name"], put.json()["size_bytes"]) == (201, name, len(data))

    got = desk.http.get(put.headers["location"])
    assert (got.status_code, got.content, got.headers["content-type"]) == (200, data, kind)
    assert got.headers["content-disposition"].startswith("attachment; ")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers.get_list("content-security-policy")
    assert desk.http.get(path, headers={"If-None-Match": put.headers["etag"]}).status_code == 304
    assert desk.http.delete(path).status_code == 204
    problem(desk.http.get(path), 404, "not-found")
    problem(desk.http.delete(path), 404, "not-found")


def test_a_file_is_replaced_by_who_names_it(desk: DeskClient) -> None:
    """One name, one file: only who says which one, or `*`, replaces it, with an event; the same again writes nothing."""
    ticket = f"/tickets/{desk.open()}"
    path = f"{ticket}/attachments/a.txt"
    put, first = desk.http.put, {"If-None-Match": "*"}
    problem(put(path, content=b"first", headers={"If-Match": "*"}), 412, "precondition-failed")
    one = put(path, content=b"first", headers=first)
    assert one.status_code == 201

    problem(put(path, content=b"other"), 428, "if-match-missing")
    problem(put(path, content=b"other", headers=first), 412, "precondition-failed")
    stale = put(path, content=b"other", headers={"If-Match": '"other"'})
    problem(stale, 412, "precondition-failed")
    assert stale.headers["etag"] == one.headers["etag"]
    two = put(path, content=b"second", headers={"If-Match": one.headers["etag"]})
    assert two.status_code == put(path, content=b"second", headers={"If-Match": "*"}).status_code == 200
    problem(put(path, content=b"x", headers={"If-Match": one.headers["etag"]}), 412, "precondition-failed")
    assert desk.http.get(path).content == b"second"
    assert desk.http.get(path).headers["content-type"] == "application/octet-stream"

    wrong = desk.http.delete(path, headers={"If-Match": one.headers["etag"]})
    problem(wrong, 412, "precondition-failed")
    assert desk.http.delete(path, headers={"If-Match": two.headers["etag"]}).status_code == 204
    whole = desk.get(f"{ticket}/whole")
    assert whole["attachments"] == []
    assert [(each["kind"], each["details"].get("replaced")) for each in whole["events"][1:]] == [
        ("file_attached", None),
        ("file_attached", "yes"),
        ("file_removed", None),
    ]


def test_a_file_of_another_type_is_another(desk: DeskClient) -> None:
    """Who has the same bytes under another type has not what is there."""
    path = f"/tickets/{desk.open()}/attachments/a"
    first = desk.http.put(path, content=b"x", headers={"content-type": "text/plain"}).headers["etag"]
    desk.http.put(path, content=b"x", headers={"content-type": "text/html", "If-Match": "*"})

    changed = desk.http.get(path, headers={"If-None-Match": first})
    assert (changed.status_code, changed.headers["content-type"]) == (200, "text/html")


@pytest.mark.parametrize("name", ["%2e", "%2e%2e", "rtl%E2%80%AEfdp.exe", "zero%E2%80%8Bwidth", "a%C2%85b"])
def test_a_name_that_is_no_address_or_a_disguise(refusing: DeskClient, name: str) -> None:
    """Names that clients fold away, or that are shown as another, are refused."""
    path = f"/tickets/{refusing.open('cust-009')}/attachments"

    problem(refusing.http.put(f"{path}/{name}", content=b"x"), 422, "invalid")


@pytest.mark.parametrize("name", ["...", "..a", ".a", "a.", "a..b", "😀‍👩.txt"])
def test_a_name_with_dots_is_one(refusing: DeskClient, name: str) -> None:
    """What is an address is a name: its file comes back from there."""
    path = f"/tickets/{refusing.open('cust-009')}/attachments/{name}"

    put = refusing.http.put(path, content=name.encode())
    assert put.status_code == 201
    assert refusing.http.get(put.headers["location"]).content == name.encode()


def test_a_ticket_has_no_more_files_than_end_with_it(
    desk: DeskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file too many is refused; the place of one that was removed is free again."""
    monkeypatch.setattr(attachments, "FILES_MAX", 2)
    path = f"/tickets/{desk.open()}/attachments"
    for name in ("a", "b"):
        assert desk.http.put(f"{path}/{name}", content=b"x").status_code == 201

    problem(desk.http.put(f"{path}/c", content=b"x"), 409, "refused")
    assert desk.http.put(f"{path}/b", content=b"y", headers={"If-Match": "*"}).status_code == 200
    desk.http.delete(f"{path}/a")
    assert desk.http.put(f"{path}/c", content=b"x").status_code == 201


def test_files_that_are_not_taken(desk: DeskClient) -> None:
    """A file larger than the desk takes is a 413, a type that is none a 415, a name with a quote a 422."""
    path = f"/tickets/{desk.open()}/attachments"
    problem(desk.http.put(f"{path}/a", content=bytes(16 * 1024 * 1024 + 1)), 413, "too-large")
    problem(desk.http.put(f"{path}/a", content=b"x", headers={"content-type": "text"}), 415, "media-type")
    problem(desk.http.put(f"{path}/a%22b", content=b"x"), 422, "invalid")
    problem(desk.http.put(f"{path}/{'n' * 201}", content=b"x"), 422, "invalid")
    problem(desk.http.put(f"{path}/a%2Fb", content=b"x"), 404, "not-found")


def test_similar_tickets(desk: DeskClient) -> None:
    """A ticket's neighbours are found by its embedding, and by a text or an embedding that is given."""
    if desk.http.post("/tickets/similar", json={"text": "x"}).status_code == 501:
        pytest.skip("this target has no vector indexes")
    vectors = [[1.0] + [0.0] * 63, [0.9, 0.1] + [0.0] * 62, [0.0] * 63 + [1.0]]
    made = [desk.open(text=f"Ticket {n}", embedding=vector) for n, vector in enumerate(vectors)]

    body = {"embedding": vectors[0], "limit": 2}
    found = desk.http.post("/tickets/similar", json=body).json()["items"]
    assert [each["ticket"]["ticket_id"] for each in found] == made[:2]
    assert found[0]["distance"] == pytest.approx(0, abs=1e-6)
    like = desk.get(f"/tickets/{made[0]}/similar?limit=1")["items"]
    assert [each["ticket"]["ticket_id"] for each in like] == [made[1]]
    for wrong in (
        {},
        {"text": "x", "embedding": vectors[0]},
        {"embedding": [1.0]},
        {"text": "x", "limit": 51},
        {"text": None},
    ):
        problem(desk.http.post("/tickets/similar", json=wrong), 422, "invalid")


# Sessions and numbers


def test_a_session_lives_and_ends(served: Served, target: Target, clock: ManualClock) -> None:
    """A session is valid until it is over or ended; then it is a 404, deleted or not."""
    desk = started(served, target, clock=clock)
    begun = desk.http.post("/sessions", json={"user_id": "op-12", "role": "agent"})
    assert begun.status_code == 201
    assert begun.headers["cache-control"] == "no-store"
    session = begun.json()
    assert (session["user_id"], session["role"]) == ("op-12", "agent")
    path = begun.headers["location"]

    assert desk.get(path) == session
    clock.advance(timedelta(hours=25).total_seconds())
    problem(desk.http.get(path), 404, "not-found")
    other = desk.http.post("/sessions", json={"user_id": "op-12", "role": "engineer"}).headers["location"]
    assert desk.http.delete(other).status_code == 204
    problem(desk.http.get(other), 404, "not-found")
    problem(desk.http.delete(other), 404, "not-found")
    problem(desk.http.post("/sessions", json={"user_id": "op-12", "role": "king"}), 422, "invalid")


def test_s09_the_dashboard_over_http(desk: DeskClient) -> None:
    """The numbers follow the stream: by status and priority, time to resolution, satisfaction, by day; with an ETag."""
    made = [desk.open(priority="HIGH") for _ in range(3)]
    desk.change(made[0], status="PROCESSING")
    desk.change(made[0], status="READY")
    desk.http.post(f"/tickets/{made[0]}/feedback", json={"operator_id": "op-1", "rating": 4})
    caught_up(desk)

    answer = desk.http.get("/dashboard")
    document = answer.json()
    assert document["tickets"] == 3
    assert document["by_status"] == {"NEW": 2, "PROCESSING": 0, "READY": 1, "FAILED": 0, "ESCALATED": 0}
    assert document["by_priority"] == {"LOW": 0, "MEDIUM": 0, "HIGH": 3, "CRITICAL": 0}
    assert (document["resolution_s"]["count"], document["satisfaction"]) == (1, {"count": 1, "mean": 4.0})
    assert document["ratings"] == {"1": 0, "2": 0, "3": 0, "4": 1, "5": 0}
    assert (len(document["days"]), document["days"][-1]["opened"], document["days"][-1]["resolved"]) == (
        30,
        3,
        1,
    )
    same = desk.http.get("/dashboard", headers={"If-None-Match": answer.headers["etag"]})
    assert same.status_code == 304
    assert len(desk.get("/dashboard?days=7")["days"]) == 7
    for days in ("0", "367", "x", "-1"):
        problem(desk.http.get(f"/dashboard?days={days}"), 422, "invalid")


def test_the_dashboard_is_made_once_for_all(served: Served, target: Target, clock: ManualClock) -> None:
    """Who asks within a second is given what was made for the first, without a query; until the numbers change, or the second is over."""
    desk = started(served, target, clock=clock)  # a clock that stands still: no second passes by itself
    caught_up(desk)
    application: Any = desk.http.app
    board, portal = application.state.desk.dashboard, desk.http.portal
    assert portal is not None
    db = application.state.desk.store.db

    async def queries() -> int:
        with db.measure() as spent:
            await asyncio.gather(*(board.get() for _ in range(20)))
        return int(spent.operations.get("Query", 0))

    first = desk.http.get("/dashboard").headers["etag"]
    assert portal.call(queries) == 0
    clock.advance(1.5)
    assert portal.call(queries) == 1
    desk.open()
    caught_up(desk)
    assert desk.http.get("/dashboard").headers["etag"] != first


def caught_up(desk: DeskClient) -> None:
    """Wait until the desk has counted everything that was written."""
    application: Any = desk.http.app
    portal: Any = desk.http.portal
    portal.call(application.state.desk.follower.catch_up)


# The service itself


def test_health_readiness_and_measures(desk: DeskClient) -> None:
    """The process lives, the store answers, the follower follows; routes are measured by their template."""
    ticket_id = desk.open()
    desk.get(f"/tickets/{ticket_id}")
    caught_up(desk)

    assert desk.get("/healthz") == {"status": "ok"}
    assert desk.get("/readyz")["followers"] == {"support-desk": "following"}
    measures = desk.http.get("/metrics").text
    assert 'method="GET",route="/tickets/{ticket_id}",status="2xx"' in measures
    assert ticket_id not in measures


def test_under_a_base_path(served: Served, target: Target) -> None:
    """Behind a proxy that has the desk under a path, places and links hold."""
    desk = started(served, target, base_path="/desk")
    made = desk.http.post("/desk/tickets", json={"customer_id": "cust-001", "symptom_text": "x"})

    assert made.headers["location"].startswith("/desk/tickets/tkt_")
    assert desk.http.get(made.headers["location"]).status_code == 200
    assert 'href="/desk/ui/tickets/' in desk.page("/desk/ui/")


def test_the_front_leads_to_the_pages(desk: DeskClient) -> None:
    """The root of the application is where people come in."""
    answer = desk.http.get("/", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")


def test_a_page_of_another_site_changes_nothing(desk: DeskClient) -> None:
    """A request that a browser sends for another site is refused before a route sees it."""
    body = {"customer_id": "cust-001", "symptom_text": "x"}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        problem(desk.http.post("/tickets", json=body, headers=headers), 403, "origin-refused")
    problem(desk.http.get("/tickets", headers={"Host": "evil.example"}), 403, "host-refused")
