"""The backends that the suite speaks to: an engine in this process, one behind HTTP, and AWS itself."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config

from tavola.engine import Engine
from tavola.mocks import mock
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.server.listener import running

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ACCOUNT = "000000000000"
REGION = "us-east-1"
JSON = "application/x-amz-json-1.0"
LOCAL = ("memory", "file", "http")
NAMES = (*LOCAL, "aws") if os.environ.get("TAVOLA_TEST_AWS") == "1" else LOCAL

# What botocore would refuse must reach the backend, and what fails must fail at once.
_CONFIG = Config(
    parameter_validation=False,
    retries={"total_max_attempts": 1, "mode": "standard"},
    max_pool_connections=64,
    account_id_endpoint_mode="disabled",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a raw body."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """The error's name without its namespace, empty for a success."""
        return str(self.body.get("__type", "")).partition("#")[2]

    @property
    def text(self) -> str | None:
        """The error's sentence, in either spelling of its member."""
        found = self.body.get("message", self.body.get("Message"))
        return None if found is None else str(found)


class Backend(Protocol):
    """One way to reach a DynamoDB."""

    name: str
    buckets: Path | None  # the folder that replaces S3

    def on(self) -> AbstractContextManager[object]:
        """Let boto3 reach this backend while the block runs."""

    def client(self, *, region: str = REGION, account: str = ACCOUNT) -> DynamoDBClient:
        """Return a boto3 client of one account in one region, to be used while the backend is on."""

    def send_raw(self, operation: str, body: bytes) -> Answer:
        """Send a body unchanged, without an SDK's checks and conversions."""


class Embedded:
    """An engine in this process, put under boto3 by `tavola.mock`."""

    def __init__(self, name: str, engine: Engine, buckets: Path | None = None) -> None:
        self.name = name
        self.buckets = buckets
        self._engine = engine

    def on(self) -> AbstractContextManager[object]:
        return mock(engine=self._engine)

    def client(self, *, region: str = REGION, account: str = ACCOUNT) -> DynamoDBClient:
        return new_client(region=region, account=account, endpoint_url="http://embedded.invalid")

    def send_raw(self, operation: str, body: bytes) -> Answer:
        try:
            return Answer(200, json.loads(self._engine.execute(operation, body, Scope(ACCOUNT, REGION))))
        except Fault as fault:
            return Answer(fault.status, json.loads(fault.body()))


class Http:
    """A server on a port of this machine."""

    name = "http"

    def __init__(self, url: str, buckets: Path | None = None) -> None:
        self.url = url
        self.buckets = buckets

    def on(self) -> AbstractContextManager[object]:
        return nullcontext()

    def client(self, *, region: str = REGION, account: str = ACCOUNT) -> DynamoDBClient:
        return new_client(region=region, account=account, endpoint_url=self.url)

    def send_raw(self, operation: str, body: bytes) -> Answer:
        status, _, answer = self.post(body, {"X-Amz-Target": f"DynamoDB_20120810.{operation}"})
        return Answer(status, json.loads(answer))

    def post(
        self, body: bytes, headers: Mapping[str, str] | None = None, *, method: str = "POST", path: str = "/"
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers by lower-case name, and body of one request."""
        sent = {
            "Content-Type": JSON,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20300101/{REGION}/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=0",
            **(headers or {}),
        }
        place = urlsplit(self.url)
        with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)) as connection:
            connection.request(method, path, body, {k: v for k, v in sent.items() if v})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


class Aws:
    """AWS itself, with the credentials and region that the SDK finds."""

    name = "aws"
    buckets: Path | None = None

    def on(self) -> AbstractContextManager[object]:
        return nullcontext()

    def client(self, *, region: str = "", account: str = "") -> DynamoDBClient:
        assert not account, "AWS has the account of its credentials"
        client: DynamoDBClient = boto3.client("dynamodb", region_name=region or None, config=_CONFIG)
        return client

    def send_raw(self, operation: str, body: bytes) -> Answer:
        session = boto3.Session()
        client = self.client()
        request = AWSRequest(
            "POST",
            client.meta.endpoint_url,
            {"X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": JSON},
            body,
        )
        SigV4Auth(session.get_credentials(), "dynamodb", client.meta.region_name).add_auth(request)
        place = urlsplit(client.meta.endpoint_url)
        with closing(http.client.HTTPSConnection(place.hostname or "", timeout=30)) as connection:
            connection.request("POST", "/", body, dict(request.headers.items()))
            answer = connection.getresponse()
            return Answer(answer.status, json.loads(answer.read()))


def new_client(
    *, region: str, account: str, endpoint_url: str | None, service: str = "dynamodb"
) -> DynamoDBClient:
    """Return a client whose credentials name an account, for a backend that takes them as they come."""
    client: DynamoDBClient = boto3.client(
        service,
        region_name=region,
        aws_access_key_id=account,
        aws_secret_access_key="secret",
        endpoint_url=endpoint_url,
        config=_CONFIG,
    )
    return client


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Backend]:
    """Yield a backend by its name; a file is made in `folder`."""
    buckets = folder / "buckets"
    buckets.mkdir()
    with ExitStack() as stack:
        match name:
            case "memory":
                engine = stack.enter_context(closing(Engine.open(buckets=buckets)))
                yield Embedded(name, engine, buckets)
            case "file":
                engine = stack.enter_context(closing(Engine.open(folder / "suite.db", buckets=buckets)))
                yield Embedded(name, engine, buckets)
            case "http":
                engine = stack.enter_context(closing(Engine.open(buckets=buckets)))
                yield Http(stack.enter_context(running(engine)).url, buckets)
            case _:
                yield Aws()
