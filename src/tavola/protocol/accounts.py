"""The account that an access key belongs to.

An access key of twelve digits is the account itself; a key in AWS's format encodes its account; any other key has
none.
"""

from __future__ import annotations

import base64
import re

from tavola.protocol.arns import Scope

DEFAULT_SCOPE = Scope(account="000000000000", region="us-east-1")
"""The account and region used when a request names none."""

_ACCOUNT = re.compile(r"[0-9]{12}")
_AWS_KEY = re.compile(r"(?:AKIA|ASIA)([A-Z2-7]{16})")
_CARRIES_ACCOUNT = 1 << 47  # set in the first six bytes of keys made since 2019, which encode the account
_ACCOUNT_SHIFT = 7


def account_of_key(access_key: str) -> str | None:
    """Return the account encoded in an access key, None if it has none."""
    if _ACCOUNT.fullmatch(access_key):
        return access_key
    body = _AWS_KEY.fullmatch(access_key)
    if body is None:
        return None
    number = int.from_bytes(base64.b32decode(body[1])[:6], "big")
    if not number & _CARRIES_ACCOUNT:
        return None
    return f"{(number & ~_CARRIES_ACCOUNT) >> _ACCOUNT_SHIFT:012}"


def access_key_of(account: str, chance: bytes, prefix: str = "AKIA") -> str:
    """Return an access key in AWS's format for an account; `chance` is five random bytes."""
    tail = int.from_bytes(chance, "big")
    number = _CARRIES_ACCOUNT | int(account) << _ACCOUNT_SHIFT | tail >> 33
    body = number.to_bytes(6, "big") + (tail & 0xFFFFFFFF).to_bytes(4, "big")
    return prefix + base64.b32encode(body).decode()
