"""AWS, or any endpoint, behind the port; the endpoints here are all of this machine."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.httpsession import URLLib3Session

import tavola
from tavola.backends.aws import AwsBackend, AwsConfiguration
from tavola.backends.errors import (
    CredentialsMissing,
    EndpointUnreachable,
    EndpointUntrusted,
    RegionMissing,
    ResponseUnreadable,
)
from tavola.clock import SYSTEM_CLOCK
from tavola.engine import Engine
from tavola.iam import DirectoryFile
from tavola.protocol.faults import (
    ConditionalCheckFailedFault,
    Fault,
    InvalidSignatureFault,
    UnknownOperationFault,
)
from tavola.protocol.operations import Service
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards, tls_context
from tests.backends.endpoints import SHELLS, deserted, echo, open_backend, scripted, serve_fixed
from tests.backends.test_embedded import KEY, TABLE
from tests.server.certificates import make_certificates
from tests.server.directories import SESSION, WRITER, write_directory


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a Tavola server."""
    with Engine.open() as engine, running(engine) as served:
        yield served.url


def test_a_server_answers_as_the_engine_does(endpoint: str) -> None:
    """Responses and faults over HTTP are those of an engine in this process; bytes go as base64."""
    backend = AwsBackend(endpoint=endpoint, region="eu-west-1")
    described = backend.call("CreateTable", TABLE)["TableDescription"]
    item = {"pk": {"S": "a"}, "b": {"B": b"\x00\xff"}}
    put = {"TableName": "Orders", "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    backend.call("PutItem", put)

    assert described["TableArn"] == "arn:aws:dynamodb:eu-west-1:000000000000:table/Orders"
    assert backend.call("GetItem", KEY)["Item"]["b"] == {"B": "AP8="}
    with pytest.raises(ConditionalCheckFailedFault, match="The conditional request failed"):
        backend.call("PutItem", put)
    backend.close()
    backend.close()


def test_accounts_are_separated_by_the_key(endpoint: str) -> None:
    """A configured account signs as the access key, so a local server separates its tables."""
    ours = AwsBackend(endpoint=endpoint, account="111111111111")
    theirs = AwsBackend(endpoint=endpoint, account="222222222222")
    ours.call("CreateTable", TABLE)

    assert ours.call("ListTables", {})["TableNames"] == ["Orders"]
    assert theirs.call("ListTables", {})["TableNames"] == []
    ours.close()
    theirs.close()


def test_a_request_is_signed_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials and region are those that botocore finds; target, type and body are DynamoDB's."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-southeast-2")
    with serve_fixed() as fixed:
        backend = AwsBackend(endpoint=fixed.url)
        backend.call("GetItem", KEY)
        backend.close()

    headers, body = fixed.requests[0]
    assert "Credential=AKIDEXAMPLE/" in headers["Authorization"]
    assert "/ap-southeast-2/dynamodb/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "token"
    assert headers["X-Amz-Target"] == "DynamoDB_20120810.GetItem"
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert json.loads(body) == KEY


def test_streams_have_their_own_target() -> None:
    """An operation of streams is sent to the other service, at the same URL."""
    with serve_fixed(body=b'{"Streams":[]}') as fixed:
        backend = AwsBackend(endpoint=fixed.url)
        assert backend.call("ListStreams", {}) == {"Streams": []}
        backend.close()

    assert fixed.requests[0][0]["X-Amz-Target"] == "DynamoDBStreams_20120810.ListStreams"


def test_without_credentials_a_local_server_gets_dummy_ones() -> None:
    """Local servers require a signature and do not verify it."""
    with serve_fixed() as fixed:
        backend = AwsBackend(endpoint=fixed.url)
        backend.call("ListTables", {})
        backend.close()

    assert "Credential=000000000000/" in fixed.requests[0][0]["Authorization"]


def test_aws_itself_needs_a_region_and_credentials() -> None:
    """A missing region or missing credentials are reported with advice."""
    with pytest.raises(RegionMissing, match="aws:eu-west-1, or set AWS_DEFAULT_REGION"):
        AwsBackend()
    with pytest.raises(CredentialsMissing, match="AWS_ACCESS_KEY_ID"):
        AwsBackend(region="eu-west-1").call("ListTables", {})
    with pytest.raises(CredentialsMissing, match="no-such-profile"):
        AwsBackend(region=None, profile="no-such-profile")


@pytest.mark.parametrize(
    ("region", "service", "endpoint"),
    [
        ("eu-west-1", "dynamodb", "https://dynamodb.eu-west-1.amazonaws.com"),
        ("cn-north-1", "dynamodb", "https://dynamodb.cn-north-1.amazonaws.com.cn"),
        ("eu-west-1", "streams", "https://streams.dynamodb.eu-west-1.amazonaws.com"),
    ],
)
def test_botocore_resolves_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, region: str, service: Service, endpoint: str
) -> None:
    """On AWS the endpoint is botocore's own; resolving it sends no request."""
    monkeypatch.setattr("socket.create_connection", lambda *_, **__: pytest.fail("something is sent"))

    way = AwsConfiguration(region=region).resolve(service)

    assert way.address.url == endpoint
    assert way.tls is not None
    assert way.forward is None


@pytest.mark.parametrize("shell", SHELLS)
def test_an_operation_is_sent_to_the_endpoint_of_its_service(
    monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    """Streams and tables have separate endpoints on AWS, and each request goes to its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with scripted(echo) as tables, scripted(echo) as streams:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", tables.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", streams.url)
        with open_backend(shell, AwsConfiguration(region="eu-west-1")) as backend:
            backend.call("ListTables", {})
            backend.call("ListStreams", {})
            backend.call("ListTables", {})

    assert (len(tables.requests), len(streams.requests)) == (2, 1)
    assert b"X-Amz-Target: DynamoDBStreams_20120810.ListStreams" in streams.requests[0]
    assert b"/eu-west-1/dynamodb/aws4_request" in streams.requests[0]


def test_an_endpoint_that_is_configured_is_honoured(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """AWS_ENDPOINT_URL_DYNAMODB sends "aws:" to a local server, as it does for boto3."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    with tavola.connect("aws:eu-west-1") as connection:
        assert connection.call("ListTables") == {"TableNames": []}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_strict_server_lets_the_right_key_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: str
) -> None:
    """A key, and a session with its token, are verified by a server that looks; a wrong secret is refused."""
    callers = StrictCallers(DirectoryFile(write_directory(tmp_path / "iam.json")), SYSTEM_CLOCK)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with Engine.open() as engine, running(engine, safeguards=Safeguards(callers=callers)) as served:
        for key in (WRITER, SESSION):
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", key[0])
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key[1])
            if len(key) > 2:
                monkeypatch.setenv("AWS_SESSION_TOKEN", key[2])
            with open_backend(shell, AwsConfiguration(endpoint=served.url)) as backend:
                for _ in range(3):
                    assert backend.call("ListTables", {}) == {"TableNames": []}
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with open_backend(shell, AwsConfiguration(endpoint=served.url)) as backend:
            with pytest.raises(InvalidSignatureFault):
                backend.call("ListTables", {})


def test_an_endpoint_that_does_not_answer_is_named() -> None:
    """A refused connection names the endpoint and what to check."""
    with deserted() as url:
        with pytest.raises(EndpointUnreachable) as caught:
            AwsBackend(endpoint=url).call("ListTables", {})

    assert caught.value.endpoint == url
    assert str(caught.value).startswith(f"{url} does not respond")
    assert "check that a server is listening" in str(caught.value)


def test_an_untrusted_certificate_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error differs from that of an unreachable server, and so does that of plain text instead of TLS."""
    files = make_certificates(tmp_path, "127.0.0.1")
    safeguards = Safeguards(tls=tls_context(files.certificate, files.key))
    with Engine.open() as engine, running(engine, safeguards=safeguards) as served:
        with pytest.raises(EndpointUntrusted, match="set AWS_CA_BUNDLE"):
            AwsBackend(endpoint=served.url).call("ListTables", {})
        with pytest.raises(EndpointUnreachable, match="try https://"):
            AwsBackend(endpoint=served.url.replace("https:", "http:")).call("ListTables", {})
        monkeypatch.setenv("AWS_CA_BUNDLE", str(files.authority))
        assert AwsBackend(endpoint=served.url).call("ListTables", {}) == {"TableNames": []}
    with Engine.open() as engine, running(engine) as plain:
        with pytest.raises(EndpointUnreachable, match="try http://"):
            AwsBackend(endpoint=plain.url.replace("http:", "https:")).call("ListTables", {})


def test_an_endpoint_that_is_something_else_is_named() -> None:
    """An answer that is not DynamoDB's is no response."""
    with serve_fixed(status=404, body=b"<html>") as fixed:
        backend = AwsBackend(endpoint=fixed.url)
        with pytest.raises(ResponseUnreadable, match="status 404"):
            backend.call("ListTables", {})
        backend.close()


def test_unknown_codes_come_through() -> None:
    """A fault that Tavola never raises is a Fault all the same."""
    body = b'{"__type":"com.amazonaws.dynamodb.v20120810#GlobalTableNotFoundException","message":"None."}'
    with serve_fixed(status=400, body=body) as fixed:
        backend = AwsBackend(endpoint=fixed.url)
        with pytest.raises(Fault) as caught:
            backend.call("DescribeGlobalTable", {"GlobalTableName": "T01"})
        backend.close()

    assert caught.value.code == "GlobalTableNotFoundException"


def test_behind_a_proxy_a_body_does_not_wait_for_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore writes head and body apart; a socket that holds the second back would cost 40 ms a request."""
    arguments: list[object] = []

    class Session(URLLib3Session):  # type: ignore[misc]  # botocore ships no types
        def __init__(self, **settings: object) -> None:
            arguments.append(settings.get("socket_options"))
            super().__init__(**settings)

    monkeypatch.setattr("tavola.backends.aws.URLLib3Session", Session)
    with serve_fixed() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        backend = AwsBackend(endpoint="http://shop.example:8000")
        backend.call("ListTables", {})
        backend.close()

    assert arguments == [[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]]


def test_an_unknown_operation_is_not_sent() -> None:
    """An unknown name is refused as the engine refuses it."""
    with serve_fixed() as fixed, pytest.raises(UnknownOperationFault):
        AwsBackend(endpoint=fixed.url).call("MakeCoffee", {})

    assert fixed.requests == []


def test_inside_a_mock_nothing_is_sent() -> None:
    """A connection to AWS made inside `mock()` is answered by the mock, in the connection's region."""
    with tavola.mock() as mocked, tavola.connect("aws:eu-west-1") as connection:
        connection.call("CreateTable", TABLE)

        assert connection.call("ListTables") == {"TableNames": ["Orders"]}
        assert mocked.connection.call("ListTables") == {"TableNames": []}
