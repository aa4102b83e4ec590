"""Errors of the linter: a rule that nobody knows, and rules of which none is left."""

from __future__ import annotations

from tavola.errors import TavolaError


class LintError(TavolaError):
    """The linter was asked for what it cannot do."""


class RuleUnknown(LintError):
    """A name that no rule has."""

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name = name
        hint = f"did you mean {near}?" if near else "`tavola explain` lists them"
        super().__init__(f"{name} is no rule; {hint}")


class RulesMissing(LintError):
    """Rules were chosen and left out until there was none to run."""

    def __init__(self) -> None:
        super().__init__("no rule is left to run; name one that is not left out, or leave out fewer")
