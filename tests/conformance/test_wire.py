"""HTTP behaviour: headers, error bodies, health, and requests that no SDK sends."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import pytest

from tests.conformance.backends import JSON, Http
from tests.conformance.requests import table_request

_TARGET = "DynamoDB_20120810."


def _send(server: Http, operation: str, request: Any, **headers: str) -> tuple[int, dict[str, str], Any]:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    sent = {"X-Amz-Target": _TARGET + operation, **{k.replace("_", "-"): v for k, v in headers.items()}}
    status, fields, answer = server.post(body, sent)
    return status, fields, answer


@pytest.fixture(scope="module")
def table(server: Http) -> str:
    """A table that the requests of this file may use."""
    _send(server, "CreateTable", table_request("wire", "pk"))
    return "wire"


@pytest.mark.parametrize("operation", ["ListTables", "GetItem"])
def test_headers_of_an_answer(server: Http, operation: str) -> None:
    """Success and failure carry an id, the checksum of the body's bytes and the content type."""
    status, fields, body = _send(server, operation, {})

    assert status == (200 if operation == "ListTables" else 400)
    assert re.fullmatch(r"[A-Z0-9]{52}", fields["x-amzn-requestid"])
    assert int(fields["x-amz-crc32"]) == zlib.crc32(body)
    assert fields["content-type"] == JSON
    assert int(fields["content-length"]) == len(body)
    assert "date" in fields


def test_each_answer_has_its_own_id(server: Http) -> None:
    """No two answers share a request id."""
    ids = {_send(server, "ListTables", {})[1]["x-amzn-requestid"] for _ in range(20)}

    assert len(ids) == 20


def test_plain_json_is_accepted(server: Http) -> None:
    """application/json will do, and is answered in kind."""
    status, fields, _ = _send(server, "ListTables", {}, Content_Type="application/json")

    assert status == 200
    assert fields["content-type"].startswith("application/json")


_MODEL = "com.amazonaws.dynamodb.v20120810#"


@pytest.mark.parametrize(
    ("operation", "body", "kind", "member"),
    [
        ("GetItem", b"{}", "com.amazon.coral.validate#ValidationException", "message"),
        ("GetItem", b'{"TableName": 1}', "com.amazon.coral.service#SerializationException", "Message"),
        ("DescribeTable", b'{"TableName": "nobody"}', f"{_MODEL}ResourceNotFoundException", "message"),
        (
            "PutItem",
            b'{"TableName": "wire", "Item": {"pk": {"S": "x"}}, "ConditionExpression": "attribute_exists(pk)"}',
            f"{_MODEL}ConditionalCheckFailedException",
            "message",
        ),
        (
            "TransactWriteItems",
            (
                b'{"TransactItems": [{"ConditionCheck": {"TableName": "wire", "Key": {"pk": {"S": "x"}}, '
                b'"ConditionExpression": "attribute_exists(pk)"}}]}'
            ),
            f"{_MODEL}TransactionCanceledException",
            "Message",
        ),
    ],
    ids=["validation", "serialization", "not found", "condition", "cancelled"],
)
@pytest.mark.usefixtures("table")
def test_error_bodies(server: Http, operation: str, body: bytes, kind: str, member: str) -> None:
    """An error names its type with AWS's namespace and spells its text as AWS does."""
    status, _, answer = _send(server, operation, body)

    found = json.loads(answer)
    assert status == 400
    assert found["__type"] == kind
    assert found[member]
    assert {"message", "Message"} & set(found) == {member}


def test_a_mismatched_token_spells_message_in_capitals(server: Http, table: str) -> None:
    """IdempotentParameterMismatchException says `Message`."""
    put = {"Put": {"TableName": table, "Item": {"pk": {"S": "a"}}}}
    other = {"Put": {"TableName": table, "Item": {"pk": {"S": "b"}}}}
    _send(server, "TransactWriteItems", {"TransactItems": [put], "ClientRequestToken": "wire-token"})

    status, _, body = _send(
        server, "TransactWriteItems", {"TransactItems": [other], "ClientRequestToken": "wire-token"}
    )

    found = json.loads(body)
    assert status == 400
    assert found["__type"] == f"{_MODEL}IdempotentParameterMismatchException"
    assert "Message" in found


@pytest.mark.parametrize("target", ["DynamoDB_20120810.Nothing", "DynamoDB_20111205.GetItem", "GetItem", ""])
def test_an_unknown_target(server: Http, target: str) -> None:
    """An invalid target is an UnknownOperationException without a message."""
    status, _, body = server.post(b"{}", {"X-Amz-Target": target})

    assert status == 400
    assert json.loads(body) == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_a_body_that_is_no_json_has_no_message(server: Http) -> None:
    """An unreadable body is a SerializationException without a message."""
    status, _, body = _send(server, "GetItem", b"{")

    assert status == 400
    assert json.loads(body) == {"__type": "com.amazon.coral.service#SerializationException"}


def test_health(server: Http) -> None:
    """GET / reports healthy, with AWS's trailing space; /healthz responds too."""
    status, _, body = server.post(b"", method="GET")
    probe, _, _ = server.post(b"", method="GET", path="/healthz")

    assert (status, body) == (200, f"healthy: {server.url.removeprefix('http://')} ".encode())
    assert probe == 200


@pytest.mark.parametrize(
    ("method", "content_type"),
    [("PUT", JSON), ("DELETE", JSON), ("POST", "text/plain"), ("POST", "text/xml")],
)
def test_other_methods_and_content_types_are_not_found(server: Http, method: str, content_type: str) -> None:
    """Another method or content type is not found."""
    headers = {"X-Amz-Target": _TARGET + "ListTables", "Content-Type": content_type}

    status, _, body = server.post(b"{}", headers, method=method)

    assert (status, body) == (404, b"<UnknownOperationException/>\n")


def test_a_body_of_more_than_16_mb(server: Http) -> None:
    """A body over 16 MB is refused by its size, and the server continues."""
    try:
        status, _, _ = _send(server, "PutItem", b"x" * (16 * 1024 * 1024 + 1))
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # it closed before the whole body had been sent
    after, _, _ = _send(server, "ListTables", {})

    assert status == 413
    assert after == 200


def test_a_body_of_almost_16_mb_is_read(server: Http) -> None:
    """A body of 16 MB is read and refused for its content."""
    body = b'{"TableName": "' + b"a" * (16 * 1024 * 1024 - 100) + b'"}'

    status, _, answer = _send(server, "DescribeTable", body)

    assert status == 400
    assert b"ValidationException" in answer


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"null",
        b"[]",
        b'"text"',
        b"1",
        b"\xef\xbb\xbf{}",
        '{"TableName": "x"}'.encode("utf-16"),
        b'{"TableName": "\\ud800"}',
        b'{"TableName": "\xed\xa0\x80"}',
        b'{"TableName": 1e999}',
        b'{"TableName": Infinity}',
        b'{"Limit": ' + b"9" * 5000 + b"}",
        b'{"TableName": "a\\u0000b"}',
        b"\x00" * 100,
    ],
    ids=[
        "lists",
        "maps",
        "null",
        "list",
        "text",
        "number",
        "byte order mark",
        "UTF-16",
        "lone surrogate",
        "raw surrogate",
        "huge number",
        "Infinity",
        "5000 digits",
        "NUL",
        "zeros",
    ],
)
@pytest.mark.parametrize("operation", ["Query", "CreateTable", "BatchWriteItem"])
def test_no_body_breaks_the_server(server: Http, operation: str, body: bytes) -> None:
    """Whatever is sent, the answer is the client's fault and in JSON."""
    status, _, answer = _send(server, operation, body)

    assert status == 400
    assert "__type" in json.loads(answer)


def test_a_value_nested_beyond_reason(server: Http, table: str) -> None:
    """An item nested a thousand deep is refused and not the server's undoing."""
    value = b'{"L":[' * 1000 + b'{"S":"x"}' + b"]}" * 1000
    body = f'{{"TableName": "{table}", "Item": {{"pk": {{"S": "p"}}, "v": '.encode() + value + b"}}"

    status, _, answer = _send(server, "PutItem", body)

    assert status == 400
    assert "__type" in json.loads(answer)


def test_a_request_without_credentials_is_answered(server: Http) -> None:
    """Credentials are taken as they come; none mean the default account and region."""
    status, _, _ = server.post(b"{}", {"X-Amz-Target": _TARGET + "ListTables", "Authorization": ""})

    assert status == 200


def test_account_and_region_come_from_the_credential(server: Http, table: str) -> None:
    """Another region in the credential's scope is another set of tables."""
    other = "AWS4-HMAC-SHA256 Credential=key/20300101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"

    _, _, here = _send(server, "ListTables", {})
    _, _, there = _send(server, "ListTables", {}, Authorization=other)

    assert table in json.loads(here)["TableNames"]
    assert json.loads(there) == {"TableNames": []}


def test_timestamps_are_seconds(server: Http, table: str) -> None:
    """A time is a JSON number of seconds."""
    _, _, body = _send(server, "DescribeTable", {"TableName": table})

    made = json.loads(body)["Table"]["CreationDateTime"]
    assert isinstance(made, int | float)
    assert 1_700_000_000 < made < 10_000_000_000


def test_binaries_are_base64(server: Http, table: str) -> None:
    """A binary travels as base64 with its padding."""
    row = {"pk": {"S": "bin"}, "v": {"B": "AP+A"}, "w": {"B": "AA=="}}
    _send(server, "PutItem", {"TableName": table, "Item": row})

    _, _, body = _send(server, "GetItem", {"TableName": table, "Key": {"pk": {"S": "bin"}}})

    assert json.loads(body) == {"Item": row}
