"""What an application has before it defines a route."""

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
from tavola.apps.shell import AppSettings, OpenedStore, shell_of
from tests.apps.shell.parts import sample

Served = Callable[[FastAPI], TestClient]

_document: Any = schemathesis.openapi.from_asgi("/openapi.json", sample())


def test_the_root_leads_to_the_pages(served: Served) -> None:
    """A browser at the root is redirected to the pages, also under a base path."""
    assert served(sample()).get("/", follow_redirects=False).headers["location"] == "/ui/"
    under = served(sample(AppSettings(base_path="/desk")))
    assert under.get("/desk/", follow_redirects=False).headers["location"] == "/desk/ui/"
    assert under.get("/", follow_redirects=False).headers["location"] == "/desk/ui/"  # the proxy took it away


def test_the_pages_without_their_slash_are_found(served: Served) -> None:
    """The redirect has no scheme or host, because a proxy may have others. No other path is guessed."""
    for settings_, path in ((AppSettings(), ""), (AppSettings(base_path="/desk"), "/desk")):
        client = served(sample(settings_))
        answer = client.get(f"{path}/ui", follow_redirects=False)

        assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/ui/")
        assert client.get(f"{path}/notes/1/", follow_redirects=False).status_code == 404


def test_health_and_readiness_are_separate(served: Served) -> None:
    """/healthz says that the process lives; /readyz that the store responds and followers run."""
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
    """A denial counts as a response; a timeout does not."""
    application = sample()
    client = served(application)
    store = shell_of(application).store
    assert isinstance(store, OpenedStore)

    async def refused(*_: object) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(store.db, "call", refused)
    assert client.get("/readyz").status_code == status


def test_it_is_not_ready_before_startup_and_after_shutdown() -> None:
    """An application that has not started, or has stopped, says so."""
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


def test_a_405_lists_the_allowed_methods(served: Served) -> None:
    """405 names the methods of all routes at the path, not only those of the first."""
    answer = served(sample()).delete("/notes/1")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, PATCH"
    assert answer.json()["type"] == "urn:tavola:problem:method-not-allowed"


def test_a_problem_is_a_page_for_a_browser(served: Served) -> None:
    """Under /ui a browser gets a page and a program the JSON document; elsewhere everyone gets the document."""
    client = served(sample())
    browser = {"Accept": "text/html,application/xhtml+xml"}

    page = client.get("/ui/missing", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "This ticket does not exist." in page.text
    assert client.get("/ui/nowhere", headers=browser).headers["content-type"].startswith("text/html")
    assert client.get("/ui/missing").headers["content-type"] == "application/problem+json"
    assert client.get("/notes/x", headers=browser).headers["content-type"] == "application/problem+json"


def test_the_document_declares_every_problem(served: Served) -> None:
    """OpenAPI 3.1 with our problems instead of FastAPI's errors, and none of its schemas left."""
    document = served(sample()).get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    assert {"Problem", "InvalidField"} <= set(schemas)
    assert not {"HTTPValidationError", "ValidationError"} & set(schemas)
    responses = document["paths"]["/notes/{note_id}"]["patch"]["responses"]
    assert {"200", "400", "403", "404", "412", "413", "415", "422", "428", "500", "503"} <= set(responses)
    for status, answer in responses.items():
        if status != "200":
            assert list(answer["content"]) == ["application/problem+json"]
    assert document["paths"]["/notes"]["post"]["responses"]["201"]


def test_the_document_names_the_base_path(served: Served) -> None:
    """A client that reads the document through a proxy finds the server in it."""
    client = served(sample(AppSettings(base_path="/desk")))

    assert client.get("/desk/openapi.json").json()["servers"] == [{"url": "/desk"}]
    page = client.get("/desk/ui/").text
    assert 'href="/desk/ui/tickets"' in page
    assert 'href="/ui/' not in page
    assert 'src="/ui/' not in page


def test_the_api_page_lists_each_operation(served: Served) -> None:
    """Every operation has its parameters, an example body and a command."""
    page = served(sample()).get("/ui/api").text

    assert "/notes/{note_id}" in page
    assert "If-None-Match" in page
    assert "curl -X PATCH &#39;http://127.0.0.1/notes/{note_id}&#39;" in page
    assert "&#34;text&#34;: &#34;…&#34;" in page


@_document.parametrize()  # type: ignore[untyped-decorator]  # schemathesis makes it of the document
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_sample_matches_its_document(case: Any) -> None:
    """For any request, the response is declared in the document and is not a 5xx."""
    if case.path_parameters and case.path_parameters.get("note_id") == "broken":
        return  # the route that fails on purpose
    case.call_and_validate(headers={"Host": "127.0.0.1"}, excluded_checks=[positive_data_acceptance])
