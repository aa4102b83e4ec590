"""Errors of the design tools: the linter, solver or simulator cannot run as requested."""

from __future__ import annotations

from tavola.errors import TavolaError


class LintError(TavolaError):
    """The linter cannot run as requested."""


class UnknownRule(LintError):
    """No rule has this name."""

    code = "rule-unknown"

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name = name
        hint = f"did you mean {near}?" if near else "run `tavola explain` to list the rules"
        super().__init__(f"Unknown rule {name!r}; {hint}")


class NoRulesSelected(LintError):
    """The selection leaves no rule to run."""

    code = "rules-missing"

    def __init__(self) -> None:
        super().__init__("No rule is left to run; select a rule that is not ignored, or ignore fewer rules")


class SolverError(TavolaError):
    """A design that cannot be solved; `place` names the need, entity or field."""

    code = "solve-refused"

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}" if place else problem)


class SimulationError(TavolaError):
    """A design without rates, a trace without requests, or a setting out of range; the message says what to do."""

    code = "simulation-refused"
