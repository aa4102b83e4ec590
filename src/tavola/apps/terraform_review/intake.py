"""Intake: results that come from outside become reviews: a file of JSON, or a folder that an analyser looks at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tavola import Clock, Entropy, TavolaError
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.analysers import (
    Analyser,
    AnalyserError,
    Analysis,
    Breakdown,
    code_of,
    read_folder,
    risk_of,
)
from tavola.apps.terraform_review.domain import FINDINGS_MAX, Category, Severity, Status, review_id_of
from tavola.apps.terraform_review.errors import RunRecorded
from tavola.apps.terraform_review.model import Review
from tavola.apps.terraform_review.results import (
    ErrorDetails,
    FindingResult,
    ReviewResult,
    SpaceliftContext,
)
from tavola.apps.terraform_review.service import Recorded
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import digest_of

FILES_TOLD_MAX = 500

_ONE = TypeAdapter(ReviewResult)
_WORST_FIRST = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}
_TOLD_MAX = 5
_ID_RULE = "it has 1 to 200 characters, no slash, backslash or control character, and begins with no dot"
_ARGUMENTS = {
    "spacelift_run_id": "run",
    "stack_id": "stack",
    "created_by": "by",
    "commit_sha": "commit",
    "terraform_code": "the code",
}


class IntakeRefused(TavolaError):
    """A file that holds no review result; the sentence says where it is wrong. Nothing of it was stored."""


class IntakeStopped(TavolaError):
    """A list of results of which some could be stored and one could not; `__cause__` is why."""

    def __init__(self, recorded: tuple[Recorded, ...], result: ReviewResult, left: int, cause: str) -> None:
        self.recorded = recorded  # those before it, which are stored
        self.run_id = result.spacelift_run_id
        self.left = left  # how many come after it, and were not looked at
        super().__init__(
            f"the run {self.run_id!r} could not be stored: {cause.rstrip('.')}. Stored are the {len(recorded)} before it, and "
            f"not the {left} after it. Mend it and give all of them again: what is stored is not stored twice"
        )


def read_results(data: bytes | str) -> tuple[ReviewResult, ...]:
    """Return the results in JSON: one, a list of them, or one on each line."""
    found: list[ReviewResult] = []
    wrong: list[str] = []
    for place, document in _documents(data):
        try:
            found.append(_ONE.validate_python(document))
        except ValidationError as error:
            wrong += [place + each for each in _complaints(error)]
    if wrong:
        more = f"; and {len(wrong) - _TOLD_MAX} more" if len(wrong) > _TOLD_MAX else ""
        raise IntakeRefused(f"this is no review result. {'; '.join(wrong[:_TOLD_MAX])}{more}")
    if not found:
        raise IntakeRefused("this is an empty list; give at least one review result")
    return tuple(found)


def exact_json(data: bytes | str) -> Any:
    """Return what JSON says: numbers as floats where these say the same, else as decimals, so that no digit is lost.

    What cannot be read, a number of thousands of digits or a document that is too deep among it, is a JSONDecodeError.
    """
    try:
        return json.loads(data, parse_float=_exact, parse_constant=_none)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise json.JSONDecodeError("it is not UTF-8, too deep, or has a number too long", "", 0) from error


async def ingest(store: ReviewStore, data: bytes | str, *, caller: str | None = None) -> tuple[Recorded, ...]:
    """Store the results in JSON, one or more; what was stored before is told so and not stored again.

    All of them are read, and their runs looked up, before the first is stored: a mistake in one stores none. What only the store can refuse,
    such as a record that is too large, is an `IntakeStopped` that tells what is stored by then. With `caller`, who hands them over, they
    are by nobody else.
    """
    results = read_results(data)
    for result in results:
        if caller is not None and result.created_by != caller:
            raise IntakeRefused(
                f"the run {result.spacelift_run_id!r} is by {result.created_by!r}, and you are {caller!r}; hand over your own"
            )
    await _check_runs(store, results)
    recorded: list[Recorded] = []
    for result in results:
        try:
            recorded.append(await service.record(store, result))
        except (TavolaError, OSError) as error:
            if not recorded:
                raise
            left = len(results) - len(recorded) - 1
            raise IntakeStopped(tuple(recorded), result, left, str(error)) from error
    return tuple(recorded)


async def _check_runs(store: ReviewStore, results: Sequence[ReviewResult]) -> None:
    """Refuse results of which two are of one run, or one of a run that has another on record."""
    digests: dict[str, str] = {}
    for result in results:
        run_id, digest = result.spacelift_run_id, digest_of(result)
        if digests.setdefault(run_id, digest) != digest:
            raise IntakeRefused(
                f"the run {run_id!r} is in it twice, with different results; keep one of them"
            )
    standing = await store.db.get_many(
        [Review.Key(review_id=review_id_of(run_id)) for run_id in digests], consistent=True
    )
    for (run_id, digest), review in zip(digests.items(), standing, strict=True):
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
) -> Recorded:
    """Let an analyser look at a folder, and store what it says as a review of a stack.

    A run that breaks down is stored too, as a failed review whose risk is unknown: that nobody looked is worth knowing. What cannot be stored
    whatever it finds, such as a stack with a slash in its name, is an `AnalyserError` before the analyser begins.
    """
    sources = read_folder(folder)
    told: Any = {
        "code": code_of(sources),
        "stack": stack,
        "run": run or f"local-{entropy.uuid()}",
        "by": by,
    }
    try:
        told["context"] = SpaceliftContext(
            changed_files=tuple(source.path for source in sources if source.kept)[:FILES_TOLD_MAX],
            commit_sha=commit,
            branch=branch,
        )
        result_of(Analysis("", (), 0), **told)
    except ValidationError as error:
        raise AnalyserError(f"the review could not be stored. {'; '.join(_arguments(error))}") from error
    begun = clock.now()
    analysis = await analyser.analyse(sources)
    told["duration_ms"] = round((clock.now() - begun) * 1000)
    try:
        result = result_of(analysis, **told)
    except ValidationError as error:
        why = f"what it said cannot be stored: {'; '.join(_complaints(error)[:_TOLD_MAX])}"
        result = result_of(Analysis(analysis.analyser[:200], (), 0, Breakdown("output", why)), **told)
    return await service.record(store, result)


def result_of(
    analysis: Analysis,
    *,
    code: str,
    stack: str,
    run: str,
    by: str,
    context: SpaceliftContext | None = None,
    duration_ms: int = 0,
) -> ReviewResult:
    """Return an analysis as a review result; past the findings that a review holds, the gravest are taken."""
    findings = sorted(analysis.findings, key=lambda found: _WORST_FIRST[found.severity])[:FINDINGS_MAX]
    broken = analysis.breakdown
    reliability = [found for found in analysis.findings if found.category is Category.RELIABILITY]
    return ReviewResult(
        spacelift_run_id=run,
        stack_id=stack,
        created_by=by,
        status=Status.FAILED if broken else Status.COMPLETED,
        terraform_code=code,
        overall_risk_score=None if broken else risk_of(analysis.findings),
        reliability_score=None if broken else 1 - risk_of(reliability),
        findings=tuple(
            FindingResult(
                category=found.category,
                severity=found.severity,
                title=found.title[:300],
                description=found.description[:4000],
                line_number=found.line_number,
                file_path=found.file_path[:1000],
                recommendation=found.recommendation[:4000],
                confidence_score=found.confidence,
                rule_id=found.rule_id[:200],
            )
            for found in findings
        ),
        error_details=ErrorDetails(error_type=broken.kind, error_message=broken.message[:4000])
        if broken
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


def _none(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _documents(data: bytes | str) -> Iterable[tuple[str, Any]]:
    """Return what JSON says, each result with where it stands: one document, those of a list, or those of the lines."""
    text = _decoded(data)
    try:
        found = _read(text, 1)
    except _SeveralDocuments:
        lines = enumerate(text.split("\n"), 1)
        return [(f"line {number}: ", _read(line, number)) for number, line in lines if line.strip()]
    if isinstance(found, list):
        return [(f"result {number}: ", each) for number, each in enumerate(found, 1)]
    return [("", found)]


class _SeveralDocuments(IntakeRefused):
    """A text that goes on after its first document."""


def _decoded(data: bytes | str) -> str:
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        raise IntakeRefused(
            f"this is no JSON: it is not {error.encoding.upper()}, at byte {error.start}"
        ) from error
    return text.removeprefix("\ufeff")


def _read(text: str, line: int) -> Any:
    """Return what a text says that begins in some line of a file."""
    try:
        return exact_json(text)
    except json.JSONDecodeError as error:
        kind = _SeveralDocuments if error.msg == "Extra data" else IntakeRefused
        place = f"in line {line - 1 + error.lineno}, column {error.colno}"
        raise kind(f"this is no JSON: {error.msg} {place}") from error


def _complaints(error: ValidationError) -> list[str]:
    """Return what is wrong with a result, place by place, without repeating what is in it."""
    return [f"{place or 'the document'}: {what}" for place, what in _problems(error)]


def _arguments(error: ValidationError) -> list[str]:
    """Return the same of a result that is made here, by the names of the arguments."""
    return list(dict.fromkeys(f"{_ARGUMENTS.get(place, place)}: {what}" for place, what in _problems(error)))


def _problems(error: ValidationError) -> Iterable[tuple[str, str]]:
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in each["loc"])
        yield (
            place,
            _ID_RULE
            if each["type"] == "string_pattern_mismatch"
            else each["msg"].removeprefix("Value error, "),
        )
