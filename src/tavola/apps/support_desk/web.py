"""The support desk as an application: REST at the root, pages under /ui/."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from tavola import Credentials, RetryPolicy, connect_async
from tavola.apps.shell import (
    AppSettings,
    Follower,
    OpenedStore,
    Upload,
    new_application,
    opened_store,
    shell_of,
)
from tavola.apps.support_desk import forms, pages
from tavola.apps.support_desk.blob_sweeper import BlobSweeper
from tavola.apps.support_desk.model import TABLES, Tickets
from tavola.apps.support_desk.rest import (
    FILE_BYTES_MAX,
    ROUTERS,
    TAGS,
    CallerConnections,
    DashboardCache,
    Desk,
)
from tavola.apps.support_desk.store import Retention, SupportDeskStore

KEEP_FOREVER = Retention()
CALLER_ATTEMPTS_MAX = 3  # with a caller's key: requests with unknown keys are retried, and should fail soon
BODY_BYTES_MAX = 5 * 1024 * 1024  # of JSON and forms; enough for a text of four million letters
FORM_BYTES = 64 * 1024  # of a form, besides its file
UPLOADS = (
    Upload(re.compile(r"/tickets/[^/]+/attachments/.+"), FILE_BYTES_MAX),
    Upload(re.compile(r"/ui/tickets/[^/]+/attachments"), FILE_BYTES_MAX + FORM_BYTES),
)


def create(settings: AppSettings, retention: Retention = KEEP_FOREVER) -> FastAPI:
    """Return the support desk on a store; missing tables are created. `retention` lets old data expire."""
    desk_pages = pages.new_pages(settings)

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        async with open_desk(settings, retention) as (opened, desk):
            application.state.desk = desk
            shell_of(application).watch(opened, desk.follower)
            yield

    application = new_application(
        settings,
        title="Support desk",
        description="Tickets of a technical support team: open, escalate and resolve tickets, and collect feedback.",
        pages=desk_pages,
        lifespan=lifespan,
        tags=TAGS,
        body_bytes_max=BODY_BYTES_MAX,
        uploads=UPLOADS,
    )

    # One flat list with the most frequent requests first: nested routers cost every request time.
    application.routes[:0] = [route for router in ROUTERS for route in router.routes]
    # /ui/tickets/new before /ui/tickets/{…}
    application.routes.extend([*forms.router.routes, *pages.router.routes])
    application.state.pages = desk_pages
    return application


def support_store(opened: OpenedStore, retention: Retention = KEEP_FOREVER) -> SupportDeskStore:
    """Return the desk on an opened store; its blobs have their own folder, so that a sweep sees no others."""
    return SupportDeskStore(opened.db, opened.blobs_of(Tickets), retention=retention)


@asynccontextmanager
async def open_desk(
    settings: AppSettings, retention: Retention = KEEP_FOREVER
) -> AsyncIterator[tuple[OpenedStore, Desk]]:
    """Open the desk: its tables, follower, sweeper and caller connections; close them at the end."""
    async with opened_store(settings, *TABLES) as opened:
        store = support_store(opened, retention)
        await store.similar.open()
        follower = Follower(
            store.projector,
            Tickets,
            opened.db,
            checkpoint=opened.checkpoint("support-desk"),
            poll_s=settings.poll_s,
            clock=settings.clock,
            name="support-desk",
        )
        callers = CallerConnections(
            caller_store_opener(opened), clock=settings.clock, entropy=settings.entropy
        )
        async with follower, BlobSweeper(store):
            try:
                yield opened, Desk(store, follower, DashboardCache(store, follower), callers)
            finally:
                await callers.close()


def caller_store_opener(opened: OpenedStore) -> Callable[[Credentials], SupportDeskStore] | None:
    """Return a function that opens the same store with a caller's credentials; None if the target has none."""
    settings = opened.settings
    target = settings.target
    if not isinstance(target, str) or target.startswith(("memory:", "file:")):
        return None

    def open_as(credentials: Credentials) -> SupportDeskStore:
        db = connect_async(
            target,
            region=settings.region,
            credentials=credentials,
            table_prefix=settings.table_prefix,
            cursor_secret=opened.secrets.derive("cursor"),
            clock=settings.clock,
            entropy=settings.entropy,
            retry_policy=RetryPolicy(CALLER_ATTEMPTS_MAX, entropy=settings.entropy),
        )
        return SupportDeskStore(db, opened.blobs_of(Tickets))

    return open_as
