"""A policy with a condition on partition keys also allows Scan, which names no key.

Why: `ForAllValues` is true if the request has no value to test. A Scan names no partition key, and neither
does a PartiQL SELECT without one in its WHERE clause, so the condition is met and the whole table can be
read.

Example: `"Action": ["dynamodb:Query", "dynamodb:Scan"]` with `"ForAllValues:StringEquals":
{"dynamodb:LeadingKeys": […]}`.

Instead: Remove or deny Scan, and add `"Null": {"dynamodb:LeadingKeys": "false"}` to require a partition key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import (
    SCANS,
    PolicyGrants,
    describe_statement,
    leading_key_conditions,
    readable_policies,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY = "error"

_NAMES = {"dynamodb:scan": "Scan", "dynamodb:partiqlselect": "PartiQLSelect"}


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the statements whose condition on partition keys also allows requests without one."""
    for grants in readable_policies(context):
        for statement, action in _statements_allowing_scan(grants).values():
            test = next(
                (
                    test
                    for test in leading_key_conditions(statement)
                    if test.quantifier == "ForAllValues" or test.if_exists
                ),
                leading_key_conditions(statement)[0],
            )
            yield Defect(
                grants.place,
                f"{describe_statement(statement)} restricts callers to {test.values[0]} with {test.quantifier or ('IfExists' if test.if_exists else test.operator)}, "
                f"but allows {_NAMES[action]}, which names no key and meets the condition: the whole table can be read",
                f'Remove {_NAMES[action]}, and add "Null": {{"dynamodb:LeadingKeys": "false"}}',
            )


def _statements_allowing_scan(grants: PolicyGrants) -> dict[str, tuple[PolicyStatement, str]]:
    """Return the statements that allow a scan despite their condition on keys, with the action, each once."""
    statements_by_place: dict[str, tuple[PolicyStatement, str]] = {}
    for table in grants.tables:
        for index in (None, *(index.name for index in table.indexes)):
            for action in SCANS:
                statement = grants.find_allow_by_keys(action, table, index, ())
                if statement is not None and leading_key_conditions(statement):
                    statements_by_place.setdefault(statement.place, (statement, action))
    return statements_by_place
