"""`tavola app terraform-review ingest` and `analyse`: reviews from outside, without a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tavola.cli.exits import Exit
from tests.apps.processes import asked, done, failed, started

pytestmark = pytest.mark.slow  # a process a test: `make applications` runs it

COMMAND = ("app", "terraform-review")


def result(run: str, **more: Any) -> dict[str, Any]:
    """Return a review result as a reviewer writes it."""
    return {
        "spacelift_run_id": run,
        "stack_id": "network",
        "created_by": "reviewer-1",
        "status": "completed",
        "terraform_code": 'resource "aws_s3_bucket" "logs" {}',
        "overall_risk_score": 0.5,
        **more,
    }


def test_results_are_stored_once(tmp_path: Path) -> None:
    """One result, then the same with another on lines from standard input; a run with another result is a conflict."""
    file = tmp_path / "reviews.db"
    one = tmp_path / "review.json"
    one.write_text(json.dumps(result("run-1"), indent=2))
    store = ("--store", str(file))
    first = json.loads(done(*COMMAND, "ingest", str(one), *store, "--json"))
    lines = "\n".join(json.dumps(result(f"run-{number}")) for number in (1, 2))
    told = done(*COMMAND, "ingest", "-", *store, text=lines).splitlines()
    code, conflict = failed(
        *COMMAND, "ingest", "-", *store, text=json.dumps(result("run-1", overall_risk_score=0.9))
    )
    with started(*COMMAND, "--port", "0", *store) as it:
        found = asked(f"{it.told['url']}/reviews/{first['review_id']}")
        it.stop()

    assert (first["schema"], first["version"], first["replayed"]) == ("tavola.review/1", 1, False)
    assert len(told) == 2
    assert told[0] == f"{first['review_id']} version 1: completed, there already"
    assert told[1].endswith("version 1: completed")
    assert code == Exit.CONFLICT
    assert "run-1" in conflict
    assert found[0] == 200


def test_what_is_no_result_is_told(tmp_path: Path) -> None:
    """Nothing is stored of a file with a mistake, and the mistake is named without what is in the file."""
    store = ("--store", str(tmp_path / "reviews.db"))
    missing, _ = failed(*COMMAND, "ingest", str(tmp_path / "nothing.json"), *store)
    code, told = failed(
        *COMMAND, "ingest", "-", *store, text=json.dumps([result("run-1"), {"stack_id": "x"}])
    )
    usage, _ = failed(*COMMAND, "ingest", "-")

    assert (missing, code, usage) == (Exit.NOT_FOUND, Exit.FAILED, Exit.USAGE)
    assert "spacelift_run_id" in told


def test_an_analysis_is_stored_as_a_review(tmp_path: Path) -> None:
    """What the program finds becomes a review of the stack; one that breaks down is stored as failed, with exit code 1."""
    code = tmp_path / "infra"
    code.mkdir()
    (code / "main.tf").write_text('resource "aws_s3_bucket" "logs" {}\n')
    program = tmp_path / "checkov"
    report = {"check_type": "terraform", "results": {"failed_checks": []}, "summary": {"resource_count": 1}}
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--version*) echo 3.0.0;; *) echo '{json.dumps(report)}';; esac\n"
    )
    program.chmod(0o755)
    store = ("--store", str(tmp_path / "reviews.db"), "--stack", "network", "--checkov", str(program))
    kept = json.loads(done(*COMMAND, "analyse", str(code), *store, "--run", "run-7", "--json"))
    program.write_text("#!/bin/sh\nexit 9\n")
    broken, told = failed(*COMMAND, "analyse", str(code), *store, "--run", "run-8")
    nothing, why = failed(*COMMAND, "analyse", str(tmp_path / "empty"), *store)

    assert (kept["status"], kept["version"]) == ("completed", 1)
    assert broken == nothing == Exit.FAILED
    assert "stored as a failed review" in told
    assert "empty" in why


def checkov(folder: Path) -> Path:
    """Return a program that stands for checkov: it finds nothing, and notes that it ran."""
    report = {"check_type": "terraform", "results": {"failed_checks": []}, "summary": {"resource_count": 1}}
    program = folder / "checkov"
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\necho '{json.dumps(report)}'\n")
    program.chmod(0o755)
    return program


def test_a_program_may_be_named_by_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./checkov` is the one here, and not the one in PATH; without a name it is the one in PATH."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        checkov(tmp_path / name)
    (tmp_path / "main.tf").write_text("# code")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", str(tmp_path / "there"), prepend=os.pathsep)
    told = ("analyse", str(tmp_path), "--stack", "network", "--store", str(tmp_path / "reviews.db"))
    done(*COMMAND, *told, "--checkov", "./checkov")
    first = [(tmp_path / name / "ran").exists() for name in ("here", "there")]
    done(*COMMAND, *told)

    assert first == [True, False]
    assert (tmp_path / "there" / "ran").exists()


def test_a_stack_that_no_review_can_have_is_told_at_once(tmp_path: Path) -> None:
    """The rule is said in words, and the program has not been run."""
    program = checkov(tmp_path)
    (tmp_path / "main.tf").write_text("# code")
    store = ("--store", str(tmp_path / "reviews.db"), "--checkov", str(program))
    code, told = failed(*COMMAND, "analyse", str(tmp_path), "--stack", "team/net", *store)

    assert code == Exit.FAILED
    assert "stack: it has 1 to 200 characters, no slash" in told
    assert not (tmp_path / "ran").exists()


def test_a_list_is_stored_whole_or_told_how_far(tmp_path: Path) -> None:
    """A run on record stores none of the list; what only the store can refuse is told with what is stored by then."""
    store = ("--store", str(tmp_path / "reviews.db"))
    done(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-1")))
    listed = [result("run-2"), result("run-1", overall_risk_score=0.9)]
    conflict, _ = failed(*COMMAND, "ingest", "-", *store, text=json.dumps(listed))
    kept = done(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-2")))
    large = [result("run-3"), result("run-4", metadata={"x": "y" * 410_000}), result("run-5")]
    stopped, told = failed(*COMMAND, "ingest", "-", *store, text=json.dumps(large))
    again = done(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-3")))

    assert (conflict, stopped) == (Exit.CONFLICT, Exit.FAILED)
    assert "there already" not in kept
    assert "Stored are the 1 before it" in told
    assert "not the 1 after it" in told
    assert "there already" in again


def test_environments_are_apart(tmp_path: Path) -> None:
    """A result of one environment is none of another, in one store too; a name that ends no table's is refused."""
    store = ("--store", str(tmp_path / "reviews.db"))
    text = json.dumps(result("run-1"))
    first = done(*COMMAND, "ingest", "-", *store, "--environment", "staging", text=text)
    other = done(*COMMAND, "ingest", "-", *store, text=text)
    again = done(*COMMAND, "ingest", "-", *store, "--environment", "staging", text=text)
    code, _ = failed(*COMMAND, "ingest", "-", *store, "--environment", "a/b", text=text)
    with started(*COMMAND, "--port", "0", *store, "--environment", "prod") as it:
        served = asked(f"{it.told['url']}/runs/run-1/review")
        it.stop()

    assert [", there already" in told for told in (first, other, again)] == [False, False, True]
    assert code == Exit.USAGE
    assert served[0] == 404


def test_blobs_of_nobody_are_swept(tmp_path: Path) -> None:
    """What no version points to is noted, and deleted by a sweep a day later; what one points to stays, and so does what others keep."""
    blobs = tmp_path / "blobs"
    store = ("--store", str(tmp_path / "reviews.db"), "--blobs", str(blobs))
    large = "".join(f'resource "aws_sqs_queue" "q{number}" {{}}\n' for number in range(6_000))
    text = json.dumps(result("run-1", terraform_code=large))
    done(*COMMAND, "ingest", "-", *store, "--environment", "prod", text=text)
    done(*COMMAND, "ingest", "-", *store, text=text)
    paths = sorted(path for path in blobs.rglob("*") if path.is_file())
    kept = next(path for path in paths if "reviews-dev" in str(path))
    orphan = kept.with_name(kept.name[:2] + "0" * (len(kept.name) - 2))
    orphan.write_bytes(b"of nobody")
    for path in (*paths, orphan):
        os.utime(path, (0, 0))
    first = json.loads(done(*COMMAND, "sweep", *store, "--json"))
    (notes,) = [path for path in blobs.rglob("*") if path.is_file() and path not in (*paths, orphan)]
    notes.write_text(json.dumps({orphan.name: "2020-01-01T00:00:00+00:00"}))
    second = done(*COMMAND, "sweep", *store)

    assert first | {"schema": ""} == {"schema": "", "deleted": 0, "noted": 1, "kept": 1, "young": 0}
    assert second.startswith("1 deleted, 0 noted")
    assert all(path.exists() for path in paths)
    assert not orphan.exists()


def test_what_is_told_where_a_demo_runs_works(tmp_path: Path) -> None:
    """The file is in use; through the endpoint, on the same folder, code too large for an item is found by the demo."""
    file, one = tmp_path / "demo.db", tmp_path / "review.json"
    code = "".join(f"# {number:x}{number * 7919:x}\n" for number in range(60_000))
    one.write_text(json.dumps(result("run-1", terraform_code=code)))
    with started("demo", str(file), "--no-data", "--port", "0", "--apps-port", "0") as it:
        refused, told = failed(*COMMAND, "ingest", str(one), "--store", str(file))
        at = ("--store", it.told["endpoint"], "--region", it.told["region"])
        there = json.loads(
            done(*COMMAND, "ingest", str(one), *at, "--state", f"{file}.apps", "--json", cwd=tmp_path)
        )
        url = it.told["applications"]["terraform-review"]
        found = asked(f"{url}reviews/{there['review_id']}/code")
        it.stop()

    assert refused == Exit.CONFLICT
    assert "--store http://localhost:8000 --state FILE.apps" in " ".join(told.split())
    assert found[0] == 200
    assert found[1].endswith(code[-20:])
