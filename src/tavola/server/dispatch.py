"""Dispatch: passes an HTTP request to the engine and renders the response.

Checks are made in AWS's order: method and content type, JSON, target, signature; the engine does the rest. An exception
that is not a fault is a bug: it is logged under the request id, and the client gets the id and no details. If callers
are verified or an access log is kept, a request goes through `_execute_for_caller`, which identifies the caller and
logs the call; otherwise through `_execute`, which does neither and costs less.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote_to_bytes

import httptools
import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess, RequestContext
from tavola.protocol.accounts import DEFAULT_SCOPE, account_of_key
from tavola.protocol.arns import Scope
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
from tavola.server.callers import Caller, CallerVerifier, Peer, make_anonymous_caller
from tavola.server.hosts import Hosts
from tavola.server.records import is_read
from tavola.server.responses import JSON, PLAIN_JSON, TEXT, Payload, ResponseEncoder, ServedEngine

_log = logging.getLogger("tavola.server")

TARGETS: dict[bytes | None, str] = {operation.target.encode(): name for name, operation in OPERATIONS.items()}
"""The operation of each X-Amz-Target."""

READS = frozenset(name for name in OPERATIONS if is_read(name))
"""Operations that do not write, and so do not open a commit group."""

FORBIDDEN = 403
UNKNOWN = "Unknown"  # in the access log, for a request without a known operation

_AS_OF = AS_OF_HEADER.encode()
_CONTENT_TYPES: dict[bytes | None, bytes] = {JSON: JSON, PLAIN_JSON: PLAIN_JSON}
_SIGNATURE_CHARACTERS = 64
_NOT_FOUND = b"<UnknownOperationException/>\n"

_CREDENTIAL = re.compile(rb"Credential=([^,\s&]+)")
_REGION = re.compile(r"[a-z0-9-]{1,63}")

_PREFIX_BYTES_MAX = 256
_SCOPES_MAX = 1024

_scopes: dict[bytes, Scope] = {}

_decode = msgspec.json.Decoder().decode


class OpenCallers:
    """Identifies callers by the credential that they name, without verification."""

    def admit(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> Caller:
        """Return the caller that a request claims to be from."""
        credential = fields.get(b"authorization", b"")[:-_SIGNATURE_CHARACTERS] or url
        agent = fields.get(b"user-agent")
        known = peer.callers.get(credential)
        if known is not None and known[0] == agent:
            return known[1]
        caller = make_anonymous_caller(scope_of_request(fields, url), fields, url, peer, "open")
        return peer.remember(credential, agent, caller)

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return the caller that a refused request claims to be from."""
        return make_anonymous_caller(DEFAULT_SCOPE, fields, url, peer, "refused")

    def refresh(self) -> None:
        """Do nothing: no directory can change."""


class Dispatch:
    """Answers requests from one engine; `begin` opens the commit group before a write."""

    __slots__ = (
        "_accesses",
        "_begin",
        "_callers",
        "_encoder",
        "_engine",
        "_hosts",
        "_identifies_callers",
        "_log",
        "_now",
        "_shows_reasons",
    )

    def __init__(
        self,
        engine: ServedEngine,
        encoder: ResponseEncoder,
        begin: Callable[[], None],
        *,
        hosts: Hosts | None = None,
        callers: CallerVerifier | None = None,
        log: AccessLog | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Check requests with `hosts` and identify callers with `callers`; without the latter, nothing is verified."""
        self._engine = engine
        self._encoder = encoder
        self._begin = begin
        self._hosts = hosts or Hosts("")
        self._identifies_callers = callers is not None or log is not None
        self._callers: CallerVerifier = callers or OpenCallers()
        self._shows_reasons = (
            callers is None
        )  # probes are not signed, so a strict server gives them no reasons
        self._log = log
        self._accesses: list[ItemAccess] | None = None if log is None else []
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
        encoder = self._encoder
        if operation not in READS:
            self._begin()
        try:
            return encoder.encode(
                200, content_type, self._engine.execute(operation, body, scope_of_request(fields, url)), close
            )
        except Fault as fault:
            request_id = encoder.new_request_id()
            _log_server_fault(fault, request_id, operation)
            return encoder.encode(fault.status, content_type, fault.body(), close, request_id)
        except Exception:  # noqa: BLE001 - the client gets an error 500, the log gets the details
            request_id = encoder.new_request_id()
            _log.exception("Request %s, %s, failed unexpectedly.", request_id.decode(), operation)
            return encoder.encode(500, content_type, InternalServerFault().body(), close, request_id)

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
        encoder = self._encoder
        began_s = self._now()
        request_id = encoder.new_request_id()
        accesses = self._accesses
        caller: Caller | None = None
        context: RequestContext | None = None
        fault: Fault | None = None
        try:
            caller = self._callers.admit(url, fields, body, peer)
            if operation not in READS:
                self._begin()
            context = caller.context
            if context is None:
                context = caller.context = RequestContext(caller.guard, None, accesses)
            if _AS_OF in fields:
                context = RequestContext(
                    caller.guard, parse_instant(fields[_AS_OF].decode("latin-1")), accesses
                )
            answer = self._engine.execute(operation, body, caller.scope, context)
            payload = encoder.encode(200, content_type, answer, close, request_id)
        except Fault as raised:
            # AWS checks the JSON before the signature.
            fault = SerializationFault() if caller is None and not _is_json(body) else raised
            _log_server_fault(fault, request_id, operation)
            payload = encoder.encode(fault.status, content_type, fault.body(), close, request_id)
        except Exception:  # noqa: BLE001 - the client gets an error 500, the log gets the details
            fault = InternalServerFault()
            _log.exception("Request %s, %s, failed unexpectedly.", request_id.decode(), operation)
            payload = encoder.encode(500, content_type, fault.body(), close, request_id)
        if self._log is not None and accesses is not None:
            caller = caller or self._callers.anonymous_caller(url, fields, peer)
            denied = 0
            if context is not None and context.denied:
                denied, context.denied = context.denied, 0
            self._log.note(caller, operation, request_id, began_s, accesses, body, fault, denied)
            accesses.clear()
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
        request_id = self._encoder.new_request_id()
        if self._log is not None:
            operation = TARGETS.get(fields.get(b"x-amz-target"), UNKNOWN)
            self._log_refused(operation, request_id, refusal, url, fields, body, peer)
        return self._encoder.encode(FORBIDDEN, JSON, refusal.body(), close, request_id)

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
            make = self._encoder.encode if method == b"GET" else self._encoder.encode_without_body
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
        request_id = self._encoder.new_request_id()
        self._log_refused(UNKNOWN, request_id, fault, url, fields, body, peer)
        return self._encoder.encode(fault.status, content_type or JSON, fault.body(), close, request_id)

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
        request_id = self._encoder.new_request_id()
        self._log_refused(UNKNOWN, request_id, UnknownOperationFault(), url, fields, body, peer)
        make = self._encoder.encode_without_body if method == b"HEAD" else self._encoder.encode
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


def scope_of_request(fields: Mapping[bytes, bytes], url: bytes) -> Scope:
    """Return the account and region of a request from the credential in its Authorization header or its query.

    A credential is `key/date/region/service/aws4_request`. A key of twelve digits is the account itself, a key in AWS's
    form contains one, and any other key means the default account. Nothing is verified here: scopes separate tenants
    but do not protect them.

    SDKs send the credential before the first comma of the header. That part stays the same for a day, so its scope is
    cached.
    """
    authorization = fields.get(b"authorization")
    if authorization is None:
        return DEFAULT_SCOPE if len(url) < 2 else _scope_of_query(url)
    prefix = authorization.partition(b",")[0]
    scope = _scopes.get(prefix)
    if scope is not None:
        return scope
    credential = _CREDENTIAL.search(prefix)
    if credential is None:  # the parts are in another order: parse the whole header, and cache nothing
        credential = _CREDENTIAL.search(authorization)
        return DEFAULT_SCOPE if credential is None else parse_credential(credential[1])
    scope = parse_credential(credential[1])
    if len(prefix) <= _PREFIX_BYTES_MAX:
        if len(_scopes) >= _SCOPES_MAX:
            _scopes.clear()
        _scopes[prefix] = scope
    return scope


def parse_credential(credential: bytes) -> Scope:
    """Return the scope that a credential names, with defaults for what is missing or malformed."""
    parts = credential.decode("latin-1").split("/")
    region = parts[2] if len(parts) > 2 and _REGION.fullmatch(parts[2]) else DEFAULT_SCOPE.region
    return Scope(account_of_key(parts[0]) or DEFAULT_SCOPE.account, region)


def _scope_of_query(url: bytes) -> Scope:
    found = _CREDENTIAL.search(url.partition(b"?")[2])
    return DEFAULT_SCOPE if found is None else parse_credential(unquote_to_bytes(found[1]))
