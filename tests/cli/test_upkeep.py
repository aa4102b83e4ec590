"""`tavola tables`, `tavola verify --design` and `tavola backfill`, on a file and at a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tavola
from tavola.cli.designs import DesignLoadError, load_table, load_tables
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.engine import Engine
from tavola.server.listener import running

Run = Callable[..., Result]

DESIGN = """
from __future__ import annotations
from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, sort

class Shelf(Table, name="shelf"):
    by_author = Gsi(pk="g1pk", sk="g1sk")

class Book(Entity, table=Shelf):
    isbn: Attr[str]
    author: Attr[str]
    year: Attr[int] = attr(default=2000)

    class Key(PrimaryKey["Book"], pk="BOOK#{isbn}", sk="BOOK"):
        isbn: str

    class ByAuthor(Query["Book"], on=Shelf.by_author, pk="AUTHOR#{author}", sk="{year:04}"):
        author: str
        year: Sort[int] = sort()
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A design in a module of the folder where commands are run."""
    (tmp_path / "shelves.py").write_text(DESIGN)
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n")
    (tmp_path / "several.py").write_text("from shelves import Shelf\nfrom tests.client.desk import Desk\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield load_table("shelves:Shelf")
    for name in ("shelves", "broken", "several", "empty"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["store", "endpoint"])
def place(request: pytest.FixtureRequest, tmp_path: Path, library: Any) -> Iterator[tuple[Run, Any]]:
    """A way to run commands on three books, one of them stale, and to call DynamoDB there."""

    def runner(*where: str) -> Run:
        def run(*arguments: str, code: int = 0) -> Result:
            result = CliRunner().invoke(app, _with_design(arguments, "shelves:Shelf", *where))
            assert result.exit_code == code, result.output
            return result

        return run

    if request.param == "store":
        path = tmp_path / "store.db"
        with tavola.connect(f"file:{path}") as connection:
            _fill(connection, library)

        def look() -> list[dict[str, Any]]:
            with tavola.connect(f"file:{path}") as connection:
                return _items(connection)

        yield runner("--store", str(path)), look
        return
    with closing(Engine.open()) as engine, running(engine) as endpoint:
        with tavola.connect(endpoint.url, account="000000000000") as connection:
            _fill(connection, library)
            yield (
                runner("--endpoint", endpoint.url, "--account", "000000000000"),
                lambda: _items(connection),
            )


def _with_design(arguments: Sequence[str], design: str, *where: str) -> list[str]:
    """Return a command line with the design: `verify` takes it as an option, the other commands as an argument."""
    command, *options = arguments
    return [command, *(("--design", design) if command == "verify" else (design,)), *options, *where]


def _fill(db: tavola.Connection, table: Any) -> None:
    book = table.entities["Book"]
    db.create_tables(table)
    db.put_many(book(isbn=str(n), author="eco", year=1980 + n) for n in range(3))
    db.call(
        "UpdateItem",
        {
            "TableName": "shelf", "Key": {"pk": {"S": "BOOK#1"}, "sk": {"S": "BOOK"}},
            "UpdateExpression": "SET g1sk = :v", "ExpressionAttributeValues": {":v": {"S": "1999"}},
        },
    )  # fmt: skip


def _items(db: tavola.Connection) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = db.call("Scan", {"TableName": "shelf"})["Items"]
    return found


def test_stale_keys_are_told_and_repaired(place: tuple[Run, Any]) -> None:
    """A finding is a line and exit code 1; with --repair it is put right, and the next check is clean."""
    run, look = place

    found = run("verify", code=Exit.FAILED)
    told = json.loads(run("verify", "--json", code=Exit.FAILED).stdout)
    repaired = run("verify", "--repair")
    clean = json.loads(run("verify", "--json").stdout)

    assert "Book pk=BOOK#1 sk=BOOK: the key in by_author is stale" in found.stdout
    assert "--repair" in found.stderr
    assert told["schema"] == "tavola.verify-keys/1"
    assert [(f["index"], f["kind"], f["right"]["g1sk"]) for f in told["problems"]] == [
        ("by_author", "stale", {"S": "1981"})
    ]
    assert "1 items repaired" in repaired.stderr
    assert (clean["problems"], clean["items"]) == ([], 3)
    assert {item["g1sk"]["S"] for item in look()} == {"1980", "1981", "1982"}


def test_guards_are_told_and_made(tmp_path: Path, library: Any) -> None:
    """A field that became unique is told by verify and by a plan; a backfill guards it, and a value taken twice stays told."""
    (tmp_path / "kept.py").write_text(
        DESIGN.replace("author: Attr[str]", "author: Attr[str] = attr(unique=True)")
    )
    path = tmp_path / "store.db"
    with tavola.connect(f"file:{path}") as db:
        book = library.entities["Book"]
        db.create_tables(library)
        db.put_many(book(isbn=str(n), author=author) for n, author in enumerate(("eco", "mann", "eco")))

    def run(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, _with_design(arguments, "kept:Shelf", "--store", str(path)))
        assert result.exit_code == code, result.output
        return result

    try:
        plan = json.loads(run("backfill", "--dry-run", "--json").stdout)
        found = run("verify", code=Exit.FAILED)
        done = run("backfill", code=Exit.FAILED)
        left = json.loads(run("verify", "--repair", "--json", code=Exit.FAILED).stdout)
    finally:
        sys.modules.pop("kept", None)

    assert (plan["rewritten"], plan["taken"], plan["total_known"]) == (2, 1, True)
    assert found.stdout.count("no guard protects its author") == 3
    assert "2 guards of unique values created" in done.stderr
    assert "must be unique, but pk=BOOK#" in done.stdout
    assert [(each["kind"], each["field"]) for each in left["guards"]] == [("taken", "author")]


def test_a_plan_is_told_and_writes_nothing(place: tuple[Run, Any], library: Any, tmp_path: Path) -> None:
    """--dry-run says what would be rewritten and what it costs."""
    run, look = place
    before = look()
    (tmp_path / "was.json").write_text(json.dumps(tavola.design_document(library)))

    words = run("backfill", "--dry-run").stdout
    told = json.loads(
        run("backfill", "--dry-run", "--exact", "--json", "--previous-design", "was.json").stdout
    )

    assert "1 of 3 items of shelf must be rewritten" in words
    assert "< $0.01 on demand" in words
    assert (told["rewritten"], told["items"], told["differences"]) == (1, 3, [])
    assert look() == before


def test_a_backfill_is_done_and_told(place: tuple[Run, Any], tmp_path: Path) -> None:
    """The report says how many were rewritten; a second run rewrites none; the checkpoint is gone."""
    run, _ = place

    first = run("backfill", "--checkpoint", "at.json", "--entity", "Book", "--segments", "2")
    second = json.loads(run("backfill", "--json").stdout)

    assert "1 rewritten" in first.stderr
    assert (second["written"], second["left"]) == (0, 0)
    assert not (tmp_path / "at.json").exists()
    run("verify")


def test_tables_are_compared_with_their_design(place: tuple[Run, Any]) -> None:
    """A table that matches its design is exit code 0; differences are exit code 1, and deploy removes them."""
    run, _ = place

    assert "shelf matches the design" in run("plan").stdout
    missing = run("plan", "--table-name", "shelf-two", code=Exit.FAILED)
    assert "create" in missing.stdout
    run("deploy", "--table-name", "shelf-two", "--yes")
    [table] = json.loads(run("plan", "--table-name", "shelf-two", "--json").stdout)["tables"]
    assert table["changes"] == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["backfill", "--entity", "Paper"], "has no entity Paper"),
        (["backfill", "--dry-run", "--previous-design", "nowhere.json"], "cannot be read"),
        (["verify", "--repair", "--checkpoint", "checkpoint.json"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_told(library: Any, tmp_path: Path, arguments: list[str], reason: str) -> None:
    """A wrong argument is a sentence, not a traceback."""
    path = tmp_path / "store.db"
    with tavola.connect(f"file:{path}") as connection:
        _fill(connection, library)
    (tmp_path / "checkpoint.json").write_text("nonsense")

    result = CliRunner().invoke(app, _with_design(arguments, "shelves", "--store", str(path)))

    assert result.exit_code in (Exit.FAILED, Exit.USAGE, Exit.NOT_FOUND)
    assert reason in result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nowhere:Shelf", "no module named 'nowhere'"),
        ("shelves:Book", "has no table Book; its tables are Shelf"),
        ("shelves:Nothing", "has no table Nothing"),
        ("broken:Shelf", "no_such_module_anywhere"),
        ("empty", "declares no table"),
        ("several", "several has 2 tables"),
        ("shelves.py:Nothing", "has no table Nothing"),
        ("no-such.py:Shelf", "no-such.py does not exist"),
        ("shelves-two", "neither a module name nor an existing file"),
    ],
)
def test_what_is_no_design_is_refused(library: Any, text: str, reason: str) -> None:
    """The refusal says what was looked for, and what is there."""
    with pytest.raises(DesignLoadError, match=reason):
        load_table(text)


def test_a_module_stands_for_its_tables(library: Any) -> None:
    """Without a table's name, all tables that the module knows are meant."""
    assert [table.__name__ for table in load_tables("several")] == ["Shelf", "Desk"]


def test_a_design_that_is_none_is_a_mistake_of_the_command_line(library: Any) -> None:
    """Its exit code is that of a wrong command line; so is a check of neither file nor design."""
    run = CliRunner().invoke

    assert run(app, ["backfill", "nowhere", "--store", "x.db"]).exit_code == Exit.USAGE
    assert run(app, ["verify"]).exit_code == Exit.USAGE
    assert run(app, ["verify", "x.db", "--repair"]).exit_code == Exit.USAGE
