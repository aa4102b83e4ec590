"""TokenSigner: signed tokens, such as shard iterators and page tokens, that callers carry and return unchanged.

A token names a position in an account's data. Its content is readable, but it is signed with the store's secret, together
with its purpose and its owner: a token that is forged, or comes from another store or another account, is invalid.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

import msgspec

from tavola.engine.storage import Store
from tavola.entropy import Entropy
from tavola.protocol.arns import Scope

_KIND, _NAME = "secret", "seals"  # part of the file format
_SECRET_BYTES = 32
_CODE_BYTES = 16

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class TokenSigner:
    """Signs and verifies tokens with the store's secret, which is created with the first token."""

    __slots__ = ("_begin", "_entropy", "_secret", "_store")

    def __init__(self, store: Store, entropy: Entropy, begin: Callable[[], None]) -> None:
        self._store = store
        self._entropy = entropy
        self._begin = begin
        self._secret: bytes | None = None

    def sign(self, purpose: str, scope: Scope, payload: dict[str, Any]) -> str:
        """Return a token for this owner from which `open` returns the payload."""
        secret = self._load_secret() or self._create_secret()
        data = _encode(payload)
        return urlsafe_b64encode(_code(secret, purpose, scope, data) + data).decode()

    def open(self, purpose: str, scope: Scope, token: str) -> dict[str, Any] | None:
        """Return the payload of a token; None if it is not valid for this owner and purpose."""
        secret = self._load_secret()
        if secret is None or not token.isascii():
            return None
        try:
            raw = urlsafe_b64decode(token)
        except (NotBase64, ValueError):
            return None
        code, data = raw[:_CODE_BYTES], raw[_CODE_BYTES:]
        if not compare_digest(code, _code(secret, purpose, scope, data)):
            return None
        return _decode(data)

    def forget_secret(self) -> None:
        """Forget the secret, because the transaction that created it may have been rolled back."""
        self._secret = None

    def _load_secret(self) -> bytes | None:
        if self._secret is None:
            self._secret = self._store.get_record(_KIND, _NAME)
        return self._secret

    def _create_secret(self) -> bytes:
        self._begin()
        secret = self._secret = self._entropy.bytes(_SECRET_BYTES)
        self._store.put_record(_KIND, _NAME, secret)
        return secret


def _code(secret: bytes, purpose: str, scope: Scope, data: bytes) -> bytes:
    owner = f"{purpose}\n{scope.account}\n{scope.region}\n".encode()
    return blake2b(owner + data, key=secret, digest_size=_CODE_BYTES).digest()
