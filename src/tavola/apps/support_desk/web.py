"""Web: the support desk as an application: REST at its root, pages under /ui/."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import Response

from tavola import Credentials, RetryPolicy, connect_async
from tavola.apps.shell import (
    Follower,
    OpenedStore,
    Settings,
    Upload,
    new_application,
    opened_store,
    problem_answer,
    shell_of,
)
from tavola.apps.support_desk import forms, pages
from tavola.apps.support_desk.errors import DeskError
from tavola.apps.support_desk.model import TABLES, Tickets
from tavola.apps.support_desk.rest import FILE_BYTES_MAX, ROUTERS, TAGS, Board, Callers, Desk, problem_of_desk
from tavola.apps.support_desk.store import Retention, SupportDeskStore
from tavola.apps.support_desk.sweeping import Sweeper

FOR_EVER = Retention()
CALLER_ATTEMPTS_MAX = 3  # with a caller's own key: a key that nobody knows counts as one to ask again with, and nobody should wait for that
BODY_BYTES_MAX = 5 * 1024 * 1024  # of JSON and forms; a text of four million letters goes in
FORM_BYTES = 64 * 1024  # what a form has around its file
UPLOADS = (
    Upload(re.compile(r"/tickets/[^/]+/attachments/.+"), FILE_BYTES_MAX),
    Upload(re.compile(r"/ui/tickets/[^/]+/attachments"), FILE_BYTES_MAX + FORM_BYTES),
)


def create(settings: Settings, retention: Retention = FOR_EVER) -> FastAPI:
    """Return the support desk on a store; its tables are made where they are missing. `retention` lets what is over end."""
    own = pages.new_pages(settings)

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        async with opened_desk(settings, retention) as (opened, desk):
            application.state.desk = desk
            shell_of(application).watch(opened, desk.follower)
            yield

    application = new_application(
        settings,
        title="Support desk",
        description="Tickets of a technical support: opened once, worked on, escalated, resolved, and what people thought of it.",
        pages=own,
        life=life,
        tags=TAGS,
        body_bytes_max=BODY_BYTES_MAX,
        uploads=UPLOADS,
    )

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, DeskError)
        return problem_answer(own, request, problem_of_desk(error))

    application.add_exception_handler(DeskError, refused)
    # One flat list, what is asked most before everything else: an included router is a list in the list, and costs each request.
    application.routes[:0] = [route for each in ROUTERS for route in each.routes]
    application.routes.extend(
        [*forms.router.routes, *pages.router.routes]
    )  # /ui/tickets/new before /ui/tickets/{…}
    application.state.pages = own
    return application


def support_store(opened: OpenedStore, retention: Retention = FOR_EVER) -> SupportDeskStore:
    """Return the desk on an opened store; its blobs lie apart, so that a sweep sees nobody else's."""
    return SupportDeskStore(opened.db, opened.blobs_of(Tickets), retention=retention)


@asynccontextmanager
async def opened_desk(
    settings: Settings, retention: Retention = FOR_EVER
) -> AsyncIterator[tuple[OpenedStore, Desk]]:
    """Open the desk: its tables, the follower of its numbers, its sweeper, the connections of its callers; close it all in the end."""
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
        callers = Callers(opener_of(opened), clock=settings.clock, entropy=settings.entropy)
        async with follower, Sweeper(store):
            try:
                yield opened, Desk(store, follower, Board(store, follower), callers)
            finally:
                await callers.close()


def opener_of(opened: OpenedStore) -> Callable[[Credentials], SupportDeskStore] | None:
    """Return what opens the same store with a caller's credentials; None where it knows none."""
    settings = opened.settings
    target = settings.target
    if not isinstance(target, str) or target.startswith(("memory:", "file:")):
        return None

    def opened_as(credentials: Credentials) -> SupportDeskStore:
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

    return opened_as
