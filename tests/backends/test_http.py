"""Endpoints over HTTP, well and badly behaved, called in three ways:

blocking, on asyncio's loop and on uvloop's.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola.backends.configuration import LocalConfiguration, ServiceEndpoint, client_tls_context
from tavola.backends.errors import (
    EndpointUnreachable,
    EndpointUntrusted,
    ResponseCorrupted,
    ResponseUnreadable,
)
from tavola.backends.http import HttpBackend
from tavola.backends.remote import is_read
from tavola.backends.sockets import SocketTransport
from tavola.clock import monotonic
from tavola.engine import Engine
from tavola.protocol.faults import ConditionalCheckFailedFault, Fault, UnknownOperationFault
from tavola.protocol.operations import OPERATIONS, Service
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards, tls_context
from tests.backends.endpoints import (
    PATIENCE_S,
    SHELLS,
    Peer,
    deserted,
    echo,
    open_backend,
    response,
    scripted,
)
from tests.backends.test_embedded import KEY, TABLE
from tests.server.certificates import make_certificates

PUT = {"TableName": "Orders", "Item": {"pk": {"S": "a"}}}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """One of the kinds of backend."""
    name: str = request.param
    return name


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a Tavola server."""
    with Engine.open() as engine, running(engine) as served:
        yield served.url


def test_a_server_answers_as_the_engine_does(shell: str, endpoint: str) -> None:
    """Responses and faults are those of an engine in this process; no botocore is needed for a server here."""
    with open_backend(shell, endpoint) as backend:
        described = backend.call("CreateTable", TABLE)["TableDescription"]
        put = {**PUT, "ConditionExpression": "attribute_not_exists(pk)"}
        backend.call("PutItem", put)

        assert described["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
        assert backend.call("GetItem", KEY) == {"Item": {"pk": {"S": "a"}}}
        with pytest.raises(ConditionalCheckFailedFault):
            backend.call("PutItem", put)
        with pytest.raises(UnknownOperationFault):
            backend.call("MakeCoffee", {})


def test_large_bodies_go_both_ways(shell: str) -> None:
    """A body of many packets arrives whole, and the connection remains usable."""
    large = {"TableName": "x" * 3_000_000}
    with scripted(echo) as script, open_backend(shell, script.url) as backend:
        assert backend.call("PutItem", large) == large
        assert backend.call("PutItem", PUT) == PUT

    assert script.connections == 1


def test_connections_are_reused(shell: str) -> None:
    """One call after another uses the same connection."""
    with scripted(echo) as script, open_backend(shell, script.url) as backend:
        for number in range(20):
            assert backend.call("GetItem", {"TableName": str(number)}) == {"TableName": str(number)}

    assert script.connections == 1


@pytest.mark.parametrize("header", ["Connection: close", "connection: CLOSE"])
def test_a_closing_connection_is_not_reused(shell: str, header: str) -> None:
    """A connection that the endpoint announces to close is not used again, though still open."""

    def behave(peer: Peer) -> None:
        peer.read()
        peer.send(response(b"{}", header))
        peer.read()  # no response

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        backend.call("PutItem", PUT)
        backend.call("PutItem", PUT)

    assert script.connections == 2
    assert len(script.requests) == 2


def test_a_connection_closed_while_idle_is_seen(shell: str) -> None:
    """An endpoint that closes between two requests costs a connection and no error, and no request is sent twice."""
    with scripted(lambda peer: peer.answer()) as script, open_backend(shell, script.url) as backend:
        for _ in range(3):
            assert backend.call("PutItem", PUT) == PUT
            script.wait()

    assert script.connections == 3
    assert len(script.requests) == 3


def test_an_unexpected_response_ends_a_connection(shell: str) -> None:
    """A response without a request is not taken as the response to the next request."""

    def behave(peer: Peer) -> None:
        peer.answer()
        if peer.number == 0:
            peer.send(response(b'{"TableName":"of somebody else"}'))
            said.set()
        peer.answer()

    said = threading.Event()
    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        backend.call("PutItem", PUT)
        assert said.wait(PATIENCE_S)

        assert backend.call("PutItem", PUT) == PUT
    assert script.connections == 2


def test_bytes_after_the_response_end_a_connection(shell: str) -> None:
    """Of two responses in one packet the first counts, and the connection is not used again."""

    def behave(peer: Peer) -> None:
        if peer.number == 0:
            peer.read()
            peer.send(response(b'{"Count":1}') + response(b'{"Count":2}'))
        peer.answer()

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        assert backend.call("Query", {}) == {"Count": 1}
        assert backend.call("Query", {"TableName": "T01"}) == {"TableName": "T01"}
    assert script.connections == 2


def carried_out(peer: Peer) -> None:
    """Answer one request, read the next whole as if to carry it out, and close; later connections answer."""
    peer.answer()
    if peer.number == 0:
        peer.read()
    else:
        echo(peer)


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "TransactWriteItems", "ExecuteStatement"])
def test_a_write_is_never_sent_twice(shell: str, operation: str) -> None:
    """If an endpoint may have executed a write and does not respond, the error is raised and nothing is resent."""
    with scripted(carried_out) as script, open_backend(shell, script.url) as backend:
        backend.call("GetItem", KEY)
        with pytest.raises(EndpointUnreachable, match="closed without a response") as caught:
            backend.call(operation, PUT)

    assert caught.value.sent
    assert len(script.requests) == 2
    assert script.connections == 1


def test_a_write_on_a_new_connection_is_never_sent_twice(shell: str) -> None:
    """The same without an earlier request."""
    with scripted(lambda peer: peer.read()) as script, open_backend(shell, script.url) as backend:
        with pytest.raises(EndpointUnreachable, match="closed without a response"):
            backend.call("PutItem", PUT)

    assert len(script.requests) == 1


def test_a_read_on_a_reused_connection_is_sent_once_more(shell: str) -> None:
    """A read may be repeated if a connection ended that worked before."""
    with scripted(carried_out) as script, open_backend(shell, script.url) as backend:
        backend.call("GetItem", KEY)
        assert backend.call("GetItem", KEY) == KEY

    assert len(script.requests) == 3
    assert script.connections == 2


def test_a_read_is_sent_no_more_than_twice(shell: str) -> None:
    """An endpoint that never responds is not called for ever."""

    def behave(peer: Peer) -> None:
        if peer.number == 0:
            peer.answer()
        peer.read()

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        backend.call("GetItem", KEY)
        with pytest.raises(EndpointUnreachable):
            backend.call("GetItem", KEY)

    assert len(script.requests) == 3


def test_operations_that_may_be_repeated() -> None:
    """Every operation that may be sent twice, by name: none of them writes."""
    reads = {name for name in OPERATIONS if is_read(name)}

    assert reads == {
        name
        for name in OPERATIONS
        if name.startswith(("Describe", "List"))
        or name
        in {
            *("BatchGetItem", "GetItem", "GetRecords", "GetResourcePolicy", "GetShardIterator"),
            *("Query", "Scan", "SearchVectors", "TransactGetItems"),
        }
    }


@pytest.mark.parametrize(
    "part", [response(b'{"Count":1}')[:-3], response(b'{"Count":1}')[:20], b"HTTP/1.1 200 OK\r\n\r\n"[:3]]
)
def test_a_partial_response_is_not_a_response(shell: str, part: bytes) -> None:
    """If an endpoint closes during its response, a read is not repeated."""

    def behave(peer: Peer) -> None:
        peer.answer()
        peer.read()
        peer.send(part)

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        backend.call("GetItem", KEY)
        with pytest.raises(EndpointUnreachable, match="in the middle of the response"):
            backend.call("GetItem", KEY)

    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"220 smtp.example.com ESMTP\r\n", None),
        (b"\x00\xff\xfe" * 100, None),
        (response(b"<html>"), 200),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 101),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad", 502),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hexadecimal\r\n", 200),
    ],
)
def test_an_invalid_response_is_reported(shell: str, said: bytes, status: int | None) -> None:
    """It is reported as such, with the status if it was HTTP, and its connection is not used again."""

    def behave(peer: Peer) -> None:
        peer.read()
        peer.send(said if peer.number == 0 else response())
        peer.read()

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        with pytest.raises(ResponseUnreadable) as caught:
            backend.call("GetItem", KEY)

    assert caught.value.status == status
    assert "check that it is a DynamoDB endpoint" in str(caught.value)


def test_a_changed_answer_is_found_out(shell: str) -> None:
    """The checksum of a response is compared, and the error says what to do."""

    def behave(peer: Peer) -> None:
        peer.read()
        peer.send(response(b'{"Count":1}').replace(b":1}", b":2}"))

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        with pytest.raises(ResponseCorrupted):
            backend.call("Query", {})


def test_an_answer_that_does_not_come(shell: str) -> None:
    """After the timeout the call fails, and its connection is not used again."""
    gone = threading.Event()

    def behave(peer: Peer) -> None:
        if peer.number:
            echo(peer)
            return
        peer.read()
        gone.wait(PATIENCE_S)

    with scripted(behave) as script, open_backend(shell, script.url, timeout_s=0.1) as backend:
        with pytest.raises(EndpointUnreachable, match=r"not complete within 0\.1 s") as caught:
            backend.call("GetItem", KEY)
        assert caught.value.sent
        assert backend.call("GetItem", KEY) == KEY
        gone.set()

    assert script.connections == 2


def test_an_answer_that_comes_in_drops(shell: str) -> None:
    """The time is for the whole answer: a byte now and then does not stretch it."""
    gone = threading.Event()

    def behave(peer: Peer) -> None:
        peer.read()
        for byte in response(b'{"Count":1}'):
            peer.send(bytes([byte]))
            if gone.wait(0.03):
                return

    with scripted(behave) as script, open_backend(shell, script.url, timeout_s=0.2) as backend:
        began_s = monotonic()
        with pytest.raises(EndpointUnreachable, match=r"not complete within 0\.2 s"):
            backend.call("Query", {})
        took_s = monotonic() - began_s
        gone.set()

    assert took_s < 1.5


@pytest.mark.parametrize(
    "said",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"Cou\r\n6\r\nnt":1}\r\n0\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\n" + response(b'{"Count":1}'),
        b'HTTP/1.0 200 OK\r\n\r\n{"Count":1}',
    ],
    ids=["in chunks", "announced", "to the end"],
)
def test_answers_as_http_allows_them(shell: str, said: bytes) -> None:
    """In chunks, after an interim answer, or up to the connection's end: it is the same answer."""

    def behave(peer: Peer) -> None:
        peer.read()
        peer.send(said)

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        assert backend.call("Query", {}) == {"Count": 1}


def test_a_refused_connection(shell: str) -> None:
    """The error names the endpoint and says that nothing was sent."""
    with deserted() as url, open_backend(shell, url) as backend:
        with pytest.raises(EndpointUnreachable, match="does not respond") as caught:
            backend.call("PutItem", PUT)

    assert caught.value.endpoint == url
    assert not caught.value.sent


def test_an_impossible_host_name(shell: str) -> None:
    """A name that no machine can have is reported as an unreachable endpoint."""
    with pytest.raises(EndpointUnreachable, match="not a valid host name") as caught:
        with open_backend(shell, "http://a..b:8000") as backend:
            backend.call("ListTables", {})

    assert not caught.value.sent


class Trusting(LocalConfiguration):
    """A server on this machine, with the authority that vouches for it."""

    def __init__(self, endpoint: str, authority: Path) -> None:
        super().__init__(endpoint)
        self._authority = authority

    def resolve(self, service: Service) -> ServiceEndpoint:
        """Return the way with this authority's certificate."""
        return ServiceEndpoint(self._address, client_tls_context(self._address, str(self._authority)))


def test_tls(shell: str, tmp_path: Path) -> None:
    """A certificate must be trusted; TLS meeting plain text is distinguished from silence."""
    files = make_certificates(tmp_path, "127.0.0.1")
    safeguards = Safeguards(tls=tls_context(files.certificate, files.key))
    with Engine.open() as engine, running(engine, safeguards=safeguards) as served:
        with open_backend(shell, Trusting(served.url, files.authority)) as backend:
            for _ in range(3):
                assert backend.call("ListTables", {}) == {"TableNames": []}
        with (
            open_backend(shell, served.url) as backend,
            pytest.raises(EndpointUntrusted, match="AWS_CA_BUNDLE"),
        ):
            backend.call("ListTables", {})
        with open_backend(shell, served.url.replace("https:", "http:")) as backend:
            with pytest.raises(EndpointUnreachable, match="try https://"):
                backend.call("ListTables", {})
        with open_backend(
            shell, Trusting(served.url.replace("127.0.0.1", "localhost"), files.authority)
        ) as backend:
            with pytest.raises(EndpointUntrusted, match="ostname mismatch"):
                backend.call("ListTables", {})
    with Engine.open() as engine, running(engine) as plain:
        with open_backend(shell, plain.url.replace("http:", "https:")) as backend:
            with pytest.raises(EndpointUnreachable, match="try http://") as caught:
                backend.call("ListTables", {})
    assert not caught.value.sent


def test_an_answer_in_tls_to_a_question_in_clear(shell: str) -> None:
    """Servers that answer with TLS's own alert are recognised."""

    def behave(peer: Peer) -> None:
        peer.read()
        peer.send(b"\x15\x03\x03\x00\x02\x02\x16")

    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        with pytest.raises(EndpointUnreachable, match="try https://"):
            backend.call("ListTables", {})


def test_authorities_that_cannot_be_read(shell: str, tmp_path: Path) -> None:
    """A bundle that is missing, or holds no certificate, is named."""
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    for bundle in (tmp_path / "missing.pem", empty):
        with open_backend(shell, Trusting("https://127.0.0.1:1", bundle)) as backend:
            with pytest.raises(EndpointUntrusted, match=f"{bundle.name} cannot be read"):
                backend.call("ListTables", {})


def test_several_calls_at_once(shell: str) -> None:
    """Responses and faults are in the order of the calls; concurrent calls are bounded."""
    lock, under_way, most = threading.Lock(), 0, 0
    enough = threading.Event()

    def behave(peer: Peer) -> None:
        nonlocal under_way, most
        while (body := peer.read()) is not None:
            with lock:
                under_way += 1
                most = max(most, under_way)
                if under_way == 4:
                    enough.set()
            assert enough.wait(PATIENCE_S)
            with lock:
                under_way -= 1
            if b"refused" in body:
                fault = b'{"__type":"x#ConditionalCheckFailedException","message":"no"}'
                peer.send(response(fault).replace(b"200 OK", b"400 Bad"))
            else:
                peer.send(response(body))

    names = [f"T{number:02}" for number in range(20)]
    names[7] = "refused"
    with scripted(behave) as script, open_backend(shell, script.url, concurrent_calls_max=4) as backend:
        results = backend.call_all([("GetItem", {"TableName": name}) for name in names])

        assert backend.call_all([]) == []
        assert backend.call_all([("GetItem", KEY)]) == [KEY]
    assert most == 4
    assert script.connections <= 4
    assert isinstance(results[7], ConditionalCheckFailedFault)
    assert [each["TableName"] for each in results if isinstance(each, dict)] == [
        name for name in names if name != "refused"
    ]


def test_an_error_among_several_calls(shell: str) -> None:
    """The error is in its position, and the other calls are answered: no completed write is lost."""

    def behave(peer: Peer) -> None:
        while (body := peer.read()) is not None and b"bad" not in body:
            peer.send(response(body))

    calls: list[tuple[str, dict[str, Any]]] = [
        ("PutItem", {"TableName": f"T{each:02}"}) for each in range(12)
    ]
    calls[2] = ("PutItem", {"TableName": "bad"})
    with scripted(behave) as script, open_backend(shell, script.url) as backend:
        results = backend.call_all(calls)

    assert isinstance(results[2], EndpointUnreachable)
    assert [each for place, each in enumerate(results) if place != 2] == [
        request for _, request in calls if request["TableName"] != "bad"
    ]
    assert len(script.requests) == 12


def test_a_closed_backend_leaves_nothing() -> None:
    """Its connections are closed and its threads are over."""
    with scripted(echo) as script:
        backend = HttpBackend(LocalConfiguration(script.url))
        backend.call_all([("GetItem", KEY)] * 20)
        backend.close()
        backend.close()

        for _ in range(script.connections):
            script.wait()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("tavola-call")]


def test_threads_share_a_backend(endpoint: str) -> None:
    """Each thread gets the answers to its own requests."""
    wrong: list[str] = []

    def work(name: str) -> None:
        for number in range(40):
            key = {"pk": {"S": f"{name}-{number}"}}
            backend.call("PutItem", {"TableName": "Orders", "Item": key})
            found = backend.call("GetItem", {"TableName": "Orders", "Key": key})
            if found != {"Item": key}:
                wrong.append(f"{key} gave {found}")

    backend = HttpBackend(LocalConfiguration(endpoint))
    backend.call("CreateTable", TABLE)
    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    backend.close()

    assert wrong == []


def test_a_request_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Head and body are sent together, without Nagle's delay: either would cost 40 ms a request."""
    written: list[tuple[bytes, int]] = []
    send = socket.socket.sendall

    def noted(sending: socket.socket, data: bytes) -> None:
        if data.startswith(b"POST"):
            written.append((data, sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        send(sending, data)

    with scripted(echo) as script:
        monkeypatch.setattr(socket.socket, "sendall", noted)
        backend = HttpBackend(LocalConfiguration(script.url))
        backend.call("PutItem", PUT)
        backend.close()

    ((data, undelayed),) = written
    assert data == script.requests[0]
    assert undelayed


def test_an_early_refusal_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response before the whole request is sent counts; the connection is not reused."""

    def behave(peer: Peer) -> None:
        peer.send(response(b'{"__type":"x#ValidationException","message":"no"}').replace(b"200", b"413"))
        said.set()
        peer.socket.recv(1)  # until the client closes

    send = socket.socket.sendall

    def broken(sending: socket.socket, data: bytes) -> None:
        if data.startswith(b"POST"):
            assert said.wait(PATIENCE_S)
            raise BrokenPipeError("it takes no more")
        send(sending, data)

    said = threading.Event()
    with scripted(behave) as script:
        backend = HttpBackend(LocalConfiguration(script.url))
        with monkeypatch.context() as patched:
            patched.setattr(socket.socket, "sendall", broken)
            with pytest.raises(Fault, match="no"):
                backend.call("PutItem", PUT)
        script.wait()
        backend.close()


def test_a_write_that_could_not_be_sent_whole_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint executes only whole requests, so a write that was sent in part may be sent again."""
    failing = iter([False, True, False])
    send = socket.socket.sendall

    def failing_once(sending: socket.socket, data: bytes) -> None:
        if data.startswith(b"POST") and next(failing):
            raise BrokenPipeError("closed just now")
        send(sending, data)

    with scripted(echo) as script:
        monkeypatch.setattr(socket.socket, "sendall", failing_once)
        backend = HttpBackend(LocalConfiguration(script.url))
        backend.call("PutItem", PUT)
        assert backend.call("PutItem", PUT) == PUT
        backend.close()

    assert script.connections == 2
    assert len(script.requests) == 2


def test_a_connection_that_was_idle_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intermediaries drop idle connections silently, so an old one is not reused."""
    with scripted(echo) as script:
        backend = HttpBackend(LocalConfiguration(script.url))
        backend.call("PutItem", PUT)
        monkeypatch.setattr("tavola.backends.sockets.IDLE_S_MAX", 0.0)
        backend.call("PutItem", PUT)
        backend.close()

    assert script.connections == 2


def test_a_fork_takes_no_connection_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process that used its parent's connections would read its parent's answers."""
    with scripted(echo) as script:
        backend = HttpBackend(LocalConfiguration(script.url))
        backend.call_all([("GetItem", KEY)] * 2)
        before = script.connections
        with monkeypatch.context() as patched:
            patched.setattr("os.getpid", lambda: -1)
            backend.call("GetItem", KEY)
            assert script.connections == before + 1
            backend.close()


def test_a_forgotten_backend_closes_its_connections() -> None:
    """A garbage-collected transport closes its connections without a warning."""
    with scripted(echo) as script:
        transport = SocketTransport(LocalConfiguration(script.url).resolve("dynamodb"), timeout_s=PATIENCE_S)
        transport.send(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", repeatable=True)
        del transport

        script.wait()
