"""A provisioned table has fixed capacity.

Why: Provisioned capacity is charged by the hour, used or not, and traffic above it is throttled. Without auto
scaling, the setting fits one time of day.

Example: `read_units=100, write_units=50` with 20 writes per second on average and 200 at peak.

Instead: Add `scaling=Scaling(read_max=…, write_max=…)`, which targets 70 percent utilization, or remove the
units to use on-demand capacity, which is cheaper below about 30 percent utilization. `tavola cost` compares
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import collection_units, pattern_units, write_pattern_units
from tavola.design.lint.rates import peak_rate
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import AccessPattern, TableDesign, WritePattern

SEVERITY = "warning"

_STEADY = 0.5  # average utilization from which on fixed capacity is not a waste


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the provisioned tables without auto scaling, unless known traffic uses the units steadily."""
    for table in context.design.tables:
        settings = table.settings
        if "scaling" in settings.unknown:
            continue
        if settings.read_units is None or settings.write_units is None or settings.scaling is not None:
            continue
        reads, writes = _units(table)
        over = [
            f"{had:,} {word} units, while traffic needs {most:,.0f} per second at peak"
            for word, (_, most), had in (
                ("read", reads, settings.read_units),
                ("write", writes, settings.write_units),
            )
            if most > had
        ]
        steady = reads[0] >= _STEADY * settings.read_units and writes[0] >= _STEADY * settings.write_units
        if over:
            yield Defect(
                context.table_place(table),
                f"Capacity is fixed at {', and at '.join(over)}: requests above that are throttled",
                "Add scaling=Scaling(read_max=…, write_max=…), or remove the units to use on-demand capacity",
            )
        elif not steady:
            yield Defect(
                context.table_place(table),
                f"Provisions {settings.read_units:,} read and {settings.write_units:,} write units around the clock, without auto "
                "scaling",
                "Add scaling=Scaling(read_max=…, write_max=…), or remove the units to use on-demand capacity",
                severity="advice",
            )


def _units(table: TableDesign) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the read and write units per second of the table itself: on average, and at the peak."""
    reads, writes = [0.0, 0.0], [0.0, 0.0]

    def add(to: list[float], pattern: AccessPattern | WritePattern | None, units: float) -> None:
        to[0] += units * (0.0 if pattern is None else pattern.per_second or 0.0)
        to[1] += units * (peak_rate(pattern) or 0.0)

    for entity in table.entities:
        for pattern in entity.all_patterns:
            here = (part.read for part in pattern_units(table, entity, pattern) if part.index is None)
            add(reads, pattern.access, sum(here))
        for write in entity.writes:
            here = (part.write for part in write_pattern_units(table, entity, write) if part.index is None)
            add(writes, write, sum(here))
    for collection in table.collections:
        here = (part.read for part in collection_units(table, collection) if part.index is None)
        add(reads, collection.access, sum(here))
    return (reads[0], reads[1]), (writes[0], writes[1])
