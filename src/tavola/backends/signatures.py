"""AWS Signature Version 4 for DynamoDB requests.

AWS authenticates a request by an HMAC over its text, with a key derived from the secret, the date, region and service:

    key        = HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request")
    canonical  = POST, path, headers, SHA-256(body)
    to sign    = "AWS4-HMAC-SHA256", time, date/region/service/aws4_request, SHA-256(canonical)
    signature  = HMAC(key, to sign)

Most of that is the same from request to request. The signer keeps the derived key for a day, the texts with the time for a
second, and the texts about the endpoint for its lifetime; HMAC states of the key are copied instead of computed again. A
request then costs four hashes. Only what DynamoDB needs is implemented: POST requests, a fixed set of headers, no query
string, no chunked bodies. A test compares the result with botocore's signer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from tavola.backends.errors import CredentialsMissing
from tavola.clock import SYSTEM_CLOCK, Clock

CONTENT_TYPE = "application/x-amz-json-1.0"
SERVICE = "dynamodb"  # the streams sign with the same name

_USER_AGENT = "tavola"
_BLOCK_BYTES = 64

_sha256 = hashlib.sha256


class SigningKey(NamedTuple):
    """An access key id, its secret, and the session token of temporary credentials."""

    id: str
    secret: str
    token: str | None = None


class _SecondState(NamedTuple):
    """The parts of a signed request that do not depend on the request; valid for one second and one key."""

    second: int
    key: SigningKey
    canonical: bytes  # the canonical request up to the target
    signed: bytes  # and from there to the hash of the body
    to_sign: bytes
    inner: Any  # the initial states of the signing key's HMAC
    outer: Any
    head: bytes  # the request up to its signature


class Signer:
    """Writes requests to one endpoint, by its host and path, in one region.

    `headers` are sent and signed with every request. Threads may share a signer: its cached state is replaced as a whole, and
    at worst computed twice.
    """

    def __init__(
        self,
        host: str,
        region: str,
        headers: Mapping[str, str] | None = None,
        *,
        path: str = "/",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._host = host
        self._path = path
        self._region = region
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._now = clock.now
        self._state: _SecondState | None = None
        self._signing: tuple[str, str, Any, Any] | None = None  # secret, day, and the HMAC states

    def sign(self, key: SigningKey, target: bytes, body: bytes) -> bytes:
        """Return the signed request for a target, head and body together, to be sent in one write."""
        second = int(self._now())
        state = self._state
        if state is None or state.second != second or (state.key is not key and state.key != key):
            state = self._state = self._prepare(key, second)
        _, _, canonical, signed, to_sign, inner, outer, head = state
        canonical_request = canonical + target + signed + _sha256(body).hexdigest().encode()
        inner = inner.copy()
        inner.update(to_sign + _sha256(canonical_request).hexdigest().encode())
        outer = outer.copy()
        outer.update(inner.digest())
        return b"%b%b\r\nX-Amz-Target: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            head,
            outer.hexdigest().encode(),
            target,
            len(body),
            body,
        )

    def _prepare(self, key: SigningKey, second: int) -> _SecondState:
        _check(key)
        date = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
        day = date[:8]
        scope = f"{day}/{self._region}/{SERVICE}/aws4_request"
        values = {
            "content-type": CONTENT_TYPE,
            "host": self._host,
            "x-amz-date": date,
            **self._headers,
            **({} if key.token is None else {"x-amz-security-token": key.token}),
        }
        names = sorted([*values, "x-amz-target"])
        at = names.index("x-amz-target")
        before = "".join(f"{name}:{values[name]}\n" for name in names[:at])
        after = "".join(f"{name}:{values[name]}\n" for name in names[at + 1 :])
        inner, outer = self._states(key.secret, day)
        sent = {
            "Host": self._host,
            "User-Agent": _USER_AGENT,
            "Accept-Encoding": "identity",  # the checksum is of the bytes as sent
            **{name.title(): value for name, value in values.items() if name != "host"},
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return _SecondState(
            second,
            key,
            canonical=f"POST\n{quote(self._path, safe='/~')}\n\n{before}x-amz-target:".encode(),
            signed=f"\n{after}\n{';'.join(names)}\n".encode(),
            to_sign=f"AWS4-HMAC-SHA256\n{date}\n{scope}\n".encode(),
            inner=inner,
            outer=outer,
            head=(
                f"POST {self._path} HTTP/1.1\r\n{lines}Authorization: AWS4-HMAC-SHA256 Credential={key.id}/{scope}, "
                f"SignedHeaders={';'.join(names)}, Signature="
            ).encode(),
        )

    def _states(self, secret: str, day: str) -> tuple[Any, Any]:
        known = self._signing
        if known is None or known[:2] != (secret, day):
            derived = f"AWS4{secret}".encode()
            for text in (day, self._region, SERVICE, "aws4_request"):
                inner, outer = _hmac_states(derived)
                inner.update(text.encode())
                outer.update(inner.digest())
                derived = outer.digest()
            known = self._signing = (secret, day, *_hmac_states(derived))
        return known[2], known[3]


def _check(key: SigningKey) -> None:
    """Refuse a key that would break the request head, such as one with a trailing line break."""
    for what, text in (("access key", key.id), ("session token", key.token or "")):
        if not text.isascii() or any(sign <= " " or sign == "\x7f" for sign in text):
            raise CredentialsMissing(
                f"the {what} contains a space, a line break or another invalid character"
            )


def _hmac_states(key: bytes) -> tuple[Any, Any]:
    """Return the inner and outer hash of an HMAC, initialised with a key."""
    block = (key if len(key) <= _BLOCK_BYTES else _sha256(key).digest()).ljust(_BLOCK_BYTES, b"\0")
    return _sha256(bytes(byte ^ 0x36 for byte in block)), _sha256(bytes(byte ^ 0x5C for byte in block))
