"""Accounts: the account that an access key stands for.

Twelve digits are the account itself, a key in AWS's form carries one, any other key carries none.
"""

from __future__ import annotations

import base64
import re

from tavola.protocol.arns import Scope

DEFAULT_SCOPE = Scope(account="000000000000", region="us-east-1")
"""Whose tables are meant where nothing says so."""

_ACCOUNT = re.compile(r"[0-9]{12}")
_AWS_KEY = re.compile(r"(?:AKIA|ASIA)([A-Z2-7]{16})")
_CARRIES_ACCOUNT = 1 << 47  # the top bit of a key's first six bytes; keys from before 2019 lack it
_ACCOUNT_SHIFT = 7


def account_of_key(access_key: str) -> str | None:
    """Return the account that an access key stands for, None if it carries none."""
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
    """Return an access key in AWS's form that carries an account; `chance` is five bytes that tell it from others."""
    tail = int.from_bytes(chance, "big")
    number = _CARRIES_ACCOUNT | int(account) << _ACCOUNT_SHIFT | tail >> 33
    body = number.to_bytes(6, "big") + (tail & 0xFFFFFFFF).to_bytes(4, "big")
    return prefix + base64.b32encode(body).decode()
