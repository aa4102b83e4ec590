"""A policy cannot be read.

Why: AWS refuses it when it is put, or takes it and means something else by it than whoever wrote it: a condition key that
does not exist, for one, is absent from every request, and `ForAllValues` holds for what is absent.

Example: `"Action": "GetItem"` without its service; `"dynamodb:LeadingKey"` in the singular.

Instead: Mend what the message names, at the place in the document that it names.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.grants import read_grants, tables_of_policy
from tavola.design.lint.rule import LintContext
from tavola.protocol.policy_documents import PolicyRefused

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the documents that are no policies, with what is wrong and where."""
    for policy in context.design.policies:
        try:
            read_grants(policy, context.design.tables)
        except PolicyRefused as refused:
            tables = tables_of_policy(policy, context.design.tables)
            yield Finding(
                "unreadable-policy",
                SEVERITY,
                DesignPath(kind="policy", table=tables[0].name if len(tables) == 1 else "", name=policy.name),
                f"it cannot be read: {str(refused).rstrip('.!')}",
                "mend it at that place; the other rules for policies do not look at it until then",
            )
