"""`tavola app terraform-review ingest` and `analyse`: reviews from outside, without a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tavola.cli.errors import Exit
from tests.apps.processes import run_command, run_failing_command, send_request, start_command

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
    """One result, then the same with another on lines from standard input; another result of a run is a conflict."""
    file = tmp_path / "reviews.db"
    one = tmp_path / "review.json"
    one.write_text(json.dumps(result("run-1"), indent=2))
    store = ("--store", str(file))
    first = json.loads(run_command(*COMMAND, "ingest", str(one), *store, "--json"))
    lines = "\n".join(json.dumps(result(f"run-{number}")) for number in (1, 2))
    lines_written = run_command(*COMMAND, "ingest", "-", *store, text=lines).splitlines()
    code, conflict = run_failing_command(
        *COMMAND, "ingest", "-", *store, text=json.dumps(result("run-1", overall_risk_score=0.9))
    )
    with start_command(*COMMAND, "--port", "0", *store) as it:
        found = send_request(f"{it.startup['url']}/reviews/{first['review_id']}")
        it.stop()

    assert (first["schema"], first["version"], first["replayed"]) == ("tavola.review/1", 1, False)
    assert len(lines_written) == 2
    assert lines_written[0] == f"{first['review_id']} version 1: completed (stored already)"
    assert lines_written[1].endswith("version 1: completed")
    assert code == Exit.CONFLICT
    assert "run-1" in conflict
    assert found[0] == 200


def test_an_invalid_result_is_reported(tmp_path: Path) -> None:
    """Nothing of an invalid file is stored, and the error is named without the file's content."""
    store = ("--store", str(tmp_path / "reviews.db"))
    missing, _ = run_failing_command(*COMMAND, "ingest", str(tmp_path / "nothing.json"), *store)
    code, errors = run_failing_command(
        *COMMAND, "ingest", "-", *store, text=json.dumps([result("run-1"), {"stack_id": "x"}])
    )
    usage, _ = run_failing_command(*COMMAND, "ingest", "-")

    assert (missing, code, usage) == (Exit.NOT_FOUND, Exit.FAILED, Exit.USAGE)
    assert "spacelift_run_id" in errors


def test_an_analysis_is_stored_as_a_review(tmp_path: Path) -> None:
    """Findings become a review of the stack; a failed run is stored as failed, with exit code 1."""
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
    analysis = json.loads(run_command(*COMMAND, "analyze", str(code), *store, "--run", "run-7", "--json"))
    program.write_text("#!/bin/sh\nexit 9\n")
    broken, errors = run_failing_command(*COMMAND, "analyze", str(code), *store, "--run", "run-8")
    nothing, why = run_failing_command(*COMMAND, "analyze", str(tmp_path / "empty"), *store)

    assert (analysis["status"], analysis["version"]) == ("completed", 1)
    assert broken == nothing == Exit.FAILED
    assert "stored as a failed review" in errors
    assert "empty" in why


def checkov(folder: Path) -> Path:
    """Return a program in place of checkov that finds nothing and records that it ran."""
    report = {"check_type": "terraform", "results": {"failed_checks": []}, "summary": {"resource_count": 1}}
    program = folder / "checkov"
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\necho '{json.dumps(report)}'\n")
    program.chmod(0o755)
    return program


def test_a_program_may_be_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./checkov` is the local program, not the one in PATH; without a name it is the one in PATH."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        checkov(tmp_path / name)
    (tmp_path / "main.tf").write_text("# code")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", str(tmp_path / "there"), prepend=os.pathsep)
    arguments = ("analyze", str(tmp_path), "--stack", "network", "--store", str(tmp_path / "reviews.db"))
    run_command(*COMMAND, *arguments, "--checkov", "./checkov")
    first = [(tmp_path / name / "ran").exists() for name in ("here", "there")]
    run_command(*COMMAND, *arguments)

    assert first == [True, False]
    assert (tmp_path / "there" / "ran").exists()


def test_an_invalid_stack_is_reported_before_the_run(tmp_path: Path) -> None:
    """The rule is given in words, and the program is not run."""
    program = checkov(tmp_path)
    (tmp_path / "main.tf").write_text("# code")
    store = ("--store", str(tmp_path / "reviews.db"), "--checkov", str(program))
    code, errors = run_failing_command(*COMMAND, "analyze", str(tmp_path), "--stack", "team/net", *store)

    assert code == Exit.FAILED
    assert "stack: use 1 to 200 characters without slashes" in errors
    assert not (tmp_path / "ran").exists()


def test_a_list_is_stored_completely_or_progress_is_reported(tmp_path: Path) -> None:
    """A recorded run prevents the whole list; an error of the store is reported with what is stored by then."""
    store = ("--store", str(tmp_path / "reviews.db"))
    run_command(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-1")))
    listed = [result("run-2"), result("run-1", overall_risk_score=0.9)]
    conflict, _ = run_failing_command(*COMMAND, "ingest", "-", *store, text=json.dumps(listed))
    written = run_command(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-2")))
    large = [result("run-3"), result("run-4", metadata={"x": "y" * 410_000}), result("run-5")]
    stopped, errors = run_failing_command(*COMMAND, "ingest", "-", *store, text=json.dumps(large))
    again = run_command(*COMMAND, "ingest", "-", *store, text=json.dumps(result("run-3")))

    assert (conflict, stopped) == (Exit.CONFLICT, Exit.FAILED)
    assert "stored already" not in written
    assert "The 1 results before it were stored" in errors
    assert "the 1 after it were not" in errors
    assert "stored already" in again


def test_environments_are_separate(tmp_path: Path) -> None:
    """A result of one environment is not visible in another on the same store; an invalid environment name is refused."""
    store = ("--store", str(tmp_path / "reviews.db"))
    text = json.dumps(result("run-1"))
    first = run_command(*COMMAND, "ingest", "-", *store, "--environment", "staging", text=text)
    other = run_command(*COMMAND, "ingest", "-", *store, text=text)
    again = run_command(*COMMAND, "ingest", "-", *store, "--environment", "staging", text=text)
    code, _ = run_failing_command(*COMMAND, "ingest", "-", *store, "--environment", "a/b", text=text)
    with start_command(*COMMAND, "--port", "0", *store, "--environment", "prod") as it:
        served = send_request(f"{it.startup['url']}/runs/run-1/review")
        it.stop()

    assert ["(stored already)" in startup for startup in (first, other, again)] == [False, False, True]
    assert code == Exit.USAGE
    assert served[0] == 404


def test_unreferenced_blobs_are_swept(tmp_path: Path) -> None:
    """Unreferenced blobs are marked and deleted by a sweep a day later; referenced and foreign ones stay."""
    blobs = tmp_path / "blobs"
    store = ("--store", str(tmp_path / "reviews.db"), "--blobs", str(blobs))
    large = "".join(f'resource "aws_sqs_queue" "q{number}" {{}}\n' for number in range(6_000))
    text = json.dumps(result("run-1", terraform_code=large))
    run_command(*COMMAND, "ingest", "-", *store, "--environment", "prod", text=text)
    run_command(*COMMAND, "ingest", "-", *store, text=text)
    paths = sorted(path for path in blobs.rglob("*") if path.is_file())
    store_folder = next(path for path in paths if "reviews-dev" in str(path))
    orphan = store_folder.with_name(store_folder.name[:2] + "0" * (len(store_folder.name) - 2))
    orphan.write_bytes(b"of nobody")
    for path in (*paths, orphan):
        os.utime(path, (0, 0))
    first = json.loads(run_command(*COMMAND, "sweep", *store, "--json"))
    (notes,) = [path for path in blobs.rglob("*") if path.is_file() and path not in (*paths, orphan)]
    notes.write_text(json.dumps({orphan.name: "2020-01-01T00:00:00+00:00"}))
    second = run_command(*COMMAND, "sweep", *store)

    assert first | {"schema": ""} == {"schema": "", "deleted": 0, "noted": 1, "kept": 1, "young": 0}
    assert second.startswith("1 deleted, 0 marked")
    assert all(path.exists() for path in paths)
    assert not orphan.exists()


def test_the_advice_beside_a_running_demo_works(tmp_path: Path) -> None:
    """The file is in use; through the endpoint, with the same folder, the demo finds code too large for an item."""
    file, one = tmp_path / "demo.db", tmp_path / "review.json"
    code = "".join(f"# {number:x}{number * 7919:x}\n" for number in range(60_000))
    one.write_text(json.dumps(result("run-1", terraform_code=code)))
    with start_command("demo", str(file), "--no-data", "--port", "0", "--apps-port", "0") as it:
        refused, errors = run_failing_command(*COMMAND, "ingest", str(one), "--store", str(file))
        at = ("--store", it.startup["endpoint"], "--region", it.startup["region"])
        there = json.loads(
            run_command(*COMMAND, "ingest", str(one), *at, "--state", f"{file}.apps", "--json", cwd=tmp_path)
        )
        url = it.startup["applications"]["terraform-review"]
        found = send_request(f"{url}reviews/{there['review_id']}/code")
        it.stop()

    assert refused == Exit.CONFLICT
    assert "--store http://localhost:8000 --state FILE.apps" in " ".join(errors.split())
    assert found[0] == 200
    assert found[1].endswith(code[-20:])
