"""HTTP as clients speak it, well and badly, over loopback."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tavola.server.endpoint import ServerEndpoint
from tests.server.raw import Raw, request, send_request, served
from tests.server.standin import StandIn

KB = 1024


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ServerEndpoint]:
    with served(body_bytes_max=256 * KB) as endpoint:
        yield endpoint


def test_a_connection_is_used_again(endpoint: ServerEndpoint) -> None:
    """Requests follow each other on one connection."""
    with Raw(endpoint) as client:
        for number in range(50):
            body = json.dumps({"key": "again", "n": number}).encode()
            client.send(request("PutItem", body))
            assert client.answer().status == 200
            client.send(request(body=b'{"key":"again"}'))
            assert client.answer().body == body


def test_pipelined_requests_are_answered_in_order(endpoint: ServerEndpoint) -> None:
    """Answers come in the order of the requests: reads, writes and refusals mixed."""
    parts: list[bytes] = []
    expected: list[tuple[int, bytes]] = []
    for number in range(200):
        body = json.dumps({"key": f"p{number % 3}", "n": number}).encode()
        parts += [
            request("PutItem", body),
            request(body=body),
            request("Query"),
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
        expected += [(200, b"{}"), (200, body), (400, b""), (200, b'{"status":"ok"}')]

    with Raw(endpoint) as client:
        client.send(b"".join(parts))
        answers = [client.answer() for _ in expected]

    assert [(each.status, each.body if each.status == 200 else b"") for each in answers] == expected


def test_a_request_may_come_a_byte_at_a_time(endpoint: ServerEndpoint) -> None:
    """However the bytes are cut, the request is the same."""
    with Raw(endpoint) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request("PutItem", b'{"key":"slow"}') + request(body=b'{"key":"slow"}'):
            client.send(bytes([byte]))

        assert client.answer().body == b"{}"
        assert client.answer().body == b'{"key":"slow"}'


@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_a_body_may_come_in_chunks(endpoint: ServerEndpoint, chunk: int) -> None:
    """A chunked body is put together; extensions and trailers are passed over."""
    body = json.dumps({"key": "chunked", "text": "x" * 3000}).encode()
    pieces = [body[start : start + chunk] for start in range(0, len(body), chunk)]
    sent = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = request("PutItem", Content_Length="", Transfer_Encoding="chunked").removesuffix(b'{"key":"k"}')
    with Raw(endpoint) as client:
        client.send(head + sent + b"0\r\nX-Amz-Target: DynamoDB_20120810.Query\r\n\r\n")
        assert client.answer().body == b"{}"
        client.send(request(body=b'{"key":"chunked"}'))
        assert client.answer().body == body


def test_http_1_0_closes_after_its_answer(endpoint: ServerEndpoint) -> None:
    """An HTTP/1.0 client gets its response and the end; with keep-alive the connection stays open."""
    with Raw(endpoint) as client:
        client.send(request(version="1.0"))
        assert client.answer().headers["connection"] == "close"
        assert client.closed()
    with Raw(endpoint) as client:
        for _ in range(2):
            client.send(request(version="1.0", Connection="keep-alive"))
            assert client.answer().headers["connection"] == "keep-alive"


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_connection_close_is_obeyed(endpoint: ServerEndpoint, operation: str) -> None:
    """After `Connection: close` the client gets its response, then the connection ends."""
    with Raw(endpoint) as client:
        client.send(request(operation, Connection="close"))
        assert client.answer().headers["connection"] == "close"
        assert client.closed()


def test_requests_after_connection_close_are_ignored(endpoint: ServerEndpoint) -> None:
    """After `Connection: close` no further request is executed."""
    with Raw(endpoint) as client:
        client.send(request(Connection="close") + request("PutItem", b'{"key":"never"}'))
        assert client.answer().status == 200
        assert client.closed()

    assert send_request(endpoint, request(body=b'{"key":"never"}')).body == b"{}"


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_a_client_that_closed_its_side_is_answered(endpoint: ServerEndpoint, operation: str) -> None:
    """A half-closed connection still carries the responses to earlier requests."""
    with Raw(endpoint) as client:
        client.send(request(operation) * 40)
        client.half_close()
        assert [client.answer().status for _ in range(40)] == [200] * 40
        assert client.closed()


@pytest.mark.parametrize("cut", [5, 60, -1])
def test_a_truncated_request_is_refused(endpoint: ServerEndpoint, cut: int) -> None:
    """A request that ends in the middle is a 400, whether in its head or in its body."""
    with Raw(endpoint) as client:
        client.send(request()[:cut])
        client.half_close()
        assert client.answer().status == 400
        assert client.closed()


def test_a_client_that_waits_is_bidden_to_go_on(endpoint: ServerEndpoint) -> None:
    """`Expect: 100-continue` is answered before the body, after earlier requests."""
    body = b'{"key":"expected"}'
    whole = request("PutItem", body, Expect="100-continue")
    with Raw(endpoint) as client:
        client.send(request("PutItem") + whole.removesuffix(body))
        assert [client.answer().status for _ in range(2)] == [200, 100]
        client.send(body)
        assert client.answer().body == b"{}"


def test_an_offer_of_another_protocol_is_passed_over(endpoint: ServerEndpoint) -> None:
    """A client that offers HTTP/2 is answered in HTTP/1.1, body and all, and so is what follows."""
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AAMAAABk"}
    body = b'{"key":"upgrade"}'
    with Raw(endpoint) as client:
        client.send(request("PutItem", body, Expect="100-continue", **offer) + request(body=body))
        assert client.answer().status == 100
        assert client.answer().body == b"{}"
        assert client.answer().body == body
        client.send(request(body=body, **offer))
        assert client.answer().body == body


MALFORMED = {
    "no http": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown version": b"GET / HTTP/9.9\r\n\r\n",
    "unknown method": b"FETCH / HTTP/1.1\r\n\r\n",
    "tunnel": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\nxyz",
    "bad url": b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
    "bare newlines": b"GET / HTTP/1.1\nHost: x\n\n",
    "no colon": b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
    "nul in header": b"GET / HTTP/1.1\r\nHo\0st: x\r\n\r\n",
    "negative length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "length is no number": b"POST / HTTP/1.1\r\nContent-Length: ten\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "length overflows": b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "unknown coding": b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    "chunk is no number": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "negative chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "chunk overflows": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "two hosts, other case": b"GET / HTTP/1.1\r\nHost: localhost\r\nhOST: evil.example\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "plain http/2": b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "http/0.9": b"GET / HTTP/0.9\r\nHost: localhost\r\n\r\n",
    "two codings": b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in http/1.0": b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "equal lengths": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "list of lengths": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\nx",
    "signed length": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx",
    "two targets": request(X_Amz_Target="").replace(b"Host", b"X-Amz-Target: a\r\nX-Amz-Target: b\r\nHost"),
    "two authorizations": b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: a\r\n\r\n",
    "two origins": b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nOrigin: http://y\r\n\r\n",
    "url of another host": b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "url with a user": b"GET http://a@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "url of another scheme": b"GET ftp://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bare newline after a header": b"GET / HTTP/1.1\r\nHost: x\nY: z\r\n\r\n",
    "bare newline in a chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
    "space in a name": b"GET / HTTP/1.1\r\nHost: x\r\nX Y: z\r\n\r\n",
    "space before the first header": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n"
    + b"".join(b"H%d: x\r\n" % n for n in range(200))
    + b"\r\n",
    "chunk without end": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_http_is_refused(endpoint: ServerEndpoint, data: bytes) -> None:
    """I24 over HTTP: malformed HTTP is a 400 and the end of the connection; earlier requests are answered first."""
    with Raw(endpoint) as client:
        client.send(request("PutItem") + data)
        assert client.answer().status == 200
        answer = client.answer()
        assert answer.status == 400
        assert answer.headers["connection"] == "close"
        assert client.closed()


SENTENCES = {
    "two hosts": b"The header host is sent twice.",
    "no host": b"HTTP/1.1 requires a Host header.",
    "http/2": b"HTTP/2.0 is not supported; use HTTP/1.1.",
    "plain http/2": b"HTTP/2.0 is not supported; use HTTP/1.1.",
    "two codings": b"Only the transfer coding chunked is supported.",
    "url of another host": b"The host in the request target is not that of the Host header.",
    "many headers": b"The request has more than 200 headers.",
    "space in a name": b"The request is not well-formed HTTP: Invalid header token.",
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_refusal_says_what_is_wrong(endpoint: ServerEndpoint, case: str) -> None:
    """The response names the rule that the request breaks."""
    assert send_request(endpoint, MALFORMED[case]).body.strip() == SENTENCES[case]


@pytest.mark.parametrize(
    "data",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost:8000/healthz HTTP/1.1\r\nHost: localhost:8000\r\n\r\n",
        b"GET HTTP://LOCALHOST/healthz?x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: [::1]:8000\r\nAccept: */*\r\nAccept: text/html\r\n\r\n",
        request(Transfer_Encoding="Chunked", Content_Length="", body=b"")
        .replace(b"\r\n\r\n", b"\r\n\r\n0\r\n\r\n")
        .replace(b"POST /", b"GET /healthz"),
    ],
    ids=["http/1.0", "empty line first", "own url", "upper case", "repeated accept", "capital chunked"],
)
def test_what_real_clients_send_is_accepted(endpoint: ServerEndpoint, data: bytes) -> None:
    """Health checks of HTTP/1.0 without Host, URLs with the right host, and headers that may be repeated pass."""
    answer = send_request(endpoint, data)

    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("host", ["", "[::1]evil.com", "localhost:abc", "a,b", "localhost:8000:1"])
def test_a_malformed_host_is_refused(endpoint: ServerEndpoint, host: str) -> None:
    """A Host that is not exactly a host is a 400, also on the paths of health checks."""
    for line in (b"GET /healthz HTTP/1.1", b"GET / HTTP/1.0", b"POST / HTTP/1.1"):
        answer = send_request(endpoint, line + b"\r\nHost: " + host.encode() + b"\r\n\r\n")
        assert answer.status == 400
        assert b"is not a host with an optional port" in answer.body


def test_endless_trailers_are_refused(endpoint: ServerEndpoint) -> None:
    """What follows the last chunk, or stands between chunks, is limited like a head."""
    head = request(body=b"", Content_Length="", Transfer_Encoding="chunked")
    for part in (b"0\r\n" + b"Trailer: x\r\n" * 30_000, b"1;" + b"x" * 300_000):
        with Raw(endpoint) as client:
            client.send(head + part)
            answer = client.answer()
            assert answer.status == 400
            assert b"trailers" in answer.body


def test_a_long_length_in_zeros_is_a_length(endpoint: ServerEndpoint) -> None:
    """Leading zeros, however many, change nothing."""
    assert send_request(endpoint, request(Content_Length="0" * 5000 + "11")).status == 200


@pytest.mark.parametrize("pieces", [1, 2, 50])
def test_a_head_that_is_too_large_is_refused(endpoint: ServerEndpoint, pieces: int) -> None:
    """Request line and headers may have 16 KB; more is a 400, in one piece or in many."""
    padding = 16 * KB - len(request(X_Pad="p").removesuffix(b'{"key":"k"}')) + 1
    fits, over = request(X_Pad="p" * padding), request(X_Pad="p" * (padding + 1))

    assert send_request(endpoint, fits).status == 200
    with Raw(endpoint) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        step = -(-len(over) // pieces)
        for start in range(0, len(over), step):
            client.send(over[start : start + step])
        answer = client.answer()
        assert answer.status == 400
        assert b"16384" in answer.body
        assert client.closed()


def test_an_endless_head_is_refused(endpoint: ServerEndpoint) -> None:
    """A head that never ends is refused when it is too large, not when its sender tires."""
    with Raw(endpoint) as client:
        client.send(b"GET / HTTP/1.1\r\n" + b"X-Header: 0123456789\r\n" * 1000)
        assert client.answer().status == 400
        assert client.closed()


def test_large_bodies_leave_the_heads_between_them_alone(endpoint: ServerEndpoint) -> None:
    """The limit on a head counts the head alone, wherever the reads cut the stream."""
    body = json.dumps({"key": "large", "text": "x" * 100 * KB}).encode()
    with Raw(endpoint) as client:
        client.send(request("PutItem", body) * 20)
        assert [client.answer().status for _ in range(20)] == [200] * 20


def test_a_body_that_is_too_large_is_refused_before_it_comes(endpoint: ServerEndpoint) -> None:
    """The declared length is enough to refuse a body."""
    with Raw(endpoint) as client:
        client.send(request(body=b"x", Content_Length=str(256 * KB + 1), Expect="100-continue"))
        answer = client.answer()
        assert answer.status == 413
        assert client.closed()


def test_a_client_that_sends_all_the_same_can_read_the_refusal(endpoint: ServerEndpoint) -> None:
    """The refusal reaches a client that sends the whole body before it reads."""
    assert send_request(endpoint, request("PutItem", b"x" * 8 * KB * KB)).status == 413


def test_a_body_may_be_as_large_as_the_limit(endpoint: ServerEndpoint) -> None:
    """The limit itself is allowed."""
    start = b'{"key":"full","text":"'
    body = start + b"x" * (256 * KB - len(start) - 2) + b'"}'

    assert send_request(endpoint, request("PutItem", body)).status == 200
    assert send_request(endpoint, request("PutItem", body + b" ")).status == 413


@pytest.mark.parametrize("chunk", [1, 100_000])
def test_chunks_are_counted_as_they_come(endpoint: ServerEndpoint, chunk: int) -> None:
    """A chunked body that grows past the limit is refused there, however it is split."""
    head = request(body=b"", Content_Length="", Transfer_Encoding="chunked")
    piece = b"%x\r\n%b\r\n" % (chunk, b"x" * chunk)
    with Raw(endpoint) as client:
        client.send(head + piece * (300_000 // chunk))
        assert client.answer().status == 413
        assert client.closed()


def test_large_bodies_together_are_bounded() -> None:
    """Partial bodies together are bounded; one more is refused with the advice to retry later."""
    with served(buffer_bytes_max=300 * KB) as endpoint, ExitStack() as stack:
        body = json.dumps({"key": "part", "text": "x" * 200 * KB}).encode()
        clients = [stack.enter_context(Raw(endpoint)) for _ in range(2)]
        for client in clients:
            client.send(request() + request("PutItem", body)[:-1])
            assert client.answer().status == 200
        refused, other = clients if _readable(clients[0]) else reversed(clients)
        assert refused.answer().status == 503
        assert refused.closed()
        other.send(body[-1:])
        assert other.answer().status == 200
        assert send_request(endpoint, request("PutItem", body)).status == 200


def _readable(client: Raw) -> bool:
    """Wait, and return whether this client of two is answered first."""
    found, _, _ = select.select([client.socket], [], [], 1)
    return bool(found)


def test_a_large_answer_comes_whole() -> None:
    """A response larger than the socket's buffers arrives unchanged."""
    engine = StandIn()
    engine.answer_bytes = 5_000_000
    with served(engine) as endpoint:
        answer = send_request(endpoint, request("Scan"))

    assert answer.body == b'"' + b"x" * 5_000_000 + b'"'
