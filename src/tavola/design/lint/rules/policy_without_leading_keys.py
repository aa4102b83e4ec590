"""A policy gives access to the items of every tenant.

Why: Where one table holds the data of many, only a condition on the partition key keeps them apart at the database. An
`if` in the program does so until the day it is forgotten once. A scan has no partition key, so no condition can bind it.

Example: `"Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": "…table/tickets"`, without a Condition; or with
`"dynamodb:LeadingKeys": ["CUSTOMER#*"]`, which every customer's key satisfies.

Instead: Add `"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["CUSTOMER#${aws:PrincipalTag/customer}"]}` and
`"Null": {"dynamodb:LeadingKeys": "false"}`, on keys that begin with the tenant, and leave Scan out. A process that serves all
tenants is left alone where its policy says so: it reads the stream, or its name has a word such as service, worker, agent, reader
or admin in it; any other is let stand by an ignore with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.findings import Finding, Severity
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
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names
from tavola.model.document import TableDesign
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY: Severity = "warning"

_SCAN = "dynamodb:scan"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the policies that reach other tenants' items."""
    for each in readable_policies(context):
        for table in each.tables:
            tenant = next(
                (f"{entity.name}.{field.name}" for entity in table.entities for field in entity.fields if field.tenant), None
            )  # fmt: skip
            if tenant is None or serves_all_tenants(each.policy.name) or _follows_the_stream(each, table):
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
                yield Finding(
                    "policy-without-leading-keys",
                    SEVERITY,
                    each.place,
                    f"{describe_statement(first)} lets its holder {join_names(opened)} {table.name} {_how(first, scans=scanning is not None)}: the "
                    f"items of every tenant, not those of one {tenant}",
                    "leave Scan out, which no condition binds, and add one on dynamodb:LeadingKeys to the rest"
                    if scanning is not None
                    else "bind dynamodb:LeadingKeys to who asks, and grant only the table or index whose key begins with the tenant; of a "
                    "process that serves all, say so in its name or by an ignore",
                )


def _find_open_statement(
    each: PolicyGrants, table: TableDesign, actions: Sequence[str]
) -> PolicyStatement | None:
    """Return the statement that allows access to another tenant's item, in the table or an index."""
    for entity in table.entities:
        if not any(field.tenant for field in entity.fields):
            continue
        for key in (entity.key, *entity.keys):
            if key is None:
                continue
            another = partition_of_another(entity, key)
            for action in actions:
                statement = each.find_allow_by_keys(action, table, key.index, another)
                if statement is not None:
                    return statement
    return None


def _find_scan_statement(each: PolicyGrants, table: TableDesign) -> PolicyStatement | None:
    """Return the statement that allows a scan without a condition on keys. `scan-past-leading-keys` covers the others."""
    for index in (None, *(index.name for index in table.indexes)):
        statement = each.find_allow_by_keys(_SCAN, table, index, ())
        if statement is not None and not leading_key_conditions(statement):
            return statement
    return None


def _how(statement: PolicyStatement, *, scans: bool) -> str:
    values = [value for test in leading_key_conditions(statement) for value in test.values]
    if scans:
        return "from end to end"
    if values:
        return f"by dynamodb:LeadingKeys {', '.join(values[:3])}, which the keys of all satisfy"
    return "without a condition on dynamodb:LeadingKeys"


def _follows_the_stream(each: PolicyGrants, table: TableDesign) -> bool:
    """Return whether the policy belongs to a process that reads the table's stream, and so every tenant's changes."""
    stream = f"{resource_arn(table)}/stream/x"
    return any(
        not rule.denies and rule.matches_action("dynamodb:getrecords") and rule.matches_resource(stream, None)
        for statement, rule in each.rules
        if not _every_action(statement)
    )


def _every_action(statement: PolicyStatement) -> bool:
    return statement.not_actions is not None or bool({"*", "dynamodb:*"} & set(statement.actions or ()))
