"""Hosts: protection against DNS rebinding, by checking the Host and Origin headers.

A web page can point a name of its own at this machine and then send requests here as if the server were part of its
site. It cannot change two headers: `Host` is the name it used, `Origin` is the page's site. So a request with an
`Origin` must come from this server's own site, under a name known to belong to this server, or from a site that the
server is configured to admit (`--cors`).

Programs send no `Origin`. Their `Host` is checked only if the server listens on loopback and does not verify
signatures: there the only valid names are those of this machine. A server on other addresses is reached by names that it
cannot know, and a server that verifies signatures refuses the page's unsigned requests anyway.

A `Host` that is not exactly a host and an optional port is refused everywhere (`tavola.host_names`). That it is sent once,
and that HTTP/1.1 sends it at all, is checked when the head is parsed (`tavola.server.heads`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tavola.host_names import HostAddress, WebOrigin, is_loopback, parse_host, parse_origin
from tavola.protocol.faults import AccessDeniedFault, Fault, ValidationFault
from tavola.server.heads import quote_header_value

ANY_ORIGIN = "*"

_KNOWN_MAX = 256


class Hosts:
    """The names of this server, the sites whose pages it admits, and the check of a request's Host and Origin."""

    __slots__ = ("_any_name", "_any_origin", "_names", "_origins", "known")

    def __init__(
        self,
        host: str,
        allowed: Iterable[str] = (),
        *,
        verified: bool = False,
        origins: Iterable[str] = (),
    ) -> None:
        """Accept the name listened on and the `allowed` ones, and pages of the sites in `origins`.

        `verified`: every request must be signed. Only then may `origins` contain `*`: see `check_origins`.
        """
        self._names = {name.lower().rstrip(".") for name in (host, *allowed) if name}
        self._any_name = verified or not is_loopback(host)
        self._any_origin = verified and ANY_ORIGIN in origins
        self._origins = {parsed for origin in origins if (parsed := parse_origin(origin)) is not None}
        self.known: set[bytes | None] = {None}  # accepted values of Host, for requests without Origin

    def refusal(self, fields: Mapping[bytes, bytes]) -> Fault | None:
        """Return why a request is refused; None if it is accepted. Header names in `fields` are lower-case."""
        text = fields.get(b"host")
        host = None if text is None else parse_host(text.decode("latin-1"))
        if text is not None and host is None:
            return ValidationFault(
                f"The Host header {quote_header_value(text)} is not a host with an optional port."
            )
        origin = fields.get(b"origin")
        if origin is not None:
            return self._refuse_page(origin, host)
        if text is not None and host is not None:
            if not self._any_name and not self._is_served(host):
                return _unknown_host(host)
            if len(self.known) < _KNOWN_MAX:
                self.known.add(text)
        return None

    def is_admitted_site(self, text: bytes) -> bool:
        """Return whether pages of another site may read responses, by its Origin header."""
        if self._any_origin:
            return True
        origin = parse_origin(text.decode("latin-1"))
        return origin is not None and origin in self._origins

    def _refuse_page(self, text: bytes, host: HostAddress | None) -> Fault | None:
        """Return why a request of a web page is refused; None if it is this server's own page or of an admitted site."""
        if self.is_admitted_site(text):
            if host is None or self._any_name or self._is_served(host):
                return None
            return _unknown_host(host)
        origin: WebOrigin | None = parse_origin(text.decode("latin-1"))
        if host is not None and origin is not None and self._is_served(host) and origin.is_served_at(host):
            return None
        return AccessDeniedFault(
            f"Requests from the web page {quote_header_value(text)} are refused: this server accepts requests only from "
            "programs and from pages of its own site. If the page is yours, start the server with --cors and its "
            "origin, such as http://localhost:3000."
        )

    def _is_served(self, host: HostAddress) -> bool:
        return host.name in self._names or host.is_of_this_machine


def _unknown_host(host: HostAddress) -> Fault:
    return AccessDeniedFault(
        f"This server listens on loopback only and is not known as '{host.name}'. If the name is yours, "
        "start the server with --allow-host and that name."
    )
