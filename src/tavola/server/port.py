"""Served: what the server asks of an engine, and all that it knows of one."""

from __future__ import annotations

from typing import Protocol

from tavola.engine import Visit
from tavola.protocol.arns import Scope


class Served(Protocol):
    """An engine as the server sees it; `tavola.engine.Engine` is one."""

    def execute(self, operation: str, body: bytes, scope: Scope, visit: Visit | None = None) -> bytes:
        """Return the answer's JSON to a request's JSON, or raise a Fault."""
        ...

    def hold(self) -> None:
        """Gather writes in one open transaction from now on."""
        ...

    @property
    def dirty(self) -> bool:
        """Whether something was written since `hold` that is not yet durable."""
        ...

    def commit(self) -> None:
        """Make what was gathered durable, or raise with nothing of it applied."""
        ...

    def tend(self, budget_ms: float) -> bool:
        """Do a slice of background work; True while there is more."""
        ...

    @property
    def failure(self) -> str | None:
        """Why writes are refused; None while they are not."""
        ...
