"""The review history over HTTP: reviews in versions, stacks, risk and issues as JSON, and the pages beside it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    Follower,
    Link,
    OpenedStore,
    Pages,
    ProblemError,
    Settings,
    SettingsRefused,
    new_application,
    opened_store,
    problem_answer,
    shell_of,
)
from tavola.apps.terraform_review import forms, questions, routes
from tavola.apps.terraform_review import pages as own_pages
from tavola.apps.terraform_review.answers import blob_lost
from tavola.apps.terraform_review.errors import (
    FindingUnknown,
    RangeRefused,
    ReviewClosed,
    ReviewError,
    ReviewMissing,
    RunRecorded,
    TransitionRefused,
    VersionMissing,
)
from tavola.apps.terraform_review.model import Reviews, table_name
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import BlobDamaged, BlobMissing, HistoryAhead

TITLE: Final = "Terraform reviews"
BODY_BYTES_MAX: Final = 24 * 1024 * 1024  # code of 20 million characters, and what is said of it
TAGS: Final = (
    ("reviews", "Reviews in immutable versions: recorded once, changed by adding a version."),
    ("audit", "Who changed what, when and why, and whether it is still as it was written."),
    ("stacks", "What is reviewed, and its numbers."),
    ("risk", "Risk over days."),
    ("issues", "What is found again and again."),
    ("service", "Health and measures."),
)
NAVIGATION: Final = (
    Link("Overview", "/ui/"),
    Link("Stacks", "/ui/stacks"),
    Link("Reviews", "/ui/reviews"),
    Link("Risk", "/ui/risk"),
    Link("Issues", "/ui/issues"),
    Link("Upload", "/ui/upload"),
)

_ENVIRONMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}")


def review_store(opened: OpenedStore) -> ReviewStore:
    """Return the reviews of an opened store; what seals their audit trail is a secret of that store."""
    return ReviewStore(opened.db, opened.blobs_of(Reviews), secret=opened.secrets.derive("review-seals"))


def in_environment(settings: Settings, environment: str) -> Settings:
    """Return settings with the table of an environment: `…-reviews-prod` of "prod"."""
    if not _ENVIRONMENT.fullmatch(environment):
        raise SettingsRefused(
            "environment",
            "it ends the name of the table; give 1 to 60 letters, digits, hyphens, dots and underscores",
        )
    called = settings.table_prefix + table_name(environment)
    return replace(settings, table_names={**settings.table_names, Reviews: called})


def create(settings: Settings, *, caller_header: str | None = None) -> FastAPI:
    """Return the application: REST at its root, pages under /ui.

    With `caller_header`, who makes a change is who that header names, and nobody else. A proxy before the application sets it, for callers whom
    it knows, and takes it out of what they send. Without, the audit trail tells names as they are given.
    """
    if caller_header is not None and not _HEADER.fullmatch(caller_header):
        raise SettingsRefused("caller_header", "it is the name of a header, such as X-Forwarded-User")
    pages = Pages(
        TITLE,
        NAVIGATION,
        templates=Path(__file__).parent / "templates",
        tagline="Every review of every stack, and what became of it",
        clock=settings.clock,
    )

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings, Reviews) as opened:
            store = review_store(opened)
            async with Follower(
                store.projector,
                Reviews,
                opened.db,
                checkpoint=opened.checkpoint(settings.table_names.get(Reviews, "terraform-review")),
                poll_s=settings.poll_s,
                clock=settings.clock,
                name="terraform-review",
            ) as follower:
                shell_of(application).watch(opened, follower)
                application.state.reviews = store
                application.state.follower = follower
                yield

    application = new_application(
        settings,
        title=TITLE,
        description="Reviews of Terraform runs in immutable versions, their findings, stacks, repeated issues and risk over time.",
        pages=pages,
        life=life,
        tags=TAGS,
        body_bytes_max=BODY_BYTES_MAX,
    )
    application.state.caller_header = caller_header
    _handle_errors(application, pages)
    application.include_router(routes.router)
    application.include_router(questions.router)
    application.include_router(own_pages.router_of(pages))
    application.include_router(forms.router_of(pages))
    return application


def problem_of(error: Exception) -> ProblemError:
    """Return what an error of the review history is to whoever asked."""
    match error:
        case ReviewMissing() | VersionMissing():
            return ProblemError(404, "not-found", "Not found", f"{error}.")
        case TransitionRefused():
            return ProblemError(
                409,
                "transition-refused",
                "Not from there",
                f"{error}.",
                allowed=[str(each) for each in error.allowed],
            )
        case ReviewClosed():
            return ProblemError(409, "review-closed", "Closed", f"{error}.")
        case HistoryAhead():
            return ProblemError(
                409,
                "history-ahead",
                "Set back",
                "The current record of this review is behind its history: it was set back or removed past this application. Verify it; "
                "nothing can be changed before whoever runs this has restored it from its last version.",
            )
        case RunRecorded():
            return ProblemError(
                409, "run-recorded", "Recorded before", f"{error}.", review_id=error.review_id
            )
        case BlobMissing() | BlobDamaged():
            return blob_lost(error)
        case FindingUnknown() | RangeRefused() | _:
            return ProblemError(422, "invalid", "Invalid request", f"{error}.")


def _handle_errors(application: FastAPI, pages: Pages) -> None:
    async def handle(request: Request, error: Exception) -> Response:
        return problem_answer(pages, request, problem_of(error))

    for kind in (ReviewError, HistoryAhead, BlobMissing, BlobDamaged):
        application.add_exception_handler(kind, handle)
