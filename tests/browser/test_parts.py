"""Every part that the pages are made of, in a real browser: both themes, wide and narrow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from tavola.apps.shell import AppSettings, Link, Mounted, running_server, start_page
from tests.apps.shell.parts import sample
from tests.browser.stage import NARROW, WIDE, Stage, accessibility_faults, overflow

PAGES = ("/", "/desk/ui/", "/desk/ui/api", "/desk/ui/missing")


@pytest.fixture(scope="module")
def parts(stage: Stage) -> Iterator[str]:
    """The address of the page of parts, below a start page, served from a thread of its own."""
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        end = asyncio.Event()
        mounted = [
            Mounted("/desk", "Sample desk", "Every part on one page.", sample(), [Link("Parts", "/ui/")])
        ]
        async with running_server(
            start_page(AppSettings(), mounted, endpoint="http://127.0.0.1:8000")
        ) as served:
            started.set_result((served.url, asyncio.get_running_loop(), end))
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(live()), name="parts")
    thread.start()
    url, loop, end = started.result(timeout=20)
    yield url
    loop.call_soon_threadsafe(end.set)
    thread.join()


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)], ids=["light", "dark"])
def test_every_part_is_accessible(stage: Stage, parts: str, scheme: str, viewport: dict[str, int]) -> None:
    """axe-core finds nothing on any page of the shell, everything unfolded, and nothing is wider than the page."""
    with stage.page(parts, color_scheme=scheme, viewport=viewport) as page:
        for path in PAGES:
            page.goto(path)
            page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")

            assert accessibility_faults(page) == [], path
            assert overflow(page) == [], path


def test_a_theme_is_kept_and_applied_before_the_first_paint(stage: Stage, parts: str) -> None:
    """The switch wins over the system, holds on the next page, and gives way again."""
    with stage.page(parts, color_scheme="light") as page:
        page.goto("/desk/ui/")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_label("Theme").select_option("dark")
        dark = page.evaluate(ground)
        page.goto("/desk/ui/api")

        assert dark != light
        assert page.evaluate(ground) == dark
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.get_by_label("Theme").select_option("system")
        assert page.evaluate(ground) == light


def test_the_keyboard_reaches_the_content_first(stage: Stage, parts: str) -> None:
    """The first stop is the link past the navigation, and it is seen when it has the focus."""
    with stage.page(parts) as page:
        page.goto("/desk/ui/")
        page.keyboard.press("Tab")
        skip = page.locator(".skip")

        assert skip.evaluate("each => each === document.activeElement")
        assert (skip.bounding_box() or {"y": -1})["y"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


def test_pages_work_without_script(stage: Stage, parts: str) -> None:
    """Without script the theme is the system's, and the switch that could not work is not shown."""
    with stage.page(parts, java_script_enabled=False, color_scheme="dark") as page:
        page.goto("/desk/ui/")

        assert page.get_by_role("heading", name="Every part").is_visible()
        assert not page.locator("#theme").is_visible()


def test_an_error_leads_to_its_field(stage: Stage, parts: str) -> None:
    """A complaint in the summary is a link to the field, which is described by it."""
    with stage.page(parts) as page:
        page.goto("/desk/ui/")
        page.get_by_role("link", name="Give a subject").click()

        assert page.evaluate("document.activeElement.id") == "subject" or page.url.endswith("#subject")
        assert page.locator("#subject").get_attribute("aria-describedby") == "subject-error"
