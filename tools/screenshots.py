"""Screenshots of the applications for the documentation: `python -m tools.screenshots [--all FOLDER] [--url URL]`.

Takes the screenshots that the documentation shows, each small enough to commit, of a demo that it starts, or of one that runs at a URL. With
`--all`, it also takes every kind of page into a folder, wide and narrow, light and dark, for a review after a change to the design.
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
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot of the documentation: its path, and the steps before it is taken."""

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
    """Take the screenshots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", help="a running demo; without it, one is started")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="also take every kind of page")
    parser.add_argument("--chromium", help="path of the browser, if it is not found by name")
    options = parser.parse_args()
    program = chromium(options.chromium)
    if program is None:
        parser.error("Chromium was not found; name its path with --chromium")
    with _demo(options.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        PICTURES.mkdir(exist_ok=True)
        for picture in GUIDE:
            _take(browser, url, picture, PICTURES / f"{picture.name}.png")
        if options.all is not None:
            options.all.mkdir(parents=True, exist_ok=True)
            _take_all(browser, url, options.all)
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
    """Follow all links, and take one page of each kind: wide and narrow, light and dark."""
    views = [
        (f"{width}-{theme}", browser.new_context(viewport=viewport, color_scheme=theme).new_page())
        for width, viewport in (("wide", WIDE), ("narrow", NARROW))
        for theme in THEMES
    ]
    wide = views[0][1]
    seen: set[str] = set()
    waiting = deque([f"{url}/ui/"])
    while waiting and len(seen) < PAGES_MAX:
        address = waiting.popleft()
        kind = _kind(address.removeprefix(url))
        if kind in seen or "/ui/" not in address:
            continue
        seen.add(kind)
        for view, page in views:
            page.goto(address)
            page.screenshot(path=folder / f"{len(seen):02}{kind}-{view}.png", full_page=True)
        links = wide.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
        waiting.extend(each.partition("#")[0] for each in links if each.startswith(f"{url}/"))


def _kind(path: str) -> str:
    """Return a name for a kind of page, as part of a file name: pages of one kind differ only in an id."""
    plain, _, query = path.partition("?")
    kind = re.sub(r"(?<=/ui/samples/)[^/]+/[^/]+", "id-id", plain)
    kind = re.sub(r"(/ui/\w+/)(?!new$|id-id$)[^/]+", r"\1id", kind)
    parameters = "-".join(sorted(re.findall(r"(?:^|&)([a-z_]+)=", query)))
    return re.sub(r"[^a-z]+", "-", f"{kind}-{parameters}").rstrip("-")


if __name__ == "__main__":
    main()
