"""Compressed requests and responses over HTTP, with an unchanged boto3 and byte by byte."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from tavola.clock import SYSTEM_CLOCK
from tavola.engine import Engine
from tavola.iam import DirectoryFile
from tavola.server.authorization import StrictCallers
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.server.directories import WRITER, write_directory
from tests.server.raw import Answer, Raw, request, send_request, served
from tests.server.standin import StandIn

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def endpoint() -> Iterator[ServerEndpoint]:
    with Engine.open() as engine, running(engine) as endpoint:
        yield endpoint


def _compressing_client(endpoint: ServerEndpoint, key: tuple[str, ...] = ("tavola", "x")) -> DynamoDBClient:
    """Return boto3's client; botocore compresses the operations that its service model marks."""
    session = boto3.session.Session()  # of its own, because its copy of the service model is changed
    client: DynamoDBClient = session.client(
        "dynamodb",
        endpoint_url=endpoint.url,
        region_name="eu-west-1",
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        config=Config(retries={"total_max_attempts": 1}, request_min_compression_size_bytes=1),
    )
    operations: Any = client.meta.service_model._service_description["operations"]
    for operation in operations.values():
        operation["requestcompression"] = {"encodings": ["gzip"]}
    sent: list[Any] = []
    client.meta.events.register(
        "before-send", lambda request, **_: sent.append(request.headers.get("Content-Encoding"))
    )
    client.list_tables()
    assert sent in (["gzip"], [b"gzip"]), "botocore compresses what it sends"
    return client


def test_botocore_may_compress_requests(endpoint: ServerEndpoint) -> None:
    """With request_min_compression_size_bytes, every request is compressed and understood."""
    client = _compressing_client(endpoint)
    item: dict[str, Any] = {"pk": {"S": "o#1"}, "text": {"S": "x" * 100_000}}

    client.create_table(**TABLE)
    client.put_item(TableName="Orders", Item=item)
    assert client.get_item(TableName="Orders", Key={"pk": {"S": "o#1"}})["Item"] == item


def test_the_signature_is_over_the_compressed_body(tmp_path: Path) -> None:
    """A strict server verifies the bytes as sent, executes the decoded body, and refuses what was changed."""
    path = write_directory(tmp_path / "iam.json")
    safeguards = Safeguards(callers=StrictCallers(DirectoryFile(path), SYSTEM_CLOCK))
    with Engine.open() as engine, running(engine, safeguards=safeguards) as endpoint:
        client = _compressing_client(endpoint, WRITER)
        client.create_table(**TABLE)
        client.put_item(TableName="Orders", Item={"pk": {"S": "signed"}})
        assert client.get_item(TableName="Orders", Key={"pk": {"S": "signed"}})["Item"]

        def recompress(request: Any, **_: Any) -> None:
            request.body = gzip.compress(gzip.decompress(request.body), 0)  # the same content in other bytes

        client.meta.events.register_first("before-send", recompress)
        with pytest.raises(client.exceptions.ClientError, match="signature"):
            client.get_item(TableName="Orders", Key={"pk": {"S": "signed"}})


def _list_tables(body: bytes, coding: str) -> bytes:
    return request("ListTables", body, Content_Encoding=coding)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b'{"Limit":', mtime=0) + gzip.compress(b"1}", mtime=0) + b"junk"),
        ("deflate", zlib.compress(b'{"Limit":1}')),
        ("GZIP", gzip.compress(b"{}", mtime=0)),
        ("identity", b"{}"),
    ],
)
def test_codings_of_a_request(endpoint: ServerEndpoint, coding: str, body: bytes) -> None:
    """Several members, junk behind them, upper case and `identity` are accepted."""
    assert send_request(endpoint, _list_tables(body, coding)).status == 200


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("br", b"{}", "'br' is not supported"),
        ("aws-chunked", b"{}", "'aws-chunked' is not supported"),
        ("gzip", b"{}", "bytes are not valid"),
        ("gzip", b"", "is empty"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-1], "ends too early"),
        ("deflate", gzip.compress(b"{}", mtime=0), "bytes are not valid"),
        ("gzip", gzip.compress(bytes(100 * 1024 * 1024), mtime=0), "larger than 20971520 bytes"),
    ],
)
def test_a_request_that_cannot_be_decoded(coding: str, body: bytes, words: str) -> None:
    """It is a 400 with the reason; nothing is executed, and the connection goes on."""
    engine = StandIn()
    with served(engine) as endpoint, Raw(endpoint) as client:
        client.send(request("PutItem", body, Content_Encoding=coding) + request())
        answer = client.answer()

        assert answer.status == 400
        assert json.loads(answer.body)["__type"].endswith("#SerializationException")
        assert words in json.loads(answer.body)["Message"]
        assert client.answer().status == 200
        assert [operation for operation, _ in engine.calls] == ["GetItem"]


def test_a_bomb_beyond_the_memory_is_refused() -> None:
    """What inflates beyond the memory for all clients is a 503."""
    with served(buffer_bytes_max=4 * 1024 * 1024) as endpoint:
        answer = send_request(
            endpoint, request("PutItem", gzip.compress(bytes(10_000_000)), Content_Encoding="gzip")
        )

        assert answer.status == 503
        assert b"--buffer-mb" in answer.body
        assert send_request(endpoint, request()).status == 200


def _scan(endpoint: ServerEndpoint, accept: str = "", operation: str = "Scan") -> Answer:
    return send_request(endpoint, request(operation, b"{}", Accept_Encoding=accept))


@pytest.mark.parametrize(
    ("accept", "coding"), [("gzip", "gzip"), ("DEFLATE", "deflate"), ("br, *;q=0.1", "gzip")]
)
@pytest.mark.parametrize("size", [4095, 10_000, 9_000_000])
def test_a_response_over_4_kb_is_compressed(accept: str, coding: str, size: int) -> None:
    """The client's coding is used, and the checksum is over the bytes that are sent."""
    engine = StandIn()
    engine.answer_bytes = size
    with served(engine) as endpoint:
        answer = _scan(endpoint, accept)

    assert answer.status == 200
    assert answer.headers["content-encoding"] == coding
    assert int(answer.headers["x-amz-crc32"]) == zlib.crc32(answer.body)
    assert len(answer.body) < size
    plain = gzip.decompress(answer.body) if coding == "gzip" else zlib.decompress(answer.body)
    assert plain == b'"' + b"x" * size + b'"'


@pytest.mark.parametrize(
    ("accept", "size"),
    [("gzip", 4094), ("gzip", 0), ("", 100_000), ("identity", 100_000), ("gzip;q=0", 100_000), ("br", 5000)],
)
def test_other_responses_are_not_compressed(accept: str, size: int) -> None:
    """4 KB and less, and what the client does not accept, is sent as it is."""
    engine = StandIn()
    engine.answer_bytes = size
    with served(engine) as endpoint:
        answer = _scan(endpoint, accept)

    assert "content-encoding" not in answer.headers
    assert len(answer.body) == size + 2


def test_the_first_accept_encoding_counts() -> None:
    """Of repeated Accept-Encoding headers only the first is read."""
    engine = StandIn()
    engine.answer_bytes = 5000
    twice = request("Scan", b"{}", Accept_Encoding="deflate").replace(
        b"Host", b"Accept-Encoding: identity\r\nHost", 1
    )
    with served(engine) as endpoint:
        assert "content-encoding" not in send_request(endpoint, twice).headers
        other = request("Scan", b"{}", Accept_Encoding="identity").replace(
            b"Host", b"Accept-Encoding: deflate\r\nHost", 1
        )
        assert send_request(endpoint, other).headers["content-encoding"] == "deflate"


def test_a_long_read_is_compressed_too() -> None:
    """A response that was computed in slices is compressed like others."""
    engine = StandIn()
    engine.rows_bytes = 3000
    with served(engine) as endpoint:
        answer = _scan(endpoint, "gzip", "ExecuteStatement")

    assert answer.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(answer.body)) == ["-" * 3000] * 3


def test_pipelined_responses_keep_their_order() -> None:
    """A compressed request and a compressed response wait for each other like all others."""
    engine = StandIn()
    engine.answer_bytes = 3_000_000
    body = gzip.compress(json.dumps({"key": "a", "pad": "x" * 5_000_000}).encode())
    with served(engine) as endpoint, Raw(endpoint) as client:
        client.send(
            request("Scan", b"{}", Accept_Encoding="gzip")
            + request("PutItem", body, Content_Encoding="gzip")
            + request(body=b'{"key":"a"}', Accept_Encoding="deflate")
            + request("Scan", b"{}")
            + request("Query")
        )
        first, written, read, plain, refused = (client.answer() for _ in range(5))

    assert len(gzip.decompress(first.body)) == 3_000_002
    assert written.body == b"{}"
    assert zlib.decompress(read.body) == gzip.decompress(body)
    assert len(plain.body) == 3_000_002
    assert refused.status == 400
