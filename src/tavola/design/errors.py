"""Errors of the design tools: requests to lint, solve or simulate that cannot be carried out."""

from __future__ import annotations

from tavola.errors import TavolaError


class LintError(TavolaError):
    """A request that the linter cannot carry out."""


class RuleUnknown(LintError):
    """A name that no rule has."""

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name = name
        hint = f"did you mean {near}?" if near else "`tavola explain` lists them"
        super().__init__(f"{name} is no rule; {hint}")


class RulesMissing(LintError):
    """The selection leaves no rule to run."""

    def __init__(self) -> None:
        super().__init__("no rule is left to run; name one that is not left out, or leave out fewer")


class SolveRefused(TavolaError):
    """A design that cannot be solved as it is told; `place` names the need, entity or field."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}" if place else problem)


class SimulationRefused(TavolaError):
    """A design without rates, a trace without requests, a setting out of bounds; the sentence says what to do."""
