"""One suite for every backend: memory, file, HTTP, and AWS if TAVOLA_TEST_AWS=1."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import NAMES, Answer, Backend, Http, opened
from tests.conformance.requests import table_request
from tests.conformance.sentences import create_tables

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the current state in this folder, so that `-m conformance` finds it."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("conformance")


@pytest.fixture(scope="session", params=NAMES)
def opened_backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Backend, DynamoDBClient]]:
    """One backend for the whole session; tests use distinct table names."""
    with opened(request.param, tmp_path_factory.mktemp("conformance")) as found:
        client = found.client()
        yield found, client
        client.close()


@pytest.fixture
def backend(opened_backend: tuple[Backend, DynamoDBClient]) -> Iterator[Backend]:
    """The backend, on for this test alone: other tests of the process must not be answered by it."""
    found, _ = opened_backend
    with found.on():
        yield found


@pytest.fixture
def client(backend: Backend, opened_backend: tuple[Backend, DynamoDBClient]) -> DynamoDBClient:
    """A boto3 client of the backend."""
    assert backend is opened_backend[0]
    return opened_backend[1]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """A server, for tests of HTTP alone."""
    with opened("http", tmp_path_factory.mktemp("server")) as found:
        assert isinstance(found, Http)
        yield found


@pytest.fixture
def fresh() -> Callable[[], str]:
    """A table name that no one has used."""
    return lambda: f"t-{uuid.uuid4().hex}"


@pytest.fixture
def tables(client: DynamoDBClient, fresh: Callable[[], str]) -> Iterator[Callable[..., str]]:
    """Create a table from words (see `table_request`) and return its name; it is deleted after the test."""
    made: list[str] = []

    def make(keys: str = "pk", **described: Any) -> str:
        name = fresh()
        client.create_table(**table_request(name, keys, **described))
        made.append(name)
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
        return name

    yield make
    for name in made:
        try:
            client.delete_table(TableName=name)
        except client.exceptions.ResourceNotFoundException:
            pass


@pytest.fixture
def send_raw(backend: Backend) -> Callable[..., Answer]:
    """Send a raw body: bytes, or a request to encode as JSON."""

    def send(operation: str, body: bytes | Mapping[str, Any]) -> Answer:
        return backend.send_raw(operation, body if isinstance(body, bytes) else json.dumps(body).encode())

    return send


@pytest.fixture(scope="session")
def sentences(opened_backend: tuple[Backend, DynamoDBClient]) -> None:
    """The tables that the rows of refusals use."""
    create_tables(*opened_backend)
