"""A policy allows all actions, or allows actions on all tables.

Why: Anyone with these permissions can delete the table, its backups and other data in the account. A wildcard
in the table name also covers future tables, and production next to test.

Example: `"Action": "dynamodb:*", "Resource": "*"`; `"Action": "dynamodb:Delete*"`, which includes DeleteTable
and DeleteBackup; `"Resource": "arn:aws:dynamodb:*:*:table/terraform-*"`.

Instead: Name the actions that the access patterns need, and the table and its indexes: `table/orders`,
`table/orders/index/*`. `tavola iac` generates such policies from the design.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from tavola.design.lint.grants import PolicyGrants, arn_name, describe_statement, readable_policies
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import list_first
from tavola.iam import ACTIONS
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY = "warning"

# Actions without a table resource, which require `*` (service authorization reference).
_ACTIONS_WITHOUT_TABLE = frozenset(
    f"dynamodb:{name}".lower()
    for name in """
    ListTables ListStreams ListBackups ListExports ListImports ListGlobalTables ListContributorInsights DescribeLimits DescribeEndpoints
    DescribeReservedCapacity DescribeReservedCapacityOfferings PurchaseReservedCapacityOfferings GetAbacStatus
    """.split()
)
# Actions that a wildcard should not include: they delete tables, backups or items, rewrite items, or open a table to others.
_DESTRUCTIVE = frozenset(
    """
    DeleteTable DeleteBackup DeleteTableReplica DeleteResourcePolicy PutResourcePolicy UpdateTable UpdateTimeToLive
    UpdateContinuousBackups DeleteItem UpdateItem
    """.split()
)


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the policies with too wide a statement, each once."""
    for each in readable_policies(context):
        wide = [
            f"{describe_statement(statement)} allows {what}"
            for statement in each.document.statements
            if statement.allows and (what := _describe_excess(each, statement)) is not None
        ]
        if wide:
            yield Defect(
                each.place,
                "; ".join(wide),
                "Name the required actions, the table and its indexes; `tavola iac` generates such a policy from the design",
            )


def _describe_excess(each: PolicyGrants, statement: PolicyStatement) -> str | None:
    if statement.not_actions is not None:
        return f"all actions except {', '.join(statement.not_actions)}"
    actions = [action.lower() for action in statement.actions or ()]
    every = [action for action in actions if action in ("*", "dynamodb:*")]
    if every and each.covers_tables(statement):
        return "all actions" if "*" in every else "all DynamoDB actions"
    if not any(action.startswith("dynamodb:") and action not in _ACTIONS_WITHOUT_TABLE for action in actions):
        return None
    wildcards = {text: found for text in statement.actions or () if (found := _included_actions(text))}
    if wildcards and each.covers_tables(statement):
        return "; ".join(
            f"{text.partition(':')[2]}, which includes {list_first(found)}"
            for text, found in wildcards.items()
        )
    if any(test.key.lower().startswith("aws:resourcetag/") for test in statement.conditions):
        return None  # tables are selected by tag
    what = list_first([action.partition(":")[2] for action in statement.actions or ()])
    if statement.not_resources is not None:
        return f"{what} on all resources except {', '.join(map(_short, statement.not_resources))}"
    wide = [text for text in statement.resources or () if _any_table(each, text)]
    return f"{what} on {', '.join(map(_short, wide))}" if wide else None


def _included_actions(action: str) -> list[str]:
    """Return the actions that a wildcard includes, if several and a destructive one is among them."""
    service, _, pattern = action.lower().partition(":")
    if service != "dynamodb" or not {"*", "?"} & set(pattern):
        return []
    names = [name.partition(":")[2] for name in ACTIONS]
    found = [name for name in names if fnmatchcase(name.lower(), pattern)]
    destructive = [name for name in found if name in _DESTRUCTIVE]
    return (
        [*destructive, *(name for name in found if name not in destructive)]
        if destructive and len(found) > 1
        else []
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
