"""`tavola read`, `history`, `backup` and `restore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tavola
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.engine import Engine
from tavola.engine.storage.files import connect_file
from tavola.server.listener import running

Run = Callable[..., Result]


def _fill(connection: tavola.Connection) -> datetime:
    """Make a table with a past, and return a time in it."""
    connection.call(
        "CreateTable",
        {
            "TableName": "things",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    specification = {"PointInTimeRecoveryEnabled": True}
    connection.call(
        "UpdateContinuousBackups", {"TableName": "things", "PointInTimeRecoverySpecification": specification}
    )
    for number in range(5):
        item = {"pk": {"S": "p"}, "sk": {"N": str(number)}, "v": {"S": "old"}}
        connection.call("PutItem", {"TableName": "things", "Item": item})
    then = datetime.now(UTC)
    changed = {"pk": {"S": "p"}, "sk": {"N": "0"}, "v": {"S": "new"}}
    connection.call("PutItem", {"TableName": "things", "Item": changed})
    connection.call("DeleteItem", {"TableName": "things", "Key": {"pk": {"S": "p"}, "sk": {"N": "1"}}})
    return then


@pytest.fixture(params=["store", "endpoint"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Run, datetime]]:
    """A way to run commands on a table, in a file or behind a server, and a time in its past."""

    def runner(*where: str) -> Run:
        def run(*arguments: str, code: int = 0) -> Result:
            result = CliRunner().invoke(app, [*arguments, *where])
            assert result.exit_code == code, result.output
            return result

        return run

    if request.param == "store":
        path = tmp_path / "store.db"
        with tavola.connect(f"file:{path}") as connection:
            then = _fill(connection)
        yield runner("--store", str(path)), then
        return
    with closing(Engine.open()) as engine, running(engine) as endpoint:
        with tavola.connect(endpoint.url, account="000000000000") as connection:
            then = _fill(connection)
        yield runner("--endpoint", endpoint.url, "--account", "000000000000"), then


def items(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_items_are_read(place: tuple[Run, datetime]) -> None:
    """By key, by query, and all of them; one a line, their number beside."""
    run, _ = place

    one = run("read", "things", "--key", "pk=p", "--key", "sk=0")
    by_json = run("read", "things", "--key", '{"pk": {"S": "p"}, "sk": {"N": "0"}}')
    queried = run(
        *("read", "things", "--query", "pk = :p", "--values", '{":p": {"S": "p"}}'),
        *("--reverse", "--limit", "2"),
    )
    whole = run("read", "things", "--scan")
    none = run("read", "things", "--key", "pk=q", "--key", "sk=0")

    assert items(one) == items(by_json) == [{"pk": {"S": "p"}, "sk": {"N": "0"}, "v": {"S": "new"}}]
    assert [item["sk"]["N"] for item in items(queried)] == ["4", "3"]
    assert len(items(whole)) == 4
    assert "4 items" in whole.stderr
    assert items(none) == []


def test_items_are_read_as_of_a_time(place: tuple[Run, datetime]) -> None:
    """Everything that was done since is undone."""
    run, then = place

    whole = run("read", "things", "--as-of", then.isoformat())
    one = run("read", "things", "--key", "pk=p", "--key", "sk=0", "--as-of", then.isoformat())
    recent = run("read", "things", "--as-of", "0s")

    assert {item["v"]["S"] for item in items(whole)} == {"old"}
    assert len(items(whole)) == 5
    assert items(one)[0]["v"] == {"S": "old"}
    assert len(items(recent)) == 4


def test_the_history_of_an_item(place: tuple[Run, datetime]) -> None:
    """Every version with its time, for a person and for a program."""
    run, _ = place

    lines = run("history", "things", "--key", "pk=p", "--key", "sk=1").stdout.splitlines()
    told = items(run("history", "things", "--key", "pk=p", "--key", "sk=1", "--json"))

    assert [line[27:].split()[0] for line in lines] == [
        "no",
        '{"pk":{"S":"p"},"sk":{"N":"1"},"v":{"S":"old"}}',
        "deleted",
    ]
    assert [version["item"] is None for version in told] == [True, False, True]
    assert told[0]["since"] is None
    assert told[1]["since"].endswith("Z")


def test_a_backup_from_its_making_to_its_end(place: tuple[Run, datetime]) -> None:
    """It is made, listed, described, restored and deleted."""
    run, _ = place

    made = run("backup", "create", "things", "first")
    (listed,) = json.loads(run("backup", "list", "things", "--json").stdout)["backups"]
    arn = listed["BackupArn"]
    lines = run("backup", "list").stdout
    described = json.loads(run("backup", "describe", arn, "--json").stdout)["backup"]
    restored = run("backup", "restore", arn, "--target-table", "again")
    run("backup", "delete", arn)
    after = run("backup", "list")

    assert "4 items" in made.stdout
    assert "AVAILABLE" in lines
    assert described["SourceTableDetails"]["ItemCount"] == 4
    assert restored.stdout.startswith("Restored again: 4 items")
    assert after.stdout == ""
    assert len(items(run("read", "again"))) == 4


def test_a_table_is_restored(place: tuple[Run, datetime]) -> None:
    """To a time, or to the latest there is, always as a new table."""
    run, then = place

    past = run("restore", "things", "--as-of", then.isoformat(), "--target-table", "past", "--json")
    run("restore", "things", "--target-table", "latest", "--no-indexes")
    same = run("restore", "things", "--target-table", "things", code=Exit.USAGE)

    assert json.loads(past.stdout)["items"] == 5
    assert len(items(run("read", "past"))) == 5
    assert len(items(run("read", "latest"))) == 4
    assert "cannot be restored over itself" in same.stderr


def test_what_cannot_be_done_is_told(place: tuple[Run, datetime], tmp_path: Path) -> None:
    """A sentence says what is wrong and what would do."""
    run, _ = place

    told = [
        run("read", "nothing", code=Exit.NOT_FOUND).stderr,
        run("read", "things", "--as-of", "yesterday", code=Exit.USAGE).stderr,
        run("read", "things", "--as-of", "400d", code=Exit.FAILED).stderr,
        run("read", "things", "--key", "x=1", code=Exit.USAGE).stderr,
        run("read", "things", "--key", "{", code=Exit.USAGE).stderr,
        run("read", "things", "--query", "pk = :p", "--scan", code=Exit.USAGE).stderr,
        run(
            "backup",
            "describe",
            "arn:aws:dynamodb:us-east-1:000000000000:table/things/backup/0",
            code=Exit.FAILED,
        ).stderr,
    ]

    for wanted, found in zip(
        (
            *(
                "Requested resource not found",
                "'yesterday' is not a time",
                "Table 'things' can be read as of times",
            ),
            *(
                "Use --key pk=VALUE --key sk=VALUE",
                "--key is not valid JSON",
                "Use one of them",
                "Backup not found",
            ),
        ),
        told,
        strict=True,
    ):
        assert wanted in found


@pytest.mark.parametrize("text", ["10 minutes", "nonsense", "", "2026-13-40"])
def test_a_time_that_is_none(place: tuple[Run, datetime], text: str) -> None:
    """The sentence lists every form that is taken, and says nothing of DynamoDB, whose words it is not."""
    run, _ = place

    read = run("read", "things", "--as-of", text, code=Exit.USAGE).stderr
    restored = run("restore", "things", "--target-table", "new", "--as-of", text, code=Exit.USAGE).stderr

    for told in (read, restored):
        for form in ("30s", "10m", "2h", "1d", "2026-11-16T10:00:00Z", "+01:00", "1794823200", "UTC"):
            assert form in told
        assert "DynamoDB" not in told


def test_a_time_that_is_not_kept(place: tuple[Run, datetime]) -> None:
    """A read is refused in words of a read, a restore in AWS's."""
    run, _ = place

    read = run("read", "things", "--as-of", "30d", code=Exit.FAILED).stderr
    restored = run("restore", "things", "--target-table", "new", "--as-of", "30d", code=Exit.FAILED).stderr

    assert "Table 'things' can be read as of times from" in read
    assert "RestoreDateTime" not in read
    assert "RestoreDateTime" in restored


def test_the_past_is_kept_from_now_on(tmp_path: Path) -> None:
    """Where it is not kept, the remedy is the command that keeps it."""
    path = tmp_path / "store.db"
    where = ("--store", str(path))
    with tavola.connect(f"file:{path}") as connection:
        connection.call(
            "CreateTable",
            {
                "TableName": "plain",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    run: Callable[..., Result] = CliRunner().invoke

    refused = run(app, ["read", "plain", "--as-of", "0s", *where])
    enabled = run(app, ["backup", "enable", "plain", "--days", "7", *where])
    again = run(app, ["backup", "enable", "plain", "--json", *where])
    read = run(app, ["read", "plain", "--as-of", "0s", *where])
    wrong = run(app, ["backup", "enable", "plain", "--days", "99", *where])

    assert "`tavola backup enable plain`" in refused.stderr
    assert enabled.stdout.startswith("Point-in-time recovery of plain is on since ")
    assert enabled.stdout.endswith("for 7 days.\n")
    assert json.loads(again.stdout)["days"] == 7
    assert read.exit_code == Exit.OK
    assert wrong.exit_code == Exit.FAILED


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A command on a file looks in the region that is set, as one on a server does."""
    path = tmp_path / "store.db"
    with tavola.connect(f"file:{path}", region="eu-west-1") as connection:
        _fill(connection)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    arguments = ["read", "things", "--store", str(path)]

    elsewhere = CliRunner().invoke(app, arguments)
    monkeypatch.setenv(variable, "eu-west-1")
    there = CliRunner().invoke(app, arguments)
    over = CliRunner().invoke(app, [*arguments, "--region", "us-east-1"])

    assert elsewhere.exit_code == over.exit_code == Exit.NOT_FOUND
    assert len(items(there)) == 4


def test_a_restore_that_is_given_up_is_told(tmp_path: Path) -> None:
    """A backup that lacks an item is not restored as if it were whole; the command says what it found."""
    path = tmp_path / "store.db"
    where = ("--store", str(path))
    with tavola.connect(f"file:{path}") as connection:
        _fill(connection)
    run: Callable[..., Result] = CliRunner().invoke
    run(app, ["backup", "create", "things", "first", *where])
    (listed,) = json.loads(run(app, ["backup", "list", "--json", *where]).stdout)["backups"]
    spoilt = connect_file(str(path), None)
    spoilt.execute("DELETE FROM rack2 WHERE id = 2")
    spoilt.close(True)

    restored = run(app, ["backup", "restore", listed["BackupArn"], "--target-table", "again", *where])

    assert restored.exit_code == Exit.FAILED
    assert "The restore of again was started and then cancelled" in restored.stderr
    assert "expected 4 of" in restored.stderr
    assert run(app, ["read", "again", *where]).exit_code == Exit.NOT_FOUND


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    """No file is made by reading it."""
    path = tmp_path / "nothing.db"

    result = CliRunner().invoke(app, ["read", "things", "--store", str(path)])

    assert result.exit_code == Exit.NOT_FOUND
    assert not path.exists()


def test_a_server_that_is_not_there() -> None:
    """The remedy is to start one."""
    result = CliRunner().invoke(app, ["read", "things", "--endpoint", "http://127.0.0.1:9"])

    assert result.exit_code == Exit.UNREACHABLE
    assert "tavola serve" in result.stderr
