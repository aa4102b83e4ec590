"""`tavola design`: a design on a page and as a document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app

DESIGN = """
from tavola import Attr, Collection, Entity, PrimaryKey, Table, member

class Shelf(Table, name="shelf"):
    pass

class Book(Entity, table=Shelf):
    isbn: Attr[str]

    class Key(PrimaryKey["Book"], pk="BOOK#{isbn}", sk="BOOK"):
        isbn: str

class Copies(Collection, pk="BOOK#{isbn}"):
    isbn: str
    book: Book | None = member()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with a design, in the folder where the command is run."""
    (tmp_path / "shelf_of_books.py").write_text(DESIGN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "shelf_of_books"


def test_a_design_is_a_page(module: str) -> None:
    """A module's design is printed with its keys, patterns and collections."""
    told = CliRunner().invoke(app, ["design", module])

    assert told.exit_code == 0, told.output
    assert "| Book | Key | isbn | `BOOK#{isbn}` | `BOOK` | all |" in told.stdout
    assert "**Copies**" in told.stdout


def test_a_design_goes_to_a_document_and_back(module: str, tmp_path: Path) -> None:
    """The document of a design shows the same page as the module it was made from."""
    document = CliRunner().invoke(app, ["design", module, "--json"]).stdout
    (tmp_path / "design.json").write_text(document)

    assert json.loads(document)["tables"][0]["settings"]["name"] == "shelf"
    page = CliRunner().invoke(app, ["design", "design.json"])
    assert page.stdout == CliRunner().invoke(app, ["design", module]).stdout


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module", "There is no module named 'no_such_module' here."),
        ("none.json", "none.json: no such file or folder"),
        ("shelf_of_books:Attic", "has no table Attic"),
    ],
)
def test_what_is_no_design_is_told(module: str, target: str, words: str) -> None:
    """A target that names no design is refused with what it is looked for as."""
    told = CliRunner().invoke(app, ["design", target])

    assert told.exit_code != Exit.OK
    assert words in told.stderr
