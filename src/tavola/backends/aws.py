"""Aws: what AWS users have configured, found by botocore, for the backends over HTTP.

From botocore come credentials with all their providers and their renewal, region, endpoint, certificates and proxies.
Signing and sending are Tavola's own: botocore's cost five times as much, and its clients would turn every value into
Python's types and back, which the port does not want. Where a proxy is configured, botocore sends, because it knows
all that AWS users may have said of proxies.
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
    Way,
    address_of,
    is_local,
    key_of,
    trust_of,
)
from tavola.backends.credentials import Credentials as Given
from tavola.backends.errors import CredentialsMissing, EndpointUnreachable, EndpointUntrusted, RegionMissing
from tavola.backends.http import HttpBackend
from tavola.backends.replies import Reply
from tavola.backends.signatures import Key
from tavola.clock import monotonic
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.operations import Service

KEY_S_MAX = 1.0
"""For how long a key is used before botocore is asked again; it renews minutes before the end."""

_UNSENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
_CLIENTS = {"dynamodb": "dynamodb", "streams": "dynamodbstreams"}  # botocore's names of the two services


class AwsConfiguration:
    """What botocore finds configured.

    Without `endpoint` it is AWS in `region`, or in the region that botocore finds. With one, requests are signed
    with the credentials that botocore finds, and where it finds none with a dummy key, because local servers want a
    signature and do not look at it. `account` signs with that account as the key: local servers tell accounts apart
    by it. `credentials` sign in place of what botocore would find.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        account: str | None = None,
        profile: str | None = None,
        credentials: Given | None = None,
    ) -> None:
        self._session = Session(profile=profile)
        self.endpoint = None if endpoint is None else endpoint.rstrip("/")
        self.account = account
        self._lock = Lock()
        self._ways: dict[Service, Way] = {}
        self._credentials: Any = None if credentials is None else Credentials(*key_of(credentials))
        self._key: tuple[Key, float] | None = None  # and until when it is taken for granted
        try:
            configured = region or self._session.get_config_variable("region")
        except BotoCoreError as error:  # the profile is not there
            raise CredentialsMissing(str(error)) from error
        if configured is None and endpoint is None:
            raise RegionMissing()
        self.region: str = configured or DEFAULT_SCOPE.region

    def way(self, service: Service) -> Way:
        """Return the way that botocore's own client would take, with its certificates and proxies."""
        with self._lock:
            if service not in self._ways:
                self._ways[service] = self._found_way(service)
            return self._ways[service]

    def key(self) -> Key:
        """Return the key of the credentials, renewed where they must be."""
        known = self._key
        if known is not None and monotonic() < known[1]:
            return known[0]
        try:
            found = self._found().get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise CredentialsMissing(str(error)) from error
        key = Key(found.access_key, found.secret_key, found.token or None)
        lasts = type(self._credentials) is Credentials
        self._key = (key, float("inf") if lasts else monotonic() + KEY_S_MAX)
        return key

    def key_at_hand(self) -> Key | None:
        """Return the key, unless it must be looked for or renewed."""
        known = self._key
        if known is None:
            return None
        if monotonic() < known[1]:
            return known[0]
        return None if self._credentials.refresh_needed() else self.key()

    def _found_way(self, service: Service) -> Way:
        address = address_of(self.endpoint or self._resolved(service))
        authorities = self._session.get_config_variable("ca_bundle") or True
        if get_environ_proxies(address.url).get("https" if address.secure else "http"):
            return Way(address, forward=lambda timeout_s: _Forwarding(address, authorities, timeout_s))
        return Way(address, trust_of(address, get_cert_path(authorities)) if address.secure else None)

    def _resolved(self, service: Service) -> str:
        """Return the endpoint that botocore's own client would ask, with all that may be configured for it."""
        try:
            client = self._session.create_client(_CLIENTS[service], region_name=self.region)
        except NoRegionError as error:
            raise RegionMissing() from error
        except BotoCoreError as error:
            raise CredentialsMissing(str(error)) from error
        except ValueError as error:  # what is configured is no URL
            raise EndpointUnreachable("The endpoint that is configured", str(error), sent=False) from error
        endpoint: str = client.meta.endpoint_url
        client.close()
        return endpoint

    def _found(self) -> Any:
        with self._lock:
            if self._credentials is None:
                self._credentials = self._look_for_credentials()
            return self._credentials

    def _look_for_credentials(self) -> Any:
        if self.account is not None:
            return Credentials(self.account, DUMMY_SECRET)
        if self.endpoint is not None and is_local(self.endpoint):
            # No machine role is meant for a server on this machine, and asking for one takes seconds.
            self._session.get_component("credential_provider").remove("iam-role")
        found = self._session.get_credentials()
        if found is None:
            if self.endpoint is None:
                raise CredentialsMissing("botocore found none")
            return Credentials(DEFAULT_SCOPE.account, DUMMY_SECRET)
        return found


class AwsBackend(HttpBackend):
    """Answers from AWS, or any endpoint, as botocore finds it configured."""

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
        found = AwsConfiguration(region=region, endpoint=endpoint, account=account, profile=profile)
        super().__init__(found, timeout_s=timeout_s, as_of_us=as_of_us)


class _Forwarding:
    """Brings requests to an endpoint by botocore's own HTTP, through what proxies are configured."""

    def __init__(self, address: Address, authorities: Any, timeout_s: float) -> None:
        self._url = address.url
        self._session = URLLib3Session(
            verify=authorities,
            proxies=get_environ_proxies(address.url),
            timeout=(CONNECT_TIMEOUT_S, timeout_s),
            # Head and body go out in two writes; without this the second waits 40 ms for an answer.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )

    def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request; it is sent once."""
        head, _, body = message.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode("ascii").split("\r\n")[1:])
        headers = {name: value for name, _, value in lines if name != "Content-Length"}
        asked = AWSRequest("POST", f"{self._url}/", headers, body)
        try:
            answer = self._session.send(asked.prepare())
        except SSLError as error:
            told = str(error.kwargs.get("error", error))
            if "certificate" in told.lower():
                raise EndpointUntrusted(self._url, told) from error
            raise EndpointUnreachable(self._url, f"{told}; does it speak plain http://?") from error
        except ConnectionClosedError as error:
            hint = "; does it speak https://?" if self._url.startswith("http:") else ""
            raise EndpointUnreachable(self._url, f"{error}{hint}") from error
        except BotoCoreError as error:
            raise EndpointUnreachable(self._url, str(error), sent=not isinstance(error, _UNSENT)) from error
        return Reply(answer.status_code, answer.content, answer.headers.get("x-amz-crc32"))

    def close(self) -> None:
        """Let go of the connections."""
        self._session.close()
