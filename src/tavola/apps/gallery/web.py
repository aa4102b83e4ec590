"""The gallery's faces: the samples as JSON and as pages.

A page tells a sample's keys, shows its items as the table and each index hold them, and runs its demonstrations. What only reads is run by a
link; what writes, by a button.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from tavola import AsyncConnection, design_document
from tavola.apps.gallery.samples import SAMPLES, load_samples
from tavola.apps.gallery.showing import Demonstration, Sample, Told
from tavola.apps.gallery.views import entity_keys, places, places_of, steps_of
from tavola.apps.shell import (
    Link,
    Pages,
    Settings,
    new_application,
    not_found,
    opened_store,
    problems,
    shell_of,
)

TITLE = "Gallery"
DESCRIPTION = "Sample designs for DynamoDB, each with its items and its access patterns, run where you can see what they cost."


class DemonstrationOut(BaseModel):
    """A demonstration of a sample."""

    name: str
    title: str
    writes: bool


class SampleOut(BaseModel):
    """A sample of the gallery."""

    name: str
    title: str
    shows: str
    source: str
    tables: list[str]
    demonstrations: list[DemonstrationOut]


class StepOut(BaseModel):
    """A step of a demonstration: what was asked, what came, what it took."""

    what: str
    found: list[Any]
    read_units: float
    write_units: float
    scanned: int | None
    usd_per_million: str | None
    refused: str | None


def create(settings: Settings) -> FastAPI:
    """Return the gallery on a store; samples that it lacks are stored when it starts."""
    pages = Pages(
        TITLE,
        [Link("Samples", "/ui/")],
        templates=Path(__file__).parent / "templates",
        tagline="Sample designs that run",
        clock=settings.clock,
    )

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings) as store:
            await load_samples(store.db)
            shell_of(application).watch(store)
            application.state.db = store.db
            application.state.locks = defaultdict(asyncio.Lock)
            yield

    application = new_application(settings, title=TITLE, description=DESCRIPTION, pages=pages, life=life)
    _add_api(application)
    _add_pages(application, pages)
    return application


def _add_api(application: FastAPI) -> None:
    @application.get("/samples", tags=["samples"], summary="All samples")
    async def samples() -> list[SampleOut]:
        return [_sample_out(sample) for sample in SAMPLES.values()]

    @application.get(
        "/samples/{name}/design",
        tags=["samples"],
        summary="A sample's design as a document",
        responses=problems(404),
    )
    async def design(name: str) -> dict[str, Any]:
        return design_document(*_sample(name).tables)

    @application.post(
        "/samples/{name}/demonstrations/{demonstration}",
        tags=["samples"],
        summary="Run a demonstration",
        responses=problems(404),
    )
    async def run(request: Request, name: str, demonstration: str) -> list[StepOut]:
        sample = _sample(name)
        told = await _ran(request, sample, _demonstration(sample, demonstration))
        return [_step_out(each) for each in told]


def _add_pages(application: FastAPI, pages: Pages) -> None:
    @application.get("/ui/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return pages.render(request, "samples.html", {"samples": list(SAMPLES.values())})

    @application.get("/ui/samples/{name}", include_in_schema=False)
    async def one(request: Request, name: str) -> Response:
        sample = _sample(name)
        shown = [
            (places_of(table), entity_keys(table), await places(_db(request), table))
            for table in sample.tables
        ]
        return pages.render(request, "sample.html", {"sample": sample, "tables": shown})

    @application.get("/ui/samples/{name}/{demonstration}", include_in_schema=False)
    async def show(request: Request, name: str, demonstration: str) -> Response:
        sample = _sample(name)
        found = _demonstration(sample, demonstration)
        told = () if found.writes else await found.run(_db(request))
        return _shown(request, sample, found, told)

    @application.post("/ui/samples/{name}/{demonstration}", include_in_schema=False)
    async def run(request: Request, name: str, demonstration: str) -> Response:
        sample = _sample(name)
        found = _demonstration(sample, demonstration)
        return _shown(request, sample, found, await _ran(request, sample, found))

    def _shown(
        request: Request, sample: Sample, demonstration: Demonstration, told: tuple[Told, ...]
    ) -> Response:
        context = {"sample": sample, "demonstration": demonstration, "steps": steps_of(told)}
        return pages.render(request, "demonstration.html", context)


async def _ran(request: Request, sample: Sample, demonstration: Demonstration) -> tuple[Told, ...]:
    """Run a demonstration; those that write in one sample's tables wait for one another."""
    if not demonstration.writes:
        return await demonstration.run(_db(request))
    locks: defaultdict[str, asyncio.Lock] = request.app.state.locks
    async with locks[sample.name]:
        return await demonstration.run(_db(request))


def _db(request: Request) -> AsyncConnection:
    db: AsyncConnection = request.app.state.db
    return db


def _sample(name: str) -> Sample:
    found = SAMPLES.get(name)
    if found is None:
        raise not_found("sample")
    return found


def _demonstration(sample: Sample, name: str) -> Demonstration:
    found = sample.demonstration(name)
    if found is None:
        raise not_found("demonstration")
    return found


def _sample_out(sample: Sample) -> SampleOut:
    return SampleOut(
        name=sample.name,
        title=sample.title,
        shows=sample.shows,
        source=sample.source,
        tables=[table.settings.name for table in sample.tables],
        demonstrations=[
            DemonstrationOut(name=each.name, title=each.title, writes=each.writes)
            for each in sample.demonstrations
        ],
    )


def _step_out(told: Told) -> StepOut:
    usd = told.usd_per_million
    return StepOut(
        what=told.what,
        found=[_found(each) for each in told.found],
        read_units=told.reads,
        write_units=told.writes,
        scanned=told.scanned,
        usd_per_million=None if usd is None else f"{usd.normalize():f}",
        refused=told.refused or None,
    )


def _found(found: Any) -> Any:
    if isinstance(found, BaseModel):
        return {"entity": type(found).__name__, **found.model_dump(mode="json")}
    if isinstance(found, tuple):
        return [_found(each) for each in found]
    return found if isinstance(found, int | float | bool) else str(found)
