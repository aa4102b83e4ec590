"""The pages, without a browser: forms, redirects, what is shown and what is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response

from tavola.apps.service_desk.web import create
from tavola.apps.shell import Settings
from tests.apps.service_desk.conftest import SECRET, Desk

HTML = {"Accept": "text/html"}
NUMBER = "+39 06 9876 5432"


def _form(desk: Desk, path: str, **fields: str) -> Response:
    return desk.client.post(path, data=fields, headers=HTML, follow_redirects=False)


def _tells(text: str) -> bool:
    """Whether a text gives the number away, however its digits are grouped; an id may hold a few of them."""
    return "98765432" in re.sub(r"[\s().+%-]", "", text)


def _value(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return found[1]


def test_the_root_leads_to_the_form(desk: Desk) -> None:
    """A browser lands on the form to report an issue, which says what not to write into it."""
    landed = desk.client.get("/", headers=HTML)

    assert landed.url.path == "/ui/"
    assert "No passwords" in landed.text
    assert "<form" in landed.text


def test_an_issue_is_reported_and_shown(desk: Desk) -> None:
    """The form makes a ticket and leads to its page; sent twice, it makes one."""
    key = _value(desk.client.get("/ui/").text, "key")
    sent = {"caller": NUMBER, "issue": "No <b>sound</b>\r\nin calls", "key": key}

    first, second = _form(desk, "/ui/", **sent), _form(desk, "/ui/", **sent)

    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    page = desk.client.get(first.headers["location"], headers=HTML)
    assert page.status_code == 200
    assert "No &lt;b&gt;sound&lt;/b&gt;\nin calls" in page.text
    assert "The ticket is open." in page.text
    assert not _tells(page.text)
    assert len(desk.items()) == 1


def test_a_form_that_was_changed_and_sent_again_asks_once_more(desk: Desk) -> None:
    """The key of a form belongs to its text; with another text it is shown again with a new key."""
    key = _value(desk.client.get("/ui/").text, "key")
    _form(desk, "/ui/", caller="c", issue="one", key=key)

    shown = _form(desk, "/ui/", caller="c", issue="two", key=key)
    assert shown.status_code == 422
    other = _value(shown.text, "key")

    assert other != key
    assert _form(desk, "/ui/", caller="c", issue="two", key=other).status_code == 303
    assert len(desk.items()) == 2


def test_what_is_wrong_is_said_beside_what_was_typed(desk: Desk) -> None:
    """A refused form comes back with the sentence at its field, and with what was typed."""
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
    """The number goes in a form and never into an address; the list leads on to older tickets and back."""
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
    assert not _tells(first + second)


def test_a_number_in_an_address_is_taken_out_of_it(desk: Desk) -> None:
    """Whoever asks with a number in the address is sent to the one that hides it."""
    answer = desk.client.get(f"/ui/tickets?caller={quote(NUMBER)}", headers=HTML, follow_redirects=False)

    assert answer.status_code == 303
    assert not _tells(answer.headers["location"])


def test_lists_of_nobody_and_of_nothing(desk: Desk) -> None:
    """Without a caller the page asks for one, of one without tickets it says so, of one that is none it says why."""
    assert "Whose tickets?" in desk.client.get("/ui/tickets", headers=HTML).text
    assert "has reported nothing" in desk.client.get("/ui/tickets?caller=nobody", headers=HTML).text
    wrong = _form(desk, "/ui/callers", whose="06 9876 5432")
    assert (wrong.status_code, 'id="whose-error"' in wrong.text) == (422, True)
    assert desk.client.get("/ui/tickets?caller=a%20b", headers=HTML).status_code == 422
    assert desk.client.get("/ui/tickets?caller=a&cursor=x", headers=HTML).status_code == 400


def test_a_comment_is_added_once(desk: Desk) -> None:
    """A form that is sent twice adds one comment; the same words later, on the page that shows them, are another."""
    where = "/ui" + desk.report().headers["location"]
    sent = {"comment": "Still silent", "known": _value(desk.client.get(where).text, "known")}

    for _ in range(2):
        assert _form(desk, f"{where}/comments", **sent).headers["location"] == where
    page = desk.client.get(where).text
    assert page.count("Still silent") == 1
    _form(desk, f"{where}/comments", comment="Still silent", known=_value(page, "known"))

    assert desk.client.get(where).text.count("Still silent") == 2


def test_a_comment_that_is_refused_is_kept_in_the_form(desk: Desk) -> None:
    """An empty comment or one too many is told at its field, and what was typed is still there."""
    made = desk.report(issue="x" * 400_000)
    where = "/ui" + made.headers["location"]

    empty = _form(desk, f"{where}/comments", comment=" ", known="0")
    large = _form(desk, f"{where}/comments", comment="y" * 10_000, known="no number")

    for page in (empty, large):
        assert page.status_code == 422
        assert 'id="comment-error"' in page.text
    assert "y" * 10_000 in large.text
    assert "400 KB" in large.text


def test_a_ticket_that_is_not_there_is_a_page_that_says_so(desk: Desk) -> None:
    """Reading and commenting on an unknown ticket is a 404 for people, and makes nothing."""
    read = desk.client.get("/ui/tickets/unknown", headers=HTML)
    said = _form(desk, "/ui/tickets/unknown/comments", comment="x", known="0")

    assert (read.status_code, said.status_code) == (404, 404)
    assert read.headers["content-type"].startswith("text/html")
    assert desk.items() == []


def test_pages_work_under_a_base_path(served: Callable[[FastAPI], TestClient]) -> None:
    """Every address that a page or an answer gives lies under the path that a proxy has the desk under."""
    client = served(create(Settings(secret=SECRET, base_path="/service-desk")))
    front = client.get("/service-desk/ui/").text
    made = client.post("/service-desk/tickets", json={"caller_id": "c", "issue_description": "x"})
    listed = client.get("/service-desk/ui/tickets?caller=c").text

    assert made.headers["location"].startswith("/service-desk/tickets/")
    assert client.get(made.headers["location"]).status_code == 200
    for address in re.findall(r'(?:href|action|src)="(/[^"]*)"', front + listed):
        assert address.startswith("/service-desk/"), address
