"""The import contracts in pyproject.toml match the packages; `make imports` checks them."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.architecture.source_tree import PACKAGE, ROOT


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def contracts() -> dict[str, dict[str, Any]]:
    """Return the contracts of pyproject.toml by name."""
    listed = project()["tool"]["importlinter"]["contracts"]
    return {contract["name"]: contract for contract in listed}


def exists(module: str) -> bool:
    """Return whether a dotted module or package exists."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def parenthesised(contract: dict[str, Any]) -> list[str]:
    """Return the full names that a layers contract marks as optional with parentheses."""
    return [
        f"{container}.{name}"
        for container in contract["containers"]
        for layer in contract["layers"]
        for name in re.findall(r"\((\w+)\)", layer)
    ]


def test_only_what_is_not_made_is_in_parentheses() -> None:
    """A module that exists is not in parentheses."""
    layered = [contract for contract in contracts().values() if contract["type"] == "layers"]

    assert not [name for contract in layered for name in parenthesised(contract) if exists(name)]


def test_parentheses_are_read() -> None:
    """The reading sees a name in parentheses and no other."""
    assert parenthesised({"containers": ["tavola"], "layers": ["cli | (attic)", "(cellar)"]}) == [
        "tavola.attic",
        "tavola.cellar",
    ]


@pytest.mark.parametrize("name", ["tavola.connections"])
def test_the_server_is_kept_from_the_wiring(name: str) -> None:
    """The server may not import the library's connections."""
    forbidden = contracts()["The server speaks DynamoDB, not Tavola"]["forbidden_modules"]

    assert (name in forbidden) == exists(name)


def test_botocore_is_guarded_once_it_is_used() -> None:
    """Import-linter knows only modules that exist, so the contract arrives with the first importer."""
    expected = [name for name in ("tavola.backends.aws", "tavola.backends.mocking") if exists(name)]
    guard = contracts().get("botocore stays in two backends", {"allowed_importers": []})

    assert guard["allowed_importers"] == expected


def test_entry_points_lead_somewhere() -> None:
    """A command or plugin that the package announces is there, and a plugin that is there is announced.

    An entry point without its module would stop every run of pytest in which Tavola is installed.
    """
    settings = project()["project"]
    plugins = settings.get("entry-points", {}).get("pytest11", {})
    announced = [*plugins.values(), *(script.partition(":")[0] for script in settings["scripts"].values())]

    assert [name for name in announced if not exists(name)] == []
    assert (plugins == {"tavola": "tavola.pytest_plugin"}) == exists("tavola.pytest_plugin")


def test_a_missing_module_is_missing() -> None:
    """The question whether a module exists can be answered with no."""
    assert exists("tavola.values")
    assert exists("tavola.clock")
    assert not exists("tavola.cellar")
