"""What a page knows first: where it is, what it may do, which tables there are; and a sample for who has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tavola.apps.support_desk import model
from tavola.client.connection import AsyncConnection
from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.model.document import Design, TableDesign, design_of
from tavola.protocol.faults import AccessDeniedFault, Fault, ResourceNotFoundFault
from tavola.studio.api.session import SessionRequest, StudioSession, load_session
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, Studio, TablesLocation
from tests.studio.api_client import ApiClient


@pytest.fixture
def api() -> Iterator[ApiClient]:
    """A studio on an empty engine."""
    with closing(Engine.open()) as engine:
        yield ApiClient(engine)


def test_an_empty_store_has_no_tables_and_no_problem(api: ApiClient) -> None:
    """No table is no error."""
    response = api.call("GET /session")

    assert response["tables"] == []
    assert response["problem"] is None
    assert response["watching"] is True


def test_tables_are_listed_with_keys_and_indexes(api: ApiClient) -> None:
    """A table has its key attributes with their types, its indexes, and how much there is."""
    api.call("POST /samples")
    (table,) = api.call("GET /session")["tables"]

    assert [(key["name"], key["type"], key["role"]) for key in table["keys"]] == [
        ("pk", "S", "HASH"),
        ("sk", "S", "RANGE"),
    ]
    assert [(index["name"], index["projection"]) for index in table["indexes"]] == [
        ("orders-by-status", "INCLUDE")
    ]
    assert table["stream"] is True
    assert table["billing"] == "on-demand"
    assert table["designed"] is False


def test_a_declared_table_that_does_not_exist_is_missing() -> None:
    """A declared table that does not exist is listed as missing."""
    with closing(Engine.open()) as engine:
        response = ApiClient(engine, design_of(model)).call("GET /session")

    assert {table["status"] for table in response["tables"]} == {"MISSING"}
    assert "Ticket" in response["tables"][0]["entities"] + response["tables"][-1]["entities"]


def test_a_missing_table_names_its_command_and_is_made_from_the_design() -> None:
    """A missing table has the complete deploy command, and can be created from the design once."""
    with closing(Engine.open()) as engine:
        where = TablesLocation("http", "http://127.0.0.1:8414", "eu-west-1")
        api = ApiClient(engine, design_of(model), designs=("shop",), where=where)
        missing = api.call("GET /session")["tables"][0]
        made = api.call("POST /tables/create", {"table": missing["name"]})
        api.call("POST /tables/create", {"table": missing["name"]})
        response = {table["name"]: table for table in api.call("GET /session")["tables"]}

        assert missing["command"] == (
            "tavola deploy shop --endpoint http://127.0.0.1:8414 --region eu-west-1"
        )
        assert made == {"table": missing["name"]}
        assert response[missing["name"]]["status"] == "ACTIVE"
        assert response[missing["name"]]["command"] == ""
        with pytest.raises(RequestRefused, match="No loaded design declares"):
            api.call("POST /tables/create", {"table": "nobody"})
        with pytest.raises(RequestRefused, match="read-only"):
            ApiClient(engine, design_of(model), read_only=True).call(
                "POST /tables/create", {"table": "prod-x"}
            )


def named(table: TableDesign, name: str) -> TableDesign:
    return replace(table, settings=replace(table.settings, name=name))


def test_the_first_table_is_the_largest_of_the_first_design() -> None:
    """Who comes sees what the first design is about, whatever its tables are called."""
    whole = design_of(model)
    one, two, three = (named(whole.tables[0], name) for name in ("alpha", "beta", "gamma"))
    declared = (DeclaredDesign("shop", Design((two, three))), DeclaredDesign("gallery", Design((one,))))
    with closing(Engine.open()) as engine:
        made_tables(engine, ["aaa", "alpha", "beta", "gamma"])
        engine.call("PutItem", {"TableName": "gamma", "Item": {"pk": {"S": "some"}}})
        response = ApiClient(engine, Design((one, two, three)), declared=declared).call("GET /session")
        bare = ApiClient(engine).call("GET /session")

    assert response["first"] == "gamma"
    assert [(table["name"], table["design"]) for table in response["tables"]] == [
        ("alpha", "gallery"), ("beta", "shop"), ("gamma", "shop"), ("aaa", ""),
    ]  # fmt: skip
    assert bare["first"] == "aaa"


def made_tables(engine: Engine, names: list[str]) -> None:
    for name in names:
        engine.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )


def test_of_very_many_tables_the_relevant_ones_are_listed() -> None:
    """Of more than a hundred tables, those of the design, existing or missing, and the requested one are listed."""
    design = design_of(model)
    there, *absent = sorted(table.name for table in design.tables)
    with closing(Engine.open()) as engine:
        made_tables(engine, [*(f"a{number:03}" for number in range(101)), there, "zulu"])
        plain = ApiClient(engine, design).call("GET /session")
        request = ApiClient(engine, design).call("GET /session", {"table": "zulu"})
        nobody = ApiClient(engine, design).call("GET /session", {"table": "nobody"})

    response = {table["name"]: table["status"] for table in plain["tables"]}
    assert plain["more_tables"] is True
    assert response[there] == "ACTIVE"
    assert {response[name] for name in absent} == {"MISSING"}
    assert "zulu" not in response
    assert {table["name"] for table in request["tables"]} == {*response, "zulu"}
    assert {table["name"] for table in nobody["tables"]} == set(response)


class Backend:
    """An endpoint with tables that are described as they are given; calls take a moment, and are counted."""

    def __init__(self, described: dict[str, dict[str, Any] | Fault]) -> None:
        self.described = described
        self.under_way = self.most = 0

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "ListTables":
            return {"TableNames": list(self.described)}
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        result = self.described[request["TableName"]]
        if isinstance(result, Fault):
            raise result
        return {"Table": result}

    async def close(self) -> None:
        return None


def session_of(backend: Backend) -> StudioSession:
    studio = Studio(db=AsyncConnection(backend), where=TablesLocation("http", "http://x", "eu-west-1"))
    return asyncio.run(load_session(studio, SessionRequest()))


def test_a_table_that_is_being_deleted_leaves_the_others_to_be_seen() -> None:
    """AWS describes a table being deleted by little more than name and status; a deleted one is left out."""
    result = session_of(
        Backend(
            {
                "going": {"TableName": "going", "TableStatus": "DELETING"},
                "gone": ResourceNotFoundFault("Requested resource not found"),
                "secret": AccessDeniedFault("User is not authorized"),
            }
        )
    )

    assert [(table.name, table.status, table.keys) for table in result.tables] == [
        ("going", "DELETING", ()),
        ("secret", "UNKNOWN", ()),
    ]
    assert result.tables[1].problem is not None


def test_many_tables_are_described_concurrently() -> None:
    """A hundred tables far away take a few round trips, and no endpoint is stormed."""
    backend = Backend(
        {f"t{number:03}": {"TableName": f"t{number:03}", "TableStatus": "ACTIVE"} for number in range(100)}
    )
    result = session_of(backend)

    assert [table.name for table in result.tables] == list(backend.described)
    assert 1 < backend.most <= 8


def test_an_endpoint_that_is_gone_is_a_problem_of_the_session() -> None:
    """If the endpoint does not respond, the session names it and the remedy."""

    async def call() -> str:
        async with connect_async("http://127.0.0.1:9", region="eu-west-1", account="000000000000") as db:
            where = TablesLocation("http", "http://127.0.0.1:9", "eu-west-1")
            studio = Studio(db=db, where=where, design=design_of(model), designs=("shop",))
            result = await load_session(studio, SessionRequest())
            assert result.problem is not None
            assert {table.status for table in result.tables} == {"UNKNOWN"}  # missing is what nobody can know
            return result.problem.code

    assert asyncio.run(call()) == "endpoint-lost"


def test_the_sample_is_made_once(api: ApiClient) -> None:
    """The sample has whole collections, and is not made over one that is there."""
    made = api.call("POST /samples")
    count = api.engine.call("Scan", {"TableName": made["table"], "Select": "COUNT"})["Count"]

    assert count == made["items"] > 200
    with pytest.raises(RequestRefused, match="already"):
        api.call("POST /samples")


def test_the_sample_is_not_made_where_nothing_may_change() -> None:
    """Read-only is read-only."""
    with closing(Engine.open()) as engine:
        with pytest.raises(RequestRefused, match="read-only"):
            ApiClient(engine, read_only=True).call("POST /samples")

        assert engine.call("ListTables", {})["TableNames"] == []
