"""Walk: any operation's steps, walked for what they ask instead of for what they do.

The same steps that a shell would run are run here by one that writes down each request and estimates it.
Without `run`, nothing is sent but the read that a write needs before it can be worked out, and the walk
ends where only an answer could lead on. With `run`, everything is sent and its real cost is told.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar

from tavola.client.consumption import READS, Place, Units, added, consumed, total
from tavola.client.context import Context
from tavola.client.effects import Call, CallGroup, Effect, Program, RunBlocking, Sleep
from tavola.client.explain.cautions import cautions_of
from tavola.client.explain.estimates import Estimate, Known, estimate
from tavola.client.explain.explanation import Explanation, Request, Waste
from tavola.errors import TavolaError
from tavola.model import Shape
from tavola.prices import BookUnknown, PriceBook, load_book
from tavola.values import Item, item_size, read_units

R = TypeVar("R")

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Prices:
    """Which book money is told by."""

    region: str = DEFAULT_REGION
    date: datetime.date | None = None  # None: the newest
    chosen: bool = False  # somebody wants just this one; else another region's serves where there is none

    def book(self) -> tuple[PriceBook, str]:
        """Return the book, and a sentence where it is not the region's own."""
        try:
            return load_book(self.region, self.date), ""
        except BookUnknown:
            if self.chosen:
                raise
        book = load_book(DEFAULT_REGION, self.date)
        return book, f"There is no price book for {self.region}; the money is that of {book.title}."


@dataclass(frozen=True, slots=True)
class Subject:
    """What is being explained: its name, what is known of its items, and what may follow unseen."""

    what: str
    known: Known
    more: str = ""
    warnings: tuple[str, ...] = ()
    writes: bool = False


def prices_in(context: Context) -> Prices:
    """Return the prices of the region that a client asks in."""
    return Prices(context.region or DEFAULT_REGION)


def known_of(
    context: Context,
    shapes: Iterable[Shape],
    *,
    item_bytes: int | None,
    items: int | None = None,
    standing: tuple[Item, ...] = (),
    fetches: bool = False,
) -> Known:
    """Return what the model tells of the tables that some entities live in."""
    tables = {}
    living: dict[str, dict[str, Shape]] = {}
    for shape in shapes:
        name = context.name_of(shape.home)
        tables[name] = shape.home
        living.setdefault(name, {})[shape.name] = shape
    by_table = {name: tuple(found.values()) for name, found in living.items()}
    return Known(tables, by_table, item_bytes, items, standing, fetches)


def explained(subject: Subject, inner: Program[R], prices: Prices, *, run: bool) -> Program[Explanation[R]]:
    """Return the explanation of an operation, whose steps are walked; with `run` they are done."""
    walk = _Walk(subject.known)
    more, result, refused = "", None, ""
    try:
        ask = next(inner)
        while True:
            calls = _calls(ask)
            walk.ask(calls)
            if run or isinstance(ask, Sleep) or (subject.writes and _only_reads(calls)):
                try:
                    answer = yield _metered(ask)
                except TavolaError as error:
                    walk.answered(calls, [error])
                    ask = inner.throw(error)
                    continue
                walk.answered(calls, [answer] if isinstance(ask, Call) else answer)
                ask = inner.send(answer)
                continue
            imagined = [_imagined(call) for call in calls]
            if None in imagined:
                more = subject.more
                inner.close()
                break
            ask = inner.send(imagined[0] if isinstance(ask, Call) else imagined)
    except StopIteration as done:
        result = done.value
    except TavolaError as error:
        if run:
            raise
        refused = f"As things are, it is refused: {error}"
    return _told(subject, walk, prices, more=more, refused=refused, run=run, result=result)


def _told(
    subject: Subject, walk: _Walk, prices: Prices, *, more: str, refused: str, run: bool, result: R | None
) -> Explanation[R]:
    book, caveat = prices.book()
    asked = tuple(walk.asked)
    if run:
        by_place: Mapping[Place, Units] | None = added(each.consumed for each in asked if each.consumed)
    elif any(each.estimate is None for each in asked):
        by_place = None
    else:
        by_place = added(each.estimate.by_place for each in asked if each.estimate is not None)
    waste = walk.waste() if run else None
    cautions = cautions_of(asked, subject.known, waste, ran=run)
    return Explanation(
        what=subject.what,
        requests=asked,
        more=more,
        usd_per_million=None if by_place is None else _dollars(by_place, subject.known, book),
        book=book.title,
        warnings=tuple(filter(None, (refused, *subject.warnings, *cautions, caveat))),
        waste=waste,
        ran=run,
        result=result if run else None,
    )


def _dollars(by_place: Mapping[Place, Units], known: Known, book: PriceBook) -> Decimal:
    """Return the price of a million times these units on demand, each table by its class."""
    dollars = Decimal(0)
    for (name, _), units in by_place.items():
        table = known.tables.get(name)
        rare = table is not None and table.settings.table_class == "STANDARD_INFREQUENT_ACCESS"
        prefix = "ia_" if rare else ""
        dollars += book.usd_per_million(units.reads, f"{prefix}read_request_unit")
        dollars += book.usd_per_million(units.writes, f"{prefix}write_request_unit")
    return dollars


@dataclass(slots=True)
class _Walk:
    """What has been asked so far; what a read brings is known from then on."""

    known: Known
    asked: list[Request] = field(default_factory=list)
    _kept_bytes: int = 0  # of the items that filters let through
    _counted: bool = True  # whether every filtered answer brought its items

    def ask(self, calls: Sequence[Call]) -> None:
        for call in calls:
            told: Estimate | None = estimate(call.operation, call.request, self.known)
            self.asked.append(Request(call.operation, call.request, len(calls), told, None, None, None))

    def answered(self, calls: Sequence[Call], answers: Sequence[Any]) -> None:
        start = len(self.asked) - len(calls)
        for number, (call, answer) in enumerate(zip(calls, answers, strict=False), start):
            if isinstance(answer, TavolaError):
                self.asked[number] = replace(self.asked[number], consumed={})
                continue
            self.asked[number] = replace(
                self.asked[number],
                consumed=consumed(call.operation, answer),
                scanned=answer.get("ScannedCount"),
                returned=answer.get("Count"),
            )
            self.known = replace(self.known, standing=(*self.known.standing, *_brought(call, answer)))
            if "FilterExpression" in call.request:
                self._counted = self._counted and "Items" in answer
                self._kept_bytes += sum(map(item_size, answer.get("Items", ())))

    def waste(self) -> Waste | None:
        """Return what filters threw away, None where there was none.

        What reading only the returned items would have taken is known by their bytes; where only a count
        came back, by their number.
        """
        filtered = [each for each in self.asked if "FilterExpression" in each.body and each.scanned]
        scanned = sum(each.scanned or 0 for each in filtered)
        returned = sum(each.returned or 0 for each in filtered)
        if not filtered or scanned == returned:
            return None
        paid = total(added(each.consumed for each in filtered if each.consumed)).reads
        if self._counted:
            consistent = bool(filtered[0].body.get("ConsistentRead"))
            needed = read_units(self._kept_bytes, consistent=consistent) if returned else 0.0
        else:
            needed = paid * returned / scanned
        return Waste(scanned, returned, max(0.0, paid - needed))


def _calls(ask: Effect) -> tuple[Call, ...]:
    if isinstance(ask, Sleep | RunBlocking):
        return ()
    return ask.calls if isinstance(ask, CallGroup) else (ask,)


def _metered(ask: Effect) -> Effect:
    """Return an ask whose answers also tell what they consumed."""
    if isinstance(ask, Sleep | RunBlocking):
        return ask
    calls = tuple(Call(c.operation, {**c.request, "ReturnConsumedCapacity": "INDEXES"}) for c in _calls(ask))
    return CallGroup(calls) if isinstance(ask, CallGroup) else calls[0]


def _brought(call: Call, answer: Mapping[str, Any]) -> list[Item]:
    """Return the whole items that a get brought, as they stand."""
    match call.operation:
        case "GetItem":
            return [answer["Item"]] if "Item" in answer else []
        case "BatchGetItem":
            return [item for items in answer["Responses"].values() for item in items]
        case _:
            return []


def _only_reads(calls: Sequence[Call]) -> bool:
    return all(call.operation in READS for call in calls)


def _imagined(call: Call) -> dict[str, Any] | None:
    """Return the answer of a batch that was done whole and found nothing, so that the next one is shown too."""
    if call.operation == "BatchWriteItem":
        return {"UnprocessedItems": {}}
    if call.operation == "BatchGetItem":
        return {"Responses": {}, "UnprocessedKeys": {}}
    return None
