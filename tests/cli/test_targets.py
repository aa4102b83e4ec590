"""Targets: whose tables a command means, and what it tells of where it looked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.exits import Exit
from tavola.cli.main import app
from tavola.cli.targets import TargetOptions, TargetRefused
from tavola.connections import connect

TABLE = {
    "TableName": "Tickets",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a table in eu-west-1."""
    path = str(tmp_path / "shop.db")
    with connect(f"file:{path}", region="eu-west-1") as connection:
        connection.call("CreateTable", TABLE)
    return path


@pytest.mark.parametrize("variable", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_a_store_is_asked_in_the_region_of_the_environment(store: str, variable: str) -> None:
    """As a server is; the option goes before."""
    run = CliRunner().invoke
    unset = {"AWS_DEFAULT_REGION": None, "AWS_REGION": None}

    there = run(app, ["read", "Tickets", "--store", store], env={**unset, variable: "eu-west-1"})
    elsewhere = run(
        app,
        ["read", "Tickets", "--store", store, "--region", "us-east-1"],
        env={**unset, variable: "eu-west-1"},
    )

    assert there.exit_code == Exit.OK, there.stderr
    assert elsewhere.exit_code == Exit.NOT_FOUND
    assert "looked in us-east-1 of account 000000000000, where there is no table" in elsewhere.stderr


def test_a_missing_table_is_told_with_those_there_are(store: str) -> None:
    """A mistyped name is seen beside the right one."""
    run = CliRunner().invoke(app, ["read", "Tikets", "--store", store, "--region", "eu-west-1"])

    assert run.exit_code == Exit.NOT_FOUND
    assert "the tables are Tickets" in run.stderr


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """And is not said to be missing."""
    with pytest.raises(TargetRefused, match="is a folder"), TargetOptions(store=tmp_path).open():
        pass


def test_the_endpoint_of_aws_names_its_region_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region from the environment stands in where it names none, and is no contradiction where it does."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    for endpoint, region, wanted in (
        ("aws:eu-west-1", "us-east-2", "eu-west-1"),
        ("aws:", "us-east-2", "us-east-2"),
    ):
        with TargetOptions(endpoint=endpoint, region=region).open() as target:
            assert getattr(target.connection.backend, "region", None) == wanted
