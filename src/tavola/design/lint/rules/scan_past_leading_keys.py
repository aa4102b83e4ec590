"""A policy limited to partition keys also allows a scan, which has none.

Why: `ForAllValues` holds where there is no value to test. A Scan names no partition key, nor does a PartiQL SELECT without
one in its WHERE: the condition is true, and the whole table is read.

Example: `"Action": ["dynamodb:Query", "dynamodb:Scan"]` with `"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": […]}`.

Instead: Leave Scan out or deny it, and add `"Null": {"dynamodb:LeadingKeys": "false"}`: the request must name a key at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.grants import (
    SCANS,
    PolicyGrants,
    describe_statement,
    leading_key_conditions,
    readable_policies,
)
from tavola.design.lint.rule import LintContext
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY: Severity = "error"

_NAMES = {"dynamodb:scan": "Scan", "dynamodb:partiqlselect": "PartiQLSelect"}


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the statements whose condition on partition keys also allows requests without one."""
    for each in readable_policies(context):
        for statement, action in _statements_allowing_scan(each).values():
            test = next(
                (
                    test
                    for test in leading_key_conditions(statement)
                    if test.quantifier == "ForAllValues" or test.if_exists
                ),
                leading_key_conditions(statement)[0],
            )
            yield Finding(
                "scan-past-leading-keys",
                SEVERITY,
                each.place,
                f"{describe_statement(statement)} binds its holder to {test.values[0]} by {test.quantifier or ('IfExists' if test.if_exists else test.operator)}, "
                f"and allows {_NAMES[action]}, which names no key: the condition holds and everything is read",
                'leave the scan out, and add "Null": {"dynamodb:LeadingKeys": "false"}',
            )


def _statements_allowing_scan(each: PolicyGrants) -> dict[str, tuple[PolicyStatement, str]]:
    """Return the statements that allow a scan despite their condition on keys, with the action, each once."""
    found: dict[str, tuple[PolicyStatement, str]] = {}
    for table in each.tables:
        for index in (None, *(index.name for index in table.indexes)):
            for action in SCANS:
                statement = each.find_allow_by_keys(action, table, index, ())
                if statement is not None and leading_key_conditions(statement):
                    found.setdefault(statement.place, (statement, action))
    return found
