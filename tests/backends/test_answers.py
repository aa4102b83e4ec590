"""An HTTP response becomes the response or the fault it represents."""

from __future__ import annotations

import json
import zlib

import msgspec
import pytest

from tavola.backends.errors import ResponseCorrupted, ResponseUnreadable
from tavola.backends.responses import parse_response
from tavola.engine import Engine
from tavola.protocol.faults import (
    ConditionalCheckFailedFault,
    Fault,
    InternalServerFault,
    ProvisionedThroughputExceededFault,
    ThrottlingFault,
    TransactionCanceledFault,
    ValidationFault,
)

URL = "http://localhost:8000"


def read_fault(status: int, body: bytes) -> Fault:
    """Return the fault in an error body."""
    with pytest.raises(Fault) as caught:
        parse_response(URL, status, body, None)
    return caught.value


def test_a_response_is_its_json() -> None:
    """A body with status 200 is the response, whether or not a checksum came with it."""
    body = b'{"Count":1}'

    assert parse_response(URL, 200, body, None) == {"Count": 1}
    assert parse_response(URL, 200, body, str(zlib.crc32(body))) == {"Count": 1}


def test_a_wrong_checksum_is_refused() -> None:
    """An answer that was changed on its way is never taken for one, not even a fault."""
    for status in (200, 400):
        with pytest.raises(ResponseCorrupted, match="does not match its checksum"):
            parse_response(URL, status, b'{"__type":"x#ValidationException"}', "1")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (404, b"<UnknownOperationException/>\n"),
        (502, b""),
        (400, b'{"message":"no type"}'),
        (400, b'{"__type":5}'),
    ],
)
def test_a_foreign_response_is_named(status: int, body: bytes) -> None:
    """A web page or a proxy's response is an error that names its source."""
    with pytest.raises(ResponseUnreadable, match=f"{URL} responded with status {status}"):
        parse_response(URL, status, body, None)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ValidationFault, b'{"__type":"com.amazon.coral.validate#ValidationException","message":"No."}'),
        (
            ThrottlingFault,
            b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"No."}',
        ),
        (InternalServerFault, b'{"__type":"InternalServerError","Message":"No."}'),
    ],
)
def test_a_known_code_is_its_class(kind: type[Fault], body: bytes) -> None:
    """The fault is of the class the engine raises, with the text that was sent in either spelling."""
    fault = read_fault(400, body)

    assert type(fault) is kind
    assert (fault.message, str(fault), fault.code) == ("No.", "No.", kind.code)


def test_a_fault_without_a_text_has_none() -> None:
    """No text of our own is put into AWS's mouth."""
    fault = read_fault(400, b'{"__type":"x#SerializationException"}')

    assert fault.message is None
    assert str(fault) == "SerializationException"


def test_further_members_are_preserved() -> None:
    """Members besides the message are on the fault unchanged."""
    body = (
        b'{"__type":"x#ProvisionedThroughputExceededException","message":"m","ThrottlingReasons":[{"r":"k"}]}'
    )
    fault = read_fault(400, body)

    assert isinstance(fault, ProvisionedThroughputExceededFault)
    assert json.loads(fault.body())["ThrottlingReasons"] == [{"r": "k"}]


def test_an_unknown_code_is_a_plain_fault() -> None:
    """A code that the engine never raises is a Fault with code, status and message."""
    fault = read_fault(503, b'{"__type":"com.amazonaws.x#ReplicaNotFoundException","message":"None here."}')

    assert (fault.code, fault.status, fault.message) == ("ReplicaNotFoundException", 503, "None here.")
    assert fault.retryable
    assert json.loads(fault.body())["__type"] == "com.amazonaws.x#ReplicaNotFoundException"


def test_a_fault_survives_the_wire_whole() -> None:
    """A fault of the engine, encoded and decoded, is equal: items and reasons included."""
    engine = Engine.open()
    engine.call(
        "CreateTable",
        {
            "TableName": "T01",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    put = {
        "TableName": "T01",
        "Item": {"pk": {"S": "a"}, "n": {"N": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    check = {"TableName": "T01", "Key": {"pk": {"S": "b"}}, "ConditionExpression": "attribute_not_exists(pk)"}
    engine.call("PutItem", put)

    with pytest.raises(ConditionalCheckFailedFault) as single:
        engine.call("PutItem", put)
    with pytest.raises(TransactionCanceledFault) as several:
        engine.call("TransactWriteItems", {"TransactItems": [{"ConditionCheck": check}, {"Put": put}]})
    engine.close()

    read_single = read_fault(400, single.value.body())
    read_several = read_fault(400, several.value.body())
    assert isinstance(read_single, ConditionalCheckFailedFault)
    assert read_single.item is not None
    assert msgspec.json.decode(read_single.item) == put["Item"]
    assert isinstance(read_several, TransactionCanceledFault)
    assert [reason.code for reason in read_several.reasons] == ["None", "ConditionalCheckFailed"]
    assert (read_single.body(), read_several.body()) == (single.value.body(), several.value.body())
