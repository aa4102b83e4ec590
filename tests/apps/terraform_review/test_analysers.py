"""Analysers: folders of Terraform in, findings out; checkov itself where it is installed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tavola import SeededEntropy
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.analysers import (
    Analyser,
    AnalyserError,
    AnalyserFinding,
    Analysis,
    AnalysisFailure,
    TerraformFile,
    join_code,
    read_folder,
    risk_score,
)
from tavola.apps.terraform_review.checkov import Checkov, find_program
from tavola.apps.terraform_review.checkov_report import (
    DEFAULT_RULE,
    RULES,
    ReportRefused,
    read_report,
    rule_of,
    severity_of,
)
from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus
from tavola.apps.terraform_review.intake import IntakeRefused, build_result, ingest, read_results
from tavola.apps.terraform_review.intake import analyse as analyse_folder
from tavola.apps.terraform_review.model import Review
from tests.apps.conftest import Run
from tests.apps.terraform_review.conftest import ReviewHistory

HERE = Path(__file__).parent
STACKS = HERE / "stacks"
INSTALLED = os.environ.get("TAVOLA_TEST_CHECKOV") or shutil.which("checkov")
with_checkov = pytest.mark.skipif(INSTALLED is None, reason="checkov is not installed: pipx install checkov")

SOURCES = (TerraformFile("main.tf", 'resource "null_resource" "one" {}\n', is_code=True),)
SUMMARY = {"passed": 0, "failed": 0, "parsing_errors": 0, "resource_count": 0, "checkov_version": "3.3.30"}


def found(severity: str, confidence: str = "1") -> AnalyserFinding:
    """Return a finding of which only the severity and the confidence matter."""
    return AnalyserFinding(
        Category.SECURITY, FindingSeverity(severity), "t", "d", "X_1", "main.tf", 1, "r", Decimal(confidence)
    )


def program(folder: Path, script: str) -> Path:
    """Return a program that is not checkov."""
    path = folder / "checkov"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def analyse(path: Path, *, timeout_s: float = 20) -> Analysis:
    return asyncio.run(Checkov(path, timeout_s).analyse(SOURCES))


def test_a_folder_is_read_whole_and_sorted() -> None:
    """Files of the folders in it are there under their paths, in one order."""
    sources = read_folder(STACKS / "shop")

    assert [source.path for source in sources] == [
        "database.tf",
        "main.tf",
        "modules/archive/main.tf",
        "variables.tf",
    ]
    assert all(source.is_code for source in sources)


def test_values_of_variables_are_not_kept(tmp_path: Path) -> None:
    """A file of values goes to the analyser and not into the stored code, for passwords stand there."""
    (tmp_path / "main.tf").write_text('variable "password" {}\n')
    (tmp_path / "prod.auto.tfvars").write_text('password = "hunter2"\n')

    sources = read_folder(tmp_path)

    assert [source.path for source in sources] == ["main.tf", "prod.auto.tfvars"]
    assert join_code(sources) == '# ==> main.tf <==\nvariable "password" {}\n'


def test_hidden_folders_and_links_are_left_out(tmp_path: Path) -> None:
    """What terraform keeps for itself is not reviewed, and a link leads nowhere."""
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform" / "cached.tf").write_text("# cached")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    stack = tmp_path / "stack"
    stack.mkdir()
    (stack / "main.tf").write_text("# mine")
    (stack / "linked.tf").symlink_to(outside)
    (stack / "loop").symlink_to(stack)

    assert [source.path for source in read_folder(stack)] == ["main.tf"]
    assert [source.path for source in read_folder(tmp_path)] == ["stack/main.tf"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent", None, "is not a folder"),
        ("notes.txt", b"no code", "contains no Terraform"),
        ("values.tfvars", b"a = 1", "contains no Terraform"),
        ("main.tf", b"\xff\xfe\x00", "cannot be read as UTF-8"),
    ],
)
def test_a_folder_that_cannot_be_analysed_is_told(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    """No folder, no Terraform and no text are errors of who asked, with what is wrong."""
    folder = tmp_path / "stack"
    if content is not None:
        folder.mkdir()
        (folder / name).write_bytes(content)

    with pytest.raises(AnalyserError, match=message):
        read_folder(folder)


@pytest.mark.parametrize("name", [b"\xff.tf", b"a\nb.tf", b"/".join([b"d" * 200] * 5) + b"/main.tf"])
def test_a_name_that_no_review_can_tell_is_refused(tmp_path: Path, name: bytes) -> None:
    """A name that is not UTF-8, has a control character or is without end is told before anything runs."""
    path = os.fsencode(tmp_path) + b"/" + name
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"# code")

    with pytest.raises(AnalyserError, match="rename the file"):
        read_folder(tmp_path)


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder past the bounds is refused before it is read."""
    monkeypatch.setattr("tavola.apps.terraform_review.analysers.FOLDER_BYTES_MAX", 10)
    (tmp_path / "main.tf").write_text("# more than ten bytes")

    with pytest.raises(AnalyserError, match="separate stacks"):
        read_folder(tmp_path)


def test_the_risk_is_bounded_and_rises() -> None:
    """No finding is no risk; the worst one says where it begins; more is never less, and never over 1."""
    assert risk_score([]) == 0
    assert risk_score([found("high")]) == Decimal("0.72")
    assert risk_score([found("low")]) < risk_score([found("medium")]) < risk_score([found("high")])
    assert risk_score([found("low")] * 50) < risk_score([found("high")])
    scores = [risk_score([found("medium")] * n) for n in range(1, 200)]
    assert scores == sorted(scores)
    assert scores[-1] <= 1
    assert risk_score([found("high", "0.5")]) <= risk_score([found("high")])


def test_a_report_is_read() -> None:
    """Each failed check is a finding at its file and line, with a category, a severity and what to look at."""
    analysis = read_report((HERE / "reports" / "checkov.json").read_bytes())
    by_title = {(each.title, each.file_path): each for each in analysis.findings}

    assert analysis.analyser == "checkov 3.3.30"
    assert analysis.failure is None
    port = by_title["Ensure no security groups allow ingress from 0.0.0.0:0 to port 22", "main.tf"]
    assert (port.category, port.severity, port.line_number) == ("security", "high", 15)
    assert port.recommendation.startswith("Check ingress.cidr_blocks, ")
    recovery = by_title["Ensure DynamoDB point in time recovery (backup) is enabled", "database.tf"]
    assert (recovery.category, recovery.severity) == ("reliability", "medium")
    retention = by_title["Ensure that CloudWatch Log Group specifies retention days", "database.tf"]
    assert (retention.category, retention.severity) == ("cost", "low")
    assert ("Ensure that S3 bucket has a Public Access block", "modules/archive/main.tf") in by_title


def test_a_secret_is_not_told_again() -> None:
    """A finding of a secret has its place alone: neither the text nor its digest."""
    analysis = read_report((HERE / "reports" / "checkov.json").read_bytes())
    (secret,) = [each for each in analysis.findings if each.title.startswith("Secret")]

    assert (secret.severity, secret.line_number) == ("high", 2)
    assert "049ef97a991813ba80315268b00f2a92eb597ec6" not in repr(secret)


def test_the_order_of_findings_is_the_same_in_each_run() -> None:
    """Findings sort by place and title, and attributes by name, whatever order checkov has today."""
    report = json.loads((HERE / "reports" / "checkov.json").read_bytes())
    first = read_report(json.dumps(report).encode())
    for part in report:
        part["results"]["failed_checks"].reverse()
        for check in part["results"]["failed_checks"]:
            (check["check_result"].get("evaluated_keys") or []).reverse()

    assert read_report(json.dumps(report).encode()) == first


def test_nothing_to_check_is_no_finding() -> None:
    """Where no framework has anything to look at, checkov prints its counts alone."""
    assert read_report(json.dumps(SUMMARY).encode()).findings == ()


def test_a_severity_that_is_told_is_taken() -> None:
    """With a platform's key checkov knows severities, and they win over the rows."""
    rule = rule_of("CKV_AWS_24", "Ensure no security groups allow ingress from 0.0.0.0:0 to port 22")

    assert severity_of("LOW", rule) == "low"
    assert severity_of(None, rule) == "high"
    assert severity_of("SOMETHING", rule) == "high"


def test_every_row_of_the_rules_can_be_reached() -> None:
    """A row that an earlier one always hides would be dead."""
    names = [
        "no hard-coded secrets",
        "is not publicly accessible",
        "does not allow privilege escalation",
        "encrypted by KMS",
        "encrypted at rest",
        "Multi-AZ enabled",
        "has a lifecycle configuration",
        "detailed monitoring",
        "access logging",
        "use a commit hash",
        "has a description",
    ]

    assert [rule_of("CKV_X_1", name) for name in names] == list(RULES)
    assert rule_of("CKV_X_1", "users are members of a group").severity == "medium"


def test_the_guide_has_every_row_of_the_rules() -> None:
    """What a check is about, and what that means, is told to who reads the findings."""
    guide = (Path(__file__).parents[3] / "docs" / "how-to" / "apps" / "checkov.md").read_text()
    rows = [line for line in guide.splitlines() if line.startswith("| ") and line.count("|") == 4]

    assert rows[1:-1] == [f"| {rule.meaning} | {rule.category} | {rule.severity} |" for rule in RULES]
    assert rows[-1] == f"| anything else | {DEFAULT_RULE.category} | {DEFAULT_RULE.severity} |"


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo 'went wrong' >&2; exit 2", "exit", "exited with code 2: went wrong"),
        ("kill -9 $$", "exit", "exited with code -9: no error output"),
        ("echo hello", "output", "did not print JSON: 'hello"),
        ("echo '[1]'", "output", "not a report"),
        ("echo '{}'", "output", "not a report"),
        ('echo \'[{"check_type": "terraform"}]\'', "output", "not a report"),
        ("echo '[]'", "output", "not a report"),
    ],
)
def test_a_run_that_breaks_down_is_told(tmp_path: Path, script: str, kind: str, message: str) -> None:
    """A bad end, and output that is no report, become a breakdown with its reason, and never findings."""
    analysis = analyse(program(tmp_path, script))

    assert analysis.findings == ()
    assert analysis.failure is not None
    assert analysis.failure.kind == kind
    assert message in analysis.failure.message


FAILED = {"check_id": "CKV_AWS_1", "check_name": "Ensure that it holds"}


@pytest.mark.parametrize(
    "change",
    [
        {"results": []},
        {"results": {"failed_checks": {}}},
        {"results": {"failed_checks": [{}]}},
        {"results": {"failed_checks": [FAILED | {"check_name": ""}]}},
        {"results": {"failed_checks": [FAILED | {"check_name": None}]}},
        {"results": {"failed_checks": [FAILED | {"file_line_range": 5}]}},
        {"results": {"failed_checks": [FAILED | {"check_result": "FAILED"}]}},
        {"results": {"failed_checks": [FAILED | {"check_result": {"evaluated_keys": [{}]}}]}},
        {"results": {"failed_checks": [FAILED | {"severity": {}}]}},
        {"results": {"failed_checks": [FAILED | {"resource": "\ud800"}]}},
        {"summary": {"resource_count": "x"}},
        {"summary": {"resource_count": 10**60}},
        {"summary": {"parsing_errors": -1}},
        {"summary": []},
    ],
)
def test_a_report_in_another_shape_is_a_breakdown(tmp_path: Path, change: dict[str, Any]) -> None:
    """JSON that is not as checkov's is told as that, and is no error of ours."""
    (tmp_path / "report").write_text(
        json.dumps({"check_type": "terraform", "results": {}, "summary": SUMMARY, **change})
    )

    analysis = analyse(program(tmp_path, f"cat {tmp_path}/report"))

    assert analysis.failure is not None
    assert (analysis.failure.kind, analysis.findings) == ("output", ())
    assert "not a report" in analysis.failure.message


def test_a_report_without_a_floor_is_refused() -> None:
    """JSON that is nested deeper than anybody reads is no report either."""
    with pytest.raises(ReportRefused, match="did not print JSON"):
        read_report(b"[" * 100_000)


def test_a_report_may_say_more_and_less() -> None:
    """What is not asked for may be there, and what may be missing may be null."""
    check = FAILED | {
        "check_name": "...",
        "resource": None,
        "check_result": None,
        "file_line_range": None,
        "new": 1,
    }
    report = {
        "check_type": "terraform",
        "results": {"failed_checks": [check]},
        "summary": SUMMARY | {"new": 1},
    }

    (found,) = read_report(json.dumps(report).encode()).findings

    assert (found.title, found.line_number, found.file_path) == ("CKV_AWS_1", None, "")


def test_checks_that_the_code_switches_off_are_counted() -> None:
    """A comment in the code silences a check; how many is kept with the review."""
    report = {"check_type": "terraform", "results": {}, "summary": SUMMARY | {"skipped": 3}}
    analysis = read_report(json.dumps(report).encode())
    result = build_result(analysis, code="", stack="s", run="r", by="b")

    assert result.metadata["checks_skipped"] == 3


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """After its time, checkov and what it started are ended."""
    left = tmp_path / "left"
    analysis = analyse(program(tmp_path, f"(sleep 5; touch {left}) & sleep 5"), timeout_s=0.1)

    assert analysis.failure is not None
    assert analysis.failure.kind == "timeout"
    assert not left.exists()


def test_output_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More output than a report can be is not read into memory."""
    monkeypatch.setattr("tavola.apps.terraform_review.checkov.OUTPUT_BYTES_MAX", 3)

    analysis = analyse(program(tmp_path, "echo '{\"resource_count\": 0}'"))

    assert analysis.failure is not None
    assert analysis.failure.kind == "output"


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not fill the disk until its time is over."""
    monkeypatch.setattr("tavola.apps.terraform_review.checkov.OUTPUT_BYTES_MAX", 10_000)
    monkeypatch.setattr("tavola.apps.terraform_review.checkov._POLL_S", 0.01)

    analysis = analyse(program(tmp_path, "printf '%20000s' x; exec sleep 60"), timeout_s=30)

    assert analysis.failure is not None
    assert analysis.failure.kind == "output"


def test_files_that_are_not_terraform_are_named(tmp_path: Path) -> None:
    """Code that cannot be parsed is a breakdown that names the files: half a result looks like a good one."""
    counts = json.dumps(
        {"check_type": "terraform", "results": {}, "summary": SUMMARY | {"parsing_errors": 1}}
    )
    script = (
        f"case \"$*\" in *--check*) printf '%s' '{counts}' |"
        ' sed "s|{}|{\\"parsing_errors\\": [\\"$2/sub/half.tf\\"]}|" ;;'
        f" *) echo '{counts}' ;; esac"
    )

    analysis = analyse(program(tmp_path, script))

    assert analysis.failure is not None
    assert analysis.failure.message == "not valid Terraform: sub/half.tf"


def test_the_program_has_no_settings_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key to a platform, no home and no configuration reach the program; it is told to stay off the network."""
    seen = tmp_path / "seen"
    monkeypatch.setenv("BC_API_KEY", "key-of-a-platform")
    script = f'echo "$@" >{seen}; env >>{seen}; ls -a . "$2" >>{seen}; echo \'{json.dumps(SUMMARY)}\''

    analyse(program(tmp_path, script))

    arguments = seen.read_text()
    assert "--skip-download" in arguments
    assert "key-of-a-platform" not in arguments
    assert os.environ["HOME"] + "\n" not in arguments
    assert "HTTPS_PROXY=http://127.0.0.1:9" in arguments


def test_a_configuration_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    """`.checkov.yaml` can name Python files to run, so of a folder the Terraform files alone are copied."""
    stack = tmp_path / "stack"
    stack.mkdir()
    (stack / "main.tf").write_text("# code")
    (stack / ".checkov.yaml").write_text("external-checks-dir: [.]")
    (stack / "evil.py").write_text("raise SystemExit")

    assert [source.path for source in read_folder(stack)] == ["main.tf"]


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    """Who has no checkov is told how to get it; nothing is stored."""
    with pytest.raises(AnalyserError, match="pipx install checkov"):
        find_program(None, str(tmp_path))
    with pytest.raises(AnalyserError, match="program /nowhere/checkov not found"):
        find_program(Path("/nowhere/checkov"), str(tmp_path))
    with pytest.raises(AnalyserError, match="cannot be started"):
        analyse(tmp_path / "gone")


def test_a_program_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search path is given; a path that is named wins, and one without a folder is here and not in the search path."""
    path = program(tmp_path, "exit 0")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(AnalyserError, match="program checkov not found"):
        find_program(Path("./checkov"), str(tmp_path))
    near = program(here, "exit 0")

    assert find_program(None, str(tmp_path)) == path
    assert find_program(path, "") == path
    assert find_program(Path("./checkov"), str(tmp_path)) == near


# What an analysis becomes.


@dataclass(frozen=True, slots=True)
class Fixed:
    """An analyser that always says the same."""

    analysis: Analysis

    async def analyse(self, sources: tuple[TerraformFile, ...]) -> Analysis:
        """Return what it always says."""
        return self.analysis


def stored(history: ReviewHistory, run: Run[Any], folder: Path, analyser: Analyser) -> Review:
    """Analyse a folder, and return the review that was stored."""
    recorded = run(
        analyse_folder(
            history.store,
            folder,
            analyser,
            stack="shop",
            clock=history.clock,
            entropy=SeededEntropy(1),
            branch="main",
        )
    )
    review: Review = recorded.review
    return review


def test_an_analysis_becomes_a_review(history: ReviewHistory, run: Run[Any]) -> None:
    """Findings, risk and code are stored as a review of the stack; values of variables are not."""
    analysis = Analysis("tester 1", (found("high"), found("low")), 3)

    review = stored(history, run, STACKS / "shop", Fixed(analysis))

    assert (review.status, review.stack_id, review.created_by) == (ReviewStatus.COMPLETED, "shop", "checkov")
    assert review.overall_risk_score == Decimal("0.73")
    assert review.metadata["analyser"] == "tester 1"
    assert review.context.changed_files == (
        "database.tf",
        "main.tf",
        "modules/archive/main.tf",
        "variables.tf",
    )
    assert run(service.read_code(history.store, review)).startswith("# ==> database.tf <==")
    assert [each.rule_id for each in run(service.list_findings(history.store, review))] == ["X_1", "X_1"]


def test_wrong_26_a_run_that_broke_down_has_an_unknown_risk(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 26: what nobody could look at is stored as failed, with why, and its risk is unknown."""
    broken = Analysis("tester 1", (), 0, AnalysisFailure("timeout", "not done after 300 seconds"))

    review = stored(history, run, STACKS / "shop", Fixed(broken))

    assert (review.status, review.overall_risk_score, review.reliability_score) == (
        ReviewStatus.FAILED,
        None,
        None,
    )
    assert review.error_details is not None
    assert review.error_details.error_message == "not done after 300 seconds"


@dataclass(slots=True)
class Counting:
    """An analyser that counts how often it is asked."""

    analysis: Analysis
    calls: int = 0

    async def analyse(self, sources: tuple[TerraformFile, ...]) -> Analysis:
        """Return what it always says."""
        self.calls += 1
        return self.analysis


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stack": "team/net"}, "stack: use 1 to 200 characters without slashes"),
        ({"run": "a/b"}, "run: use 1 to 200"),
        ({"by": ""}, "by: must have at least 1"),
        ({"commit": "a" * 300}, "stored. commit: must have at most 200"),
        ({"branch": "b" * 600}, "branch: must have at most 500"),
    ],
)
def test_what_cannot_be_stored_is_told_before_the_analyser_runs(
    history: ReviewHistory, run: Run[Any], arguments: dict[str, Any], message: str
) -> None:
    """Who gives a name that no review can have does not wait for minutes to hear it."""
    analyser = Counting(Analysis("tester 1", (), 1))
    arguments = {"stack": "shop", "clock": history.clock, "entropy": SeededEntropy(1), **arguments}
    with pytest.raises(AnalyserError, match=message):
        run(analyse_folder(history.store, STACKS / "shop", analyser, **arguments))

    assert analyser.calls == 0


def test_code_past_what_a_review_holds_is_told_before_the_analyser_runs(
    history: ReviewHistory, run: Run[Any], tmp_path: Path
) -> None:
    """The lines that name the files count too."""
    (tmp_path / "main.tf").write_bytes(b"#" * 20_000_000)
    analyser = Counting(Analysis("tester 1", (), 1))

    with pytest.raises(AnalyserError, match="the code: must have at most"):
        stored(history, run, tmp_path, analyser)
    assert analyser.calls == 0


def test_what_an_analyser_says_wrongly_is_a_breakdown(history: ReviewHistory, run: Run[Any]) -> None:
    """A finding that cannot be stored is stored as a failed review that says so."""
    analysis = Analysis("tester 1", (replace(found("high"), line_number=-5),), 1)

    review = stored(history, run, STACKS / "shop", Counting(analysis))

    assert review.status is ReviewStatus.FAILED
    assert review.error_details is not None
    assert "line_number" in review.error_details.error_message


def test_past_a_thousand_findings_the_gravest_are_taken() -> None:
    """A review holds a thousand findings; how many there were is told, and the risk is of all."""
    many = [replace(found("low"), line_number=n) for n in range(1_500)] + [found("high")]

    result = build_result(Analysis("tester 1", tuple(many), 1), code="", stack="s", run="r", by="b")

    assert len(result.findings) == 1_000
    assert result.findings[0].severity is FindingSeverity.HIGH
    assert result.metadata["findings_found"] == 1_501
    assert result.overall_risk_score == risk_score(many)


def test_a_file_of_results_is_ingested_once(history: ReviewHistory, run: Run[Any]) -> None:
    """One result or a list; what was there is told so; a mistake in one stores none."""
    one = {"spacelift_run_id": "run-1", "stack_id": "s", "created_by": "eng-01", "overall_risk_score": 0.5}
    two = {**one, "spacelift_run_id": "run-2"}

    first = run(ingest(history.store, json.dumps(one)))
    both = run(ingest(history.store, json.dumps([one, two]).encode()))
    with pytest.raises(IntakeRefused, match="result 2: status: must be one of"):
        run(ingest(history.store, json.dumps([{**one, "spacelift_run_id": "run-3"}, {**two, "status": "x"}])))

    assert [each.replayed for each in first] == [False]
    assert [each.replayed for each in both] == [True, False]
    assert run(service.latest_run_review(history.store, "run-3")) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON: Expecting value in line 1, column 1"),
        ('{"a": 1,\n}', "in line 2, column 1"),
        ('{"a": 1}\n\n\n{"b": 1,}\n', "in line 4, column 9"),
        ('{"a": 1}\n\n\n{"b": 1}\n', "line 4: spacelift_run_id: this field is required"),
        ('[{"a": 1}, {"b": 1}]', "result 2: spacelift_run_id: this field is required"),
        ("[]", "list is empty"),
        (b"\xff", "invalid UTF-8"),
        ("[" * 100_000, "too deep"),
        ("9" * 5_000, "too long"),
        ("5", "the document: must be"),
        (
            "{}",
            "spacelift_run_id: this field is required; stack_id: this field is required; created_by: this field is required",
        ),
        ('{"metadata": {"n": 0.1234567890123456789012}}', "metadata.n: input was not a valid JSON value"),
    ],
)
def test_a_file_that_is_no_result_is_told_where(text: str | bytes, message: str) -> None:
    """The sentence names the place and repeats nothing of the file; a number that would lose digits is refused."""
    with pytest.raises(IntakeRefused) as refused:
        read_results(text)

    assert message in str(refused.value)


@pytest.mark.parametrize("between", ["\n", "\n\n\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_results_may_be_one_on_each_line(before: str, between: str) -> None:
    """Lines, blank ones between them, and what some editors put first; a text may hold signs that end lines elsewhere."""
    one = {"spacelift_run_id": "run-1", "stack_id": "s", "created_by": "e", "metadata": {"a": "\u2028"}}
    two = {**one, "spacelift_run_id": "run-2"}
    text = before + between.join(json.dumps(each, ensure_ascii=False) for each in (one, two)) + between

    for report in (text, text.encode()):
        assert [each.spacelift_run_id for each in read_results(report)] == ["run-1", "run-2"]


@with_checkov
def test_checkov_itself_on_a_shop() -> None:
    """The real program finds the planted mistakes, module included, and the risk is high."""
    assert INSTALLED is not None
    analysis = asyncio.run(Checkov(Path(INSTALLED)).analyse(read_folder(STACKS / "shop")))
    summaries = {(each.file_path, each.category, each.severity) for each in analysis.findings}

    assert analysis.failure is None
    assert analysis.resource_count == 8
    assert ("main.tf", "security", "high") in summaries
    assert ("database.tf", "reliability", "medium") in summaries
    assert ("modules/archive/main.tf", "reliability", "medium") in summaries
    assert {category for _, category, _ in summaries} == {"security", "cost", "reliability"}
    assert risk_score(analysis.findings) >= Decimal("0.7")


@with_checkov
def test_checkov_itself_on_code_without_a_mistake() -> None:
    """Nothing found is a result, with risk 0."""
    assert INSTALLED is not None
    analysis = asyncio.run(Checkov(Path(INSTALLED)).analyse(read_folder(STACKS / "tidy")))

    assert (analysis.findings, analysis.failure, analysis.resource_count) == ((), None, 1)


@with_checkov
def test_checkov_itself_on_broken_code() -> None:
    """Code that is cut off is told by its file, and is no result."""
    assert INSTALLED is not None
    analysis = asyncio.run(Checkov(Path(INSTALLED)).analyse(read_folder(STACKS / "broken")))

    assert analysis.failure is not None
    assert analysis.failure.message == "not valid Terraform: main.tf"


@with_checkov
def test_checkov_itself_counts_what_comments_switch_off() -> None:
    """A check that a comment in the code silences is counted."""
    assert INSTALLED is not None
    code = 'resource "aws_s3_bucket" "one" {\n  #checkov:skip=CKV_AWS_18:no need\n}\n'
    analysis = asyncio.run(Checkov(Path(INSTALLED)).analyse((TerraformFile("main.tf", code, is_code=True),)))

    assert analysis.skipped_count == 1
    assert "CKV_AWS_18" not in {each.rule_id for each in analysis.findings}


@with_checkov
def test_checkov_itself_fills_the_history(history: ReviewHistory, run: Run[Any]) -> None:
    """From a folder to a review: its findings stand, are counted by issue, and the same folder again is a new run."""
    assert INSTALLED is not None
    review = stored(history, run, STACKS / "shop", Checkov(Path(INSTALLED)))
    findings = run(service.list_findings(history.store, review))
    run(history.count())
    frequent = run(service.list_frequent_issues(history.store, Category.SECURITY))

    assert str(review.metadata["analyser"]).startswith("checkov ")
    assert len(findings) == review.findings_total > 20
    assert {each.rule_id for each in findings} >= {"CKV_AWS_24", "CKV_AWS_17", "CKV_AWS_28"}
    assert frequent.items[0].occurrence_count >= 1
