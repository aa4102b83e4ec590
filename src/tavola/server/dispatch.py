"""Dispatch: passes an HTTP request to the engine and renders the response.

Checks are made in AWS's order: method and content type, JSON, target, signature; the engine does the rest. An exception
that is not a fault is a bug: it is logged under the request id, and the client gets the id and no details. If callers
are verified or an access log is kept, a request goes through `_execute_for_caller`, which identifies the caller and
logs the call; otherwise through `_execute`, which does neither and costs less.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httptools
import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess, RequestContext
from tavola.protocol.faults import (
    AccessDeniedFault,
    Fault,
    InternalServerFault,
    SerializationFault,
    UnknownOperationFault,
)
from tavola.protocol.instants import AS_OF_HEADER, parse_instant
from tavola.protocol.operations import OPERATIONS
from tavola.server.access_log import AccessLog
from tavola.server.callers import Caller, Callers, OpenCallers, Peer
from tavola.server.hosts import Hosts
from tavola.server.records import is_read
from tavola.server.scopes import scope_of_request
from tavola.server.served_engine import ServedEngine
from tavola.server.wire import JSON, PLAIN_JSON, TEXT, Payload, Wire

_log = logging.getLogger("tavola.server")

TARGETS: dict[bytes | None, str] = {operation.target.encode(): name for name, operation in OPERATIONS.items()}
"""The operation of each X-Amz-Target."""

READS = frozenset(name for name in OPERATIONS if is_read(name))
"""Operations that do not write, and so do not open a commit group."""

FORBIDDEN = 403
UNKNOWN = "Unknown"  # in the access log, for a request without a known operation

_AS_OF = AS_OF_HEADER.encode()
_CONTENT_TYPES: dict[bytes | None, bytes] = {JSON: JSON, PLAIN_JSON: PLAIN_JSON}
_NOT_FOUND = b"<UnknownOperationException/>\n"

_decode = msgspec.json.Decoder().decode


class Dispatch:
    """Answers requests from one engine; `begin` opens the commit group before a write."""

    __slots__ = (
        "_begin",
        "_callers",
        "_engine",
        "_hosts",
        "_identifies_callers",
        "_log",
        "_now",
        "_shows_reasons",
        "_touches",
        "_wire",
    )

    def __init__(
        self,
        engine: ServedEngine,
        wire: Wire,
        begin: Callable[[], None],
        *,
        hosts: Hosts | None = None,
        callers: Callers | None = None,
        log: AccessLog | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Check requests with `hosts` and identify callers with `callers`; without the latter, nothing is verified."""
        self._engine = engine
        self._wire = wire
        self._begin = begin
        self._hosts = hosts or Hosts("")
        self._identifies_callers = callers is not None or log is not None
        self._callers: Callers = callers or OpenCallers()
        self._shows_reasons = (
            callers is None
        )  # probes are not signed, so a strict server gives them no reasons
        self._log = log
        self._touches: list[ItemAccess] | None = None if log is None else []
        self._now = clock.now

    def answer(
        self,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Return the response to one request; header names in `fields` are lower-case."""
        if fields.get(b"host") not in self._hosts.known or b"origin" in fields:
            refusal = self._hosts.refusal(fields)
            if refusal is not None:
                return self._forbid(refusal, url, fields, body, close, peer)
        operation = TARGETS.get(fields.get(b"x-amz-target"))
        content_type = _CONTENT_TYPES.get(fields.get(b"content-type"))
        if operation is None or content_type is None or method != b"POST" or url != b"/":
            return self._answer_other(method, url, fields, body, close, peer)
        if self._identifies_callers or _AS_OF in fields:
            return self._execute_for_caller(operation, url, fields, body, close, content_type, peer)
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
        """Execute a request without identifying the caller."""
        wire = self._wire
        if operation not in READS:
            self._begin()
        try:
            return wire.answer(
                200, content_type, self._engine.execute(operation, body, scope_of_request(fields, url)), close
            )
        except Fault as fault:
            request_id = wire.request_id()
            _log_server_fault(fault, request_id, operation)
            return wire.answer(fault.status, content_type, fault.body(), close, request_id)
        except Exception:  # noqa: BLE001 - the client gets an error 500, the log gets the details
            request_id = wire.request_id()
            _log.exception("Request %s, %s, failed unexpectedly.", request_id.decode(), operation)
            return wire.answer(500, content_type, InternalServerFault().body(), close, request_id)

    def _execute_for_caller(
        self,
        operation: str,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        content_type: bytes,
        peer: Peer,
    ) -> Payload:
        """Execute a request for an identified caller, and log the call."""
        wire = self._wire
        began_s = self._now()
        request_id = wire.request_id()
        touches = self._touches
        caller: Caller | None = None
        visit: RequestContext | None = None
        fault: Fault | None = None
        try:
            caller = self._callers.admit(url, fields, body, peer)
            if operation not in READS:
                self._begin()
            visit = caller.visit
            if visit is None:
                visit = caller.visit = RequestContext(caller.guard, None, touches)
            if _AS_OF in fields:
                visit = RequestContext(caller.guard, parse_instant(fields[_AS_OF].decode("latin-1")), touches)
            answer = self._engine.execute(operation, body, caller.scope, visit)
            payload = wire.answer(200, content_type, answer, close, request_id)
        except Fault as raised:
            # AWS checks the JSON before the signature.
            fault = SerializationFault() if caller is None and not _is_json(body) else raised
            _log_server_fault(fault, request_id, operation)
            payload = wire.answer(fault.status, content_type, fault.body(), close, request_id)
        except Exception:  # noqa: BLE001 - the client gets an error 500, the log gets the details
            fault = InternalServerFault()
            _log.exception("Request %s, %s, failed unexpectedly.", request_id.decode(), operation)
            payload = wire.answer(500, content_type, fault.body(), close, request_id)
        if self._log is not None and touches is not None:
            caller = caller or self._callers.anonymous_caller(url, fields, peer)
            denied = 0
            if visit is not None and visit.denied:
                denied, visit.denied = visit.denied, 0
            self._log.note(caller, operation, request_id, began_s, touches, body, fault, denied)
            touches.clear()
        return payload

    def _forbid(
        self,
        refusal: AccessDeniedFault,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Refuse a request with a foreign Host, or from a page of a foreign origin."""
        request_id = self._wire.request_id()
        if self._log is not None:
            operation = TARGETS.get(fields.get(b"x-amz-target"), UNKNOWN)
            self._log_refused(operation, request_id, refusal, url, fields, body, peer)
        return self._wire.answer(FORBIDDEN, JSON, refusal.body(), close, request_id)

    def _log_refused(
        self,
        operation: str,
        request_id: bytes,
        fault: Fault,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        peer: Peer,
    ) -> None:
        if self._log is not None:
            caller = self._callers.anonymous_caller(url, fields, peer)
            caller.decision = "refused"
            self._log.note(caller, operation, request_id, self._now(), (), body, fault)

    def _answer_other(
        self,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Answer a request that is not a plain SDK call: health checks, URLs with a query, unknown operations."""
        path = _path_of(url)
        if method in (b"GET", b"HEAD"):
            looked = self._probe_page(path, fields, url)
            if looked is None:
                return self._not_found(method, url, fields, body, close, peer)
            make = self._wire.answer if method == b"GET" else self._wire.headers_only
            return make(*looked, close)
        told = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
        content_type = _CONTENT_TYPES.get(told)
        if method != b"POST" or path != b"/" or (content_type is None and body):
            return self._not_found(method, url, fields, body, close, peer)
        operation = TARGETS.get(fields.get(b"x-amz-target", b"").strip())
        if operation is not None and (self._identifies_callers or _AS_OF in fields):
            return self._execute_for_caller(operation, url, fields, body, close, content_type or JSON, peer)
        if operation is not None:
            return self._execute(operation, url, fields, body, close, content_type or JSON)
        fault = UnknownOperationFault() if _is_json(body) else SerializationFault()
        request_id = self._wire.request_id()
        self._log_refused(UNKNOWN, request_id, fault, url, fields, body, peer)
        return self._wire.answer(fault.status, content_type or JSON, fault.body(), close, request_id)

    def _not_found(
        self,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Answer a request that is not an API call with AWS's 404, and log it."""
        request_id = self._wire.request_id()
        self._log_refused(UNKNOWN, request_id, UnknownOperationFault(), url, fields, body, peer)
        make = self._wire.headers_only if method == b"HEAD" else self._wire.answer
        return make(404, TEXT, _NOT_FOUND, close, request_id)

    def _probe_page(
        self, path: bytes, fields: Mapping[bytes, bytes], url: bytes
    ) -> tuple[int, bytes, bytes] | None:
        """Return status, content type and body of a health page, or None for any other path."""
        match path:
            case b"/":
                region = scope_of_request(fields, url).region
                return 200, TEXT, f"healthy: dynamodb.{region}.amazonaws.com ".encode()
            case b"/healthz":  # the process is alive
                return 200, PLAIN_JSON, b'{"status":"ok"}'
            case b"/readyz":  # it also accepts writes
                failure = self._engine.write_failure
                if failure is None:
                    return 200, PLAIN_JSON, b'{"status":"ok"}'
                told = {"status": "failing", **({"reason": failure} if self._shows_reasons else {})}
                return 503, PLAIN_JSON, msgspec.json.encode(told)
            case _:
                return None


def _log_server_fault(fault: Fault, request_id: bytes, operation: str) -> None:
    """Log a fault with a status of 500 or above."""
    if fault.status >= 500:
        _log.error("Request %s, %s: %s", request_id.decode(), operation, fault)


def _path_of(url: bytes) -> bytes:
    """Return the path of a URL; a proxy may send it with scheme and host."""
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
