"""The pages without a browser: forms, redirects and content."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response

from tavola.apps.service_desk.web import create
from tavola.apps.shell import AppSettings
from tests.apps.service_desk.conftest import SECRET, Desk

HTML = {"Accept": "text/html"}
NUMBER = "+39 06 9876 5432"


def _form(desk: Desk, path: str, **fields: str) -> Response:
    return desk.client.post(path, data=fields, headers=HTML, follow_redirects=False)


def _reveals(text: str) -> bool:
    """Return whether a text contains the number, however its digits are grouped; an ID may contain a few of them."""
    return "98765432" in re.sub(r"[\s().+%-]", "", text)


def _value(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return found[1]


def test_the_root_leads_to_the_form(desk: Desk) -> None:
    """A browser at the root gets the form to report an issue, which says what not to enter."""
    landed = desk.client.get("/", headers=HTML)

    assert landed.url.path == "/ui/"
    assert "Do not include passwords" in landed.text
    assert "<form" in landed.text


def test_an_issue_is_reported_and_shown(desk: Desk) -> None:
    """The form creates a ticket and redirects to its page; submitted twice, it creates one."""
    key = _value(desk.client.get("/ui/").text, "key")
    sent = {"caller": NUMBER, "issue": "No <b>sound</b>\r\nin calls", "key": key}

    first, second = _form(desk, "/ui/", **sent), _form(desk, "/ui/", **sent)

    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    page = desk.client.get(first.headers["location"], headers=HTML)
    assert page.status_code == 200
    assert "No &lt;b&gt;sound&lt;/b&gt;\nin calls" in page.text
    assert "Ticket opened." in page.text
    assert not _reveals(page.text)
    assert len(desk.items()) == 1


def test_a_changed_form_gets_a_new_key(desk: Desk) -> None:
    """A form's key belongs to its text; with another text the form is returned with a new key."""
    key = _value(desk.client.get("/ui/").text, "key")
    _form(desk, "/ui/", caller="c", issue="one", key=key)

    page = _form(desk, "/ui/", caller="c", issue="two", key=key)
    assert page.status_code == 422
    other = _value(page.text, "key")

    assert other != key
    assert _form(desk, "/ui/", caller="c", issue="two", key=other).status_code == 303
    assert len(desk.items()) == 2


def test_a_refused_form_shows_the_error_at_its_field(desk: Desk) -> None:
    """A refused form is returned with the message at its field and the entered text."""
    refused = _form(desk, "/ui/", caller="06 9876 5432", issue="No sound", key="k")
    no_issue = _form(desk, "/ui/", caller="poc-user-001", issue="  ", key="k")
    too_large = _form(desk, "/ui/", caller="poc-user-001", issue="x" * 410_000, key="k")

    for page, field in ((refused, "caller"), (no_issue, "issue"), (too_large, "issue")):
        assert page.status_code == 422
        assert f'id="{field}-error"' in page.text
    assert 'value="06 9876 5432"' in refused.text
    assert "No sound" in refused.text
    assert 'value="poc-user-001"' in no_issue.text
    assert desk.items() == []


def test_a_callers_tickets_are_found_ten_at_a_time(desk: Desk) -> None:
    """The number is submitted in a form and never appears in a URL; the list links to older tickets and back."""
    for n in range(12):
        desk.report(caller=NUMBER, issue=f"issue number {n}")

    found = _form(desk, "/ui/callers", whose=NUMBER)
    assert found.status_code == 303
    assert re.fullmatch(r"/ui/tickets\?caller=tel%3A[0-9a-f]{64}", found.headers["location"])
    first = desk.client.get(found.headers["location"], headers=HTML).text
    older = re.search(r'href="(/ui/tickets\?[^"]*cursor=[^"]*)"', first)
    assert older is not None
    second = desk.client.get(older[1].replace("&amp;", "&"), headers=HTML).text

    assert [int(n) for n in re.findall(r">issue number (\d+)<", first)] == list(range(11, 1, -1))
    assert [int(n) for n in re.findall(r">issue number (\d+)<", second)] == [1, 0]
    assert not _reveals(first + second)


def test_a_number_in_a_url_is_redirected(desk: Desk) -> None:
    """A request with a number in its URL is redirected to a URL that hides it."""
    answer = desk.client.get(f"/ui/tickets?caller={quote(NUMBER)}", headers=HTML, follow_redirects=False)

    assert answer.status_code == 303
    assert not _reveals(answer.headers["location"])


def test_lists_without_a_caller_or_tickets(desk: Desk) -> None:
    """Without a caller the page asks for one; for a caller without tickets, or an invalid one, it says so."""
    assert "Find tickets by caller" in desk.client.get("/ui/tickets", headers=HTML).text
    assert "has not opened any tickets" in desk.client.get("/ui/tickets?caller=nobody", headers=HTML).text
    wrong = _form(desk, "/ui/callers", whose="06 9876 5432")
    assert (wrong.status_code, 'id="whose-error"' in wrong.text) == (422, True)
    assert desk.client.get("/ui/tickets?caller=a%20b", headers=HTML).status_code == 422
    assert desk.client.get("/ui/tickets?caller=a&cursor=x", headers=HTML).status_code == 400


def test_a_comment_is_added_once(desk: Desk) -> None:
    """A form submitted twice adds one comment; the same text submitted later from the updated page adds another."""
    where = "/ui" + desk.report().headers["location"]
    sent = {"comment": "Still silent", "known": _value(desk.client.get(where).text, "known")}

    for _ in range(2):
        assert _form(desk, f"{where}/comments", **sent).headers["location"] == where
    page = desk.client.get(where).text
    assert page.count("Still silent") == 1
    _form(desk, f"{where}/comments", comment="Still silent", known=_value(page, "known"))

    assert desk.client.get(where).text.count("Still silent") == 2


def test_a_refused_comment_stays_in_the_form(desk: Desk) -> None:
    """An empty comment, or one too many, is reported at its field with the entered text."""
    made = desk.report(issue="x" * 400_000)
    where = "/ui" + made.headers["location"]

    empty = _form(desk, f"{where}/comments", comment=" ", known="0")
    large = _form(desk, f"{where}/comments", comment="y" * 10_000, known="no number")

    for page in (empty, large):
        assert page.status_code == 422
        assert 'id="comment-error"' in page.text
    assert "y" * 10_000 in large.text
    assert "400 KB" in large.text


def test_an_unknown_ticket_is_a_404_page(desk: Desk) -> None:
    """Reading and commenting on an unknown ticket is a 404 page, and stores nothing."""
    read = desk.client.get("/ui/tickets/unknown", headers=HTML)
    response = _form(desk, "/ui/tickets/unknown/comments", comment="x", known="0")

    assert (read.status_code, response.status_code) == (404, 404)
    assert read.headers["content-type"].startswith("text/html")
    assert desk.items() == []


def test_pages_work_under_a_base_path(served: Callable[[FastAPI], TestClient]) -> None:
    """Every URL in a page or response is below the path that a proxy serves the desk at."""
    client = served(create(AppSettings(secret=SECRET, base_path="/service-desk")))
    front = client.get("/service-desk/ui/").text
    made = client.post("/service-desk/tickets", json={"caller_id": "c", "issue_description": "x"})
    listed = client.get("/service-desk/ui/tickets?caller=c").text

    assert made.headers["location"].startswith("/service-desk/tickets/")
    assert client.get(made.headers["location"]).status_code == 200
    for address in re.findall(r'(?:href|action|src)="(/[^"]*)"', front + listed):
        assert address.startswith("/service-desk/"), address
