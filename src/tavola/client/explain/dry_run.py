"""Dry runs: execute an operation's program, and record its requests instead of sending them.

The program is the one that the client runs. Without `run`, only the read that a write needs first is sent, and the dry run
ends where the next request depends on a response. With `run`, everything is sent and its consumption is measured.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar

from tavola.client.consumption import (
    READS,
    CapacityOwner,
    Units,
    merge_units,
    parse_consumption,
    total_units,
)
from tavola.client.context import Context
from tavola.client.effects import Call, CallGroup, Effect, Program, RunBlocking, Sleep
from tavola.client.explain.cautions import cautions_of
from tavola.client.explain.estimates import KnownItems, estimate
from tavola.client.explain.explanation import ExplainedRequest, Explanation, FilterWaste
from tavola.errors import TavolaError
from tavola.model import EntityShape
from tavola.prices import PriceBook, UnknownPriceBook, load_book
from tavola.values import Item, item_size, read_units

R = TypeVar("R")

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class PriceSource:
    """Selects a price book."""

    region: str = DEFAULT_REGION
    date: datetime.date | None = None  # None: the newest
    chosen: bool = (
        False  # the caller named the region; otherwise another region's book may replace a missing one
    )

    def book(self) -> tuple[PriceBook, str]:
        """Return the book, and a warning if it is that of another region."""
        try:
            return load_book(self.region, self.date), ""
        except UnknownPriceBook:
            if self.chosen:
                raise
        book = load_book(DEFAULT_REGION, self.date)
        return book, f"There is no price book for {self.region}; the prices are those of {book.title}."


@dataclass(frozen=True, slots=True)
class Subject:
    """What is explained: its name, what is known of its items, and requests that may follow."""

    what: str
    known: KnownItems
    more: str = ""
    warnings: tuple[str, ...] = ()
    writes: bool = False


def prices_in(context: Context) -> PriceSource:
    """Return the prices of the client's region."""
    return PriceSource(context.region or DEFAULT_REGION)


def known_items(
    context: Context,
    shapes: Iterable[EntityShape],
    *,
    item_bytes: int | None = None,
    items: int | None = None,
    current: tuple[Item, ...] = (),
    hydrates: bool = False,
) -> KnownItems:
    """Return what the model says of the tables of some entities, with what the caller knows of their items."""
    tables = {}
    shapes_by_table: dict[str, dict[str, EntityShape]] = {}
    for shape in shapes:
        name = context.name_of(shape.home)
        tables[name] = shape.home
        shapes_by_table.setdefault(name, {})[shape.name] = shape
    by_table = {name: tuple(shape.values()) for name, shape in shapes_by_table.items()}
    return KnownItems(tables, by_table, item_bytes, items, current, hydrates)


def explain_program(
    subject: Subject, program: Program[R], prices: PriceSource, *, run: bool
) -> Program[Explanation[R]]:
    """Return the explanation of an operation; with `run`, it is also executed."""
    recorder = _Recorder(subject.known)
    open_end, result, refusal = "", None, ""
    try:
        effect = next(program)
        while True:
            calls = _calls(effect)
            recorder.add(calls)
            if run or isinstance(effect, Sleep) or (subject.writes and _only_reads(calls)):
                try:
                    response = yield _with_consumption(effect)
                except TavolaError as error:
                    recorder.add_responses(calls, [error])
                    effect = program.throw(error)
                    continue
                recorder.add_responses(calls, [response] if isinstance(effect, Call) else response)
                effect = program.send(response)
                continue
            assumed = [_assumed_response(call) for call in calls]
            if None in assumed:
                open_end = subject.more
                program.close()
                break
            effect = program.send(assumed[0] if isinstance(effect, Call) else assumed)
    except StopIteration as done:
        result = done.value
    except TavolaError as error:
        if run:
            raise
        refusal = f"With the current item, it would fail: {error}"
    book, substitute = prices.book()
    requests = tuple(recorder.requests)
    if run:
        by_owner: Mapping[CapacityOwner, Units] | None = merge_units(
            r.consumed for r in requests if r.consumed
        )
    elif any(request.estimate is None for request in requests):
        by_owner = None
    else:
        by_owner = merge_units(
            request.estimate.by_owner for request in requests if request.estimate is not None
        )
    waste = recorder.waste() if run else None
    cautions = cautions_of(requests, subject.known, waste, ran=run)
    return Explanation(
        what=subject.what,
        requests=requests,
        more=open_end,
        usd_per_million=None if by_owner is None else _dollars(by_owner, subject.known, book),
        book=book.title,
        warnings=tuple(filter(None, (refusal, *subject.warnings, *cautions, substitute))),
        waste=waste,
        ran=run,
        result=result if run else None,
    )


def _dollars(by_owner: Mapping[CapacityOwner, Units], known: KnownItems, book: PriceBook) -> Decimal:
    """Return the on-demand price of a million times these units, by the class of each table."""
    dollars = Decimal(0)
    for (name, _), units in by_owner.items():
        table = known.tables.get(name)
        infrequent = table is not None and table.settings.table_class == "STANDARD_INFREQUENT_ACCESS"
        prefix = "ia_" if infrequent else ""
        dollars += book.usd_per_million(units.reads, f"{prefix}read_request_unit")
        dollars += book.usd_per_million(units.writes, f"{prefix}write_request_unit")
    return dollars


@dataclass(slots=True)
class _Recorder:
    """The requests so far; items that a read returns are known from then on."""

    known: KnownItems
    requests: list[ExplainedRequest] = field(default_factory=list)
    _kept_bytes: int = 0  # of items that passed filters
    _has_items: bool = True  # every filtered response contained its items

    def add(self, calls: Sequence[Call]) -> None:
        for call in calls:
            cost = estimate(call.operation, call.request, self.known)
            self.requests.append(
                ExplainedRequest(call.operation, call.request, len(calls), cost, None, None, None)
            )

    def add_responses(self, calls: Sequence[Call], responses: Sequence[Any]) -> None:
        start = len(self.requests) - len(calls)
        for number, (call, response) in enumerate(zip(calls, responses, strict=False), start):
            if isinstance(response, TavolaError):
                self.requests[number] = replace(self.requests[number], consumed={})
                continue
            self.requests[number] = replace(
                self.requests[number],
                consumed=parse_consumption(call.operation, response),
                scanned=response.get("ScannedCount"),
                returned=response.get("Count"),
            )
            current = (*self.known.current, *_items_in(call, response))
            self.known = replace(self.known, current=current)
            if "FilterExpression" in call.request:
                self._has_items = self._has_items and "Items" in response
                self._kept_bytes += sum(map(item_size, response.get("Items", ())))

    def waste(self) -> FilterWaste | None:
        """Return what filters discarded, None if nothing.

        The units for the returned items alone follow from their bytes, or from their number if only a count was returned.
        """
        filtered = [
            request for request in self.requests if "FilterExpression" in request.body and request.scanned
        ]
        scanned = sum(request.scanned or 0 for request in filtered)
        returned = sum(request.returned or 0 for request in filtered)
        if not filtered or scanned == returned:
            return None
        paid = total_units(merge_units(request.consumed for request in filtered if request.consumed)).reads
        if self._has_items:
            consistent = bool(filtered[0].body.get("ConsistentRead"))
            needed = read_units(self._kept_bytes, consistent=consistent) if returned else 0.0
        else:
            needed = paid * returned / scanned
        return FilterWaste(scanned, returned, max(0.0, paid - needed))


def _calls(effect: Effect) -> tuple[Call, ...]:
    if isinstance(effect, Sleep | RunBlocking):
        return ()
    return effect.calls if isinstance(effect, CallGroup) else (effect,)


def _with_consumption(effect: Effect) -> Effect:
    """Return an effect whose responses include their consumed capacity."""
    if isinstance(effect, Sleep | RunBlocking):
        return effect
    calls = tuple(
        Call(call.operation, {**call.request, "ReturnConsumedCapacity": "INDEXES"}) for call in _calls(effect)
    )
    return CallGroup(calls) if isinstance(effect, CallGroup) else calls[0]


def _items_in(call: Call, response: Mapping[str, Any]) -> list[Item]:
    """Return the complete items in the response to a get."""
    match call.operation:
        case "GetItem":
            return [response["Item"]] if "Item" in response else []
        case "BatchGetItem":
            return [item for items in response["Responses"].values() for item in items]
        case _:
            return []


def _only_reads(calls: Sequence[Call]) -> bool:
    return all(call.operation in READS for call in calls)


def _assumed_response(call: Call) -> dict[str, Any] | None:
    """Return the response of a batch that is processed completely, so that the next batch is shown too."""
    if call.operation == "BatchWriteItem":
        return {"UnprocessedItems": {}}
    if call.operation == "BatchGetItem":
        return {"Responses": {}, "UnprocessedKeys": {}}
    return None
