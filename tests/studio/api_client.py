"""Calls the studio's API without HTTP: a studio over an engine in memory."""

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


class ApiClient:
    """A studio on an engine; `call` returns a response as the pages receive it."""

    def __init__(self, engine: Engine, design: Design | None = None, **settings: Any) -> None:
        self.engine = engine
        self.design = design
        self.settings = settings
        self.monitor = Monitor(engine.clock)
        self.cache: dict[object, Any] = {}  # results that a running studio keeps between requests

    def call(self, endpoint: str, request: Mapping[str, Any] | None = None) -> Any:
        """Return the response of an endpoint as JSON; errors are raised."""
        return asyncio.run(self.call_async(endpoint, request or {}))

    async def call_async(self, name: str, request: Mapping[str, Any]) -> Any:
        """Return the same on a running event loop."""
        endpoint = BY_NAME[name]
        async with connect_async(self.engine) as db:
            studio = self.studio(db)
            response = await endpoint.call(studio, endpoint.parse_body(msgspec.json.encode(request)))
            await studio.close()
        return msgspec.json.decode(encode_response(response))

    def studio(self, db: Any) -> Studio:
        """Return the studio over a connection."""
        settings: dict[str, Any] = {
            "db": db,
            "where": TablesLocation("memory", "memory:", "us-east-1", "000000000000"),
            "design": self.design,
            "clock": self.engine.clock,
            "engine": self.engine,
            "monitor": self.monitor,
            **self.settings,
        }
        studio = Studio(**settings)
        object.__setattr__(studio, "cache", self.cache)
        return studio
