"""The review history as an application: REST at the root, pages under /ui."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from tavola.apps.shell import (
    AppSettings,
    Follower,
    Link,
    OpenedStore,
    Pages,
    SettingsRefused,
    new_application,
    opened_store,
    shell_of,
)
from tavola.apps.terraform_review import forms, report_routes, review_routes
from tavola.apps.terraform_review import pages as review_pages
from tavola.apps.terraform_review.model import Reviews, table_name
from tavola.apps.terraform_review.store import ReviewStore

TITLE: Final = "Terraform review"
BODY_BYTES_MAX: Final = 24 * 1024 * 1024  # code of 20 million characters, and its assessment
TAGS: Final = (
    ("reviews", "Reviews with immutable versions; a change adds a version."),
    ("audit", "Who changed what, when and why, and verification of the history."),
    ("stacks", "Reviewed stacks and their statistics."),
    ("risk", "Risk by day."),
    ("issues", "Repeated issues."),
    ("service", "Health checks and metrics."),
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
    """Return the reviews of an opened store; a secret of that store signs their audit trail."""
    return ReviewStore(opened.db, opened.blobs_of(Reviews), secret=opened.secrets.derive("review-chain"))


def in_environment(settings: AppSettings, environment: str) -> AppSettings:
    """Return settings with the table of an environment: "prod" uses `…-reviews-prod`."""
    if not _ENVIRONMENT.fullmatch(environment):
        raise SettingsRefused(
            "environment",
            "it is the suffix of the table name; use 1 to 60 letters, digits, hyphens, dots and underscores",
        )
    name = settings.table_prefix + table_name(environment)
    return replace(settings, table_names={**settings.table_names, Reviews: name})


def create(settings: AppSettings, *, caller_header: str | None = None) -> FastAPI:
    """Return the application.

    With `caller_header`, the author of a change must be the caller that this header names. A proxy in front of the application sets it for
    authenticated callers and removes it from what they send. Without it, the audit trail records authors as the requests state them.
    """
    if caller_header is not None and not _HEADER.fullmatch(caller_header):
        raise SettingsRefused("caller_header", "use the name of a header, such as X-Forwarded-User")
    pages = Pages(
        TITLE,
        NAVIGATION,
        templates=Path(__file__).parent / "templates",
        tagline="the review history of Terraform stacks",
        clock=settings.clock,
    )

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
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
        description="Reviews of Terraform runs with immutable versions, findings, repeated issues and risk over time.",
        pages=pages,
        lifespan=lifespan,
        tags=TAGS,
        body_bytes_max=BODY_BYTES_MAX,
    )
    application.state.caller_header = caller_header

    for router in (
        review_routes.router,
        review_routes.audit_router,
        report_routes.runs_router,
        report_routes.stacks_router,
        report_routes.risk_router,
        report_routes.issues_router,
    ):
        application.include_router(router)
    application.include_router(review_pages.router_of(pages))
    application.include_router(forms.router_of(pages))
    return application
