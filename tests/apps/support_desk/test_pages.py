"""The support desk's pages: what they show, what their forms do, and what they do with what is wrong."""

from __future__ import annotations

import re
import shlex
from html.parser import HTMLParser
from typing import Any

import pytest

from tavola.apps.shell.openapi import group_operations
from tavola.apps.support_desk import service
from tavola.apps.support_desk.similar import embed
from tests.apps.conftest import Target
from tests.apps.support_desk.desks import HTML, TEXT, DeskClient, Served, started

SCRIPT = "<script>alert('x')</script>"
PAGES = ("/ui/", "/ui/queue", "/ui/escalations", "/ui/dashboard", "/ui/tickets/new", "/ui/api")


@pytest.fixture
def desk(served: Served, target: Target) -> DeskClient:
    """A desk on one of the targets."""
    return started(served, target)


class Outline(HTMLParser):
    """What of a page can be checked without a browser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self.headings: list[str] = []
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        attributes = dict(attrs)
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag == "label":
            self.labelled.add(str(attributes.get("for")))
        if tag in ("input", "select", "textarea") and attributes.get("type") != "hidden":
            self.fields.append(attributes)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(tag)
        self.addresses += [
            str(attributes[name]) for name in ("href", "src", "action") if attributes.get(name)
        ]
        if (tag == "script" and not attributes.get("src")) or tag == "style" or "style" in attributes:
            self.inline.append(tag)
        self.inline += [name for name in attributes if name.startswith("on")]


def version_in(page: str) -> str:
    """Return the version that a ticket's forms carry."""
    found = re.search(r'name="version" value="(\d+)"', page)
    assert found is not None
    return found[1]


def test_every_page_is_sound(desk: DeskClient) -> None:
    """A page has one h1, no id twice, a label for each field, nothing inline and no address but its own."""
    ticket_id = desk.open(subject="A sound one", product="printers")
    desk.http.post(f"/tickets/{ticket_id}/escalation", json={"engineer": "eng-1", "reason": "r"})
    desk.http.post(
        f"/tickets/{ticket_id}/feedback", json={"operator_id": "op-1", "rating": 2, "was_helpful": False}
    )
    desk.http.put(f"/tickets/{ticket_id}/attachments/a b.txt", content=b"x")

    for path in (
        *PAGES,
        f"/ui/tickets/{ticket_id}",
        "/ui/customers/cust-001",
        "/ui/operators/op-1",
        "/ui/customers/none",
    ):
        outline = Outline(desk.page(path))
        assert outline.headings.count("h1") == 1, path
        assert len(outline.ids) == len(set(outline.ids)), path
        for field in outline.fields:
            assert field.get("id") in outline.labelled or field.get("aria-label"), (path, field)
        assert not outline.inline, path
        assert not [each for each in outline.addresses if not each.startswith(("/", "#", "?"))], path


def test_every_link_of_every_page_leads_somewhere(desk: DeskClient) -> None:
    """What a page links to is there."""
    ticket_id = desk.open()
    desk.http.post(f"/tickets/{ticket_id}/escalation", json={"engineer": "eng-1", "reason": "r"})
    desk.http.put(f"/tickets/{ticket_id}/attachments/größe b%25.txt", content=b"x")
    seen: set[str] = set()
    waiting = ["/ui/"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = desk.http.get(path, headers=HTML)
        assert answer.status_code == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            links = re.findall(r'(?:href|src)="(/[^"#]*)"', answer.text)
            waiting += [link.replace("&amp;", "&") for link in links]
    assert len(seen) > 25
    assert any("/attachments/" in path for path in seen)


def test_the_list_filters_and_pages(desk: DeskClient) -> None:
    """Tickets are found by customer, status and date; more than a page leads on; what cannot be asked is told."""
    for n in range(27):
        desk.open(f"cust-00{n % 2}", f"Ticket number {n}.")
    first = desk.page("/ui/")
    assert first.count("Ticket number") == 25
    older = re.search(r'href="([^"]+)" rel="next"', first)
    assert older is not None
    rest = desk.page(older[1].replace("&amp;", "&"))
    assert rest.count("Ticket number") == 2
    assert 'rel="first"' in rest

    one = desk.page("/ui/?customer=cust-001&status=NEW")
    assert (one.count("Ticket number"), 'value="cust-001"' in one) == (13, True)
    assert '<option value="NEW" selected>' in one
    assert "No matching tickets" in desk.page("/ui/?status=READY")
    assert "No matching tickets" in desk.page("/ui/?from=2020-01-01&to=2020-01-02")
    assert "Filter by customer or by date, not both." in desk.page(
        "/ui/?customer=cust-001&from=2020-01-01", 422
    )
    assert "such as 2026-11-18" in desk.page("/ui/?from=soon", 422)
    assert "Unknown status" in desk.page("/ui/?status=odd", 422)
    assert "Invalid link" in desk.page("/ui/?cursor=forged", 400)


def test_a_ticket_from_the_form(desk: DeskClient) -> None:
    """A form opens one ticket however often it is sent, and comes back with what was typed when it is wrong."""
    page = desk.page("/ui/tickets/new?customer=cust-007")
    assert 'value="cust-007"' in page
    key = re.search(r'name="request" value="([^"]+)"', page)
    assert key is not None
    typed: dict[str, str] = {
        "customer_id": "cust-007",
        "symptom_text": TEXT,
        "priority": "HIGH",
        "request": key[1],
    }
    first = desk.form("/ui/tickets", 303, **typed)
    again = desk.form("/ui/tickets", 303, **typed)
    assert first.headers["location"] == again.headers["location"]
    page = desk.page(first.headers["location"])
    assert "The printer prints grey stripes." in page
    assert "Ticket opened." in page

    wrong = desk.form(
        "/ui/tickets", 422, customer_id="cust 7", symptom_text="", priority="HIGH", subject="kept"
    ).text
    assert "A customer ID may contain only letters, digits" in wrong
    assert 'href="#symptom_text">Enter a description.' in wrong
    assert ('value="cust 7"' in wrong, 'value="kept"' in wrong) == (True, True)
    assert '<option value="HIGH" selected>' in wrong
    other = desk.form("/ui/tickets", 409, **{**typed, "priority": "LOW"}).text
    assert "already submitted with other values" in other
    assert key[1] not in other


def test_the_status_buttons_are_those_that_may_follow(desk: DeskClient) -> None:
    """A ticket's page offers the transitions it has, and a button makes one, with a note in the timeline."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    page = desk.page(path)
    assert re.findall(r'name="status" value="(\w+)"', page) == ["PROCESSING", "FAILED"]
    desk.form(f"{path}/status", version=version_in(page), status="PROCESSING", status_note="on it")

    page = desk.page(path)
    assert re.findall(r'name="status" value="(\w+)"', page) == ["READY", "FAILED"]
    assert "New → In progress" in page
    assert "on it" in page
    desk.form(f"{path}/status", version=version_in(page), status="READY")
    page = desk.page(path)
    assert (re.findall(r'name="status" value="(\w+)"', page), "Reopen" in page) == (["PROCESSING"], True)


def test_a_stale_form_is_told_and_changes_nothing(desk: DeskClient) -> None:
    """Who sends a form that somebody else overtook sees the ticket as it is, what they typed, and that nothing was saved."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    stale = version_in(desk.page(path))
    desk.change(ticket_id, status="PROCESSING")

    for form, typed in (
        ("status", {"status": "FAILED", "status_note": "my words"}),
        ("escalation", {"engineer": "eng-07", "reason": "my words"}),
        ("amendment", {"priority": "LOW", "subject": "my words"}),
    ):
        page = desk.form(f"{path}/{form}", 409, version=stale, **typed).text
        assert "This ticket was changed while you were editing it" in page
        assert "my words" in page
        assert version_in(page) == "2"
    assert desk.get(f"/tickets/{ticket_id}")["version"] == 2


def test_escalating_and_taking_back(desk: DeskClient) -> None:
    """A form hands a ticket to an engineer, whose list then has it, and a button takes it back."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    wrong = desk.form(f"{path}/escalation", 422, version="1", engineer="", reason="third visit").text
    assert 'href="#engineer">Enter the engineer ID.' in wrong
    assert "third visit" in wrong
    desk.form(f"{path}/escalation", version="1", engineer="eng-03", reason="third visit")

    assert "Escalated to eng-03" in desk.page(path)
    assert "third visit" in desk.page("/ui/escalations?engineer=eng-03")
    assert "eng-04 has no escalated tickets" in desk.page("/ui/escalations?engineer=eng-04")
    desk.form(f"{path}/status", version="2", status="PROCESSING")
    assert "No escalations" in desk.page("/ui/escalations")


def test_notes_feedback_and_changes(desk: DeskClient) -> None:
    """The other forms of a ticket's page do what they say, and refuse with the field named."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    desk.form(f"{path}/notes", note="called back", actor="op-12")
    desk.form(f"{path}/feedback", operator_id="op-12", rating="2", was_helpful="no", comment="slow")
    desk.form(
        f"{path}/amendment", version="2", priority="CRITICAL", subject="Grey stripes", product="printers"
    )

    page = desk.page(path)
    for text in (
        "called back",
        "Feedback: 2 of 5, not helpful",
        "slow",
        "Priority changed to Critical",
        "Grey stripes",
    ):
        assert text in page
    assert "2 of 5" in desk.page("/ui/operators/op-12")
    assert 'href="#note">Enter a note.' in desk.form(f"{path}/notes", 422, note=" ").text
    wrong = desk.form(f"{path}/feedback", 422, operator_id="op-12", rating="", comment="kept").text
    assert 'href="#rating">Select a rating.' in wrong
    assert "kept" in wrong
    assert (
        "Use at most 120 characters."
        in desk.form(f"{path}/amendment", 422, version="3", subject="s" * 121).text
    )
    assert "Reload the page" in desk.form(f"{path}/amendment", 422, version="x", subject="s").text


@pytest.mark.parametrize("rating", ["9" * 5_000, "٤", "4.0", "-4", "²", "0", "6", "44"])
def test_a_rating_that_is_none(desk: DeskClient, rating: str) -> None:
    """Whatever stands in the field, the form comes back and says what to choose."""
    page = desk.form(f"/ui/tickets/{desk.open()}/feedback", 422, operator_id="op-12", rating=rating).text

    assert 'href="#rating"' in page


def test_a_second_click_is_the_same_note_and_the_same_feedback(desk: DeskClient) -> None:
    """Both forms carry a key of their own, new on each page: sent twice they count once, with other words they are refused."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    keys = re.findall(r'name="request" value="([^"]+)"', desk.page(path))
    assert len(keys) == 2
    for _ in range(2):
        desk.form(f"{path}/notes", note="called", request=keys[0])
        desk.form(f"{path}/feedback", operator_id="op-1", rating="5", request=keys[1])
    other = desk.form(f"{path}/notes", 409, note="other", request=keys[0]).text
    desk.form(f"{path}/feedback", 409, operator_id="op-1", rating="4", request=keys[1])

    whole = desk.get(f"/tickets/{ticket_id}/whole")
    assert [each["note"] for each in whole["events"]] == [None, "called"]
    assert [each["rating"] for each in whole["feedback"]] == [5]
    assert ("already submitted with other values" in other, "other" in other) == (True, True)
    assert keys[0] not in re.findall(r'name="request" value="([^"]+)"', other)


def test_an_emptied_field_is_emptied(desk: DeskClient) -> None:
    """Product is taken away where it was emptied; a form that changes nothing says so."""
    ticket_id = desk.open(product="printers", subject="s")
    path = f"/ui/tickets/{ticket_id}"
    same: dict[str, Any] = {"priority": "MEDIUM", "subject": "s"}
    untouched = desk.form(f"{path}/amendment", version="1", product="printers", **same)
    assert "No changes to save." in desk.page(untouched.headers["location"])

    done = desk.form(f"{path}/amendment", version="1", product="", **same)
    page = desk.page(done.headers["location"])
    assert ("Changes saved." in page, "Product removed" in page) == (True, True)
    assert desk.get(f"/tickets/{ticket_id}")["product"] is None


def test_one_change_of_several_things_is_told_whole(desk: DeskClient) -> None:
    """The line of a change of status tells what else changed with it."""
    ticket_id = desk.open()
    desk.change(ticket_id, status="PROCESSING", priority="HIGH")

    assert "New → In progress; priority changed to High" in desk.page(f"/ui/tickets/{ticket_id}")


def test_of_a_long_history_the_last_is_shown(desk: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page shows the last events and says where the others are; ticket, feedback and files are there whatever the number."""
    monkeypatch.setattr(service, "FULL_TICKET_ITEMS_MAX", 6)
    ticket_id = desk.open()
    desk.http.post(f"/tickets/{ticket_id}/feedback", json={"operator_id": "op-1", "rating": 5})
    desk.http.put(f"/tickets/{ticket_id}/attachments/a.txt", content=b"x")
    for n in range(5):
        desk.http.post(f"/tickets/{ticket_id}/events", json={"note": f"note number {n}"})

    page = desk.page(f"/ui/tickets/{ticket_id}")
    assert re.findall(r"note number (\d)", page) == ["2", "3", "4"]
    assert ("Only the latest events are shown" in page, "a.txt" in page, "5 of 5" in page) == (
        True,
        True,
        True,
    )
    whole = desk.get(f"/tickets/{ticket_id}/whole")
    assert [len(whole[name]) for name in ("events", "feedback", "attachments")] == [3, 1, 1]


def test_what_is_called_similar_is(desk: DeskClient) -> None:
    """Tickets with nothing in common are not shown as half alike, but not at all; the same text is 100% similar."""
    if desk.http.post("/tickets/similar", json={"text": "x"}).status_code == 501:
        pytest.skip("this target has no vector indexes")
    one, other = [1.0] + [0.0] * 63, [0.0] * 63 + [1.0]
    ticket_id = desk.open(text="Printer", embedding=one)
    desk.open(text="A stranger", embedding=other)
    assert "No similar tickets found." in desk.page(f"/ui/tickets/{ticket_id}")

    second = desk.open(text="A twin", embedding=one)
    page = desk.page(f"/ui/tickets/{second}")
    assert "100% similar" in page
    assert "A stranger" not in page


def test_the_dashboard_says_when_it_counts_no_more(desk: DeskClient) -> None:
    """Where the stream cannot be followed the page says so, and not that nothing waits."""
    application: Any = desk.http.app
    follower = application.state.desk.follower
    assert desk.http.portal is not None
    desk.http.portal.call(follower.catch_up)
    assert "cannot be followed" not in desk.page("/ui/dashboard")

    desk.http.portal.call(follower.stop)
    assert "the stream cannot be read" in desk.page("/ui/dashboard")


def test_files_from_the_page(desk: DeskClient) -> None:
    """A file is attached, offered for saving, and removed; what is no file is told."""
    ticket_id = desk.open()
    path = f"/ui/tickets/{ticket_id}"
    sent = {"file": ("C:\\logs\\today's log.txt", b"line", "text/plain")}
    done = desk.http.post(f"{path}/attachments", files=sent, headers=HTML, follow_redirects=False)
    assert done.status_code == 303

    page = desk.page(path)
    assert "today&#39;s log.txt" in page
    assert (
        desk.http.post(f"{path}/attachments", files=sent, headers=HTML).status_code == 200
    )  # a second click
    sent["file"] = (sent["file"][0], b"another", "text/plain")
    taken = desk.http.post(f"{path}/attachments", files=sent, headers=HTML)
    assert (taken.status_code, "remove it first" in taken.text) == (409, True)
    desk.form(f"{path}/attachments/delete", name="today's log.txt")
    assert "0 files" in desk.page(path)
    none = desk.http.post(f"{path}/attachments", files={"file": ("", b"")}, headers=HTML)
    assert (none.status_code, "Choose a file." in none.text) == (422, True)
    odd = desk.http.post(f"{path}/attachments", files={"file": ("n" * 201, b"x")}, headers=HTML)
    assert odd.status_code == 422


def test_what_is_planted_is_shown_as_text(desk: DeskClient) -> None:
    """HTML in any field that somebody can fill is text on every page."""
    ticket_id = desk.open(
        text=f"{SCRIPT} in the text", subject=f"{SCRIPT} subject", product=f"{SCRIPT} product"
    )
    desk.http.post(f"/tickets/{ticket_id}/events", json={"note": f"{SCRIPT} note"})
    desk.http.post(
        f"/tickets/{ticket_id}/feedback",
        json={"operator_id": "op-1", "rating": 1, "comment": f"{SCRIPT} comment"},
    )
    desk.http.post(
        f"/tickets/{ticket_id}/escalation", json={"engineer": "eng-1", "reason": f"{SCRIPT} reason"}
    )
    kind = {"content-type": "text/html"}
    desk.http.put(
        f"/tickets/{ticket_id}/attachments/<script>alert('x')<%2Fscript>", content=b"", headers=kind
    )
    desk.http.put(f"/tickets/{ticket_id}/attachments/<b onload=alert(1)>", content=b"", headers=kind)

    for path in (
        "/ui/",
        f"/ui/tickets/{ticket_id}",
        "/ui/escalations",
        "/ui/customers/cust-001",
        "/ui/queue?status=ESCALATED",
    ):
        page = desk.page(path)
        assert "<script>alert" not in page
        assert "<b onload" not in page
        assert "&lt;script&gt;" in page
    query = {"customer": SCRIPT, "status": SCRIPT, "engineer": SCRIPT, "from": SCRIPT}
    for path in (
        "/ui/",
        "/ui/escalations",
        "/ui/queue",
        "/ui/tickets/new",
        f"/ui/customers/{SCRIPT.replace('/', '_')}",
    ):
        assert "<script>alert" not in desk.http.get(path, params=query, headers=HTML).text
    typed = dict.fromkeys(
        ("customer_id", "symptom_text", "subject", "priority", "product", "request"), SCRIPT
    )
    assert "<script>alert" not in desk.form("/ui/tickets", 422, **typed).text


def test_the_queue_has_the_longest_waiting_first(desk: DeskClient) -> None:
    """Agents see who waits longest, or the newest if they ask for it, by status."""
    for n in range(3):
        desk.open(text=f"Ticket number {n}.")

    def order(query: str) -> list[str]:
        return re.findall(r"Ticket number (\d)", desk.page(f"/ui/queue?{query}"))

    assert order("") == ["0", "1", "2"]
    assert order("order=newest") == ["2", "1", "0"]
    assert order("status=FAILED") == []
    assert "No ticket has the status Unresolved." in desk.page("/ui/queue?status=FAILED")


def test_the_dashboard_has_its_charts(desk: DeskClient) -> None:
    """Each chart is an image with a name and its numbers in a table beside it."""
    desk.change(desk.open(), status="PROCESSING")

    page = desk.page("/ui/dashboard?days=7")
    for title in (
        "Tickets by status",
        "Opened and resolved by day",
        "Average resolution time by day",
        "Average rating by day",
    ):
        assert title in page
    assert page.count("<svg") >= 6
    assert page.count('role="img"') >= 6


def test_what_is_not_there_is_a_page_too(desk: DeskClient) -> None:
    """A browser gets a page for a ticket that is not there; a program gets JSON for the same address."""
    page = desk.page("/ui/tickets/tkt_none", 404)
    assert "This ticket does not exist" in page
    assert "<h1>" in page
    form: Any = desk.form("/ui/tickets/tkt_none/notes", 404, note="x")
    assert "This ticket does not exist" in form.text

    response = desk.http.get("/ui/tickets/tkt_none")
    assert response.headers["content-type"] == "application/problem+json"


def test_a_text_that_is_too_long_for_the_form_is_kept_up_to_there(desk: DeskClient) -> None:
    """Who pastes megabytes is told what is the most, and keeps what fits; the field says it before."""
    assert 'maxlength="200000"' in desk.page("/ui/tickets/new")
    typed = {"customer_id": "cust-017", "symptom_text": "ab" * 750_000}

    page = desk.form("/ui/tickets", 422, **typed).text

    assert "longer than 200,000 characters" in page
    assert "ab" * 100_000 in page
    assert "ab" * 100_000 + "a" not in page
    assert desk.get("/tickets?customer=cust-017")["items"] == []


def test_a_long_text_is_shown_by_its_beginning(desk: DeskClient) -> None:
    """A page has the first 4,000 characters of a text and leads to the whole, however long that is."""
    ticket_id = desk.open(text="x" * 300_000)

    page = desk.page(f"/ui/tickets/{ticket_id}")

    assert "x" * 4_000 + "…" in page
    assert "x" * 4_001 not in page
    assert f'/tickets/{ticket_id}/text"' in page
    assert len(desk.http.get(f"/tickets/{ticket_id}/text").text) == 300_000


def test_a_ticket_of_the_form_has_neighbours(desk: DeskClient) -> None:
    """A ticket that came without an embedding is looked for by its words."""
    if desk.http.post("/tickets/similar", json={"text": "x"}).status_code == 501:
        pytest.skip("this target has no vector indexes")
    text = "The printer jams at the fuser"
    other = desk.open(text=text, embedding=list(embed(text)))

    made = desk.form("/ui/tickets", customer_id="cust-017", symptom_text="Our printer jams at the fuser")

    page = desk.page(made.headers["location"])
    assert f"/ui/tickets/{other}" in page


def test_the_commands_of_the_api_page_can_be_sent(desk: DeskClient) -> None:
    """The bodies that the page shows are taken as they stand: the short ones, and those with every member."""
    application: Any = desk.http.app
    sent = 0
    for group in group_operations(application.openapi(), ""):
        for each in group.operations:
            if each.body is None:
                continue
            short = shlex.split(each.command)[-1]
            for body in (each.body, short):
                path = each.path.replace("{ticket_id}", desk.open())
                headers = {"content-type": "application/json", "if-match": "*"}
                answer = desk.http.request(each.method, path, content=body, headers=headers)
                assert answer.status_code in (200, 201, 501), (each.path, body, answer.text)
                sent += 1
    assert sent >= 14


def test_a_wrong_status_is_told_by_its_member(desk: DeskClient) -> None:
    """A status that cannot be asked for is told at `#/status`, with those that can."""
    answer = desk.http.patch(f"/tickets/{desk.open()}", json={"status": "NEW"}, headers={"if-match": "*"})

    assert answer.json()["errors"] == [
        {"in": "body", "pointer": "#/status", "detail": "Must be one of PROCESSING, READY, FAILED."}
    ]
