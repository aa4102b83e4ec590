"""The start page and the applications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.shell import (
    AppSettings,
    Link,
    Mounted,
    Pages,
    SettingsRefused,
    Start,
    new_application,
    shell_of,
    start_page,
)
from tests.apps.shell.parts import sample


def demo(base_path: str = "") -> Start:
    """Return a demo of two applications."""
    mounted = [
        Mounted("/support-desk", "Support desk", "Tickets.", sample(), [Link("Queue", "/ui/queue")]),
        Mounted("/service-desk", "Service desk", "Calls.", sample(), api=False),
    ]
    return start_page(
        AppSettings(base_path=base_path),
        mounted,
        endpoint="http://127.0.0.1:8000",
        commands=["use-the-endpoint"],
    )


def test_the_start_page_links_everything() -> None:
    """The start page links to each application, its pages and its API, and shows the endpoint."""
    with TestClient(demo(), base_url="http://127.0.0.1") as client:
        page = client.get("/").text

    for path in ("/support-desk/", "/support-desk/ui/queue", "/support-desk/ui/api", "/service-desk/"):
        assert f'href="{path}"' in page
    assert "/service-desk/ui/api" not in page
    assert "http://127.0.0.1:8000" in page
    assert "use-the-endpoint" in page
    assert "make docs-site" in page


def test_all_lifespans_are_run() -> None:
    """Each application is opened and closed with the demo; readiness covers all of them."""
    start = demo()
    with TestClient(start, base_url="http://127.0.0.1") as client:
        for path in ("/readyz", "/support-desk/readyz", "/service-desk/readyz"):
            assert client.get(path).status_code == 200, path
        mounts = [route.app for route in start.routes if hasattr(route, "app") and route.path]  # type: ignore[attr-defined]
        faces = [each for each in mounts if hasattr(each, "state")]
        assert [shell_of(each).store is not None for each in faces] == [True, True]
    assert [shell_of(each).store for each in faces] == [None, None]


def test_a_failed_start_closes_the_others() -> None:
    """A start that fails halfway leaves nothing open, and reports the cause."""
    lines: list[str] = []

    def face(name: str, *, fails: bool = False) -> FastAPI:
        settings = AppSettings()

        @asynccontextmanager
        async def lifespan(application: FastAPI) -> AsyncIterator[None]:
            if fails:
                raise SettingsRefused("state", "no room")
            lines.append(f"{name} opened")
            try:
                yield
            finally:
                lines.append(f"{name} closed")

        return new_application(settings, title=name, description=name, pages=Pages(name), lifespan=lifespan)

    mounted = [
        Mounted("/a", "A", "", face("a")),
        Mounted("/b", "B", "", face("b", fails=True)),
        Mounted("/c", "C", "", face("c")),
    ]

    async def opened() -> None:
        start = start_page(AppSettings(), mounted)
        async with start.router.lifespan_context(start):
            pass

    with pytest.raises(SettingsRefused, match="no room"):
        asyncio.run(opened())
    assert lines == ["a opened", "a closed"]


@pytest.mark.parametrize("base", ["", "/demo"])
@pytest.mark.parametrize("stripped", [False, True])
def test_everything_works_under_a_base_path(base: str, stripped: bool) -> None:
    """URLs work under a proxy's path, whether or not the proxy strips it."""
    front = "" if stripped else base
    with TestClient(demo(base), base_url="http://127.0.0.1", follow_redirects=False) as client:
        assert client.get(f"{front}/support-desk/notes/1").json() == {"text": "x"}
        assert client.get(f"{front}/").headers["location"] == f"{base}/ui/"
        assert client.get(f"{front}/support-desk").headers["location"] == f"{base}/support-desk/"
        assert client.get(f"{front}/support-desk/").headers["location"] == f"{base}/support-desk/ui/"
        page = client.get(f"{front}/support-desk/ui/").text
        assert f'href="{base}/support-desk/ui/tickets"' in page
        assert f'<a class="home" href="{base}/">' in page
        assert 'class="home"' not in client.get(f"{front}/ui/").text
        document = client.get(f"{front}/support-desk/openapi.json").json()
        assert document["servers"] == [{"url": f"{base}/support-desk"}]
        assert client.get(f"{front}/nowhere").status_code == 404


def test_each_application_guards_itself_once() -> None:
    """A request passes one guard: headers appear once, and limits are the application's own."""
    with TestClient(demo(), base_url="http://127.0.0.1") as client:
        headers = client.get("/support-desk/ui/").headers
        assert len(headers.get_list("content-security-policy")) == 1
        refused = client.post(
            "/support-desk/notes", json={"text": "x"}, headers={"Origin": "http://evil.example"}
        )
        assert refused.status_code == 403
        assert refused.json()["instance"] == "/support-desk/notes"
        assert "/notes/{note_id}" not in client.get("/metrics").text


def test_an_unknown_path_is_a_page_for_a_browser() -> None:
    """An unknown path is a page for a browser and a document for a program, everywhere."""
    with TestClient(demo(), base_url="http://127.0.0.1") as client:
        for path in ("/nope", "/support-desk/nope", "/ui/nope"):
            page = client.get(path, headers={"Accept": "text/html"})
            response = client.get(path)

            assert (page.status_code, response.status_code) == (404, 404)
            assert page.headers["content-type"].startswith("text/html")
            assert response.headers["content-type"] == "application/problem+json"
