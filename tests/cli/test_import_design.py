"""`tavola import` of a design, and `tavola design --workbench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.iac.formats import read_design
from tavola.model.document import read_document

FILES = Path(__file__).parents[1] / "iac" / "formats" / "files"


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command and return its exit code, its result and what it told the person."""
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["shop.yaml", "ledger", "described.json", "players.json", "schema.json"])
def test_a_design_of_any_format_becomes_our_document(name: str) -> None:
    """The document goes to the output, and what was left out to the person."""
    code, out, err = run("import", str(FILES / name))

    assert code == Exit.OK
    assert read_document(json.loads(out)) == read_design(FILES / name).design
    assert err.strip()


def test_a_document_is_written_to_a_file(tmp_path: Path) -> None:
    """With --output the file is written whole, and the command says what to do with it."""
    made = tmp_path / "design.json"
    code, out, err = run("import", str(FILES / "schema.json"), "--output", str(made))

    assert (code, out) == (Exit.OK, "")
    assert read_document(json.loads(made.read_text())) == read_design(FILES / "schema.json").design
    assert f"tavola lint {made}" in err
    assert [path.name for path in tmp_path.iterdir()] == ["design.json"]


def test_a_result_is_json_for_programs() -> None:
    """With --json the format, the design and the report are members of one line."""
    _, out, _ = run("import", str(FILES / "sam.json"), "--json")
    told = json.loads(out)

    assert (told["schema"], told["format"]) == ("tavola.import-design/1", "cloudformation")
    assert told["report"][0].keys() == {"place", "message"}


def test_samples_are_put_into_a_table_that_is_made_for_them(tmp_path: Path) -> None:
    """The sample items of a model fill a store; what is there already stays as it is."""
    store = str(tmp_path / "players.db")
    first = run("import", str(FILES / "players.json"), "--samples", "--store", store)
    second = run("import", str(FILES / "players.json"), "--samples", "--store", store)
    code, out, _ = run("read", "Players", "--key", "PK=PLAYER#1", "--key", "SK=ITEM#sword", "--store", store)

    assert (first[0], first[1]) == (Exit.OK, "Loaded 4 sample items into Players.\n")
    assert "4 items existed already" in second[1]
    assert code == Exit.OK
    assert "sword" in out


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("nothing.json",), Exit.NOT_FOUND, "no such file or folder"),
        ((str(FILES / "keyspaces.json"),), Exit.USAGE, "Amazon Keyspaces"),
        (
            (str(FILES / "players.json"), "--sort-key", "sk"),
            Exit.USAGE,
            "Add --table-name and --partition-key",
        ),
        (("s3://bucket/x",), Exit.USAGE, "Add --table-name and --partition-key"),
        ((str(FILES / "players.json"), "--table-name", "x"), Exit.USAGE, "--partition-key is missing"),
        (
            (str(FILES / "players.json"), "--table-name", "x", "--partition-key", "y", "--samples"),
            Exit.USAGE,
            "belong to a design import",
        ),
        ((str(FILES / "shop.yaml"), "--output", "no-folder/x.json"), Exit.FAILED, "cannot be written"),
    ],
)
def test_what_cannot_be_imported_is_told(arguments: tuple[str, ...], code: Exit, problem: str) -> None:
    """A file that is no design, or options of the other kind of import, end in a sentence."""
    done = run("import", *arguments)

    assert done[0] == code
    assert problem in " ".join(done[2].split())


def test_a_file_of_items_is_told_what_is_missing(tmp_path: Path) -> None:
    """Whoever forgets --table-name for a file of items is told both ways to go on."""
    (tmp_path / "people.json").write_text('{"Item": {"pk": {"S": "a"}}}\n')
    code, _, err = run("import", str(tmp_path / "people.json"))

    assert code == Exit.USAGE
    assert "to import items into a new table, add --table-name and --partition-key" in err


def test_a_design_is_written_for_the_workbench(tmp_path: Path) -> None:
    """An application's design becomes a model, and what the model cannot hold is told."""
    made = tmp_path / "model.json"
    code, out, err = run("design", "tavola.apps.support_desk.model", "--workbench", str(made))

    assert (code, out) == (Exit.OK, "")
    assert "TTL" in err
    assert len(read_design(made).design.tables[0].entities) > 3


def test_a_design_is_written_for_onetable(tmp_path: Path) -> None:
    """Each table becomes a schema in a folder, and what a schema cannot hold is told; two forms at once are refused."""
    code, out, err = run("design", "tavola.apps.support_desk.model", "--onetable", str(tmp_path / "schemas"))
    both = run("design", "tavola.apps.support_desk.model", "--onetable", str(tmp_path), "--json")

    assert (code, out) == (Exit.OK, "")
    assert "OneTable does not" in err
    found = [read_design(each) for each in (tmp_path / "schemas").iterdir()]
    assert {each.format for each in found} == {"onetable"}
    assert both[0] == Exit.USAGE


def test_a_model_is_written_onto_itself(tmp_path: Path) -> None:
    """With --base-model a model that did not change comes out as it was."""
    source = FILES / "players.json"
    _, out, _ = run("design", str(source), "--workbench", "-", "--base-model", str(source))
    refused = run("design", str(source), "--workbench", "-", "--base-model", str(FILES / "sam.json"))
    alone = run("design", str(source), "--base-model", str(source))

    assert json.loads(out) == json.loads(source.read_text())
    assert "not a NoSQL Workbench model" in refused[2]
    assert alone[0] == Exit.USAGE


def test_a_foreign_file_is_linted_as_it_is() -> None:
    """The linter takes a file of another tool by itself."""
    code, out, _ = run("lint", str(FILES / "sam.json"))

    assert code == Exit.FAILED
    assert "wildcard-policy" in out


def test_a_file_is_a_file_for_every_command(tmp_path: Path) -> None:
    """Whatever a design's file is called, commands take it as `import` does; a folder without one is told so."""
    for name in ("described.JSON", "described.txt", "described"):
        (tmp_path / name).write_text((FILES / "described.json").read_text())
        assert run("design", str(tmp_path / name))[0] == Exit.OK
    (tmp_path / "empty").mkdir()

    assert "contains no .tf file" in run("design", str(tmp_path / "empty"))[2]
    assert run("design", str(tmp_path / "none.json"))[0] == Exit.NOT_FOUND


def test_a_store_that_refuses_writes_no_document(tmp_path: Path) -> None:
    """Where samples cannot be stored, the item is named and --output is not written."""
    model = json.loads((FILES / "players.json").read_text())
    model["DataModel"][0]["TableFacets"][0]["TableData"][0]["email"] = {"S": "x" * 500_000}
    (tmp_path / "m.json").write_text(json.dumps(model))
    out = tmp_path / "design.json"
    where = ("--samples", "--store", str(tmp_path / "s.db"), "--output", str(out))
    code, _, err = run("import", str(tmp_path / "m.json"), *where)

    assert code != Exit.OK
    assert 'The sample item {"PK": {"S": "PLAYER#1"}' in " ".join(err.split())
    assert not out.exists()


def test_a_file_without_samples_says_so(tmp_path: Path) -> None:
    """Tables are made, and nobody is told that nothing is in them as if it were much."""
    code, out, _ = run("import", str(FILES / "schema.json"), "--samples", "--store", str(tmp_path / "s.db"))

    assert (code, out) == (
        Exit.OK,
        "Created Shop, Emails; the file has no sample items.\n",
    )


def test_one_change_is_written_onto_a_model(tmp_path: Path) -> None:
    """A number that is changed in our document is the one thing that changes in the file."""
    source, design, made = FILES / "players.json", tmp_path / "design.json", tmp_path / "made.json"
    run("import", str(source), "--output", str(design))
    document = json.loads(design.read_text())
    document["tables"][0]["settings"]["read_units"] = 9
    design.write_text(json.dumps(document))
    code, _, _ = run("design", str(design), "--workbench", str(made), "--base-model", str(source))
    expected = json.loads(source.read_text())
    expected["DataModel"][0]["ProvisionedCapacitySettings"]["ProvisionedThroughput"]["ReadCapacityUnits"] = 9

    assert code == Exit.OK
    assert json.loads(made.read_text()) == expected
