"""Endpoint: the address of a server and its URL. It imports nothing, so that `tavola env` starts fast."""

from __future__ import annotations

from msgspec import Struct


class ServerEndpoint(Struct, frozen=True):
    """The address that a server listens on."""

    host: str
    port: int
    secure: bool = False  # TLS

    @property
    def url(self) -> str:
        """The URL for clients; a server that listens on every address is reached by the loopback address."""
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        scheme = "https" if self.secure else "http"
        return f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"
