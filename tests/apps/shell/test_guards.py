"""The checks that every request passes before its route."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from tavola.apps.shell import (
    AppSettings,
    Pages,
    Upload,
    new_application,
    opened_store,
    running_server,
    shell_of,
)
from tests.apps.conftest import Run
from tests.apps.shell.parts import sample

Served = Callable[[FastAPI], TestClient]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(served: Served) -> TestClient:
    """A client of the sample."""
    return served(sample())


def test_every_response_has_security_headers(client: TestClient) -> None:
    """Every response, also a refusal, has the content security policy and the other headers, each once."""
    for path in ("/ui/", "/healthz", "/nothing"):
        headers = client.get(path).headers
        policy = (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
            "base-uri 'none'; frame-ancestors 'none'; connect-src 'self'"
        )
        assert headers.get_list("content-security-policy") == [policy]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8001", 200),
        ("localhost:8001", 200),
        ("desk.localhost", 200),
        ("[::1]:8001", 200),
        ("rebound.example.com", 403),
        ("127.0.0.1.example.com", 403),
        ("", 400),
        ("[::1]evil.com", 400),
        ("localhost:abc", 400),
        ("localhost, evil.com", 400),
        ("::1", 400),
    ],
)
def test_only_local_host_names_are_accepted(client: TestClient, host: str, status: int) -> None:
    """A request with a foreign Host that resolves to this machine is refused, and so is what is not exactly a host."""
    assert client.get("/healthz", headers={"Host": host}).status_code == status


def test_an_allowed_host_name_is_accepted(served: Served) -> None:
    """A proxy's name is allowed by a setting; its pages may send forms, even if the proxy does not forward its name."""
    client = served(sample(AppSettings(hosts=("desk.example.com",))))
    form = {"Origin": "https://desk.example.com", "Sec-Fetch-Site": "same-origin"}

    assert client.get("/healthz", headers={"Host": "Desk.example.com"}).status_code == 200
    assert client.post("/notes", json={"text": "x"}, headers=form).status_code == 201
    assert (
        client.post("/notes", json={"text": "x"}, headers={**form, "Origin": "https://evil.com"}).status_code
        == 403
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Origin": "http://127.0.0.1"}, 201),
        ({"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "none"}, 201),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1/"}, 403),
        ({"Origin": "http://[::1]evil.com"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"}, 403),
    ],
)
def test_a_cross_site_change_is_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    """A page of another site cannot make a browser change anything here."""
    assert client.post("/notes", json={"text": "x"}, headers=headers).status_code == status


def test_a_cross_site_link_is_allowed(client: TestClient) -> None:
    """A link from another site may be followed."""
    assert client.get("/healthz", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("body", [b'{"text": "' + b"x" * 10_000 + b'"}'])
def test_a_body_has_a_limit(client: TestClient, body: bytes) -> None:
    """A body over the limit is a 413, detected by its length or while it is received."""

    def in_parts() -> Iterator[bytes]:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    for content in (body, in_parts()):
        answer = client.post("/notes", content=content, headers=JSON)
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:tavola:problem:too-large"
    assert client.post("/notes", content=iter([b'{"text":', b' "x"}']), headers=JSON).status_code == 201


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "json",
        "application/",
        "",
        "application/jsonx",
        "a" * 300,
    ],
)
def test_another_content_type_is_refused(client: TestClient, kind: str) -> None:
    """Only JSON is accepted; another or malformed content type is a 415."""
    answer = client.post("/notes", content=b'{"text": "x"}', headers={"Content-Type": kind})

    assert answer.status_code == 415
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "kind", ["application/json", "APPLICATION/JSON; charset=utf-8", "application/merge-patch+json"]
)
def test_every_json_content_type_is_accepted(client: TestClient, kind: str) -> None:
    """A charset or a suffix is still JSON."""
    assert client.post("/notes", content=b'{"text": "x"}', headers={"Content-Type": kind}).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 5000,
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": "\\uDC00x"}',
        b'{"\\ud800": 1}',
        b'{"text": "a\\u0000b"}',
        b'{"text": "x", "n": NaN}',
        b'{"text": "x", "n": [-Infinity]}',
        b'{"text": "x", "n": ' + b"9" * 5000 + b"}",
        "{}".encode("utf-16"),
        b"\xef\xbb\xbf{}",
    ],
)
def test_json_that_cannot_be_stored_is_refused(client: TestClient, body: bytes) -> None:
    """Invalid JSON, invalid UTF-8 and text that cannot be stored are client errors, never a 500."""
    answer = client.post("/notes", content=body, headers=JSON)

    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "text", ["\\\\ud800 is no escape", "\\ud83d\\ude00", "\\u00e8 NaN Infinity", "\\\\u0000"]
)
def test_json_that_only_looks_invalid_is_accepted(client: TestClient, text: str) -> None:
    """A complete surrogate pair, an escaped backslash and the word NaN in a string are valid."""
    answer = client.post("/notes", content=b'{"text": "%s"}' % text.encode(), headers=JSON)

    assert answer.status_code == 201


def test_an_unexpected_error_shows_only_its_incident_id(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The response has an ID and no traceback; the log has the ID, the type and the location, not the data."""
    with caplog.at_level(logging.ERROR, "tavola.apps"):
        answer = client.get("/notes/broken")

    document = answer.json()
    assert answer.status_code == 500
    assert document["incident"] in document["detail"]
    assert "ZeroDivision" not in answer.text
    assert document["incident"] in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "GET /notes/{note_id}" in caplog.text
    assert "parts.py" in caplog.text
    assert "a value that was sent" not in caplog.text


def test_an_unexpected_error_is_a_page_for_a_browser(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A Tavola error without a mapping is a 500 too; a browser gets a page."""
    browser = {"Accept": "text/html"}
    page = client.get("/ui/broken", headers=browser)
    refused = client.post("/ui/broken", headers={**browser, "Origin": "http://evil.example"})

    assert (page.status_code, refused.status_code) == (500, 403)
    assert "Unexpected error" in page.text
    assert "Origin refused" in refused.text
    assert "a value that was sent" not in page.text + caplog.text


def test_head_is_get_without_its_body(client: TestClient) -> None:
    """Same status and headers, including the length, for monitors and proxies."""
    for path in ("/healthz", "/ui/", "/notes/1", "/notes/x", "/nothing"):
        get, head = client.get(path), client.head(path)

        assert head.status_code == get.status_code, path
        assert head.content == b""
        assert head.headers["content-length"] == get.headers["content-length"]
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/notes").headers["allow"] == "POST"
    assert 'method="HEAD",route="/healthz"' in client.get("/metrics").text


def test_a_host_is_sent_once(run: Run[Any]) -> None:
    """Two hosts, and none in HTTP/1.1, are refused as malformed; a health check of HTTP/1.0 needs none."""

    async def send_raw(head: bytes) -> bytes:
        async with running_server(sample(), port=0) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
            writer.write(head + b"Connection: close\r\n\r\n")
            received = await reader.read()
            writer.close()
            return received

    for hosts in (
        b"",
        b"Host: localhost\r\nHost: localhost\r\n",
        b"Host: localhost\r\nHost: evil.example\r\n",
    ):
        received = run(send_raw(b"GET /healthz HTTP/1.1\r\n" + hosts))
        assert received.startswith(b"HTTP/1.1 400 ")
        assert b"host-malformed" in received
    assert run(send_raw(b"GET /healthz HTTP/1.0\r\n")).startswith(b"HTTP/1.1 200 ")


def test_head_works_on_a_real_server(run: Run[Any]) -> None:
    """The length of a body that is not sent does not confuse the connection."""

    async def send_raw() -> bytes:
        async with running_server(sample(), port=0) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
            line = b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n"
            writer.write(line + b"\r\n" + line + b"Connection: close\r\n\r\n")
            received = await reader.read()
            writer.close()
            return received

    received = run(send_raw())
    assert received.count(b"HTTP/1.1 200 OK") == 2
    assert b'"ok"' not in received
    assert received.count(b"content-length: 15") == 2


def test_a_disconnected_client_is_not_an_incident(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """An incomplete request is not an error of the server: nothing is logged, no 5xx."""
    application = sample()

    @application.put("/ui/form")
    async def form(request: Request) -> int:
        return len(await request.form())

    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-length", b"9"),
        (b"host", b"x"),
    ]
    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/ui/form",
        "raw_path": b"/ui/form",
        "query_string": b"",
        "headers": headers,
    }
    run(application({**scope, "root_path": ""}, receive, send))

    assert caplog.text == ""
    assert sent[0]["status"] == 400


def test_an_upload_is_accepted_unchanged(served: Served) -> None:
    """A path for files accepts any body up to its own limit, also invalid JSON."""
    settings = AppSettings()

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings) as store:
            shell_of(application).watch(store)
            yield

    application = new_application(
        settings,
        title="Files",
        description="x",
        pages=Pages("Files"),
        lifespan=lifespan,
        body_bytes_max=10,
        uploads=(Upload(re.compile(r"/files/[^/]+"), 1000),),
    )

    @application.put("/files/{name}")
    async def put(request: Request, name: str) -> int:
        return len(await request.body())

    client = served(application)

    assert client.put("/files/a", content=b"{" * 900, headers=JSON).json() == 900
    assert client.put("/files/a", content=iter([b"\xff"] * 900)).json() == 900
    assert client.put("/files/a", content=b"x" * 1001).status_code == 413
    assert client.put("/files/a", content=iter([b"x" * 600] * 2)).status_code == 413
