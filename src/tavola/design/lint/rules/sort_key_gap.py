"""A sort attribute is given, and one before it is not.

Why: The parts of a sort key are compared from the left, like the letters of a word. A part can be given only where all before it are, so
DynamoDB refuses a gap; a filter in its place reads everything to the left of it.

Example: An index sorted by (`round`, `bracket`) asked for a bracket in any round.

Instead: Put the part that is always known first, or add an index in the other order.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import Subject
from tavola.design.lint.telling import joined

SEVERITY: Severity = "error"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the needs asked with a gap, and those that only a filter behind a gap serves."""
    for asked in subject.asked():
        given = {each.field for each in asked.route.keys}
        last = max((at for at, name in enumerate(asked.range) if name in given), default=-1)
        missing = [name for name in asked.range[: last + 1] if name not in given]
        if asked.route.operation == "query" and asked.known and missing:
            yield Finding(
                "sort-key-gap",
                SEVERITY,
                subject.need_place(asked.need),
                f"it gives {asked.range[last]} without {joined(missing)}, before it in {asked.on}'s sort key: DynamoDB refuses it",
                f"give {joined(missing)} with =, or add an index with {asked.range[last]} first",
            )
    for need in subject.design.needs:
        served = subject.access_paths(need) if need.route is None else ()
        if served and served[0].operation == "filter" and served[0].obstacle == "gap":
            near = served[0]
            later = joined(each.field for each in near.filtered)
            yield Finding(
                "sort-key-gap",
                "warning",
                subject.need_place(need),
                f"{later} stands behind {joined(near.obstacle_fields)} in the sort key of {near.key.index or near.table.name}, "
                f"and that is not given: only a filter finds it",
                f"give {joined(near.obstacle_fields)} too, or add an index with {later} first",
            )
