"""A dispatcher with an access log and without a socket: sends requests and reads the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.entropy import SeededEntropy
from tavola.protocol.operations import OPERATIONS
from tavola.server.access_log import AccessLog
from tavola.server.callers import CallerVerifier, Peer
from tavola.server.dispatch import Dispatch
from tavola.server.hosts import Hosts
from tavola.server.log_files import files_of
from tavola.server.responses import ResponseEncoder, ServedEngine

AUTHORIZATION = (
    b"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261101/eu-west-1/dynamodb/aws4_request, "
    b"SignedHeaders=host, Signature=" + b"0" * 64
)


class Attended:
    """Sends requests, and reads the log after closing it."""

    def __init__(
        self,
        engine: ServedEngine,
        log: AccessLog,
        path: Path,
        clock: ManualClock,
        callers: CallerVerifier | None,
    ):
        self.engine = engine
        self.log = log
        self.clock = clock
        self._path = path
        self._peer = Peer("192.0.2.7")
        self._dispatch = Dispatch(
            engine,
            ResponseEncoder(clock, SeededEntropy(1)),
            engine.collect_writes,
            hosts=Hosts("127.0.0.1"),
            callers=callers,
            log=log,
            clock=clock,
        )

    def send_request(self, operation: str, request: Any, **headers: bytes) -> tuple[int, dict[str, Any]]:
        """Send an operation; underscores in a header's name become hyphens."""
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        known = OPERATIONS.get(operation)
        fields = {
            b"host": b"localhost:8000",
            b"x-amz-target": (known.target if known else operation).encode(),
            b"content-type": b"application/x-amz-json-1.0",
            b"authorization": AUTHORIZATION,
            b"user-agent": b"a program/1.0",
            **{name.replace("_", "-").encode(): value for name, value in headers.items()},
        }
        payload = self._dispatch.answer(b"POST", b"/", fields, body, False, self._peer)
        while not isinstance(payload, bytes | tuple):
            resumed = payload.resume()
            payload = payload if resumed is None else resumed
        whole = payload if isinstance(payload, bytes) else b"".join(payload)
        head, _, answer = whole.partition(b"\r\n\r\n")
        self.engine.commit()
        found: dict[str, Any] = json.loads(answer)
        return int(head.split()[1]), found

    def send_raw(self, method: bytes, url: bytes, **headers: bytes) -> tuple[int, str]:
        """Send any request, also one that is not an operation; return the status and the request's id."""
        fields = {b"host": b"localhost:8000", b"content-type": b"application/x-amz-json-1.0"}
        fields |= {name.replace("_", "-").encode(): value for name, value in headers.items()}
        payload = self._dispatch.answer(method, url, fields, b"{}", False, self._peer)
        assert isinstance(payload, bytes | tuple)
        head = (payload if isinstance(payload, bytes) else payload[0]).partition(b"\r\n\r\n")[0]
        id_ = head.partition(b"x-amzn-RequestId: ")[2].partition(b"\r\n")[0]
        return int(head.split()[1]), id_.decode()

    def records(self) -> list[dict[str, Any]]:
        """Close the log and return its records."""
        self.log.close()
        lines = [line for file in files_of(self._path) for line in file.read_bytes().splitlines()]
        return [json.loads(line) for line in lines]

    def text(self) -> str:
        """Close the log and return its text."""
        self.log.close()
        return "".join(file.read_text() for file in files_of(self._path))


@contextmanager
def attended(
    folder: Path, callers: CallerVerifier | None = None, engine: ServedEngine | None = None
) -> Iterator[Attended]:
    """Yield a dispatcher on an engine in memory, with its log in a folder."""
    clock = ManualClock(1_793_525_400.25)
    path = folder / "access.log"
    log = AccessLog(path, clock=clock, entropy=SeededEntropy(7))
    if engine is not None:
        yield Attended(engine, log, path, clock, callers)
        return
    with Engine.open(clock=clock) as opened:
        yield Attended(opened, log, path, clock, callers)
