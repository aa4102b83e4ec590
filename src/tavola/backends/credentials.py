"""Credentials: who asks an endpoint, where it is not who botocore finds configured."""

from __future__ import annotations

from msgspec import Struct


class Credentials(Struct, frozen=True):
    """An access key, its secret and, where it is a session's, its token. The repr hides the secrets."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(access_key_id={self.access_key_id!r})"
