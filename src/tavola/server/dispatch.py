"""Dispatch: passes an HTTP request to the engine and renders the response.

Checks are made in AWS's order: method and content type, JSON, target, signature; the engine does the rest. If callers
are verified or an access log is kept, a request goes through `_execute_for_caller`, which identifies the caller and
logs the call; otherwise through `_execute`, which does neither and costs less.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote_to_bytes

import httptools
import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess, PendingCall, RequestContext
from tavola.protocol.arns import DEFAULT_SCOPE, Scope, account_of_key
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
from tavola.server.callers import Caller, CallerVerifier, Peer, RoleIssuer, make_anonymous_caller
from tavola.server.failure_log import FailureLog
from tavola.server.hosts import Hosts
from tavola.server.records import is_read
from tavola.server.responses import (
    JSON,
    PLAIN_JSON,
    TEXT,
    Payload,
    Response,
    ResponseEncoder,
    ServedEngine,
)
from tavola.server.sts import OpenIssuer, SecurityTokenService, is_sts_request

_log = logging.getLogger("tavola.server")

TARGETS: dict[bytes | None, str] = {operation.target.encode(): name for name, operation in OPERATIONS.items()}
"""The operation of each X-Amz-Target."""

READS = frozenset(name for name in OPERATIONS if is_read(name))
"""Operations that do not write, and so do not open a commit group."""

SLICE_S = 0.0005  # how long other clients wait at most for a slice of a long call

FORBIDDEN = 403
UNKNOWN = "Unknown"  # in the access log, for a request without a known operation

_AS_OF = AS_OF_HEADER.encode()
_DESCRIBE_ENDPOINTS = "DescribeEndpoints"
_CONTENT_TYPES: dict[bytes | None, bytes] = {JSON: JSON, PLAIN_JSON: PLAIN_JSON}
_SIGNATURE_CHARACTERS = 64
_NOT_FOUND = b"<UnknownOperationException/>\n"

_CREDENTIAL = re.compile(rb"Credential=([^,\s&]+)")
_REGION = re.compile(r"[a-z0-9-]{1,63}")

_CHECKED_JSON_BYTES_MAX = 256 * 1024
_PREFIX_BYTES_MAX = 256
_SCOPES_MAX = 1024

_scopes: dict[bytes, Scope] = {}

_decode = msgspec.json.Decoder().decode


class OpenCallers:
    """Identifies callers by the credential that they name, without verification."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._now = clock.now

    def role_issuer(self) -> RoleIssuer:
        """Return an issuer that gives every caller every role."""
        return OpenIssuer(self, self._now)

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
        "_failures",
        "_identifies_callers",
        "_log",
        "_now",
        "_shows_reasons",
        "_token_service",
        "hosts",
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
        failures: FailureLog | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Check requests with `hosts` and identify callers with `callers`; without the latter, nothing is verified."""
        self._engine = engine
        self._encoder = encoder
        self._begin = begin
        self.hosts = hosts or Hosts("")
        self._identifies_callers = callers is not None or log is not None
        self._callers: CallerVerifier = callers or OpenCallers(clock)
        self._shows_reasons = callers is None  # health checks are unsigned: a strict server gives no reasons
        self._log = log
        self._accesses: list[ItemAccess] | None = None if log is None else []
        self._failures = failures or FailureLog()
        self._now = clock.now
        self._token_service = SecurityTokenService(encoder, self._callers.role_issuer(), log, clock.now)

    def answer(
        self,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
        signed: bytes | None = None,
    ) -> Response:
        """Return the response to one request; header names in `fields` are lower-case.

        `signed` is the body as sent, if `body` is decoded from it: the signature is over the bytes that were sent.
        """
        if fields.get(b"host") not in self.hosts.known or b"origin" in fields:
            refusal = self.hosts.refusal(fields)
            if refusal is not None:
                return self.refuse(refusal, url, fields, body, close, peer)
        operation = TARGETS.get(fields.get(b"x-amz-target"))
        content_type = _CONTENT_TYPES.get(fields.get(b"content-type"))
        if operation is None or content_type is None or method != b"POST" or url != b"/":
            return self._answer_other(method, url, fields, body, close, peer, signed)
        if self._needs_caller(operation, fields):
            return self._execute_for_caller(operation, url, fields, body, close, content_type, peer, signed)
        return self._execute(operation, url, fields, body, close, content_type)

    def is_admitted(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> bool:
        """Return whether a request's Host, Origin and caller are accepted; nothing is executed or logged."""
        if self.hosts.refusal(fields) is not None:
            return False
        try:
            self._callers.admit(url, fields, body, peer)
        except Fault:
            return False
        return True

    def _needs_caller(self, operation: str, fields: Mapping[bytes, bytes]) -> bool:
        """Return whether a request is executed with a context of its own."""
        return self._identifies_callers or _AS_OF in fields or operation == _DESCRIBE_ENDPOINTS

    def _execute(
        self,
        operation: str,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        content_type: bytes,
    ) -> Response:
        """Execute a request without identifying the caller."""
        encoder = self._encoder
        if operation not in READS:
            self._begin()
        try:
            answer = self._engine.execute(operation, body, scope_of_request(fields, url), slice_s=SLICE_S)
            if isinstance(answer, bytes):
                return encoder.encode(200, content_type, answer, close)
            request_id = encoder.new_request_id()
            return _PendingResponse(
                self, self._engine, encoder, answer, operation, content_type, close, request_id, None
            )
        except Exception as error:  # noqa: BLE001 - see `encode_failure`
            return self.encode_failure(error, operation, content_type, close, encoder.new_request_id())[1]

    def _execute_for_caller(
        self,
        operation: str,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        content_type: bytes,
        peer: Peer,
        signed: bytes | None = None,
    ) -> Response:
        """Execute a request for an identified caller, and log the call."""
        encoder = self._encoder
        began_s = self._now()
        request_id = encoder.new_request_id()
        accesses = self._accesses
        caller: Caller | None = None
        context: RequestContext | None = None
        fault: Fault | None = None
        try:
            caller = self._callers.admit(url, fields, body if signed is None else signed, peer)
            if operation not in READS:
                self._begin()
            context = caller.context
            if context is None:
                context = caller.context = RequestContext(caller.guard, None, accesses)
            if _AS_OF in fields or operation == _DESCRIBE_ENDPOINTS:
                at = fields.get(_AS_OF)
                context = RequestContext(
                    caller.guard,
                    None if at is None else parse_instant(at.decode("latin-1")),
                    accesses,
                    address=_address_of(fields, peer),
                )
            answer = self._engine.execute(operation, body, caller.scope, context, slice_s=SLICE_S)
            if not isinstance(answer, bytes):
                # A call that goes on in later turns cannot share the context and the list with other calls.
                if context is caller.context:
                    caller.context = None
                if accesses is not None:
                    context.accesses = list(accesses)
                    accesses.clear()
                    accesses = context.accesses
                log_end = partial(
                    self._log_call, caller, operation, request_id, began_s, accesses, body, context
                )
                return _PendingResponse(
                    self, self._engine, encoder, answer, operation, content_type, close, request_id, log_end
                )
            payload = encoder.encode(200, content_type, answer, close, request_id)
        except Exception as error:  # noqa: BLE001 - see `encode_failure`
            if caller is None and isinstance(error, Fault) and body and not _may_be_json(body):
                error = SerializationFault()  # AWS checks the JSON of a body before the signature
            fault, payload = self.encode_failure(error, operation, content_type, close, request_id)
        if self._log is not None:
            caller = caller or self._callers.anonymous_caller(url, fields, peer)
            self._log_call(caller, operation, request_id, began_s, accesses, body, context, fault)
        return payload

    def begin_write(self) -> None:
        """Open the commit group before a call writes."""
        self._begin()

    def _log_call(
        self,
        caller: Caller,
        operation: str,
        request_id: bytes,
        began_s: float,
        accesses: list[ItemAccess] | None,
        body: bytes,
        context: RequestContext | None,
        fault: Fault | None,
    ) -> None:
        """Write a call to the access log, and empty the list of its accesses."""
        if self._log is None or accesses is None:
            return
        denied = 0
        if context is not None and context.denied:
            denied, context.denied = context.denied, 0
        self._log.note(caller, operation, request_id, began_s, accesses, body, fault, denied)
        accesses.clear()

    def encode_failure(
        self, error: Exception, operation: str, content_type: bytes, close: bool, request_id: bytes
    ) -> tuple[Fault, Payload]:
        """Return the fault that a client gets for an exception, and the response; log what is our own failure.

        Anything but a fault is a bug: the log gets the details, and the client the request id to find them by.
        """
        if isinstance(error, Fault):
            fault = error
            if fault.status >= 500 and self._engine.unready_reason is not None:
                self._failures.count_refusals(self._engine.unready_reason)
            elif fault.status >= 500:
                _log.error("Request %s, %s: %s", request_id.decode(), operation, fault)
        else:
            fault = InternalServerFault()
            _log.error("Request %s, %s, failed unexpectedly.", request_id.decode(), operation, exc_info=error)
        return fault, self._encoder.encode(fault.status, content_type, fault.body(), close, request_id)

    def refuse(
        self,
        refusal: Fault,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Refuse a request that is not executed, such as one with a foreign Host or from a page of a foreign origin."""
        request_id = self._encoder.new_request_id()
        operation = TARGETS.get(fields.get(b"x-amz-target"), UNKNOWN)
        self._log_refused(operation, request_id, refusal, url, fields, body, peer)
        status = FORBIDDEN if isinstance(refusal, AccessDeniedFault) else refusal.status
        return self._encoder.encode(status, JSON, refusal.body(), close, request_id)

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
        signed: bytes | None = None,
    ) -> Response:
        """Answer a request that is not a plain SDK call: STS, health checks, URLs with a query, unknown operations."""
        path = _path_of(url)
        if path == b"/" and is_sts_request(method, url, fields):
            return self._token_service.answer(method, url, fields, body, close, peer)
        if method in (b"GET", b"HEAD"):
            page = self._health_page(path, fields, url)
            if page is None:
                return self._not_found(method, url, fields, body, close, peer)
            encode = self._encoder.encode if method == b"GET" else self._encoder.encode_without_body
            return encode(*page, close)
        content_type = _CONTENT_TYPES.get(fields.get(b"content-type", b"").partition(b";")[0].strip().lower())
        if method != b"POST" or path != b"/" or (content_type is None and body):
            return self._not_found(method, url, fields, body, close, peer)
        operation = TARGETS.get(fields.get(b"x-amz-target", b"").strip())
        if operation is not None and self._needs_caller(operation, fields):
            return self._execute_for_caller(
                operation, url, fields, body, close, content_type or JSON, peer, signed
            )
        if operation is not None:
            return self._execute(operation, url, fields, body, close, content_type or JSON)
        fault = UnknownOperationFault() if _may_be_json(body) else SerializationFault()
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
        encode = self._encoder.encode_without_body if method == b"HEAD" else self._encoder.encode
        return encode(404, TEXT, _NOT_FOUND, close, request_id)

    def _health_page(
        self, path: bytes, fields: Mapping[bytes, bytes], url: bytes
    ) -> tuple[int, bytes, bytes] | None:
        """Return status, content type and body of a health page, or None for any other path."""
        match path:
            case b"/":
                region = scope_of_request(fields, url).region
                host = fields.get(b"host") or f"dynamodb.{region}.amazonaws.com".encode()
                return 200, TEXT, b"healthy: %b " % host
            case b"/healthz":  # the process is alive
                return 200, PLAIN_JSON, b'{"status":"ok"}'
            case b"/readyz":  # it also accepts writes
                failure = self._engine.unready_reason
                if failure is None:
                    return 200, PLAIN_JSON, b'{"status":"ok"}'
                status = {"status": "failing", **({"reason": failure} if self._shows_reasons else {})}
                return 503, PLAIN_JSON, msgspec.json.encode(status)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class _PendingResponse:
    """The response to a call that takes longer than a slice of time."""

    dispatch: Dispatch
    engine: ServedEngine
    encoder: ResponseEncoder
    call: PendingCall
    operation: str
    content_type: bytes
    close: bool
    request_id: bytes
    log_end: Callable[[Fault | None], None] | None  # logs the call when it ends

    def resume(self) -> Payload | None:
        """Continue for one slice of time; return the response when it is complete."""
        fault: Fault | None = None
        try:
            if self.operation not in READS:
                self.dispatch.begin_write()
            answer = self.engine.resume(self.call, SLICE_S)
            if answer is None:
                return None
            payload = self.encoder.encode(200, self.content_type, answer, self.close, self.request_id)
        except Exception as error:  # noqa: BLE001 - see `encode_failure`
            fault, payload = self.dispatch.encode_failure(
                error, self.operation, self.content_type, self.close, self.request_id
            )
        if self.log_end is not None:
            self.log_end(fault)
        return payload

    def abandon(self, fault: Fault | None) -> None:
        """End the call without a response; it is logged with this fault."""
        self.call.end(fault)
        if self.log_end is not None:
            self.log_end(fault)


def _address_of(fields: Mapping[bytes, bytes], peer: Peer) -> str | None:
    """Return the address by which a client reached the server; with its scheme, because botocore otherwise adds https."""
    host = fields.get(b"host")
    return None if host is None else f"{'https' if peer.secure else 'http'}://{host.decode('latin-1')}"


def _path_of(url: bytes) -> bytes:
    """Return the path of a URL; a proxy may send it with scheme and host."""
    if not url.startswith(b"/"):
        try:
            return httptools.parse_url(url).path or b"/"
        except httptools.HttpParserInvalidURLError:
            return url
    return url.partition(b"?")[0]


def _may_be_json(body: bytes) -> bool:
    """Return whether a body is valid JSON; a large one counts as valid, since checking it costs too much.

    Called for refused requests only. Otherwise anyone could occupy the server with large bodies, without credentials.
    """
    if len(body) > _CHECKED_JSON_BYTES_MAX:
        return True
    try:
        _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def is_write_request(fields: Mapping[bytes, bytes]) -> bool:
    """Return whether a request names an operation that writes; an unknown one does not."""
    operation = TARGETS.get(fields.get(b"x-amz-target", b"").strip())
    return operation is not None and operation not in READS


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
    credential = _CREDENTIAL.search(url.partition(b"?")[2])
    return DEFAULT_SCOPE if credential is None else parse_credential(unquote_to_bytes(credential[1]))
