"""Cautions: warnings about expensive or wasteful requests, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tavola.client.consumption import WRITES, total_units
from tavola.client.explain.estimates import KnownItems
from tavola.client.explain.explanation import ExplainedRequest, FilterWaste
from tavola.expressions.bindings import Bindings
from tavola.expressions.plans import compile_condition
from tavola.limits import ITEM_BYTES_MAX
from tavola.values import Item, item_size

_LARGE_SHARE = 0.5  # of the maximum item size


def cautions_of(
    requests: Sequence[ExplainedRequest], known: KnownItems, waste: FilterWaste | None, *, ran: bool
) -> tuple[str, ...]:
    """Return warnings about requests, for people."""
    cautions = [
        *_scan_cost(requests),
        *_filter_cost(requests, waste, ran=ran),
        *_fan_out(requests),
        *_double_cost(requests),
        *_index_amplification(requests),
        *_large_items(requests),
        *_provisioned_tables(requests, known),
    ]
    return tuple(dict.fromkeys(cautions))


def _scan_cost(requests: Sequence[ExplainedRequest]) -> Iterator[str]:
    for request in requests:
        if request.operation == "Scan":
            yield (
                f"A scan reads every item of {request.targets[0]}, so its cost grows with the table; a query on a matching "
                "index reads only the results."
            )


def _filter_cost(
    requests: Sequence[ExplainedRequest], waste: FilterWaste | None, *, ran: bool
) -> Iterator[str]:
    filtered = [request for request in requests if "FilterExpression" in request.body]
    if not filtered:
        return
    names = " and ".join(sorted(_filter_attributes(filtered[0].body)))
    cure = f"an index key that contains {names} would avoid reading them"
    if waste is not None:
        yield (
            f"The filter on {names} discarded {waste.scanned - waste.returned:,} of {waste.scanned:,} items after "
            f"they were read: {waste.units:g} read units were wasted; {cure}."
        )
    elif not ran:
        yield f"The filter on {names} does not reduce the cost: discarded items are read and paid for; {cure}."


def _filter_attributes(request: Mapping[str, Any]) -> frozenset[str]:
    bindings = Bindings(
        request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {}
    )
    return compile_condition(request["FilterExpression"], bindings, field="FilterExpression").attributes


def _fan_out(requests: Sequence[ExplainedRequest]) -> Iterator[str]:
    widest = max((request.concurrent for request in requests if request.operation == "Query"), default=1)
    if widest > 1:
        least = 1.0 if requests[0].body.get("ConsistentRead") else 0.5
        yield (
            f"It reads {widest} partitions at once, and each costs at least {least:g} read units: "
            f"at least {widest * least:g} in all, even for few results."
        )


def _double_cost(requests: Sequence[ExplainedRequest]) -> Iterator[str]:
    for request in requests:
        if request.operation.startswith("Transact"):
            yield "A transaction costs twice as much on tables, and the usual amount on indexes."
        elif request.body.get("ConsistentRead") and len(requests) == 1:
            yield "A consistent read costs twice as much as an eventually consistent one."


def _index_amplification(requests: Sequence[ExplainedRequest]) -> Iterator[str]:
    for request in requests:
        if request.operation not in WRITES or request.estimate is None:
            continue
        indexes = {owner: units for owner, units in request.estimate.by_owner.items() if owner[1] is not None}
        index_writes = total_units(indexes).writes
        table_writes = request.estimate.total.writes - index_writes
        if index_writes > table_writes:
            names = ", ".join(str(index) for _, index in indexes)
            yield f"Its indexes ({names}) take {index_writes:g} write units, and the table only {table_writes:g}."


def _large_items(requests: Sequence[ExplainedRequest]) -> Iterator[str]:
    for item in (item for request in requests for item in _put_items(request.body)):
        bytes_ = item_size(item)
        if bytes_ > ITEM_BYTES_MAX:
            yield f"The item has {bytes_:,} bytes and will be rejected: the maximum is {ITEM_BYTES_MAX:,}."
        elif bytes_ > _LARGE_SHARE * ITEM_BYTES_MAX:
            yield (
                f"The item has {bytes_:,} bytes, {bytes_ * 100 // ITEM_BYTES_MAX} % of the maximum; every write is charged "
                "for the whole item, so move parts that change or grow to separate items."
            )


def _put_items(body: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the items that a request puts."""
    if "Item" in body:
        yield body["Item"]
    writes = (
        write for item in body.get("RequestItems", {}).values() if isinstance(item, list) for write in item
    )
    for action in (*body.get("TransactItems", ()), *writes):
        yield from (members["Item"] for members in action.values() if "Item" in members)


def _provisioned_tables(requests: Sequence[ExplainedRequest], known: KnownItems) -> Iterator[str]:
    for request in requests:
        for name in request.tables:
            table = known.tables.get(name)
            if table is not None and table.settings.read_units is not None:
                yield f"{table.settings.name} is provisioned; the cost shown is the on-demand price."
