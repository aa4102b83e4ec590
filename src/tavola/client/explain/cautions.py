"""Cautions: what is dear or wasteful about the requests of an operation, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tavola.client.consumption import WRITES, total
from tavola.client.explain.estimates import Known
from tavola.client.explain.explanation import Request, Waste
from tavola.expressions.bindings import Bindings
from tavola.expressions.plans import compile_condition
from tavola.limits import ITEM_BYTES_MAX
from tavola.values import Item, item_size

_LARGE_SHARE = 0.5  # of the largest item that DynamoDB takes


def cautions_of(asked: Sequence[Request], known: Known, waste: Waste | None, *, ran: bool) -> tuple[str, ...]:
    """Return what a person should know about some requests before they are made a million times."""
    found = [
        *_scans(asked),
        *_filters(asked, waste, ran=ran),
        *_fan_out(asked),
        *_doubled(asked),
        *_amplified(asked),
        *_large(asked),
        *_provisioned(asked, known),
    ]
    return tuple(dict.fromkeys(found))


def _scans(asked: Sequence[Request]) -> Iterator[str]:
    for each in asked:
        if each.operation == "Scan":
            yield (
                f"A scan reads every item of {each.places[0]}, whatever comes back, so it costs more as the table "
                "grows; an access pattern of its own would read only what is wanted."
            )


def _filters(asked: Sequence[Request], waste: Waste | None, *, ran: bool) -> Iterator[str]:
    filtered = [each for each in asked if "FilterExpression" in each.body]
    if not filtered:
        return
    names = " and ".join(sorted(_filter_attributes(filtered[0].body)))
    cure = f"a key that holds {names} would read only those"
    if waste is not None:
        yield (
            f"The filter on {names} threw away {waste.scanned - waste.returned:,} of {waste.scanned:,} items after "
            f"they were read: {waste.units:g} read units bought nothing; {cure}."
        )
    elif not ran:
        yield f"The filter on {names} saves no unit: what it drops is read and paid for first; {cure}."


def _filter_attributes(request: Mapping[str, Any]) -> frozenset[str]:
    bindings = Bindings(
        request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {}
    )
    return compile_condition(request["FilterExpression"], bindings, field="FilterExpression").attributes


def _fan_out(asked: Sequence[Request]) -> Iterator[str]:
    widest = max((each.together for each in asked if each.operation == "Query"), default=1)
    if widest > 1:
        least = 1.0 if asked[0].body.get("ConsistentRead") else 0.5
        yield (
            f"It asks {widest} partitions at once, each of which costs {least:g} read units at the least: "
            f"{widest * least:g}, however little is there."
        )


def _doubled(asked: Sequence[Request]) -> Iterator[str]:
    for each in asked:
        if each.operation.startswith("Transact"):
            yield "A transaction costs twice as much on its tables, and as much as ever on their indexes."
        elif each.body.get("ConsistentRead") and len(asked) == 1:
            yield "A consistent read costs twice what an eventually consistent one does."


def _amplified(asked: Sequence[Request]) -> Iterator[str]:
    for each in asked:
        if each.operation not in WRITES or each.estimate is None:
            continue
        indexes = {place: units for place, units in each.estimate.by_place.items() if place[1] is not None}
        more = total(indexes).writes
        own = each.estimate.total.writes - more
        if more > own:
            names = ", ".join(str(index) for _, index in indexes)
            yield f"Its indexes ({names}) take {more:g} write units, more than the {own:g} of the table itself."


def _large(asked: Sequence[Request]) -> Iterator[str]:
    for item in (item for each in asked for item in _items(each.body)):
        bytes_ = item_size(item)
        if bytes_ > ITEM_BYTES_MAX:
            yield f"The item has {bytes_:,} bytes and will be refused: DynamoDB takes {ITEM_BYTES_MAX:,}."
        elif bytes_ > _LARGE_SHARE * ITEM_BYTES_MAX:
            yield (
                f"The item has {bytes_:,} bytes, {bytes_ * 100 // ITEM_BYTES_MAX} % of what DynamoDB takes; each write "
                "of it is paid whole, so parts that change or grow belong in items of their own."
            )


def _items(body: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the items that a request puts."""
    if "Item" in body:
        yield body["Item"]
    writes = (
        write for each in body.get("RequestItems", {}).values() if isinstance(each, list) for write in each
    )
    for action in (*body.get("TransactItems", ()), *writes):
        yield from (told["Item"] for told in action.values() if "Item" in told)


def _provisioned(asked: Sequence[Request], known: Known) -> Iterator[str]:
    for each in asked:
        for name in each.tables:
            table = known.tables.get(name)
            if table is not None and table.settings.read_units is not None:
                yield f"{table.settings.name} is provisioned; the money is what it would be on demand."
