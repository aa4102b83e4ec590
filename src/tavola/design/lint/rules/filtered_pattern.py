"""Only a filter serves an access pattern, or its filter throws away most of what is read.

Why: A filter is applied after the read: everything that the key condition finds is read and paid for, then dropped. A page
that reads 1 MB and returns nothing costs the same as one that returns it all, and `limit` counts what was read.

Example: All orders of a customer are read, 1,000 of them, to keep the 20 that are open.

Instead: Put what is filtered by into a key: into the sort key before the date, into the partition key, or into a sparse index that
only the wanted items have. What changes often is dear in a key: where the rates say that its moves would cost more than the filter
does, this is advice, and tells both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.findings import Finding, Place, Severity
from tavola.design.lint.dollars import monthly, per_million, spelled
from tavola.design.lint.rule import Subject
from tavola.design.lint.telling import conditions, counted, joined, quoted, units, wanted_key
from tavola.design.lint.trades import filter_month, key_month
from tavola.model.document import AccessPattern, EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.values import read_units

SEVERITY: Severity = "warning"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the needs that are filtered for want of a key, and the patterns that drop more than they keep."""
    for need in subject.design.needs:
        served = subject.access_paths(need)
        if need.route is not None and need.route.operation == "scan":
            continue
        home = subject.homes.get(need.entities[0])
        if home is None or not served:
            continue
        best = served[0]
        if need.route is not None and need.route.filters:
            if _kept(need.access):
                continue
            told = f"it is filtered by {conditions(need.route.filters)} after the read"
            better = best.serves
            remedy = (
                f"ask {best.key.index or 'the table'}, which has a key for it"
                if better
                else f"add {wanted_key(need)}"
            )
        elif (
            need.route is None and best.operation == "filter" and not best.obstacle and not _kept(need.access)
        ):
            told = (
                f"{best.key.index or 'the table'} finds it only with a filter by {conditions(best.filtered)}"
            )
            remedy = f"add {wanted_key(need)}"
        else:
            continue
        dear = None
        if need.route is not None and need.access is not None:
            filters = [given.field for given in need.route.filters]
            dear = _dearer(*home, subject.index_of(home[0], need.route.index), filters, need.access)
        elif need.access is not None:
            filters = [given.field for given in best.filtered]
            dear = _dearer(*home, subject.index_of(home[0], best.key.index), filters, need.access)
        yield _finding(subject.need_place(need), told + _cost(*home, need.access), remedy, dear)
    for table, entity, pattern in subject.design.patterns():
        access = pattern.access
        if access is None or not access.filters or access.returned is None or _kept(access):
            continue
        told = f"it is filtered by {joined(access.filters)} after the read" + _cost(table, entity, access)
        place = subject.pattern_place(table, entity, pattern)
        dear = _dearer(table, entity, subject.index_of(table, pattern.index), access.filters, access)
        yield _finding(
            place, told, f"put {joined(access.filters)} into its key, or into a sparse index", dear
        )
    for table in subject.design.tables:
        for collection in table.collections:
            access = collection.access
            if access is None or not access.filters or access.returned is None or _kept(access):
                continue
            entity = table.entity(collection.members[0].entity)
            told = f"it is filtered by {joined(access.filters)} after the read" + _cost(table, entity, access)
            yield _finding(
                subject.collection_place(table, collection),
                told,
                f"put {joined(access.filters)} into its key",
            )


def _kept(access: AccessPattern | None) -> bool:
    """Tell whether at least half of what is read is returned."""
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
    return f": {counted(access.items, 'item')} of {each:,} B {are} read{returned}, {units(read)} units, {per_million(read, 'read')}"


def _dearer(
    table: TableDesign,
    entity: EntityDesign,
    index: IndexDesign | None,
    fields: Sequence[str],
    access: AccessPattern,
) -> str | None:
    """Return why a filter is the cheaper way, both sides told; None if it is not, or nobody says how often anything is."""
    filtered = filter_month(table, entity, access)
    if index is None or filtered is None:
        return None
    names = {field.name for field in entity.fields if {field.name, field.attribute} & set(fields)}
    more, titles = key_month(table, entity, index, names)
    if more <= filtered:
        return None
    return (
        f"leave it, or ask a sparse index of few items: with {joined(fields)} in the key of {index.name}, {quoted(titles)} would cost "
        f"{monthly(more)} more, and the filter costs {spelled(filtered)}"
    )


def _finding(place: Place, told: str, remedy: str, dearer: str | None = None) -> Finding:
    """Return a finding; advice where the remedy would be `dearer` than what it mends."""
    return Finding("filtered-pattern", "advice" if dearer else SEVERITY, place, told, dearer or remedy)
