"""What a program loads: only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source_tree import PACKAGE

NEVER = {"apsw", "tavola.engine"}  # for a program that has no engine in its process
SLOW = {
    "asyncio",
    "importlib.metadata",
    "tavola.client.connection",
    "tavola.client.explain",
    "tavola.prices",
    "tavola.protocol",
    "tomllib",
}


def loaded(script: str) -> set[str]:
    """Return the modules that a script has loaded when it ends."""
    run = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nprint(*sys.modules)"],
        env={"PYTHONPATH": str(PACKAGE.parent), "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_importing_entity_and_connect_loads_neither_client_nor_engine() -> None:
    """The two names that most programs import first cost little more than pydantic."""
    modules = loaded("from tavola import Entity, connect")

    assert not modules & (NEVER | SLOW)


@pytest.mark.parametrize(
    "call",
    [
        'connect("http://127.0.0.1:1")',
        'connect("aws:eu-west-1", credentials=Credentials("key", "secret"))',
        'connect_async("http://127.0.0.1:1")',
    ],
)
def test_connecting_to_an_endpoint_loads_no_engine(call: str) -> None:
    """A program that talks to AWS or to a server loads neither the engine nor SQLite."""
    modules = loaded(f"from tavola import Credentials, connect, connect_async\n{call}")

    assert not modules & NEVER
    assert "tavola.client.connection" in modules


def test_an_engine_in_this_process_is_loaded() -> None:
    """The check sees an engine where one is used."""
    assert loaded('from tavola import connect\nconnect("memory:").close()') >= NEVER


def test_a_server_loads_nothing_before_it_executes_itself_again() -> None:
    """What the launch loads is loaded twice."""
    modules = loaded("import tavola.cli.launch")

    assert {name for name in modules if name.startswith("tavola")} == {
        "tavola",
        "tavola.cli",
        "tavola.cli.launch",
    }
    assert not modules & {"click", "inspect", "json", "logging"}


def test_serving_without_a_studio_loads_none() -> None:
    """The options of the studio and of the applications are loaded with `--studio` only."""
    modules = loaded("import tavola.cli.commands.serve")

    assert not modules & {"tavola.cli.applications", "tavola.cli.studio_options", "tavola.model"}


def test_the_linter_loads_no_bill() -> None:
    """It computes capacities; months, payment options and reports are loaded by the cost commands."""
    modules = loaded("import tavola.design.lint")

    assert "tavola.design.cost.capacity" in modules
    assert not modules & {
        "tavola.design.cost.month",
        "tavola.design.cost.payments",
        "tavola.design.cost.report",
    }
