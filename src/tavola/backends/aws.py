"""AWS configuration: what botocore finds configured, for the HTTP backends.

botocore provides credentials with all their providers and refreshes, region, endpoint, certificates and proxies. Signing and
sending are Tavola's own: botocore's take five times as long, and its clients convert every value to Python types and back. If
a proxy is configured, botocore sends the requests, because it supports all proxy settings of AWS users.
"""

from __future__ import annotations

import socket
from threading import Lock
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoRegionError,
    ProxyConnectionError,
    SSLError,
)
from botocore.httpsession import URLLib3Session, get_cert_path
from botocore.session import Session
from botocore.utils import get_environ_proxies

from tavola.backends.configuration import (
    CONNECT_TIMEOUT_S,
    DUMMY_SECRET,
    READ_TIMEOUT_S,
    Address,
    ServiceEndpoint,
    client_tls_context,
    is_local,
    key_of,
    parse_address,
)
from tavola.backends.credentials import Credentials as ExplicitCredentials
from tavola.backends.errors import CredentialsMissing, EndpointUnreachable, EndpointUntrusted, RegionMissing
from tavola.backends.http import HttpBackend
from tavola.backends.http_parser import HttpReply
from tavola.backends.signatures import SigningKey
from tavola.clock import monotonic
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.operations import Service

KEY_S_MAX = 1.0
"""How long a key is cached; botocore refreshes credentials minutes before they expire."""

_UNSENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
_CLIENTS = {"dynamodb": "dynamodb", "streams": "dynamodbstreams"}  # botocore's names of the two services


class AwsConfiguration:
    """What botocore finds configured.

    Without `endpoint` it is AWS in `region`, or in the region that botocore finds. With one, requests are signed with the
    credentials that botocore finds, or with a dummy key if it finds none, because local servers require a signature but do not
    check it. `account` is used as the access key, by which local servers separate accounts. `credentials` replace those that
    botocore would find.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        account: str | None = None,
        profile: str | None = None,
        credentials: ExplicitCredentials | None = None,
    ) -> None:
        self._session = Session(profile=profile)
        self.endpoint = None if endpoint is None else endpoint.rstrip("/")
        self.account = account
        self._lock = Lock()
        self._endpoints: dict[Service, ServiceEndpoint] = {}
        self._credentials: Any = None if credentials is None else Credentials(*key_of(credentials))
        self._key: tuple[SigningKey, float] | None = None  # and until when it is cached
        try:
            configured = region or self._session.get_config_variable("region")
        except BotoCoreError as error:  # the profile does not exist
            raise CredentialsMissing(str(error)) from error
        if configured is None and endpoint is None:
            raise RegionMissing()
        self.region: str = configured or DEFAULT_SCOPE.region

    def resolve(self, service: Service) -> ServiceEndpoint:
        """Return the endpoint that botocore's own client would use, with its certificates and proxies."""
        with self._lock:
            if service not in self._endpoints:
                self._endpoints[service] = self._resolve(service)
            return self._endpoints[service]

    def key(self) -> SigningKey:
        """Return the signing key, refreshed if necessary."""
        known = self._key
        if known is not None and monotonic() < known[1]:
            return known[0]
        try:
            credentials = self._load_credentials().get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise CredentialsMissing(str(error)) from error
        key = SigningKey(credentials.access_key, credentials.secret_key, credentials.token or None)
        lasts = type(self._credentials) is Credentials
        self._key = (key, float("inf") if lasts else monotonic() + KEY_S_MAX)
        return key

    def cached_key(self) -> SigningKey | None:
        """Return the signing key, unless it must be loaded or refreshed."""
        known = self._key
        if known is None:
            return None
        if monotonic() < known[1]:
            return known[0]
        return None if self._credentials.refresh_needed() else self.key()

    def _resolve(self, service: Service) -> ServiceEndpoint:
        address = parse_address(self.endpoint or self._resolve_url(service))
        ca_bundle = self._session.get_config_variable("ca_bundle") or True
        if get_environ_proxies(address.url).get("https" if address.secure else "http"):
            return ServiceEndpoint(
                address, forward=lambda timeout_s: _ProxyTransport(address, ca_bundle, timeout_s)
            )
        return ServiceEndpoint(
            address, client_tls_context(address, get_cert_path(ca_bundle)) if address.secure else None
        )

    def _resolve_url(self, service: Service) -> str:
        """Return the URL that botocore's own client would use."""
        try:
            client = self._session.create_client(_CLIENTS[service], region_name=self.region)
        except NoRegionError as error:
            raise RegionMissing() from error
        except BotoCoreError as error:
            raise CredentialsMissing(str(error)) from error
        except ValueError as error:  # the configured value is not a URL
            raise EndpointUnreachable("The configured endpoint", str(error), sent=False) from error
        endpoint: str = client.meta.endpoint_url
        client.close()
        return endpoint

    def _load_credentials(self) -> Any:
        with self._lock:
            if self._credentials is None:
                self._credentials = self._find_credentials()
            return self._credentials

    def _find_credentials(self) -> Any:
        if self.account is not None:
            return Credentials(self.account, DUMMY_SECRET)
        if self.endpoint is not None and is_local(self.endpoint):
            # A local server does not need the role of the machine, and looking for one takes seconds.
            self._session.get_component("credential_provider").remove("iam-role")
        credentials = self._session.get_credentials()
        if credentials is None:
            if self.endpoint is None:
                raise CredentialsMissing("botocore found none")
            return Credentials(DEFAULT_SCOPE.account, DUMMY_SECRET)
        return credentials


class AwsBackend(HttpBackend):
    """Calls AWS, or any endpoint, as botocore finds it configured."""

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        account: str | None = None,
        profile: str | None = None,
        timeout_s: float = READ_TIMEOUT_S,
        as_of_us: int | None = None,
    ) -> None:
        configuration = AwsConfiguration(region=region, endpoint=endpoint, account=account, profile=profile)
        super().__init__(configuration, timeout_s=timeout_s, as_of_us=as_of_us)


class _ProxyTransport:
    """Sends requests with botocore's HTTP session, through the configured proxies."""

    def __init__(self, address: Address, ca_bundle: Any, timeout_s: float) -> None:
        self._url = address.url
        self._session = URLLib3Session(
            verify=ca_bundle,
            proxies=get_environ_proxies(address.url),
            timeout=(CONNECT_TIMEOUT_S, timeout_s),
            # Head and body are sent in two writes; without this the second waits 40 ms for an acknowledgement.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )

    def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a request once and return the reply."""
        head, _, body = message.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode("ascii").split("\r\n")[1:])
        headers = {name: value for name, _, value in lines if name != "Content-Length"}
        request = AWSRequest("POST", f"{self._url}/", headers, body)
        try:
            reply = self._session.send(request.prepare())
        except SSLError as error:
            reason = str(error.kwargs.get("error", error))
            if "certificate" in reason.lower():
                raise EndpointUntrusted(self._url, reason) from error
            raise EndpointUnreachable(self._url, f"{reason}; try http://") from error
        except ConnectionClosedError as error:
            hint = "; try https://" if self._url.startswith("http:") else ""
            raise EndpointUnreachable(self._url, f"{error}{hint}") from error
        except BotoCoreError as error:
            raise EndpointUnreachable(self._url, str(error), sent=not isinstance(error, _UNSENT)) from error
        return HttpReply(reply.status_code, reply.content, reply.headers.get("x-amz-crc32"))

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
