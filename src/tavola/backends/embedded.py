"""EmbeddedBackend: an engine in this process, as one account in one region sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tavola.client import encode_request
from tavola.engine import Engine
from tavola.protocol import DEFAULT_SCOPE, Scope

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class EmbeddedBackend:
    """Answers from an engine; closing it closes the engine, unless the engine belongs to somebody else."""

    def __init__(self, engine: Engine, scope: Scope = DEFAULT_SCOPE, *, owned: bool = True) -> None:
        self.engine = engine
        self.scope = scope
        self._owned = owned

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        return _decode(self.engine.execute(operation, encode_request(operation, request), self.scope))

    def close(self) -> None:
        """Close the engine if it is this backend's own."""
        if self._owned:
            self.engine.close()
