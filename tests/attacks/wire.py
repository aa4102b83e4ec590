"""A blocking HTTP/1.1 connection to a server on this machine."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 120.0


class Connection:
    """One connection; requests are sent one after the other."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname or "", address.port or 80), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = address.netloc
        self._received = b""

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request that must succeed."""
        status, body = self.send(operation, json.dumps(request).encode())
        assert status == 200, body[:500]
        response: dict[str, Any] = json.loads(body)
        return response

    def send(self, operation: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the response to a body."""
        head = (
            f"POST / HTTP/1.1\r\nHost: {self._host}\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
            f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        while b"\r\n\r\n" not in self._received:
            self._receive()
        raw_head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *fields = raw_head.decode("latin-1").split("\r\n")
        length = next(int(line.split(":")[1]) for line in fields if line.lower().startswith("content-length"))
        while len(self._received) < length:
            self._receive()
        answer, self._received = self._received[:length], self._received[length:]
        return int(first.split()[1]), answer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> None:
        data = self._socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._received += data
