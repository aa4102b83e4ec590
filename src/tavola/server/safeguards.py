"""Safeguards: a server's limits on clients, TLS, caller verification, access log and host names."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from tavola.limits import REQUEST_BYTES_MAX
from tavola.server.access_log import AccessLog
from tavola.server.callers import CallerVerifier
from tavola.server.errors import CertificateUnusable
from tavola.server.memory import DEFAULT_BYTES_MAX

_REASONS = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "CA_MD_TOO_WEAK": "the certificate is signed in a way that is no longer safe",
    "EE_KEY_TOO_SMALL": "the certificate's key is too short to be safe",
}


class ServerLimits(Struct, frozen=True):
    """Limits per client and server, in bytes and seconds; the defaults suit a laptop and a build machine.

    DynamoDB's own limits are in `tavola.limits`; these keep a slow, greedy or broken client from taking what the others
    need. Every deadline is absolute: sending a byte now and then does not extend it.
    """

    connections_max: int = 1024
    head_bytes_max: int = 16 * 1024  # request line and headers (AWS: 400 above it)
    body_bytes_max: int = REQUEST_BYTES_MAX
    buffer_bytes_max: int = (
        DEFAULT_BYTES_MAX  # of requests and responses, all connections together; see `memory`
    )
    head_s: float = 10.0  # from the first byte of a request to the end of its headers
    body_s: float = 30.0  # from the end of the headers to the end of the body
    idle_s: float = 300.0  # between two requests, or before the first one
    response_s: float = 60.0  # for a client to read a response
    linger_s: float = 2.0  # for a refused client to read the reason before the connection is closed
    stop_s: float = 3.0  # for requests in progress when the server stops
    turn_requests_max: int = 32  # of one connection, before the others are served
    turn_response_bytes_max: int = 1024 * 1024  # likewise; the response that exceeds it ends the turn
    turn_s: float = 0.001  # likewise; also of the expensive requests of all connections in a turn of the loop
    heavy_s: float = 0.0003  # a request that takes longer is expensive, see `turns`
    pending_max: int = 8  # long calls that are computed at a time; each holds its page or items in memory
    idle_evictable_s: float = 1.0  # a connection that is idle for longer may be closed for a new one
    pressed_s: float = (
        2.0  # for a request to arrive or a response to be read while others need the place or memory
    )

    @property
    def sweep_interval_s(self) -> float:
        """The interval at which deadlines are checked: a quarter of the shortest one, at most a second."""
        shortest = min(self.head_s, self.body_s, self.idle_s, self.response_s, self.linger_s)
        return min(1.0, max(0.01, shortest / 4))


class Safeguards(Struct, frozen=True):
    """The safeguards of a server; by default no TLS, no verification of callers and no access log."""

    tls: ssl.SSLContext | None = None
    callers: CallerVerifier | None = None  # None: callers are not verified
    log: AccessLog | None = None  # closed by its opener, after the server
    hosts: tuple[str, ...] = ()  # further host names of this server
    origins: tuple[str, ...] = ()  # sites whose pages may use this server


NO_SAFEGUARDS = Safeguards()


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with this certificate, for TLS 1.2 and later.

    `certificate` contains the server's certificate and then the chain to its root, all as PEM.
    """
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror})"
            raise CertificateUnusable(certificate, key, reason) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password, OpenSSL would prompt for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        known = _REASONS.get(error.reason or "")
        raise CertificateUnusable(
            certificate, key, known or _describe_unusable_files(certificate, key)
        ) from error
    except (OSError, ValueError) as error:
        raise CertificateUnusable(certificate, key, str(error)) from error
    return context


def _describe_unusable_files(certificate: Path, key: Path) -> str:
    """Return what is wrong with the files where OpenSSL does not say which one is unusable."""
    if b"ENCRYPTED" in key.read_bytes():
        return "the key is protected with a passphrase; use one without"
    which = "key" if b"-----BEGIN CERTIFICATE-----" in certificate.read_bytes() else "certificate"
    return f"the {which} file is not a {which} in PEM format"
