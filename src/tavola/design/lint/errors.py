"""Errors of the linter."""

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
