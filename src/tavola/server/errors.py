"""Errors of the server: an address that it cannot listen on."""

from __future__ import annotations

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
