"""The studio in a browser: the demo's tables in this process, and pages that are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from tavola.engine import Engine
from tavola.model.document import Design
from tavola.studio.assets import Assets
from tests.browser.stage import NARROW, Stage
from tools.studio_server import ASSETS, ServedStudio, demo_declared, demo_design, seeded_engine, serve_studio

StartStudio = Callable[..., ServedStudio]


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """The pages are built."""
    if not Assets(ASSETS).built:
        pytest.skip("the studio's pages are not built: make studio")


@pytest.fixture(scope="session")
def studio_server(stage: Stage) -> Iterator[ServedStudio]:
    """The studio on the demo's data; tests may add, and should leave what others look at."""
    declared = demo_declared()
    names = tuple(each.name for each in declared)
    with (
        seeded_engine() as engine,
        serve_studio(engine, demo_design(), declared=declared, designs=names) as result,
    ):
        yield result


@pytest.fixture
def start_studio() -> Iterator[StartStudio]:
    """Serve a studio of one's own: `start_studio(engine, design, read_only=True)`; without an engine, on an empty one in memory."""
    with ExitStack() as open_:

        def serve(engine: Engine | None = None, design: Design | None = None, **more: Any) -> ServedStudio:
            if engine is None:
                engine = Engine.open()
                open_.callback(engine.close)
            return open_.enter_context(serve_studio(engine, design, **more))

        yield serve


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@pytest.fixture
def pages(stage: Stage) -> Iterator[Callable[..., Page]]:
    """Open a page on a studio_server: `pages(studio_server, "/data/Tickets", viewport=…)`; each is watched to its end."""
    with ExitStack() as open_:

        def open_page(studio_server: ServedStudio, path: str = "", **settings: Any) -> Page:
            settings.setdefault("color_scheme", "light")
            result = open_.enter_context(stage.page(origin(studio_server.url), **settings))
            stage.run(result.goto, studio_server.url + path)
            return result

        yield open_page


@pytest.fixture
def page(pages: Callable[..., Page], studio_server: ServedStudio) -> Page:
    """A wide page on the demo's studio, in light colours; go where the test needs with `page.goto(studio_server.url + …)`."""
    return pages(studio_server)


@pytest.fixture
def phone(pages: Callable[..., Page], studio_server: ServedStudio) -> Page:
    """A page of 390 pixels on the demo's studio."""
    return pages(studio_server, viewport=NARROW, has_touch=True)
