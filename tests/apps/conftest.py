"""The applications' suites on every target: in memory, and with TAVOLA_TEST_TARGETS=http,local on our endpoint and DynamoDB Local."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola import AsyncConnection, Connection, Engine, ResourceInUseFault, connect, connect_async
from tavola.apps.shell import AppSettings
from tavola.clock import pause
from tavola.server.listener import running
from tests.differential.opponents import dynamodb_local_url

KINDS = os.environ.get("TAVOLA_TEST_TARGETS", "memory").split(",")  # of memory, http, local

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """If targets are named, deselect the tests that use no target and start no program: `make test` runs them."""
    if "TAVOLA_TEST_TARGETS" in os.environ:
        items[:] = [
            item
            for item in items
            if "target" in getattr(item, "fixturenames", ()) or item.get_closest_marker("slow") is not None
        ]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a test's tables are, and the prefix of their names there."""

    kind: str  # "memory", "http" or "local"
    address: str
    prefix: str

    def connect(self, **more: Any) -> AsyncConnection:
        """Return a connection; each one in memory has its own store."""
        return connect_async(self.address, table_prefix=self.prefix, **more)

    def settings(self, **more: Any) -> AppSettings:
        """Return the settings of an application on this target."""
        return AppSettings(target=self.address, table_prefix=self.prefix, **more)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of our server for the whole session; tests are separated by their table names."""
    with Engine.open() as engine, running(engine) as address:
        yield address.url


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The address of AWS's DynamoDB Local for the whole session."""
    with dynamodb_local_url() as url:
        yield url


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """One of the targets that the applications run on; tables that a test leaves are deleted."""
    kind = request.param
    prefix = f"t{uuid.uuid4().hex[:10]}-"
    if kind == "memory":
        yield Target(kind, "memory:", "")
        return
    found = Target(kind, request.getfixturevalue("endpoint" if kind == "http" else "dynamodb_local"), prefix)
    yield found
    with connect(found.address) as db:
        for name in db.call("ListTables").get("TableNames", []):
            if name.startswith(prefix):
                _delete(db, name)


def _delete(db: Connection, name: str) -> None:
    """Delete a table, after waiting for a vector index that is still being created."""
    while True:
        try:
            db.call("DeleteTable", {"TableName": name})
        except ResourceInUseFault:
            pause(0.01)
        else:
            return


@pytest.fixture
def run() -> Iterator[Run[Any]]:
    """Run coroutines, all of one test on one event loop."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def served() -> Iterator[Callable[[FastAPI], TestClient]]:
    """Start applications with their lifespan, as a server would, and return a client of each."""
    with ExitStack() as opened:

        def start(application: FastAPI) -> TestClient:
            client = TestClient(application, base_url="http://127.0.0.1", raise_server_exceptions=False)
            return opened.enter_context(client)

        yield start
