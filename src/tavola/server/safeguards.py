"""Safeguards: TLS, verification of callers, the access log and allowed host names of a server."""

from __future__ import annotations

from dataclasses import dataclass
from ssl import SSLContext

from tavola.server.access_log import AccessLog
from tavola.server.callers import Callers


@dataclass(frozen=True, slots=True)
class Safeguards:
    """The safeguards of a server; by default no TLS, no verification of callers and no access log."""

    tls: SSLContext | None = None
    callers: Callers | None = None  # None: callers are not verified
    log: AccessLog | None = None  # closed by its opener, after the server
    hosts: tuple[str, ...] = ()  # further host names of this server


NO_SAFEGUARDS = Safeguards()
