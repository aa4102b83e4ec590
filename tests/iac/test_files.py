"""Files: nothing of anybody's own is written over, and nothing is written half."""

from __future__ import annotations

from pathlib import Path

import pytest

from tavola.iac import FileNotOverwritten, IacError, write_files
from tavola.iac.files import is_generated, is_unchanged, sign, signature_line


def made(text: str, *tables: str, holds: tuple[str, ...] = ()) -> str:
    """Return a text as a writer gives it, for these tables, with what there is beside."""
    return sign(f"# {signature_line('terraform', tables or ('shop',), holds)}\n{text}\n")


def test_a_text_knows_whether_it_was_changed() -> None:
    """A signed text is ours and unchanged; with a letter more it is ours and changed; another's is neither."""
    text = made("a = 1")

    assert (is_generated(text), is_unchanged(text)) == (True, True)
    assert (is_generated(text + " "), is_unchanged(text + " ")) == (True, False)
    assert (is_generated("a = 1"), is_unchanged("a = 1")) == (False, False)


def test_what_was_written_is_written_again(tmp_path: Path) -> None:
    """A second run replaces what the first one wrote, and says what it left alone."""
    write_files(tmp_path / "new", {"a.tf": made("1"), "b.tf": made("1")})
    done = write_files(tmp_path / "new", {"a.tf": made("2"), "b.tf": made("1")})

    assert [each.outcome for each in done] == ["replaced", "unchanged"]
    assert (tmp_path / "new" / "a.tf").read_text() == made("2")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.tf", "b.tf"]


@pytest.mark.parametrize(
    ("text", "told"), [("mine", "is not Tavola's"), (made("1") + "x", "was changed since")]
)
def test_a_persons_file_stays(tmp_path: Path, text: str, told: str) -> None:
    """A file that is not Tavola's, or was changed since, stops the whole before anything is written; force says otherwise."""
    (tmp_path / "b.tf").write_text(text)
    with pytest.raises(FileNotOverwritten, match=told):
        write_files(tmp_path, {"a.tf": made("2"), "b.tf": made("2")})

    assert [path.name for path in tmp_path.iterdir()] == ["b.tf"]
    assert (tmp_path / "b.tf").read_text() == text
    write_files(tmp_path, {"b.tf": made("2")}, force=True)
    assert (tmp_path / "b.tf").read_text() == made("2")


def test_a_file_of_a_former_run_goes(tmp_path: Path) -> None:
    """A .tf that the design has no longer is taken away where that is meant, as Terraform would read it; a person's own is not."""
    write_files(tmp_path, {"tables.tf": made("1"), "alarms.tf": made("1")})
    (tmp_path / "own.tf").write_text("mine")
    with pytest.raises(FileNotOverwritten, match=r"alarms\.tf is of a former run, and would go"):
        write_files(tmp_path, {"tables.tf": made("1")})
    done = write_files(tmp_path, {"tables.tf": made("1")}, force=True)

    assert [(each.path.name, each.outcome) for each in done] == [
        ("tables.tf", "unchanged"),
        ("alarms.tf", "removed"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.tf", "tables.tf"]


def test_another_designs_files_stay(tmp_path: Path) -> None:
    """A file of tables that are none of this design is neither written over nor taken away, and stops the whole."""
    write_files(tmp_path, {"tables.tf": made("1", "orders")})
    for texts in ({"tables.tf": made("2", "stock")}, {"stock.tf": made("2", "stock")}):
        with pytest.raises(FileNotOverwritten, match="is of another design, with the table orders"):
            write_files(tmp_path, texts)
    write_files(tmp_path, {"stock.tf": made("2", "stock")}, force=True)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["stock.tf", "tables.tf"]


def test_a_design_that_grows_is_the_same_design(tmp_path: Path) -> None:
    """One table in common is enough: tables come without a word."""
    write_files(tmp_path, {"tables.tf": made("1", "orders")})
    done = write_files(tmp_path, {"tables.tf": made("2", "orders", "stock")})

    assert [each.outcome for each in done] == ["replaced"]


@pytest.mark.parametrize(
    ("former", "told"),
    [
        (made("1", "shop", "log"), "the table log, which would go"),
        (made("1", holds=("key",)), "the key"),
        (made("1", holds=("endpoint", "alarms")), "the alarms, the endpoint"),
        (made("1", holds=("function:shop-mail", "failures:shop-mail")), "the function shop-mail"),
        (made("1", holds=("replica:shop:eu-west-1",)), "the replica shop in eu-west-1"),
    ],
)
def test_what_would_go_stops_the_whole(tmp_path: Path, former: str, told: str) -> None:
    """What a file has and the new text has not, the next apply destroys: it is named, and only force leaves it out."""
    (tmp_path / "tables.tf").write_text(former)
    with pytest.raises(FileNotOverwritten, match=told):
        write_files(tmp_path, {"tables.tf": made("2")})

    assert (tmp_path / "tables.tf").read_text() == former
    assert [each.outcome for each in write_files(tmp_path, {"tables.tf": made("2")}, force=True)] == [
        "replaced"
    ]


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    """A place that cannot be written is a sentence with the place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(IacError, match="cannot be written"):
        write_files(tmp_path / "file" / "folder", {"a.tf": made("1")})
    (tmp_path / "a.tf").mkdir()
    with pytest.raises(FileNotOverwritten, match="is a folder"):
        write_files(tmp_path, {"a.tf": made("1")})
