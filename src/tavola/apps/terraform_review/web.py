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
    Follower,
    Link,
    OpenedStore,
    Pages,
    Settings,
    SettingsRefused,
    new_application,
    opened_store,
    shell_of,
)
from tavola.apps.terraform_review import forms, report_routes, review_routes
from tavola.apps.terraform_review import pages as review_pages
from tavola.apps.terraform_review.model import Reviews, table_name
from tavola.apps.terraform_review.store import ReviewStore

TITLE: Final = "Terraform reviews"
BODY_BYTES_MAX: Final = 24 * 1024 * 1024  # code of 20 million characters, and its assessment
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
    """Return the reviews of an opened store; a secret of that store signs their audit trail."""
    return ReviewStore(opened.db, opened.blobs_of(Reviews), secret=opened.secrets.derive("review-seals"))


def in_environment(settings: Settings, environment: str) -> Settings:
    """Return settings with the table of an environment: "prod" uses `…-reviews-prod`."""
    if not _ENVIRONMENT.fullmatch(environment):
        raise SettingsRefused(
            "environment",
            "it ends the name of the table; give 1 to 60 letters, digits, hyphens, dots and underscores",
        )
    name = settings.table_prefix + table_name(environment)
    return replace(settings, table_names={**settings.table_names, Reviews: name})


def create(settings: Settings, *, caller_header: str | None = None) -> FastAPI:
    """Return the application.

    With `caller_header`, the author of a change must be the caller that this header names. A proxy in front of the application sets it for
    authenticated callers and removes it from what they send. Without it, the audit trail records authors as the requests state them.
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

    application.include_router(review_routes.router)
    application.include_router(report_routes.router)
    application.include_router(review_pages.router_of(pages))
    application.include_router(forms.router_of(pages))
    return application
