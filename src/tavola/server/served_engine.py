"""ServedEngine: the methods of an engine that the server uses; the tests' stand-in has them too."""

from __future__ import annotations

from typing import Protocol

from tavola.engine import RequestContext
from tavola.protocol.arns import Scope


class ServedEngine(Protocol):
    """An engine as the server sees it; `tavola.engine.Engine` is one."""

    def execute(
        self, operation: str, body: bytes, scope: Scope, visit: RequestContext | None = None
    ) -> bytes:
        """Return the JSON response to a JSON request, or raise a Fault."""
        ...

    def collect_writes(self) -> None:
        """Let the writes of this thread share one transaction until `commit`."""
        ...

    @property
    def dirty(self) -> bool:
        """Whether some writes are not yet durable."""
        ...

    def commit(self) -> None:
        """Make the collected writes durable, or raise with none of them applied."""
        ...

    def run_background_work(self, budget_ms: float) -> bool:
        """Do background work for about `budget_ms`; return whether there is more."""
        ...

    @property
    def write_failure(self) -> str | None:
        """Why writes are refused; None while they are accepted."""
        ...
