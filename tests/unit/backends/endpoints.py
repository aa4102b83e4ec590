"""Endpoints for tests of backends: one that says what it is told to, and one where nobody listens."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer


@dataclass
class Told:
    """An endpoint that answers every request alike and keeps what it was asked."""

    url: str = ""
    status: int = 200
    body: bytes = b"{}"
    checksum: str | None = None  # None: the right one
    asked: list[tuple[Message, bytes]] = field(default_factory=list)


@contextmanager
def telling(**told: object) -> Iterator[Told]:
    """Serve one told answer on a free port of this machine."""
    answer = Told(**told)  # type: ignore[arg-type]  # the dataclass names its own fields

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer.asked.append((self.headers, body))
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("x-amz-crc32", answer.checksum or str(zlib.crc32(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        answer.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield answer
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def deserted() -> Iterator[str]:
    """Give a URL of this machine whose port is taken, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
