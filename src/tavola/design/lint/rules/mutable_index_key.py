"""An attribute that changes is part of an index key.

Why: An index entry cannot change its key: it is deleted at the old place and put at the new one, two writes where there was one, in each index
the attribute is a key of. It is often worth it; it should be known.

Example: `status` in the sort key of an index with whole items of 3 KB: each change of status is 6 units there, where 3 would do, beside the
3 of the table.

Instead: Leave it out of the keys that need not have it, project less so that each move is smaller, or put what changes into a sparse
index that items enter once and leave once. Where a query asks by it, the other side is a filter, which reads what it drops: with rates the
finding tells what each of the two costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import changed_fields, deciding_fields
from tavola.design.findings import Finding, Severity
from tavola.design.lint.alternatives import describe_alternatives, entry_move_units
from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_rate, format_units, join_names, join_titles
from tavola.model.document import EntityDesign, KeyDesign, TableDesign, WritePattern

SEVERITY: Severity = "advice"


def find(context: LintContext) -> Iterator[Finding]:
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
        monthly = (
            f"; at {format_rate(often)} a second {format_monthly_with_book(more)} for the key alone"
            if often
            else ""
        )
        yield Finding(
            "mutable-index-key",
            SEVERITY,
            context.key_place(table, entity, key),
            f"its key in {key.index} is made of {join_names(fields)}, changed by {join_titles(write.title for write, _, _ in moves)}: each time an "
            f"entry is deleted and put, {format_units(units_each)} units where {format_units(stayed) if stayed else 'none'} would do, "
            f"{format_per_million(units_each - stayed, 'write')} more{monthly}",
            describe_alternatives(table, entity, key, fields, more),
        )


def _moves_entry(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, write: WritePattern, effect: str
) -> bool:
    """Return whether a write moves an entry; foreign code that forgets to is counted as if it did."""
    if not table.foreign:
        return effect == "moved"
    fed = {name for source in key.sources for name in source.fields} & changed_fields(entity, write)
    return bool(fed - deciding_fields(entity, key))
