"""A policy's dynamodb:LeadingKeys condition matches no partition key, or matches a field that is not the tenant.

Why: `dynamodb:LeadingKeys` is compared with the whole partition key value, including its prefix. A value that
no key can have denies everything. A value that substitutes the caller for a field other than the tenant
grants access to whichever item has that id.

Example: `"dynamodb:LeadingKeys": "${aws:userid}"` on a table with keys like `REVIEW#…`;
`"TICKET#${cognito-identity.amazonaws.com:sub}"` where the key is `TICKET#{ticket_id}`.

Instead: Write the value as the key template is written, with the tenant in its position,
`"CUSTOMER#${aws:PrincipalTag/customer}"`, and grant the table or index that has this key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import (
    READS,
    REWRITES,
    PolicyGrants,
    describe_statement,
    leading_key_conditions,
    readable_policies,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import EntityDesign, SourceDesign, TableDesign
from tavola.protocol.policy_documents import PolicyStatement
from tavola.protocol.policy_values import MANY, Piece, Variable, parse_pieces

SEVERITY = "error"

_ACTIONS = (*READS, "dynamodb:putitem", *REWRITES)
_POSITIVE = frozenset({"StringEquals", "StringLike", "StringEqualsIgnoreCase"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the statements whose partition key values match no key of the granted tables."""
    for each in readable_policies(context):
        for statement in each.document.statements:
            values = [
                value
                for test in leading_key_conditions(statement)
                if test.operator in _POSITIVE
                for value in test.values
            ]
            if not statement.allows or not values:
                continue
            keys = [found for table in each.tables for found in _granted_keys(each, statement, table)]
            if not keys:
                continue
            variables = each.document.has_variables
            pieces = {
                value: tuple(parse_pieces(value, wildcards=True, variables=variables)) for value in values
            }
            fitting = {value: [key for key in keys if _fits(pieces[value], key[1])] for value in values}
            lost = [value for value, found in fitting.items() if not found]
            if len(lost) == len(values):
                key_formats = ", ".join(dict.fromkeys(_key_text(source) for _, source in keys))
                yield Defect(
                    each.place,
                    f"{describe_statement(statement)} restricts dynamodb:LeadingKeys to {lost[0]}, but partition keys have the format {key_formats}: the condition matches no item",
                    "Write the value in the format of the key, including its prefix",
                )
                continue
            for value, found in fitting.items():
                wrong = _not_the_tenant(pieces[value], found)
                if wrong is not None:
                    yield Defect(
                        each.place,
                        f"{describe_statement(statement)} restricts callers to {value}, but this part of the key is {wrong}, not the tenant",
                        "Grant the table or index whose partition key begins with the tenant, and compare with that key",
                    )


_Key = tuple[EntityDesign, SourceDesign]


def _granted_keys(each: PolicyGrants, statement: PolicyStatement, table: TableDesign) -> Iterator[_Key]:
    """Yield the first partition attribute of each entity in the table and indexes that a statement grants."""
    for entity in table.entities:
        for key in entity.all_keys:
            if any(statement in each.statements_allowing(action, table, key.index) for action in _ACTIONS):
                yield entity, key.hash[0]


def _fits(pieces: tuple[Piece, ...], source: SourceDesign) -> bool:
    """Return whether a policy value can match a partition key; True if unknown."""
    if source.template is None:
        return True
    start = source.template.segments[0] if source.template.segments else ""
    if not isinstance(start, str):
        return True
    if pieces and isinstance(pieces[0], str):
        return pieces[0].startswith(start) or (len(pieces) > 1 and start.startswith(pieces[0]))
    return bool(pieces) and pieces[0] == MANY  # a variable at the start cannot match a key prefix


def _not_the_tenant(pieces: tuple[Piece, ...], found: list[_Key]) -> str | None:
    """Return the field that the variable matches, if no matching key has the tenant there."""
    if not any(isinstance(piece, Variable) for piece in pieces):
        return None
    fields = [(entity, name) for entity, source in found for name in source.fields[:1]]
    if not fields or not any(field.tenant for entity, _ in fields for field in entity.fields):
        return None
    if any(entity.field(name).tenant for entity, name in fields):
        return None
    return fields[0][1]


def _key_text(source: SourceDesign) -> str:
    return f"{{{source.field}}}" if source.template is None else source.template.source
