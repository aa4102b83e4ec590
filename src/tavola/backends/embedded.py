"""EmbeddedBackend: an engine in this process, as one account in one region sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tavola.client import encode_request
from tavola.engine import Engine, Visit
from tavola.protocol import DEFAULT_SCOPE, Scope

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class EmbeddedBackend:
    """Answers from an engine; closing it closes the engine, unless the engine belongs to somebody else."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope = DEFAULT_SCOPE,
        *,
        owned: bool = True,
        as_of_us: int | None = None,
    ) -> None:
        """Answer for a scope; with `as_of_us`, a moment in microseconds, from the tables as they were then."""
        self.engine = engine
        self.scope = scope
        self._owned = owned
        self._visit = None if as_of_us is None else Visit(as_of_us=as_of_us)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        body = encode_request(operation, request)
        return _decode(self.engine.execute(operation, body, self.scope, self._visit))

    def as_of(self, at_us: int) -> EmbeddedBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        return EmbeddedBackend(self.engine, self.scope, owned=False, as_of_us=at_us)

    def close(self) -> None:
        """Close the engine if it is this backend's own."""
        if self._owned:
            self.engine.close()
