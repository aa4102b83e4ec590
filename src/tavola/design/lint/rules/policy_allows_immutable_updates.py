"""A policy allows changes to items that are declared immutable.

Why: Tavola refuses to update or delete an immutable entity, but DynamoDB does not know about it. Another
program, or a person in the console, can rewrite history if a policy allows it.

Example: `"Action": ["dynamodb:PutItem", "dynamodb:UpdateItem"]` on a table with immutable `HISTORY#…` items.

Instead: Remove UpdateItem, DeleteItem and BatchWriteItem, or deny them on the partition keys of immutable
items: `"Effect": "Deny"`, `"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": ["HISTORY#*"]}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import (
    REWRITES,
    PolicyGrants,
    describe_statement,
    partition_text,
    readable_policies,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, TableDesign

SEVERITY = "warning"

_WORDS = {
    "dynamodb:updateitem": "UpdateItem",
    "dynamodb:deleteitem": "DeleteItem",
    "dynamodb:batchwriteitem": "BatchWriteItem",
    "dynamodb:partiqlupdate": "PartiQLUpdate",
    "dynamodb:partiqldelete": "PartiQLDelete",
}


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the policies that allow changes in a partition that holds only immutable items.

    If mutable items share the partition key, a policy cannot tell them apart.
    """
    for each in readable_policies(context):
        for table in each.tables:
            rewritten = {entity.name: how for entity, how in _rewritable_entities(each, table)}
            if rewritten:
                how, statement = next(iter(rewritten.values()))
                yield Defect(
                    each.place,
                    f"{statement} allows {join_names(how)} on {join_names(rewritten)} items of {table.name}, which are declared immutable",
                    "Remove these actions, or deny them on the partition keys of immutable items (dynamodb:LeadingKeys)",
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
