"""`tavola export` and `tavola import`: a store's tables to files and back, and a server's."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tavola.cli.errors import CommandError, Exit
from tavola.cli.file_locations import format_from_name, locate_files
from tavola.cli.main import app
from tavola.engine import Engine
from tavola.server.listener import running

PEOPLE = "pk,sk,name\na,1,Ann\nb,2,Bob\n"


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command and return its exit code, its result and what it told the person."""
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a table of two people, imported from CSV by the command."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text(PEOPLE)
    store = folder / "shop.db"
    code, out, err = run(
        "import",
        str(folder / "people.csv"),
        *(
            "--table-name",
            "people",
            "--partition-key",
            "pk",
            "--sort-key",
            "sk:N",
            "--index",
            "by-name=name,sk:N",
        ),
        *("--store", str(store)),
    )
    assert (code, out, err) == (Exit.OK, "Imported 2 items into people.\n", "")
    return store


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    """The same store for one test alone, beside the file that it was imported from."""
    shutil.copy(made, tmp_path / "shop.db")
    shutil.copy(made.with_name("people.csv"), tmp_path / "people.csv")
    return tmp_path / "shop.db"


def scanned(store: Path, table: str) -> list[Any]:
    """Return the items of a store's table."""
    with Engine.open(store) as engine:
        items: list[Any] = engine.call("Scan", {"TableName": table})["Items"]
        return items


def test_a_store_is_exported_to_a_folder_and_imported_from_it(shop: Path, tmp_path: Path) -> None:
    """The export's own manifest tells format and compression."""
    out = tmp_path / "out"

    exported = run("export", "people", str(out), "--enable-recovery", "--store", str(shop), "--format", "ion")
    again = run(
        "import",
        str(out),
        "--table-name",
        "copy",
        "--partition-key",
        "pk",
        "--sort-key",
        "sk:N",
        "--store",
        str(shop),
    )

    (manifest,) = out.rglob("manifest-summary.json")
    assert exported[:2] == (Exit.OK, f"Exported 2 items of people to {manifest.parent}\n")
    assert again[:2] == (Exit.OK, "Imported 2 items into copy.\n")
    assert scanned(shop, "copy") == scanned(shop, "people")


def test_an_export_says_that_it_needs_recovery(shop: Path, tmp_path: Path) -> None:
    """And how to switch it on."""
    code, _, err = run("export", "people", str(tmp_path / "out"), "--store", str(shop))

    assert code != Exit.OK
    assert "--enable-recovery" in err


def test_rows_that_are_refused_end_in_a_log_beside_the_store(shop: Path, tmp_path: Path) -> None:
    """The exit code says that something is wrong, the result what is there."""
    source = tmp_path / "more.csv.gz"
    source.write_bytes(gzip.compress(b"c;3;Eve\nd;four;Dan\n"))

    code, out, err = run(
        *(
            "import",
            str(source),
            "--table-name",
            "more",
            "--partition-key",
            "pk",
            "--sort-key",
            "sk:N",
            "--store",
            str(shop),
        ),
        *("--delimiter", ";", "--header", "pk,sk,name"),
    )

    log = Path(out.strip().rpartition("see ")[2].rstrip("."))
    assert code == Exit.FAILED
    assert out.startswith("Imported 1 item into more; rejected 1 row, see ")
    assert log.is_relative_to(tmp_path / "shop.db.logs")
    assert json.loads(log.read_text())["itemS3Pointer"]["itemIndex"] == 1
    assert "ItemValidationError" in err


def test_a_server_reads_and_writes_its_own_buckets(tmp_path: Path) -> None:
    """A place in them is named as in S3; a path of this machine is not one of them."""
    (tmp_path / "buckets" / "data").mkdir(parents=True)
    (tmp_path / "buckets" / "data" / "people.csv").write_text(PEOPLE)
    with Engine.open(buckets=tmp_path / "buckets") as engine, running(engine) as endpoint:
        at = ("--endpoint", endpoint.url, "--region", "us-east-1", "--account", "000000000000")
        made = run(
            "import",
            "s3://data/people",
            "--format",
            "csv",
            "--table-name",
            "people",
            "--partition-key",
            "pk",
            *at,
        )
        done = run("export", "people", "s3://data/exports", "--enable-recovery", "--json", *at)
        refused = run("export", "people", str(tmp_path), *at)

    assert made[:2] == (Exit.OK, "Imported 2 items into people.\n")
    told = json.loads(done[1])
    assert (told["schema"], told["export"]["ItemCount"]) == ("tavola.export/1", 2)
    assert (tmp_path / "buckets" / "data" / told["export"]["ExportManifest"]).is_file()
    assert "s3://BUCKET/PREFIX" in refused[2]


def test_a_server_imports_what_it_has_exported(tmp_path: Path) -> None:
    """By the prefix, by the path that was printed, and with a format given: its export tells the rest."""
    (tmp_path / "buckets" / "data").mkdir(parents=True)
    (tmp_path / "buckets" / "data" / "people.csv").write_text(PEOPLE)
    with Engine.open(buckets=tmp_path / "buckets") as engine, running(engine) as endpoint:
        at = ("--endpoint", endpoint.url, "--region", "us-east-1", "--account", "000000000000")

        def import_(source: str, table: str, *more: str) -> tuple[int, str, str]:
            return run("import", source, "--table-name", table, "--partition-key", "pk", *more, *at)

        import_("s3://data/people.csv", "people")
        first = run("export", "people", "s3://data/exp", "--enable-recovery", "--format", "ion", *at)
        printed = first[1].split()[-1]
        done = [
            import_("s3://data/exp", "one"),
            import_(printed, "two"),
            import_(f"{printed}/data/", "three"),
            import_("s3://data/exp/", "four", "--format", "ion"),
            import_("s3://data/exp", "five", "--format", "ion", "--compression", "gzip"),
        ]
        run("export", "people", "s3://data/exp", *at)
        several = import_("s3://data/exp", "six")
        unknown = import_("s3://data/nope", "seven")
        nothing = import_("s3://data/nope", "eight", "--format", "csv")

    assert printed.startswith("s3://data/exp/AWSDynamoDB/")
    for (code, out, err), table in zip(done, ("one", "two", "three", "four", "five"), strict=True):
        assert (code, out, err) == (Exit.OK, f"Imported 2 items into {table}.\n", "")
    assert "contains 2 exports" in several[2]
    assert "no complete export in s3://data/nope" in unknown[2]
    assert nothing[0] == Exit.NOT_FOUND
    assert "contains no data" in nothing[2]


def test_a_server_s_refused_rows_are_told_by_the_place_of_their_log(tmp_path: Path) -> None:
    """The log lies beside the server's buckets, and no CloudWatch is asked."""
    buckets = tmp_path / "buckets"
    (buckets / "data").mkdir(parents=True)
    (buckets / "data" / "people.csv").write_text("pk,sk\na,1\nb,two\n")
    with Engine.open(buckets=buckets) as engine, running(engine) as endpoint:
        at = ("--endpoint", endpoint.url, "--region", "us-east-1", "--account", "000000000000")
        code, out, err = run(
            *(
                "import",
                "s3://data/people.csv",
                "--table-name",
                "people",
                "--partition-key",
                "pk",
                "--sort-key",
                "sk:N",
                *at,
            )
        )

    place = out.partition("see ")[2].split()[0]
    assert code == Exit.FAILED
    assert json.loads((buckets / place).read_text())["itemS3Pointer"]["itemIndex"] == 1
    assert place in err


def test_buckets_of_this_machine_are_looked_into(shop: Path, tmp_path: Path) -> None:
    """With a store, s3:// means a folder that can be seen: its manifests tell, and what is missing is missed."""
    at = ("--store", str(shop), "--buckets", str(tmp_path))
    keys = ("--partition-key", "pk", "--sort-key", "sk:N")
    run("export", "people", "s3://out/exp", "--enable-recovery", *at)

    again = run("import", "s3://out/exp", "--table-name", "copy", *keys, *at)
    nothing = run("import", "s3://out/nope", "--table-name", "none", *keys, *at)

    assert again[:2] == (Exit.OK, "Imported 2 items into copy.\n")
    assert "s3://out/nope does not exist" in nothing[2]


def test_a_folder_that_cannot_be_made_is_told(shop: Path, tmp_path: Path) -> None:
    """It is the person's mistake, and not Tavola's."""
    (tmp_path / "file").write_text("x")

    code, _, err = run(
        *(
            "export",
            "people",
            "s3://bucket/x",
            "--store",
            str(shop),
            "--buckets",
            str(tmp_path / "file" / "b"),
        )
    )

    assert code == Exit.FAILED
    assert "cannot be written: Not a directory" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("import", "nowhere.csv", "--table-name", "t", "--partition-key", "pk"), "does not exist"),
        (
            ("import", "{folder}/notes.txt", "--table-name", "ttt", "--partition-key", "pk"),
            "--format json, ion or csv",
        ),
        (("import", "{folder}/people.csv", "--table-name", "ttt", "--partition-key", "pk:X"), "is not a key"),
        (
            ("import", "{folder}/people.csv", "--table-name", "ttt", "--partition-key", "pk", "--index", "x"),
            "is not an index",
        ),
        (("import", "{folder}", "--table-name", "ttt", "--partition-key", "pk"), "have different formats"),
        (("export", "people", "{folder}", "--as-of", "1h", "--since", "2h"), "cannot be combined"),
        (("export", "people", "{folder}", "--until", "1h"), "need --since"),
        (("export", "people", "s3://bucket/x"), "--buckets"),
        (("export", "nobody", "{folder}/out"), "Table not found: nobody"),
    ],
)
def test_what_cannot_be_is_told_with_what_to_do(
    shop: Path, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    """One sentence, and an exit code that is not success."""
    (tmp_path / "notes.txt").write_text("x")
    filled = [each.format(folder=tmp_path) for each in arguments]

    code, _, err = run(*filled, "--store", str(shop))

    assert code != Exit.OK
    assert why in err.replace("\n", " ")


def test_a_file_that_another_begins_with_is_not_imported_with_it(shop: Path, tmp_path: Path) -> None:
    """A prefix of S3 would take both; the command takes neither."""
    (tmp_path / "people.csv.bak").write_text("x")

    code, _, err = run(
        "import",
        str(tmp_path / "people.csv"),
        "--table-name",
        "other",
        "--partition-key",
        "pk",
        "--store",
        str(shop),
    )

    assert code != Exit.OK
    assert "people.csv.bak" in err


def test_a_path_is_a_bucket_and_a_prefix(tmp_path: Path) -> None:
    """The nearest folder that has a bucket's name is the bucket; what is below is the prefix."""
    folder = tmp_path / "my data" / "x"
    folder.mkdir(parents=True)
    base = tmp_path.resolve()

    odd = locate_files(str(folder), None, local=True)
    plain = locate_files(str(tmp_path / "out"), None, local=True)

    assert (odd.root, odd.bucket, odd.prefix) == (base.parent, base.name, "my data/x")
    assert (plain.root, plain.bucket, plain.prefix) == (base, "out", "")
    with pytest.raises(CommandError):
        locate_files("/", None, local=True)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.csv", ("CSV", "NONE")),
        ("a.json.gz", ("DYNAMODB_JSON", "GZIP")),
        ("a.jsonl.zst", ("DYNAMODB_JSON", "ZSTD")),
        ("a.b.ion", ("ION", "NONE")),
        ("a.GZ", (None, "GZIP")),
        ("a", (None, "NONE")),
    ],
)
def test_a_name_tells_what_is_in_a_file(name: str, told: tuple[str | None, str]) -> None:
    """As far as it does."""
    assert format_from_name(name) == told
