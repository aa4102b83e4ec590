"""A policy allows every action, or allows an action on every table.

Why: Who has it, or whoever gets hold of it, may delete the table, its backups and what others keep in the account. A
wildcard in a table's name also covers the tables of tomorrow, those of production beside those of tests.

Example: `"Action": "dynamodb:*", "Resource": "*"`; `"Action": "dynamodb:Delete*"`, which is DeleteTable and DeleteBackup too;
`"Resource": "arn:aws:dynamodb:*:*:table/terraform-*"`.

Instead: Name the actions that the access patterns take, and the table and its indexes: `table/orders`,
`table/orders/index/*`. `tavola iac` writes such policies from the design.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from tavola.design.findings import Finding, Severity
from tavola.design.lint.grants import (
    PolicyGrants,
    arn_name,
    describe_statement,
    readable_policies,
    resource_arn,
)
from tavola.design.lint.rule import LintContext
from tavola.design.text import list_first
from tavola.iam import ACTIONS
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY: Severity = "warning"

# What knows no table, or not yet: there is nothing but `*` to name (service authorization reference).
_UNBOUND = frozenset(
    f"dynamodb:{name}".lower()
    for name in """
    ListTables ListStreams ListBackups ListExports ListImports ListGlobalTables ListContributorInsights DescribeLimits DescribeEndpoints
    DescribeReservedCapacity DescribeReservedCapacityOfferings PurchaseReservedCapacityOfferings GetAbacStatus
    """.split()
)
# What a wildcard must not take along unseen: what ends a table or its past, opens it to others, or deletes and rewrites items.
_GRAVE = frozenset(
    """
    DeleteTable DeleteBackup DeleteTableReplica DeleteResourcePolicy PutResourcePolicy UpdateTable UpdateTimeToLive
    UpdateContinuousBackups DeleteItem UpdateItem
    """.split()
)


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the policies with too wide a statement, each once."""
    for each in readable_policies(context):
        wide = [
            f"{describe_statement(statement)} allows {what}"
            for statement in each.document.statements
            if statement.allows and (what := _describe_excess(each, statement)) is not None
        ]
        if wide:
            yield Finding(
                "wildcard-policy",
                SEVERITY,
                each.place,
                "; ".join(wide),
                "name the actions that are needed, and the table and its indexes; `tavola iac` writes it from the design",
            )


def _describe_excess(each: PolicyGrants, statement: PolicyStatement) -> str | None:
    if statement.not_actions is not None:
        return f"every action but {', '.join(statement.not_actions)}"
    actions = [action.lower() for action in statement.actions or ()]
    every = [action for action in actions if action in ("*", "dynamodb:*")]
    if every and _covers_design(each, statement):
        return "every action" if "*" in every else "every action of DynamoDB"
    if not any(action.startswith("dynamodb:") and action not in _UNBOUND for action in actions):
        return None
    along = {text: found for text in statement.actions or () if (found := _included_actions(text))}
    if along and _covers_design(each, statement):
        return "; ".join(
            f"{text.partition(':')[2]}, which is {list_first(found)}" for text, found in along.items()
        )
    if any(test.key.lower().startswith("aws:resourcetag/") for test in statement.conditions):
        return None  # tables are told by their tags
    what = list_first([action.partition(":")[2] for action in statement.actions or ()])
    if statement.not_resources is not None:
        return f"{what} on every resource but {', '.join(map(_short, statement.not_resources))}"
    wide = [text for text in statement.resources or () if _any_table(each, text)]
    return f"{what} on {', '.join(map(_short, wide))}" if wide else None


def _included_actions(action: str) -> list[str]:
    """Return the actions that a wildcard includes, if several and a destructive one is among them."""
    service, _, pattern = action.lower().partition(":")
    if service != "dynamodb" or not {"*", "?"} & set(pattern):
        return []
    names = [name.partition(":")[2] for name in ACTIONS]
    found = [name for name in names if fnmatchcase(name.lower(), pattern)]
    grave = [name for name in found if name in _GRAVE]
    return [*grave, *(name for name in found if name not in grave)] if grave and len(found) > 1 else []


def _covers_design(each: PolicyGrants, statement: PolicyStatement) -> bool:
    """Return whether a statement is about a table of the design at all."""
    compiled = next(rule for found, rule in each.rules if found is statement)
    return any(
        compiled.matches_resource(resource_arn(table, index), None)
        for table in each.tables
        for index in (None, *(index.name for index in table.indexes))
    )


def _any_table(each: PolicyGrants, text: str) -> bool:
    """Return whether a resource matches more tables than it names, including one of the design."""
    if text == "*":
        return True
    parts = text.split(":", 5)
    if len(parts) < 6 or parts[2] not in ("dynamodb", "*"):
        return len(parts) < 6 and text.startswith("arn:aws:dynamodb") and "*" in text
    kind, _, rest = parts[5].partition("/")
    name = rest.partition("/")[0]
    if "*" in kind:
        return True
    if kind != "table" or not ({"*", "?"} & set(name)):
        return False
    return any(fnmatchcase(arn_name(table), name) for table in each.tables)


def _short(text: str) -> str:
    return text.split(":", 5)[-1]
