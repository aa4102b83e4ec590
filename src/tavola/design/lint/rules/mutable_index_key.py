"""An attribute that changes is part of an index key.

Why: When an index key changes, DynamoDB deletes the old entry and writes a new one: two writes instead of
one, in every index that has the attribute in its key. It is often worth the cost, but it should be a
decision.

Example: `status` in the sort key of an index that projects whole 3 KB items: each status change costs 6 write
units in the index instead of 3, in addition to 3 in the table.

Instead: Remove the attribute from keys that do not need it, project less, or use a sparse index that items
enter once and leave once. If a query uses the attribute, the alternative is a filter, which reads items it
discards. With declared rates, the finding states the cost of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import changed_fields, deciding_fields
from tavola.design.lint.monthly_costs import (
    describe_alternatives,
    entry_move_units,
    format_monthly_with_book,
    format_per_million,
    monthly_cost,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_rate, format_units, join_names, join_titles
from tavola.model.document import EntityDesign, KeyDesign, TableDesign, WritePattern

SEVERITY = "advice"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the keys whose index entries move on update, with the cost."""
    for table, entity, key in context.all_keys():
        if key.index is None:
            continue
        moves = [
            (write, *entry_move_units(table, entity, table.index(key.index), write, effect.entry_bytes))
            for write in entity.writes
            if write.kind == "update"
            for effect in context.index_effects(table, entity, write)
            if effect.index == key.index and _moves_entry(table, entity, key, write, effect.kind)
        ]
        if not moves:
            continue
        changed = {name for write, _, _ in moves for name in changed_fields(entity, write)}
        fields = [name for source in key.sources for name in source.fields if name in changed]
        units_each, stayed = max((moved, stay) for _, moved, stay in moves)
        often = sum(write.per_second or 0 for write, _, _ in moves)
        more = monthly_cost(
            writes=sum((moved - stay) * (write.per_second or 0) for write, moved, stay in moves)
        )
        monthly = f", {format_monthly_with_book(more)} at {format_rate(often)} per second" if often else ""
        yield Defect(
            context.key_place(table, entity, key),
            f"{join_titles(write.title for write, _, _ in moves)} {'changes' if len(moves) == 1 else 'change'} {join_names(fields)}, part of the key of {key.index}: each change "
            f"deletes one index entry and writes another, {format_units(units_each)} write units instead of {format_units(stayed)}, an extra "
            f"{format_per_million(units_each - stayed, 'write')}{monthly}",
            describe_alternatives(table, entity, key, fields, more),
        )


def _moves_entry(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, write: WritePattern, effect: str
) -> bool:
    """Return whether a write moves an entry; in foreign tables, as if the code rewrote the key."""
    if not table.foreign:
        return effect == "moved"
    fed = {name for source in key.sources for name in source.fields} & changed_fields(entity, write)
    return bool(fed - deciding_fields(entity, key))
