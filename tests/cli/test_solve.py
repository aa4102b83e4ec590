"""`tavola solve`: keys for a module that has none, on a page, as a document and as a module."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.model.document import design_of, read_document

MODULE = """
from datetime import datetime

from tavola import AccessPattern, Attr, Entity, Need, WritePattern

class Book(Entity, items=1000, writes=(WritePattern("buy a book", "put", per_second=1, item_bytes=500),)):
    isbn: Attr[str]
    author: Attr[str]
    bought_at: Attr[datetime]
    text: Attr[str]

ONE = Need("book", Book, "isbn", single=True, access=AccessPattern("a book", per_second=10))
BY_AUTHOR = Need("by author", Book, "author", "bought_at", AccessPattern("of an author", per_second=5, items=9))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with needs and no table, in the folder where the command is run."""
    (tmp_path / "books_asked_for.py").write_text(MODULE)
    (tmp_path / "books_unasked.py").write_text(MODULE.split("ONE =", maxsplit=1)[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "books_asked_for"


def test_a_page_says_the_keys_the_price_and_why(module: str) -> None:
    """Keys, the pattern that each follows, a price with its region and its month, and what was not taken."""
    told = CliRunner().invoke(app, ["solve", module])

    assert told.exit_code == 0, told.output
    assert "1 table and 1 index: $" in told.stdout
    assert "730 hours and prices of us-east-1" in told.stdout
    assert "Book: {author} / {bought_at}" in told.stdout
    assert "Alternative: only keys projected" in told.stdout


def test_a_document_is_a_design_that_other_commands_read(module: str, tmp_path: Path) -> None:
    """`--json` has the reasons too; `--output` writes the design alone, whole."""
    told = CliRunner().invoke(
        app, ["solve", module, "--json", "--output", "solved.json", "--alternatives", "1"]
    )

    found = json.loads(told.stdout)
    assert found["schema"] == "tavola.solve/1"
    assert [choice["pattern"] for choice in found["choices"]] == ["Simple Key", "Secondary Index"]
    written = json.loads((tmp_path / "solved.json").read_text())
    assert read_document(written) == read_document(found["design"])
    assert "Books" in CliRunner().invoke(app, ["design", "solved.json"]).stdout
    assert CliRunner().invoke(app, ["solve", "solved.json"]).exit_code == 0


def test_needs_may_stand_in_a_tuple_or_a_list(module: str, tmp_path: Path) -> None:
    """As the guide has them; and a constant as Python has it is printed as a module that imports."""
    text = (
        MODULE.split("ONE =", maxsplit=1)[0].replace("Need,", "Given, Need,")
        + """
NEEDS = [
    Need("class", [Book], ["isbn"], single=True, access=AccessPattern("a book", per_second=10)),
    Need("of a text", Book, ("author", Given("text", "=", "long")), access=AccessPattern("of a text", per_second=5)),
]
"""
    )
    (tmp_path / "books_listed.py").write_text(text)
    told = CliRunner().invoke(app, ["solve", "books_listed", "--output", "books_listed_solved.py"])

    assert told.exit_code == 0, told.output
    assert "where text is long" in told.stdout
    (table,) = design_of(importlib.import_module("books_listed_solved")).tables
    assert len(table.indexes) == 1


@pytest.mark.parametrize("style", ["native", "overloaded"])
def test_python_is_a_module_that_declares_it(module: str, style: str) -> None:
    """It is imported and compiled like one that a person wrote."""
    name = f"solved_books_{style}"
    assert (
        CliRunner().invoke(app, ["solve", module, "--style", style, "--output", f"{name}.py"]).exit_code == 0
    )

    (table,) = design_of(importlib.import_module(name)).tables
    assert [pattern.name for pattern in table.entities[0].patterns] == ["ByAuthor"]
    printed = CliRunner().invoke(app, ["solve", module, "--python", "--style", style]).stdout
    assert printed.strip() == Path(f"{name}.py").read_text().strip()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["books_unasked"], Exit.FAILED, "the design has no access patterns"),
        (["no_such_module"], Exit.USAGE, "There is no module named 'no_such_module' here."),
        (["books_asked_for", "--region", "mars-1"], Exit.USAGE, "no price book for region 'mars-1'"),
        (["books_asked_for", "--json", "--python"], Exit.USAGE, "--json and --python cannot be combined"),
        (
            ["books_asked_for", "--output", "no/such/folder/x.json"],
            Exit.FAILED,
            "cannot be written: No such file",
        ),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    module: str, arguments: list[str], code: Exit, words: str
) -> None:
    """What went wrong, why and what to do; no traceback, and nothing written."""
    told = CliRunner().invoke(app, ["solve", *arguments])

    assert words in told.stderr
    assert told.stderr.startswith("Error: ")
    assert told.exit_code == code
    assert "Traceback" not in told.output


def test_prices_are_chosen_as_for_a_bill(module: str) -> None:
    """A day and a book are taken too, as the sentence about an unknown region says."""
    old = CliRunner().invoke(app, ["solve", module, "--date", "2024-10-31"])
    other = CliRunner().invoke(app, ["solve", module, "--prices", "support-desk"])

    assert "prices of us-east-1, 2024-10-31" in old.stdout, old.output
    assert other.exit_code == 0, other.output
    both = CliRunner().invoke(app, ["solve", module, "--prices", "support-desk", "--region", "us-west-2"])
    assert "--prices and --region cannot be combined" in both.stderr
