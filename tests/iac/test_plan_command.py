"""`tavola plan`, `tavola deploy` and `tavola iac policies`, as somebody at a terminal or in a pipeline has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola import Engine, connect
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.cli.main import app as whole
from tavola.iac import Deployment
from tavola.model.document import design_of, write_document
from tavola.server.listener import running
from tests.iac import shop
from tests.iac.test_changes import WAS, index, keyed_otherwise, settings, without

DESIGN = "tests.iac.shop"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with no endpoint in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAVOLA_ENDPOINT", raising=False)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Any:
    """Return what a command printed, its standard output and its standard error."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == code, result.output
    return result


def document(name: str, design: Any) -> str:
    """Write a design as a document, and return its name."""
    Path(name).write_text(json.dumps(write_document(design)))
    return name


def test_the_commands_are_there() -> None:
    """`tavola` has them, and says what they do."""
    told = CliRunner().invoke(whole, ["--help"]).output

    assert " plan " in told
    assert " deploy " in told


def test_a_plan_of_two_designs_asks_nobody() -> None:
    """With --from, no store and no endpoint is needed; the exit code says whether anything changes."""
    was = document("was.json", without("shelves"))

    same = run("plan", DESIGN, "--previous-design", DESIGN)
    changed = run("plan", DESIGN, "--previous-design", was, code=Exit.FAILED)

    assert same.stdout == "No changes: shop matches the design.\n"
    assert "~ backfill  add the index shelves (region, shelf, price)" in changed.stdout
    assert changed.stdout.splitlines()[-1].startswith("1 change: 1 backfill")


def test_a_plan_tells_money_where_it_knows_how_much() -> None:
    """The units of a backfill cost what the price book says, once, and the book is named."""
    design = design_of(shop)
    table = design.tables[0]
    counted = [
        {**each, "items": 2_000_000} if each["name"] == "Product" else each
        for each in write_document(design)["tables"][0]["entities"]
    ]
    now = write_document(design)
    now["tables"][0]["entities"] = counted
    Path("now.json").write_text(json.dumps(now))

    found = run(
        "plan", "now.json", "--previous-design", document("was.json", without("shelves")), "--json", code=1
    )

    told = json.loads(found.stdout)
    work = told["tables"][0]["changes"][0]["work"]
    assert (work["items"], work["write_units"], work["usd"]) == (2_000_000, 2_000_000.0, "1.250")
    assert "us-east-1" in told["prices"]
    assert table.name == told["tables"][0]["table"]


def test_a_deployment_to_a_new_store_asks_first_and_is_resumable() -> None:
    """Nobody to ask and no --yes: nothing is made. With it the tables are; a second run has nothing to do."""
    refused = run("deploy", DESIGN, "--store", "shop.db", code=Exit.USAGE)
    assert "Add --yes" in refused.stderr
    assert not Path("shop.db").exists()
    dry = run("deploy", DESIGN, "--store", "shop.db", "--dry-run", code=Exit.FAILED)
    assert "+ create" in dry.stdout
    assert not Path("shop.db").exists()

    done = run("deploy", DESIGN, "--store", "shop.db", "--yes")
    again = run("deploy", DESIGN, "--store", "shop.db", "--yes")

    assert done.stdout.splitlines()[-1] == "Applied 1 change."
    assert again.stdout.startswith(
        "No changes: shop matches the design; see the notes for settings that are not compared"
    )
    assert "Stream consumers (counts) are neither compared nor deployed here" in again.stdout
    run("plan", DESIGN, "--store", "shop.db")


def test_what_takes_something_away_is_done_when_it_is_wanted() -> None:
    """An index that the design has no more stays without --drop, and the exit code says that something is left."""
    run("deploy", DESIGN, "--store", "shop.db", "--yes")
    now = document("now.json", without("listing"))

    kept = run("deploy", now, "--store", "shop.db", "--yes", code=Exit.FAILED)
    assert (
        "Not applied: shop: drop the index listing, which is not in the model. Apply it with --drop."
        in kept.stdout
    )
    run("deploy", now, "--store", "shop.db", "--yes", "--drop")

    run("plan", now, "--store", "shop.db")


def test_an_index_of_another_key_is_replaced_when_that_is_allowed() -> None:
    """It ends and is filled anew; without the word for it nothing is done."""
    run("deploy", DESIGN, "--store", "shop.db", "--yes")
    now = document("now.json", index("listing", projection="ALL"))

    kept = run("deploy", now, "--store", "shop.db", "--yes", code=Exit.FAILED)
    assert "Apply it with --allow-replacement" in kept.stdout
    done = json.loads(
        run("deploy", now, "--store", "shop.db", "--yes", "--allow-replacement", "--json").stdout
    )

    assert [each["kind"] for each in done["done"]] == ["replace index"]
    assert done["left"] == []


def test_a_deployment_goes_to_an_endpoint_as_well() -> None:
    """What works on a store works on a server, by the operations that every DynamoDB has."""
    with Engine.open() as engine, running(engine) as endpoint:
        there = ("--endpoint", endpoint.url, "--region", "us-east-1")
        done = run("deploy", DESIGN, *there, "--yes")
        run("plan", DESIGN, *there)

    assert done.stdout.splitlines()[-1] == "Applied 1 change."


def test_work_that_was_broken_off_goes_on() -> None:
    """A table that another run left half way is completed: what is under way is waited for, the rest is made."""
    with Engine.open() as engine, connect(engine) as db:
        half = Deployment(db, without("shelves"))
        half.apply(*(change for each in half.compare() for change in each.changes))
        rest = Deployment(db, WAS)

        changes = [change for each in rest.compare() for change in each.changes]
        assert [change.kind for change in changes] == ["add index"]
        rest.apply(*changes)

        assert [change for each in rest.compare() for change in each.changes] == []


KEYED = "it cannot be changed in place"


def test_a_table_of_another_key_is_left_with_all_its_items() -> None:
    """What is printed is what is done: the steps by hand are told, the table keeps its items, and the exit code says that it is left."""
    run("deploy", DESIGN, "--store", "shop.db", "--yes")
    with connect("file:shop.db") as db:
        db.create(shop.Note(tenant="a", note_id="1", text="kept"))
    now = document("now.json", keyed_otherwise())

    for options in ((), ("--drop", "--allow-replacement")):
        done = run("deploy", now, "--store", "shop.db", "--yes", *options, code=Exit.FAILED)
        assert KEYED in done.stdout
        steps = "never deletes a table: deploy the design under another name (--table-name)"
        assert steps in " ".join(done.stdout.split())
        assert "Not applied: shop: its key is" in done.stdout
        assert "Done" not in done.stdout
    run("deploy", now, "--store", "shop.db", "--table-name", "shop-2", "--yes")

    with connect("file:shop.db") as db:
        assert db.get(shop.Note.Key(tenant="a", note_id="1")) is not None
        assert db.call("ListTables", {})["TableNames"] == ["shop", "shop-2"]
        assert db.call("ListBackups", {})["BackupSummaries"] == []


def test_another_name_is_the_one_that_is_told() -> None:
    """With --table-name, what is listed and asked about is what is made, also in a store that is not there."""
    dry = run(
        "deploy", DESIGN, "--store", "a.db", "--table-name", "other", "--dry-run", "--json", code=Exit.FAILED
    )
    told = run("deploy", DESIGN, "--store", "a.db", "--table-name", "other", "--yes")
    refused = run("plan", DESIGN, "--previous-design", DESIGN, "--table-name", "other", code=Exit.USAGE)

    assert json.loads(dry.stdout)["tables"] == ["other"]
    assert told.stdout.startswith("Table other\n  + create")
    assert "--table-name" in refused.stderr


def test_a_dry_run_tells_a_program_what_would_be_done() -> None:
    """Each change is left, with what it needs, in a store that is there and in one that is not; the exit code says so."""
    dry = ("--dry-run", "--json")
    first = json.loads(run("deploy", DESIGN, "--store", "shop.db", *dry, code=Exit.FAILED).stdout)
    run("deploy", DESIGN, "--store", "shop.db", "--yes")
    now = document("now.json", without("listing"))
    second = json.loads(run("deploy", now, "--store", "shop.db", *dry, code=Exit.FAILED).stdout)
    third = json.loads(run("deploy", DESIGN, "--store", "shop.db", *dry).stdout)

    assert [(each["kind"], each["needs"]) for each in first["left"]] == [("create", None)]
    assert [(each["kind"], each["needs"]) for each in second["left"]] == [("drop index", "--drop")]
    assert third["left"] == []
    assert not any(told["done"] for told in (first, second, third))


def test_what_infrastructure_does_is_told_and_no_failure() -> None:
    """Replicas are left to infrastructure: deploy says so, each time, and has done its part."""
    now = document("now.json", settings(replicas=("eu-west-1",), stream="NEW_AND_OLD_IMAGES"))

    done = run("deploy", now, "--store", "shop.db", "--yes")
    planned = run("plan", now, "--store", "shop.db", code=Exit.FAILED)

    assert (
        "Not applied: shop: add a replica in eu-west-1: tavola deploy does not do this; apply the templates"
        in done.stdout
    )
    assert "> by IaC    add a replica in eu-west-1" in planned.stdout


def test_one_change_is_one_change() -> None:
    """Who cannot be asked is told how many changes there would be, in English."""
    refused = run("deploy", DESIGN, "--store", "shop.db", code=Exit.USAGE)

    assert "Applying 1 change needs confirmation" in refused.stderr


def test_policies_are_printed_for_a_role_or_for_all() -> None:
    """One role's document is what `tavola iam attach --file` takes; with --json each statement has its reasons."""
    one = json.loads(run("iac", "policies", DESIGN, "reader").stdout)
    every = json.loads(run("iac", "policies", DESIGN, "--json").stdout)

    assert one["Version"] == "2012-10-17"
    assert [role["role"] for role in every["roles"]] == [
        "reader", "writer", "service", "tenant", "consumer-counts", "backup", "deployer",
    ]  # fmt: skip
    assert every["roles"][0]["document"] == one
    assert "a visit" in str(every["roles"][0]["reasons"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("plan", "no.such.module"), "There is no module"),
        (("plan", "missing.json"), "missing.json"),
        (("plan", DESIGN, "--previous-design", "missing.json"), "missing.json"),
        (
            ("deploy", "tavola.apps.support_desk.model", "--store", "a.db", "--table-name", "x"),
            "needs a design with one table",
        ),
        (("iac", "policies", DESIGN, "nobody"), "Its roles are reader, writer"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(arguments: tuple[str, ...], why: str) -> None:
    """A module, a file, a store or an endpoint that is not there: what, why, and what to do; no traceback."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code not in (Exit.OK, Exit.INTERNAL)
    assert arguments[0] == "iac" or result.exit_code != Exit.FAILED  # which says that there are changes
    assert result.stderr.startswith("Error: Cannot ")
    assert why in result.stderr
    assert "Traceback" not in result.output


def test_one_says_changes_and_nothing_else() -> None:
    """A plan that could not be made is no difference; one of a store that is not there yet creates everything."""
    Path("no.db").write_text("a text, and no store")
    new = run("plan", DESIGN, "--store", "new.db", code=Exit.FAILED)

    for command in (("plan", DESIGN), ("deploy", DESIGN, "--yes")):
        assert CliRunner().invoke(app, [*command, "--store", "no.db"]).exit_code > Exit.FAILED
    assert "+ create" in new.stdout
    assert "new.db does not exist yet" in new.stderr
    assert not Path("new.db").exists()


def test_a_plan_says_which_option_a_change_takes() -> None:
    """Whoever reads a plan knows what deploy wants for it."""
    was = document("was.json", index("listing", projection="ALL"))
    rebuilt = run("plan", DESIGN, "--previous-design", was, code=Exit.FAILED)
    dropped = run(
        "plan", document("now.json", without("listing")), "--previous-design", DESIGN, code=Exit.FAILED
    )

    assert "! rebuild" in rebuilt.stdout
    assert "deploy needs --allow-replacement for this" in rebuilt.stdout
    assert "deploy needs --drop for this" in dropped.stdout
