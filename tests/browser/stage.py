"""A stage for browser tests: one Chromium on one thread, and pages that are watched.

Playwright's synchronous API keeps a loop running on its thread. It has a thread of its own here, so that other tests of the same process
can run theirs; a test's body is run on it too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

from tools.browser import QUIET

WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
PATIENCE_MS = 5_000

T = TypeVar("T")


@dataclass  # without slots: Playwright keeps notes on what it calls
class Watched:
    """What pages did in the background: the URLs they requested and the errors they logged."""

    origin: str
    trouble: bool = False  # a server that refuses or is gone is what the test is of
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    documents: set[str] = field(default_factory=set)

    def faults(self) -> list[str]:
        """Return what a page must not do: ask another origin, break the policy, raise an error."""
        strangers = [f"asked {url}" for url in self.asked if not url.startswith((f"{self.origin}/", "data:"))]
        return strangers + self.complaints

    def watch(self, context: BrowserContext) -> None:
        """Begin to take notes."""
        context.on("request", self._requested)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(f"raised {error.error}"))

    def _requested(self, request: Request) -> None:
        self.asked.append(request.url)
        if request.resource_type == "document":
            self.documents.add(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        refused = message.text.startswith("Failed to load resource: the server responded with a status of 4")
        if refused and message.location["url"] in self.documents:
            return  # a page that is itself a refusal, such as a form that was not filled in
        if self.trouble and message.text.startswith("Failed to load resource: "):
            return
        self.complaints.append(f"said {message.text} ({message.location['url']})")


class Stage:
    """The thread of the browser."""

    def __init__(self, program: str) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._ident = self._thread.submit(threading.get_ident).result()
        self._open = ExitStack()
        self.browser: Browser = self.run(self._launched, program)

    def run(self, doing: Callable[..., T], *given: Any, **more: Any) -> T:
        """Do something on the browser's thread, and return what it returns."""
        if threading.get_ident() == self._ident:
            return doing(*given, **more)
        return self._thread.submit(doing, *given, **more).result()

    def close(self) -> None:
        """Close the browser and its thread."""
        self.run(self._open.close)
        self._thread.shutdown()

    def _launched(self, program: str) -> Browser:
        playwright = self._open.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        self._open.callback(browser.close)
        return browser

    @contextmanager
    def page(self, origin: str, *, trouble: bool = False, **settings: Any) -> Iterator[Page]:
        """Give a page of a browser that knows nothing; what it must not do is an error in the end.

        `trouble`: what it asks for may fail.
        """
        watched = Watched(origin, trouble)
        context = self.run(self._context, origin, watched, settings)
        try:
            yield self.run(context.new_page)
        finally:
            self.run(context.close)
        faults = watched.faults()
        assert not faults, "\n".join(faults)

    def _context(self, origin: str, watched: Watched, settings: dict[str, Any]) -> BrowserContext:
        response = {"viewport": WIDE, "base_url": origin, "reduced_motion": "reduce", **settings}
        context = self.browser.new_context(**response)
        context.set_default_timeout(PATIENCE_MS)
        watched.watch(context)
        return context


_AXE = AXE_FILE_PATH.read_text("utf-8")


def accessibility_faults(page: Page, *rules: str) -> list[str]:
    """Return what axe-core finds wrong with a page by some rules, or by all, with the first place of each."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    if not page.evaluate("'axe' in window"):  # a page keeps it: it is half a megabyte
        page.evaluate(_AXE)
    result = page.evaluate("options => axe.run(options).then(results => results.violations)", options)
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {each['nodes'][0]['html'][:160]}"
        for each in result
    ]


def overflow(page: Page) -> list[str]:
    """Return what is wider than the page, so that it would have to be scrolled sideways; empty: nothing is."""
    return list(
        page.evaluate(
            """() => {
              const width = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= width) return [];
              const scrolls = e => { for (; e; e = e.parentElement) {
                const x = getComputedStyle(e).overflowX; if (x === 'auto' || x === 'scroll' || x === 'hidden') return true; } };
              return [...document.querySelectorAll('body *')]
                .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
                .slice(0, 5).map(e => e.outerHTML.slice(0, 120));
            }"""
        )
    )


def header_overlaps(page: Page) -> list[str]:
    """Return the parts of an application's header whose contents overlap; empty: none do."""
    return list(
        page.evaluate(
            """() => {
              const box = e => { const range = document.createRange(); range.selectNodeContents(e); return range.getBoundingClientRect(); };
              const parts = [...document.querySelectorAll('.top-inner > *')].filter(e => e.offsetParent).map(e => [e.className || e.tagName, box(e)]);
              return parts.flatMap(([first, a], number) => parts.slice(number + 1)
                .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
                .map(([second]) => `${first} overlaps ${second}`));
            }"""
        )
    )


def links_of(page: Page) -> list[str]:
    """Return the paths of its own origin that a page links to, each once, without fragments."""
    result = page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(page.url))
    return list(dict.fromkeys(url.partition("#")[0] for url in result if url.startswith(origin + "/")))


def picture(page: Page, path: Path) -> None:
    """Keep what is in view as a PNG."""
    page.screenshot(path=path, animations="disabled")
