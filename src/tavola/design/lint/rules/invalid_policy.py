"""A policy document is invalid.

Why: AWS rejects it, or accepts it with another meaning than intended: an unknown condition key, for example,
is absent from every request, and `ForAllValues` is true for absent keys.

Example: `"Action": "GetItem"` without the service prefix; `"dynamodb:LeadingKey"` in the singular.

Instead: Fix the element that the message names.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath
from tavola.design.lint.grants import read_grants, tables_of_policy
from tavola.design.lint.rule import Defect, LintContext
from tavola.protocol.policy_documents import PolicyRefused

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the invalid policy documents, with the error."""
    for policy in context.design.policies:
        try:
            read_grants(policy, context.design.tables)
        except PolicyRefused as refused:
            tables = tables_of_policy(policy, context.design.tables)
            yield Defect(
                DesignPath(kind="policy", table=tables[0].name if len(tables) == 1 else "", name=policy.name),
                f"The policy is invalid: {str(refused).rstrip('.!')}",
                "Fix that element; the other policy rules skip this policy until then",
            )
