"""SolveRefused: entities or needs that no keys can be found for, with what to say differently."""

from __future__ import annotations

from tavola.errors import TavolaError


class SolveRefused(TavolaError):
    """A design that cannot be solved as it is told; `place` names the need, entity or field."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}" if place else problem)
