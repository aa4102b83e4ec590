"""Reasons: why a request was dear, in sentences that a person can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.studio.watching.dearest import Dear

_READ_BYTES = 4 * 1024
_WRITE_BYTES = 1024
_MANY = 10
_LARGE_ITEM_UNITS = 4.0
_SLOW_S = 0.05


def reasons_of(dear: Dear, request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what made a request dear, the weightiest first; none if it was an ordinary one."""
    operation = dear.asked.operation
    reads = sum(place.reads for place in dear.consumed)
    writes = sum(place.writes for place in dear.consumed)
    consistent = request.get("ConsistentRead") is True
    found: list[str] = []
    if operation == "Scan":
        found.append(f"A scan reads everything that it passes: {_size(reads, consistent=consistent)} here.")
    if operation == "Query" and reads >= _MANY:
        found.append(
            f"A page of {_size(reads, consistent=consistent)}: a query is charged for all that its key "
            "condition selects."
        )
    if request.get("FilterExpression") is not None:
        found.append("The filter is applied after the units are counted: what it drops was paid for.")
    if request.get("ProjectionExpression") is not None and reads >= _MANY:
        found.append("A projection narrows what is sent, and not what is charged.")
    if consistent and reads:
        found.append("A strongly consistent read costs twice what an eventually consistent one does.")
    if operation.startswith("Transact") or operation == "ExecuteTransaction":
        found.append("In a transaction every unit counts twice.")
    if operation.startswith(("Batch", "Transact")) and dear.items > 1:
        found.append(f"It is of {dear.items:,} items; a batch saves calls and no units.")
    found += _of_writes(dear, writes)
    if dear.fault is not None:
        found.append(f"It was refused: {dear.fault}.")
    if dear.took_s >= _SLOW_S:
        found.append(f"It took {dear.took_s * 1000:,.0f} ms, waiting for others and for the disk among them.")
    return tuple(found)


def _of_writes(dear: Dear, writes: float) -> list[str]:
    found = []
    indexes = [place for place in dear.consumed if place.index is not None and place.writes]
    if indexes:
        share = sum(place.writes for place in indexes)
        names = ", ".join(dict.fromkeys(place.index or "" for place in indexes))
        found.append(
            f"{share:g} of {writes:g} write units go to {len(indexes)} "
            f"{'index' if len(indexes) == 1 else 'indexes'} ({names})."
        )
    own = sum(place.writes for place in dear.consumed if place.index is None)
    if dear.items == 1 and own >= _LARGE_ITEM_UNITS:
        found.append(
            f"The item is large: a write unit is {_WRITE_BYTES // 1024} KB of all of it, however little changes."
        )
    return found


def _size(units: float, *, consistent: bool) -> str:
    """Return how much a read of so many units reads."""
    kilobytes = units * _READ_BYTES * (1 if consistent else 2) / 1024
    return f"about {kilobytes:,.0f} KB" if kilobytes < 1024 else f"about {kilobytes / 1024:,.1f} MB"
