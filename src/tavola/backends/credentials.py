"""Credentials: who asks an endpoint, where it is not who botocore finds configured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key, its secret and, where it is a session's, its token. The repr keeps what is secret to itself."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
