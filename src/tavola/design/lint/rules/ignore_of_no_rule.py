"""An ignore names a rule that does not exist.

Why: A misspelt name hides nothing, and looks as if it did.

Example: `# tavola: ignore[few-partition] …` where the rule is called `few-partitions`.

Instead: Write the rule's name as the finding prints it; `tavola explain` lists them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"
LAST = True


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the ignores of unknown rules."""
    for ignore in context.design.ignores:
        if ignore.rule not in context.known:
            near = get_close_matches(ignore.rule, sorted(context.known), 1, 0.6)
            yield Finding(
                "ignore-of-no-rule",
                SEVERITY,
                context.parse_place(ignore.place),
                f"{ignore.rule} is ignored here, and no rule is called so"
                if ignore.rule
                else "an ignore here names no rule",
                f"write {near[0]}" if near else "write ignore[RULE] why; `tavola explain` lists the rules",
            )
