"""A policy names a table or index that the design does not have.

Why: A misspelled name, or the name of another environment's table, grants nothing, and every request is
denied. Nothing reports it before the first request. The other policy rules cannot check such a policy either.

Example: `"Resource": "…table/tickets"` where the table is named `prod-tickets`;
`"…table/tickets/index/customer-index"` where the index is `by_customer`.

Instead: Use the names from the design. If the policy is for tables of another design, do not lint it with
this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import PolicyGrants, arn_name, describe_statement, readable_policies
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import list_first
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY = "warning"

_READ_ACTIONS = ("dynamodb:query", "dynamodb:scan", "dynamodb:partiqlselect")
_PREFIX = "table/"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the policies without a statement about the design, and those that name an unknown index."""
    for each in readable_policies(context):
        about = [
            statement
            for statement in each.document.statements
            if statement.allows and _grants_named_resources(statement)
        ]
        if not about or not each.tables:
            continue
        if not any(_covers_design(each, statement) for statement in about):
            names = dict.fromkeys(name for statement in about for name, _ in _named_tables(statement))
            if names:
                yield Defect(
                    each.place,
                    f"Grants access to {list_first(list(names))}, but the design has "
                    f"{'the table' if len(each.tables) == 1 else 'the tables'} {list_first([table.name for table in each.tables])}",
                    "Use the table names of the design, or do not lint this policy with it",
                    severity="advice",
                )
            continue
        for statement in about:
            yield from _find_unknown_indexes(each, statement)


def _find_unknown_indexes(each: PolicyGrants, statement: PolicyStatement) -> Iterator[Defect]:
    rule = next(rule for found, rule in each.rules if found is statement)
    if not any(rule.matches_action(action) for action in _READ_ACTIONS):
        return  # vector indexes are queried through other actions
    for table in each.tables:
        known = {index.name for index in table.indexes}
        for name, index in _named_tables(statement):
            if name == arn_name(table) and index and not {"*", "?", "$"} & set(index) and index not in known:
                yield Defect(
                    each.place,
                    f"{describe_statement(statement)} grants index {index} of {table.name}, which does not exist (indexes: "
                    f"{list_first(sorted(known)) or 'none'}): queries are denied",
                    "Use the index name of the design",
                )


def _grants_named_resources(statement: PolicyStatement) -> bool:
    """Return whether a statement grants a DynamoDB action on named resources."""
    actions = statement.actions or ()
    return any(action.lower().startswith(("dynamodb:", "*")) for action in actions) and bool(
        statement.resources
    )


def _named_tables(statement: PolicyStatement) -> Iterator[tuple[str, str]]:
    """Yield the tables that a statement names, each with its index or nothing."""
    for text in statement.resources or ():
        parts = text.split(":", 5)
        if len(parts) == 6 and parts[2] == "dynamodb" and parts[5].startswith(_PREFIX):
            name, _, rest = parts[5].removeprefix(_PREFIX).partition("/")
            yield name, rest.removeprefix("index/") if rest.startswith("index/") else ""


def _covers_design(each: PolicyGrants, statement: PolicyStatement) -> bool:
    """Return whether a statement covers a table of the design, or an index or stream of one."""
    if "*" in (statement.resources or ()):
        return True
    names = {arn_name(table) for table in each.tables}
    return any(name in names for name, _ in _named_tables(statement)) or each.covers_tables(statement)
