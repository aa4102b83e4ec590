"""An access pattern needs a filter for lack of a key, or its filter drops most of what it reads.

Why: A filter is applied after the read: everything that the key condition finds is read and paid for, then dropped. A page
that reads 1 MB and returns nothing costs the same as one that returns it all, and `limit` counts what was read.

Example: All orders of a customer are read, 1,000 of them, to keep the 20 that are open.

Instead: Put what is filtered by into a key: into the sort key before the date, into the partition key, or into a sparse index that
only the wanted items have. What changes often is dear in a key: where the rates say that its moves would cost more than the filter
does, this is advice, and tells both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.alternatives import filter_monthly_cost, index_key_monthly_cost
from tavola.design.lint.monthly_costs import format_monthly, format_monthly_with_book, format_per_million
from tavola.design.lint.rule import LintContext
from tavola.design.text import (
    describe_conditions,
    describe_key_for,
    format_count,
    format_units,
    join_names,
    join_titles,
)
from tavola.model.document import AccessPattern, EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.values import read_units

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs that no key serves without a filter, and the patterns that drop more than they return."""
    for need in context.design.needs:
        paths = context.access_paths(need)
        if need.route is not None and need.route.operation == "scan":
            continue
        home = context.entities_by_name.get(need.entities[0])
        if home is None or not paths:
            continue
        best = paths[0]
        if need.route is not None and need.route.filters:
            if _keeps_most(need.access):
                continue
            message = f"it is filtered by {describe_conditions(need.route.filters)} after the read"
            better = best.serves
            remedy = (
                f"ask {best.key.index or 'the table'}, which has a key for it"
                if better
                else f"add {describe_key_for(need)}"
            )
        elif (
            need.route is None
            and best.operation == "filter"
            and not best.obstacle
            and not _keeps_most(need.access)
        ):
            message = f"{best.key.index or 'the table'} finds it only with a filter by {describe_conditions(best.filtered)}"
            remedy = f"add {describe_key_for(need)}"
        else:
            continue
        dear = None
        if need.route is not None and need.access is not None:
            filters = [given.field for given in need.route.filters]
            dear = _explain_cheaper_filter(
                *home, context.find_index(home[0], need.route.index), filters, need.access
            )
        elif need.access is not None:
            filters = [given.field for given in best.filtered]
            dear = _explain_cheaper_filter(
                *home, context.find_index(home[0], best.key.index), filters, need.access
            )
        yield _finding(context.need_place(need), message + _cost(*home, need.access), remedy, dear)
    for table, entity, pattern in context.design.patterns():
        access = pattern.access
        if access is None or not access.filters or access.returned is None or _keeps_most(access):
            continue
        message = f"it is filtered by {join_names(access.filters)} after the read" + _cost(
            table, entity, access
        )
        place = context.pattern_place(table, entity, pattern)
        dear = _explain_cheaper_filter(
            table, entity, context.find_index(table, pattern.index), access.filters, access
        )
        yield _finding(
            place, message, f"put {join_names(access.filters)} into its key, or into a sparse index", dear
        )
    for table in context.design.tables:
        for collection in table.collections:
            access = collection.access
            if access is None or not access.filters or access.returned is None or _keeps_most(access):
                continue
            entity = table.entity(collection.members[0].entity)
            message = f"it is filtered by {join_names(access.filters)} after the read" + _cost(
                table, entity, access
            )
            yield _finding(
                context.collection_place(table, collection),
                message,
                f"put {join_names(access.filters)} into its key",
            )


def _keeps_most(access: AccessPattern | None) -> bool:
    """Return whether at least half of the items read are returned."""
    return (
        access is not None
        and access.items is not None
        and access.returned is not None
        and access.returned * 2 >= access.items
    )


def _cost(table: TableDesign, entity: EntityDesign, access: AccessPattern | None) -> str:
    if access is None or access.items is None:
        return ""
    each = access.item_bytes or item_size(table, entity).total
    read = read_units(access.items * each, consistent=access.consistent)
    returned = "" if access.returned is None else f" to return {access.returned:,}"
    are = "is" if access.items == 1 else "are"
    return f": {format_count(access.items, 'item')} of {each:,} B {are} read{returned}, {format_units(read)} units, {format_per_million(read, 'read')}"


def _explain_cheaper_filter(
    table: TableDesign,
    entity: EntityDesign,
    index: IndexDesign | None,
    fields: Sequence[str],
    access: AccessPattern,
) -> str | None:
    """Return why the filter is cheaper than an index, with both costs; None if it is not, or rates are unknown."""
    filtered = filter_monthly_cost(table, entity, access)
    if index is None or filtered is None:
        return None
    names = {field.name for field in entity.fields if {field.name, field.attribute} & set(fields)}
    more, titles = index_key_monthly_cost(table, entity, index, names)
    if more <= filtered:
        return None
    return (
        f"leave it, or ask a sparse index of few items: with {join_names(fields)} in the key of {index.name}, {join_titles(titles)} would cost "
        f"{format_monthly(more)} more, and the filter costs {format_monthly_with_book(filtered)}"
    )


def _finding(place: DesignPath, message: str, remedy: str, dearer: str | None = None) -> Finding:
    """Return a finding; it is advice if the remedy costs more than the filter (`dearer`)."""
    return Finding("filtered-pattern", "advice" if dearer else SEVERITY, place, message, dearer or remedy)
