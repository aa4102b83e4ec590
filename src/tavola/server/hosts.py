"""Hosts: by which names a request may call the server, and whose pages may.

A page in a browser can point a name of its own at this machine and then send requests as if it were at home
here (DNS rebinding). It cannot change two headers: `Host` tells the name that it used, `Origin` the page. So a
request with an `Origin` must come from the server's own pages, under a name that is surely this server's.
Programs send no `Origin`. They are held to the names too where the server listens on this machine alone and
verifies nobody, for there the page is the danger and the name can only be this machine's; a server on other
addresses is reached by names that it cannot know, and one that verifies signatures has nothing to fear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from tavola.protocol.faults import AccessDeniedFault

_KNOWN_MAX = 256


class Hosts:
    """The names that are this server's, and the verdict on a request's two headers."""

    __slots__ = ("_any_name", "_names", "known")

    def __init__(self, host: str, allowed: Iterable[str] = (), *, verified: bool = False) -> None:
        """Know the name listened on and those allowed beside it; `verified`: every request is signed."""
        self._names = {name.lower().rstrip(".") for name in (host, *allowed) if name}
        self._any_name = verified or not is_loopback(host)
        self.known: set[bytes | None] = {
            None,
            b"",
        }  # values of Host that need no second look without an Origin

    def refusal(self, fields: Mapping[bytes, bytes]) -> AccessDeniedFault | None:
        """Return why a request is not heard; None if it is. Header names in `fields` are lower-case."""
        told = fields.get(b"host")
        origin = fields.get(b"origin")
        if origin is not None:
            if told is None or not self._is_served(told) or not _is_same_host(origin, told):
                return AccessDeniedFault(
                    f"Requests from the web page {_printable(origin)} are refused: this server takes them from "
                    f"programs, and from pages of its own names alone."
                )
        elif told not in self.known and told is not None:
            if not self._any_name and not self._is_served(told):
                name = _printable(name_of(told).encode())
                return AccessDeniedFault(
                    f"This server listens on this machine alone and does not answer to the name {name}. If the "
                    f"name is yours, start the server with --allow-host and that name."
                )
            if len(self.known) < _KNOWN_MAX:
                self.known.add(told)
        return None

    def _is_served(self, told: bytes) -> bool:
        name = name_of(told)
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def name_of(told: bytes) -> str:
    """Return the name or address in a Host header, without the port and the brackets of IPv6."""
    text = told.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_same_host(origin: bytes, told: bytes) -> bool:
    scheme, _, place = origin.strip().lower().partition(b"://")
    return scheme in {b"http", b"https"} and place == told.strip().lower()


def _printable(text: bytes) -> str:
    return (
        "'"
        + "".join(letter if letter.isprintable() else "?" for letter in text[:200].decode("latin-1"))
        + "'"
    )
