"""An access pattern reads attributes that its index does not project.

Why: A global secondary index returns projected attributes only; others are missing from the result. A local
secondary index fetches them from the table, item by item, and charges for each fetch.

Example: `projection=("status", "created_at")`, while the list shows the subject of each ticket.

Instead: Project the attribute, return a view of the projected attributes, or fetch whole items
(`hydrate=True`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, IndexDesign, TableDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
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
) -> Iterator[Defect]:
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
        yield Defect(
            place,
            f"Reads {join_names(lacking)}, which {index.name} does not project: DynamoDB fetches each item from the table at extra cost",
            f"Project {join_names(lacking)}, or read fewer attributes",
            severity="warning",
        )
        return
    yield Defect(
        place,
        f"Reads {join_names(lacking)}, which {index.name} does not project",
        f"Project {join_names(lacking)}, or fetch whole items by key (hydrate=True)",
    )
