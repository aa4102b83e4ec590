"""The applications in a browser: one demo served for the session, one Chromium, a fresh page for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install -e .[dev]")
pytest.importorskip(
    "axe_playwright_python", reason="axe-playwright-python is not installed: pip install -e .[dev]"
)

from playwright.sync_api import Page

from tests.browser.stage import NARROW, Stage
from tools.browser import Demo, chromium, running_demo

Opened = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that has the browser on the browser's thread."""
    stage = pyfuncitem.funcargs.get("stage")
    if not isinstance(stage, Stage):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    stage.run(partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """A Chromium for the session."""
    program = chromium(os.environ.get("TAVOLA_CHROMIUM"))
    if program is None:
        pytest.skip("no Chromium on this machine; install one, or name it in TAVOLA_CHROMIUM")
    result = Stage(program)
    yield result
    result.close()


@pytest.fixture(scope="session")
def demo(stage: Stage) -> Iterator[Demo]:
    """All applications behind one port, in a process of their own, on a new file with a small seed."""
    with running_demo() as served:
        yield served


@pytest.fixture
def opened(stage: Stage, demo: Demo) -> Iterator[Opened]:
    """Open pages of browsers that know nothing, with settings of Playwright's; each is watched to its end."""
    with ExitStack() as pages:

        def open_page(**settings: Any) -> Page:
            return pages.enter_context(stage.page(demo.url, **settings))

        yield open_page


@pytest.fixture
def page(stage: Stage, demo: Demo) -> Iterator[Page]:
    """A wide page in light colours."""
    with stage.page(demo.url, color_scheme="light") as result:
        yield result


@pytest.fixture
def phone(stage: Stage, demo: Demo) -> Iterator[Page]:
    """A page of 390 pixels."""
    with stage.page(demo.url, viewport=NARROW, has_touch=True) as result:
        yield result
