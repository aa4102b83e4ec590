"""AWS Signature Version 4 for DynamoDB requests.

AWS authenticates a request by an HMAC over its text, with a key derived from the secret, the date, region and service:

    key        = HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request")
    canonical  = POST, path, headers, SHA-256(body)
    to sign    = "AWS4-HMAC-SHA256", time, date/region/service/aws4_request, SHA-256(canonical)
    signature  = HMAC(key, to sign)

Most of that is the same from request to request. The signer keeps the derived key for a day, the texts with the time for a
second, and the texts about the endpoint for its lifetime; HMAC states of the key are copied instead of set up anew. A
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


class Key(NamedTuple):
    """What signs: an access key, its secret and the token of a session if it belongs to one."""

    id: str
    secret: str
    token: str | None = None


class _Moment(NamedTuple):
    """All that a request needs which does not depend on the request; right for one second and one key."""

    second: int
    key: Key
    canonical: bytes  # what is signed, up to the target
    signed: bytes  # and from there to the hash of the body
    to_sign: bytes
    inner: Any  # the two states that the signing key's HMAC begins from
    outer: Any
    head: bytes  # the request up to its signature


class Signer:
    """Writes requests to one endpoint, by its host and path, in one region.

    `headers` go with every request and are signed too. Threads may share a signer: what it remembers is replaced
    whole, and at worst made twice.
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
        self._moment: _Moment | None = None
        self._signing: tuple[str, str, Any, Any] | None = None  # secret, day, and the states they give

    def write(self, key: Key, target: bytes, body: bytes) -> bytes:
        """Return a request for a target, head and body in one, so that it goes out in one write."""
        second = int(self._now())
        moment = self._moment
        if moment is None or moment.second != second or (moment.key is not key and moment.key != key):
            moment = self._moment = self._prepared(key, second)
        _, _, canonical, signed, to_sign, inner, outer, head = moment
        asked = canonical + target + signed + _sha256(body).hexdigest().encode()
        inner = inner.copy()
        inner.update(to_sign + _sha256(asked).hexdigest().encode())
        outer = outer.copy()
        outer.update(inner.digest())
        return b"%b%b\r\nX-Amz-Target: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            head,
            outer.hexdigest().encode(),
            target,
            len(body),
            body,
        )

    def _prepared(self, key: Key, second: int) -> _Moment:
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
        place = names.index("x-amz-target")
        before = "".join(f"{name}:{values[name]}\n" for name in names[:place])
        after = "".join(f"{name}:{values[name]}\n" for name in names[place + 1 :])
        inner, outer = self._states(key.secret, day)
        sent = {
            "Host": self._host,
            "User-Agent": _USER_AGENT,
            "Accept-Encoding": "identity",  # the checksum is of the bytes as they are sent
            **{name.title(): value for name, value in values.items() if name != "host"},
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return _Moment(
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


def _check(key: Key) -> None:
    """Refuse a key that would break the head of a request, such as one with the line's end that a file had."""
    for what, text in (("access key", key.id), ("session token", key.token or "")):
        if not text.isascii() or any(sign <= " " or sign == "\x7f" for sign in text):
            raise CredentialsMissing(f"the {what} holds a space, a line break or a letter that none has")


def _hmac_states(key: bytes) -> tuple[Any, Any]:
    """Return the inner and outer hash of an HMAC, begun with a key."""
    block = (key if len(key) <= _BLOCK_BYTES else _sha256(key).digest()).ljust(_BLOCK_BYTES, b"\0")
    return _sha256(bytes(byte ^ 0x36 for byte in block)), _sha256(bytes(byte ^ 0x5C for byte in block))
