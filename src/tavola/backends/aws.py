"""AwsBackend: AWS, or any endpoint that speaks as it does, with botocore for what AWS users have configured.

From botocore come credentials, region, endpoint, proxies, certificates and the signature; the body goes out
and comes back as the JSON it is. botocore's own clients would turn every value into Python's types and
back, which the port does not want. Nothing is tried again here: that is for who knows what a repeat means.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import msgspec
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ConnectionClosedError, NoRegionError, SSLError
from botocore.httpsession import URLLib3Session
from botocore.session import Session
from botocore.utils import get_environ_proxies

from tavola.backends.answers import read_answer
from tavola.backends.errors import (
    CredentialsMissing,
    EndpointUnreachable,
    EndpointUntrusted,
    PastUnavailable,
    RegionMissing,
)
from tavola.backends.mocking import current_stage
from tavola.client import encode_request
from tavola.protocol import (
    AS_OF_HEADER,
    DEFAULT_SCOPE,
    OPERATIONS,
    Fault,
    Operation,
    Scope,
    UnknownOperationFault,
    instant_text,
)

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0

_CLIENTS = {"dynamodb": "dynamodb", "streams": "dynamodbstreams"}  # botocore's names of the two services
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DUMMY_SECRET = "tavola"

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class AwsBackend:
    """Answers from an endpoint over HTTP.

    Without `endpoint` it is AWS in `region`, or in the region that botocore finds configured. With one, the
    request is signed with the credentials that botocore finds, and where it finds none with a dummy key,
    because local servers want a signature and do not look at it. `account` signs with that account as
    the key: local servers tell accounts apart by it.
    """

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
        """Ask in a region, or an endpoint; with `as_of_us` a server of Tavola's for its tables as they were then."""
        self._session = Session(profile=profile)
        self._endpoint = None if endpoint is None else endpoint.rstrip("/")
        self._account = account
        self._timeout_s = timeout_s
        self._as_of_us = as_of_us
        self._profile = profile
        self._lock = Lock()
        self._ways: dict[str, tuple[str, URLLib3Session]] = {}
        self._credentials: Any = None
        try:
            configured = region or self._session.get_config_variable("region")
        except BotoCoreError as error:  # the profile is not there
            raise CredentialsMissing(str(error)) from error
        if configured is None and endpoint is None:
            raise RegionMissing()
        self.region: str = configured or DEFAULT_SCOPE.region

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response; raise its fault, or an error if no answer could be had."""
        known = OPERATIONS.get(operation)
        if known is None:
            raise UnknownOperationFault()
        if known.service == "tavola" and self._endpoint is None:
            raise PastUnavailable("AWS")
        body = encode_request(operation, request)
        stage = current_stage()
        if stage is not None:  # inside `mock()` nothing leaves the process
            if self._as_of_us is not None:
                raise PastUnavailable("What boto3 is mocked with")
            scope = Scope(self._account or stage.scope.account, self.region)
            return _decode(stage.execute(operation, body, scope))
        endpoint, transport = self._way(known)
        asked = self._signed(known, endpoint, body)
        try:
            answer = transport.send(asked.prepare())
        except SSLError as error:
            told = str(error.kwargs.get("error", error))
            if "certificate" in told.lower():
                raise EndpointUntrusted(endpoint, told) from error
            raise EndpointUnreachable(endpoint, f"{told}; does it speak plain http://?") from error
        except ConnectionClosedError as error:
            hint = "; does it speak https://?" if endpoint.startswith("http:") else ""
            raise EndpointUnreachable(endpoint, f"{error}{hint}") from error
        except BotoCoreError as error:
            raise EndpointUnreachable(endpoint, str(error)) from error
        return read_answer(endpoint, answer.status_code, answer.content, answer.headers.get("x-amz-crc32"))

    def as_of(self, at_us: int) -> AwsBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone.

        Only a server of Tavola's can be asked so. Another would answer with what is there now, so it is found
        out first: no other knows the operation that tells an item's versions.
        """
        if self._endpoint is None:
            raise PastUnavailable("AWS")
        try:
            self.call("ListItemVersions", {})
        except UnknownOperationFault as error:
            raise PastUnavailable(self._endpoint) from error
        except Fault:
            pass  # it knows the operation, and misses its members
        return AwsBackend(
            region=self.region,
            endpoint=self._endpoint,
            account=self._account,
            profile=self._profile,
            timeout_s=self._timeout_s,
            as_of_us=at_us,
        )

    def close(self) -> None:
        """Let go of the connections."""
        with self._lock:
            for _, transport in self._ways.values():
                transport.close()
            self._ways.clear()

    def _way(self, operation: Operation) -> tuple[str, URLLib3Session]:
        """Return where an operation is asked, and by what; found once for each of the two services."""
        with self._lock:
            way = self._ways.get(operation.service)
            if way is None:
                endpoint = self._endpoint or self._resolved(operation)
                transport = URLLib3Session(
                    verify=self._session.get_config_variable("ca_bundle") or True,
                    proxies=get_environ_proxies(endpoint),
                    timeout=(CONNECT_TIMEOUT_S, self._timeout_s),
                    # Head and body go out in two writes; without this the second waits 40 ms for an answer.
                    socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
                )
                way = self._ways[operation.service] = (endpoint, transport)
            return way

    def _resolved(self, operation: Operation) -> str:
        """Return the endpoint that botocore's own client would ask, with all that may be configured for it."""
        try:
            client = self._session.create_client(_CLIENTS[operation.service], region_name=self.region)
        except NoRegionError as error:
            raise RegionMissing() from error
        except BotoCoreError as error:
            raise CredentialsMissing(str(error)) from error
        endpoint: str = client.meta.endpoint_url
        client.close()
        return endpoint.rstrip("/")

    def _signed(self, operation: Operation, endpoint: str, body: bytes) -> AWSRequest:
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": operation.target}
        if self._as_of_us is not None:
            headers[AS_OF_HEADER] = instant_text(self._as_of_us)
        request = AWSRequest("POST", f"{endpoint}/", {**headers, "User-Agent": "tavola"}, body)
        try:
            frozen = self._found_credentials().get_frozen_credentials()
        except BotoCoreError as error:
            raise CredentialsMissing(str(error)) from error
        SigV4Auth(frozen, "dynamodb", self.region).add_auth(request)
        return request

    def _found_credentials(self) -> Any:
        with self._lock:
            if self._credentials is None:
                self._credentials = self._look_for_credentials()
            return self._credentials

    def _look_for_credentials(self) -> Any:
        if self._account is not None:
            return Credentials(self._account, _DUMMY_SECRET)
        if self._endpoint is not None and urlsplit(self._endpoint).hostname in _LOOPBACK:
            # No machine role is meant for a server on this machine, and asking for one takes seconds.
            self._session.get_component("credential_provider").remove("iam-role")
        found = self._session.get_credentials()
        if found is None:
            if self._endpoint is None:
                raise CredentialsMissing("botocore found none")
            return Credentials(DEFAULT_SCOPE.account, _DUMMY_SECRET)
        return found
