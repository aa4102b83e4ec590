"""The pages of the review history."""

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
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.code_diff import DiffLine, diff_code
from tavola.apps.terraform_review.domain import Category, RiskBand, Severity, Status, risk_band
from tavola.apps.terraform_review.model import Finding, Review, ReviewVersion
from tavola.apps.terraform_review.requests import VERSION_MAX, day_range, named_caller, store_of
from tavola.apps.terraform_review.risk_trend import band_counts, build_trend, format_score
from tavola.apps.terraform_review.schemas import to_datetime, to_json_value
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import BlobDamaged, BlobMissing, Difference

CACHE_S: Final = 1.0
ROWS: Final = 25
VERSIONS_SHOWN: Final = 50
CODE_CHARACTERS_SHOWN: Final = 100_000
VALUE_CHARACTERS_SHOWN: Final = 300
RANGES: Final = ((30, "30 days"), (90, "90 days"), (365, "A year"))

BAND_TONES: Final[Mapping[RiskBand | None, str]] = {
    RiskBand.HIGH: "bad",
    RiskBand.MEDIUM: "warn",
    RiskBand.LOW: "good",
    None: "neutral",
}
STATUS_TONES: Final[Mapping[Status, str]] = {
    Status.PENDING: "info",
    Status.COMPLETED: "good",
    Status.FAILED: "bad",
}
SEVERITY_TONES: Final[Mapping[Severity, str]] = {
    Severity.HIGH: "bad",
    Severity.MEDIUM: "warn",
    Severity.LOW: "neutral",
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
    cache: dict[
        str, tuple[int, float, str]
    ] = {}  # by base path; valid until the follower counts something, for a second at most

    @router.get("/ui/")
    async def overview(request: Request) -> Response:
        store = store_of(request)
        base = str(request.scope.get("root_path", ""))
        generation = request.app.state.follower.generation
        cached_generation, fresh_until, page = cache.get(base, (-1, 0.0, ""))
        if cached_generation != generation or pages.clock.now() >= fresh_until:
            page = pages.text(request, "overview.html", await _overview(store))
            cache[base] = generation, pages.clock.now() + CACHE_S, page
        return HTMLResponse(page)


async def _overview(store: ReviewStore) -> dict[str, Any]:
    start, end = day_range(store, None, None)
    pending, failed, high, days = await asyncio.gather(
        service.list_by_status(store, Status.PENDING, limit=6, newest_first=False),
        service.list_by_status(store, Status.FAILED, limit=6),
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
        "high": high.items,
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
        start, end, errors = _days_of_form(request)
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
                "labels": [_label(each.created_at) for each in recent.items[::-1]],
                "risks": [_float(each.overall_risk_score) for each in recent.items[::-1]],
                "found": [_float(each.found_risk_score) for each in recent.items[::-1]],
                "typed": _form_text(request),
                "repeated": repeated.items,
                "start": start,
                "end": end,
                "wrong": errors,
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
        context = {"stack_id": stack_id, "issues": page, "least": minimum, "first": cursor is None}
        return pages.render(request, "stack_issues.html", context)


def _add_reviews(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews")
    async def reviews(request: Request, cursor: Cursor = None) -> Response:
        store = store_of(request)
        text = request.query_params.get("status", Status.PENDING)
        status = Status(text) if text in tuple(Status) else Status.PENDING
        older = request.query_params.get("older", "")
        minutes = int(older[:6]) if older.isascii() and older.isdigit() else None
        if minutes is not None and status is Status.PENDING:
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
    findings, (code, lost), audit = await asyncio.gather(
        service.list_findings(store, shown),
        _code(store, shown),
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
            "cut": len(code) > CODE_CHARACTERS_SHOWN,
            "lost": lost,
            "named": named_caller(request),
            "audit": audit.items,
            "form": form or {},
            "errors": errors or {},
        },
        status=422 if errors else 200,
    )


async def _code(store: ReviewStore, shown: Review | ReviewVersion) -> tuple[str, str]:
    """Return the code of a version and "", or "" and why it cannot be read: the rest of the page is still shown."""
    try:
        return await service.read_code(store, shown), ""
    except (BlobMissing, BlobDamaged) as error:
        problem = problem_of(error)
        assert problem is not None, "a lost blob is a problem of its own"
        return "", problem.detail


def _add_history(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews/{review_id}/compare")
    async def compare(
        request: Request,
        review_id: str,
        one: Annotated[int | None, Query(alias="from", ge=1, le=VERSION_MAX)] = None,
        other: Annotated[int | None, Query(alias="to", ge=1, le=VERSION_MAX)] = None,
    ) -> Response:
        store = store_of(request)
        latest = await service.get_review(store, review_id)
        after_number = other or latest.version
        before_number = one or max(1, after_number - 1)
        before, after, differences = await asyncio.gather(
            service.get_version(store, review_id, before_number),
            service.get_version(store, review_id, after_number),
            service.compare_versions(store, review_id, before_number, after_number),
        )
        lines: list[DiffLine] | None = []
        lost = ""
        if before.code.sha256 != after.code.sha256:
            (old, lost), (new, other_lost) = await asyncio.gather(_code(store, before), _code(store, after))
            lost = lost or other_lost
            lines = [] if lost else await diff_code(old, new)
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
                "lost": lost,
            },
        )

    @router.get("/ui/reviews/{review_id}/audit")
    async def audit(request: Request, review_id: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        latest, page = await asyncio.gather(
            service.get_review(store, review_id),
            service.list_audit_entries(store, review_id, limit=ROWS, cursor=cursor),
        )
        requested = (
            "verify" in request.query_params
        )  # on request only, because it reads all items of the review
        context = {
            "latest": latest,
            "entries": [(each, describe_differences(each.differences)) for each in page.items],
            "next": page.cursor,
            "asked": requested,
            "verified": await service.verify_review(store, review_id) if requested else None,
            "first": cursor is None,
        }
        return pages.render(request, "audit.html", context)

    @router.get("/ui/actors/{actor}")
    async def actor(request: Request, actor: str, cursor: Cursor = None) -> Response:
        page = await service.list_changes_by(store_of(request), actor, limit=ROWS, cursor=cursor)
        context = {
            "actor": actor,
            "entries": [(each, describe_differences(each.differences)) for each in page.items],
            "next": page.cursor,
            "first": cursor is None,
        }
        return pages.render(request, "actor.html", context)


def _add_risk(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/risk")
    async def risk(request: Request) -> Response:
        store = store_of(request)
        start, end, errors = _days_of_form(request)
        first, last = day_range(store, start, end)
        if not errors and not 0 <= (last - first).days < service.TREND_DAYS_MAX:
            errors = {"from": f"Choose a range of 1 to {service.TREND_DAYS_MAX:,} days."}
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
                "typed": _form_text(request),
                "wrong": errors,
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
            "found": day_risk,
            "chart": band_counts(day_risk),
            "reviews": reviews,
            "first": cursor is None,
            "before": day - timedelta(days=1) if day > date.min else None,
            "after": day + timedelta(days=1) if day < date.max else None,
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
    """Return differences as (label, before, after); fields that every version changes, and the code, are left out."""
    rows: list[tuple[str, str | None, str | None]] = []
    for difference in differences:
        if difference.path.startswith(_HIDDEN_FIELDS):
            continue
        before, after = difference.before, difference.after
        if difference.omitted:
            before = None if difference.kind == "added" else "too long to be shown"
            after = None if difference.kind == "removed" else "too long to be shown"
        rows.append((_field_label(difference.path), _value_label(before), _value_label(after)))
    return rows


def _field_label(path: str) -> str:
    """Return a field's path as a label: `cost_findings.high` becomes "Cost findings: high"."""
    if match := _FINDING_FIELD.fullmatch(path):
        return f"Finding {match[1] or match[2]}{match[3].replace('.', ': ', 1)}"
    name, _, rest = path.partition(".")
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] + (f": {rest}" if rest else "")


def _value_label(value: Any) -> str | None:
    if value is None:
        return None
    plain_value = to_json_value(value)
    text = plain_value if isinstance(plain_value, str) else _value_text(plain_value)
    return text if len(text) <= VALUE_CHARACTERS_SHOWN else text[:VALUE_CHARACTERS_SHOWN] + "…"


def _value_text(value: Any) -> str:
    match value:
        case {"title": title, "severity": severity, "category": category}:  # a finding
            return f"{title} ({severity}, {category})"
        case {"findings_resolved": resolved, "findings_remaining": remaining, **more}:  # a fix
            reduced = more.get("risk_reduction")
            return f"{resolved} resolved, {remaining} remaining" + (
                f", risk less by {reduced}" if reduced else ""
            )
        case dict():
            members = {name: each for name, each in value.items() if each not in (None, "", {}, [])}
            return ", ".join(f"{name}: {_value_text(each)}" for name, each in members.items())
        case list():
            return ", ".join(_value_text(each) for each in value)
        case bool() | None:
            return {True: "yes", False: "no", None: "none"}[value]
        case _:
            return str(value)


def _by_category(findings: Sequence[Finding]) -> dict[Category, list[Finding]]:
    by_category: defaultdict[Category, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_category[finding.category].append(finding)
    return {category: by_category[category] for category in Category if by_category[category]}


def _days_of_form(request: Request) -> tuple[date | None, date | None, dict[str, str]]:
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
                errors[name] = "Give a day, such as 2026-11-16."
    start, end = days["from"], days["to"]
    if start is not None and end is not None and end < start:
        errors["to"] = "The last day is before the first."
        return None, None, errors
    return start, end, errors


def _form_text(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in ("from", "to")}


def _label(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %H:%M}"


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
