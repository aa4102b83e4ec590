"""Dispatch: a request's head and body to the engine, and what the engine says back to the wire.

Refuses in AWS's order: method and content type, JSON, target; the rest is the engine's. An exception that
is no fault is our own mistake: it is logged under the request's id, and the client gets the id and nothing
of what went wrong inside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httptools
import msgspec

from tavola.protocol import (
    OPERATIONS,
    Fault,
    InternalServerFault,
    SerializationFault,
    UnknownOperationFault,
)
from tavola.server.port import Served
from tavola.server.scopes import scope_of_request
from tavola.server.wire import JSON, PLAIN_JSON, TEXT, Payload, Wire

_log = logging.getLogger("tavola.server")

TARGETS: dict[bytes | None, str] = {operation.target.encode(): name for name, operation in OPERATIONS.items()}
"""The X-Amz-Target of each operation, to its name."""

READS = frozenset(
    {
        *("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"),
        *(name for name in OPERATIONS if name.startswith(("Describe", "List"))),
    }
)
"""Operations that write nothing for the client, and so need no group to write in."""

_CONTENT_TYPES: dict[bytes | None, bytes] = {JSON: JSON, PLAIN_JSON: PLAIN_JSON}
_NOT_FOUND = b"<UnknownOperationException/>\n"

_decode = msgspec.json.Decoder().decode


class Dispatch:
    """Answers requests from one engine; `begin` opens the group that writes of this moment go into."""

    __slots__ = ("_begin", "_engine", "_wire")

    def __init__(self, engine: Served, wire: Wire, begin: Callable[[], None]) -> None:
        self._engine = engine
        self._wire = wire
        self._begin = begin

    def answer(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, close: bool
    ) -> Payload:
        """Return the answer to one request; header names in `fields` are lower-case."""
        operation = TARGETS.get(fields.get(b"x-amz-target"))
        content_type = _CONTENT_TYPES.get(fields.get(b"content-type"))
        if operation is None or content_type is None or method != b"POST" or url != b"/":
            return self._unusual(method, url, fields, body, close)
        return self._execute(operation, url, fields, body, close, content_type)

    def _execute(
        self,
        operation: str,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        content_type: bytes,
    ) -> Payload:
        wire = self._wire
        if operation not in READS:
            self._begin()
        try:
            return wire.answer(
                200, content_type, self._engine.execute(operation, body, scope_of_request(fields, url)), close
            )
        except Fault as fault:
            if fault.status < 500:
                return wire.answer(fault.status, content_type, fault.body(), close)
            request_id = wire.request_id()
            _log.error("Request %s, %s: %s", request_id.decode(), operation, fault)
            return wire.answer(fault.status, content_type, fault.body(), close, request_id)
        except Exception:  # noqa: BLE001 - the client is told that we failed, the log is told how
            request_id = wire.request_id()
            _log.exception("Request %s, %s, failed unexpectedly.", request_id.decode(), operation)
            return wire.answer(500, content_type, InternalServerFault().body(), close, request_id)

    def _unusual(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, close: bool
    ) -> Payload:
        """Answer what is no plain request of an SDK: health, a query string, a refusal."""
        path = _path_of(url)
        if method == b"GET":
            return self._wire.answer(*self._looked_at(path, fields, url), close)
        if method == b"HEAD":
            return self._wire.headers_only(*self._looked_at(path, fields, url), close)
        told = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
        content_type = _CONTENT_TYPES.get(told)
        if method != b"POST" or path != b"/" or (content_type is None and body):
            return self._wire.answer(404, TEXT, _NOT_FOUND, close)
        operation = TARGETS.get(fields.get(b"x-amz-target", b"").strip())
        if operation is not None:
            return self._execute(operation, url, fields, body, close, content_type or JSON)
        fault = UnknownOperationFault() if _is_json(body) else SerializationFault()
        return self._wire.answer(fault.status, content_type or JSON, fault.body(), close)

    def _looked_at(self, path: bytes, fields: Mapping[bytes, bytes], url: bytes) -> tuple[int, bytes, bytes]:
        """Return status, content type and body of the pages that a person or a probe looks at."""
        match path:
            case b"/":
                region = scope_of_request(fields, url).region
                return 200, TEXT, f"healthy: dynamodb.{region}.amazonaws.com ".encode()
            case b"/healthz":  # the process answers
                return 200, PLAIN_JSON, b'{"status":"ok"}'
            case b"/readyz":  # it also takes writes
                failure = self._engine.failure
                if failure is None:
                    return 200, PLAIN_JSON, b'{"status":"ok"}'
                told = {"status": "failing", "reason": failure}
                return 503, PLAIN_JSON, msgspec.json.encode(told)
            case _:
                return 404, TEXT, _NOT_FOUND


def _path_of(url: bytes) -> bytes:
    """Return the path of a request's URL, which a proxy may send with scheme and host before it."""
    if not url.startswith(b"/"):
        try:
            return httptools.parse_url(url).path or b"/"
        except httptools.HttpParserInvalidURLError:
            return url
    return url.partition(b"?")[0]


def _is_json(body: bytes) -> bool:
    try:
        _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
