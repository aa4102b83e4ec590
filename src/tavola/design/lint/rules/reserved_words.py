"""Attribute names are DynamoDB reserved words.

Why: 573 words, among them `status`, `name`, `date`, `region` and `data`, cannot be used directly in
expressions. DynamoDB rejects the request at run time, often first in production, in a rarely used branch.

Example: `FilterExpression="status = :s"` fails; `"#s = :s"` with `{"#s": "status"}` works.

Instead: Use expression attribute names for all attributes, as Tavola's requests do, or choose other names for
new attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.expressions.renderer import RESERVED_WORDS
from tavola.model.document import TableDesign

SEVERITY = "advice"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the foreign tables with attributes named by reserved words."""
    for table in context.design.tables:
        found = [name for name in _attributes(table) if name.upper() in RESERVED_WORDS]
        if table.foreign and found:
            yield Defect(
                context.table_place(table),
                f"{join_names(found)} {'is a reserved word' if len(found) == 1 else 'are reserved words'}: expressions that use "
                f"{'it' if len(found) == 1 else 'them'} directly are rejected",
                "Use ExpressionAttributeNames in every expression, as Tavola's client does",
            )


def _attributes(table: TableDesign) -> tuple[str, ...]:
    names = [*table.key_types, *(field.attribute for entity in table.entities for field in entity.fields)]
    return tuple(sorted(set(names)))
