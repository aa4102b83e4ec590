"""The service desk as a caller uses it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

HOME = "/service-desk/ui/"


def report(page: Page, caller: str, issue: str) -> None:
    """Report an issue by the form."""
    page.goto(HOME)
    page.get_by_label("Caller", exact=True).fill(caller)
    page.get_by_label("Description").fill(issue)
    page.get_by_role("button", name="Open ticket").click()
    expect(page.get_by_role("status")).to_contain_text("Ticket opened.")


def tells(text: str) -> bool:
    """Return whether a text contains the number, however its digits are grouped; an id may contain a few of them."""
    return "5550142" in re.sub(r"[\s().+%-]", "", text)


def test_an_issue_is_reported_and_commented(page: Page) -> None:
    """A reported issue has its ticket, which takes comments and shows them in order."""
    report(page, "session-browser", "Outlook does not start.")
    for text in ("Restarted it twice.", "Works again since noon."):
        page.get_by_label("Comment").fill(text)
        page.get_by_role("button", name="Add comment").click()
        expect(page.locator("ol.timeline")).to_contain_text(text)

    assert [entry.splitlines()[-1] for entry in page.locator("ol.timeline li").all_inner_texts()] == [
        "Restarted it twice.",
        "Works again since noon.",
    ]


def test_a_callers_tickets_are_ten_and_a_page_further(page: Page) -> None:
    """A caller finds the ten newest tickets, and the eleventh on the next page."""
    for number in range(11):
        response = {"caller_id": "session-eleven", "issue_description": f"Issue number {number}."}
        assert page.request.post("/service-desk/tickets", data=response).status == 201
    page.goto(f"{HOME}tickets")
    page.get_by_label("Caller").fill("session-eleven")
    page.get_by_role("button", name="Find tickets").click()
    expect(page.locator("tbody tr")).to_have_count(10)
    expect(page.locator("tbody tr").first).to_contain_text("Issue number 10.")

    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr").first).to_contain_text("Issue number 0.")


def test_a_telephone_number_is_never_shown(page: Page) -> None:
    """A telephone number appears in no URL and on no page, although tickets can be found by it."""
    number = "+39 06 555 0142"
    report(page, number, "No dial tone.")
    assert not tells(page.content())
    page.goto(f"{HOME}tickets")
    page.get_by_label("Caller").fill(number)
    page.get_by_role("button", name="Find tickets").click()

    expect(page.get_by_role("link", name="No dial tone.")).to_be_visible()
    assert not tells(page.url)
    assert not tells(page.content())


def test_a_bad_number_is_told_at_its_field(page: Page) -> None:
    """A caller that is neither a session nor a number with its country is refused, with what to do."""
    page.goto(HOME)
    page.get_by_label("Caller", exact=True).fill("+12")
    page.get_by_label("Description").fill("The screen is black.")
    page.get_by_role("button", name="Open ticket").click()

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Caller", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Description")).to_have_value("The screen is black.")
