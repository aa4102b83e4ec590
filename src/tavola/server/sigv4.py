"""SigV4 verification: prove that a request was signed by the holder of a secret key and not changed since.

The client sends its key id and a signature, never the secret. Both sides compute the signature from the request:

    canonical request = method, path, query, signed headers, SHA-256 of the body
    string to sign    = algorithm, date, "20260101/us-east-1/dynamodb/aws4_request", SHA-256 of the canonical request

    secret ──HMAC day──► ──HMAC region──► ──HMAC service──► ──HMAC "aws4_request"──► signing key
    signature = HMAC(signing key, string to sign)

The signing key is the same for a day, region and key id, so it is derived once and cached. So is everything else that
does not change between the requests of a client: the `Authorization` header up to its signature (key id, scope, names
of the signed headers) is parsed once into a `Claim`, which later requests find by that header prefix. A request that
finds its claim costs four hashes: the body, the canonical request, and the inner and outer half of one HMAC, which
start from saved states.

The fast path only accepts. Whatever it cannot accept goes through `_examine`, which checks everything in the order of
AWS and raises AWS's faults, so there is one place that refuses. A new `Verifier`, with empty caches, replaces this one
when the directory of keys changes; nothing that was verified with an old secret outlives it.

A verifier belongs to one service, whose name is part of the signature: a request that was signed for DynamoDB is not
valid for STS, whose requests are rare and take the full path, `verify_in_full`.

Not supported: `UNSIGNED-PAYLOAD` and chunked signatures, which DynamoDB does not use. Such a signature does not match,
because the body is always part of what is verified.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from binascii import hexlify
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hmac import compare_digest
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, unquote_to_bytes

from tavola.clock import Clock
from tavola.protocol.faults import (
    ExpiredTokenFault,
    Fault,
    IncompleteSignatureFault,
    InvalidSignatureFault,
    MissingAuthenticationTokenFault,
    UnrecognizedClientFault,
)
from tavola.protocol.instants import AS_OF_HEADER

SKEW_S: Final = 15 * 60
"""How far the time of a request may differ from ours, in either direction."""

ALGORITHM: Final = "AWS4-HMAC-SHA256"
DYNAMODB: Final = "dynamodb"  # the streams sign with the same name
STS: Final = "sts"
TERMINATOR: Final = "aws4_request"

# The headers that must be signed: without X-Amz-Target a signature would not cover the operation.
_SIGNED_HEADERS: Final = {DYNAMODB: ("Host", "X-Amz-Target"), STS: ("Host",)}
_SIGNATURE_CHARACTERS: Final = 64
_MOMENT: Final = AS_OF_HEADER.encode()
_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{0,61}")
_DATE = re.compile(rb"\d{8}T\d{6}Z")
_SEPARATORS = re.compile(rb"[, ]+")
_HEADER_PARTS = (b"Credential", b"Signature", b"SignedHeaders")
_QUERY_PARTS = (
    b"X-Amz-Algorithm",
    b"X-Amz-Credential",
    b"X-Amz-Signature",
    b"X-Amz-SignedHeaders",
    b"X-Amz-Date",
)
_UNRESERVED = "-_.~"  # not percent-encoded in a canonical query, beside letters and digits
_KNOWN_MAX = 1024
_DATES_MAX = 256

_sha256 = hashlib.sha256


class SigningCredential(Protocol):
    """The attributes of a key that a verifier uses; `tavola.iam.Credential` has them."""

    @property
    def secret(self) -> str:
        """The secret that the holder signs with."""
        ...

    @property
    def token(self) -> str | None:
        """The session token that every request of a session carries; None for a long-term key."""
        ...

    @property
    def expires_at_s(self) -> float | None:
        """When the session ends."""
        ...

    @property
    def active(self) -> bool:
        """Whether the key may be used."""
        ...


C = TypeVar("C", bound=SigningCredential)
C_co = TypeVar("C_co", bound=SigningCredential, covariant=True)


class CredentialLookup(Protocol[C_co]):
    """Where keys are looked up; `tavola.iam.Directory` implements it."""

    def credential(self, key_id: str, token: bytes | None, /) -> C_co | None:
        """Return the credential of a key id, or None if there is no such key; a session is found by its token."""
        ...


class _Key(NamedTuple):
    """A signing key, as the two hash states that an HMAC with it starts from."""

    inner: Any
    outer: Any

    def sign(self, text: bytes) -> bytes:
        """Return the signature of a text, in hexadecimal."""
        inner = self.inner.copy()
        inner.update(text)
        outer = self.outer.copy()
        outer.update(inner.digest())
        return hexlify(outer.digest())


class _SignatureParts(NamedTuple):
    """The signature and its parameters, as a request states them in its header or its query."""

    algorithm: bytes
    credential: bytes
    signature: bytes
    signed_headers: bytes
    date: bytes
    token: bytes | None
    lasts_s: int  # validity; shorter than the usual 15 minutes if the query says so


class Claim(Generic[C]):
    """One key used in one region on one day over the same headers; equal only to itself."""

    __slots__ = (
        "credential",
        "day",
        "expires_at_s",
        "form",
        "inner",
        "key_id",
        "outer",
        "pick",
        "region",
        "scope_line",
        "signs_moment",
        "token",
    )

    def __init__(
        self, credential: C, key_id: str, day: bytes, region: str, service: str, names: list[bytes], key: _Key
    ) -> None:
        self.credential = credential
        self.key_id = key_id
        self.region = region
        self.day = day
        self.token = None if credential.token is None else credential.token.encode()
        self.expires_at_s = credential.expires_at_s
        self.inner, self.outer = key
        self.scope_line = b"\n%b/%b/%b/aws4_request\n" % (day, region.encode(), service.encode())
        self.form = canonical_form(b"", names)
        self.signs_moment = _MOMENT in names
        self.pick: Callable[[Mapping[bytes, bytes]], tuple[bytes, ...]] = itemgetter(*names)


class Verifier(Generic[C]):
    """Verifies requests to one service with the keys of one directory, and owns the caches for them."""

    __slots__ = ("_claims", "_clock", "_credentials", "_dates", "_keys", "_service")

    def __init__(self, credentials: CredentialLookup[C], clock: Clock, service: str = DYNAMODB) -> None:
        self._credentials = credentials
        self._clock = clock
        self._service = service
        self._claims: dict[bytes, Claim[C]] = {}  # by the Authorization header without its signature
        self._keys: dict[tuple[str, bytes, str], _Key] = {}  # by key, day and region
        self._dates: dict[bytes, float] = {}  # epoch seconds by date header

    def verify(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes) -> Claim[C]:
        """Return the claim that a POST to the root proves, or raise AWS's fault.

        Header names in `fields` are lower-case.
        """
        authorization = fields.get(b"authorization", b"")
        claim = self._claims.get(authorization[:-_SIGNATURE_CHARACTERS])
        if claim is None or url != b"/":
            return self._examine(url, fields, body)
        date = fields.get(b"x-amz-date", b"")
        token = fields.get(b"x-amz-security-token")
        now_s = self._clock.now()
        if (
            abs(now_s - self._dates.get(date, 0.0)) > SKEW_S
            or not date.startswith(claim.day)
            or (token is not claim.token and not compare_digest(token or b"", claim.token or b""))
            or (claim.expires_at_s is not None and claim.expires_at_s <= now_s)
            or (_MOMENT in fields and not claim.signs_moment)
        ):
            return self._examine(url, fields, body)
        try:
            canonical = claim.form % (*claim.pick(fields), hexlify(_sha256(body).digest()))
        except KeyError:
            return self._examine(url, fields, body)
        inner = claim.inner.copy()
        inner.update(
            b"AWS4-HMAC-SHA256\n%b%b%b" % (date, claim.scope_line, hexlify(_sha256(canonical).digest()))
        )
        outer = claim.outer.copy()
        outer.update(inner.digest())
        if compare_digest(hexlify(outer.digest()), authorization[-_SIGNATURE_CHARACTERS:]):
            return claim
        return self._examine(url, fields, body)

    def verify_in_full(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes
    ) -> Claim[C]:
        """Return the claim that a request to the root with any method proves, or raise AWS's fault."""
        return self._examine(url, fields, body, method)

    def _examine(
        self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, method: bytes = b"POST"
    ) -> Claim[C]:
        """Do every check in AWS's order, and cache the claim for the fast path."""
        pairs = query_pairs(url)
        stated = _read(fields, pairs)
        now_s = self._clock.now()
        parts = stated.credential.decode("latin-1").split("/")
        if len(parts) != 5:
            raise IncompleteSignatureFault(
                "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
                f"got '{stated.credential.decode('latin-1')}'"
            )
        key_id, day, region, service, terminator = parts
        _check_scope(day, region, service, terminator, stated.date, self._service)
        at_s = parse_date(stated.date)
        _check_skew(stated, at_s, now_s)
        names = [name.lower() for name in stated.signed_headers.split(b";")]
        # A header that changes the meaning of a request must be signed, or a proxy could add it.
        moment = (AS_OF_HEADER,) if _MOMENT in fields else ()
        for needed in (*_SIGNED_HEADERS[self._service], *moment):
            if needed.lower().encode() not in names:
                raise InvalidSignatureFault(f"'{needed}' must be a 'SignedHeader' in the AWS Authorization.")
        if stated.algorithm != ALGORITHM.encode():
            raise IncompleteSignatureFault(
                f"Unsupported AWS 'algorithm': '{stated.algorithm.decode('latin-1')}' (only {ALGORITHM} for now). "
            )
        credential = self._credentials.credential(key_id, stated.token)
        if credential is None or not credential.active:
            raise UnrecognizedClientFault
        _check_token(credential, stated.token, now_s)
        key = self._key(key_id, credential.secret, day.encode("latin-1"), region)
        if not _matches(key, stated, method, pairs, names, fields, body):
            raise InvalidSignatureFault
        claim = Claim(credential, key_id, day.encode("latin-1"), region, service, names, key)
        return self._remember(claim, stated, fields, at_s)

    def _key(self, key_id: str, secret: str, day: bytes, region: str) -> _Key:
        cache_key = (key_id, day, region)
        key = self._keys.get(cache_key)
        if key is None:
            key = signing_key(secret, day, region, self._service)
            if len(self._keys) >= _KNOWN_MAX:
                self._keys.clear()
            self._keys[cache_key] = key
        return key

    def _remember(
        self, claim: Claim[C], stated: _SignatureParts, fields: Mapping[bytes, bytes], at_s: float
    ) -> Claim[C]:
        """Cache a verified claim, if its header ends with the signature, as SDKs write it."""
        authorization = fields.get(b"authorization", b"")
        prefix = authorization[:-_SIGNATURE_CHARACTERS]
        if (
            not prefix.endswith(b"Signature=")
            or stated.signature != authorization[-_SIGNATURE_CHARACTERS:]
            or stated.date != fields.get(b"x-amz-date")
        ):
            return claim
        if len(self._claims) >= _KNOWN_MAX:
            self._claims.clear()
        if len(self._dates) >= _DATES_MAX:
            self._dates.clear()
        self._dates[stated.date] = at_s
        return self._claims.setdefault(prefix, claim)


def signing_key(secret: str, day: bytes, region: str, service: str = DYNAMODB) -> _Key:
    """Return the key that signs for a day in a region, derived as AWS derives it."""
    key = b"AWS4" + secret.encode()
    for text in (day, region.encode(), service.encode(), TERMINATOR.encode()):
        key = hmac.digest(key, text, "sha256")
    return _Key(*_hmac_states(key))


def canonical_form(query: bytes, names: Iterable[bytes], method: bytes = b"POST") -> bytes:
    """Return a canonical request with `%b` for each signed header's value and for the body's hash."""
    escaped = [name.replace(b"%", b"%%") for name in names]
    return b"%b\n/\n%b\n%b\n%b\n%%b" % (
        method,
        query.replace(b"%", b"%%"),
        b"".join(name + b":%b\n" for name in escaped),
        b";".join(escaped),
    )


def query_pairs(url: bytes) -> list[tuple[bytes, bytes]]:
    """Return the parameters of a URL's query, still percent-encoded."""
    query = url.partition(b"?")[2].partition(b"#")[0]
    pairs = (part.partition(b"=") for part in query.split(b"&") if part)
    return [(name, value) for name, _, value in pairs]


def parse_date(text: bytes) -> float:
    """Return a date in ISO 8601's basic form as epoch seconds, or refuse it as AWS does."""
    if _DATE.fullmatch(text):
        try:
            return timegm(datetime.strptime(text.decode("ascii"), "%Y%m%dT%H%M%SZ").timetuple())  # noqa: DTZ007 - timegm reads it as UTC
        except ValueError:
            pass  # such as a thirteenth month
    raise IncompleteSignatureFault(
        f"Date must be in ISO-8601 'basic format'. Got '{text.decode('latin-1')}'. "
        f"See http://en.wikipedia.org/wiki/ISO_8601"
    )


def render_date(epoch_s: float) -> str:
    """Return a time in ISO 8601's basic form."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y%m%dT%H%M%SZ")


def _read(fields: Mapping[bytes, bytes], pairs: list[tuple[bytes, bytes]]) -> _SignatureParts:
    """Return the parts of the signature from the header or the query; refuse both, neither, or missing parts."""
    authorization = fields.get(b"authorization", b"").strip()
    parameters = {unquote_to_bytes(name): unquote_to_bytes(value) for name, value in reversed(pairs)}
    if authorization and b"X-Amz-Algorithm" in parameters:
        raise InvalidSignatureFault(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
        )
    if b"X-Amz-Algorithm" in parameters:
        return _read_query(parameters, fields.get(b"x-amz-security-token"))
    if not authorization.startswith(b"AWS4-"):
        raise MissingAuthenticationTokenFault
    algorithm, *rest = _SEPARATORS.split(authorization)
    parts = {name: value for name, sign, value in (part.partition(b"=") for part in rest) if sign}
    date = fields.get(b"x-amz-date") or fields.get(b"date") or b""
    missing = "".join(
        f"Authorization header requires '{name.decode()}' parameter. "
        for name in _HEADER_PARTS
        if not parts.get(name)
    )
    if not date:
        missing += "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
    if missing:
        raise IncompleteSignatureFault(f"{missing}Authorization={authorization.decode('latin-1')}")
    return _SignatureParts(
        algorithm=algorithm,
        credential=parts[b"Credential"],
        signature=parts[b"Signature"],
        signed_headers=parts[b"SignedHeaders"],
        date=date,
        token=fields.get(b"x-amz-security-token"),
        lasts_s=SKEW_S,
    )


def _read_query(parameters: Mapping[bytes, bytes], token: bytes | None) -> _SignatureParts:
    """Return the parts from the query; a `token` from a header takes precedence."""
    missing = "".join(
        f"AWS query-string parameters must include '{name.decode()}'. "
        for name in _QUERY_PARTS
        if not parameters.get(name)
    )
    if missing:
        raise IncompleteSignatureFault(f"{missing}Re-examine the query-string parameters.")
    algorithm, credential, signature, signed_headers, date = (parameters[name] for name in _QUERY_PARTS)
    lasts = parameters.get(b"X-Amz-Expires", str(SKEW_S).encode())
    if not (lasts.isdigit() and len(lasts) < 10):
        raise IncompleteSignatureFault("X-Amz-Expires must be a number of seconds.")
    return _SignatureParts(
        algorithm,
        credential,
        signature,
        signed_headers,
        date,
        token=parameters.get(b"X-Amz-Security-Token") if token is None else token,
        lasts_s=min(SKEW_S, int(lasts)),
    )


def _check_scope(
    day: str, region: str, service: str, terminator: str, date: bytes, expected_service: str
) -> None:
    complaints = ""
    if not _REGION.fullmatch(region):
        complaints += f"Credential should be scoped to a valid region, not '{region}'. "
    if service != expected_service:
        complaints += f"Credential should be scoped to correct service: '{expected_service}'. "
    if terminator != TERMINATOR:
        complaints += (
            f"Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{terminator}'. "
        )
    if _DATE.fullmatch(date) and day != date[:8].decode("ascii"):
        complaints += (
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{day}' != '{date[:8].decode('ascii')}', from '{date.decode('ascii')}'."
        )
    if complaints:
        raise InvalidSignatureFault(complaints)


def _check_skew(stated: _SignatureParts, at_s: float, now_s: float) -> None:
    date, now = stated.date.decode("ascii"), render_date(now_s)
    if now_s - at_s > stated.lasts_s:
        allowed = "15 min." if stated.lasts_s == SKEW_S else f"{stated.lasts_s} sec."
        earliest = render_date(now_s - stated.lasts_s)
        raise InvalidSignatureFault(
            f"Signature expired: {date} is now earlier than {earliest} ({now} - {allowed})"
        )
    if at_s - now_s > SKEW_S:
        latest = render_date(now_s + SKEW_S)
        raise InvalidSignatureFault(
            f"Signature not yet current: {date} is still later than {latest} ({now} + 15 min.)"
        )


def _check_token(credential: SigningCredential, token: bytes | None, now_s: float) -> None:
    if credential.token is None:
        if token is not None:
            raise _bad_token()
        return
    if token is None or not compare_digest(token, credential.token.encode()):
        raise _bad_token()
    if credential.expires_at_s is not None and credential.expires_at_s <= now_s:
        raise ExpiredTokenFault


def _bad_token() -> Fault:
    return UnrecognizedClientFault("The security token included in the request is invalid")


def _matches(
    key: _Key,
    stated: _SignatureParts,
    method: bytes,
    pairs: list[tuple[bytes, bytes]],
    names: list[bytes],
    fields: Mapping[bytes, bytes],
    body: bytes,
) -> bool:
    """Return whether the signature matches the request, either as sent or as AWS normalizes it.

    Clients differ in what they normalize before signing: some sign the query as written, some collapse spaces. Every
    form contains the whole request, so accepting any of them lets no change through.
    """
    if any(name not in fields for name in names):
        return False
    values = tuple(fields[name] for name in names)
    collapsed = tuple(b" ".join(value.split()) for value in values)
    signed = [(name, value) for name, value in pairs if unquote_to_bytes(name) != b"X-Amz-Signature"]
    written = b"&".join(b"%b=%b" % pair for pair in sorted(signed))
    encoded = b"&".join(b"%b=%b" % pair for pair in sorted((_encode(n), _encode(v)) for n, v in signed))
    payload = hexlify(_sha256(body).digest())
    scope = stated.credential.partition(b"/")[2]
    matches = False
    for query in dict.fromkeys((written, encoded)):
        form = canonical_form(query, names, method)
        for header_values in dict.fromkeys((values, collapsed)):
            canonical = form % (*header_values, payload)
            text = b"AWS4-HMAC-SHA256\n%b\n%b\n%b" % (
                stated.date,
                scope,
                hexlify(_sha256(canonical).digest()),
            )
            matches |= compare_digest(key.sign(text), stated.signature)
    return matches


def _encode(text: bytes) -> bytes:
    return quote(unquote_to_bytes(text), safe=_UNRESERVED).encode("ascii")


def _hmac_states(key: bytes) -> tuple[Any, Any]:
    """Return the inner and outer hash state of an HMAC with a key."""
    block = (key if len(key) <= 64 else _sha256(key).digest()).ljust(64, b"\0")
    return _sha256(bytes(byte ^ 0x36 for byte in block)), _sha256(bytes(byte ^ 0x5C for byte in block))
