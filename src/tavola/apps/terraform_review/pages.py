"""The HTML pages of the review history: overview, stacks, reviews and their versions, risk over time, and issues."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from tavola.apps.shell import Cursor, Pages, not_found, problem_of
from tavola.apps.shell.pages import format_moment, money
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.code_diff import DiffLine, diff_code
from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus, RiskBand, risk_band
from tavola.apps.terraform_review.model import Review, ReviewFinding, ReviewVersion
from tavola.apps.terraform_review.requests import VERSION_MAX, day_range, named_caller, store_of
from tavola.apps.terraform_review.risk_trend import band_counts, build_trend, format_score
from tavola.apps.terraform_review.schemas import to_datetime, to_json_value
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import BlobDamaged, BlobMissing, Difference

CACHE_S: Final = 1.0
ROWS: Final = 25
VERSIONS_SHOWN: Final = 50
CODE_CHARACTERS_SHOWN: Final = 100_000
VALUE_CHARACTERS_SHOWN: Final = 300
RANGES: Final = ((30, "30 days"), (90, "90 days"), (365, "365 days"))

BAND_TONES: Final[Mapping[RiskBand | None, str]] = {
    RiskBand.HIGH: "bad",
    RiskBand.MEDIUM: "warn",
    RiskBand.LOW: "good",
    None: "neutral",
}
STATUS_TONES: Final[Mapping[ReviewStatus, str]] = {
    ReviewStatus.PENDING: "info",
    ReviewStatus.COMPLETED: "good",
    ReviewStatus.FAILED: "bad",
}
SEVERITY_TONES: Final[Mapping[FindingSeverity, str]] = {
    FindingSeverity.HIGH: "bad",
    FindingSeverity.MEDIUM: "warn",
    FindingSeverity.LOW: "neutral",
}
_HIDDEN_FIELDS: Final = (
    "code.",
    "changed_at",
    "changed_by",
    "chain_digest",
    "expires_at",
    "recorded",
    "more_findings",
)
_FIELD_LABELS: Final = {  # of fields whose name is not what pages call them
    "overall_risk_score": "Risk",
    "found_risk_score": "Risk before fixes",
    "findings_total": "Findings",
    "high_findings": "High-severity findings",
    "ai_review_result": "AI review result",
}
_FREE_FIELDS: Final = ("metadata", "ai_review_result")  # the caller's own names and values
_SCORES: Final = ("overall_risk_score", "found_risk_score", "reliability_score", "risk_reduction")
_AMOUNTS: Final = ("estimated_monthly_cost", "estimated_annual_cost")
_TIMES: Final = ("status_since", "created_at", "applied_at")
_NUMBER: Final = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
_FINDING_FIELD: Final = re.compile(r'findings(?:\.([^.\[]+)|\["(.*?)"\])(.*)')

VersionQuery = Annotated[int | None, Query(ge=1, le=VERSION_MAX)]


def router_of(pages: Pages) -> APIRouter:
    """Return the routes of the pages."""
    pages.environment.filters["score"] = format_score
    pages.environment.globals.update(
        risk_band=risk_band,
        BAND_TONES=BAND_TONES,
        STATUS_TONES=STATUS_TONES,
        SEVERITY_TONES=SEVERITY_TONES,
    )
    router = APIRouter(include_in_schema=False)
    _add_overview(router, pages)
    _add_stacks(router, pages)
    _add_reviews(router, pages)
    _add_history(router, pages)
    _add_risk(router, pages)
    _add_issues(router, pages)
    return router


def _add_overview(router: APIRouter, pages: Pages) -> None:
    # By base path: the follower's generation, the expiry time and the page. A page is reused for CACHE_S at most, and only until the
    # follower counts another change.
    cache: dict[str, tuple[int, float, str]] = {}

    @router.get("/ui/")
    async def overview(request: Request) -> Response:
        store = store_of(request)
        base = str(request.scope.get("root_path", ""))
        generation = request.app.state.follower.generation
        cached_generation, fresh_until, page = cache.get(base, (-1, 0.0, ""))
        if cached_generation != generation or pages.clock.now() >= fresh_until:
            page = pages.text(request, "overview.html", await _overview_context(store))
            cache[base] = generation, pages.clock.now() + CACHE_S, page
        return HTMLResponse(page)


async def _overview_context(store: ReviewStore) -> dict[str, Any]:
    start, end = day_range(store, None, None)
    pending, failed, high, days = await asyncio.gather(
        service.list_by_status(store, ReviewStatus.PENDING, limit=6, newest_first=False),
        service.list_by_status(store, ReviewStatus.FAILED, limit=6),
        service.list_high_risk(store, start, end, limit=8),
        service.list_day_risks(store, start, end),
    )
    pages = await asyncio.gather(
        *(service.list_frequent_issues(store, category, limit=4) for category in Category)
    )
    issues = [issue for page in pages for issue in page.items]
    return {
        "waiting": pending.items,
        "failed": failed.items,
        "older": bool(pending.items) and pending.items[0].created_at.date() < start,
        "high": sorted(high.items, key=lambda review: review.created_at, reverse=True),
        "trend": build_trend(days, start, end),
        "start": start,
        "end": end,
        "issues": sorted(issues, key=lambda issue: -issue.occurrence_count)[:8],
    }


def _add_stacks(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/stacks")
    async def stacks(request: Request, cursor: Cursor = None) -> Response:
        page = await service.list_stacks(store_of(request), limit=ROWS * 2, cursor=cursor)
        return pages.render(request, "stacks.html", {"stacks": page, "first": cursor is None})

    @router.get("/ui/stacks/{stack_id}")
    async def stack(request: Request, stack_id: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        start, end, errors = _parse_form_days(request)
        history, stats, recent, repeated = await asyncio.gather(
            service.list_stack_reviews(
                store,
                stack_id,
                since=to_datetime(start),
                until=to_datetime(end, ends=True),
                limit=ROWS,
                cursor=cursor,
            ),
            service.get_stack_stats(store, stack_id),
            service.list_stack_reviews(store, stack_id, limit=40),
            service.list_stack_issues(store, stack_id, min_occurrences=2, limit=10),
        )
        if stats is None and not recent.items:
            raise not_found("stack")
        return pages.render(
            request,
            "stack.html",
            {
                "stack_id": stack_id,
                "stats": stats,
                "history": history,
                "labels": [_time_label(review.created_at) for review in recent.items[::-1]],
                "risks": [_to_float(review.overall_risk_score) for review in recent.items[::-1]],
                "found_risks": [_to_float(review.found_risk_score) for review in recent.items[::-1]],
                "form_input": _form_input(request),
                "repeated": repeated.items,
                "start": start,
                "end": end,
                "errors": errors,
                "first": cursor is None,
            },
        )

    @router.get("/ui/stacks/{stack_id}/issues")
    async def stack_issues(request: Request, stack_id: str, cursor: Cursor = None) -> Response:
        text = request.query_params.get("min", "3")
        minimum = max(1, int(text[:9])) if text.isascii() and text.isdigit() else 3
        page = await service.list_stack_issues(
            store_of(request), stack_id, min_occurrences=minimum, limit=ROWS, cursor=cursor
        )
        context = {"stack_id": stack_id, "issues": page, "min_occurrences": minimum, "first": cursor is None}
        return pages.render(request, "stack_issues.html", context)


def _add_reviews(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews")
    async def reviews(request: Request, cursor: Cursor = None) -> Response:
        store = store_of(request)
        text = request.query_params.get("status", ReviewStatus.PENDING)
        status = ReviewStatus(text) if text in tuple(ReviewStatus) else ReviewStatus.PENDING
        older = request.query_params.get("older", "")
        minutes = int(older[:6]) if older.isascii() and older.isdigit() else None
        if minutes is not None and status is ReviewStatus.PENDING:
            page = await service.list_pending(
                store, older_than=timedelta(minutes=minutes), limit=ROWS, cursor=cursor
            )
        else:
            minutes = None
            page = await service.list_by_status(store, status, limit=ROWS, cursor=cursor)
        context = {"status": status, "minutes": minutes, "reviews": page, "first": cursor is None}
        return pages.render(request, "reviews.html", context)

    @router.get("/ui/runs/{run_id}")
    async def run(request: Request, run_id: str) -> Response:
        page = await service.latest_run_review(store_of(request), run_id)
        if page is None:
            raise not_found("run")
        return pages.redirect(request, f"/ui/reviews/{page.review_id}")

    @router.get("/ui/reviews/{review_id}")
    async def review(request: Request, review_id: str, version: VersionQuery = None) -> Response:
        return await review_page(request, pages, review_id, version)


async def review_page(
    request: Request,
    pages: Pages,
    review_id: str,
    number: int | None,
    *,
    form: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of a review or of one of its versions, with the errors of a refused form."""
    store = store_of(request)
    latest = await service.get_review(store, review_id)
    shown: Review | ReviewVersion = latest
    if number is not None and number != latest.version:
        shown = await service.get_version(store, review_id, number)
    findings, (code, code_error), audit = await asyncio.gather(
        service.list_findings(store, shown),
        _read_code(store, shown),
        service.list_audit_entries(store, review_id, limit=VERSIONS_SHOWN),
    )
    return pages.render(
        request,
        "review.html",
        {
            "review": shown,
            "latest": latest,
            "findings": _by_category(findings),
            "code": code[:CODE_CHARACTERS_SHOWN],
            "is_code_truncated": len(code) > CODE_CHARACTERS_SHOWN,
            "code_error": code_error,
            "caller_name": named_caller(request),
            "audit": audit.items,
            "form": form or {},
            "errors": errors or {},
        },
        status=422 if errors else 200,
    )


async def _read_code(store: ReviewStore, shown: Review | ReviewVersion) -> tuple[str, str]:
    """Return the code of a version and an empty error, or no code and the error, so that the rest of the page is still shown."""
    try:
        return await service.read_code(store, shown), ""
    except (BlobMissing, BlobDamaged) as error:
        problem = problem_of(error)
        assert problem is not None, "problem_of knows both blob errors"
        return "", problem.detail


def _add_history(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews/{review_id}/compare")
    async def compare(
        request: Request,
        review_id: str,
        from_version: Annotated[int | None, Query(alias="from", ge=1, le=VERSION_MAX)] = None,
        to_version: Annotated[int | None, Query(alias="to", ge=1, le=VERSION_MAX)] = None,
    ) -> Response:
        store = store_of(request)
        latest = await service.get_review(store, review_id)
        after_number = to_version or latest.version
        before_number = from_version or max(1, after_number - 1)
        before, after, differences = await asyncio.gather(
            service.get_version(store, review_id, before_number),
            service.get_version(store, review_id, after_number),
            service.compare_versions(store, review_id, before_number, after_number),
        )
        lines: list[DiffLine] | None = []
        code_error = ""
        if before.code.sha256 != after.code.sha256:
            (old, code_error), (new, new_error) = await asyncio.gather(
                _read_code(store, before), _read_code(store, after)
            )
            code_error = code_error or new_error
            lines = [] if code_error else await diff_code(old, new)
        return pages.render(
            request,
            "compare.html",
            {
                "latest": latest,
                "before": before,
                "after": after,
                "numbers": [
                    str(number) for number in range(latest.version, max(0, latest.version - 100), -1)
                ],
                "differences": describe_differences(differences),
                "lines": lines,
                "code_error": code_error,
            },
        )

    @router.get("/ui/reviews/{review_id}/audit")
    async def audit(request: Request, review_id: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        latest, page = await asyncio.gather(
            service.get_review(store, review_id),
            service.list_audit_entries(store, review_id, limit=ROWS, cursor=cursor),
        )
        # On request only, because verification reads all items of the review.
        requested = "verify" in request.query_params
        context = {
            "latest": latest,
            "entries": [(entry, describe_differences(entry.differences)) for entry in page.items],
            "next": page.cursor,
            "requested": requested,
            "verified": await verify_review(store, review_id) if requested else None,
            "first": cursor is None,
        }
        return pages.render(request, "audit.html", context)

    @router.get("/ui/actors/{actor}")
    async def actor(request: Request, actor: str, cursor: Cursor = None) -> Response:
        page = await service.list_changes_by(store_of(request), actor, limit=ROWS, cursor=cursor)
        context = {
            "actor": actor,
            "entries": [(entry, describe_differences(entry.differences)) for entry in page.items],
            "next": page.cursor,
            "first": cursor is None,
        }
        return pages.render(request, "actor.html", context)


def _add_risk(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/risk")
    async def risk(request: Request) -> Response:
        store = store_of(request)
        start, end, errors = _parse_form_days(request)
        first, last = day_range(store, start, end)
        if not errors and not 0 <= (last - first).days < service.TREND_DAYS_MAX:
            errors = {"from": f"Select a range of 1 to {service.TREND_DAYS_MAX:,} days."}
        if errors:
            first, last = day_range(store, None, None)
        days = await service.list_day_risks(store, first, last)
        span = min(last - first, timedelta(days=service.DAYS_MAX - 1))
        high = await service.list_high_risk(store, last - span, last, limit=ROWS)
        today = store.now().date()
        return pages.render(
            request,
            "risk.html",
            {
                "trend": build_trend(days, first, last),
                "days": days[::-1][:60],
                "high": high,
                "start": first,
                "end": last,
                "form_input": _form_input(request),
                "errors": errors,
                "ranges": [(label, today - timedelta(days=count - 1), today) for count, label in RANGES],
            },
            status=422 if errors else 200,
        )

    @router.get("/ui/risk/{day}")
    async def risk_day(request: Request, day: date, cursor: Cursor = None) -> Response:
        store = store_of(request)
        day_risk, reviews = await asyncio.gather(
            service.get_day_risk(store, day),
            service.list_high_risk(store, day, day, min_risk=Decimal(0), limit=ROWS, cursor=cursor),
        )
        context = {
            "day": day,
            "day_risk": day_risk,
            "chart": band_counts(day_risk),
            "reviews": reviews,
            "first": cursor is None,
            "before": day - timedelta(days=1) if day > date.min else None,
            "after": day + timedelta(days=1) if day < store.now().date() else None,
        }
        return pages.render(request, "risk_day.html", context)


def _add_issues(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/issues")
    async def issues(request: Request, cursor: Cursor = None) -> Response:
        text = request.query_params.get("category", Category.SECURITY)
        category = Category(text) if text in tuple(Category) else Category.SECURITY
        page = await service.list_frequent_issues(store_of(request), category, limit=ROWS, cursor=cursor)
        context = {"category": category, "issues": page, "first": cursor is None}
        return pages.render(request, "issues.html", context)

    @router.get("/ui/issues/{issue_hash}")
    async def issue(request: Request, issue_hash: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        page = await service.get_issue(store, issue_hash)
        if page is None:
            raise not_found("issue")
        occurrences = await service.list_occurrences(store, issue_hash, limit=ROWS, cursor=cursor)
        context = {"issue": page, "occurrences": occurrences, "first": cursor is None}
        return pages.render(request, "issue.html", context)


# Formatting.


def describe_differences(differences: Sequence[Difference]) -> list[tuple[str, str | None, str | None]]:
    """Return differences as (label, before, after), without the code and the fields that change with every version."""
    rows: list[tuple[str, str | None, str | None]] = []
    for difference in differences:
        if difference.path.startswith(_HIDDEN_FIELDS):
            continue
        before, after = difference.before, difference.after
        if difference.omitted:
            before = None if difference.kind == "added" else "(too long to show)"
            after = None if difference.kind == "removed" else "(too long to show)"
        name = "" if difference.path.startswith(_FREE_FIELDS) else difference.path.rpartition(".")[2]
        rows.append((_field_label(difference.path), _value_label(name, before), _value_label(name, after)))
    return rows


def _field_label(path: str) -> str:
    """Return a field's path as a label: `cost_findings.high` becomes "Cost findings: high"."""
    if match := _FINDING_FIELD.fullmatch(path):
        return f"Finding {match[1] or match[2]}{match[3].replace('.', ': ', 1)}"
    name, _, rest = path.partition(".")
    words = name.replace("_", " ")
    label = _FIELD_LABELS.get(name, words[:1].upper() + words[1:])
    return f"{label}: {rest.replace('_', ' ')}" if rest else label


def _value_label(name: str, value: Any) -> str | None:
    if value is None:
        return None
    text = _value_text(name, to_json_value(value))
    return text if len(text) <= VALUE_CHARACTERS_SHOWN else text[:VALUE_CHARACTERS_SHOWN] + "…"


def _value_text(name: str, value: Any) -> str:
    """Return the value of a field as pages show times, scores, amounts and statuses elsewhere."""
    match value:
        case {"title": title, "severity": severity, "category": category}:  # a finding
            return f"{title} ({severity}, {category})"
        case {"findings_resolved": resolved, "findings_remaining": remaining, **more}:  # a fix
            reduced = more.get("risk_reduction")
            return f"{resolved} resolved, {remaining} remaining" + (
                f", risk reduced by {_value_text('risk_reduction', reduced)}" if reduced else ""
            )
        case dict():
            members = {part: member for part, member in value.items() if member not in (None, "", {}, [])}
            return ", ".join(
                f"{part.replace('_', ' ')}: {_value_text(part, member)}" for part, member in members.items()
            )
        case list():
            return ", ".join(_value_text(name, element) for element in value)
        case bool() | None:
            return {True: "yes", False: "no", None: "none"}[value]
        case str() if name == "status":
            return value.capitalize()
        case str() if name in _SCORES and _NUMBER.fullmatch(value):
            return format_score(Decimal(value))
        case str() if name in _AMOUNTS and _NUMBER.fullmatch(value):
            return money(Decimal(value))
        case str() if name in _TIMES and _TIME.fullmatch(value):
            return format_moment(datetime.fromisoformat(value))
        case _:
            return str(value)


def _by_category(findings: Sequence[ReviewFinding]) -> dict[Category, list[ReviewFinding]]:
    by_category: defaultdict[Category, list[ReviewFinding]] = defaultdict(list)
    for finding in findings:
        by_category[finding.category].append(finding)
    return {category: by_category[category] for category in Category if by_category[category]}


def _parse_form_days(request: Request) -> tuple[date | None, date | None, dict[str, str]]:
    """Return the first and last day of the form, and the errors in its fields."""
    days: dict[str, date | None] = {}
    errors: dict[str, str] = {}
    for name in ("from", "to"):
        text = request.query_params.get(name, "").strip()
        days[name] = None
        if text:
            try:
                days[name] = date.fromisoformat(text)
            except ValueError:
                errors[name] = "Enter a date such as 2026-11-16."
    start, end = days["from"], days["to"]
    if start is not None and end is not None and end < start:
        errors["to"] = "The end date is before the start date."
        return None, None, errors
    return start, end, errors


def _form_input(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in ("from", "to")}


def _time_label(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %H:%M}"


def _to_float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
