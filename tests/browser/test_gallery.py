"""The gallery's pages, as a learner reads them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

HOME = "/gallery/ui/"


def test_the_filter_trap_is_seen(page: Page) -> None:
    """From the front page to the trap: what was read, what was returned, what it costs, and the request."""
    page.goto(HOME)
    page.get_by_role("link", name="Compare a filter with a key").click()
    cards = page.locator("main .card")
    expect(cards.nth(0)).to_contain_text("60 items read, 6 returned")
    expect(cards.nth(1)).to_contain_text("6 items read, 6 returned")
    cards.nth(1).get_by_text("Request and cost").click()

    expect(cards.nth(1).locator("pre")).to_contain_text("IndexName: by_status")


def test_a_demonstration_that_writes_waits_for_its_button(page: Page) -> None:
    """A demonstration that writes is started by a button, reports what it did, and can be repeated."""
    page.goto(f"{HOME}samples/catalogue")
    page.get_by_role("link", name="Enter and leave a sparse index").click()
    expect(page.locator("main .card")).to_have_count(0)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("main .card")).to_have_count(3)
    expect(page.locator("main .card").nth(1)).to_contain_text("product-101")

    page.get_by_role("button", name="Run again").click()
    expect(page.locator("main .card").nth(2)).not_to_contain_text("product-101")


def test_few_links_have_a_line_of_their_own_on_a_phone(phone: Page) -> None:
    """On a phone the navigation is below the name, however short it is, and the back link is beside the name."""
    phone.goto(HOME)
    name, links, back = (
        phone.locator(each).bounding_box() for each in (".top .brand", ".top nav", ".top .home")
    )

    assert name is not None
    assert links is not None
    assert back is not None
    assert links["y"] >= name["y"] + name["height"]
    assert back["y"] < links["y"]
