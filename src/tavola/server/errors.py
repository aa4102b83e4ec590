"""Errors of the server: what it cannot listen on, prove itself with, or write to."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import TavolaError


class AddressInUse(TavolaError):
    """Another program listens on the port already."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"Port {port} of {host} is taken by another program; "
            f"stop that program or choose another port (0 takes a free one)."
        )


class AddressUnusable(TavolaError):
    """The host is no address of this machine, or the port is not ours to take."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"Cannot listen on port {port} of {host}: {reason}; choose another host or port.")


class CertificateUnusable(TavolaError):
    """A certificate or its key cannot be read, or one does not belong to the other."""

    def __init__(self, certificate: Path, key: Path, reason: str) -> None:
        self.certificate = certificate
        self.key = key
        self.reason = reason
        super().__init__(f"The certificate {certificate} with the key {key} cannot be used: {reason}.")


class AccessLogUnusable(TavolaError):
    """The access log cannot be opened."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The access log {path} cannot be written: {reason}; name another file.")
