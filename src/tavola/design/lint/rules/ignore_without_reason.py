"""A finding is suppressed without a reason.

Why: Without a reason, the next reader can neither trust the ignore nor remove it. Tavola therefore does not
apply it, and still reports the finding.

Example: `# tavola: ignore[hot-partition]` above a query.

Instead: Add the reason after the bracket, `# tavola: ignore[hot-partition] read once a night by one job`, or
as `reason` in a design document.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the ignores without a reason."""
    for ignore in context.design.ignores:
        if not ignore.reason.strip():
            yield Defect(
                context.parse_place(ignore.place),
                f"Ignores {ignore.rule} without a reason, so the ignore is not applied",
                f"Add a reason: # tavola: ignore[{ignore.rule}] reason, or remove the ignore",
            )
