"""Follow an application's links and visit one page of each route."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from fastapi import FastAPI
from playwright.sync_api import Page
from starlette.routing import Route

from tests.browser.stage import links_of

MORE_MAX = 25  # further pages of a route that are looked through for links to one that was not seen


def page_routes(application: FastAPI) -> list[Route]:
    """Return the pages that an application has, each a route that answers GET below /ui."""
    result = [route for route in _routes(application.routes) if "GET" in (route.methods or ())]
    return [each for each in result if each.path.startswith("/ui") and "/static/" not in each.path]


def _routes(given: object) -> Iterator[Route]:
    for route in given if isinstance(given, list | tuple) else ():
        if isinstance(route, Route):
            yield route
        else:  # a router that was included
            yield from _routes(getattr(getattr(route, "original_router", None), "routes", ()))


class Walk:
    """A walk through one application below its base path."""

    def __init__(self, page: Page, base: str, routes: list[Route]) -> None:
        self.page = page
        self.base = base
        self.routes = routes
        self.seen: dict[str, str] = {}  # a route's path: the address that was looked at

    def route_of(self, url: str) -> str | None:
        """Return the path of the route that an address is of, None if it is no page of the application."""
        path = urlsplit(url).path
        if not path.startswith(self.base + "/ui"):
            return None
        below = path.removeprefix(self.base)
        return next((route.path for route in self.routes if route.path_regex.match(below)), None)

    def all(self, look: Callable[[str], None], *starts: str) -> None:
        """Follow all links from `starts` and from the front page, and look at one page of each route.

        `starts` come first: the first page of a route is the one that is looked at and whose links are followed.
        """
        links, more = deque([*starts, f"{self.base}/ui/"]), deque[str]()
        known: set[str] = set()
        looked_further = 0
        while links or (more and self.unseen() and looked_further < MORE_MAX):
            url = (links or more).popleft()
            route = self.route_of(url)
            if route is None or url in known:
                continue
            if route in self.seen and links:
                more.append(url)  # another page of a kind that was seen: perhaps it leads further
                continue
            known.add(url)
            answer = self.page.goto(url)
            assert answer is not None
            assert answer.status == 200, f"{url} answers {answer.status}"
            if route in self.seen:
                looked_further += 1
            else:
                self.seen[route] = url
                look(url)
            links.extend(links_of(self.page))

    def unseen(self) -> list[str]:
        """Return the routes that no link led to."""
        return [route.path for route in self.routes if route.path not in self.seen]
