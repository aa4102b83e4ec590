"""`tavola verify` finds every kind of damage that was planted, with its place, and none where there is none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from tavola.cli.main import app
from tavola.engine import Engine, StoreInUse, StoreLocked, verify
from tavola.engine.storage.files import connect_file
from tests.durability.damage import FILE_KINDS, damaged, make_store
from tests.durability.power import NAME

TABLE: dict[str, Any] = {
    "TableName": "notes",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "who", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-who",
            "KeySchema": [{"AttributeName": "who", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "VectorIndexes": [
        {
            "IndexName": "near",
            "VectorAttribute": {"AttributeName": "v"},
            "Dimensions": 2,
            "DistanceFunction": "COSINE",
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an index of each kind, a stream and an expiry."""
    path = tmp_path_factory.mktemp("verification") / "store.db"
    with Engine.open(path) as engine:
        engine.call("CreateTable", TABLE)
        engine.call(
            "UpdateTimeToLive",
            {"TableName": "notes", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ends"}},
        )
        for place in range(40):
            item: dict[str, Any] = {"pk": {"S": f"k{place}"}, "ends": {"N": str(4_000_000_000 + place)}}
            if place % 2:
                item["who"] = {"S": f"w{place % 3}"}
            if place % 3:
                item["v"] = {"L": [{"N": str(place)}, {"N": "1"}]}
            engine.call("PutItem", {"TableName": "notes", "Item": item})
        engine.call("DeleteItem", {"TableName": "notes", "Key": {"pk": {"S": "k0"}}})
    return path


@pytest.fixture(scope="module")
def put_aside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a backup made on demand (table store 2), and the backup of a deleted table (table store 3)."""
    path = tmp_path_factory.mktemp("backups") / "store.db"
    with Engine.open(path) as engine:
        engine.call("CreateTable", TABLE)
        _fill(engine, "notes")
        engine.call("CreateBackup", {"TableName": "notes", "BackupName": "friday"})
        engine.call("CreateTable", TABLE | {"TableName": "gone"})
        specification = {"PointInTimeRecoveryEnabled": True}
        engine.call(
            "UpdateContinuousBackups",
            {"TableName": "gone", "PointInTimeRecoverySpecification": specification},
        )
        _fill(engine, "gone")
        engine.call("DeleteTable", {"TableName": "gone"})
    return path


def _fill(engine: Engine, table: str) -> None:
    for place in range(10):
        item: dict[str, Any] = {"pk": {"S": f"k{place}"}, "who": {"S": f"w{place % 3}"}}
        engine.call("PutItem", {"TableName": table, "Item": item})


@pytest.fixture
def copied(sound: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    path = tmp_path / "store.db"
    shutil.copy(sound, path)
    return path


def _spoil(path: Path, *statements: str) -> None:
    """Change a store behind Tavola's back, with sound pages."""
    connection: apsw.Connection = connect_file(str(path), None)
    for statement in statements:
        connection.execute(statement)
    connection.close(True)


def test_a_sound_store_has_no_problems(sound: Path) -> None:
    """Everything is counted, and nothing is reported."""
    before = sound.read_bytes()

    report = verify(sound)

    assert report.problems == []
    assert (report.tables, report.items, report.changes) == (1, 39, 41)
    assert sound.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "place", "what"),
    [
        (
            "UPDATE rack1 SET item = CAST(replace(CAST(item AS TEXT), 'k7', 'kx') AS BLOB) WHERE id = 8",
            "row 8",
            "the checksum of the item does not match",
        ),
        ("UPDATE rack1 SET sum = sum + 1 WHERE id = 9", "row 9", "the checksum of the item does not match"),
        (
            "UPDATE rack1 SET size = size + 1 WHERE id = 5",
            'row 5, item {"pk":{"S":"k4"}}',
            "the stored size is",
        ),
        ("UPDATE rack1 SET key = x'00' WHERE id = 6", "row 6", "the key of the row differs"),
        ("UPDATE rack1 SET item = 'text', s1 = x'00' WHERE id = 7", "row 7", "does not have the form"),
        ("UPDATE rack1 SET x1 = x'00' WHERE id = 2", "row 2", "its entry in index by-who"),
        ("UPDATE rack1 SET x1 = NULL, s1 = NULL WHERE id = 2", "row 2", "its entry in index by-who"),
        ("UPDATE rack1 SET s1 = s1 + 1 WHERE id = 2", "row 2", "its entry in index by-who"),
        ("UPDATE rack1 SET v2 = zeroblob(8) WHERE id = 2", "row 2", "its entry in index near"),
        ("DELETE FROM rack1 WHERE id = 3", "table notes", "39 items of"),
        ("DELETE FROM rack1 WHERE id = 2", "index near", "the stored count is"),
        ("DELETE FROM log1 WHERE id = 20", "log of notes", "change 21 follows change 19"),
        ("UPDATE log1 SET at = 5 WHERE id = 30", "log of notes", "change 30 is dated before change 29"),
        ("UPDATE log1 SET new = x'7b' WHERE id = 12", "log of notes", "an image of change 12 cannot be read"),
        ("UPDATE record SET data = x'7b' WHERE kind = 'table'", "catalog", "definition of a table"),
    ],
)
def test_planted_damage_is_reported_with_its_place(
    copied: Path, statement: str, place: str, what: str
) -> None:
    """Each thing that the rows, the counts and the logs must agree on is looked at."""
    _spoil(copied, statement)

    report = verify(copied)

    assert any(place in each.place and what in each.what for each in report.problems), report.problems


def test_sound_backups_have_no_problems(put_aside: Path) -> None:
    """They are gone through as tables are."""
    report = verify(put_aside)

    assert report.problems == []
    assert (report.tables, report.backups, report.items) == (1, 2, 30)


@pytest.mark.parametrize(
    ("statement", "place", "what"),
    [
        (
            "UPDATE rack2 SET item = x'7b7d' WHERE id = 3",
            "backup friday",
            "the checksum of the item does not match",
        ),
        ("UPDATE rack2 SET key = x'00' WHERE id = 3", "backup friday", "the key of the row differs"),
        ("UPDATE rack2 SET size = size + 1 WHERE id = 3", "backup friday", "the stored size is"),
        ("UPDATE rack2 SET x1 = x'00' WHERE id = 3", "backup friday", "its entry in index by-who"),
        ("DELETE FROM rack2 WHERE id = 3", "backup friday", "the stored count is 10 items of 90 bytes"),
        ("DROP TABLE rack2", "backup friday", "cannot be read"),
        (
            "UPDATE rack3 SET sum = sum + 1 WHERE id = 3",
            "backup gone$DeletedTableBackup",
            "the checksum of the item does not match",
        ),
        ("DELETE FROM rack3 WHERE id = 3", "backup gone$DeletedTableBackup", "10 items of 90 bytes"),
        ("UPDATE record SET data = x'7b' WHERE kind = 'backup'", "catalog", "of a backup cannot be read"),
    ],
)
def test_damage_to_a_backup_is_reported_with_its_place(
    put_aside: Path, tmp_path: Path, statement: str, place: str, what: str
) -> None:
    """No one should learn that a backup is damaged when it is needed."""
    path = tmp_path / "store.db"
    shutil.copy(put_aside, path)
    _spoil(path, statement)

    report = verify(path)

    assert any(place in each.place and what in each.what for each in report.problems), report.problems


def test_rows_that_a_copy_still_needs_are_gone_through(tmp_path: Path) -> None:
    """A table that was deleted while it was backed up is kept for that, and looked at."""
    path = tmp_path / "store.db"
    with Engine.open(path) as engine:
        engine.run_background_work(0)  # so that nothing is done in passing
        engine.call("CreateTable", TABLE)
        _fill(engine, "notes")
        engine.call("CreateBackup", {"TableName": "notes", "BackupName": "friday"})
        engine.call("DeleteTable", {"TableName": "notes"})
    assert verify(path).problems == []
    _spoil(path, "UPDATE rack1 SET sum = sum + 1 WHERE id = 3")

    (problem,) = verify(path).problems

    assert "deleted table notes" in problem.place


@pytest.mark.parametrize("key", [None, "secret"])
@pytest.mark.parametrize(
    ("tree", "owner"),
    [
        ("rack1", "table wide"),
        ("rack1_x1", "index by-who of table wide"),
        ("sqlite_autoindex_rack1_1", "the key index of table wide"),
        ("log1", "the log of table"),
        ("record", "the catalog"),
    ],
)
def test_a_damaged_page_has_a_place(tmp_path: Path, key: str | None, tree: str, owner: str) -> None:
    """The page is reported by its number where pages have checksums, and whose it is always."""
    path = tmp_path / "store.db"
    with Engine.open(path, key=key) as engine:
        engine.call("CreateTable", TABLE | {"TableName": "wide"})
        for place in range(150):
            item = {"pk": {"S": f"{place:064}"}, "who": {"S": f"{place:064}"}}
            engine.call("PutItem", {"TableName": "wide", "Item": item})
    connection: apsw.Connection = connect_file(str(path), key)
    page = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' LIMIT 1", (tree,)
    ).get
    connection.close(True)
    spoilt = bytearray(path.read_bytes())
    spoilt[page * 4096 - 500] ^= 1
    path.write_bytes(bytes(spoilt))

    places = [each.place for each in verify(path, key=key).problems]

    result = "file" if key is not None else f"file, page {page}"
    assert any(place.startswith(f"{result}, of {owner}") for place in places), places


def test_what_is_no_store_is_not_called_a_damaged_one(tmp_path: Path) -> None:
    """A folder, a text, another database and an empty file are refused each in its words, and left as they are."""
    run: Callable[..., Any] = CliRunner().invoke
    text, empty, other = (tmp_path / name for name in ("proj.py", "empty.db", "other.db"))
    text.write_text("print('hello')\n" * 400)
    empty.touch()
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE t (a)")
    connection.close()

    folder = run(app, ["verify", str(tmp_path)])
    refused = {path: run(app, ["verify", str(path)]) for path in (text, empty, other)}

    assert (folder.exit_code, "is a folder" in folder.stderr) == (3, True)
    assert "is not a Tavola database file." in refused[text].stderr
    assert "is empty; it is not a Tavola database file yet" in refused[empty].stderr
    assert "is an SQLite database, but not a Tavola database file" in refused[other].stderr
    for result in refused.values():
        assert result.exit_code == 1
        assert "Choose a database file, or a new file name." in result.stderr
        assert "Restore" not in result.stderr
        assert "problem" not in result.stderr
    assert empty.stat().st_size == 0


def test_an_expiry_that_does_not_fit_is_reported(copied: Path) -> None:
    """The column that orders expiring items follows from the item as an index does."""
    connection: apsw.Connection = connect_file(str(copied), None)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(rack1)")]
    connection.execute(f"UPDATE rack1 SET {columns[-1]} = 7 WHERE id = 4")
    connection.close(True)

    (problem,) = verify(copied).problems

    assert "row 4" in problem.place
    assert "the stored expiry is 7" in problem.what


def test_every_problem_is_reported(copied: Path) -> None:
    """One damaged row does not hide the next."""
    _spoil(copied, "UPDATE rack1 SET sum = sum + 1 WHERE id IN (3, 5, 7)", "DELETE FROM log1 WHERE id = 9")

    report = verify(copied)

    assert sum("checksum" in each.what for each in report.problems) == 3
    assert sum(each.place == "log of notes" for each in report.problems) == 1


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_damaged_pages_are_reported(tmp_path: Path, kind: str) -> None:
    """Damage to the file's bytes is found, wherever it falls on data; where it is reported, it is reported as a problem."""
    random = Random(kind)
    make_store(tmp_path, random)
    whole = (tmp_path / "closed" / NAME).read_bytes()
    assert verify(tmp_path / "closed" / NAME).problems == []
    found = 0
    for trial in range(4):
        path = tmp_path / f"{trial}.db"
        path.write_bytes(damaged(whole, kind, random))
        found += bool(verify(path).problems)

    assert found == 4


def test_the_command_tells_a_person_and_a_program(sound: Path, copied: Path) -> None:
    """Sound: a sentence and 0. Not sound: each problem and 1, as lines or as JSON."""
    _spoil(copied, "UPDATE rack1 SET sum = sum + 1 WHERE id = 3")
    run: Callable[..., Any] = CliRunner().invoke

    good = run(app, ["verify", str(sound)])
    bad = run(app, ["verify", str(copied)])
    result = run(app, ["verify", str(copied), "--json"])
    missing = run(app, ["verify", str(copied.with_name("none.db"))])

    assert (good.exit_code, good.stdout) == (0, f"{sound}: no problems found.\n")
    assert bad.exit_code == 1
    assert bad.stdout.startswith(
        "table notes of 000000000000 in us-east-1, row 3: the checksum of the item does not match"
    )
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["schema"], report["items"], len(report["problems"])) == ("tavola.verify/1", 39, 1)
    assert missing.exit_code == 3


def test_a_store_that_is_open_is_not_verified(copied: Path) -> None:
    """One process owns a file; a second look would see it change."""
    opened = f"from tavola.engine import Engine\nEngine.open({str(copied)!r})"
    with Engine.open(copied):
        with pytest.raises(StoreInUse):
            verify(copied)
        # Nor does the look take the lock away from who has it.
        other = subprocess.run([sys.executable, "-c", opened], capture_output=True, text=True, check=False)
    assert "StoreInUse" in other.stderr
    assert CliRunner().invoke(app, ["verify", str(copied)]).exit_code == 0


def test_an_encrypted_store_is_verified_with_its_key(tmp_path: Path) -> None:
    """With the key it is read like another; a page that was changed does not decrypt."""
    path = tmp_path / "vault.db"
    with Engine.open(path, key="secret") as engine:
        engine.call("CreateTable", TABLE)
        for place in range(200):
            engine.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": f"k{place}" * 20}}})

    assert verify(path, key="secret").problems == []
    with pytest.raises(StoreLocked, match="is encrypted, but no key was passed"):
        verify(path)

    spoilt = bytearray(path.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    path.write_bytes(bytes(spoilt))
    assert verify(path, key="secret").problems
