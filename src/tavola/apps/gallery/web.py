"""The gallery as an application: the samples as JSON and as pages.

A page shows a sample's keys and the contents of its table and indexes, and runs its demonstrations: by a link if they only read, by
a button if they write.
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
from tavola.apps.gallery.demonstrations import Demonstration, Sample, StepResult
from tavola.apps.gallery.samples import SAMPLES, load_samples
from tavola.apps.gallery.views import entity_keys, read_contents, step_views, table_and_index_names
from tavola.apps.shell import (
    AppSettings,
    Link,
    Pages,
    new_application,
    not_found,
    opened_store,
    problems,
    shell_of,
)

TITLE = "Gallery"
DESCRIPTION = (
    "Sample DynamoDB designs with sample items and access patterns that you can run, with their cost."
)


class DemonstrationResponse(BaseModel):
    """A demonstration of a sample."""

    name: str
    title: str
    writes: bool


class SampleResponse(BaseModel):
    """A sample of the gallery."""

    name: str
    title: str
    summary: str
    source: str
    tables: list[str]
    demonstrations: list[DemonstrationResponse]


class StepResponse(BaseModel):
    """A step of a demonstration: its items and their cost."""

    title: str
    items: list[Any]
    read_units: float
    write_units: float
    scanned: int | None
    usd_per_million: str | None
    error: str | None


def create(settings: AppSettings) -> FastAPI:
    """Return the gallery; missing sample items are written when it starts."""
    pages = Pages(
        TITLE,
        [Link("Samples", "/ui/")],
        templates=Path(__file__).parent / "templates",
        tagline="sample designs that you can run",
        clock=settings.clock,
    )

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings) as store:
            await load_samples(store.db)
            shell_of(application).watch(store)
            application.state.db = store.db
            application.state.locks = defaultdict(asyncio.Lock)
            yield

    application = new_application(
        settings, title=TITLE, description=DESCRIPTION, pages=pages, lifespan=lifespan
    )
    _add_api(application)
    _add_pages(application, pages)
    return application


def _add_api(application: FastAPI) -> None:
    @application.get("/samples", tags=["samples"], summary="List samples")
    async def samples() -> list[SampleResponse]:
        return [_sample_response(sample) for sample in SAMPLES.values()]

    @application.get(
        "/samples/{name}/design",
        tags=["samples"],
        summary="Get the design document of a sample",
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
    async def run(request: Request, name: str, demonstration: str) -> list[StepResponse]:
        sample = _sample(name)
        results = await _run(request, sample, _demonstration(sample, demonstration))
        return [_step_response(result) for result in results]


def _add_pages(application: FastAPI, pages: Pages) -> None:
    @application.get("/ui/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return pages.render(request, "samples.html", {"samples": list(SAMPLES.values())})

    @application.get("/ui/samples/{name}", include_in_schema=False)
    async def one(request: Request, name: str) -> Response:
        sample = _sample(name)
        shown = [
            (table_and_index_names(table), entity_keys(table), await read_contents(_db(request), table))
            for table in sample.tables
        ]
        return pages.render(request, "sample.html", {"sample": sample, "tables": shown})

    @application.get("/ui/samples/{name}/{demonstration}", include_in_schema=False)
    async def show(request: Request, name: str, demonstration: str) -> Response:
        sample = _sample(name)
        chosen = _demonstration(sample, demonstration)
        results = () if chosen.writes else await chosen.run(_db(request))
        return _render(request, sample, chosen, results)

    @application.post("/ui/samples/{name}/{demonstration}", include_in_schema=False)
    async def run(request: Request, name: str, demonstration: str) -> Response:
        sample = _sample(name)
        chosen = _demonstration(sample, demonstration)
        return _render(request, sample, chosen, await _run(request, sample, chosen))

    def _render(
        request: Request, sample: Sample, demonstration: Demonstration, results: tuple[StepResult, ...]
    ) -> Response:
        context = {"sample": sample, "demonstration": demonstration, "steps": step_views(results)}
        return pages.render(request, "demonstration.html", context)


async def _run(request: Request, sample: Sample, demonstration: Demonstration) -> tuple[StepResult, ...]:
    """Run a demonstration; those that write to the tables of one sample run one at a time."""
    if not demonstration.writes:
        return await demonstration.run(_db(request))
    locks: defaultdict[str, asyncio.Lock] = request.app.state.locks
    async with locks[sample.name]:
        return await demonstration.run(_db(request))


def _db(request: Request) -> AsyncConnection:
    db: AsyncConnection = request.app.state.db
    return db


def _sample(name: str) -> Sample:
    sample = SAMPLES.get(name)
    if sample is None:
        raise not_found("sample")
    return sample


def _demonstration(sample: Sample, name: str) -> Demonstration:
    demonstration = sample.demonstration(name)
    if demonstration is None:
        raise not_found("demonstration")
    return demonstration


def _sample_response(sample: Sample) -> SampleResponse:
    return SampleResponse(
        name=sample.name,
        title=sample.title,
        summary=sample.summary,
        source=sample.source,
        tables=[table.settings.name for table in sample.tables],
        demonstrations=[
            DemonstrationResponse(
                name=demonstration.name, title=demonstration.title, writes=demonstration.writes
            )
            for demonstration in sample.demonstrations
        ],
    )


def _step_response(result: StepResult) -> StepResponse:
    usd = result.usd_per_million
    return StepResponse(
        title=result.title,
        items=[_json_item(item) for item in result.items],
        read_units=result.reads,
        write_units=result.writes,
        scanned=result.scanned,
        usd_per_million=None if usd is None else f"{usd.normalize():f}",
        error=result.error or None,
    )


def _json_item(item: Any) -> Any:
    if isinstance(item, BaseModel):
        return {"entity": type(item).__name__, **item.model_dump(mode="json")}
    if isinstance(item, tuple):
        return [_json_item(element) for element in item]
    return item if isinstance(item, int | float | bool) else str(item)
