"""Similar items in one item collection use different sort key formats.

Why: Queries return a collection in sort key order. If some events of a ticket are keyed by day and number and
others by timestamp and type, the timeline is in neither order, and no range condition on dates finds all of
them.

Example: `EVENT#{date}#{sequence}` and `EVENT#{timestamp}#{kind}` under one ticket.

Instead: Choose one format, for example the timestamp followed by a tiebreaker, and use it for all items of
this kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.lint.heat import time_kind
from tavola.design.lint.item_keys import literal_prefix, source_outline
from tavola.design.lint.rule import Defect, LintContext
from tavola.keys import Placeholder
from tavola.model.document import EntityDesign, KeyDesign, SourceDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the first of two entities whose sort keys in one partition begin alike and continue differently."""
    for table in context.design.tables:
        indexes: list[str | None] = [None, *(index.name for index in table.indexes)]
        for index in indexes:
            keyed = [
                (entity, key)
                for entity in table.entities
                if (key := entity.key_on(index)) is not None and key.range
            ]
            for (one, mine), (two, its) in combinations(keyed, 2):
                begins = literal_prefix(mine.range[0])
                if not begins or begins != literal_prefix(its.range[0]) or not _together(mine, its):
                    continue
                left, right = _first(mine.range[0]), _first(its.range[0])
                if left is None or right is None or _same(one, left, two, right):
                    continue
                yield Defect(
                    context.entity_place(table, one),
                    f"The sort key {begins}… continues with {left.field} here but with {right.field} in {two.name}, so one item collection has two sort orders",
                    f"Use one sort key format for {one.name} and {two.name}, or different prefixes",
                )


def _together(mine: KeyDesign, its: KeyDesign) -> bool:
    """Return whether two keys are made for the same partitions."""
    return all(
        source_outline(left) == source_outline(right)
        for left, right in zip(mine.hash, its.hash, strict=False)
    )


def _first(source: SourceDesign) -> Placeholder | None:
    if source.template is None:
        return None
    return next((segment for segment in source.template.segments if isinstance(segment, Placeholder)), None)


def _same(one: EntityDesign, left: Placeholder, two: EntityDesign, right: Placeholder) -> bool:
    """Return whether two parts sort alike: the same kind of value in the same format."""
    if left.field == right.field and left.spec == right.spec:
        return True
    mine, its = one.field(left.field), two.field(right.field)
    alike = (mine.type, mine.key_kind, left.spec) == (its.type, its.key_kind, right.spec)
    return alike and time_kind(mine) == time_kind(its)
