"""A policy grants access to the items of all tenants.

Why: In a table shared by tenants, only a condition on the partition key isolates them at the database. A
check in application code fails the first time it is forgotten. A Scan names no partition key, so no condition
can restrict it.

Example: `"Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": "…table/tickets"` without a Condition;
or with `"dynamodb:LeadingKeys": ["CUSTOMER#*"]`, which matches every customer.

Instead: Add `"ForAllValues:StringEquals": {"dynamodb:LeadingKeys":
["CUSTOMER#${aws:PrincipalTag/customer}"]}` and `"Null": {"dynamodb:LeadingKeys": "false"}`, on keys that
begin with the tenant, and remove Scan. Policies of processes that serve all tenants are not reported if they
read the stream, or if their name contains a word such as service, worker, agent, reader or admin. Suppress
others with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.lint.grants import (
    READS,
    WRITES,
    PolicyGrants,
    describe_statement,
    leading_key_conditions,
    partition_of_another,
    readable_policies,
    resource_arn,
)
from tavola.design.lint.naming import serves_all_tenants
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.model.document import TableDesign
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY = "warning"

_SCAN = "dynamodb:scan"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the policies that reach other tenants' items."""
    for each in readable_policies(context):
        for table in each.tables:
            tenant = next(
                (f"{entity.name}.{field.name}" for entity in table.entities for field in entity.fields if field.tenant), None
            )  # fmt: skip
            if tenant is None or serves_all_tenants(each.policy.name) or _reads_stream(each, table):
                continue
            opened = {
                word: statement
                for word, actions in (("read", READS), ("write", WRITES))
                if (statement := _find_open_statement(each, table, actions)) is not None
            }
            scanning = _find_scan_statement(each, table)
            if scanning is not None:
                opened = {"scan": scanning, **opened}
            if opened:
                first = next(iter(opened.values()))
                yield Defect(
                    each.place,
                    f"{describe_statement(first)} allows {join_names(opened)} access to {table.name} {_describe_access(first, scans=scanning is not None)}: "
                    f"callers reach the items of all tenants ({tenant})",
                    "Remove Scan, which no condition can restrict, and add a dynamodb:LeadingKeys condition for the other actions"
                    if scanning is not None
                    else "Restrict dynamodb:LeadingKeys to the caller's tenant, and grant only the table or index whose key begins with it; for "
                    "a process that serves all tenants, rename the policy or suppress this with a reason",
                )


def _find_open_statement(
    each: PolicyGrants, table: TableDesign, actions: Sequence[str]
) -> PolicyStatement | None:
    """Return the statement that allows access to another tenant's item, in the table or an index."""
    for entity in table.entities:
        if not any(field.tenant for field in entity.fields):
            continue
        for key in entity.all_keys:
            another = partition_of_another(entity, key)
            for action in actions:
                statement = each.find_allow_by_keys(action, table, key.index, another)
                if statement is not None:
                    return statement
    return None


def _find_scan_statement(each: PolicyGrants, table: TableDesign) -> PolicyStatement | None:
    """Return the statement that allows a scan without a condition on keys. `scan-bypasses-leading-keys` covers the others."""
    for index in (None, *(index.name for index in table.indexes)):
        statement = each.find_allow_by_keys(_SCAN, table, index, ())
        if statement is not None and not leading_key_conditions(statement):
            return statement
    return None


def _describe_access(statement: PolicyStatement, *, scans: bool) -> str:
    values = [value for test in leading_key_conditions(statement) for value in test.values]
    if scans:
        return "as a whole"
    if values:
        return f"with dynamodb:LeadingKeys {', '.join(values[:3])}, which matches all tenants"
    return "without a condition on dynamodb:LeadingKeys"


def _reads_stream(each: PolicyGrants, table: TableDesign) -> bool:
    """Return whether the policy belongs to a process that reads the table's stream, and so every tenant's changes."""
    stream = f"{resource_arn(table)}/stream/x"
    return any(
        not rule.denies and rule.matches_action("dynamodb:getrecords") and rule.matches_resource(stream, None)
        for statement, rule in each.rules
        if not _allows_every_action(statement)
    )


def _allows_every_action(statement: PolicyStatement) -> bool:
    return statement.not_actions is not None or bool({"*", "dynamodb:*"} & set(statement.actions or ()))
