"""Pictures of the applications, for the guide: `python -m tools.screenshots [--all FOLDER] [--url URL]`.

Takes the few pictures that the guide shows, each small enough to commit, from a demo that it starts itself, or that runs at a URL. With `--all` a picture
of every kind of page goes to a folder of one's own as well, wide and narrow, light and dark, to be looked at after a change of the looks.
"""

from __future__ import annotations

import argparse
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tools.browser import QUIET, chromium, running_demo

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BYTES_MAX = 150_000
PAGES_MAX = 80

WIDE: ViewportSize = {"width": 1120, "height": 720}
NARROW: ViewportSize = {"width": 390, "height": 720}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the guide: where it is taken, and how one gets there."""

    name: str
    path: str
    viewport: ViewportSize
    theme: Literal["light", "dark"] = "light"
    go: Callable[[Page], None] = lambda page: None


def _first_row(page: Page) -> None:
    page.locator("tbody a").first.click()
    page.wait_for_load_state()


def _compared(page: Page) -> None:
    """Go to a review with several versions, and compare the last two."""
    for link in page.eval_on_selector_all(
        "tbody a[href*='/ui/reviews/']", "all => all.map(each => each.href)"
    ):
        page.goto(link)
        compare = page.get_by_role("link", name=re.compile("Compare with version"))
        if compare.count():
            compare.first.click()
            page.wait_for_load_state()
            return


GUIDE = (
    Picture("start", "/ui/", WIDE),
    Picture("support-desk-dashboard", "/support-desk/ui/dashboard", WIDE, "dark"),
    Picture("support-desk-ticket", "/support-desk/ui/escalations", WIDE, go=_first_row),
    Picture("support-desk-phone", "/support-desk/ui/", NARROW),
    Picture("service-desk", "/service-desk/ui/", WIDE),
    Picture("terraform-review-risk", "/terraform-review/ui/risk", WIDE),
    Picture("terraform-review-compare", "/terraform-review/ui/reviews?status=completed", WIDE, go=_compared),
    Picture("gallery-catalogue", "/gallery/ui/samples/catalogue", WIDE),
)


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", help="where a demo runs; without, one is started")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="pictures of every kind of page as well")
    parser.add_argument("--chromium", help="the browser's program, if it is not found by its name")
    given = parser.parse_args()
    program = chromium(given.chromium)
    if program is None:
        parser.error("there is no Chromium on this machine; name one with --chromium")
    with _demo(given.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        PICTURES.mkdir(exist_ok=True)
        for picture in GUIDE:
            _take(browser, url, picture, PICTURES / f"{picture.name}.png")
        if given.all is not None:
            given.all.mkdir(parents=True, exist_ok=True)
            _take_all(browser, url, given.all)
        browser.close()
    large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > BYTES_MAX]
    if large:
        parser.exit(1, f"too large to commit, over {BYTES_MAX:,} bytes: {', '.join(sorted(large))}\n")


@contextmanager
def _demo(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url.rstrip("/")
        return
    with running_demo(tickets=4_000, reviews=400) as demo:
        yield demo.url


def _take(browser: Browser, url: str, picture: Picture, path: Path) -> None:
    context = browser.new_context(viewport=picture.viewport, color_scheme=picture.theme, base_url=url)
    page = context.new_page()
    page.goto(picture.path)
    picture.go(page)
    page.screenshot(path=path, animations="disabled")
    context.close()


def _take_all(browser: Browser, url: str, folder: Path) -> None:
    """Walk by links, and take one page of each kind: wide and light, narrow and dark."""
    wide = browser.new_context(viewport=WIDE, color_scheme="light").new_page()
    narrow = browser.new_context(viewport=NARROW, color_scheme="dark").new_page()
    seen: set[str] = set()
    waiting = deque([f"{url}/ui/"])
    while waiting and len(seen) < PAGES_MAX:
        address = waiting.popleft()
        kind = _kind(address.removeprefix(url))
        if kind in seen or "/ui/" not in address:
            continue
        seen.add(kind)
        for page, end in ((wide, "wide"), (narrow, "narrow")):
            page.goto(address)
            page.screenshot(path=folder / f"{len(seen):02}{kind}-{end}.png", full_page=True)
        found = wide.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
        waiting.extend(each.partition("#")[0] for each in found if each.startswith(f"{url}/"))


def _kind(path: str) -> str:
    """Return what pages that differ in an id alone have in common, as part of a file's name."""
    plain, _, query = path.partition("?")
    kind = re.sub(r"(?<=/ui/samples/)[^/]+/[^/]+", "id-id", plain)
    kind = re.sub(r"(/ui/\w+/)(?!new$|id-id$)[^/]+", r"\1id", kind)
    asked = "-".join(sorted(re.findall(r"(?:^|&)([a-z_]+)=", query)))
    return re.sub(r"[^a-z]+", "-", f"{kind}-{asked}").rstrip("-")


if __name__ == "__main__":
    main()
