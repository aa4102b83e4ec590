"""A table has a fixed number of capacity units, whatever its traffic.

Why: Provisioned units are paid by the hour, used or not, and what comes above them is throttled. Without auto scaling the
number is right at one time of the day.

Example: `read_units=100, write_units=50` with an average of 20 writes a second and a peak of 200.

Instead: `scaling=Scaling(read_max=…, write_max=…)`, which follows the traffic at 70 per cent; or on demand, by leaving the
units out, which is cheaper below some 30 per cent of use. `tavola cost` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import collection_units, pattern_units, write_pattern_units
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rates import peak_rate
from tavola.design.lint.rule import LintContext
from tavola.model.document import AccessPattern, TableDesign, WritePattern

SEVERITY: Severity = "warning"

_STEADY = 0.5  # of its units that a table uses on average, from which on a fixed number is no waste


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the provisioned tables without auto scaling, unless known traffic uses the units steadily."""
    for table in context.design.tables:
        settings = table.settings
        if "scaling" in settings.unknown:
            continue
        if settings.read_units is None or settings.write_units is None or settings.scaling is not None:
            continue
        reads, writes = _units(table)
        over = [
            f"{most:,.0f} {word} units a second at the peak against {had:,}"
            for word, (_, most), had in (
                ("read", reads, settings.read_units),
                ("write", writes, settings.write_units),
            )
            if most > had
        ]
        steady = reads[0] >= _STEADY * settings.read_units and writes[0] >= _STEADY * settings.write_units
        if over:
            yield Finding(
                "provisioned-without-scaling",
                SEVERITY,
                context.table_place(table),
                f"its units are fixed, and the traffic needs {' and '.join(over)}: the rest is throttled",
                "give scaling=Scaling(read_max=…, write_max=…), or leave the units out for on demand",
            )
        elif not steady:
            yield Finding(
                "provisioned-without-scaling",
                "advice",
                context.table_place(table),
                f"it has {settings.read_units:,} read and {settings.write_units:,} write units at every hour, used or not, and nothing follows its "
                "traffic",
                "give scaling=Scaling(read_max=…, write_max=…), or leave the units out for on demand",
            )


def _units(table: TableDesign) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the read and write units per second of the table itself: on average, and at the peak."""
    reads, writes = [0.0, 0.0], [0.0, 0.0]

    def add(to: list[float], told: AccessPattern | WritePattern | None, units: float) -> None:
        to[0] += units * (0.0 if told is None else told.per_second or 0.0)
        to[1] += units * (peak_rate(told) or 0.0)

    for entity in table.entities:
        for pattern in (*((entity.primary,) if entity.primary else ()), *entity.patterns):
            here = (part.read for part in pattern_units(table, entity, pattern) if part.index is None)
            add(reads, pattern.access, sum(here))
        for write in entity.writes:
            here = (part.write for part in write_pattern_units(table, entity, write) if part.index is None)
            add(writes, write, sum(here))
    for collection in table.collections:
        here = (part.read for part in collection_units(table, collection) if part.index is None)
        add(reads, collection.access, sum(here))
    return (reads[0], reads[1]), (writes[0], writes[1])
