"""Configuration: what is known of an endpoint before it is asked: where it is, who asks, whom to trust.

`aws` takes it from botocore, which reads what AWS users have configured. Without botocore there is a smaller one,
for servers on this machine.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import SplitResult, quote, urlsplit

from tavola.backends.credentials import Credentials
from tavola.backends.errors import EndpointUnreachable, EndpointUntrusted
from tavola.backends.replies import Transport
from tavola.backends.signatures import Key
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.operations import Service

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
"""How long an answer may take, from the end of the request to the answer's last byte."""

DUMMY_SECRET = "tavola"
_PORTS = {"http": 80, "https": 443}
_PATH_SIGNS = "/%~!$&'()*+,;=:@"  # those that a path may hold as they are; % begins what is encoded already


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint's URL, taken apart."""

    url: str
    host: str
    port: int
    secure: bool
    header: str  # as it is said to the endpoint, and signed
    path: str = "/"


@dataclass(frozen=True, slots=True)
class Way:
    """Where a service is asked, and by what."""

    address: Address
    trust: ssl.SSLContext | None = None  # None: in clear
    forward: Callable[[float], Transport] | None = (
        None  # given how long an answer may take; None: straight there
    )


class Configuration(Protocol):
    """What is configured for an endpoint; threads share it."""

    @property
    def region(self) -> str:
        """The region that is asked."""
        ...

    @property
    def endpoint(self) -> str | None:
        """The URL of an endpoint that was given; None: it is AWS."""
        ...

    @property
    def account(self) -> str | None:
        """The account that was given; None: that of the key."""
        ...

    def way(self, service: Service) -> Way:
        """Return the way to a service; may read files."""
        ...

    def key(self) -> Key:
        """Return the key that signs now; may read files and go over the network."""
        ...

    def key_at_hand(self) -> Key | None:
        """Return the key that signs now if that needs no waiting."""
        ...


class LocalConfiguration:
    """For a server on this machine, which wants a signature and does not look at it. Needs no botocore, reads nothing."""

    def __init__(
        self,
        endpoint: str,
        *,
        region: str | None = None,
        account: str | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.endpoint: str | None = endpoint
        self.region = region or DEFAULT_SCOPE.region
        self.account = account
        self._address = address_of(endpoint)
        self._key = (
            Key(account or DEFAULT_SCOPE.account, DUMMY_SECRET)
            if credentials is None
            else key_of(credentials)
        )

    def way(self, service: Service) -> Way:
        """Return the way to the endpoint, with the machine's own certificates."""
        return Way(self._address, trust_of(self._address, None) if self._address.secure else None)

    def key(self) -> Key:
        """Return the key that was given, or a dummy."""
        return self._key

    def key_at_hand(self) -> Key | None:
        """Return the key that was given, or a dummy."""
        return self._key


def key_of(credentials: Credentials) -> Key:
    """Return the key that credentials sign with."""
    return Key(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)


def is_local(endpoint: str) -> bool:
    """Tell whether a URL names this machine by its loopback."""
    host = urlsplit(endpoint).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(url: str) -> Address:
    """Return a URL taken apart; the header is as botocore writes it, without the port that the scheme implies."""
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise EndpointUnreachable(url, "it is no URL such as http://localhost:8000", sent=False) from error
    try:
        said = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise EndpointUnreachable(url, f"{host!r} is no name of a machine", sent=False) from error
    header = said if port == _PORTS[parts.scheme] else f"{said}:{port}"
    return Address(url, host, port, parts.scheme == "https", header, _path_of(parts))


def _path_of(parts: SplitResult) -> str:
    """Return the path as it is sent and signed; refuse what would be signed otherwise, or left out without a word."""
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if "@" in parts.netloc:
        why = "it holds a user; credentials are found as AWS's are, or given to connect()"
    elif parts.query or parts.fragment:
        why = "it ends in a query or a fragment, which no request would carry; give the URL without it"
    elif any(step in ("", ".", "..") for step in parts.path.split("/")[1:]):
        why = "its path holds //, . or .., which servers take for another path than was signed; give it without them"
    else:
        return f"{quote(parts.path, safe=_PATH_SIGNS)}/"
    raise EndpointUnreachable(shown, why, sent=False)


def trust_of(address: Address, authorities: str | None) -> ssl.SSLContext:
    """Return what proves an endpoint: the certificates in a PEM file, or without one the machine's own."""
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ValueError) as error:
        raise EndpointUntrusted(address.url, f"{authorities} cannot be read: {error}") from error
    # Newer Pythons are strict about forms that authorities inside companies neglect; botocore is not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
