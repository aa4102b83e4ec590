"""An access pattern reads attributes that its index does not project.

Why: A global index gives what it projects and nothing else. What is read beyond that is not there: a KeyError, or a field that is empty on one
page and full on another. A local index fetches it from the table, item by item, and pays for each.

Example: `projection=("status", "created_at")`, and the list shows the subject of each ticket.

Instead: Project the field, give a view of what there is, or let the query fetch whole items (`hydrate=True`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, IndexDesign, TableDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the patterns and needs that read a field which their index lacks."""
    for table, entity, pattern in context.design.patterns():
        index = context.find_index(table, pattern.index)
        result = context.result_types.get(pattern.result, entity)
        if index is None or pattern.hydrate:
            continue
        reads = pattern.access.reads if pattern.access is not None else ()
        names = reads or tuple(field.name for field in result.fields)
        yield from _check_reads(table, entity, index, names, context.pattern_place(table, entity, pattern))
    for routed in context.routed_needs():
        access = routed.need.access
        if routed.index is not None and routed.route.operation in ("query", "scan") and access is not None:
            place = context.need_place(routed.need)
            yield from _check_reads(routed.table, routed.entity, routed.index, access.reads, place)


def _check_reads(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, names: tuple[str, ...], place: DesignPath
) -> Iterator[Finding]:
    held = table.projected_attributes(index)
    if held is None:
        return
    known = {field.name: field.attribute for field in entity.fields}
    in_keys = {
        name
        for key in (entity.key, entity.key_on(index.name))
        if key is not None
        for source in key.sources
        for name in source.fields
    }
    # A field that a key of the entry is made of can be read back from it in a design of Tavola.
    readable = set() if table.foreign else in_keys
    lacking = [name for name in names if known.get(name, name) not in held and name not in readable]
    if not lacking:
        return
    if index.local:
        yield Finding(
            "projection-lacks",
            "warning",
            place,
            f"it reads {join_names(lacking)}, which {index.name} does not hold: each item is fetched from the table as well",
            f"project {join_names(lacking)}, or read less",
        )
        return
    yield Finding(
        "projection-lacks",
        SEVERITY,
        place,
        f"it reads {join_names(lacking)}, which {index.name} does not hold",
        f"project {join_names(lacking)}, or fetch the items by their keys",
    )
