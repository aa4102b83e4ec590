"""One kind of item is keyed in two ways in one item collection.

Why: A collection is read in the order of its sort keys. Where some of the events of a ticket are keyed by day and number and others by
the moment and a word, the timeline that is read is in neither order, and neither stretch of dates finds them all.

Example: `EVENT#{date}#{sequence}` and `EVENT#{timestamp}#{kind}` under one ticket.

Instead: Choose one: the moment, and after it what tells two of a moment apart. Write everything of the kind so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import time_kind
from tavola.design.lint.key_texts import literal_prefix
from tavola.design.lint.rule import LintContext
from tavola.keys import Placeholder
from tavola.model.document import EntityDesign, KeyDesign, SourceDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
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
                yield Finding(
                    "two-orders",
                    SEVERITY,
                    context.entity_place(table, one),
                    f"{begins}… goes on with {left.field} here and with {right.field} in {two.name}: one collection in two orders",
                    f"key {one.name} and {two.name} alike, or let them begin differently",
                )


def _together(mine: KeyDesign, its: KeyDesign) -> bool:
    """Return whether two keys are made for the same partitions."""
    return all(_outline(left) == _outline(right) for left, right in zip(mine.hash, its.hash, strict=False))


def _outline(source: SourceDesign) -> tuple[str, ...]:
    if source.template is None:
        return ("*",)
    return tuple(segment if isinstance(segment, str) else "*" for segment in source.template.segments)


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
