"""Errors of the server: what it cannot listen on, prove itself with, or write to."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class AddressInUse(TavolaError):
    """Another program listens on the port already."""

    kind = ErrorKind.IN_USE
    remedy = "Choose another port with --port; 0 takes a free one."

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"Port {port} of {host} is taken by another program; "
            f"stop that program or choose another port (0 takes a free one)."
        )


class AddressUnusable(TavolaError):
    """The host is no address of this machine, or the port is not ours to take."""

    kind = ErrorKind.UNAVAILABLE
    remedy = "Choose an address of this machine with --host, or another --port."

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"Cannot listen on port {port} of {host}: {reason}; choose another host or port.")


class CertificateUnusable(TavolaError):
    """A certificate or its key cannot be read, or one does not belong to the other."""

    remedy = "Name a certificate and its own key with --tls-cert and --tls-key."

    def __init__(self, certificate: Path, key: Path, reason: str) -> None:
        self.certificate = certificate
        self.key = key
        self.reason = reason
        super().__init__(f"The certificate {certificate} with the key {key} cannot be used: {reason}.")


class LogSecretUnreadable(TavolaError):
    """The secret that a log's hashes are made with is not there, or not ours to read."""

    def __init__(self, place: Path) -> None:
        self.place = place
        super().__init__(
            f"The log's secret {place} cannot be read; ask whoever runs the server for it, or give the hash of the key."
        )


class LogKeyMalformed(TavolaError):
    """What was to be looked for in a log is no key."""

    def __init__(self, item: str) -> None:
        self.item = item
        super().__init__(
            f'{item} is no key; write it as DynamoDB JSON, hash attribute first: {{"pk": {{"S": "o#1"}}, "sk": {{"S": "2026"}}}}.'
        )


class AccessLogUnusable(TavolaError):
    """The access log cannot be opened."""

    remedy = "Name a file in a folder that may be written with --access-log."

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The access log {path} cannot be written: {reason}; name another file.")
