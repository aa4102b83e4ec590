"""Fixtures for pytest: an empty DynamoDB for each test.

Pytest loads this module in every project where Tavola is installed, so it imports nothing until a fixture is used. All fixtures
of a test share one engine: a table made by `tavola_table` is visible to boto3 inside `tavola_mock` and to other SDKs at
`tavola_endpoint`. Nothing is shared between tests or processes, so tests run in any order and under xdist.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    import tavola
    import tavola.connections

DEFAULT_REGION = "us-east-1"
ACCOUNT = "000000000000"


class MakeTable(Protocol):
    """The type of `tavola_table`."""

    def __call__(
        self,
        name: str,
        /,
        *,
        indexes: Mapping[str, Mapping[str, str]] | None = None,
        local_indexes: Mapping[str, Mapping[str, str]] | None = None,
        **keys: str,
    ) -> str:
        """Create a table and return its name."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """The address of a test's server, and the settings that an SDK needs to use it."""

    url: str
    region: str
    account: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a process that uses an AWS SDK: `subprocess.run(…, env={**os.environ, **these})`."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.url,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.url,
            "AWS_ENDPOINT_URL_STS": self.url,
            "AWS_ACCESS_KEY_ID": self.account,
            "AWS_SECRET_ACCESS_KEY": "tavola",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
        }


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one setting: the region of a test's tables."""
    parser.addini(
        "tavola_region",
        "region of the tables that Tavola's fixtures create; default: the one that boto3 would use",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that emulates production behaviour in a test's engine."""
    config.addinivalue_line(
        "markers",
        "tavola_emulate(switches): behaviour that the test's engine emulates, such as 'conflicts=20ms,seed=7'",
    )


def _region(config: pytest.Config) -> str:
    """Return the region of a test's tables, which is where the code under test looks for them."""
    region: str = config.getini("tavola_region")
    if region:
        return region
    if "botocore" in sys.modules:
        from tavola.backends.mocking import configured_region

        return configured_region() or DEFAULT_REGION
    return DEFAULT_REGION


@pytest.fixture
def tavola_clock() -> tavola.ManualClock:
    """A clock that the test advances; the engine of a test that uses this fixture runs on it."""
    from tavola.clock import ManualClock

    return ManualClock()


@pytest.fixture(name="tavola")
def tavola_connection(request: pytest.FixtureRequest) -> Iterator[tavola.Connection]:
    """A connection to an engine in memory, empty for each test."""
    from tavola.connections import EngineSettings, connect

    settings: EngineSettings = {}
    if "tavola_clock" in request.fixturenames:
        settings["clock"] = request.getfixturevalue("tavola_clock")
    emulated = request.node.get_closest_marker("tavola_emulate")
    if emulated is not None:
        settings["emulate"] = emulated.args[0]
    with connect("memory:", region=_region(request.config), **settings) as connection:
        yield connection


@pytest.fixture
def tavola_mock(tavola: tavola.Connection, pytestconfig: pytest.Config) -> Iterator[tavola.mocks.Mocked]:
    """Redirects the test's boto3 and botocore calls to the test's engine; see `tavola.mock`."""
    from tavola.mocks import mock

    with mock(engine=_engine_of(tavola), region=_region(pytestconfig)) as mocked:
        yield mocked


@pytest.fixture
def tavola_endpoint(tavola: tavola.Connection, pytestconfig: pytest.Config) -> Iterator[Served]:
    """A server on a free port with the test's engine behind it, for SDKs of any language.

    `url` is its address, `region` the region of its tables; `environment` holds the variables that point an SDK of another
    process at it.
    """
    from tavola.server.listener import running

    with running(_engine_of(tavola)) as endpoint:
        yield Served(endpoint.url, _region(pytestconfig), ACCOUNT)


@pytest.fixture
def tavola_table(tavola: tavola.Connection) -> MakeTable:
    """Create tables concisely: `tavola_table("Orders", pk="S", sk="N", indexes={"by_mail": {"mail": "S"}})`.

    Keys are attribute names with their types, the partition key first. `indexes` are global; `local_indexes` name only their
    sort key; all project whole items. The table is on demand and active when its name is returned. For other settings, use
    `tavola.call("CreateTable", …)`.
    """

    def make(
        name: str,
        /,
        *,
        indexes: Mapping[str, Mapping[str, str]] | None = None,
        local_indexes: Mapping[str, Mapping[str, str]] | None = None,
        **keys: str,
    ) -> str:
        tavola.call("CreateTable", table_request(name, keys, indexes or {}, local_indexes or {}))
        tavola.call("DescribeTable", {"TableName": name})
        return name

    return make


def table_request(
    name: str,
    keys: Mapping[str, str],
    indexes: Mapping[str, Mapping[str, str]],
    local_indexes: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return the CreateTable request of `tavola_table`."""
    types = dict(keys)
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema(name, tuple(keys)),
    }
    hash_name = next(iter(keys))
    for member, described in (
        ("GlobalSecondaryIndexes", {index: tuple(named) for index, named in indexes.items()}),
        (
            "LocalSecondaryIndexes",
            {index: (hash_name, *named) for index, named in local_indexes.items()},
        ),
    ):
        if described:
            request[member] = [
                {
                    "IndexName": index,
                    "KeySchema": _key_schema(index, names),
                    "Projection": {"ProjectionType": "ALL"},
                }
                for index, names in described.items()
            ]
    for named in (*indexes.values(), *local_indexes.values()):
        for attribute, type_name in named.items():
            if types.setdefault(attribute, type_name) != type_name:
                raise TypeError(f"{attribute} is {types[attribute]} in one key and {type_name} in another")
    request["AttributeDefinitions"] = [
        {"AttributeName": attribute, "AttributeType": type_name} for attribute, type_name in types.items()
    ]
    return request


def _key_schema(owner: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    if not 1 <= len(names) <= 2:
        got = ", ".join(names) or "nothing"
        raise TypeError(f"{owner} needs a partition key and at most one sort key, and got {got}")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _engine_of(connection: tavola.Connection) -> tavola.Engine:
    from tavola.backends.embedded import EmbeddedBackend
    from tavola.engine import Engine

    assert isinstance(connection.backend, EmbeddedBackend)
    assert isinstance(connection.backend.engine, Engine)
    return connection.backend.engine
