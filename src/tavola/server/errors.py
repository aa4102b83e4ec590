"""Errors of the server: unusable addresses, certificates and access logs."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class AddressInUse(TavolaError):
    """Another program already listens on the port."""

    kind = ErrorKind.IN_USE
    remedy = "Stop that program, or choose another port with --port; 0 picks a free one."

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(f"Port {port} on {host} is in use by another program.")


class AddressUnusable(TavolaError):
    """The host is not an address of this machine, or this user may not open the port."""

    kind = ErrorKind.UNAVAILABLE
    remedy = "Choose an address of this machine with --host, or another --port."

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"Cannot listen on port {port} on {host}: {reason}; choose another host or port.")


class CertificateUnusable(TavolaError):
    """A certificate or its key cannot be read, or they do not match."""

    remedy = "Pass a certificate and its matching key with --tls-cert and --tls-key."

    def __init__(self, certificate: Path, key: Path, reason: str) -> None:
        self.certificate = certificate
        self.key = key
        self.reason = reason
        super().__init__(f"The certificate {certificate} with the key {key} cannot be used: {reason}.")


class LogSecretUnreadable(TavolaError):
    """The secret for the key hashes of an access log is missing or unreadable."""

    kind = ErrorKind.NOT_FOUND

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"The access log's secret {path} cannot be read; ask the server's operator for it, or pass the hash of the key."
        )


class LogKeyMalformed(TavolaError):
    """The key to search for in an access log is not valid."""

    kind = ErrorKind.USAGE

    def __init__(self, item: str) -> None:
        self.item = item
        super().__init__(
            f"{item} is not a key; write it as DynamoDB JSON, hash attribute first: "
            f'{{"pk": {{"S": "o#1"}}, "sk": {{"S": "2026"}}}}.'
        )


class AccessLogUnusable(TavolaError):
    """The access log cannot be opened."""

    remedy = "Pass a file in a writable folder with --access-log."

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The access log {path} cannot be written: {reason}; choose another file.")
