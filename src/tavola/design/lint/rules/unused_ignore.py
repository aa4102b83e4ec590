"""An ignore suppresses nothing.

Why: The finding was fixed or never existed. Left in place, the ignore would hide the defect if it came back.

Example: `# tavola: ignore[unused-index] …` on an index that has a query now.

Instead: Remove the comment, or the entry under `ignores` in the design document.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import POLICY_RULES
from tavola.design.lint.old_names import current_rule_name
from tavola.design.lint.rule import Defect, LintContext, suppresses

SEVERITY = "advice"
LAST = True


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the ignores of rules that ran and found nothing at that place."""
    known_places = {"*", *(policy.name for policy in context.design.policies)}
    for ignore in context.design.ignores:
        rule = current_rule_name(ignore.rule)
        if rule not in context.rules or any(suppresses(ignore, finding) for finding in context.findings):
            continue
        if rule in POLICY_RULES and ignore.place not in known_places:
            continue  # the policy is not part of this run
        yield Defect(
            context.parse_place(ignore.place),
            f"Ignores {ignore.rule}, which reports nothing here",
            "Remove the ignore",
        )
