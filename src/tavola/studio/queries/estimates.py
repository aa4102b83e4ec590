"""Estimate the capacity of a read before it runs: a range, and what the estimate is based on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.design.text import format_count, format_size
from tavola.limits import ITEM_BYTES_MAX, PAGE_BYTES_MAX
from tavola.model.document import AccessPattern, TableDesign
from tavola.prices import PriceBook
from tavola.studio.queries.planner import QueryPlan
from tavola.studio.queries.rows import PAGE_ROWS
from tavola.studio.recognition import Recogniser
from tavola.values import read_units

_DELAYED = " (updated about every six hours)"


@dataclass(frozen=True, slots=True)
class ReadEstimate:
    """The likely range of read units of a whole result, and the price of a million such reads.

    For a Scan, and for a Query that the design does not describe, `units_high` is an upper bound by DescribeTable's counts.
    For a GetItem, and for estimates from the design, it is not; `reason` says what the estimate is based on.
    """

    units_low: float
    units_high: float
    bytes_high: int
    pages_high: int
    dollars_low: Decimal  # for a million such reads, on demand
    dollars_high: Decimal
    priced: str  # which price book
    reason: str


def estimate_read(
    planned: QueryPlan,
    recogniser: Recogniser,
    book: PriceBook,
    table_class: str,
    *,
    delayed_counts: bool = False,
    reads_past: bool = False,
) -> ReadEstimate:
    """Return the estimate of a read from DescribeTable's counts and the design.

    `delayed_counts`: the counts are updated with a delay, as on AWS. `reads_past`: the read is as of an earlier time than
    the counts.
    """
    target, consistent = planned.route.target, planned.consistent
    min_units = read_units(0, consistent=consistent)
    match planned.route.operation:
        case "GetItem":
            high = target.mean_bytes or ITEM_BYTES_MAX
            reason = (
                f"Items average {format_size(high)}. An item of the maximum size consumes {_max_units(consistent)} units, a "
                "missing item the minimum."
                if target.items
                else "The item size is unknown; the maximum is 400 KB."
            )
            low_units, high_units = min_units, read_units(high, consistent=consistent)
        case "Query":
            declared = _declared_access(planned, recogniser)
            if declared is None:
                high, items = target.bytes, target.items
                reason = "The number of items with this key is not known in advance: at most all of "
                reason += f"{target}, {_describe_count(target.items, target.bytes)}."
            else:
                access, entity = declared
                bytes_per_item = access.item_bytes or target.mean_bytes
                items = access.items or 1
                high = items * bytes_per_item
                reason = f"The design declares about {items} items of {format_size(bytes_per_item)} for “{access.title}” ({entity})."
            low_units, high_units = min_units, _page_units(high, items, consistent)
        case "Scan":
            high = target.bytes
            low_units, high_units = (
                read_units(high, consistent=consistent),
                _page_units(high, target.items, consistent),
            )
            count = _describe_count(target.items, target.bytes)
            reason = f"DescribeTable reports {count} in {target}{_DELAYED if delayed_counts else ''}."
            if reads_past:
                low_units = min_units
                reason += " That is the current count; it may have been different then."
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
    """Return the units of reading some bytes in the studio's pages; each page is rounded up."""
    # Further pages, including a last empty one
    extra_pages = max(bytes_ // PAGE_BYTES_MAX, items // PAGE_ROWS)
    return read_units(bytes_, consistent=consistent) + extra_pages * read_units(0, consistent=consistent)


def _max_units(consistent: bool) -> str:
    return f"{read_units(ITEM_BYTES_MAX, consistent=consistent):g}"


def _declared_access(planned: QueryPlan, recogniser: Recogniser) -> tuple[AccessPattern, str] | None:
    """Return the declared access pattern with the most items that queries this partition key, and its entity."""
    design = recogniser.design
    if design is None or planned.route.pinned:
        return None
    candidates = [
        (access, entity)
        for access, entity in _patterns_with_counts(design, planned.route.target.index)
        if recogniser.can_make(entity, planned.route.target.index, planned.route.partition)
    ]
    return max(candidates, key=lambda candidate: candidate[0].items or 0, default=None)


def _patterns_with_counts(design: TableDesign, index: str | None) -> list[tuple[AccessPattern, str]]:
    return [
        (pattern.access, entity.name)
        for entity in design.entities
        for pattern in entity.patterns
        if pattern.index == index and pattern.access is not None and pattern.access.items
    ]


def _describe_count(items: int, bytes_: int) -> str:
    return f"{format_count(items, 'item')} of {format_size(bytes_)}"
