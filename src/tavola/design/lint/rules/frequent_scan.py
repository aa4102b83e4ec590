"""A frequent access pattern uses Scan.

Why: A Scan reads and charges for every item in the table, of all entities. It gets slower and more expensive
as the table grows, and competes with other requests for capacity.

Example: "All open orders" is a scan with a filter, five times per second.

Instead: Add a key for the pattern: an index, sparse if few items are wanted. For reports, export the table to
S3 or maintain aggregates from the stream.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.monthly_costs import format_per_million
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import describe_key_for, format_rate, format_size
from tavola.model.sizes import item_bytes
from tavola.values import read_units

SEVERITY = "warning"

_HOURLY = 1 / 3_600  # scans that run at most hourly are reports


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs that scan more than once an hour."""
    for routed in context.routed_needs():
        often = routed.need.access.per_second if routed.need.access else None
        if routed.route.operation != "scan" or (often is not None and often <= _HOURLY):
            continue
        rate = (
            "" if often is None else f" {'once' if often == 1 else f'{format_rate(often)} times'} per second"
        )
        counted = [(entity.items, item_bytes(routed.table, entity)) for entity in routed.table.entities]
        total = sum(items * each for items, each in counted if items is not None)
        if total and routed.index is None:
            units = read_units(total, consistent=bool(routed.need.access and routed.need.access.consistent))
            cost = format_per_million(units, "read").replace("reads", "scans")
            message = f"Scans all of {routed.table.name}{rate}: {format_size(total)} each time, {cost}"
        else:
            message = f"Scans {routed.target_name}{rate}, which reads every item in it"
        best = next(iter(context.access_paths(routed.need)), None)
        paths = best is not None and best.serves
        whole = not routed.need.where and not routed.need.order
        remedy = (
            "Export the table to S3, or maintain the results in separate items"
            if whole
            else f"Query {best.key.index or 'the table'} by its key instead"
            if paths and best is not None
            else f"Add {describe_key_for(routed.need)}"
        )
        yield Defect(context.need_place(routed.need), message, remedy)
