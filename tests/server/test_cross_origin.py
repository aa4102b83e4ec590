"""Web pages of other sites: refused, unless the server admits their origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tavola.server.cross_origin import preflight_headers
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.server.raw import Answer, Raw, request, send_request
from tests.server.standin import StandIn

SITE = "http://localhost:3000"


@contextmanager
def _served(*origins: str, engine: StandIn | None = None) -> Iterator[ServerEndpoint]:
    with running(engine or StandIn(), safeguards=Safeguards(origins=origins)) as endpoint:
        yield endpoint


def _preflight(endpoint: ServerEndpoint, origin: str, host: str = "localhost") -> Answer:
    head = (
        f"OPTIONS / HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n"
        "Access-Control-Request-Headers: authorization,content-type,x-amz-target\r\n\r\n"
    )
    return send_request(endpoint, head.encode())


def _cors(answer: Answer) -> dict[str, str]:
    prefix = "access-control-"
    return {
        name.removeprefix(prefix): value for name, value in answer.headers.items() if name.startswith(prefix)
    }


def test_a_preflight_of_an_admitted_site() -> None:
    """OPTIONS is a 200 without a body that allows the method and headers asked for, for two days."""
    with _served(SITE) as endpoint:
        answer = _preflight(endpoint, SITE)

    assert (answer.status, answer.body) == (200, b"")
    assert _cors(answer) == {
        "allow-origin": SITE,
        "allow-methods": "POST",
        "allow-headers": "authorization,content-type,x-amz-target",
        "expose-headers": "x-amzn-RequestId, x-amz-crc32, Content-Encoding, Date",
        "max-age": "172800",
    }
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "Query", "Scan", "ExecuteStatement"])
def test_responses_to_an_admitted_site(operation: str) -> None:
    """Its pages may read every response: small, large, sliced and errors; others carry no such header."""
    engine = StandIn()
    engine.answer_bytes = 100_000
    with _served(SITE, "https://shop.example", engine=engine) as endpoint, Raw(endpoint) as client:
        for origin in (SITE, "https://shop.example"):
            client.send(request(operation, Origin=origin))
            page = client.answer()
            assert _cors(page)["allow-origin"] == origin
            assert set(_cors(page)) == {"allow-origin", "expose-headers"}
            assert page.status == (400 if operation == "Query" else 200)
        client.send(request(operation))
        program = client.answer()

        assert _cors(program) == {}
        assert (program.status, program.body) == (page.status, page.body)


@pytest.mark.parametrize(
    "origin", ["http://localhost:3001", "https://localhost:3000", "http://evil.example", "null"]
)
def test_other_sites_are_refused(origin: str) -> None:
    """A page of a site that is not listed is refused, in its preflight and in its request, and nothing is executed."""
    engine = StandIn()
    with _served(SITE, engine=engine) as endpoint:
        for answer in (
            _preflight(endpoint, origin),
            send_request(endpoint, request("PutItem", Origin=origin)),
        ):
            assert answer.status == 403
            assert _cors(answer) == {}
            assert "--cors" in json.loads(answer.body)["message"]

    assert engine.calls == []


def test_without_the_option_every_other_site_is_refused() -> None:
    """By default a preflight is refused like any request of a page."""
    with _served() as endpoint:
        assert _preflight(endpoint, SITE).status == 403


def test_the_host_is_checked_for_admitted_sites_too() -> None:
    """A rebound name is refused whatever the origin; without an Origin nothing changes."""
    with _served(SITE) as endpoint:
        answer = _preflight(endpoint, SITE, host="evil.example")
        assert answer.status == 403
        assert send_request(endpoint, request(Host="evil.example", Origin=SITE)).status == 403
        assert send_request(endpoint, request(Host="evil.example")).status == 403
        options = send_request(endpoint, b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (options.status, _cors(options)) == (404, {})


def test_nothing_else_is_echoed() -> None:
    """What is not a list of header names is not repeated in the response."""
    for value in (b"", b"a\x00b", b"x" * 5000, b"a: b"):
        lines = preflight_headers({b"access-control-request-headers": value})
        assert lines == b"Access-Control-Max-Age: 172800\r\n"
    assert b"Allow-Private-Network: true" in preflight_headers(
        {b"access-control-request-private-network": b"true"}
    )
