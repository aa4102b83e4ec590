"""An ignore names a rule that does not exist.

Why: A misspelled rule name suppresses nothing.

Example: `# tavola: ignore[hot-partitions] …`, but the rule is `hot-partition`.

Instead: Use the rule name from the finding. `tavola explain` lists all rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tavola.design.lint.old_names import current_rule_name
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"
LAST = True


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the ignores of unknown rules."""
    for ignore in context.design.ignores:
        if current_rule_name(ignore.rule) not in context.known:
            near = get_close_matches(ignore.rule, sorted(context.known), 1, 0.6)
            yield Defect(
                context.parse_place(ignore.place),
                f"Ignores {ignore.rule}, which is not a rule" if ignore.rule else "The ignore names no rule",
                f"Write {near[0]}" if near else "Write ignore[RULE] reason; `tavola explain` lists the rules",
            )
