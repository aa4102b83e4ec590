"""Credentials: an access key that is used instead of what botocore finds configured."""

from __future__ import annotations

from msgspec import Struct


class Credentials(Struct, frozen=True):
    """An access key, its secret, and the token of temporary credentials. The repr hides the secrets."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(access_key_id={self.access_key_id!r})"
