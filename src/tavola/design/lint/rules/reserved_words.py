"""Attribute names are reserved words of DynamoDB.

Why: 573 words, among them `status`, `name`, `date`, `region` and `data`, may not stand in an expression. A request that
writes one out is refused when it is first sent, which is often in production, in the branch that nobody tried.

Example: `FilterExpression="status = :s"` fails; `"#s = :s"` with `{"#s": "status"}` does not.

Instead: Use placeholders for every name (Tavola's own requests do), or call new attributes otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.expressions.reserved import RESERVED_WORDS
from tavola.model.document import TableDesign

SEVERITY: Severity = "advice"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the foreign tables with attributes named by reserved words."""
    for table in context.design.tables:
        found = [name for name in _attributes(table) if name.upper() in RESERVED_WORDS]
        if table.foreign and found:
            yield Finding(
                "reserved-words",
                SEVERITY,
                context.table_place(table),
                f"{', '.join(found)} {'is a reserved word' if len(found) == 1 else 'are reserved words'}: an expression that writes "
                f"{'it' if len(found) == 1 else 'one'} out is refused",
                "give them placeholders in every expression (ExpressionAttributeNames), as Tavola's client does",
            )


def _attributes(table: TableDesign) -> tuple[str, ...]:
    names = [*table.key_types, *(field.attribute for entity in table.entities for field in entity.fields)]
    return tuple(sorted(set(names)))
