"""Pages: the review history for people, one function a page."""

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

from tavola.apps.shell import Cursor, Pages, not_found
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.answers import VERSION_MAX, blob_lost, days_of, named_caller, store_of
from tavola.apps.terraform_review.charting import distribution, score, trend
from tavola.apps.terraform_review.comparison import Line, compare_code
from tavola.apps.terraform_review.domain import Band, Category, Severity, Status, band_of
from tavola.apps.terraform_review.model import Finding, Review, ReviewVersion
from tavola.apps.terraform_review.resources import moment_of, plain
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import BlobDamaged, BlobMissing, Difference

KEPT_S: Final = 1.0
ROWS: Final = 25
VERSIONS_SHOWN: Final = 50
CODE_CHARACTERS_SHOWN: Final = 100_000
VALUE_CHARACTERS_SHOWN: Final = 300
RANGES: Final = ((30, "30 days"), (90, "90 days"), (365, "A year"))

BAND_TONES: Final[Mapping[Band | None, str]] = {
    Band.HIGH: "bad",
    Band.MEDIUM: "warn",
    Band.LOW: "good",
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
_INNER: Final = ("code.", "changed_at", "changed_by", "seal", "expires_at", "recorded", "more_findings")
_OF_FINDING: Final = re.compile(r'findings(?:\.([^.\[]+)|\["(.*?)"\])(.*)')

Number = Annotated[int | None, Query(ge=1, le=VERSION_MAX)]


def router_of(pages: Pages) -> APIRouter:
    """Return the pages of the application."""
    pages.environment.filters["score"] = score
    pages.environment.globals.update(
        band_of=band_of,
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
    kept: dict[
        str, tuple[int, float, str]
    ] = {}  # by base path: until something is counted, and a second at most

    @router.get("/ui/")
    async def overview(request: Request) -> Response:
        store = store_of(request)
        base = str(request.scope.get("root_path", ""))
        generation = request.app.state.follower.generation
        counted, until, page = kept.get(base, (-1, 0.0, ""))
        if counted != generation or pages.clock.now() >= until:
            page = pages.text(request, "overview.html", await _overview(store))
            kept[base] = generation, pages.clock.now() + KEPT_S, page
        return HTMLResponse(page)


async def _overview(store: ReviewStore) -> dict[str, Any]:
    start, end = days_of(store, None, None)
    waiting, failed, high, days = await asyncio.gather(
        service.by_status(store, Status.PENDING, limit=6, newest_first=False),
        service.by_status(store, Status.FAILED, limit=6),
        service.high_risk(store, start, end, limit=8),
        service.risk_trend(store, start, end),
    )
    found = await asyncio.gather(*(service.most_frequent(store, category, limit=4) for category in Category))
    issues = [issue for page in found for issue in page.items]
    return {
        "waiting": waiting.items,
        "failed": failed.items,
        "older": bool(waiting.items) and waiting.items[0].created_at.date() < start,
        "high": high.items,
        "trend": trend(days, start, end),
        "start": start,
        "end": end,
        "issues": sorted(issues, key=lambda issue: -issue.occurrence_count)[:8],
    }


def _add_stacks(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/stacks")
    async def stacks(request: Request, cursor: Cursor = None) -> Response:
        found = await service.stacks(store_of(request), limit=ROWS * 2, cursor=cursor)
        return pages.render(request, "stacks.html", {"stacks": found, "first": cursor is None})

    @router.get("/ui/stacks/{stack_id}")
    async def stack(request: Request, stack_id: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        start, end, wrong = _range(request)
        history, stats, recent, repeated = await asyncio.gather(
            service.stack_history(
                store,
                stack_id,
                since=moment_of(start),
                until=moment_of(end, ends=True),
                limit=ROWS,
                cursor=cursor,
            ),
            service.stack_stats(store, stack_id),
            service.stack_history(store, stack_id, limit=40),
            service.stack_issues(store, stack_id, min_occurrences=2, limit=10),
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
                "typed": _typed(request),
                "repeated": repeated.items,
                "start": start,
                "end": end,
                "wrong": wrong,
                "first": cursor is None,
            },
        )

    @router.get("/ui/stacks/{stack_id}/issues")
    async def stack_issues(request: Request, stack_id: str, cursor: Cursor = None) -> Response:
        told = request.query_params.get("min", "3")
        least = max(1, int(told[:9])) if told.isascii() and told.isdigit() else 3
        found = await service.stack_issues(
            store_of(request), stack_id, min_occurrences=least, limit=ROWS, cursor=cursor
        )
        context = {"stack_id": stack_id, "issues": found, "least": least, "first": cursor is None}
        return pages.render(request, "stack_issues.html", context)


def _add_reviews(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews")
    async def reviews(request: Request, cursor: Cursor = None) -> Response:
        store = store_of(request)
        told = request.query_params.get("status", Status.PENDING)
        status = Status(told) if told in tuple(Status) else Status.PENDING
        older = request.query_params.get("older", "")
        minutes = int(older[:6]) if older.isascii() and older.isdigit() else None
        if minutes is not None and status is Status.PENDING:
            found = await service.pending(
                store, older_than=timedelta(minutes=minutes), limit=ROWS, cursor=cursor
            )
        else:
            minutes = None
            found = await service.by_status(store, status, limit=ROWS, cursor=cursor)
        context = {"status": status, "minutes": minutes, "reviews": found, "first": cursor is None}
        return pages.render(request, "reviews.html", context)

    @router.get("/ui/runs/{run_id}")
    async def run(request: Request, run_id: str) -> Response:
        found = await service.latest_of_run(store_of(request), run_id)
        if found is None:
            raise not_found("run")
        return pages.redirect(request, f"/ui/reviews/{found.review_id}")

    @router.get("/ui/reviews/{review_id}")
    async def review(request: Request, review_id: str, version: Number = None) -> Response:
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
    """Return the page of a review, or of one of its versions, with what is wrong with a form on it."""
    store = store_of(request)
    latest = await service.latest(store, review_id)
    shown: Review | ReviewVersion = latest
    if number is not None and number != latest.version:
        shown = await service.version(store, review_id, number)
    findings, (code, lost), audit = await asyncio.gather(
        service.findings(store, shown),
        _code(store, shown),
        service.audit_trail(store, review_id, limit=VERSIONS_SHOWN),
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
    """Return the code of a version, or why it cannot be had: the rest of the page can."""
    try:
        return await service.code(store, shown), ""
    except (BlobMissing, BlobDamaged) as error:
        return "", blob_lost(error).detail


def _add_history(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/reviews/{review_id}/compare")
    async def compare(
        request: Request,
        review_id: str,
        one: Annotated[int | None, Query(alias="from", ge=1, le=VERSION_MAX)] = None,
        other: Annotated[int | None, Query(alias="to", ge=1, le=VERSION_MAX)] = None,
    ) -> Response:
        store = store_of(request)
        latest = await service.latest(store, review_id)
        after_number = other or latest.version
        before_number = one or max(1, after_number - 1)
        before, after, differences = await asyncio.gather(
            service.version(store, review_id, before_number),
            service.version(store, review_id, after_number),
            service.compare(store, review_id, before_number, after_number),
        )
        lines: list[Line] | None = []
        lost = ""
        if before.code.sha256 != after.code.sha256:
            (old, lost), (new, also) = await asyncio.gather(_code(store, before), _code(store, after))
            lost = lost or also
            lines = [] if lost else await compare_code(old, new)
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
                "differences": changes(differences),
                "lines": lines,
                "lost": lost,
            },
        )

    @router.get("/ui/reviews/{review_id}/audit")
    async def audit(request: Request, review_id: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        latest, found = await asyncio.gather(
            service.latest(store, review_id),
            service.audit_trail(store, review_id, limit=ROWS, cursor=cursor),
        )
        asked = (
            "verify" in request.query_params
        )  # it reads all of the review, so not each time somebody looks
        context = {
            "latest": latest,
            "entries": [(each, changes(each.differences)) for each in found.items],
            "next": found.cursor,
            "asked": asked,
            "verified": await service.verify(store, review_id) if asked else None,
            "first": cursor is None,
        }
        return pages.render(request, "audit.html", context)

    @router.get("/ui/actors/{actor}")
    async def actor(request: Request, actor: str, cursor: Cursor = None) -> Response:
        found = await service.changes_by(store_of(request), actor, limit=ROWS, cursor=cursor)
        context = {
            "actor": actor,
            "entries": [(each, changes(each.differences)) for each in found.items],
            "next": found.cursor,
            "first": cursor is None,
        }
        return pages.render(request, "actor.html", context)


def _add_risk(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/risk")
    async def risk(request: Request) -> Response:
        store = store_of(request)
        start, end, wrong = _range(request)
        first, last = days_of(store, start, end)
        if not wrong and not 0 <= (last - first).days < service.TREND_DAYS_MAX:
            wrong = {"from": f"Choose a range of 1 to {service.TREND_DAYS_MAX:,} days."}
        if wrong:
            first, last = days_of(store, None, None)
        days = await service.risk_trend(store, first, last)
        back = min(last - first, timedelta(days=service.DAYS_MAX - 1))
        high = await service.high_risk(store, last - back, last, limit=ROWS)
        today = store.now().date()
        return pages.render(
            request,
            "risk.html",
            {
                "trend": trend(days, first, last),
                "days": days[::-1][:60],
                "high": high,
                "start": first,
                "end": last,
                "typed": _typed(request),
                "wrong": wrong,
                "ranges": [(label, today - timedelta(days=count - 1), today) for count, label in RANGES],
            },
            status=422 if wrong else 200,
        )

    @router.get("/ui/risk/{day}")
    async def risk_day(request: Request, day: date, cursor: Cursor = None) -> Response:
        store = store_of(request)
        found, reviews = await asyncio.gather(
            service.risk_distribution(store, day),
            service.high_risk(store, day, day, min_risk=Decimal(0), limit=ROWS, cursor=cursor),
        )
        context = {
            "day": day,
            "found": found,
            "chart": distribution(found),
            "reviews": reviews,
            "first": cursor is None,
            "before": day - timedelta(days=1) if day > date.min else None,
            "after": day + timedelta(days=1) if day < date.max else None,
        }
        return pages.render(request, "risk_day.html", context)


def _add_issues(router: APIRouter, pages: Pages) -> None:
    @router.get("/ui/issues")
    async def issues(request: Request, cursor: Cursor = None) -> Response:
        told = request.query_params.get("category", Category.SECURITY)
        category = Category(told) if told in tuple(Category) else Category.SECURITY
        found = await service.most_frequent(store_of(request), category, limit=ROWS, cursor=cursor)
        context = {"category": category, "issues": found, "first": cursor is None}
        return pages.render(request, "issues.html", context)

    @router.get("/ui/issues/{issue_hash}")
    async def issue(request: Request, issue_hash: str, cursor: Cursor = None) -> Response:
        store = store_of(request)
        found = await service.issue(store, issue_hash)
        if found is None:
            raise not_found("issue")
        occurrences = await service.occurrences(store, issue_hash, limit=ROWS, cursor=cursor)
        context = {"issue": found, "occurrences": occurrences, "first": cursor is None}
        return pages.render(request, "issue.html", context)


# What they share.


def changes(differences: Sequence[Difference]) -> list[tuple[str, str | None, str | None]]:
    """Return differences as people read them; what every version changes, and the code, is told elsewhere."""
    told: list[tuple[str, str | None, str | None]] = []
    for each in differences:
        if each.path.startswith(_INNER):
            continue
        before, after = each.before, each.after
        if each.omitted:
            before = None if each.kind == "added" else "too long to be shown"
            after = None if each.kind == "removed" else "too long to be shown"
        told.append((_named(each.path), _shown(before), _shown(after)))
    return told


def _named(path: str) -> str:
    """Return a place as people read it: `cost_findings.high` is "Cost findings: high"."""
    if found := _OF_FINDING.fullmatch(path):
        return f"Finding {found[1] or found[2]}{found[3].replace('.', ': ', 1)}"
    name, _, rest = path.partition(".")
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] + (f": {rest}" if rest else "")


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    told = plain(value)
    text = told if isinstance(told, str) else _compact(told)
    return text if len(text) <= VALUE_CHARACTERS_SHOWN else text[:VALUE_CHARACTERS_SHOWN] + "…"


def _compact(value: Any) -> str:
    match value:
        case {"title": title, "severity": severity, "category": category}:  # a finding
            return f"{title} ({severity}, {category})"
        case {"findings_resolved": resolved, "findings_remaining": remaining, **more}:  # a fix
            reduced = more.get("risk_reduction")
            return f"{resolved} resolved, {remaining} remaining" + (
                f", risk less by {reduced}" if reduced else ""
            )
        case dict():
            kept = {name: each for name, each in value.items() if each not in (None, "", {}, [])}
            return ", ".join(f"{name}: {_compact(each)}" for name, each in kept.items())
        case list():
            return ", ".join(_compact(each) for each in value)
        case bool() | None:
            return {True: "yes", False: "no", None: "none"}[value]
        case _:
            return str(value)


def _by_category(findings: Sequence[Finding]) -> dict[Category, list[Finding]]:
    found: defaultdict[Category, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.category].append(finding)
    return {category: found[category] for category in Category if found[category]}


def _range(request: Request) -> tuple[date | None, date | None, dict[str, str]]:
    """Return the days that a form's fields name, and what is wrong with them."""
    found: dict[str, date | None] = {}
    wrong: dict[str, str] = {}
    for name in ("from", "to"):
        told = request.query_params.get(name, "").strip()
        found[name] = None
        if told:
            try:
                found[name] = date.fromisoformat(told)
            except ValueError:
                wrong[name] = "Give a day, such as 2026-11-16."
    start, end = found["from"], found["to"]
    if start is not None and end is not None and end < start:
        wrong["to"] = "The last day is before the first."
        return None, None, wrong
    return start, end, wrong


def _typed(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in ("from", "to")}


def _label(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %H:%M}"


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
