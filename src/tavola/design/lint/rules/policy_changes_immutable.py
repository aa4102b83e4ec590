"""A policy allows changes to items that are declared immutable.

Why: The library refuses to update or delete an immutable entity, and DynamoDB does not know of it: another program, or a
person with a console, changes history if a policy lets them.

Example: `"Action": ["dynamodb:PutItem", "dynamodb:UpdateItem"]` on a table whose `HISTORY#…` items are immutable.

Instead: Leave UpdateItem, DeleteItem and BatchWriteItem out, or deny them on the partition keys of what is immutable:
`"Effect": "Deny"`, `"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": ["HISTORY#*"]}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.grants import (
    REWRITES,
    PolicyGrants,
    describe_statement,
    partition_text,
    readable_policies,
)
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, TableDesign

SEVERITY: Severity = "warning"

_WORDS = {
    "dynamodb:updateitem": "UpdateItem",
    "dynamodb:deleteitem": "DeleteItem",
    "dynamodb:batchwriteitem": "BatchWriteItem",
    "dynamodb:partiqlupdate": "PartiQLUpdate",
    "dynamodb:partiqldelete": "PartiQLDelete",
}


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the policies that allow changes in a partition that holds only immutable items.

    If mutable items share the partition key, a policy cannot tell them apart.
    """
    for each in readable_policies(context):
        for table in each.tables:
            rewritten = {entity.name: how for entity, how in _rewritable_entities(each, table)}
            if rewritten:
                how, statement = next(iter(rewritten.values()))
                yield Finding(
                    "policy-changes-immutable",
                    SEVERITY,
                    each.place,
                    f"{statement} allows {', '.join(how)} on {' and '.join(rewritten)} of {table.name}, whose items are immutable",
                    "leave these actions out, or deny them on the partition keys of what is immutable (dynamodb:LeadingKeys)",
                )


def _rewritable_entities(
    each: PolicyGrants, table: TableDesign
) -> Iterator[tuple[EntityDesign, tuple[tuple[str, ...], str]]]:
    mutable = {
        text for entity in table.entities if not entity.immutable and (text := _partition(entity)) is not None
    }
    for entity in table.entities:
        text = _partition(entity)
        if not entity.immutable or text is None or text in mutable:
            continue
        found = {
            action: statement
            for action in REWRITES
            if (statement := each.find_allow(action, table, text)) is not None
        }
        if found:
            first = next(iter(found.values()))
            yield entity, (tuple(_WORDS[action] for action in found), describe_statement(first))


def _partition(entity: EntityDesign) -> str | None:
    return None if entity.key is None else partition_text(entity, entity.key)
