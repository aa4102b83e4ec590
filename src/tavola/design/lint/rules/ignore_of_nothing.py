"""An ignore suppresses nothing.

Why: What it spoke of is mended or was never there. Left standing it would hide the same defect when it comes back.

Example: `# tavola: ignore[unused-index] …` on an index that a query was declared on since.

Instead: Remove the comment, or the entry of `ignores` in the document.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.grants import POLICY_RULES
from tavola.design.lint.rule import LintContext, suppresses

SEVERITY: Severity = "advice"
LAST = True


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the ignores of rules that ran and found nothing at that place."""
    given = {"*", *(policy.name for policy in context.design.policies)}
    for ignore in context.design.ignores:
        if ignore.rule not in context.rules or any(suppresses(ignore, found) for found in context.findings):
            continue
        if ignore.rule in POLICY_RULES and ignore.place not in given:
            continue  # of a policy that was not given to be judged this time
        yield Finding(
            "ignore-of-nothing",
            SEVERITY,
            context.parse_place(ignore.place),
            f"{ignore.rule} is ignored here, and it finds nothing",
            "remove the ignore",
        )
