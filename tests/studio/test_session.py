"""What a page knows first: where it is, what it may do, which tables there are; and a sample for who has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tavola.apps.support_desk import model
from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.handles import AsyncConnection
from tavola.model.document import Design, TableDesign, design_of
from tavola.protocol.faults import AccessDeniedFault, Fault, ResourceNotFoundFault
from tavola.studio.api.session import Session, SessionRequest, load_session
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, Studio, TablesLocation
from tests.studio.asking import Asking


@pytest.fixture
def asking() -> Iterator[Asking]:
    """A studio on an empty engine."""
    with closing(Engine.open()) as engine:
        yield Asking(engine)


def test_an_empty_store_has_no_tables_and_no_problem(asking: Asking) -> None:
    """No table is no error."""
    told = asking.ask("GET /session")

    assert told["tables"] == []
    assert told["problem"] is None
    assert told["watching"] is True


def test_tables_are_told_with_keys_and_indexes(asking: Asking) -> None:
    """A table has its key attributes with their types, its indexes, and how much there is."""
    asking.ask("POST /samples")
    (table,) = asking.ask("GET /session")["tables"]

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


def test_what_the_design_declares_and_nobody_made_is_missing() -> None:
    """A table of the design that is not there is told of, by its name."""
    with closing(Engine.open()) as engine:
        told = Asking(engine, design_of(model)).ask("GET /session")

    assert {table["status"] for table in told["tables"]} == {"MISSING"}
    assert "Ticket" in told["tables"][0]["entities"] + told["tables"][-1]["entities"]


def test_a_missing_table_names_its_command_and_is_made_from_the_design() -> None:
    """It tells the whole command of where the tables are, and makes a table as the design has it, once."""
    with closing(Engine.open()) as engine:
        where = TablesLocation("http", "http://127.0.0.1:8414", "eu-west-1")
        asking = Asking(engine, design_of(model), designs=("shop",), where=where)
        missing = asking.ask("GET /session")["tables"][0]
        made = asking.ask("POST /tables/make", {"table": missing["name"]})
        asking.ask("POST /tables/make", {"table": missing["name"]})
        told = {table["name"]: table for table in asking.ask("GET /session")["tables"]}

        assert missing["command"] == (
            "tavola deploy shop --endpoint http://127.0.0.1:8414 --region eu-west-1"
        )
        assert made == {"table": missing["name"]}
        assert told[missing["name"]]["status"] == "ACTIVE"
        assert told[missing["name"]]["command"] == ""
        with pytest.raises(RequestRefused, match="No design declares"):
            asking.ask("POST /tables/make", {"table": "nobody"})
        with pytest.raises(RequestRefused, match="Nothing may be changed"):
            Asking(engine, design_of(model), read_only=True).ask("POST /tables/make", {"table": "prod-x"})


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
        told = Asking(engine, Design((one, two, three)), declared=declared).ask("GET /session")
        bare = Asking(engine).ask("GET /session")

    assert told["first"] == "gamma"
    assert [(table["name"], table["design"]) for table in told["tables"]] == [
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


def test_of_very_many_tables_those_that_matter_are_told() -> None:
    """Past a hundred tables those of the design are told of, there or missing, and the one that is asked for."""
    design = design_of(model)
    there, *absent = sorted(table.name for table in design.tables)
    with closing(Engine.open()) as engine:
        made_tables(engine, [*(f"a{number:03}" for number in range(101)), there, "zulu"])
        plain = Asking(engine, design).ask("GET /session")
        asked = Asking(engine, design).ask("GET /session", {"table": "zulu"})
        nobody = Asking(engine, design).ask("GET /session", {"table": "nobody"})

    told = {table["name"]: table["status"] for table in plain["tables"]}
    assert plain["more_tables"] is True
    assert told[there] == "ACTIVE"
    assert {told[name] for name in absent} == {"MISSING"}
    assert "zulu" not in told
    assert {table["name"] for table in asked["tables"]} == {*told, "zulu"}
    assert {table["name"] for table in nobody["tables"]} == set(told)


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
        found = self.described[request["TableName"]]
        if isinstance(found, Fault):
            raise found
        return {"Table": found}

    async def close(self) -> None:
        return None


def session_of(backend: Backend) -> Session:
    studio = Studio(db=AsyncConnection(backend), where=TablesLocation("http", "http://x", "eu-west-1"))
    return asyncio.run(load_session(studio, SessionRequest()))


def test_a_table_that_is_being_deleted_leaves_the_others_to_be_seen() -> None:
    """AWS tells of a table that it deletes its name and status and little else; one that is gone by now is left out."""
    found = session_of(
        Backend(
            {
                "going": {"TableName": "going", "TableStatus": "DELETING"},
                "gone": ResourceNotFoundFault("Requested resource not found"),
                "secret": AccessDeniedFault("User is not authorized"),
            }
        )
    )

    assert [(table.name, table.status, table.keys) for table in found.tables] == [
        ("going", "DELETING", ()),
        ("secret", "UNKNOWN", ()),
    ]
    assert found.tables[1].problem is not None


def test_many_tables_are_asked_for_at_once_but_not_all() -> None:
    """A hundred tables far away take a few round trips, and no endpoint is stormed."""
    backend = Backend(
        {f"t{number:03}": {"TableName": f"t{number:03}", "TableStatus": "ACTIVE"} for number in range(100)}
    )
    found = session_of(backend)

    assert [table.name for table in found.tables] == list(backend.described)
    assert 1 < backend.most <= 8


def test_an_endpoint_that_is_gone_is_a_problem_of_the_session() -> None:
    """The studio stands where the endpoint does not: it says which, and what to do."""

    async def ask() -> str:
        async with connect_async("http://127.0.0.1:9", region="eu-west-1", account="000000000000") as db:
            where = TablesLocation("http", "http://127.0.0.1:9", "eu-west-1")
            studio = Studio(db=db, where=where, design=design_of(model), designs=("shop",))
            found = await load_session(studio, SessionRequest())
            assert found.problem is not None
            assert {table.status for table in found.tables} == {"UNKNOWN"}  # missing is what nobody can know
            return found.problem.code

    assert asyncio.run(ask()) == "endpoint-lost"


def test_the_sample_is_made_once(asking: Asking) -> None:
    """The sample has whole collections, and is not made over one that is there."""
    made = asking.ask("POST /samples")
    count = asking.engine.call("Scan", {"TableName": made["table"], "Select": "COUNT"})["Count"]

    assert count == made["items"] > 200
    with pytest.raises(RequestRefused, match="already"):
        asking.ask("POST /samples")


def test_the_sample_is_not_made_where_nothing_may_change() -> None:
    """Read-only is read-only."""
    with closing(Engine.open()) as engine:
        with pytest.raises(RequestRefused, match="Nothing may be changed"):
            Asking(engine, read_only=True).ask("POST /samples")

        assert engine.call("ListTables", {})["TableNames"] == []
