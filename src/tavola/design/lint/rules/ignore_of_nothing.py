"""An ignore hides nothing.

Why: What it spoke of is mended or was never there. Left standing it would hide the same defect when it comes back.

Example: `# tavola: ignore[unused-index] …` on an index that a query was declared on since.

Instead: Remove the comment, or the entry of `ignores` in the document.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.grants import POLICY_RULES
from tavola.design.lint.rule import Subject, covers

SEVERITY: Severity = "advice"
LAST = True


def find(subject: Subject) -> Iterator[Finding]:
    """Give the ignores of rules that were run and found nothing there."""
    given = {"*", *(policy.name for policy in subject.design.policies)}
    for ignore in subject.design.ignores:
        if ignore.rule not in subject.rules or any(covers(ignore, found) for found in subject.findings):
            continue
        if ignore.rule in POLICY_RULES and ignore.place not in given:
            continue  # of a policy that was not given to be judged this time
        yield Finding(
            "ignore-of-nothing",
            SEVERITY,
            subject.place_named(ignore.place),
            f"{ignore.rule} is ignored here, and it finds nothing",
            "remove the ignore",
        )
