"""Host names: parses the Host and Origin headers of HTTP, strictly.

A server that only this machine can reach relies on `Host` and `Origin` to keep web pages out (DNS rebinding), so a
lenient parser is a hole: if `[::1]evil.com` were read as `::1`, a page of evil.com would pass. Here a value is either
exactly what RFC 9110 (7.2) and RFC 6454 (7.1) define, or it is refused. The endpoint (`tavola.server`) and the web
applications (`tavola.web`) both use this module, so that they agree on every value.

Narrower than the RFCs: a name consists of letters, digits, `-`, `_` and dots. Percent-encoding and the other characters
that a URI allows in a host have no use in DNS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

_NAME_CHARACTERS_MAX = 253
_PORT_MAX = 65_535
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
_HOST = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?P<colon>:(?P<port>[0-9]{0,5}))?", re.ASCII
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A host and a port, as a Host header or a URL states them."""

    name: str
    """A name in lower case without the final dot, or an IP address without brackets."""
    port: int | None

    @property
    def is_of_this_machine(self) -> bool:
        """Whether no DNS server can make the name mean another machine: an IP address, or localhost."""
        return is_localhost(self.name) or _is_ip_address(self.name)


@dataclass(frozen=True, slots=True)
class WebOrigin:
    """The site that a web page belongs to."""

    scheme: str
    host: HostAddress

    def is_served_at(self, host: HostAddress) -> bool:
        """Return whether the page was loaded from this address; a missing port is the default of its scheme."""
        default = _DEFAULT_PORTS[self.scheme]
        own = default if self.host.port is None else self.host.port
        return self.host.name == host.name and own == (default if host.port is None else host.port)

    def __str__(self) -> str:
        name = f"[{self.host.name}]" if ":" in self.host.name else self.host.name
        port = "" if self.host.port in (None, _DEFAULT_PORTS[self.scheme]) else f":{self.host.port}"
        return f"{self.scheme}://{name}{port}"


def parse_host(text: str) -> HostAddress | None:
    """Return the address in a Host header, or None if it is empty or not exactly a host with an optional port."""
    parts = _HOST.fullmatch(text.strip(" \t").lower())
    if parts is None:
        return None
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and port > _PORT_MAX:
        return None
    if parts["ipv6"] is not None:
        try:
            return HostAddress(str(IPv6Address(parts["ipv6"])), port)
        except ValueError:
            return None
    name = parts["name"]
    if len(name.rstrip(".")) > _NAME_CHARACTERS_MAX or _LABELS.fullmatch(name) is None:
        return None
    return HostAddress(name.removesuffix("."), port)


def parse_origin(text: str) -> WebOrigin | None:
    """Return the site in an Origin header, or None for `null` and all but http and https."""
    scheme, separator, address = text.strip(" \t").lower().partition("://")
    if not separator or scheme not in _DEFAULT_PORTS or address.endswith(":"):
        return None
    host = parse_host(address)
    return None if host is None else WebOrigin(scheme, host)


def is_localhost(name: str) -> bool:
    """Return whether a name is reserved for this machine."""
    return name == "localhost" or name.endswith(".localhost")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if is_localhost(host):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
