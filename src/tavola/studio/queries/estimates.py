"""Estimate what a read will consume before it runs: a range, and what the estimate is based on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.limits import ITEM_BYTES_MAX, PAGE_BYTES_MAX
from tavola.model.document import AccessPattern, TableDesign
from tavola.prices import PriceBook
from tavola.studio.queries.planner import QueryPlan
from tavola.studio.queries.rows import PAGE_ROWS
from tavola.studio.recognition import Recogniser
from tavola.values import read_units

_LATE = "; it counts every six hours or so"


@dataclass(frozen=True, slots=True)
class ReadEstimate:
    """Read units of the whole answer, from the least to the most that is likely, and the dollars of a million such.

    A Scan and a Query of which the design says nothing take no more than `units_high`, as far as DescribeTable counted. A
    Get and what the design foretells may: the reason says what it stands on.
    """

    units_low: float
    units_high: float
    bytes_high: int
    pages_high: int
    dollars_low: Decimal  # of a million requests like this, on demand
    dollars_high: Decimal
    priced: str  # which price book
    reason: str


def estimate_read(
    planned: QueryPlan,
    recogniser: Recogniser,
    book: PriceBook,
    table_class: str,
    *,
    late: bool = False,
    past: bool = False,
) -> ReadEstimate:
    """Return what an answer will take, by what DescribeTable counted and by what the design says.

    `late`: who counts does so now and then, as AWS does. `past`: it is asked of another moment than was counted.
    """
    target, consistent = planned.route.target, planned.consistent
    least = read_units(0, consistent=consistent)
    match planned.route.operation:
        case "GetItem":
            high = target.mean_bytes or ITEM_BYTES_MAX
            reason = (
                f"Items average {_format_bytes(high)}; the largest that there may be takes {_max_units(consistent)} units, one that is "
                "not there the least."
                if target.items
                else "Nothing is known of how large items are; an item has 400 KB at most."
            )
            low_units, high_units = least, read_units(high, consistent=consistent)
        case "Query":
            declared = _declared_access(planned, recogniser)
            if declared is None:
                high, items = target.bytes, target.items
                reason = f"How many items have this key is seen when they are read: at most all of {target}"
                reason += f", {_describe_count(target.items, target.bytes)}."
            else:
                access, entity = declared
                each = access.item_bytes or target.mean_bytes
                items = access.items or 1
                high = items * each
                reason = f"The design says of {entity}, “{access.title}”: about {items} items of {_format_bytes(each)}."
            low_units, high_units = least, _page_units(high, items, consistent)
        case "Scan":
            high = target.bytes
            low_units, high_units = (
                read_units(high, consistent=consistent),
                _page_units(high, target.items, consistent),
            )
            reason = f"DescribeTable counts {_describe_count(target.items, target.bytes)} in {target}{_LATE if late else ''}."
            if past:
                low_units = least
                reason += " That is how many there are now; at another moment there were fewer or more."
    prefix = "ia_" if table_class == "STANDARD_INFREQUENT_ACCESS" else ""
    kind = f"{prefix}read_request_unit"
    return ReadEstimate(
        low_units,
        high_units,
        high,
        max(1, -(-high // PAGE_BYTES_MAX)),
        book.usd_per_million(low_units, kind),
        book.usd_per_million(high_units, kind),
        book.title,
        reason,
    )


def _page_units(bytes_: int, items: int, consistent: bool) -> float:
    """Return the units of so many bytes read in the studio's pages; each page is rounded up for itself."""
    more = max(
        bytes_ // PAGE_BYTES_MAX, items // PAGE_ROWS
    )  # pages after the first, if only to hear that it was the last
    return read_units(bytes_, consistent=consistent) + more * read_units(0, consistent=consistent)


def _max_units(consistent: bool) -> str:
    return f"{read_units(ITEM_BYTES_MAX, consistent=consistent):g}"


def _declared_access(planned: QueryPlan, recogniser: Recogniser) -> tuple[AccessPattern, str] | None:
    """Return what the design says of a query by this partition key, of those that say most items."""
    design = recogniser.design
    if design is None or planned.route.pinned:
        return None
    candidates = [
        (access, entity)
        for access, entity in _patterns_with_counts(design, planned.route.target.index)
        if recogniser.can_make(entity, planned.route.target.index, planned.route.partition)
    ]
    return max(candidates, key=lambda each: each[0].items or 0, default=None)


def _patterns_with_counts(design: TableDesign, index: str | None) -> list[tuple[AccessPattern, str]]:
    return [
        (pattern.access, entity.name)
        for entity in design.entities
        for pattern in entity.patterns
        if pattern.index == index and pattern.access is not None and pattern.access.items
    ]


def _describe_count(items: int, bytes_: int) -> str:
    return f"{items:,} item{'' if items == 1 else 's'} of {_format_bytes(bytes_)}"


def _format_bytes(bytes_: int) -> str:
    if bytes_ < 1024:
        return f"{bytes_} B"
    if bytes_ < 1024 * 1024:
        return f"{bytes_ / 1024:.1f} KB"
    return f"{bytes_ / 1024 / 1024:.1f} MB"
