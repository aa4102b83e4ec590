"""A missing value is indexed as if it were a value.

Why: An index that every item is in has a key for those whose value is absent as well: zero, the highest, an empty text. They are then found among
the items that really have it: an unknown risk as the highest one.

Example: `GSI3SK = {risk_score}` of failed reviews, whose score is null, written as `1.0`.

Instead: Leave the key attribute out where the value is absent, so that the item is not in the index (a sparse one); ask for those without in
another way.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the keys of foreign tables that are always rendered, although a field may be absent."""
    for table, entity, key in context.all_keys():
        if not table.foreign or key.sparse or key.index is None:
            continue
        kept_out = {member.field for member in key.members if None not in member.values}
        for source in key.sources:
            absent = [name for name in source.fields if entity.field(name).nullable and name not in kept_out]
            if source.template is not None and absent:
                yield Finding(
                    "unknown-as-value",
                    SEVERITY,
                    context.key_place(table, entity, key),
                    f"{join_names(absent)} may be absent, and every {entity.name} has {source.attribute} = {source.template.source} "
                    f"in {key.index}: what is unknown is indexed as a value",
                    f"leave {source.attribute} out where {join_names(absent)} is absent",
                )
