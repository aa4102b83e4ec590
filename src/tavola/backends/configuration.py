"""Configuration: address, credentials and certificates of an endpoint.

`aws` reads what botocore finds configured. Without botocore, `LocalConfiguration` works for servers on this machine.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, quote, urlsplit

from tavola.backends.credentials import Credentials
from tavola.backends.errors import EndpointUnreachable, EndpointUntrusted
from tavola.backends.http_parser import Transport
from tavola.backends.signatures import SigningKey
from tavola.host_names import is_loopback
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.operations import Service

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
"""Timeout from the end of the request to the last byte of the response."""

DUMMY_SECRET = "tavola"
_PORTS = {"http": 80, "https": 443}
_PATH_SIGNS = "/%~!$&'()*+,;=:@"  # allowed in a path without encoding; % starts an encoded character


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URL of an endpoint."""

    url: str
    host: str
    port: int
    secure: bool
    header: str  # the Host header
    path: str = "/"


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """The address of a service, and how to connect to it."""

    address: Address
    tls: ssl.SSLContext | None = None  # None: plain HTTP
    forward: Callable[[float], Transport] | None = (
        None  # makes a transport for a timeout; None: connect directly
    )


class Configuration(Protocol):
    """The configuration of an endpoint; threads share it."""

    @property
    def region(self) -> str:
        """The region of the endpoint."""
        ...

    @property
    def endpoint(self) -> str | None:
        """The URL of the endpoint; None: AWS."""
        ...

    @property
    def account(self) -> str | None:
        """The account; None: that of the key."""
        ...

    def resolve(self, service: Service) -> ServiceEndpoint:
        """Return the endpoint of a service; may read files."""
        ...

    def key(self) -> SigningKey:
        """Return the current signing key; may read files and use the network."""
        ...

    def cached_key(self) -> SigningKey | None:
        """Return the current signing key if that does not block."""
        ...


class LocalConfiguration:
    """For a server on this machine, which does not check signatures. Needs no botocore and reads no files."""

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
        self._address = parse_address(endpoint)
        self._key = (
            SigningKey(account or DEFAULT_SCOPE.account, DUMMY_SECRET)
            if credentials is None
            else key_of(credentials)
        )

    def resolve(self, service: Service) -> ServiceEndpoint:
        """Return the endpoint, with the machine's own certificates."""
        return ServiceEndpoint(
            self._address, client_tls_context(self._address, None) if self._address.secure else None
        )

    def key(self) -> SigningKey:
        """Return the configured key, or a dummy."""
        return self._key

    def cached_key(self) -> SigningKey | None:
        """Return the configured key, or a dummy."""
        return self._key


def key_of(credentials: Credentials) -> SigningKey:
    """Return the signing key of credentials."""
    return SigningKey(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)


def is_local(endpoint: str) -> bool:
    """Return whether a URL has a loopback address."""
    return is_loopback(urlsplit(endpoint).hostname or "")


def parse_address(url: str) -> Address:
    """Parse a URL; the Host header omits the default port, as botocore's does."""
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise EndpointUnreachable(url, "it is not a URL such as http://localhost:8000", sent=False) from error
    try:
        host_header = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise EndpointUnreachable(url, f"{host!r} is not a valid host name", sent=False) from error
    header = host_header if port == _PORTS[parts.scheme] else f"{host_header}:{port}"
    return Address(url, host, port, parts.scheme == "https", header, _path_of(parts))


def _path_of(parts: SplitResult) -> str:
    """Return the path as it is sent and signed; refuse URLs whose parts would be dropped or signed differently."""
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if "@" in parts.netloc:
        why = "it contains a user name; configure AWS credentials, or pass them to connect()"
    elif parts.query or parts.fragment:
        why = "it has a query or a fragment, which would not be sent; remove it"
    elif any(step in ("", ".", "..") for step in parts.path.split("/")[1:]):
        why = "its path contains //, . or .., which servers normalise, so the signature would be wrong; remove them"
    else:
        return f"{quote(parts.path, safe=_PATH_SIGNS)}/"
    raise EndpointUnreachable(shown, why, sent=False)


def client_tls_context(address: Address, ca_bundle: str | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in a PEM file, or the machine's own without one."""
    try:
        context = ssl.create_default_context(cafile=ca_bundle)
    except (OSError, ValueError) as error:
        raise EndpointUntrusted(address.url, f"{ca_bundle} cannot be read: {error}") from error
    # Newer Python versions reject certificates that many internal authorities issue; botocore accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
