"""`tavola check` and `tavola probe`: verdicts for people and for programs, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola import connect
from tavola.cli.errors import Exit
from tavola.cli.main import app

DESK = "tavola.apps.support_desk.model"


def test_what_is_missing_is_told_with_its_places() -> None:
    """Transactions are missing on Alternator: the exit code says so, and the places that need them are named."""
    told = CliRunner().invoke(app, ["check", DESK, "--target", "alternator"])

    assert told.exit_code == Exit.FAILED
    assert "missing   transactions.write (TransactWriteItems): not supported" in told.stdout
    assert "  Ticket: open a ticket is written in a transaction" in told.stdout
    assert "as of 2026-08-21" in told.stdout
    assert "supported " not in told.stdout


def test_nothing_is_missing_on_aws() -> None:
    """Where all is met the exit code is 0, and --all tells what was looked at."""
    told = CliRunner().invoke(app, ["check", DESK, "--target", "aws", "--all", "--strict"])

    assert told.exit_code == Exit.OK, told.output
    assert "supported transactions.write" in told.stdout


def test_unknown_fails_only_where_it_is_asked_for() -> None:
    """What is unknown is told and is no failure, but with --strict."""
    runner = CliRunner()

    assert (
        runner.invoke(app, ["check", "tavola.apps.service_desk.model", "--target", "alternator"]).exit_code
        == Exit.OK
    )
    strict = runner.invoke(
        app, ["check", "tavola.apps.service_desk.model", "--target", "alternator", "--strict"]
    )
    assert strict.exit_code == Exit.FAILED
    assert "unknown   tags" in strict.stdout


def test_verdicts_as_json() -> None:
    """A program gets every verdict with its place, value and source."""
    told = CliRunner().invoke(app, ["check", DESK, "--target", "extenddb@1.0", "--json"])
    document = json.loads(told.stdout)

    assert (document["schema"], document["target"], document["version"]) == (
        "tavola.check/1",
        "extenddb",
        "1.0",
    )
    assert {
        "capability": "transactions.write",
        "place": "Ticket: open a ticket",
        "table": "prod-tickets-unified",
        "what": "is written in a transaction",
        "value": "yes",
        "remark": "",
        "source": document["verdicts"][0]["source"],
    } in document["verdicts"]


def test_verdicts_as_sarif(tmp_path: Path) -> None:
    """Code scanning services read what is not met, at the lines of its declarations."""
    CliRunner().invoke(
        app, ["check", DESK, "--target", "alternator", "--sarif", str(tmp_path / "found.sarif")]
    )
    [run] = json.loads((tmp_path / "found.sarif").read_text())["runs"]

    missing = [found for found in run["results"] if found["ruleId"] == "target-transactions.write"]
    assert {found["level"] for found in missing} == {"error"}
    [place] = missing[0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("support_desk/model.py")
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[found["ruleIndex"]]["id"] == found["ruleId"] for found in run["results"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([DESK, "--target", "oracle"], "Unknown target 'oracle'"),
        (["no_such_module", "--target", "aws"], "no_such_module"),
        ([DESK, "--target", "nothing.toml"], "cannot be read"),
        ([DESK, "--target", "alternator@²"], "invalid version"),
        (["json", "--target", "aws"], "declares no table"),
    ],
)
def test_what_is_not_there_is_refused(arguments: list[str], told: str) -> None:
    """A target or a design that is not there is told in three lines."""
    result = CliRunner().invoke(app, ["check", *arguments])

    assert result.exit_code != 0
    assert told in result.stderr
    assert "Traceback" not in result.output


def test_a_store_is_probed_and_checked_against(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probe of a store finds is a target for the check; the store has no table and no backup of the probe's left."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    probed = runner.invoke(
        app, ["probe", "--store", "desk.tavola", "--output", "mine.toml", "--timeout", "1"]
    )
    assert probed.exit_code == 0, probed.output
    checked = runner.invoke(app, ["check", DESK, "--target", "mine.toml", "--json"])

    with connect("file:desk.tavola") as db:
        assert db.call("ListTables", {})["TableNames"] == []
        assert db.call("ListBackups", {})["BackupSummaries"] == []
    values = {verdict["capability"]: verdict["value"] for verdict in json.loads(checked.stdout)["verdicts"]}
    assert values["transactions.write"] == "yes"
    assert values["iam.leading-keys"] == "unknown"


def test_a_probe_is_printed(tmp_path: Path) -> None:
    """Without a file the findings are printed, as lines or as JSON."""
    runner = CliRunner()
    store = ["--store", str(tmp_path / "desk.tavola"), "--timeout", "1"]

    assert "supported partiql" in runner.invoke(app, ["probe", *store]).stdout
    document = json.loads(runner.invoke(app, ["probe", *store, "--json"]).stdout)
    assert document["capabilities"]["batch-write"] == {"value": "yes", "remark": ""}
    assert document["capabilities"]["index.add-later"]["value"] == "yes"


def test_a_probe_that_cannot_write_asks_nothing(tmp_path: Path) -> None:
    """A file in a folder that is not there is refused before the first call, and the store is not made."""
    store, out = tmp_path / "desk.tavola", tmp_path / "none" / "mine.toml"

    told = CliRunner().invoke(app, ["probe", "--store", str(store), "--output", str(out)])

    assert told.exit_code == Exit.FAILED
    assert "there is no folder" in told.stderr
    assert not store.exists()


def test_a_version_that_decides_nothing_is_said_so() -> None:
    """Where nothing that a design needs came with a version, the check says that the version was of no matter."""
    runner = CliRunner()

    assert (
        "depends on the version"
        in runner.invoke(app, ["check", DESK, "--target", "alternator@2026.1"]).stderr
    )
    assert (
        "depends on the version" not in runner.invoke(app, ["check", DESK, "--target", "alternator"]).stderr
    )


def test_a_probe_of_nobody_says_so() -> None:
    """An address where nobody listens is told, and no traceback."""
    told = CliRunner().invoke(app, ["probe", "--endpoint", "http://127.0.0.1:9", "--region", "us-east-1"])

    assert told.exit_code in (Exit.UNREACHABLE, Exit.FAILED)
    assert "Cannot probe http://127.0.0.1:9" in told.stderr
    assert "Traceback" not in told.output
