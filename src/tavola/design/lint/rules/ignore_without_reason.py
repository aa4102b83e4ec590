"""A finding is ignored without a reason.

Why: An ignore outlives the person who wrote it. Without its reason the next one can neither trust nor remove it, so
Tavola does not follow it: what it would hide is still told.

Example: `# tavola: ignore[few-partitions]` above a query.

Instead: Write the reason after the bracket, `# tavola: ignore[few-partitions] read once a night by one job`, or as
`reason` in a document.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the ignores without a reason."""
    for ignore in context.design.ignores:
        if not ignore.reason.strip():
            yield Finding(
                "ignore-without-reason",
                SEVERITY,
                context.parse_place(ignore.place),
                f"{ignore.rule} is ignored here without a reason, so it is not ignored",
                f"say why: # tavola: ignore[{ignore.rule}] …, or remove it",
            )
