"""A policy names a table or index that the design does not have.

Why: A policy names what it grants as text. A name that is mistyped, or of another stage, grants nothing that the design has, and
every request is denied; nothing says so before the first one. Of such a policy nothing else can be judged either.

Example: `"Resource": "…table/tickets"` where the table is called `prod-tickets`; `"…table/tickets/index/customer-index"` where the
index is `by_customer`.

Instead: Name the table and the index as the design does. A policy of other tables has nothing to do with this design: leave it
out of what is linted.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from tavola.protocol.policy_documents import PolicyStatement

SEVERITY: Severity = "warning"

_ASKED = ("dynamodb:query", "dynamodb:scan", "dynamodb:partiqlselect")
_PREFIX = "table/"


def find(context: LintContext) -> Iterator[Finding]:
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
                yield Finding(
                    "policy-of-no-table",
                    "advice",
                    each.place,
                    f"it is about {list_first(list(names))} and about none of the design's tables, which "
                    f"{'is' if len(each.tables) == 1 else 'are'} {list_first([table.name for table in each.tables])}",
                    "name the tables as the design does; leave it out if it is another design's",
                )
            continue
        for statement in about:
            yield from _find_unknown_indexes(each, statement)


def _find_unknown_indexes(each: PolicyGrants, statement: PolicyStatement) -> Iterator[Finding]:
    rule = next(rule for found, rule in each.rules if found is statement)
    if not any(rule.matches_action(action) for action in _ASKED):
        return  # a vector index, or none at all, is asked otherwise
    for table in each.tables:
        known = {index.name for index in table.indexes}
        for name, index in _named_tables(statement):
            if name == arn_name(table) and index and not {"*", "?", "$"} & set(index) and index not in known:
                yield Finding(
                    "policy-of-no-table",
                    SEVERITY,
                    each.place,
                    f"{describe_statement(statement)} grants the index {index} of {table.name}, which has "
                    f"{list_first(sorted(known)) if known else 'no index'}: every query of it is denied",
                    "name the index as the table does",
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
    rule = next(rule for found, rule in each.rules if found is statement)
    names = {arn_name(table) for table in each.tables}
    return any(name in names for name, _ in _named_tables(statement)) or any(
        rule.matches_resource(resource_arn(table, index), None)
        for table in each.tables
        for index in (None, *(index.name for index in table.indexes))
    )
