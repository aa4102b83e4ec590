"""A client that sends raw bytes and reads responses one by one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import ServerLimits
from tests.server.standin import StandIn

JSON = "application/x-amz-json-1.0"
PATIENCE_S = 10.0  # after which a missing answer is a failure


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


class Raw:
    """One connection."""

    def __init__(self, endpoint: ServerEndpoint, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        try:
            self.socket.connect((endpoint.host, endpoint.port))
        except OSError:
            self.socket.close()
            raise
        self._read = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer:
        """Read one answer."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        size = int(headers.get("content-length", "0"))
        while len(self._read) < size:
            self._more()
        body, self._read = self._read[:size], self._read[size:]
        return Answer(int(first.split()[1]), headers, body)

    def closed(self) -> bool:
        """Wait for the end of the connection; return whether the server closed it without further bytes."""
        try:
            return not self._read and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def _more(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError(f"the server closed after {self._read!r}")
        self._read += data


def request(
    operation: str = "GetItem", body: bytes = b'{"key":"k"}', *, version: str = "1.1", **headers: str
) -> bytes:
    """Return a request as an SDK sends it; underscores in a header's name become hyphens."""
    fields = {
        "Host": "localhost",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": JSON,
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"POST / HTTP/{version}\r\n{head}\r\n".encode("latin-1") + body


@contextmanager
def served(engine: StandIn | None = None, **limits: float) -> Iterator[ServerEndpoint]:
    """Yield a server in a thread, with some of its limits changed."""
    changed = ServerLimits(**limits)  # type: ignore[arg-type]  # the caller names them; numbers all
    with running(engine or StandIn(), limits=changed) as endpoint:
        yield endpoint


def send_request(endpoint: ServerEndpoint, data: bytes) -> Answer:
    """Send one request on a new connection and return its response."""
    with Raw(endpoint) as client:
        client.send(data)
        return client.answer()
