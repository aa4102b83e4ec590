"""Asking the studio's API without HTTP: an engine in memory, a studio over it, and a question by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.model.document import Design
from tavola.studio.api import BY_NAME
from tavola.studio.endpoint import encode_response
from tavola.studio.monitoring import Monitor
from tavola.studio.studio import Studio, TablesLocation


class Asking:
    """A studio on an engine; `ask` gives the answer as a page gets it."""

    def __init__(self, engine: Engine, design: Design | None = None, **more: Any) -> None:
        self.engine = engine
        self.design = design
        self.more = more
        self.watch = Monitor(engine.clock)
        self.known: dict[
            object, Any
        ] = {}  # what a studio that goes on living would have computed of its designs

    def ask(self, name: str, asked: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a question, as JSON; what is raised is raised."""
        return asyncio.run(self.answer(name, asked or {}))

    async def answer(self, name: str, asked: Mapping[str, Any]) -> Any:
        """The same on a loop that runs."""
        endpoint = BY_NAME[name]
        async with connect_async(self.engine) as db:
            studio = self.studio(db)
            given = endpoint.parse_body(msgspec.json.encode(asked))
            found = await endpoint.call(studio, given)
            await studio.close()
        return msgspec.json.decode(encode_response(found))

    def studio(self, db: Any) -> Studio:
        """Return the studio over a connection."""
        told: dict[str, Any] = {
            "db": db,
            "where": TablesLocation("memory", "memory:", "us-east-1", "000000000000"),
            "design": self.design,
            "clock": self.engine.clock,
            "engine": self.engine,
            "monitor": self.watch,
            **self.more,
        }
        made = Studio(**told)
        object.__setattr__(made, "cache", self.known)
        return made
