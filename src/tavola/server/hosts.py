"""Hosts: protection against DNS rebinding, by checking the Host and Origin headers.

A web page can point a name of its own at this machine and then send requests here as if the server were part of its
site. It cannot change two headers: `Host` is the name it used, `Origin` is the page's site. So a request with an
`Origin` must come from this server's own site, under a name known to belong to this server.

Programs send no `Origin`. Their `Host` is checked only if the server listens on loopback and does not verify
signatures: there the only valid names are those of this machine. A server on other addresses is reached by names that it
cannot know, and a server that verifies signatures refuses the page's unsigned requests anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from tavola.protocol.faults import AccessDeniedFault

_KNOWN_MAX = 256


class Hosts:
    """The names of this server, and the check of a request's Host and Origin."""

    __slots__ = ("_any_name", "_names", "known")

    def __init__(self, host: str, allowed: Iterable[str] = (), *, verified: bool = False) -> None:
        """Accept the name listened on and the `allowed` ones; `verified`: every request must be signed."""
        self._names = {name.lower().rstrip(".") for name in (host, *allowed) if name}
        self._any_name = verified or not is_loopback(host)
        self.known: set[bytes | None] = {None, b""}  # accepted values of Host, for requests without Origin

    def refusal(self, fields: Mapping[bytes, bytes]) -> AccessDeniedFault | None:
        """Return why a request is refused; None if it is accepted. Header names in `fields` are lower-case."""
        host = fields.get(b"host")
        origin = fields.get(b"origin")
        if origin is not None:
            if host is None or not self._is_served(host) or not _is_same_host(origin, host):
                return AccessDeniedFault(
                    f"Requests from the web page {_printable(origin)} are refused: this server accepts requests "
                    f"only from programs and from pages of its own site."
                )
        elif host not in self.known and host is not None:
            if not self._any_name and not self._is_served(host):
                name = _printable(name_of(host).encode())
                return AccessDeniedFault(
                    f"This server listens on loopback only and is not known as {name}. If the name is yours, "
                    f"start the server with --allow-host and that name."
                )
            if len(self.known) < _KNOWN_MAX:
                self.known.add(host)
        return None

    def _is_served(self, host: bytes) -> bool:
        name = name_of(host)
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def name_of(host: bytes) -> str:
    """Return the name or address in a Host header, without the port and the brackets of IPv6."""
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_same_host(origin: bytes, host: bytes) -> bool:
    scheme, _, origin_host = origin.strip().lower().partition(b"://")
    return scheme in {b"http", b"https"} and origin_host == host.strip().lower()


def _printable(text: bytes) -> str:
    letters = (letter if letter.isprintable() else "?" for letter in text[:200].decode("latin-1"))
    return f"'{''.join(letters)}'"
