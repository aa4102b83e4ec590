"""The support desk as an operator uses it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened

HOME = "/support-desk/ui/"


def open_ticket(page: Page, customer: str, text: str, priority: str = "High") -> str:
    """Open a ticket by the form, and return its address."""
    page.goto(HOME)
    page.get_by_role("link", name="New ticket").click()
    page.get_by_label("Customer").fill(customer)
    page.get_by_label("Description").fill(text)
    page.get_by_label("Priority").select_option(label=priority)
    page.get_by_role("button", name="Open ticket").click()
    expect(page.get_by_role("status")).to_contain_text("Ticket opened.")
    return page.url.partition("?")[0]


def test_a_ticket_from_its_opening_to_its_resolution(page: Page) -> None:
    """A ticket is opened, worked on, annotated, escalated, reopened and resolved; its timeline shows all of it."""
    open_ticket(page, "cust-walk", "The label printer prints empty labels.\nSince this morning.")
    expect(page.get_by_role("heading", level=1)).to_have_text("The label printer prints empty labels.")

    page.get_by_label("Status comment").fill("I have it on my desk")
    page.get_by_role("button", name="Start work").click()
    expect(page.get_by_role("status")).to_contain_text("Status changed.")

    page.get_by_label("Note", exact=True).fill("The head is clean.")
    page.get_by_label("Your ID").fill("op-12")
    page.get_by_role("button", name="Add note").click()

    page.get_by_label("Engineer").fill("eng-42")
    page.get_by_label("Reason").fill("Needs a technician on site")
    page.get_by_role("button", name="Escalate").click()
    expect(page.get_by_role("status")).to_contain_text("assigned to the engineer")

    page.get_by_role("link", name="Escalations").click()
    page.get_by_label("Engineer").fill("eng-42")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="The label printer prints empty labels.").click()

    page.get_by_role("button", name="Return to support").click()
    page.get_by_role("button", name="Mark as resolved").click()
    timeline = page.locator("ol.timeline")
    for response in (
        "Opened",
        "New → In progress",
        "The head is clean.",
        "Escalated to eng-42",
        "In progress → Resolved",
    ):
        expect(timeline).to_contain_text(response)
    expect(page.locator(".facts").filter(has_text="Resolved")).to_be_visible()

    page.goto(f"{HOME}escalations?engineer=eng-42")
    expect(page.get_by_role("link", name="The label printer prints empty labels.")).to_have_count(0)


def test_feedback_is_given_and_found_by_operator(page: Page) -> None:
    """What an operator thinks of an answer is on the ticket, and on the operator's own page."""
    open_ticket(page, "cust-feedback", "Access point drops every minute.")
    page.get_by_label("Operator").fill("op-walk")
    page.get_by_label("Rating").select_option("4")
    page.get_by_label("Helpful").select_option("yes")
    page.locator("#comment").fill("Quick, and right.")
    page.get_by_role("button", name="Submit feedback").click()

    expect(page.locator("ol.timeline")).to_contain_text("Feedback: 4 of 5, helpful")
    page.goto(f"{HOME}operators/op-walk")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("4 of 5")


def test_a_file_is_attached_downloaded_and_removed(page: Page, tmp_path: Path) -> None:
    """A file comes back as it was, byte for byte, and can be taken off again."""
    content = bytes(range(256)) * 40
    file = tmp_path / "trace of today.bin"
    file.write_bytes(content)
    open_ticket(page, "cust-files", "The router restarts by itself.")
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Attach file", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="trace of today.bin").click()

    assert download.value.suggested_filename == "trace of today.bin"
    assert Path(download.value.path()).read_bytes() == content
    page.get_by_role("button", name="Remove trace of today.bin").click()
    expect(page.get_by_role("status")).to_contain_text("File removed.")
    expect(page.get_by_role("link", name="trace of today.bin")).to_have_count(0)


def test_a_stale_form_changes_nothing(opened: Opened) -> None:
    """Saving a form that is out of date shows a conflict and keeps the input."""
    one, other = opened(), opened()
    address = open_ticket(one, "cust-stale", "The plotter jams.")
    other.goto(address)
    one.get_by_role("button", name="Start work").click()
    expect(one.get_by_role("status")).to_contain_text("Status changed.")

    other.get_by_label("Engineer").fill("eng-07")
    other.get_by_label("Reason").fill("It is stuck for good")
    other.get_by_role("button", name="Escalate").click()

    expect(other.get_by_role("alert")).to_be_visible()
    expect(other.get_by_label("Reason")).to_have_value("It is stuck for good")
    expect(other.locator("ol.timeline")).to_contain_text("New → In progress")
    expect(other.locator("ol.timeline")).not_to_contain_text("Escalated")


def test_a_form_says_what_is_missing(page: Page) -> None:
    """An empty form comes back with what to fill in, at its fields, and with what was typed."""
    page.goto(f"{HOME}tickets/new")
    page.get_by_label("Description").fill("Nothing turns.")
    page.get_by_label("Customer").fill("two words")
    page.get_by_role("button", name="Open ticket").click()

    expect(page.get_by_role("alert")).to_contain_text("The ticket was not opened")
    customer = page.get_by_label("Customer")
    expect(customer).to_have_attribute("aria-invalid", "true")
    expect(customer).to_have_value("two words")
    expect(page.get_by_label("Description")).to_have_value("Nothing turns.")
    page.get_by_role("alert").get_by_role("link").first.click()
    expect(customer).to_be_focused()


def test_lists_are_filtered_and_paged(page: Page) -> None:
    """Tickets are found by customer and status; older ones are a page further."""
    open_ticket(page, "cust-lists", "The first of two.")
    open_ticket(page, "cust-lists", "The second of two.")
    page.goto(HOME)
    page.get_by_label("Customer").fill("cust-lists")
    page.get_by_label("Status").select_option(label="New")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody tr").first).to_contain_text("The second of two.")

    page.goto(HOME)
    first = page.locator("tbody tr").first.inner_text()
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr").first).not_to_have_text(first)
    page.get_by_role("link", name="Newest").click()
    expect(page.locator("tbody tr")).to_have_count(25)


def test_the_queue_shows_who_waits_longest_first(page: Page) -> None:
    """New tickets are in the queue, the oldest first, or on request the newest."""
    open_ticket(page, "cust-queue", "Waits first.")
    open_ticket(page, "cust-queue", "Waits last.")
    page.goto(f"{HOME}queue")
    texts = page.locator("tbody tr").all_inner_texts()
    places = [
        next(n for n, text in enumerate(texts) if response in text)
        for response in ("Waits first.", "Waits last.")
    ]

    assert places == sorted(places)


def test_the_dashboard_counts_what_happens(page: Page) -> None:
    """The dashboard has its charts with their numbers as tables, and a new ticket is counted."""
    page.goto(f"{HOME}dashboard")
    tile = page.locator(".tile").filter(has_text="Tickets").locator(".tile-value").first
    before = int(tile.inner_text().replace(",", ""))
    expect(page.locator("svg[role=img]").first).to_be_visible()
    assert page.locator("svg[role=img]").count() >= 5
    page.get_by_text("Show data").first.click()
    expect(page.locator("details[open] table").first).to_be_visible()

    open_ticket(page, "cust-count", "Count me.")
    for _ in range(100):  # the projector follows, and the page is kept for a second at most
        page.goto(f"{HOME}dashboard")
        if int(tile.inner_text().replace(",", "")) > before:
            break
    assert int(tile.inner_text().replace(",", "")) > before


def test_a_ticket_by_keyboard_alone(page: Page) -> None:
    """A whole ticket, from the start page to its resolution, without a mouse; focus can be seen at each step."""
    page.goto("/")

    def tab_to(name: str, role: str = "link") -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            focused = page.locator(":focus")
            if page.evaluate("document.activeElement.matches(':focus-visible')") and (
                focused.and_(page.get_by_role(role, name=name)).count()  # type: ignore[arg-type]  # a role by its name
            ):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus on {name} cannot be seen"
                return
        raise AssertionError(f"the Tab key does not lead to {role} {name!r} on {page.url}")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to("Support desk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/support-desk/ui/")
    tab_to("New ticket")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tickets/new")
    tab_to("Customer", "textbox")
    page.keyboard.type("cust-keys")
    page.keyboard.press("Tab")
    page.keyboard.type("The keyboard works, the mouse does not.")
    tab_to("Open ticket", "button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Ticket opened.")
    for button, status in (("Start work", "In progress"), ("Mark as resolved", "Resolved")):
        tab_to(button, "button")
        page.keyboard.press("Enter")
        expect(page.locator(".actions .chip").first).to_have_text(status)


def test_a_ticket_without_a_script(opened: Opened) -> None:
    """Everything works where scripts are off: a ticket is opened, changed and listed."""
    page = opened(java_script_enabled=False)
    open_ticket(page, "cust-plain", "No script, and a ticket all the same.")
    page.get_by_role("button", name="Start work").click()
    expect(page.locator("ol.timeline")).to_contain_text("New → In progress")
    page.goto(f"{HOME}customers/cust-plain")

    expect(page.locator("tbody tr")).to_have_count(1)
