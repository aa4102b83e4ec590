"""An access pattern needs a filter because no key serves it, or its filter discards most of what it reads.

Why: DynamoDB applies filter expressions after the read, so discarded items consume read units too. A page
that reads 1 MB and returns nothing costs as much as one that returns everything, and `Limit` counts items
before the filter.

Example: 1,000 orders of a customer are read to return the 20 that are open.

Instead: Move the filtered attribute into a key: before the date in the sort key, into the partition key, or
into a sparse index with the wanted items only. An attribute that changes often is expensive in a key. If the
declared rates show that the index would cost more than the filter, the finding is advice and states both
costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.findings import DesignPath
from tavola.design.lint.monthly_costs import (
    filter_monthly_cost,
    format_monthly,
    format_monthly_with_book,
    format_per_million,
    index_key_monthly_cost,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import (
    describe_conditions,
    describe_key_for,
    format_count,
    format_size,
    format_units,
    join_names,
    join_titles,
)
from tavola.model.document import AccessPattern, EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.values import read_units

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
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
            message = f"Filters by {describe_conditions(need.route.filters)} after reading"
            better = best.serves
            remedy = (
                f"Query {best.key.index or 'the table'}, which has a key for it"
                if better
                else f"Add {describe_key_for(need)}"
            )
        elif (
            need.route is None
            and best.operation == "filter"
            and not best.obstacle
            and not _keeps_most(need.access)
        ):
            message = f"{best.key.index or 'The table'} can serve it only with a filter by {describe_conditions(best.filtered)}"
            remedy = f"Add {describe_key_for(need)}"
        else:
            continue
        cheaper = None
        if need.access is not None:
            filters, used = (
                (best.filtered, best.key.index)
                if need.route is None
                else (need.route.filters, need.route.index)
            )
            fields = [given.field for given in filters]
            cheaper = _explain_cheaper_filter(*home, context.find_index(home[0], used), fields, need.access)
        yield _finding(context.need_place(need), message + _cost(*home, need.access), remedy, cheaper)
    for table, entity, pattern in context.design.patterns():
        access = pattern.access
        if access is None or not access.filters or access.returned is None or _keeps_most(access):
            continue
        message = f"Filters by {join_names(access.filters)} after reading" + _cost(table, entity, access)
        place = context.pattern_place(table, entity, pattern)
        cheaper = _explain_cheaper_filter(
            table, entity, context.find_index(table, pattern.index), access.filters, access
        )
        yield _finding(
            place, message, f"Move {join_names(access.filters)} into the key, or add a sparse index", cheaper
        )
    for table in context.design.tables:
        for collection in table.collections:
            access = collection.access
            if access is None or not access.filters or access.returned is None or _keeps_most(access):
                continue
            entity = table.entity(collection.members[0].entity)
            message = f"Filters by {join_names(access.filters)} after reading" + _cost(table, entity, access)
            yield _finding(
                context.collection_place(table, collection),
                message,
                f"Move {join_names(access.filters)} into the key",
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
    return f": reads {format_count(access.items, 'item')} of {format_size(each)}{returned}, {format_units(read)} read units, {format_per_million(read, 'read')}"


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
        f"Keep the filter, or use a sparse index of few items: with {join_names(fields)} in the key of {index.name}, {join_titles(titles)} would cost "
        f"{format_monthly(more)} more, while the filter costs {format_monthly_with_book(filtered)}"
    )


def _finding(place: DesignPath, message: str, remedy: str, keep_filter: str | None = None) -> Defect:
    """Return a finding; it is advice if the remedy costs more than the filter (`keep_filter`)."""
    return Defect(place, message, keep_filter or remedy, severity="advice" if keep_filter else None)
