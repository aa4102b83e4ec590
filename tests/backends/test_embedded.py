"""The engine behind the port."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

import pytest

from tavola.backends.embedded import EmbeddedBackend
from tavola.client.backend import Backend, RequestMalformed
from tavola.engine import Engine
from tavola.protocol.arns import Scope
from tavola.protocol.faults import ResourceNotFoundFault, UnknownOperationFault

TABLE = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
KEY = {"TableName": "Orders", "Key": {"pk": {"S": "a"}}}


@pytest.fixture
def backend() -> Backend:
    """A backend with one table."""
    made: Backend = EmbeddedBackend(Engine.open())
    made.call("CreateTable", TABLE)
    return made


def test_bytes_are_accepted_and_returned_as_base64(backend: Backend) -> None:
    """Bytes for a B, alone, in a set or nested, equal their base64; responses are always text."""
    item = {
        "pk": {"S": "a"},
        "b": {"B": b"\x00\xff"},
        "bs": {"BS": [b"\x01", bytearray(b"\x02")]},
        "deep": {"L": [{"M": {"b": {"B": memoryview(b"\x03")}}}]},
    }
    backend.call("PutItem", {"TableName": "Orders", "Item": item})

    assert backend.call("GetItem", KEY)["Item"] == {
        "pk": {"S": "a"},
        "b": {"B": "AP8="},
        "bs": {"BS": ["AQ==", "Ag=="]},
        "deep": {"L": [{"M": {"b": {"B": "Aw=="}}}]},
    }


def test_numbers_are_exact(backend: Backend) -> None:
    """A number of 38 digits is returned digit for digit, from text or from a Decimal."""
    digits = "1234567890123456789012345678901234567.8"
    item = {"pk": {"S": "a"}, "text": {"N": digits}, "decimal": {"N": Decimal(digits)}}
    backend.call("PutItem", {"TableName": "Orders", "Item": item})

    found = backend.call("GetItem", KEY)["Item"]

    assert (found["text"], found["decimal"]) == ({"N": digits}, {"N": digits})


def test_any_mapping_is_a_request(backend: Backend) -> None:
    """The port takes mappings, not only dicts."""
    assert backend.call("GetItem", MappingProxyType(KEY)) == {}


def test_faults_are_the_engines(backend: Backend) -> None:
    """A refusal of DynamoDB is raised as its fault."""
    with pytest.raises(ResourceNotFoundFault) as caught:
        backend.call("DescribeTable", {"TableName": "Nothing"})
    assert caught.value.code == "ResourceNotFoundException"

    with pytest.raises(UnknownOperationFault):
        backend.call("MakeCoffee", {})


def test_a_value_outside_json_is_refused_with_advice(backend: Backend) -> None:
    """A request that cannot be encoded is the caller's error and names the operation."""
    with pytest.raises(RequestMalformed, match=r"PutItem request cannot be encoded as JSON.*DynamoDB JSON"):
        backend.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": object()}}})


def test_a_scope_has_separate_tables() -> None:
    """Two backends on one engine see the tables of their own account and region."""
    engine = Engine.open()
    ours = EmbeddedBackend(engine, Scope("111111111111", "eu-west-1"))
    theirs = EmbeddedBackend(engine, Scope("222222222222", "eu-west-1"))
    ours.call("CreateTable", TABLE)

    assert ours.call("ListTables", {}) == {"TableNames": ["Orders"]}
    assert theirs.call("ListTables", {}) == {"TableNames": []}
    engine.close()


def test_an_engine_of_others_stays_open() -> None:
    """Closing a backend closes its own engine and no other."""
    engine = Engine.open()
    EmbeddedBackend(engine, owned=False).close()

    assert EmbeddedBackend(engine).call("ListTables", {}) == {"TableNames": []}
    engine.close()
