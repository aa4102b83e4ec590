"""Every page of every application: accessible in both themes, readable on a telephone, usable without a script."""

from __future__ import annotations

from importlib import import_module

import pytest
from playwright.sync_api import Page, expect

from tavola.apps.shell import AppSettings
from tests.browser.conftest import Opened
from tests.browser.stage import NARROW, WIDE, accessibility_faults, header_overlaps, overflow
from tests.browser.walk import Walk, page_routes

APPLICATIONS = ("support-desk", "service-desk", "terraform-review", "gallery")


def starts(page: Page, application: str) -> list[str]:
    """Return pages to start from: results of forms, and records that are rare in the generated data."""
    if application == "service-desk":
        issue = {"caller_id": "session-walk", "issue_description": "The badge reader blinks."}
        page.request.post("/service-desk/tickets", data=issue)
        return ["/service-desk/ui/tickets?caller=session-walk"]
    if application == "support-desk":  # only tickets with feedback link to the page of an operator
        ticket_id = page.request.get("/support-desk/tickets?limit=1").json()["items"][0]["ticket_id"]
        feedback = {"operator_id": "op-12", "rating": 4}
        page.request.post(f"/support-desk/tickets/{ticket_id}/feedback", data=feedback)
        return [f"/support-desk/ui/tickets/{ticket_id}"]
    return []


# Rows and entries after the first few are like these, and axe-core takes its time with each.
ALIKE = "tbody tr:nth-child(n+7), main li:nth-child(n+13), main section.card:nth-of-type(n+9)"

# Pages that no link leads to, and why.
LED_TO_BY_NO_LINK = {
    "/ui/runs/{run_id}": "a run's address, for who has its number; it leads on to the review",
    "/ui/api": "in the foot of every page",
    "/ui": "leads on to its slash",
}


def faults_of(page: Page) -> list[str]:
    """Return what is wrong with a page: where it is narrow, in light, and in dark."""
    page.set_viewport_size(NARROW)
    result = [f"wider than 390 pixels: {fault}" for fault in overflow(page)]
    page.set_viewport_size(WIDE)
    page.eval_on_selector_all(ALIKE, "all => all.forEach(each => { each.hidden = true })")
    page.emulate_media(color_scheme="light")
    result += accessibility_faults(page)
    page.emulate_media(color_scheme="dark")
    return result + [f"dark: {fault}" for fault in accessibility_faults(page, "color-contrast")]


@pytest.mark.timeout(180)  # some forty pages, looked at three times each
@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_page_is_accessible_and_narrow_enough(page: Page, application: str) -> None:
    """A page of each route is reached by links, has nothing that axe-core finds, and needs no sideways scrolling."""
    web = import_module(f"tavola.apps.{application.replace('-', '_')}.web")
    walk = Walk(page, f"/{application}", page_routes(web.create(AppSettings())))
    faults: list[str] = []
    walk.all(
        lambda url: faults.extend(f"{url}: {fault}" for fault in faults_of(page)),
        *starts(page, application),
    )

    assert not faults, "\n".join(faults)
    assert not [route for route in walk.unseen() if route not in LED_TO_BY_NO_LINK]


@pytest.mark.parametrize("application", APPLICATIONS)
def test_no_part_of_the_header_overlaps_another(page: Page, application: str) -> None:
    """On a phone, even one with wide letters, the name of the application and the links beside it wrap."""
    page.goto(f"/{application}/ui/")
    for width in (320, 360, 390):
        page.set_viewport_size({"width": width, "height": 600})

        assert not header_overlaps(page)

    page.locator(".home").evaluate(
        "each => { each.style.position = 'absolute'; each.style.left = 0; each.style.top = 0 }"
    )
    assert header_overlaps(page) == ["brand overlaps home"]


def test_the_start_page_leads_everywhere(page: Page) -> None:
    """The start page names what runs, leads to it, and says where the endpoint is."""
    page.goto("/")
    assert not faults_of(page)
    expect(page.get_by_role("main")).to_contain_text("http://127.0.0.1:")

    for title in ("Support desk", "Service desk", "Terraform review", "Gallery"):
        page.goto("/")
        page.get_by_role("main").get_by_role("link", name=title, exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert f"/{title.lower().replace(' ', '-')}/ui/" in page.url


def test_the_theme_is_remembered(opened: Opened) -> None:
    """Dark is chosen once and holds on every page of every application; the system's is the default."""
    page = opened(color_scheme="light")
    page.goto("/support-desk/ui/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_label("Theme").select_option("dark")
    dark = page.evaluate(ground)

    assert dark != light
    page.goto("/gallery/ui/")
    assert page.evaluate(ground) == dark
    expect(page.get_by_label("Theme")).to_have_value("dark")
    page.get_by_label("Theme").select_option("system")
    page.goto("/service-desk/ui/")
    assert page.evaluate(ground) == light


def test_the_systems_theme_is_followed(opened: Opened) -> None:
    """Who prefers dark gets dark, without choosing."""
    grounds = []
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        page.goto("/ui/")
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert grounds[0] != grounds[1]


def test_a_problem_is_a_page(page: Page) -> None:
    """A missing page is answered with a page that links back."""
    for path in (
        "/support-desk/ui/tickets/none",
        "/service-desk/ui/tickets/none",
        "/terraform-review/ui/reviews/none",
        "/gallery/ui/samples/none",
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 404, path
        assert not accessibility_faults(page), path
        page.get_by_role("navigation", name="Main").get_by_role("link").first.click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_an_attack_by_text_is_shown_as_text(page: Page) -> None:
    """Markup in user input is shown as text and never executed."""
    nasty = '<script>window.hit = 1</script><img src="x" onerror="window.hit = 1">'
    page.goto("/service-desk/ui/")
    page.get_by_label("Caller", exact=True).fill("session-attack")
    page.get_by_label("Description").fill(nasty)
    page.get_by_role("button", name="Open ticket").click()

    expect(page.get_by_role("main")).to_contain_text(nasty)
    assert page.evaluate("window.hit") is None
