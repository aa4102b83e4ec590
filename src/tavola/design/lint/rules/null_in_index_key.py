"""An index key is rendered from a value that may be missing.

Why: If every item must be in the index, items without the value get a substitute: zero, the maximum, an empty
string. Queries then return them among items that really have that value, for example an unknown risk as the
highest risk.

Example: `GSI3SK = {risk_score}` for failed reviews, with a null score written as `1.0`.

Instead: Make the index sparse: omit the key attribute if the value is missing, so that the item is not in the
index. Find items without a value another way.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the keys of foreign tables that are always rendered, although a field may be absent."""
    for table, entity, key in context.all_keys():
        if not table.foreign or key.sparse or key.index is None:
            continue
        kept_out = {member.field for member in key.members if None not in member.values}
        for source in key.sources:
            absent = [name for name in source.fields if entity.field(name).nullable and name not in kept_out]
            if source.template is not None and absent:
                yield Defect(
                    context.key_place(table, entity, key),
                    f"{join_names(absent)} may be missing, but every {entity.name} has {source.attribute} = {source.template.source} "
                    f"in {key.index}: missing values are indexed as if they were real",
                    f"Omit {source.attribute} if {join_names(absent)} is missing (a sparse index)",
                )
