"""The server's manners over TLS: the same answers, the same patience, the same end."""

from __future__ import annotations

import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards, ServerLimits, tls_context
from tests.server.certificates import make_certificates
from tests.server.raw import PATIENCE_S, Raw, request
from tests.server.standin import StandIn


class Secure(Raw):
    """One connection over TLS that verifies the server's certificate."""

    def __init__(self, endpoint: ServerEndpoint, authority: Path) -> None:
        super().__init__(endpoint)
        context = ssl.create_default_context(cafile=authority)
        self.socket = context.wrap_socket(self.socket, server_hostname=endpoint.host)
        self.socket.settimeout(PATIENCE_S)


@contextmanager
def _served(folder: Path, **limits: float) -> Iterator[tuple[ServerEndpoint, Path]]:
    files = make_certificates(folder, "127.0.0.1")
    safeguards = Safeguards(tls=tls_context(files.certificate, files.key))
    changed = ServerLimits(**limits)  # type: ignore[arg-type]  # the caller names them; numbers all
    with running(StandIn(), limits=changed, safeguards=safeguards) as endpoint:
        yield endpoint, files.authority


def test_requests_are_answered_in_order(tmp_path: Path) -> None:
    """A pipeline over TLS is answered as one without, writes after their commit."""
    with _served(tmp_path) as (endpoint, authority), Secure(endpoint, authority) as client:
        client.send(request("PutItem", b'{"key":"k","n":1}') + request("GetItem") + request("DeleteItem"))

        assert client.answer().status == 200
        assert client.answer().body == b'{"key":"k","n":1}'
        assert client.answer().status == 400


def test_a_refusal_reaches_a_client_that_still_sends(tmp_path: Path) -> None:
    """A body that is too large is refused before it comes, and the connection ends."""
    limits = {"body_bytes_max": 1000, "linger_s": 0.05}
    with _served(tmp_path, **limits) as (endpoint, authority), Secure(endpoint, authority) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 5000)

        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert client.closed()


def test_a_client_that_says_goodbye_is_let_go(tmp_path: Path) -> None:
    """TLS has no half-open connections: a client that closes its side is answered and closed."""
    with _served(tmp_path) as (endpoint, authority), Secure(endpoint, authority) as client:
        client.send(request("GetItem"))
        assert client.answer().status == 200
        assert isinstance(client.socket, ssl.SSLSocket)
        client.socket.unwrap()


def test_a_client_without_a_handshake_is_closed(tmp_path: Path) -> None:
    """A silent or plain-text client is closed, and others are served."""
    with _served(tmp_path, head_s=0.1) as (endpoint, authority):
        with Raw(endpoint) as silent, Raw(endpoint) as plain:
            plain.send(request("GetItem"))
            assert plain.closed()
            assert silent.closed()
        with Secure(endpoint, authority) as client:
            client.send(request("GetItem"))
            assert client.answer().status == 200


def test_a_server_stops_though_connections_are_open(tmp_path: Path) -> None:
    """Idle connections are closed when the server stops."""
    with _served(tmp_path) as (endpoint, authority):
        client = Secure(endpoint, authority)
        client.send(request("GetItem"))
        assert client.answer().status == 200

    with client:
        assert client.closed()


def test_old_versions_are_not_spoken(tmp_path: Path) -> None:
    """A client that offers at most TLS 1.1 is refused."""
    with _served(tmp_path) as (endpoint, _):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            socket.create_connection((endpoint.host, endpoint.port), timeout=PATIENCE_S) as plain,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            context.wrap_socket(plain)
