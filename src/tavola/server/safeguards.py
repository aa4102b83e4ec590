"""Safeguards: what stands between a server and whoever connects to it."""

from __future__ import annotations

from dataclasses import dataclass
from ssl import SSLContext

from tavola.server.access_log import AccessLog
from tavola.server.callers import Callers


@dataclass(frozen=True, slots=True)
class Safeguards:
    """As it stands: no encryption on the way, everybody is taken at their word, and nothing is noted."""

    tls: SSLContext | None = None
    callers: Callers | None = None  # None: the doors are open
    log: AccessLog | None = None  # who opens it closes it, after the server
    hosts: tuple[str, ...] = ()  # names of this server, beside the one it listens on


NO_SAFEGUARDS = Safeguards()
