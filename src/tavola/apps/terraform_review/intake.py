"""Intake: turn results from outside into reviews: JSON files, or a folder that an analyser checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tavola import Clock, Entropy, TavolaError
from tavola.apps.errors import ApplicationError
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.analysers import (
    Analyser,
    AnalyserError,
    Analysis,
    AnalysisFailure,
    join_code,
    read_folder,
    risk_score,
)
from tavola.apps.terraform_review.domain import (
    FINDINGS_MAX,
    Category,
    FindingSeverity,
    ReviewStatus,
    review_id_for_run,
)
from tavola.apps.terraform_review.errors import RunRecorded
from tavola.apps.terraform_review.model import Review
from tavola.apps.terraform_review.results import ErrorDetails, FindingResult, ReviewResult, SpaceliftContext
from tavola.apps.terraform_review.service import RecordedReview
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.validation import validation_message
from tavola.patterns import digest_of

CHANGED_FILES_MAX = 500

_ONE = TypeAdapter(ReviewResult)
_WORST_FIRST = {FindingSeverity.HIGH: 0, FindingSeverity.MEDIUM: 1, FindingSeverity.LOW: 2}
_ERRORS_SHOWN_MAX = 5
_ID_RULE = (
    "use 1 to 200 characters without slashes, backslashes or control characters, and no dot at the beginning"
)
_ARGUMENTS = {
    "spacelift_run_id": "run",
    "stack_id": "stack",
    "created_by": "by",
    "commit_sha": "commit",
    "terraform_code": "the code",
}


class IntakeRefused(ApplicationError):
    """A file is not a review result; nothing of it was stored."""


class IntakeStopped(ApplicationError):
    """Some results of a list were stored and one could not be; `__cause__` is the reason."""

    def __init__(
        self, recorded: tuple[RecordedReview, ...], result: ReviewResult, left: int, cause: str
    ) -> None:
        self.recorded = recorded  # the results before it, which were stored
        self.run_id = result.spacelift_run_id
        self.left = left  # how many results after it were not processed
        super().__init__(
            f"the run {self.run_id!r} could not be stored: {cause.rstrip('.')}. The {len(recorded)} results before it were stored, "
            f"the {left} after it were not. Correct it and upload all results again; none is stored twice"
        )


def read_results(data: bytes | str) -> tuple[ReviewResult, ...]:
    """Return the results in JSON: a single one, a list, or one per line."""
    results: list[ReviewResult] = []
    errors: list[str] = []
    for location, document in _documents(data):
        try:
            results.append(_ONE.validate_python(document))
        except ValidationError as error:
            errors += [location + message for message in _field_errors(error)]
    if errors:
        more = f"; and {len(errors) - _ERRORS_SHOWN_MAX} more" if len(errors) > _ERRORS_SHOWN_MAX else ""
        raise IntakeRefused(f"this is not a review result. {'; '.join(errors[:_ERRORS_SHOWN_MAX])}{more}")
    if not results:
        raise IntakeRefused("the list is empty; at least one review result is required")
    return tuple(results)


def parse_exact_json(data: bytes | str) -> Any:
    """Return the value of JSON text, with numbers as decimals where a float would lose digits.

    Raises JSONDecodeError for any text that cannot be parsed, including numbers of thousands of digits and too deep documents.
    """
    try:
        return json.loads(data, parse_float=_exact, parse_constant=_refuse_constant)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise json.JSONDecodeError("not UTF-8, nested too deeply, or a number is too long", "", 0) from error


async def ingest(
    store: ReviewStore, data: bytes | str, *, caller: str | None = None
) -> tuple[RecordedReview, ...]:
    """Store one or more results in JSON; results that were stored before are reported as such.

    All results are parsed, and their runs checked, before the first is stored: an invalid one prevents all. What only the store can
    refuse, such as a record that is too large, raises `IntakeStopped` with the results stored by then. With `caller`, all results must be by
    this caller.
    """
    results = read_results(data)
    for result in results:
        if caller is not None and result.created_by != caller:
            raise IntakeRefused(
                f"the run {result.spacelift_run_id!r} was created by {result.created_by!r}, and you are {caller!r}; upload only your own results"
            )
    await _check_runs(store, results)
    recorded: list[RecordedReview] = []
    for result in results:
        try:
            recorded.append(await service.record_review(store, result))
        except (TavolaError, OSError) as error:
            if not recorded:
                raise
            left = len(results) - len(recorded) - 1
            raise IntakeStopped(tuple(recorded), result, left, str(error)) from error
    return tuple(recorded)


async def _check_runs(store: ReviewStore, results: Sequence[ReviewResult]) -> None:
    """Refuse different results of one run, and results of a run that was recorded with another."""
    digests: dict[str, str] = {}
    for result in results:
        run_id, digest = result.spacelift_run_id, digest_of(result)
        if digests.setdefault(run_id, digest) != digest:
            raise IntakeRefused(f"the run {run_id!r} appears twice with different results; keep one of them")
    reviews = await store.db.get_many(
        [Review.Key(review_id=review_id_for_run(run_id)) for run_id in digests], consistent=True
    )
    for (run_id, digest), review in zip(digests.items(), reviews, strict=True):
        if review is not None and review.recorded != digest:
            raise RunRecorded(run_id, review.review_id)


async def analyse(
    store: ReviewStore,
    folder: Path,
    analyser: Analyser,
    *,
    stack: str,
    clock: Clock,
    entropy: Entropy,
    run: str | None = None,
    by: str = "checkov",
    commit: str | None = None,
    branch: str | None = None,
) -> RecordedReview:
    """Let an analyser check a folder, and store its result as a review of a stack.

    A failed run is stored too, as a failed review of unknown risk. What could not be stored whatever the analyser finds, such as a stack
    name with a slash, raises `AnalyserError` before the analyser starts.
    """
    sources = read_folder(folder)
    arguments: Any = {
        "code": join_code(sources),
        "stack": stack,
        "run": run or f"local-{entropy.uuid()}",
        "by": by,
    }
    try:
        arguments["context"] = SpaceliftContext(
            changed_files=tuple(source.path for source in sources if source.is_code)[:CHANGED_FILES_MAX],
            commit_sha=commit,
            branch=branch,
        )
        build_result(Analysis("", (), 0), **arguments)
    except ValidationError as error:
        raise AnalyserError(
            f"the review could not be stored. {'; '.join(_argument_errors(error))}"
        ) from error
    started = clock.now()
    analysis = await analyser.analyse(sources)
    arguments["duration_ms"] = round((clock.now() - started) * 1000)
    try:
        result = build_result(analysis, **arguments)
    except ValidationError as error:
        message = f"its output cannot be stored: {'; '.join(_field_errors(error)[:_ERRORS_SHOWN_MAX])}"
        result = build_result(
            Analysis(analysis.analyser[:200], (), 0, AnalysisFailure("output", message)), **arguments
        )
    return await service.record_review(store, result)


def build_result(
    analysis: Analysis,
    *,
    code: str,
    stack: str,
    run: str,
    by: str,
    context: SpaceliftContext | None = None,
    duration_ms: int = 0,
) -> ReviewResult:
    """Return an analysis as a review result; if there are more findings than a review holds, the most severe ones."""
    findings = sorted(analysis.findings, key=lambda finding: _WORST_FIRST[finding.severity])[:FINDINGS_MAX]
    failure = analysis.failure
    reliability = [finding for finding in analysis.findings if finding.category is Category.RELIABILITY]
    return ReviewResult(
        spacelift_run_id=run,
        stack_id=stack,
        created_by=by,
        status=ReviewStatus.FAILED if failure else ReviewStatus.COMPLETED,
        terraform_code=code,
        overall_risk_score=None if failure else risk_score(analysis.findings),
        reliability_score=None if failure else 1 - risk_score(reliability),
        findings=tuple(
            FindingResult(
                category=finding.category,
                severity=finding.severity,
                title=finding.title[:300],
                description=finding.description[:4000],
                line_number=finding.line_number,
                file_path=finding.file_path[:1000],
                recommendation=finding.recommendation[:4000],
                confidence_score=finding.confidence,
                rule_id=finding.rule_id[:200],
            )
            for finding in findings
        ),
        error_details=ErrorDetails(error_type=failure.kind, error_message=failure.message[:4000])
        if failure
        else None,
        spacelift_context=context or SpaceliftContext(),
        metadata={
            "analyser": analysis.analyser,
            "review_duration_ms": duration_ms,
            "code_length": len(code),
            "resource_count": analysis.resource_count,
            "findings_found": len(analysis.findings),
            "checks_skipped": analysis.skipped_count,
        },
    )


def _exact(text: str) -> float | Decimal:
    exact = Decimal(text)
    near = float(text)
    return near if Decimal(repr(near)) == exact else exact


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a valid JSON number")


def _documents(data: bytes | str) -> Iterable[tuple[str, Any]]:
    """Return the documents in the text with their locations: a single one, those of a list, or one per line."""
    text = _decode(data)
    try:
        document = _parse(text, 1)
    except _SeveralDocuments:
        lines = enumerate(text.split("\n"), 1)
        return [(f"line {number}: ", _parse(line, number)) for number, line in lines if line.strip()]
    if isinstance(document, list):
        return [(f"result {number}: ", result) for number, result in enumerate(document, 1)]
    return [("", document)]


class _SeveralDocuments(IntakeRefused):
    """The text continues after its first document."""


def _decode(data: bytes | str) -> str:
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        raise IntakeRefused(
            f"this is not valid JSON: invalid {error.encoding.upper()} at byte {error.start}"
        ) from error
    return text.removeprefix("\ufeff")


def _parse(text: str, line: int) -> Any:
    """Return the value of JSON text that starts at some line of a file."""
    try:
        return parse_exact_json(text)
    except json.JSONDecodeError as error:
        kind = _SeveralDocuments if error.msg == "Extra data" else IntakeRefused
        location = f"in line {line - 1 + error.lineno}, column {error.colno}"
        raise kind(f"this is not valid JSON: {error.msg} {location}") from error


def _field_errors(error: ValidationError) -> list[str]:
    """Return the errors in a result by field, without repeating its values."""
    return [f"{location or 'the document'}: {problem}" for location, problem in _problems(error)]


def _argument_errors(error: ValidationError) -> list[str]:
    """Return the errors of a result that was built here, by the argument's name."""
    return list(
        dict.fromkeys(
            f"{_ARGUMENTS.get(location, location)}: {problem}" for location, problem in _problems(error)
        )
    )


def _problems(error: ValidationError) -> Iterable[tuple[str, str]]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        location = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "string_pattern_mismatch":
            yield location, _ID_RULE
        else:
            message = validation_message(detail).removesuffix(".")
            yield location, message[:1].lower() + message[1:]
