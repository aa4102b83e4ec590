"""A scan serves an access pattern in regular use.

Why: A scan reads every item of the table, of all entities, and pays for each. It grows slower and dearer with the table, and takes its
capacity from everybody else.

Example: "all open orders" asked by a scan with a filter, five times a second.

Instead: Give the pattern a key: an index, a sparse one if few items are wanted. For reports, export the table or keep the numbers by a
stream.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_per_million
from tavola.design.lint.rule import LintContext
from tavola.design.text import describe_key_for, format_rate, format_size
from tavola.model.sizes import item_bytes
from tavola.values import read_units

SEVERITY: Severity = "warning"

_HOURLY = 1 / 3_600  # what is asked no oftener is a report's


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs that scan more than once an hour."""
    for routed in context.routed_needs():
        often = routed.need.access.per_second if routed.need.access else None
        if routed.route.operation != "scan" or (often is not None and often <= _HOURLY):
            continue
        message = (
            "it scans"
            if often is None
            else f"it scans {'once' if often == 1 else f'{format_rate(often)} times'} a second"
        )
        counted = [(entity.items, item_bytes(routed.table, entity)) for entity in routed.table.entities]
        total = sum(items * each for items, each in counted if items is not None)
        if total and routed.index is None:
            units = read_units(total, consistent=bool(routed.need.access and routed.need.access.consistent))
            message += f" all of {routed.table.name}, {format_size(total)} each time, {format_per_million(units, 'read')} scans"
        else:
            message += f" {routed.target_name}, and so reads every item in it"
        best = next(iter(context.access_paths(routed.need)), None)
        paths = best is not None and best.serves
        whole = not routed.need.where and not routed.need.order
        remedy = (
            "export the table for it, or keep what it looks for in items of their own"
            if whole
            else f"ask {best.key.index or 'the table'} by its key instead"
            if paths and best is not None
            else f"add {describe_key_for(routed.need)}"
        )
        yield Finding("scanned-pattern", SEVERITY, context.need_place(routed.need), message, remedy)
