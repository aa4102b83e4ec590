"""STS: who am I, and temporary credentials of a role, so that the credential flows of SDKs work against this server.

STS speaks AWS's query protocol: a form in the body of a POST, or in the query of a GET, and XML back. Requests are few,
so nothing here is cached. What a caller may have is decided by a `RoleIssuer`: a strict server's obeys trust policies, an
open server's gives every caller the role that it names.

A request is recognized by its form, without an X-Amz-Target; see `is_sts_request`. Its size is checked first, then its
signature, except for AssumeRoleWithWebIdentity, whose proof is the token among its parameters.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import parse_qsl

from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.iam import (
    AssumeRoleDenied,
    IamError,
    RoleCredentials,
    RoleRequest,
    SessionRefused,
    SessionSigner,
    WebIdentity,
    make_session,
)
from tavola.protocol.faults import AccessDeniedFault, Fault, InternalServerFault
from tavola.server.access_log import AccessLog
from tavola.server.callers import Caller, CallerIdentity, CallerVerifier, Peer, RoleIssuer
from tavola.server.records import named_role
from tavola.server.responses import Payload, ResponseEncoder

FORM = b"application/x-www-form-urlencoded"
XML = b"text/xml"
VERSION = "2011-06-15"
NAMESPACE = f"https://sts.amazonaws.com/doc/{VERSION}/"

_REQUEST_BYTES_MAX = 64 * 1024  # a token has at most 20,000 characters; policies and tags are smaller
_PARAMETERS_MAX = 256
_MEMBER = re.compile(r"[A-Za-z]+\.member\.([0-9]{1,4})(?:\.([A-Za-z]+))?")
_UNKNOWN = "Unknown"
_OPEN_KEY = bytes(32)  # an open server verifies nothing: its session tokens only carry the session's name

# STS's codes and statuses for the faults that it shares with DynamoDB.
_CODES = {
    "AccessDeniedException": ("AccessDenied", 403),
    "ExpiredTokenException": ("ExpiredToken", 403),
    "IncompleteSignatureException": ("IncompleteSignature", 400),
    "InternalServerError": ("InternalFailure", 500),
    "InvalidSignatureException": ("SignatureDoesNotMatch", 403),
    "MissingAuthenticationTokenException": ("MissingAuthenticationToken", 403),
    "UnrecognizedClientException": ("InvalidClientTokenId", 403),
}

_log = logging.getLogger("tavola.server")


class StsFault(Fault):
    """An error response that only STS has."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def is_sts_request(method: bytes, url: bytes, fields: Mapping[bytes, bytes]) -> bool:
    """Return whether a request to the root is one of STS: a form without the target that DynamoDB's requests have."""
    if b"x-amz-target" in fields:
        return False
    if method == b"POST":
        return fields.get(b"content-type", b"").partition(b";")[0].strip().lower() == FORM
    return method == b"GET" and b"Action=" in url.partition(b"?")[2]


class SecurityTokenService:
    """Answers the requests of STS."""

    def __init__(
        self, encoder: ResponseEncoder, issuer: RoleIssuer, log: AccessLog | None, now: Callable[[], float]
    ) -> None:
        self._encoder = encoder
        self._issuer = issuer
        self._log = log
        self._now = now

    def answer(
        self,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        close: bool,
        peer: Peer,
    ) -> Payload:
        """Return the response to one request, and log the call."""
        began_s, request_id = self._now(), self._encoder.new_request_id()
        call = _Call(self._issuer, method, url, fields, body, peer)
        fault: Fault | None = None
        try:
            result = call.execute()
            status, document = 200, _render_result(call.operation, result, request_id.decode())
        except Exception as error:  # noqa: BLE001 - anything but a refusal is our own failure
            fault = _fault_of(error)
            if isinstance(fault, InternalServerFault):
                _log.error("Request %s to STS failed unexpectedly.", request_id.decode(), exc_info=error)
            status, document = _render_fault(fault, request_id.decode())
        if self._log is not None:
            caller = call.caller or self._issuer.anonymous_caller(url, fields, peer)
            self._log.note(
                caller,
                call.operation,
                request_id,
                began_s,
                (),
                b"",
                fault,
                named=named_role(call.role, call.key_id),
            )
        return self._encoder.encode(status, XML, document, close, request_id)


class _Call:
    """One call: its parameters, and as far as it came, its operation, caller and role for the log."""

    def __init__(
        self,
        issuer: RoleIssuer,
        method: bytes,
        url: bytes,
        fields: Mapping[bytes, bytes],
        body: bytes,
        peer: Peer,
    ) -> None:
        self._issuer = issuer
        self._sent = (method, url, fields, body, peer)
        self._parameters: dict[str, str] = {}
        self.operation = _UNKNOWN
        self.caller: Caller | None = None
        self.role: RoleRequest | None = None  # the role asked for, once its parameters are valid
        self.key_id: str | None = None  # of the credentials issued

    def execute(self) -> dict[str, Any]:
        """Return the members of the result, or raise."""
        method, url, fields, body, peer = self._sent
        self._parameters = _parse_parameters(url.partition(b"?")[2], body)
        action = self._parameters.get("Action", "")
        if action not in _ACTIONS or self._parameters.get("Version", VERSION) != VERSION:
            version = self._parameters.get("Version", "NO_VERSION_SPECIFIED")
            raise StsFault(
                "InvalidAction", f"Could not find operation {action[:64]} for version {version[:64]}"
            )
        self.operation = action
        if action == "AssumeRoleWithWebIdentity":
            return self._assume_with_web_identity(fields, peer)
        self.caller = caller = self._issuer.admit(method, url, fields, body, peer)
        if action == "AssumeRole":
            return self._assume(caller, self._role_request())
        identity = self._issuer.identify(caller, fields, url)
        return {"UserId": identity.user_id, "Account": identity.account, "Arn": identity.arn}

    def _assume_with_web_identity(self, fields: Mapping[bytes, bytes], peer: Peer) -> dict[str, Any]:
        request = self._role_request()
        self.caller, identity = self._issuer.admit_web_identity(
            request, self._require("WebIdentityToken"), fields, peer
        )
        return {**self._assume(self.caller, request), **_identity_members(identity)}

    def _assume(self, caller: Caller, request: RoleRequest) -> dict[str, Any]:
        credentials = self._issuer.assume_role(caller, request)
        session = credentials.session
        self.key_id = session.key_id
        expiration = datetime.fromtimestamp(session.expires_at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "AssumedRoleUser": {"AssumedRoleId": session.user_id, "Arn": session.arn},
            "Credentials": {
                "AccessKeyId": session.key_id,
                "SecretAccessKey": credentials.secret,
                "SessionToken": credentials.token,
                "Expiration": expiration,
            },
            **({"PackedPolicySize": session.packed_percent} if session.is_limited or session.tags else {}),
        }

    def _role_request(self) -> RoleRequest:
        """Return the parameters of the role; a web identity brings no tags of its own choosing."""
        parameters = self._parameters
        duration = parameters.get("DurationSeconds")
        if duration is not None and not (duration.isdecimal() and len(duration) < 10):
            raise StsFault("ValidationError", "DurationSeconds must be a number of seconds.")
        is_signed = self.operation == "AssumeRole"
        tags = _parse_list(parameters, "Tags") if is_signed else []
        self.role = RoleRequest(
            role_arn=self._require("RoleArn"),
            session_name=self._require("RoleSessionName"),
            duration_s=None if duration is None else int(duration),
            policy=parameters.get("Policy"),
            policy_arns=tuple(member.get("arn", "") for member in _parse_list(parameters, "PolicyArns")),
            tags=tuple((tag.get("Key", ""), tag.get("Value", "")) for tag in tags),
            transitive_tag_keys=tuple(
                member.get("", "")
                for member in (_parse_list(parameters, "TransitiveTagKeys") if is_signed else [])
            ),
            external_id=parameters.get("ExternalId") if is_signed else None,
        )
        return self.role

    def _require(self, name: str) -> str:
        value = self._parameters.get(name)
        if value is None:
            member = name[:1].lower() + name[1:]
            raise StsFault(
                "ValidationError",
                f"1 validation error detected: Value null at '{member}' failed to satisfy constraint: "
                f"Member must not be null",
            )
        return value


class OpenIssuer:
    """Gives every caller the role that it names, in the account of its ARN: an open server verifies nothing."""

    def __init__(
        self, callers: CallerVerifier, now: Callable[[], float], entropy: Entropy = SYSTEM_ENTROPY
    ) -> None:
        self._callers = callers
        self._now = now
        self._entropy = entropy
        self._signer = SessionSigner(_OPEN_KEY)
        self.anonymous_caller = callers.anonymous_caller

    def admit(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer
    ) -> Caller:
        """Return the caller that a request claims to be from."""
        return self._callers.admit(url, fields, body, peer)

    def admit_web_identity(
        self, request: RoleRequest, token: str, fields: Mapping[bytes, bytes], peer: Peer
    ) -> tuple[Caller, None]:
        """Return the caller of a request with any token; nothing of it is verified."""
        return self._callers.admit(b"/", fields, b"", peer), None

    def identify(self, caller: Caller, fields: Mapping[bytes, bytes], url: bytes) -> CallerIdentity:
        """Return the session in the request's token, or a user who is named after the access key."""
        query = dict(parse_qsl(url.partition(b"?")[2]))
        opened = self._signer.open(
            fields.get(b"x-amz-security-token") or query.get(b"X-Amz-Security-Token") or b""
        )
        if opened is not None:
            session = opened.session
            return CallerIdentity(session.arn, session.user_id, session.account)
        key_id = str(caller.identity.get("accessKeyId", "anonymous"))
        account = caller.scope.account
        return CallerIdentity(f"arn:aws:iam::{account}:user/{key_id}", key_id, account)

    def assume_role(self, caller: Caller, request: RoleRequest) -> RoleCredentials:
        """Return credentials of any role; their access key selects the account of its ARN."""
        return self._signer.issue(make_session(request, "", self._entropy, self._now()))


def _parse_parameters(query: bytes, body: bytes) -> dict[str, str]:
    """Return the parameters of the query and of the form in the body; each may occur once."""
    if len(body) > _REQUEST_BYTES_MAX:
        raise StsFault("ValidationError", f"A request to STS has at most {_REQUEST_BYTES_MAX:,} bytes.")
    try:
        pairs = [
            pair
            for form in (query, body)
            for pair in parse_qsl(form.decode(), keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
        ]
    except ValueError as error:
        raise StsFault("MalformedQueryString", "The form cannot be read.") from error
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise StsFault("MalformedQueryString", "A parameter occurs twice.")
    return parameters


def _parse_list(parameters: Mapping[str, str], name: str) -> list[dict[str, str]]:
    """Return the members of a list parameter in order: `Tags.member.1.Key` is the Key of the first one.

    Other spellings are refused: a session policy that was overlooked would leave a session wider than its caller wants.
    """
    members: dict[int, dict[str, str]] = {}
    for parameter, value in parameters.items():
        if parameter.partition(".")[0] != name:
            continue
        written = _MEMBER.fullmatch(parameter)
        if written is None:
            raise StsFault("MalformedQueryString", f"Write members of {name} as {name}.member.1.")
        members.setdefault(int(written[1]), {})[written[2] or ""] = value
    return [members[number] for number in sorted(members)]


def _identity_members(identity: WebIdentity | None) -> dict[str, str]:
    if identity is None:
        return {}
    return {
        "SubjectFromWebIdentityToken": identity.subject,
        "Audience": identity.audience,
        "Provider": identity.issuer,
    }


def _fault_of(error: Exception) -> Fault:
    """Return the fault that a caller gets for an exception; a denial does not say why."""
    match error:
        case Fault():
            return error
        case AssumeRoleDenied():
            return AccessDeniedFault(error.message)
        case SessionRefused():
            return StsFault(error.aws_code, error.message)
        case IamError():  # the server lacks a key or a package
            return StsFault("ValidationError", str(error))
        case _:
            return InternalServerFault()


def _render_result(operation: str, result: Mapping[str, Any], request_id: str) -> bytes:
    return _document(
        f"{operation}Response",
        {f"{operation}Result": result, "ResponseMetadata": {"RequestId": request_id}},
    )


def _render_fault(fault: Fault, request_id: str) -> tuple[int, bytes]:
    """Return the status and the document of an error."""
    shared = None if isinstance(fault, StsFault) else _CODES.get(fault.code)
    code, status = shared or (fault.code, fault.status)
    kind = "Receiver" if status >= 500 else "Sender"
    error = {"Type": kind, "Code": code, "Message": fault.message or ""}
    return status, _document("ErrorResponse", {"Error": error, "RequestId": request_id})


def _document(name: str, members: Mapping[str, Any]) -> bytes:
    return f'<{name} xmlns="{NAMESPACE}">{_elements(members)}</{name}>\n'.encode()


def _elements(members: Mapping[str, Any]) -> str:
    return "".join(
        f"<{name}>{_elements(value) if isinstance(value, Mapping) else _text(str(value))}</{name}>"
        for name, value in members.items()
    )


def _text(text: str) -> str:
    """Return a text as XML; characters that XML 1.0 does not have become question marks."""
    return escape("".join(letter if letter.isprintable() else "?" for letter in text), quote=False)


_ACTIONS = frozenset({"AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity"})
