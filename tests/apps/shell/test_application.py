"""What an application has before it has a route of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings
from schemathesis.checks import (
    positive_data_acceptance,
)  # a version that is not the current one is valid data

from tavola import AccessDeniedFault, EndpointUnreachable
from tavola.apps.shell import OpenedStore, Settings, shell_of
from tests.apps.shell.parts import sample

Served = Callable[[FastAPI], TestClient]

_document: Any = schemathesis.openapi.from_asgi("/openapi.json", sample())


def test_the_root_leads_to_the_pages(served: Served) -> None:
    """A browser at the root is sent to the pages, also under a base path."""
    assert served(sample()).get("/", follow_redirects=False).headers["location"] == "/ui/"
    under = served(sample(Settings(base_path="/desk")))
    assert under.get("/desk/", follow_redirects=False).headers["location"] == "/desk/ui/"
    assert under.get("/", follow_redirects=False).headers["location"] == "/desk/ui/"  # the proxy took it away


def test_the_pages_without_their_slash_are_found(served: Served) -> None:
    """It leads on with an address that has neither scheme nor host: a proxy may have others. Nothing else is guessed."""
    for settings_, path in ((Settings(), ""), (Settings(base_path="/desk"), "/desk")):
        client = served(sample(settings_))
        answer = client.get(f"{path}/ui", follow_redirects=False)

        assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/ui/")
        assert client.get(f"{path}/notes/1/", follow_redirects=False).status_code == 404


def test_health_is_told_in_two_ways(served: Served) -> None:
    """That the process lives is one thing, that the store answers and followers run is another."""
    application = sample()
    client = served(application)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready", "followers": {}}

    class Stuck:
        name, state, running = "numbers", "failing", True

    shell_of(application).followers = (Stuck(),)  # type: ignore[assignment]
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["followers"]) == (503, {"numbers": "failing"})
    Stuck.state, Stuck.running = "following", False  # whatever it says of itself
    assert client.get("/readyz").json()["followers"] == {"numbers": "stopped"}
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [(AccessDeniedFault("no"), 200), (EndpointUnreachable("http://localhost:1", "refused"), 503)],
)
def test_a_store_that_answers_is_ready(
    served: Served, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """A denial is an answer too; silence is not."""
    application = sample()
    client = served(application)
    store = shell_of(application).store
    assert isinstance(store, OpenedStore)

    async def refused(*_: object) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(store.db, "call", refused)
    assert client.get("/readyz").status_code == status


def test_before_and_after_its_life_it_is_not_ready() -> None:
    """An application that has not begun, or has ended, says so."""
    application = sample()

    async def ready() -> int:
        from tavola.apps.shell import ProblemError

        try:
            await shell_of(application).ready()
        except ProblemError as problem:
            return problem.status
        return 200

    assert asyncio.run(ready()) == 503
    with TestClient(application):
        pass
    assert asyncio.run(ready()) == 503


def test_a_method_that_is_not_taken_says_which_are(served: Served) -> None:
    """405 names the methods of all routes at the address, not those of the first."""
    answer = served(sample()).delete("/notes/1")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, PATCH"
    assert answer.json()["type"] == "urn:tavola:problem:method-not-allowed"


def test_a_problem_is_a_page_for_a_browser(served: Served) -> None:
    """Under /ui a browser is shown a page, a program is given the document; so is everybody elsewhere."""
    client = served(sample())
    browser = {"Accept": "text/html,application/xhtml+xml"}

    page = client.get("/ui/missing", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such ticket." in page.text
    assert client.get("/ui/nowhere", headers=browser).headers["content-type"].startswith("text/html")
    assert client.get("/ui/missing").headers["content-type"] == "application/problem+json"
    assert client.get("/notes/x", headers=browser).headers["content-type"] == "application/problem+json"


def test_the_document_tells_every_problem(served: Served) -> None:
    """OpenAPI 3.1, with our problems in the place of FastAPI's errors, and none of its schemas left."""
    document = served(sample()).get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    assert {"Problem", "InvalidField"} <= set(schemas)
    assert not {"HTTPValidationError", "ValidationError"} & set(schemas)
    told = document["paths"]["/notes/{note_id}"]["patch"]["responses"]
    assert {"200", "400", "403", "404", "412", "413", "415", "422", "428", "500", "503"} <= set(told)
    for status, answer in told.items():
        if status != "200":
            assert list(answer["content"]) == ["application/problem+json"]
    assert document["paths"]["/notes"]["post"]["responses"]["201"]


def test_under_a_base_path_the_document_says_where(served: Served) -> None:
    """A client that reads the document through a proxy finds the server in it."""
    client = served(sample(Settings(base_path="/desk")))

    assert client.get("/desk/openapi.json").json()["servers"] == [{"url": "/desk"}]
    page = client.get("/desk/ui/").text
    assert 'href="/desk/ui/tickets"' in page
    assert 'href="/ui/' not in page
    assert 'src="/ui/' not in page


def test_the_page_about_the_api_tells_each_operation(served: Served) -> None:
    """Every operation has its parameters, an example body and a command."""
    page = served(sample()).get("/ui/api").text

    assert "/notes/{note_id}" in page
    assert "If-None-Match" in page
    assert "curl -X PATCH &#39;http://127.0.0.1/notes/{note_id}&#39;" in page
    assert "&#34;text&#34;: &#34;…&#34;" in page


@_document.parametrize()  # type: ignore[untyped-decorator]  # schemathesis makes it of the document
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_sample_keeps_its_own_document(case: Any) -> None:
    """Whatever is sent, the answer is one that the document tells of, and none is a 5xx."""
    if case.path_parameters and case.path_parameters.get("note_id") == "broken":
        return  # the route that fails on purpose
    case.call_and_validate(headers={"Host": "127.0.0.1"}, excluded_checks=[positive_data_acceptance])
